/* Steps: requests, and what is between them. An object is told what it is by one of its keys; steps
 * inside a block stand in one list with it, behind it, up to an end that points back. */
#include "worker/scenario/load.h"

/* --- the list --- */

static int add_step(struct loader *l, const struct node *n, struct step_list *list,
                    const struct plan_step *step)
{
    if (list->count == PLAN_MAX_STEPS)
        return load_fail(l, n, "is one step too many: a task can have %d", PLAN_MAX_STEPS);
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 16;
        struct plan_step *items = ARENA_ARRAY(&l->scratch, struct plan_step, room);
        if (!items)
            return -ENOMEM;
        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->room = room;
    }
    list->items[list->count] = *step;
    list->items[list->count++].depth = list->depth;
    return 0;
}

static int enter(struct loader *l, const struct node *n, struct step_list *list)
{
    if (++list->depth > PLAN_MAX_BLOCK_DEPTH)
        return load_fail(l, n, "is nested deeper than %d blocks", PLAN_MAX_BLOCK_DEPTH);
    return 0;
}

/* The block that step `begin` opened ends here. */
static int leave(struct loader *l, const struct node *n, struct step_list *list, uint32_t begin)
{
    const struct plan_step end = {.kind = PLAN_STEP_END, .other = begin};
    list->depth--;
    uint32_t at = (uint32_t)list->count;
    int rc = add_step(l, n, list, &end);
    if (rc == 0 && list->items[begin].other == 0)
        list->items[begin].other = at;
    return rc;
}

/* --- keys that are read later, in their order, by whoever reads the step --- */

struct step_draft {
    struct plan_step step;
    struct test_list tests;
    const struct node *steps, *otherwise;
};

static int read_steps(struct loader *l, const struct node *n, void *target)
{
    ((struct step_draft *)target)->steps = n;
    return load_list(l, n, PLAN_MAX_STEPS, "steps");
}

static int read_otherwise(struct loader *l, const struct node *n, void *target)
{
    ((struct step_draft *)target)->otherwise = n;
    return load_list(l, n, PLAN_MAX_STEPS, "steps");
}

static int load_block(struct loader *l, const struct node *n, struct step_list *list,
                      const struct step_draft *d)
{
    uint32_t begin = (uint32_t)list->count;
    int rc = add_step(l, n, list, &d->step);
    if (rc == 0)
        rc = enter(l, n, list);
    if (rc == 0)
        rc = load_steps(l, d->steps, list);
    if (rc == 0 && d->otherwise) {
        const struct plan_step otherwise = {.kind = PLAN_STEP_ELSE};
        uint32_t at = (uint32_t)list->count;
        list->depth--;
        list->items[begin].other = at;
        rc = add_step(l, n, list, &otherwise);
        list->depth++;
        if (rc == 0)
            rc = load_steps(l, d->otherwise, list);
        if (rc == 0)
            list->items[at].other = (uint32_t)list->count;
    }
    return rc ? rc : leave(l, n, list, begin);
}

/* --- pause --- */

static int read_pause_between(struct loader *l, const struct node *n, void *target)
{
    struct plan_pause *pause = &((struct step_draft *)target)->step.pause;
    if (n->kind != NODE_LIST || n->child_count != 2)
        return load_fail(l, n, "must be a list of two numbers: [min, max]");
    int rc = load_seconds(l, n->first, 0, PLAN_MAX_WAIT_S, &pause->min_us);
    if (rc == 0)
        rc = load_seconds(l, n->last, 0, PLAN_MAX_WAIT_S, &pause->max_us);
    if (rc == 0 && pause->min_us > pause->max_us)
        return load_fail(l, n, "the first number must not be larger than the second");
    return rc;
}

static const struct load_key between_keys[] = {
    {.name = "between", .read = read_pause_between, .required = true, .also = "uniform range"},
};

static int read_pause(struct loader *l, const struct node *n, void *target)
{
    struct plan_pause *pause = &((struct step_draft *)target)->step.pause;
    if (n->kind == NODE_OBJECT)
        return load_object(l, n, "a pause", KEYS(between_keys), target);
    if (n->kind == NODE_STRING && text_has_variables(n->text))
        return load_template(l, n, PLAN_INSERT_PLAIN, &pause->seconds);
    int rc = load_seconds(l, n, 0, PLAN_MAX_WAIT_S, &pause->min_us);
    pause->max_us = pause->min_us;
    return rc;
}

static const struct load_key pause_keys[] = {{.name = "pause", .read = read_pause}};

static int load_pause(struct loader *l, const struct node *n, struct step_list *list)
{
    struct step_draft d = {.step = {.kind = PLAN_STEP_PAUSE}};
    int rc = load_object(l, n, "a pause", KEYS(pause_keys), &d);
    return rc ? rc : add_step(l, n, list, &d.step);
}

/* --- loops --- */

static int read_repeat(struct loader *l, const struct node *n, void *target)
{
    struct plan_loop *loop = &((struct step_draft *)target)->step.loop;
    if (n->kind == NODE_STRING && text_has_variables(n->text))
        return load_template(l, n, PLAN_INSERT_PLAIN, &loop->count);
    return load_whole(l, n, 0, PLAN_MAX_REPEATS, &loop->times);
}

static int read_condition(struct loader *l, const struct node *n, void *target)
{
    return load_condition(l, n, &((struct step_draft *)target)->tests);
}

static int read_limit(struct loader *l, const struct node *n, void *target)
{
    return load_whole(l, n, 1, PLAN_MAX_REPEATS, &((struct step_draft *)target)->step.loop.times);
}

static const struct load_key repeat_keys[] = {
    {.name = "repeat", .read = read_repeat},
    {.name = "steps", .read = read_steps, .required = true, .also = "do then tasks"},
};

static const struct load_key while_keys[] = {
    {.name = "while", .read = read_condition},
    {.name = "limit", .read = read_limit, .also = "max at_most"},
    {.name = "steps", .read = read_steps, .required = true, .also = "do then tasks"},
};

static int load_loop(struct loader *l, const struct node *n, struct step_list *list,
                     struct step_draft *d)
{
    int rc = test_list_keep(l, &d->tests, &d->step.tests, &d->step.test_count);
    d->step.loop.slot = list->loops++;
    if (list->loops > l->loop_slots)
        l->loop_slots = list->loops;
    if (rc == 0)
        rc = load_block(l, n, list, d);
    list->loops--;
    return rc;
}

static int load_repeat(struct loader *l, const struct node *n, struct step_list *list)
{
    struct step_draft d = {.step = {.kind = PLAN_STEP_REPEAT}};
    int rc = load_object(l, n, "a loop", KEYS(repeat_keys), &d);
    return rc ? rc : load_loop(l, n, list, &d);
}

static int load_while(struct loader *l, const struct node *n, struct step_list *list)
{
    struct step_draft d = {
        .step = {.kind = PLAN_STEP_WHILE, .loop = {.times = PLAN_WHILE_REPEATS}}};
    int rc = load_object(l, n, "a loop", KEYS(while_keys), &d);
    return rc ? rc : load_loop(l, n, list, &d);
}

/* --- if --- */

static const struct load_key if_keys[] = {
    {.name = "if", .read = read_condition},
    {.name = "then", .read = read_steps, .required = true, .also = "steps do"},
    {.name = "else", .read = read_otherwise, .also = "otherwise"},
};

static int load_if(struct loader *l, const struct node *n, struct step_list *list)
{
    struct step_draft d = {.step = {.kind = PLAN_STEP_IF}};
    int rc = load_object(l, n, "a condition", KEYS(if_keys), &d);
    if (rc == 0)
        rc = test_list_keep(l, &d.tests, &d.step.tests, &d.step.test_count);
    return rc ? rc : load_block(l, n, list, &d);
}

/* --- group --- */

static int read_group(struct loader *l, const struct node *n, void *target)
{
    int rc = load_name(l, n, &((struct step_draft *)target)->step.group.name);
    if (rc == 0 && text_has_variables(n->text))
        return load_fail(l, n, "must not have variables: its row is one for all users");
    return rc;
}

static const struct load_key group_keys[] = {
    {.name = "group", .read = read_group},
    {.name = "steps", .read = read_steps, .required = true, .also = "do then tasks"},
};

static int load_group(struct loader *l, const struct node *n, struct step_list *list)
{
    struct step_draft d = {.step = {.kind = PLAN_STEP_GROUP}};
    bool is_new;
    int rc = load_object(l, n, "a group", KEYS(group_keys), &d);
    d.step.group.entry = PLAN_NO_ENTRY;
    if (rc == 0 && list->count_entries)
        rc = names_add(&l->entries, STR("GROUP"), d.step.group.name, &d.step.group.entry, &is_new);
    d.step.group.slot = list->groups++;
    if (list->groups > l->group_slots)
        l->group_slots = list->groups;
    if (rc == 0)
        rc = load_block(l, n, list, &d);
    list->groups--;
    return rc;
}

/* --- set, log, stop --- */

static int read_set(struct loader *l, const struct node *n, void *target)
{
    struct plan_step *step = &((struct step_draft *)target)->step;
    if (n->kind != NODE_OBJECT)
        return load_fail(l, n, "must be an object of variables and values, not %s",
                         node_kind_name(n->kind));
    if (!n->first)
        return load_fail(l, n, "must not be empty");
    struct plan_assignment *items = ARENA_ARRAY(l->memory, struct plan_assignment, n->child_count);
    if (!items)
        return -ENOMEM;
    int rc = 0;
    for (const struct node *one = n->first; rc == 0 && one; one = one->next) {
        struct plan_assignment *item = &items[one->index];
        rc = load_target(l, one, &item->variable);
        if (rc == 0)
            rc = load_scalar(l, one, PLAN_INSERT_PLAIN, &item->value, &item->json);
    }
    step->set.items = items;
    step->set.count = n->child_count;
    return rc;
}

static int read_log(struct loader *l, const struct node *n, void *target)
{
    return load_template(l, n, PLAN_INSERT_PLAIN, &((struct step_draft *)target)->step.log);
}

static int read_stop(struct loader *l, const struct node *n, void *target)
{
    static const char *const words[] = {"task", "user", "run"};
    size_t word;
    int rc = load_word(l, n, words, sizeof words / sizeof *words, &word);
    if (rc == 0)
        ((struct step_draft *)target)->step.stop = (enum plan_stop)(word + PLAN_STOP_TASK);
    return rc;
}

static const struct load_key set_keys[] = {{.name = "set", .read = read_set}};
static const struct load_key log_keys[] = {{.name = "log", .read = read_log}};
static const struct load_key stop_keys[] = {{.name = "stop", .read = read_stop}};

static int load_set(struct loader *l, const struct node *n, struct step_list *list)
{
    struct step_draft d = {.step = {.kind = PLAN_STEP_SET}};
    int rc = load_object(l, n, "a 'set' step", KEYS(set_keys), &d);
    return rc ? rc : add_step(l, n, list, &d.step);
}

static int load_log(struct loader *l, const struct node *n, struct step_list *list)
{
    struct step_draft d = {.step = {.kind = PLAN_STEP_LOG}};
    int rc = load_object(l, n, "a 'log' step", KEYS(log_keys), &d);
    return rc ? rc : add_step(l, n, list, &d.step);
}

static int load_stop(struct loader *l, const struct node *n, struct step_list *list)
{
    struct step_draft d = {.step = {.kind = PLAN_STEP_STOP}};
    int rc = load_object(l, n, "a 'stop' step", KEYS(stop_keys), &d);
    return rc ? rc : add_step(l, n, list, &d.step);
}

/* --- any step --- */

static const struct {
    const char *key;
    int (*load)(struct loader *l, const struct node *n, struct step_list *list);
    const char *also; /* other tools' words */
} kinds[] = {
    {"pause", load_pause, "sleep wait think think_time delay"},
    {"repeat", load_repeat, "loop times"},
    {"while", load_while, "until"},
    {"if", load_if, "when condition"},
    {"group", load_group, "transaction"},
    {"set", load_set, "assign variables"},
    {"log", load_log, "print"},
    {"stop", load_stop, "exit interrupt"},
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* A step without any action, one of whose keys is nearly one of ours: "sleep". */
static int suggest_kind(struct loader *l, const struct node *n)
{
    struct load_key words[KINDS];
    for (size_t i = 0; i < KINDS; i++)
        words[i] = (struct load_key){.name = kinds[i].key, .also = kinds[i].also};
    if (n->child_count != 1)
        return 0;
    const char *meant = load_nearest(n->first->key, words, KINDS);
    return meant ? load_fail(l, n->first, "unknown key; did you mean '%s'?", meant) : 0;
}

static bool is_request(struct str key)
{
    static const char *const actions[] = {"get",    "post", "put",     "patch",
                                          "delete", "head", "options", "request"};
    size_t i = 0;
    while (i < sizeof actions / sizeof *actions && !str_eq(key, str_of(actions[i])))
        i++;
    return i < sizeof actions / sizeof *actions;
}

static size_t find_kind(struct str key)
{
    size_t i = 0;
    while (i < KINDS && !str_eq(key, str_of(kinds[i].key)))
        i++;
    return i;
}

/* The key that says what the step does; NULL: none. Another one is an error. */
static int find_action(struct loader *l, const struct node *n, const struct node **ret)
{
    *ret = NULL;
    for (const struct node *child = n->first; child; child = child->next) {
        if (!is_request(child->key) && find_kind(child->key) == KINDS)
            continue;
        if (*ret)
            return load_fail(l, child, "a step does one thing, and this one has '%.*s' already",
                             STR_ARG((*ret)->key));
        *ret = child;
    }
    return 0;
}

static int load_step(struct loader *l, const struct node *n, struct step_list *list)
{
    struct plan_step step = {.kind = PLAN_STEP_REQUEST};
    if (n->kind != NODE_OBJECT && n->kind != NODE_STRING)
        return load_fail(l, n, "a step must be an object or a path, not %s",
                         node_kind_name(n->kind));
    const struct node *action = NULL;
    int rc = n->kind == NODE_OBJECT ? find_action(l, n, &action) : 0;
    if (rc < 0)
        return rc;
    if (action && !is_request(action->key))
        return kinds[find_kind(action->key)].load(l, n, list);
    if (n->kind == NODE_OBJECT && !action)
        rc = suggest_kind(l, n);
    if (rc == 0)
        rc = load_request(l, n, list->count_entries, &step.request);
    return rc ? rc : add_step(l, n, list, &step);
}

int load_steps(struct loader *l, const struct node *n, struct step_list *list)
{
    int rc = 0;
    for (const struct node *one = n->first; rc == 0 && one; one = one->next)
        rc = load_tolerate(l, load_step(l, one, list));
    return rc;
}

/* The walker: from nodes to the plan. Each object is read by its table of keys in the order of the
 * file, so that the first error told is the first one in the file; what needs several keys at once
 * is checked after the object. */
#include "worker/scenario/load.h"
#include "worker/scenario/bundle.h"
#include "worker/scenario/load_shape.h"
#include "worker/scenario/node_json.h"
#include "worker/scenario/node_yaml.h"
#include "worker/scenario/pattern.h"
#include "worker/scenario/task_file.h"
#include "worker/scenario/url.h"

#include "base/log.h"

#include <math.h>
#include <stdlib.h>

/* A plan and its memory are one allocation's life. */
struct owned_plan {
    struct plan plan;
    struct arena memory;
    struct load_pattern *patterns;
};

/* --- wait_time --- */

static int read_constant(struct loader *l, const struct node *n, void *target)
{
    struct plan_wait *wait = target;
    wait->kind = PLAN_WAIT_CONSTANT;
    return load_seconds(l, n, 0, PLAN_MAX_WAIT_S, &wait->min_us);
}

static int read_between(struct loader *l, const struct node *n, void *target)
{
    struct plan_wait *wait = target;
    wait->kind = PLAN_WAIT_BETWEEN;
    if (n->kind != NODE_LIST || n->child_count != 2)
        return load_fail(l, n, "must be a list of two numbers: [min, max]");
    int rc = load_seconds(l, n->first, 0, PLAN_MAX_WAIT_S, &wait->min_us);
    if (rc == 0)
        rc = load_seconds(l, n->last, 0, PLAN_MAX_WAIT_S, &wait->max_us);
    if (rc == 0 && wait->min_us > wait->max_us)
        return load_fail(l, n, "the first number must not be larger than the second");
    return rc;
}

static int read_pacing(struct loader *l, const struct node *n, void *target)
{
    struct plan_wait *wait = target;
    wait->kind = PLAN_WAIT_PACING;
    return load_seconds(l, n, 0, PLAN_MAX_WAIT_S, &wait->min_us);
}

static int read_throughput(struct loader *l, const struct node *n, void *target)
{
    struct plan_wait *wait = target;
    wait->kind = PLAN_WAIT_THROUGHPUT;
    double per_second = 0;
    int rc = load_number(l, n, 1.0 / PLAN_MAX_WAIT_S, PLAN_MAX_THROUGHPUT, &per_second);
    if (rc == 0)
        wait->min_us = (uint64_t)llround(1e6 / per_second);
    return rc;
}

static const struct load_key wait_keys[] = {
    {.name = "constant", .read = read_constant, .also = "fixed seconds"},
    {.name = "between", .read = read_between, .also = "uniform random range"},
    {.name = "constant_pacing", .read = read_pacing, .also = "pacing"},
    {.name = "constant_throughput", .read = read_throughput, .also = "throughput rate"},
};

static int read_wait(struct loader *l, const struct node *n, struct plan_wait *wait)
{
    int rc;
    if (n->kind == NODE_NUMBER)
        rc = read_constant(l, n, wait);
    else if (n->kind != NODE_OBJECT || n->child_count != 1)
        rc = load_fail(l, n,
                       "must be seconds, or an object with one of constant, between, "
                       "constant_pacing, constant_throughput");
    else
        rc = load_object(l, n, "wait_time", KEYS(wait_keys), wait);
    if (rc == 0 && wait->kind != PLAN_WAIT_BETWEEN)
        wait->max_us = wait->min_us;
    return rc;
}

/* --- tasks --- */

struct task_draft {
    struct plan_task task;
    const struct node *steps, *name;
};

static int read_task_name(struct loader *l, const struct node *n, void *target)
{
    struct task_draft *d = target;
    d->name = n;
    return load_name(l, n, &d->task.name);
}

static int read_task_weight(struct loader *l, const struct node *n, void *target)
{
    return load_whole(l, n, 1, PLAN_MAX_WEIGHT, &((struct task_draft *)target)->task.weight);
}

static int read_tags(struct loader *l, const struct node *n, void *target)
{
    struct plan_task *task = &((struct task_draft *)target)->task;
    int rc = load_list(l, n, PLAN_MAX_TAGS, "tags");
    if (rc < 0)
        return rc;
    struct str *tags = ARENA_ARRAY(l->memory, struct str, n->child_count);
    if (!tags)
        return -ENOMEM;
    for (const struct node *one = n->first; rc == 0 && one; one = one->next)
        rc = load_name(l, one, &tags[one->index]);
    task->tags = tags;
    task->tag_count = n->child_count;
    return rc;
}

static int read_task_steps(struct loader *l, const struct node *n, void *target)
{
    ((struct task_draft *)target)->steps = n; /* loaded when the tags are known */
    return load_list(l, n, PLAN_MAX_STEPS, "steps");
}

static const struct load_key task_keys[] = {
    {.name = "name", .read = read_task_name, .also = "label title"},
    {.name = "weight", .read = read_task_weight, .also = "ratio probability"},
    {.name = "tags", .read = read_tags, .also = "tag"},
    {.name = "steps",
     .read = read_task_steps,
     .required = true,
     .also = "requests tasks flow get post put patch delete head options request"},
};

static bool any_tag(const struct plan_task *task, const struct str *tags, size_t count)
{
    for (size_t i = 0; i < task->tag_count; i++) {
        for (size_t j = 0; j < count; j++) {
            if (str_eq(task->tags[i], tags[j]))
                return true;
        }
    }
    return false;
}

/* Source: locust/user/task.py filter_tasks_by_tags, 2.47.0. */
bool load_is_wanted(const struct plan_task *task, const struct plan_tags *tags)
{
    if (!tags)
        return true;
    if (tags->include_count > 0 && !any_tag(task, tags->include, tags->include_count))
        return false;
    return !any_tag(task, tags->exclude, tags->exclude_count);
}

/* Steps from a list node, into the plan. */
static int keep_steps(struct loader *l, const struct step_list *list, struct plan_task *task)
{
    struct plan_step *steps = ARENA_ARRAY(l->memory, struct plan_step, list->count);
    if (!steps)
        return -ENOMEM;
    if (list->count)
        memcpy(steps, list->items, list->count * sizeof *steps);
    task->steps = steps;
    task->step_count = list->count;
    return 0;
}

static int load_task_steps(struct loader *l, const struct node *n, bool wanted,
                           struct plan_task *task)
{
    struct step_list list = {.count_entries = wanted};
    int rc = load_steps(l, n, &list);
    return rc ? rc : keep_steps(l, &list, task);
}

/* "/path" alone is a task with one GET. */
static int load_path_task(struct loader *l, const struct node *n, bool wanted,
                          struct plan_task *task)
{
    struct plan_step step = {.kind = PLAN_STEP_REQUEST};
    struct step_list list = {.items = &step, .count = 1};
    int rc = load_request(l, n, wanted, &step.request);
    return rc ? rc : keep_steps(l, &list, task);
}

static int name_task(struct loader *l, const struct node *n, struct task_draft *d,
                     struct names *used)
{
    uint32_t index;
    bool is_new = true;
    if (d->name) {
        int rc = names_add(used, STR(""), d->task.name, &index, &is_new);
        if (rc == 0 && !is_new)
            return load_fail(l, d->name, "another task of this class has the same name");
        return rc;
    }
    if (n->kind == NODE_STRING) {
        d->task.name = d->task.steps[0].request.name;
        return 0;
    }
    struct buf name;
    buf_init(&name, PLAN_MAX_NAME_BYTES);
    int rc = buf_printf(&name, "task %u", n->index + 1);
    if (rc == 0)
        d->task.name = arena_copy(l->memory, buf_str(&name));
    buf_done(&name);
    return rc == 0 && !d->task.name.ptr ? -ENOMEM : rc;
}

/* ret_wanted tells whether the tags keep the task; it is checked in any case. */
static int load_task(struct loader *l, const struct node *n, struct names *used,
                     struct plan_task *ret, bool *ret_wanted)
{
    struct task_draft d = {.task = {.weight = 1}};
    int rc = 0;
    if (n->kind == NODE_OBJECT)
        rc = load_object(l, n, "a task", KEYS(task_keys), &d);
    else if (n->kind != NODE_STRING)
        rc = load_fail(l, n, "a task must be an object or a path, not %s", node_kind_name(n->kind));
    if (rc < 0)
        return rc;
    *ret_wanted = load_is_wanted(&d.task, l->tags);
    if (d.steps)
        rc = load_task_steps(l, d.steps, *ret_wanted, &d.task);
    else
        rc = load_path_task(l, n, *ret_wanted, &d.task);
    if (rc == 0)
        rc = name_task(l, n, &d, used);
    *ret = d.task;
    return rc;
}

static int load_tasks(struct loader *l, const struct node *n, struct plan_class *class)
{
    int rc = load_list(l, n, PLAN_MAX_TASKS, "tasks");
    if (rc < 0)
        return rc;
    struct plan_task *tasks = ARENA_ARRAY(l->memory, struct plan_task, n->child_count);
    if (!tasks)
        return -ENOMEM;
    struct names used = {.arena = &l->scratch};
    class->tasks = tasks;
    for (const struct node *one = n->first; one; one = one->next) {
        bool wanted;
        struct plan_task *task = &tasks[class->task_count];
        wanted = false;
        rc = load_tolerate(l, load_task(l, one, &used, task, &wanted));
        if (rc < 0)
            return rc;
        if (!wanted)
            continue;
        class->task_count++;
        class->task_weight_sum += task->weight;
    }
    return 0;
}

/* --- user classes --- */

struct class_draft {
    struct plan_class class; /* first */
    const struct node *name, *weight, *fixed_count;
};

static int read_class_name(struct loader *l, const struct node *n, void *target)
{
    struct class_draft *d = target;
    d->name = n;
    return load_name(l, n, &d->class.name);
}

static int read_class_weight(struct loader *l, const struct node *n, void *target)
{
    struct class_draft *d = target;
    d->weight = n;
    return load_whole(l, n, 1, PLAN_MAX_WEIGHT, &d->class.weight);
}

static int read_fixed_count(struct loader *l, const struct node *n, void *target)
{
    struct class_draft *d = target;
    d->fixed_count = n;
    return load_whole(l, n, 1, PLAN_MAX_FIXED_COUNT, &d->class.fixed_count);
}

static int read_class_host(struct loader *l, const struct node *n, void *target)
{
    struct plan_class *class = &((struct class_draft *)target)->class;
    return load_host(l, n, &class->host, &class->host_text);
}

/* What a scenario may say for all its classes and each class for itself. The class is the first
 * member of either draft. */

#define CERTIFICATE_ALSO "cert certificate client_cert"
#define HTTP2_ALSO       "http_version h2 h2c"

/* A PEM file, as far as can be told without OpenSSL: whether certificate and key fit is told when
 * the engine takes them. */
static int read_client_certificate(struct loader *l, const struct node *n, void *target)
{
    struct plan_class *class = target;
    static const char *const parts[] = {"-----BEGIN CERTIFICATE-----", "PRIVATE KEY-----"};
    int rc = load_file(l, n, &class->client_certificate);
    for (size_t i = 0; rc == 0 && i < 2; i++) {
        struct str text = class->client_certificate;
        if (str_find_str(text, str_of(parts[i])) == text.len)
            return load_fail(l, n, "must be a PEM file with a certificate and its private key");
    }
    return rc;
}

static int read_insecure(struct loader *l, const struct node *n, void *target)
{
    struct plan_class *class = target;
    return load_bool(l, n, &class->insecure);
}

static int read_http2(struct loader *l, const struct node *n, void *target)
{
    struct plan_class *class = target;
    return load_bool(l, n, &class->http2);
}

static int read_proxy(struct loader *l, const struct node *n, void *target)
{
    struct plan_class *class = target;
    return load_proxy(l, n, &class->proxy);
}

static int read_wait_time(struct loader *l, const struct node *n, void *target)
{
    struct plan_class *class = target;
    return read_wait(l, n, &class->wait);
}

static int read_order(struct loader *l, const struct node *n, void *target)
{
    static const char *const words[] = {"random", "sequential"};
    size_t word;
    int rc = load_word(l, n, words, sizeof words / sizeof *words, &word);
    if (rc == 0)
        ((struct class_draft *)target)->class.sequential = word == 1;
    return rc;
}

/* What a user does before its first task, and when it ends. */
static int load_edge(struct loader *l, const struct node *n, const char *name,
                     struct plan_task *ret)
{
    *ret = (struct plan_task){.name = str_of(name), .weight = 1};
    int rc = load_list(l, n, PLAN_MAX_STEPS, "steps");
    return rc ? rc : load_task_steps(l, n, true, ret);
}

static int read_on_start(struct loader *l, const struct node *n, void *target)
{
    return load_edge(l, n, "on_start", &((struct class_draft *)target)->class.on_start);
}

static int read_on_stop(struct loader *l, const struct node *n, void *target)
{
    return load_edge(l, n, "on_stop", &((struct class_draft *)target)->class.on_stop);
}

static int read_class_tasks(struct loader *l, const struct node *n, void *target)
{
    return load_tasks(l, n, &((struct class_draft *)target)->class);
}

static const struct load_key class_keys[] = {
    {.name = "name", .read = read_class_name, .required = true, .also = "class"},
    {.name = "weight", .read = read_class_weight, .also = "ratio"},
    {.name = "fixed_count", .read = read_fixed_count, .also = "count users"},
    {.name = "host", .read = read_class_host, .also = "base_url url target"},
    {.name = "insecure", .read = read_insecure, .also = "verify"},
    {.name = "client_certificate", .read = read_client_certificate, .also = CERTIFICATE_ALSO},
    {.name = "http2", .read = read_http2, .also = HTTP2_ALSO},
    {.name = "proxy", .read = read_proxy, .also = "proxies"},
    {.name = "wait_time", .read = read_wait_time, .also = "wait think_time sleep"},
    {.name = "order", .read = read_order, .also = "sequential"},
    {.name = "on_start", .read = read_on_start, .also = "setup before start"},
    {.name = "on_stop", .read = read_on_stop, .also = "teardown after stop"},
    {.name = "tasks", .read = read_class_tasks, .required = true, .also = "steps"},
};

static int load_class(struct loader *l, const struct node *n, const struct plan_class *defaults,
                      struct names *used, struct plan_class *ret)
{
    struct class_draft d = {.class = *defaults};
    int rc = load_object(l, n, "a user class", KEYS(class_keys), &d);
    if (rc < 0)
        return rc;
    if (d.weight && d.fixed_count)
        return load_fail(l, d.fixed_count, "'weight' and 'fixed_count' exclude each other");
    uint32_t index;
    bool is_new;
    rc = names_add(used, STR(""), d.class.name, &index, &is_new);
    if (rc == 0 && !is_new)
        return load_fail(l, d.name, "another user class has the same name");
    *ret = d.class;
    return rc;
}

/* --- the scenario --- */

struct scenario_draft {
    struct plan_class defaults; /* of every class; first */
    enum plan_engine engine;
    const struct node *engine_node;
    struct str host;
    struct plan_text host_text;
    const struct node *users, *tasks;
    struct shape_nodes shape;                      /* loaded when the classes are known */
    const struct node *order, *on_start, *on_stop; /* beside 'tasks' */
};

static int read_schema(struct loader *l, const struct node *n, void *target)
{
    (void)target; /* a hint for editors */
    struct str ignored;
    return load_text(l, n, &ignored);
}

static int read_host(struct loader *l, const struct node *n, void *target)
{
    struct scenario_draft *d = target;
    return load_host(l, n, &d->host, &d->host_text);
}

static int read_engine(struct loader *l, const struct node *n, void *target)
{
    static const char *const words[] = {"auto", "fast", "curl"};
    static const enum plan_engine engines[] = {PLAN_ENGINE_AUTO, PLAN_ENGINE_FAST,
                                               PLAN_ENGINE_CURL};
    size_t word;
    int rc = load_word(l, n, words, sizeof words / sizeof *words, &word);
    if (rc == 0)
        ((struct scenario_draft *)target)->engine = engines[word];
    ((struct scenario_draft *)target)->engine_node = n;
    return rc;
}

static int read_users(struct loader *l, const struct node *n, void *target)
{
    ((struct scenario_draft *)target)->users = n; /* loaded when the defaults are known */
    return load_list(l, n, PLAN_MAX_CLASSES, "user classes");
}

static int read_top_tasks(struct loader *l, const struct node *n, void *target)
{
    (void)l;
    ((struct scenario_draft *)target)->tasks = n;
    return 0;
}

static int read_stages(struct loader *l, const struct node *n, void *target)
{
    (void)l;
    ((struct scenario_draft *)target)->shape.stages = n;
    return 0;
}

static int read_arrival(struct loader *l, const struct node *n, void *target)
{
    (void)l;
    ((struct scenario_draft *)target)->shape.arrival = n;
    return 0;
}

static int read_thresholds(struct loader *l, const struct node *n, void *target)
{
    (void)l;
    ((struct scenario_draft *)target)->shape.thresholds = n;
    return 0;
}

static int read_top_order(struct loader *l, const struct node *n, void *target)
{
    (void)l;
    ((struct scenario_draft *)target)->order = n;
    return 0;
}

static int read_top_on_start(struct loader *l, const struct node *n, void *target)
{
    (void)l;
    ((struct scenario_draft *)target)->on_start = n;
    return 0;
}

static int read_top_on_stop(struct loader *l, const struct node *n, void *target)
{
    (void)l;
    ((struct scenario_draft *)target)->on_stop = n;
    return 0;
}

/* These two were read before all others. */
static int read_before(struct loader *l, const struct node *n, void *target)
{
    (void)l;
    (void)n;
    (void)target;
    return 0;
}

static const struct load_key scenario_keys[] = {
    {.name = "host", .read = read_host, .also = "base_url url target"},
    {.name = "insecure", .read = read_insecure, .also = "verify"},
    {.name = "client_certificate", .read = read_client_certificate, .also = CERTIFICATE_ALSO},
    {.name = "http2", .read = read_http2, .also = HTTP2_ALSO},
    {.name = "proxy", .read = read_proxy, .also = "proxies"},
    {.name = "engine", .read = read_engine},
    {.name = "wait_time", .read = read_wait_time, .also = "wait think_time sleep"},
    {.name = "users", .read = read_users, .also = "user_classes classes user scenarios"},
    {.name = "tasks", .read = read_top_tasks, .also = "steps requests"},
    {.name = "stages", .read = read_stages, .also = "shape load"},
    {.name = "arrival", .read = read_arrival, .also = "arrivals arrival_rate rate"},
    {.name = "thresholds", .read = read_thresholds, .also = "threshold limits"},
    {.name = "order", .read = read_top_order, .also = "sequential"},
    {.name = "on_start", .read = read_top_on_start, .also = "setup before start"},
    {.name = "on_stop", .read = read_top_on_stop, .also = "teardown after stop"},
    {.name = "variables", .read = read_before, .also = "vars data parameters"},
    {.name = "feeds", .read = read_before, .also = "feed feeders csv data"},
    {.name = "$schema", .read = read_schema},
};

static int load_users(struct loader *l, const struct scenario_draft *d, struct plan_class *classes)
{
    struct names used = {.arena = &l->scratch};
    int rc = 0;
    const struct node *beside = d->order ? d->order : d->on_start ? d->on_start : d->on_stop;
    if (beside)
        return load_fail(l, beside, "stands in a user class, or beside 'tasks'");
    for (const struct node *one = d->users->first; rc == 0 && one; one = one->next)
        rc = load_tolerate(l, load_class(l, one, &d->defaults, &used, &classes[one->index]));
    return rc;
}

static int load_only_class(struct loader *l, const struct scenario_draft *d, struct plan_class *ret)
{
    struct class_draft draft = {.class = d->defaults};
    draft.class.name = STR("User");
    int rc = d->order ? read_order(l, d->order, &draft) : 0;
    if (rc == 0 && d->on_start)
        rc = read_on_start(l, d->on_start, &draft);
    if (rc == 0 && d->on_stop)
        rc = read_on_stop(l, d->on_stop, &draft);
    if (rc == 0)
        rc = load_tasks(l, d->tasks, &draft.class);
    *ret = draft.class;
    return rc;
}

static int load_classes(struct loader *l, const struct node *root, const struct scenario_draft *d,
                        struct plan *p)
{
    if (!d->users && !d->tasks)
        return load_fail(l, root, "the scenario has no user class: give it 'users' or 'tasks'");
    if (d->users && d->tasks)
        return load_fail(l, d->tasks, "'users' and 'tasks' exclude each other");
    size_t count = d->users ? d->users->child_count : 1;
    struct plan_class *classes = ARENA_ARRAY(l->memory, struct plan_class, count);
    if (!classes)
        return -ENOMEM;
    p->classes = classes;
    p->class_count = count;
    return d->users ? load_users(l, d, classes) : load_only_class(l, d, &classes[0]);
}

static const struct node *find_child(const struct node *object, const char *key)
{
    const struct node *n = object->kind == NODE_OBJECT ? object->first : NULL;
    while (n && !str_eq(n->key, str_of(key)))
        n = n->next;
    return n;
}

/* Whatever comes after may use them. */
static int load_before(struct loader *l, const struct node *root)
{
    const struct node *variables = find_child(root, "variables"),
                      *feeds = find_child(root, "feeds");
    int rc = variables ? load_variables(l, variables) : 0;
    return rc == 0 && feeds ? load_feeds(l, feeds) : rc;
}

static int check_some_task(struct loader *l, const struct node *root, const struct plan *p)
{
    size_t tasks = 0;
    for (size_t i = 0; i < p->class_count; i++)
        tasks += p->classes[i].task_count;
    if (tasks == 0 && !l->faulty) /* an empty list was refused before */
        return load_fail(l, root, "no task is left after --tags and --exclude-tags");
    return 0;
}

static int check_engine(struct loader *l, const struct scenario_draft *d, const struct plan *p)
{
    for (size_t i = 0; d->engine == PLAN_ENGINE_FAST && i < p->class_count; i++) {
        if (p->classes[i].http2 || p->classes[i].proxy.ptr)
            return load_fail(l, d->engine_node,
                             "\"fast\" has no %s: leave it out, or take \"curl\"",
                             p->classes[i].http2 ? "HTTP/2" : "proxies");
    }
    return 0;
}

static int load_root(struct loader *l, const struct node *root, struct plan *p)
{
    struct scenario_draft d = {.defaults = {.weight = 1}};
    int rc = load_before(l, root);
    if (rc == 0)
        rc = load_object(l, root, "a scenario", KEYS(scenario_keys), &d);
    if (rc == 0)
        rc = load_classes(l, root, &d, p);
    if (rc == 0)
        rc = check_some_task(l, root, p);
    if (rc == 0)
        rc = load_tolerate(l, check_engine(l, &d, p));
    if (rc == 0)
        rc = load_shape(l, &d.shape, p);
    if (rc == 0)
        rc = load_scope_end(l, root, p);
    p->engine = d.engine;
    p->host = d.host;
    p->host_text = d.host_text;
    p->entries = l->entries.items;
    p->entry_count = l->entries.count;
    p->loop_slots = l->loop_slots;
    p->group_slots = l->group_slots;
    p->has_patterns = *l->patterns != NULL;
    p->has_values = l->has_values || l->loop_slots || l->group_slots || p->variable_count;
    return rc;
}

static int load_text_into(struct owned_plan *o, struct str text, const struct load_order *order,
                          struct err *err)
{
    struct loader l = {
        .source = order->source,
        .files = order->files,
        .err = err,
        .tags = order->tags,
        .memory = &o->memory,
        .patterns = &o->patterns,
        .fault = order->fault,
        .fault_context = order->fault_context,
    };
    l.entries.arena = &o->memory;
    const struct node *root;
    int rc =
        (order->yaml ? node_from_yaml : node_from_json)(text, l.source, &l.scratch, &root, err);
    if (rc == 0)
        rc = load_root(&l, root, &o->plan);
    rc = load_tolerate(&l, rc);
    if (rc == 0 && l.faulty)
        rc = -EINVAL;
    if (rc == 0)
        o->plan.source = arena_copy(&o->memory, str_of(l.source));
    if (rc == 0 && !o->plan.source.ptr)
        rc = -ENOMEM;
    arena_done(&l.scratch);
    return rc;
}

static struct owned_plan *new_plan(void)
{
    struct owned_plan *o = calloc(1, sizeof *o);
    if (o)
        o->plan.memory = o;
    return o;
}

struct plan *load_empty_plan(struct arena **ret_memory)
{
    struct owned_plan *o = new_plan();
    if (!o)
        return NULL;
    *ret_memory = &o->memory;
    return &o->plan;
}

int load_plan(struct str text, const struct load_order *order, struct plan **ret, struct err *err)
{
    if (text.len > PLAN_MAX_FILE_BYTES)
        return err_set(err, -EINVAL, "%s:1: larger than %u bytes", order->source,
                       PLAN_MAX_FILE_BYTES);
    struct owned_plan *o = new_plan();
    int rc = o ? 0 : -ENOMEM;
    if (rc == 0)
        rc = load_text_into(o, text, order, err);
    if (rc < 0) {
        plan_free(o ? &o->plan : NULL);
        if (rc == -ENOMEM) /* all else was told */
            return err_set(err, rc, "%s: out of memory", order->source);
        return rc;
    }
    *ret = &o->plan;
    return 0;
}

int plan_load_json(struct str text, const char *source, const struct plan_tags *tags,
                   struct plan **ret, struct err *err)
{
    return load_plan(text, &(struct load_order){.source = source, .tags = tags}, ret, err);
}

int plan_load_yaml(struct str text, const char *source, const struct plan_tags *tags,
                   struct plan **ret, struct err *err)
{
    return load_plan(text, &(struct load_order){.source = source, .tags = tags, .yaml = true}, ret,
                     err);
}

bool load_is_yaml(struct str name)
{
    return str_ends(name, STR(".yaml")) || str_ends(name, STR(".yml"));
}

static int load_path(struct load_order *order, struct plan **ret, struct err *err)
{
    struct str name = str_of(order->source);
    struct buf text;
    order->yaml = load_is_yaml(name);
    buf_init(&text, PLAN_MAX_FILE_BYTES);
    int rc = buf_read_file(&text, order->source, err);
    if (rc == 0)
        rc = (bundle_may_hold(name) ? load_bundle : load_plan)(buf_str(&text), order, ret, err);
    buf_done(&text);
    return rc;
}

int plan_load_file(const char *path, const struct plan_tags *tags, struct plan **ret,
                   struct err *err)
{
    if (task_file_is_one(path))
        return task_file_load(path, tags, ret, err);
    return load_path(&(struct load_order){.source = path, .tags = tags}, ret, err);
}

int plan_check_file(const char *path, const struct plan_tags *tags, plan_fault_fn *fault,
                    void *context, struct plan **ret, struct err *err)
{
    struct err own = {0}; /* the loader needs one */
    struct load_order order = {
        .source = path, .tags = tags, .fault = fault, .fault_context = context};
    int rc = task_file_is_one(path) ? task_file_load(path, tags, ret, &own)
                                    : load_path(&order, ret, &own);
    if (rc < 0 && own.code)
        fault(context, own.text);
    return rc < 0 ? err_set(err, rc, "%s", own.code ? own.text : "the scenario has faults") : 0;
}

void plan_free(struct plan *p)
{
    if (!p)
        return;
    struct owned_plan *o = p->memory;
    for (struct load_pattern *link = o->patterns; link; link = link->next)
        pattern_free(link->pattern);
    arena_done(&o->memory);
    free(o);
}

size_t plan_class_index(const struct plan *p, struct str name)
{
    size_t i = 0;
    while (i < p->class_count && !str_eq(p->classes[i].name, name))
        i++;
    return i;
}

size_t plan_variable_index(const struct plan *p, struct str name)
{
    size_t i = 0;
    while (i < p->variable_count && !str_eq(p->variables[i].name, name))
        i++;
    return i;
}

/* --- a bare URL --- */

static int write_url_scenario(struct str url, struct buf *out)
{
    struct node host = {.kind = NODE_STRING}, path = {.kind = NODE_STRING};
    path.text = url_target(url);
    host.text = str_sub(url, 0, url.len - path.text.len);
    int rc = buf_add(out, STR("{\"host\": "));
    if (rc == 0)
        rc = node_write_json(&host, out);
    if (rc == 0)
        rc = buf_add(out, STR(", \"tasks\": ["));
    if (rc == 0)
        rc = node_write_json(&path, out);
    return rc ? rc : buf_add(out, STR("]}"));
}

static int load_url_scenario(struct str url, struct plan **ret, struct err *err)
{
    struct buf text;
    buf_init(&text, PLAN_MAX_URL_BYTES * 2); /* each quote and backslash gets another one */
    int rc = write_url_scenario(url, &text);
    if (rc == 0)
        rc = plan_load_json(buf_str(&text), "URL", NULL, ret, err);
    buf_done(&text);
    return rc;
}

/* By way of a scenario text, so that nothing about plans is written twice. */
int plan_from_url(struct str url, struct plan **ret, struct err *err)
{
    struct buf encoded;
    struct url parts;
    struct err why = {0};
    char quoted[LOG_QUOTED_BYTES];
    const bool secret = str_find(url, '@') < url.len; /* user and password are not shown */
    buf_init(&encoded, PLAN_MAX_URL_BYTES);
    int rc = url.len <= PLAN_MAX_URL_BYTES ? url_encode(&encoded, url) : -ERANGE;
    if (rc == -ERANGE)
        rc = err_set(err, -EINVAL, "the URL is longer than %d bytes", PLAN_MAX_URL_BYTES);
    else if (rc == 0 && url_parse(buf_str(&encoded), &parts, &why) < 0)
        rc = err_set(err, -EINVAL, "%s%s %s", secret ? "the URL" : "URL ",
                     secret ? "" : log_quote(url, quoted), why.text);
    if (rc == 0)
        rc = load_url_scenario(buf_str(&encoded), ret, err);
    buf_done(&encoded);
    return rc < 0 ? err_set(err, rc, "the URL: %s", strerror(-rc)) : 0;
}

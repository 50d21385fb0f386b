/* The same limits and the same words as for scenario files, found at the members of C structs. */
#include "worker/scenario/plan_native.h"

#include "base/utf8.h"
#include "include/cicada.h"
#include "worker/scenario/load.h"
#include "worker/scenario/url.h"

#include <math.h>
#include <stdio.h>

struct draft {
    struct plan *plan;
    struct arena *memory; /* the plan's */
    const char *source;
    const struct plan_tags *tags;
    struct err *err;
};

static bool fit_for_name(const char *text)
{
    for (const char *p = text; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7F)
            return false;
    }
    return *text && strlen(text) <= PLAN_MAX_NAME_BYTES && utf8_valid(str_of(text));
}

/* A name that a person will look for: its place is told by numbers. */
static int set_name(struct draft *d, const char *name, size_t class, long task, struct str *ret)
{
    char place[64] = "";
    if (task >= 0)
        (void)snprintf(place, sizeof place, ".tasks[%ld]", task); /* fits */
    if (!fit_for_name(name))
        return err_set(
            d->err, -EINVAL,
            "%s: users[%zu]%s.name: must be UTF-8 of 1 to %d bytes without control characters",
            d->source, class, place, PLAN_MAX_NAME_BYTES);
    *ret = arena_copy(d->memory, str_of(name));
    return ret->ptr ? 0 : -ENOMEM;
}

static int set_weight(struct draft *d, unsigned given, size_t class, uint32_t *ret)
{
    if (given > PLAN_MAX_WEIGHT)
        return err_set(d->err, -EINVAL, "%s: users[%zu]: a weight must not be larger than %d",
                       d->source, class, PLAN_MAX_WEIGHT);
    *ret = given ? given : 1;
    return 0;
}

/* --- tasks --- */

static int set_tags(struct draft *d, const struct cicada_task *from, struct plan_task *task)
{
    size_t n = 0;
    while (from->tags && from->tags[n])
        n++;
    struct str *tags = ARENA_ARRAY(d->memory, struct str, n + 1);
    if (!tags)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        tags[i] = str_of(from->tags[i]);
    task->tags = tags;
    task->tag_count = n;
    return 0;
}

static int set_task(struct draft *d, const struct cicada_task *from, size_t class, size_t index,
                    struct plan_task *task)
{
    if (!from->run)
        return err_set(d->err, -EINVAL, "%s: users[%zu].tasks[%zu]: has no function to run",
                       d->source, class, index);
    task->native = from->run;
    int rc = set_name(d, from->name, class, (long)index, &task->name);
    if (rc == 0)
        rc = set_weight(d, from->weight, class, &task->weight);
    return rc < 0 ? rc : set_tags(d, from, task);
}

static int set_tasks(struct draft *d, const struct cicada_task *from, size_t index,
                     struct plan_class *class)
{
    size_t n = 0;
    while (from && from[n].name && n <= PLAN_MAX_TASKS)
        n++;
    if (n == 0 || n > PLAN_MAX_TASKS)
        return err_set(d->err, -EINVAL, "%s: users[%zu].tasks: must be 1 to %d tasks", d->source,
                       index, PLAN_MAX_TASKS);
    struct plan_task *tasks = ARENA_ARRAY(d->memory, struct plan_task, n);
    if (!tasks)
        return -ENOMEM;
    class->tasks = tasks;
    for (size_t i = 0; i < n; i++) {
        struct plan_task *task = &tasks[class->task_count];
        int rc = set_task(d, &from[i], index, i, task);
        if (rc < 0)
            return rc;
        if (!load_is_wanted(task, d->tags))
            continue;
        class->task_count++;
        class->task_weight_sum += task->weight;
    }
    return 0;
}

/* --- user classes --- */

static int bad_wait(struct draft *d, size_t class, const char *what)
{
    return err_set(d->err, -EINVAL, "%s: users[%zu].wait_time: %s", d->source, class, what);
}

static int set_wait(struct draft *d, const struct cicada_wait_time *from, size_t class,
                    struct plan_wait *wait)
{
    static const enum plan_wait_kind kinds[] = {
        [CICADA_WAIT_NONE] = PLAN_WAIT_NONE,
        [CICADA_WAIT_CONSTANT] = PLAN_WAIT_CONSTANT,
        [CICADA_WAIT_BETWEEN] = PLAN_WAIT_BETWEEN,
        [CICADA_WAIT_CONSTANT_PACING] = PLAN_WAIT_PACING,
        [CICADA_WAIT_CONSTANT_THROUGHPUT] = PLAN_WAIT_THROUGHPUT,
    };
    if ((unsigned)from->kind >= sizeof kinds / sizeof *kinds)
        return bad_wait(d, class, "an unknown kind");
    wait->kind = kinds[from->kind];
    double min = from->min, max = wait->kind == PLAN_WAIT_BETWEEN ? from->max : from->min;
    if (wait->kind == PLAN_WAIT_THROUGHPUT) {
        if (!(min >= 1.0 / PLAN_MAX_WAIT_S && min <= PLAN_MAX_THROUGHPUT))
            return bad_wait(d, class, "a throughput must be more than 0, and at most 1000000");
        min = max = 1 / min;
    }
    if (!(min >= 0 && max <= PLAN_MAX_WAIT_S && min <= max))
        return bad_wait(d, class, "must be 0 to 1000000 s, the smaller number first");
    wait->min_us = (uint64_t)llround(min * 1e6);
    wait->max_us = (uint64_t)llround(max * 1e6);
    return 0;
}

static int set_host(struct draft *d, const char *host, const char *place, struct str *ret)
{
    struct url parts;
    struct err why = {0};
    if (!host)
        return 0;
    if (url_parse_host(str_of(host), &parts, &why) < 0)
        return err_set(d->err, -EINVAL, "%s: %s: the host %s", d->source, place, why.text);
    *ret = arena_copy(d->memory, str_of(host));
    return ret->ptr ? 0 : -ENOMEM;
}

static int set_counts(struct draft *d, const struct cicada_user_class *from, size_t index,
                      struct plan_class *class)
{
    if (from->weight && from->fixed_count)
        return err_set(d->err, -EINVAL, "%s: users[%zu]: weight and fixed_count exclude each other",
                       d->source, index);
    if (from->fixed_count > PLAN_MAX_FIXED_COUNT)
        return err_set(d->err, -EINVAL, "%s: users[%zu].fixed_count: must not be larger than %d",
                       d->source, index, PLAN_MAX_FIXED_COUNT);
    class->fixed_count = from->fixed_count;
    return set_weight(d, from->weight, index, &class->weight);
}

static int set_class(struct draft *d, const struct cicada_user_class *from, size_t index,
                     struct plan_class *class)
{
    char place[64];
    (void)snprintf(place, sizeof place, "users[%zu].host", index); /* fits */
    class->insecure = from->insecure;
    class->on_start = (struct plan_task){.name = STR("on_start"), .native = from->on_start};
    class->on_stop = (struct plan_task){.name = STR("on_stop"), .native = from->on_stop};
    int rc = set_name(d, from->name, index, -1, &class->name);
    if (rc == 0)
        rc = set_counts(d, from, index, class);
    if (rc == 0)
        rc = set_host(d, from->host, place, &class->host);
    if (rc == 0)
        rc = set_wait(d, &from->wait_time, index, &class->wait);
    return rc < 0 ? rc : set_tasks(d, from->tasks, index, class);
}

static int set_classes(struct draft *d, const struct cicada_user_class *from, struct plan *plan)
{
    size_t n = 0;
    while (from && from[n].name && n <= PLAN_MAX_CLASSES)
        n++;
    if (n == 0 || n > PLAN_MAX_CLASSES)
        return err_set(d->err, -EINVAL, "%s: users: must be 1 to %d user classes", d->source,
                       PLAN_MAX_CLASSES);
    struct plan_class *classes = ARENA_ARRAY(d->memory, struct plan_class, n);
    if (!classes)
        return -ENOMEM;
    plan->classes = classes;
    for (size_t i = 0; i < n; i++) {
        int rc = set_class(d, &from[i], i, &classes[i]);
        if (rc < 0)
            return rc;
        if (plan_class_index(plan, classes[i].name) < i)
            return err_set(d->err, -EINVAL, "%s: users[%zu].name: another class has the same name",
                           d->source, i);
        plan->class_count++;
    }
    return 0;
}

/* A shorter struct of an older interface would be read in its own shape; there is none yet. */
static int check_interface(const struct cicada_test *test, const char *source, struct err *err)
{
    if (test->abi > CICADA_ABI)
        return err_set(
            err, -EINVAL,
            "%s: built with a newer cicada.h (interface %u, this cicada has %d): build it "
            "with this version's header, or run it with a newer cicada",
            source, test->abi, CICADA_ABI);
    if (test->abi == 0 || test->size != sizeof *test)
        return err_set(err, -EINVAL,
                       "%s: its 'struct cicada_test' does not begin with CICADA_TEST_HEAD", source);
    return 0;
}

static int set_plan(struct draft *d, const struct cicada_test *test)
{
    d->plan->native = test;
    d->plan->source = arena_copy(d->memory, str_of(d->source));
    int rc = d->plan->source.ptr ? set_host(d, test->host, "host", &d->plan->host) : -ENOMEM;
    return rc < 0 ? rc : set_classes(d, test->users, d->plan);
}

int plan_load_native(const struct cicada_test *test, const char *source,
                     const struct plan_tags *tags, struct plan **ret, struct err *err)
{
    struct draft d = {.source = source, .tags = tags, .err = err};
    int rc = check_interface(test, source, err);
    if (rc < 0)
        return rc;
    d.plan = load_empty_plan(&d.memory);
    rc = d.plan ? set_plan(&d, test) : -ENOMEM;
    if (rc < 0) {
        plan_free(d.plan);
        return err_set(err, rc, "%s: out of memory", source); /* all else was told */
    }
    *ret = d.plan;
    return 0;
}

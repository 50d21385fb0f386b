#include "worker/scenario/load_shape.h"

#include "worker/scenario/shape.h"
#include "worker/scenario/threshold.h"

#include "base/log.h"
#include "base/num.h"

#include <math.h>

/* A time from the start of the run, or a length of time: seconds, or a text as 1m30s. */
static int load_time(struct loader *l, const struct node *n, uint64_t *ret_us)
{
    char quoted[LOG_QUOTED_BYTES];
    uint64_t seconds;
    if (n->kind != NODE_STRING)
        return load_seconds(l, n, 0, SHAPE_MAX_S, ret_us);
    if (num_parse_timespan_s(n->text, &seconds) < 0 || seconds > SHAPE_MAX_S)
        return load_fail(l, n, "must be seconds or a time as 20s, 3m or 1h20m, not %s",
                         log_quote(n->text, quoted));
    *ret_us = seconds * 1000000;
    return 0;
}

/* --- stages --------------------------------------------------------------------------------- */

struct stage_draft {
    struct shape_stage stage;
    const struct plan *plan;
    const struct node *duration, *users, *classes;
};

static int find_class(struct loader *l, const struct node *n, struct str name,
                      const struct plan *plan, size_t *ret)
{
    char quoted[LOG_QUOTED_BYTES];
    *ret = plan_class_index(plan, name);
    if (*ret == plan->class_count)
        return load_fail(l, n, "there is no user class %s", log_quote(name, quoted));
    return 0;
}

static int read_duration(struct loader *l, const struct node *n, void *target)
{
    struct stage_draft *d = target;
    d->duration = n;
    return load_time(l, n, &d->stage.until_us);
}

static int read_class_users(struct loader *l, const struct node *n, struct stage_draft *d)
{
    uint32_t *users = ARENA_ARRAY(l->memory, uint32_t, d->plan->class_count);
    uint64_t total = 0;
    if (!users)
        return -ENOMEM;
    for (const struct node *one = n->first; one; one = one->next) {
        size_t class;
        int rc = find_class(l, one, one->key, d->plan, &class);
        if (rc == 0)
            rc = load_whole(l, one, 0, SHAPE_MAX_USERS, &users[class]);
        if (rc < 0)
            return rc;
        total += users[class];
    }
    if (total > SHAPE_MAX_USERS)
        return load_fail(l, n, "must not be more than %d users", SHAPE_MAX_USERS);
    d->stage.class_users = users;
    d->stage.users = (uint32_t)total;
    return 0;
}

static int read_stage_users(struct loader *l, const struct node *n, void *target)
{
    struct stage_draft *d = target;
    d->users = n;
    if (n->kind == NODE_OBJECT)
        return read_class_users(l, n, d);
    return load_whole(l, n, 0, SHAPE_MAX_USERS, &d->stage.users);
}

static int read_spawn_rate(struct loader *l, const struct node *n, void *target)
{
    return load_number(l, n, 1.0 / SHAPE_MAX_S, SHAPE_MAX_SPAWN_RATE,
                       &((struct stage_draft *)target)->stage.spawn_rate);
}

static int read_stage_classes(struct loader *l, const struct node *n, void *target)
{
    struct stage_draft *d = target;
    int rc = load_list(l, n, PLAN_MAX_CLASSES, "user classes");
    bool *classes = ARENA_ARRAY(l->memory, bool, d->plan->class_count);
    if (rc == 0 && !classes)
        rc = -ENOMEM;
    for (const struct node *one = n->first; rc == 0 && one; one = one->next) {
        struct str name;
        size_t class;
        rc = load_name(l, one, &name);
        if (rc == 0)
            rc = find_class(l, one, name, d->plan, &class);
        if (rc == 0)
            classes[class] = true;
    }
    d->classes = n;
    d->stage.classes = classes;
    return rc;
}

static const struct load_key stage_keys[] = {
    {.name = "duration", .read = read_duration, .required = true, .also = "until time end"},
    {.name = "users", .read = read_stage_users, .required = true, .also = "target user_count"},
    {.name = "spawn_rate", .read = read_spawn_rate, .required = true, .also = "rate hatch_rate"},
    {.name = "user_classes", .read = read_stage_classes, .also = "classes"},
};

static int load_stage(struct loader *l, const struct node *n, const struct plan *p,
                      uint64_t after_us, struct shape_stage *ret)
{
    struct stage_draft d = {.plan = p};
    int rc = load_object(l, n, "a stage", KEYS(stage_keys), &d);
    if (rc < 0)
        return rc;
    if (d.stage.class_users && d.classes)
        return load_fail(l, d.classes, "'users' says already who runs in which class");
    if (d.stage.until_us <= after_us)
        return load_fail(l, d.duration,
                         "must be more than that of the stage before: it counts from the start of "
                         "the run, as in Locust");
    *ret = d.stage;
    return 0;
}

static int load_stages(struct loader *l, const struct node *n, const struct plan *p,
                       struct plan_shape *shape)
{
    int rc = load_list(l, n, SHAPE_MAX_STAGES, "stages");
    if (rc < 0)
        return rc;
    struct shape_stage *stages = ARENA_ARRAY(l->memory, struct shape_stage, n->child_count);
    if (!stages)
        return -ENOMEM;
    uint64_t after_us = 0;
    for (const struct node *one = n->first; rc == 0 && one; one = one->next) {
        rc = load_stage(l, one, p, after_us, &stages[one->index]);
        after_us = stages[one->index].until_us;
    }
    shape->stages = stages;
    shape->stage_count = n->child_count;
    return rc;
}

/* --- arrival -------------------------------------------------------------------------------- */

struct arrival_draft {
    struct plan_shape *shape;
    const struct node *rate;
};

static int read_rate(struct loader *l, const struct node *n, void *target)
{
    struct arrival_draft *d = target;
    d->rate = n;
    return load_number(l, n, 0, SHAPE_MAX_RATE, &d->shape->first_rate);
}

static int read_max_users(struct loader *l, const struct node *n, void *target)
{
    return load_whole(l, n, 1, SHAPE_MAX_USERS,
                      &((struct arrival_draft *)target)->shape->max_users);
}

static int read_rate_duration(struct loader *l, const struct node *n, void *target)
{
    return load_time(l, n, &((struct shape_rate *)target)->until_us);
}

static int read_rate_rate(struct loader *l, const struct node *n, void *target)
{
    return load_number(l, n, 0, SHAPE_MAX_RATE, &((struct shape_rate *)target)->rate);
}

static const struct load_key rate_keys[] = {
    {.name = "duration", .read = read_rate_duration, .required = true, .also = "until time end"},
    {.name = "rate", .read = read_rate_rate, .required = true, .also = "target"},
};

static int read_rates(struct loader *l, const struct node *n, void *target)
{
    struct plan_shape *shape = ((struct arrival_draft *)target)->shape;
    int rc = load_list(l, n, SHAPE_MAX_STAGES, "stages");
    if (rc < 0)
        return rc;
    struct shape_rate *rates = ARENA_ARRAY(l->memory, struct shape_rate, n->child_count);
    if (!rates)
        return -ENOMEM;
    uint64_t after_us = 0;
    for (const struct node *one = n->first; one; one = one->next) {
        struct shape_rate *rate = &rates[one->index];
        rc = load_object(l, one, "a stage of an arrival rate", KEYS(rate_keys), rate);
        if (rc < 0)
            return rc;
        if (rate->until_us < after_us)
            return load_fail(l, one,
                             "'duration' must not be less than that of the stage before: it counts "
                             "from the start of the run");
        after_us = rate->until_us;
    }
    shape->rates = rates;
    shape->rate_count = n->child_count;
    return 0;
}

static const struct load_key arrival_keys[] = {
    {.name = "rate", .read = read_rate, .also = "per_second arrival_rate start_rate"},
    {.name = "stages", .read = read_rates, .also = "ramp rates"},
    {.name = "max_users", .read = read_max_users, .also = "users pool max_vus"},
};

static int load_arrival(struct loader *l, const struct node *n, const struct plan *p,
                        struct plan_shape *shape)
{
    struct arrival_draft d = {.shape = shape};
    shape->arrival = true;
    shape->max_users = SHAPE_DEFAULT_USERS;
    int rc = load_object(l, n, "an arrival rate", KEYS(arrival_keys), &d);
    if (rc < 0)
        return rc;
    if (!(shape_highest_rate(shape) > 0))
        return load_fail(l, d.rate ? d.rate : n, "needs a rate above 0");
    for (size_t c = 0; c < p->class_count; c++) {
        if (p->classes[c].fixed_count > 0)
            return load_fail(l, n, "and a user class with a fixed_count exclude each other");
    }
    return 0;
}

/* --- thresholds ----------------------------------------------------------------------------- */

struct threshold_draft {
    struct plan_threshold *threshold;
    const struct node *entry, *metric, *grace;
    bool steady, abort;
    uint64_t grace_us;
};

static int read_entry(struct loader *l, const struct node *n, void *target)
{
    struct str ignored;
    ((struct threshold_draft *)target)->entry = n;
    return load_name(l, n, &ignored);
}

static int read_metric(struct loader *l, const struct node *n, void *target)
{
    struct str ignored;
    ((struct threshold_draft *)target)->metric = n;
    return load_name(l, n, &ignored);
}

static int read_over(struct loader *l, const struct node *n, void *target)
{
    struct str over;
    int rc = load_text(l, n, &over);
    if (rc == 0 && !str_eq(over, STR("run")) && !str_eq(over, STR("steady")))
        return load_fail(l, n, "must be 'run' or 'steady'");
    ((struct threshold_draft *)target)->steady = rc == 0 && str_eq(over, STR("steady"));
    return rc;
}

static int read_abort(struct loader *l, const struct node *n, void *target)
{
    return load_bool(l, n, &((struct threshold_draft *)target)->abort);
}

static int read_grace(struct loader *l, const struct node *n, void *target)
{
    struct threshold_draft *d = target;
    d->grace = n;
    return load_time(l, n, &d->grace_us);
}

static const struct load_key threshold_keys[] = {
    {.name = "entry", .read = read_entry, .also = "name request"},
    {.name = "metric", .read = read_metric, .required = true, .also = "threshold limit check"},
    {.name = "over", .read = read_over, .also = "window state"},
    {.name = "abort", .read = read_abort, .also = "abortOnFail"},
    {.name = "grace", .read = read_grace, .also = "delayAbortEval after"},
};

static int parse(struct loader *l, const struct node *n, struct str text,
                 struct plan_threshold *ret)
{
    struct err why = {0};
    struct str copy = arena_copy(l->memory, text);
    if (!copy.ptr)
        return -ENOMEM;
    return threshold_parse(copy, ret, &why) < 0 ? load_fail(l, n, "%s", why.text) : 0;
}

/* "ENTRY: METRIC": what a threshold without words of its own is in one line. */
static int join(struct loader *l, const struct threshold_draft *d, struct str *ret)
{
    struct buf text;
    buf_init(&text, 2 * PLAN_MAX_NAME_BYTES + 2);
    int rc = d->entry ? buf_printf(&text, "%.*s: ", STR_ARG(d->entry->text)) : 0;
    if (rc == 0)
        rc = buf_add(&text, d->metric->text);
    if (rc == 0 && d->steady)
        rc = buf_add(&text, STR(" steady"));
    if (rc == 0)
        *ret = arena_copy(&l->scratch, buf_str(&text));
    buf_done(&text);
    return rc == 0 && !ret->ptr ? -ENOMEM : rc;
}

static int load_threshold(struct loader *l, const struct node *n, struct plan_threshold *ret)
{
    struct threshold_draft d = {.grace_us = (uint64_t)THRESHOLD_GRACE_S * 1000000};
    struct str text;
    if (n->kind == NODE_STRING)
        return parse(l, n, n->text, ret);
    int rc = load_object(l, n, "a threshold", KEYS(threshold_keys), &d);
    if (rc < 0)
        return rc;
    if (d.grace && !d.abort)
        return load_fail(l, d.grace, "has no meaning without 'abort'");
    if (d.entry && str_find(d.metric->text, ':') < d.metric->text.len)
        return load_fail(l, d.metric, "names an entry, and so does 'entry'");
    rc = join(l, &d, &text);
    if (rc == 0)
        rc = parse(l, d.metric, text, ret);
    ret->abort |= d.abort;
    if (d.abort)
        ret->grace_us = d.grace_us;
    return rc;
}

static int load_thresholds(struct loader *l, const struct node *n, struct plan *p)
{
    int rc = load_list(l, n, THRESHOLD_MAX_COUNT, "thresholds");
    if (rc < 0)
        return rc;
    struct plan_threshold *all = ARENA_ARRAY(l->memory, struct plan_threshold, n->child_count);
    if (!all)
        return -ENOMEM;
    for (const struct node *one = n->first; rc == 0 && one; one = one->next)
        rc = load_threshold(l, one, &all[one->index]);
    p->thresholds = all;
    p->threshold_count = n->child_count;
    return rc;
}

/* --- the whole ------------------------------------------------------------------------------ */

int load_shape(struct loader *l, const struct shape_nodes *nodes, struct plan *p)
{
    int rc = 0;
    if (nodes->stages && nodes->arrival)
        return load_fail(l, nodes->arrival, "'stages' and 'arrival' exclude each other");
    if (nodes->stages || nodes->arrival) {
        struct plan_shape *shape = ARENA_NEW(l->memory, struct plan_shape);
        if (!shape)
            return -ENOMEM;
        p->shape = shape;
        rc = nodes->stages ? load_stages(l, nodes->stages, p, shape)
                           : load_arrival(l, nodes->arrival, p, shape);
    }
    if (rc == 0 && nodes->thresholds)
        rc = load_thresholds(l, nodes->thresholds, p);
    return rc;
}

#include "worker/scenario/describe_shape.h"

#include "worker/scenario/shape.h"
#include "worker/scenario/threshold.h"

#include "base/num.h"

static int add_number(struct buf *out, double value)
{
    char text[NUM_TEXT_BYTES];
    num_format_repr(value, text);
    struct str s = str_of(text);
    return buf_add(out, str_ends(s, STR(".0")) ? str_sub(s, 0, s.len - 2) : s);
}

/* BEFORE NUMBER BEHIND */
static int add(struct buf *out, const char *before, double value, const char *behind)
{
    int rc = buf_add(out, str_of(before));
    if (rc == 0)
        rc = add_number(out, value);
    return rc ? rc : buf_add(out, str_of(behind));
}

static int add_stage(struct buf *out, const struct plan *p, const struct shape_stage *stage)
{
    int rc = add(out, "until ", (double)stage->until_us / 1e6, " s: ");
    if (rc == 0)
        rc = buf_printf(out, "%u users", stage->users);
    for (size_t c = 0; rc == 0 && stage->class_users && c < p->class_count; c++) {
        if (stage->class_users[c] > 0)
            rc =
                buf_printf(out, ", %u of %.*s", stage->class_users[c], STR_ARG(p->classes[c].name));
    }
    for (size_t c = 0; rc == 0 && stage->classes && c < p->class_count; c++) {
        if (stage->classes[c])
            rc = buf_printf(out, ", of %.*s", STR_ARG(p->classes[c].name));
    }
    return rc ? rc : add(out, ", ", stage->spawn_rate, " a second\n");
}

static int add_arrival(struct buf *out, const struct plan_shape *s)
{
    int rc = add(out, "arrival of ", s->first_rate, " tasks a second");
    for (size_t i = 0; rc == 0 && i < s->rate_count; i++) {
        rc = add(out, ", ", s->rates[i].rate, " at ");
        if (rc == 0)
            rc = add(out, "", (double)s->rates[i].until_us / 1e6, " s");
    }
    return rc ? rc : buf_printf(out, ", %u users at most\n", s->max_users);
}

static int add_threshold(struct buf *out, const struct plan_threshold *t)
{
    static const char *const metrics[] = {
        [THRESHOLD_PERCENTILE] = "p",      [THRESHOLD_AVERAGE] = "avg",
        [THRESHOLD_MIN] = "min",           [THRESHOLD_MAX] = "max",
        [THRESHOLD_RPS] = "rps",           [THRESHOLD_FAILURE_RATIO] = "failure_ratio",
        [THRESHOLD_FAILURES] = "failures", [THRESHOLD_REQUESTS] = "requests",
    };
    static const char *const orders[] = {
        [THRESHOLD_BELOW] = " < ",
        [THRESHOLD_AT_MOST] = " <= ",
        [THRESHOLD_ABOVE] = " > ",
        [THRESHOLD_AT_LEAST] = " >= ",
    };
    int rc = buf_add(out, STR("threshold "));
    if (rc == 0 && t->name.ptr)
        rc = buf_printf(out, "of %.*s '%.*s': ", STR_ARG(t->method), STR_ARG(t->name));
    if (rc == 0)
        rc = buf_add(out, str_of(metrics[t->metric]));
    if (rc == 0 && t->metric == THRESHOLD_PERCENTILE)
        rc = add_number(out, t->percent);
    if (rc == 0)
        rc = add(out, orders[t->order], t->limit, t->steady ? ", steady state" : "");
    if (rc == 0 && t->abort)
        rc = add(out, ", abort after ", (double)t->grace_us / 1e6, " s");
    return rc ? rc : buf_add_byte(out, '\n');
}

int describe_shape(const struct plan *p, struct buf *out)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && p->shape && i < p->shape->stage_count; i++)
        rc = add_stage(out, p, &p->shape->stages[i]);
    if (rc == 0 && p->shape && p->shape->arrival)
        rc = add_arrival(out, p->shape);
    for (size_t i = 0; rc == 0 && i < p->threshold_count; i++)
        rc = add_threshold(out, &p->thresholds[i]);
    return rc;
}

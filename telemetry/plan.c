#include "telemetry/plan.h"

#include <stdint.h>
#include <stdlib.h>

struct making {
    struct query_plan *plan;
    const struct profile *profile;
    const struct profile_measurement *m;
    struct promql_scope scope; /* shifted for this measurement */
};

struct window plan_shift(const struct profile_measurement *m, struct window w, double lag_s)
{
    double by = m->late ? lag_s / 2 : 0;
    return (struct window){w.start_s + by, w.end_s + by};
}

static bool same(const struct query *a, const struct query *b)
{
    return a->is_range == b->is_range && a->span.start_s == b->span.start_s &&
           a->span.end_s == b->span.end_s && strcmp(a->text, b->text) == 0;
}

/* Takes the buffer's text. */
static int add_query(struct making *k, struct buf *text, bool is_range, struct window span,
                     size_t *ret_index)
{
    struct query_plan *p = k->plan;
    struct query q = {buf_take(text), is_range, span, k->profile->step_s};
    if (!q.text)
        return -ENOMEM;
    for (size_t i = 0; i < p->count; i++) {
        if (same(&p->queries[i], &q)) {
            free(q.text);
            *ret_index = i;
            return 0;
        }
    }
    *ret_index = p->count;
    p->queries[p->count++] = q;
    return 0;
}

static int add_plain(struct making *k, bool is_range, struct window span, size_t *ret_index)
{
    struct buf b;
    buf_init(&b, PROMQL_TEXT_BYTES);
    int rc = promql_expand(&b, str_of(k->m->query), &k->scope);
    if (rc == 0)
        rc = add_query(k, &b, is_range, span, ret_index);
    buf_done(&b);
    return rc;
}

static int add_growth(struct making *k, const char *counter, const char *suffix, size_t *ret_index)
{
    struct promql_selector s;
    struct buf b;
    buf_init(&b, PROMQL_TEXT_BYTES);
    int rc = promql_selector_parse(str_of(counter), &s, NULL);
    if (rc == 0)
        rc = promql_growth(&b, s, suffix, &k->scope);
    if (rc == 0)
        rc = add_query(k, &b, false, k->scope.steady, ret_index);
    buf_done(&b);
    return rc;
}

static int add_quantile(struct making *k, double q, size_t *ret_index)
{
    struct promql_selector s;
    struct buf b;
    buf_init(&b, PROMQL_TEXT_BYTES);
    int rc = promql_selector_parse(str_of(k->m->histogram), &s, NULL);
    if (rc == 0)
        rc = promql_quantile(&b, q, s, &k->scope);
    if (rc == 0)
        rc = add_query(k, &b, false, k->scope.steady, ret_index);
    buf_done(&b);
    return rc;
}

static int add_histogram(struct making *k, struct query_plan_entry *e)
{
    struct braced names;
    struct str item;
    bool any_mean = false;
    int rc = braced_parse(str_of(k->m->name), &names) ? 0 : -EINVAL;
    for (size_t i = 0; rc == 0 && braced_item(&names, i, &item); i++) {
        double q = 0;
        bool mean = false;
        (void)profile_item_parse(item, &q, &mean); /* true: checked when loaded */
        e->parts[e->count] = PLAN_UNUSED;
        any_mean = any_mean || mean;
        if (!mean)
            rc = add_quantile(k, q, &e->parts[e->count]);
        e->count++;
    }
    if (rc == 0 && any_mean)
        rc = add_growth(k, k->m->histogram, "_sum", &e->parts[e->count++]);
    if (rc == 0 && any_mean)
        rc = add_growth(k, k->m->histogram, "_count", &e->parts[e->count++]);
    return rc;
}

static int add_entry(struct making *k, struct query_plan_entry *e)
{
    int rc;
    switch (k->m->kind) {
    case PROFILE_RANGE_DISTRIBUTION:
        e->count = 1;
        return add_plain(k, true, k->scope.steady, &e->parts[0]);
    case PROFILE_STATE_PACKING:
        e->count = 1;
        return add_plain(k, true, k->scope.run, &e->parts[0]);
    case PROFILE_VALUE:
        e->count = 1;
        return add_plain(k, false, k->scope.steady, &e->parts[0]);
    case PROFILE_COUNTER_GROWTH:
        e->count = 1;
        return add_growth(k, k->m->counter, "", &e->parts[0]);
    case PROFILE_GROWTH_RATIO:
        e->count = 2;
        rc = add_growth(k, k->m->counter, "", &e->parts[0]);
        return rc < 0 ? rc : add_growth(k, k->m->over, "", &e->parts[1]);
    case PROFILE_HISTOGRAM_QUANTILES:
        return add_histogram(k, e);
    }
    return -EINVAL;
}

int query_plan_make(const struct profile *profile, struct window run, struct window steady,
                    double lag_s, struct query_plan *ret, struct err *err)
{
    *ret = (struct query_plan){0};
    ret->entries = calloc(profile->count, sizeof *ret->entries);
    ret->queries = calloc(profile->count * PLAN_PARTS_MAX, sizeof *ret->queries);
    if (!ret->entries || !ret->queries)
        return err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < profile->count; i++) {
        const struct profile_measurement *m = &profile->measurements[i];
        struct making k = {
            .plan = ret,
            .profile = profile,
            .m = m,
            .scope = {plan_shift(m, steady, lag_s), plan_shift(m, run, lag_s), profile->step_s,
                      profile->variables},
        };
        ret->entry_count++;
        int rc = add_entry(&k, &ret->entries[i]);
        if (rc < 0)
            return err_set(err, rc, "%s: %s", m->name,
                           rc == -ENOMEM ? "out of memory" : "its query is too long");
    }
    return 0;
}

void query_plan_done(struct query_plan *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->queries[i].text);
    free(p->queries);
    free(p->entries);
    *p = (struct query_plan){0};
}

const char *plan_asker(const struct query_plan *p, const struct profile *profile, size_t query)
{
    for (size_t i = 0; i < p->entry_count; i++) {
        for (size_t j = 0; j < p->entries[i].count; j++) {
            if (p->entries[i].parts[j] == query)
                return profile->measurements[i].name;
        }
    }
    return "?";
}

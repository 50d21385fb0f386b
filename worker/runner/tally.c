#include "worker/runner/tally.h"

#include "base/log.h"
#include "worker/report/threshold.h"
#include "worker/stats/percentile.h"

#include <stdlib.h>

#define SHORTEST_S 0.5 /* a rate of less time says nothing */

/* --- making ---------------------------------------------------------------------------------- */

static int copy_thresholds(struct tally *t, const struct plan *plan, const struct str *texts,
                           size_t text_count, struct err *err)
{
    size_t n = plan->threshold_count + text_count;
    t->thresholds = calloc(n + 1, sizeof *t->thresholds);
    t->outcomes = calloc(n + 1, sizeof *t->outcomes);
    if (!t->thresholds || !t->outcomes)
        return -ENOMEM;
    if (plan->threshold_count > 0)
        memcpy(t->thresholds, plan->thresholds, plan->threshold_count * sizeof *t->thresholds);
    for (size_t i = 0; i < text_count; i++) {
        char quoted[LOG_QUOTED_BYTES];
        struct err why = {0};
        if (threshold_parse(texts[i], &t->thresholds[plan->threshold_count + i], &why) < 0)
            return err_set(err, -EINVAL, "--threshold %s: %s", log_quote(texts[i], quoted),
                           why.text);
    }
    t->threshold_count = n;
    return 0;
}

int tally_init(struct tally *t, const struct plan *plan, const struct str *texts, size_t text_count,
               struct stats_limits limits, struct err *err)
{
    *t = (struct tally){0};
    bool steady = false;
    int rc = copy_thresholds(t, plan, texts, text_count, err);
    for (size_t i = 0; rc == 0 && i < t->threshold_count; i++) {
        steady |= t->thresholds[i].steady;
        t->any_abort |= t->thresholds[i].abort;
    }
    if (rc == 0)
        rc = samples_init(&t->samples, limits, 0);
    if (rc == 0 && steady)
        rc = stats_new(limits, 0, &t->steady);
    if (rc < 0)
        tally_done(t);
    return rc < 0 ? err_set(err, rc, "out of memory") : 0;
}

void tally_done(struct tally *t)
{
    stats_free(t->steady);
    samples_done(&t->samples);
    history_done(&t->history);
    generator_done(&t->generator);
    free(t->thresholds);
    free(t->outcomes);
    *t = (struct tally){0};
}

/* --- samples --------------------------------------------------------------------------------- */

static void forget(struct tally *t, uint64_t now_us, double wall_s)
{
    t->since_us = now_us;
    t->requests = t->failures = 0;
    t->steady_began = false;
    if (t->steady)
        stats_clear(t->steady, wall_s);
}

void tally_begin(struct tally *t, uint64_t now_us, double wall_s)
{
    samples_begin(&t->samples, wall_s);
    history_clear(&t->history);
    forget(t, now_us, wall_s);
}

void tally_reset(struct tally *t, uint64_t now_us, double wall_s)
{
    samples_reset(&t->samples, wall_s);
    forget(t, now_us, wall_s);
}

int tally_take(struct tally *t, struct engine *e, double wall_s)
{
    return samples_take(&t->samples, e, wall_s);
}

static struct measure percentile(const struct stats_entry *e, double q)
{
    uint64_t us;
    return histogram_percentile(&e->response_times, q, &us) ? measure_of((double)us / 1000.0)
                                                            : MEASURE_UNKNOWN;
}

static struct history_point make_point(const struct tally *t, const struct tally_moment *m,
                                       const struct stats_entry *second)
{
    double elapsed_s = (double)(m->now_us - t->since_us) / 1e6;
    bool rated = elapsed_s >= SHORTEST_S;
    struct history_point p = {
        .wall_s = m->wall_s,
        .user_count = (uint32_t)m->engine->running_total,
        .target = m->target,
        .requests = t->requests + second->num_requests,
        .failures = t->failures + second->num_failures,
        .rps = rated ? measure_of((double)second->num_requests / elapsed_s) : MEASURE_UNKNOWN,
        .fail_per_s =
            rated ? measure_of((double)second->num_failures / elapsed_s) : MEASURE_UNKNOWN,
        .p50_ms = percentile(second, 0.5),
        .p95_ms = percentile(second, 0.95),
        .p99_ms = percentile(second, 0.99),
        .cpu_pct = m->engine->cpu_pct,
        .loop_lag_ms = m->engine->loop_lag_ms,
    };
    if (second->num_requests > second->num_none_requests)
        p.average_ms = measure_of(stats_entry_average_ms(second));
    return p;
}

static int add_steady(struct tally *t, const struct tally_moment *m)
{
    if (!t->steady || !m->steady)
        return 0;
    if (!t->steady_began) /* its start is the second's, for rates */
        stats_clear(t->steady, m->wall_s - (double)(m->now_us - t->since_us) / 1e6);
    t->steady_began = true;
    return stats_merge(t->steady, t->samples.unsent);
}

static int add_point(struct tally *t, const struct tally_moment *m,
                     const struct stats_entry *second)
{
    const struct history_point point = make_point(t, m, second);
    const struct generator_second own = {point.cpu_pct, point.loop_lag_ms, m->steady};
    int rc = add_steady(t, m);
    if (rc < 0)
        return rc;
    t->since_us = m->now_us;
    t->requests = point.requests;
    t->failures = point.failures;
    samples_sent(&t->samples, m->wall_s);
    rc = history_add(&t->history, &point);
    int own_rc = generator_add(&t->generator, &own);
    return rc < 0 ? rc : own_rc;
}

int tally_point(struct tally *t, const struct tally_moment *m)
{
    struct stats_entry *second;
    int rc = stats_total(t->samples.unsent, &second);
    if (rc < 0)
        return rc;
    rc = add_point(t, m, second);
    stats_entry_free(second);
    return rc;
}

/* --- thresholds ------------------------------------------------------------------------------ */

static void judge(struct tally *t, const struct stats *s, const struct stats_entry *total,
                  bool steady)
{
    for (size_t i = 0; i < t->threshold_count; i++) {
        if (t->thresholds[i].steady != steady)
            continue;
        bool unsteady = steady && !t->steady_began; /* where counts are not known to be zero */
        struct threshold_outcome outcome = {.measured = MEASURE_UNKNOWN};
        if (!unsteady)
            outcome = threshold_check(&t->thresholds[i], s, total);
        t->outcomes[i] = (struct report_threshold){
            .text = t->thresholds[i].text,
            .measured = outcome.measured,
            .met = outcome.met,
            .unit = threshold_unit(&t->thresholds[i]),
            .unsteady = unsteady,
        };
    }
}

static int judge_set(struct tally *t, const struct stats *s, bool steady)
{
    struct stats_entry *total;
    int rc = s ? stats_total(s, &total) : -ENOENT;
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    judge(t, s, total, steady);
    stats_entry_free(total);
    return 0;
}

int tally_judge(struct tally *t)
{
    if (t->threshold_count == 0)
        return 0;
    int rc = judge_set(t, t->samples.run, false);
    return rc < 0 ? rc : judge_set(t, t->steady, true);
}

const struct report_threshold *tally_broken(struct tally *t, uint64_t age_us)
{
    if (!t->any_abort || tally_judge(t) < 0)
        return NULL; /* without memory it is looked at a second later */
    for (size_t i = 0; i < t->threshold_count; i++) {
        const struct plan_threshold *p = &t->thresholds[i];
        if (p->abort && age_us >= p->grace_us && t->outcomes[i].measured.known &&
            !t->outcomes[i].met)
            return &t->outcomes[i];
    }
    return NULL;
}

bool tally_judges_failures(const struct tally *t)
{
    for (size_t i = 0; i < t->threshold_count; i++) {
        enum threshold_metric metric = t->thresholds[i].metric;
        if (!t->thresholds[i].name.ptr &&
            (metric == THRESHOLD_FAILURES || metric == THRESHOLD_FAILURE_RATIO))
            return true;
    }
    return false;
}

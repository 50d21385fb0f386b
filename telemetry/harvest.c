#include "telemetry/harvest.h"

#include "base/clock.h"

#include <math.h>
#include <poll.h>
#include <stdlib.h>

struct harvest {
    const struct telemetry_options *options;
    int abort_fd;
    struct summary_head head;
    struct query_plan plan;
    struct query_outcome *outcomes; /* by query of the plan; NULL until asked */
    struct measured *measured;      /* by measurement; zeroed until asked */
    struct telemetry_result *ret;
};

/* --- probe and lag ------------------------------------------------------------------------------
 */

static void note_server(struct harvest *h, const struct err *err)
{
    struct buf shown;
    buf_init(&shown, ERR_TEXT_BYTES);
    if (http_url_shown(&shown, h->options->access.url) < 0)
        buf_clear(&shown); /* the reason alone then */
    notes_add(&h->ret->failures, "Prometheus%s%s: %s", shown.len ? " at " : "", buf_c(&shown),
              err->text);
    buf_done(&shown);
}

/* Is there a Prometheus that answers queries? */
static int probe(struct harvest *h)
{
    char text[] = "vector(1)";
    const struct query q = {.text = text, .span = h->head.steady};
    struct query_outcome o = {0};
    int rc = query_check_url(h->options->access.url, &o.err);
    if (rc == 0)
        rc = query_ask(&h->options->access, &q, 1, h->abort_fd, &o);
    if (rc == 0)
        rc = o.err.code;
    if (rc == 0 && (o.answer.count != 1 || o.answer.series[0].count != 1))
        rc = err_set(&o.err, -EPROTO, "an answer to another question");
    if (rc < 0)
        note_server(h, &o.err);
    query_outcome_done(&o);
    return rc;
}

/* 0, or -ECANCELED. The wait is never longer than the lag, whatever the clocks say. */
static int wait_lag(struct harvest *h)
{
    double left_s = h->head.run.end_s + h->head.lag_s - clock_wall_s();
    uint64_t now = clock_mono_us();
    uint64_t until = now + (uint64_t)(fmin(fmax(left_s, 0), h->head.lag_s) * 1e6);
    struct pollfd p = {.fd = h->abort_fd, .events = POLLIN};
    for (; now < until; now = clock_mono_us()) {
        int n = poll(&p, 1, (int)((until - now + 999) / 1000));
        if (n > 0) {
            notes_add(&h->ret->failures, "server telemetry: aborted before it was asked for");
            return -ECANCELED;
        }
        if (n < 0 && errno != EINTR)
            break; /* no poll, no wait */
    }
    return 0;
}

/* --- asking -------------------------------------------------------------------------------------
 */

/* What is to be told of a query, "" for nothing. */
typedef const char *outcome_text(const struct query_outcome *o);

static const char *failure_text(const struct query_outcome *o)
{
    return o->err.code < 0 ? o->err.text : "";
}

static const char *warning_text(const struct query_outcome *o)
{
    return o->err.code < 0 ? "" : buf_c(&o->answer.warnings);
}

static size_t count_alike(const struct harvest *h, outcome_text *text_of, size_t from, size_t to,
                          const char *text)
{
    size_t n = 0;
    for (size_t i = from; i < to; i++)
        n += strcmp(text_of(&h->outcomes[i]), text) == 0;
    return n;
}

/* One line for all queries of which the same is to be told. */
static void note(struct harvest *h, size_t query, outcome_text *text_of, const char *what)
{
    const char *name = plan_asker(&h->plan, h->options->profile, query);
    const char *text = text_of(&h->outcomes[query]);
    if (!*text || count_alike(h, text_of, 0, query, text) > 0)
        return;
    size_t more = count_alike(h, text_of, query + 1, h->plan.count, text);
    if (more)
        notes_add(&h->ret->failures, "server telemetry: %s and %zu more queries: %s%s", name, more,
                  what, text);
    else
        notes_add(&h->ret->failures, "server telemetry: %s: %s%s", name, what, text);
}

static void count_outcomes(struct harvest *h)
{
    for (size_t i = 0; i < h->plan.count; i++) {
        const struct query_outcome *o = &h->outcomes[i];
        const char *name = plan_asker(&h->plan, h->options->profile, i);
        if (o->err.code < 0) {
            h->head.queries_failed++;
            note(h, i, failure_text, "");
            continue;
        }
        h->head.queries_ok++;
        note(h, i, warning_text, "answered with a warning: ");
        if (o->answer.infos.len)
            notes_add(&h->ret->remarks, "server telemetry: %s: %s", name, buf_c(&o->answer.infos));
    }
}

static int ask(struct harvest *h)
{
    const struct profile *p = h->options->profile;
    h->outcomes = calloc(h->plan.count + 1, sizeof *h->outcomes);
    if (!h->outcomes)
        return -ENOMEM;
    int rc =
        query_ask(&h->options->access, h->plan.queries, h->plan.count, h->abort_fd, h->outcomes);
    if (rc < 0)
        return rc;
    count_outcomes(h);
    for (size_t i = 0; rc == 0 && i < p->count; i++)
        rc = measured_of(&p->measurements[i], &h->plan.entries[i], h->outcomes, h->head.steady,
                         h->head.lag_s, &h->ret->failures, &h->measured[i]);
    return rc;
}

/* --- all of it ----------------------------------------------------------------------------------
 */

static double lag_of(const struct profile *profile, struct measure lag_s)
{
    return lag_s.known ? fmax(lag_s.value, 0) : profile->lag_s;
}

double telemetry_longest_s(const struct profile *profile, struct measure lag_s)
{
    return fmax(lag_of(profile, lag_s), QUERY_INSTANT_TIMEOUT_MS / 1000.0) +
           QUERY_RANGE_TIMEOUT_MS / 1000.0;
}

static void begin(struct harvest *h)
{
    const struct telemetry_options *o = h->options;
    struct window run = {o->run.start_s, fmax(o->run.start_s, o->run.end_s)};
    h->head = (struct summary_head){
        .test_name = o->test_name,
        .tag = o->tag,
        .data_timestamp = o->data_timestamp,
        .url = o->access.url,
        .run = run,
        .steady = window_steady(run, o->samples, o->sample_count),
        .lag_s = lag_of(o->profile, o->lag_s),
        .worker_pod_count = o->worker_pod_count,
    };
}

/* -ENOMEM alone is an error; all else is a harvest of nulls. */
static int reap(struct harvest *h)
{
    struct err err = {0};
    if (!h->options->access.url)
        return 0;
    int rc = query_plan_make(h->options->profile, h->head.run, h->head.steady, h->head.lag_s,
                             &h->plan, &err);
    if (rc < 0) {
        notes_add(&h->ret->failures, "server telemetry: %s", err.text);
        return rc == -ENOMEM ? rc : 0;
    }
    rc = probe(h);
    if (rc == 0)
        rc = wait_lag(h);
    if (rc == 0)
        return ask(h);
    h->head.queries_failed = h->plan.count;
    return rc == -ENOMEM ? rc : 0;
}

static int finish(struct harvest *h)
{
    struct telemetry_result *r = h->ret;
    r->queries_ok = h->head.queries_ok;
    r->queries_failed = h->head.queries_failed;
    r->document = summary_document(&h->head, h->options->profile, h->measured);
    r->flat = summary_flat(h->options->profile, h->measured);
    return r->document && r->flat ? 0 : -ENOMEM;
}

int telemetry_harvest(const struct telemetry_options *options, int abort_fd,
                      struct telemetry_result *ret)
{
    struct harvest h = {.options = options, .abort_fd = abort_fd, .ret = ret};
    *ret = (struct telemetry_result){0};
    begin(&h);
    h.measured = calloc(options->profile->count, sizeof *h.measured);
    int rc = h.measured ? reap(&h) : -ENOMEM;
    if (rc == 0)
        rc = finish(&h);
    for (size_t i = 0; h.measured && i < options->profile->count; i++)
        measured_done(&h.measured[i]);
    for (size_t i = 0; h.outcomes && i < h.plan.count; i++)
        query_outcome_done(&h.outcomes[i]);
    free(h.measured);
    free(h.outcomes);
    query_plan_done(&h.plan);
    if (rc < 0)
        telemetry_result_done(ret);
    return rc;
}

void telemetry_result_done(struct telemetry_result *r)
{
    json_decref(r->document);
    json_decref(r->flat);
    notes_done(&r->failures);
    notes_done(&r->remarks);
    *r = (struct telemetry_result){0};
}

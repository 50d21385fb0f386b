#include "worker/runner/scrape.h"

#include "base/log.h"
#include "worker/report/generator.h"

#include <errno.h>

int scrape_open(struct scrape *s, const struct scrape_options *options, struct err *err)
{
    *s = (struct scrape){0};
    if (!options->on)
        return 0;
    int rc = metrics_start(options->address, options->port, &s->server, err);
    if (rc == 0)
        log_info("metrics at port %u: /metrics, /healthz, /readyz", metrics_port(s->server));
    return rc;
}

void scrape_done(struct scrape *s)
{
    metrics_stop(s->server);
    *s = (struct scrape){0};
}

int scrape_fd(const struct scrape *s)
{
    return s->server ? metrics_fd(s->server) : -1;
}

void scrape_begin(struct scrape *s, struct engine *engine)
{
    if (!metrics_wanted(s->server, &s->format))
        return;
    s->waiting = engine_request_stats(engine) == 0; /* else the scrape gets the page before */
}

void scrape_answer(struct scrape *s, const struct plan *plan, const struct stats *run,
                   struct engine *engine, const char *state)
{
    struct engine_status status;
    struct buf page;
    if (!s->waiting || !engine_stats_complete(engine))
        return;
    s->waiting = false;
    engine_status(engine, &status);
    const struct metrics_input input = {
        .plan = plan,
        .stats = run,
        .engine = &status,
        .state = state,
        .saturated = status.cpu_pct > GENERATOR_CPU_PCT || status.loop_lag_ms > GENERATOR_LAG_MS,
    };
    buf_init(&page, METRICS_MAX_BYTES);
    int rc = metrics_render(&page, s->format, &input);
    if (rc == 0)
        metrics_publish(s->server, s->format, &page);
    else
        log_debug("no metrics page: %s", strerror(-rc));
    buf_done(&page);
}

void scrape_set_ready(struct scrape *s, bool ready)
{
    if (s->server)
        metrics_set_ready(s->server, ready);
}

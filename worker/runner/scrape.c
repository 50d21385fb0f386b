#include "worker/runner/scrape.h"

#include "base/log.h"
#include "proto/http/http.h"
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

void scrape_push(const struct scrape_options *options, const struct metrics_input *last)
{
    if (!options->push_url)
        return;
    struct buf page;
    buf_init(&page, METRICS_MAX_BYTES);
    int rc = metrics_render(&page, METRICS_TEXT, last);
    if (rc < 0) {
        log_warning("metrics were not pushed: %s, continuing", strerror(-rc));
    } else {
        static const char *const headers[] = {"Content-Type: text/plain; version=0.0.4"};
        const struct http_query request = {
            .url = options->push_url,
            .method = "PUT",
            .body = buf_str(&page),
            .headers = headers,
            .header_count = 1,
            .timeout_ms = SCRAPE_PUSH_TIMEOUT_MS,
            .max_bytes = HTTP_ERROR_BODY_BYTES,
        };
        struct http_answer answer;
        rc = http_fetch(&request, 1, -1, &answer);
        if (rc < 0 || !http_answer_ok(&answer))
            log_warning("metrics were not pushed: %s, continuing", answer.error);
        http_answer_done(&answer);
    }
    buf_done(&page);
}

void scrape_set_ready(struct scrape *s, bool ready)
{
    if (s->server)
        metrics_set_ready(s->server, ready);
}

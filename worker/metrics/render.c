#include "worker/metrics/render.h"

#include "base/num.h"
#include "base/utf8.h"

/* Response-time buckets in microseconds: what servers and services are usually asked about, from a
 * cache's answer to a batch job's. The exact histogram stays in the report. */
static const uint64_t bounds_us[] = {
    100,     250,     500,     1000,    2500,     5000,     10000,
    25000,   50000,   75000,   100000,  250000,   500000,   750000,
    1000000, 2500000, 5000000, 7500000, 10000000, 30000000, 60000000,
};
#define BOUND_COUNT (sizeof bounds_us / sizeof *bounds_us)

struct page {
    struct buf *out;
    enum metrics_format format;
    int rc; /* the first failure; later writes do nothing */
};

#define PUT(page, ...)                                                                             \
    do {                                                                                           \
        if ((page)->rc == 0)                                                                       \
            (page)->rc = buf_printf((page)->out, __VA_ARGS__);                                     \
    } while (0)

/* A family's head. OpenMetrics names a counter's family without the "_total" of its samples. */
static void put_head(struct page *p, const char *family, const char *type, const char *help)
{
    bool bare = p->format == METRICS_OPENMETRICS || strcmp(type, "counter") != 0;
    const char *suffix = bare ? "" : "_total";
    PUT(p, "# HELP %s%s %s\n# TYPE %s%s %s\n", family, suffix, help, family, suffix, type);
}

/* A label value: backslash, quote and newline escaped; the text is valid UTF-8 already. */
static void put_escaped(struct page *p, struct str text)
{
    for (size_t i = 0; i < text.len && p->rc == 0; i++) {
        char c = text.ptr[i];
        if (c == '\\' || c == '"' || c == '\n')
            p->rc = buf_add(p->out, c == '\n' ? STR("\\n") : c == '"' ? STR("\\\"") : STR("\\\\"));
        else
            p->rc = buf_add_byte(p->out, c);
    }
}

static void put_label(struct page *p, const char *name, struct str value)
{
    PUT(p, "%s=\"", name);
    put_escaped(p, value);
    PUT(p, "\"");
}

static void put_entry_labels(struct page *p, struct str method, struct str name)
{
    PUT(p, "{");
    put_label(p, "method", method);
    PUT(p, ",");
    put_label(p, "name", name);
}

static void put_double(struct page *p, double value)
{
    char text[NUM_TEXT_BYTES];
    num_format_repr(value, text);
    PUT(p, "%s", text);
}

/* --- of the process ------------------------------------------------------------------------- */

static void put_gauge(struct page *p, const char *name, const char *help, double value)
{
    put_head(p, name, "gauge", help);
    PUT(p, "%s ", name);
    put_double(p, value);
    PUT(p, "\n");
}

static void put_counter(struct page *p, const char *name, const char *help, uint64_t value)
{
    put_head(p, name, "counter", help);
    PUT(p, "%s_total %llu\n", name, (unsigned long long)value);
}

static void put_users(struct page *p, const struct metrics_input *in)
{
    put_head(p, "cicada_users", "gauge", "Users running now.");
    for (size_t c = 0; c < in->plan->class_count; c++) {
        PUT(p, "cicada_users{");
        put_label(p, "user_class", in->plan->classes[c].name);
        PUT(p, ",state=\"running\"} %lu\n", (unsigned long)in->engine->running[c]);
    }
}

static void put_state(struct page *p, const struct metrics_input *in)
{
    static const char *const states[] = {"ready",   "spawning", "running", "stopping",
                                         "leaving", "quitting", "stopped"};
    put_head(p, "cicada_state", "gauge", "1 for the state that the worker is in.");
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        PUT(p, "cicada_state{state=\"%s\"} %d\n", states[i], strcmp(states[i], in->state) == 0);
}

static void put_process(struct page *p, const struct metrics_input *in)
{
    const struct engine_status *e = in->engine;
    put_head(p, "cicada_build_info", "gauge", "The program's version.");
    PUT(p, "cicada_build_info{version=\"%s\"} 1\n", CICADA_VERSION);
    put_state(p, in);
    put_users(p, in);
    put_gauge(p, "cicada_cpu_ratio", "CPU time of the busiest thread, of one core, last second.",
              e->cpu_pct / 100);
    put_gauge(p, "cicada_loop_lag_seconds", "Worst lag of an event loop, last second.",
              e->loop_lag_ms / 1000);
    put_gauge(p, "cicada_saturated", "1 when the load generator itself is the bottleneck.",
              in->saturated);
    put_gauge(p, "cicada_requests_in_flight", "Requests under way.", (double)e->in_flight);
    put_counter(p, "cicada_requests_started", "Requests begun since the process started.",
                e->started);
    put_counter(p, "cicada_requests_interrupted", "Requests cut at the end of their user.",
                e->interrupted);
    put_counter(p, "cicada_connections_opened", "Connections made.", e->connections_opened);
    put_counter(p, "cicada_connections_failed", "Connections that could not be made.",
                e->connections_failed);
    put_counter(p, "cicada_retries", "Requests sent anew: a kept-alive connection was closed.",
                e->retries);
    put_counter(p, "cicada_late_starts", "Task starts that came over 10 ms late.",
                e->late_starts_10ms);
}

/* --- of the entries ------------------------------------------------------------------------- */

static void put_entry_counter(struct page *p, const struct metrics_input *in, const char *family,
                              const char *help, uint64_t (*value)(const struct stats_entry *e))
{
    put_head(p, family, "counter", help);
    for (uint32_t i = 0; i < stats_entry_count(in->stats); i++) {
        const struct stats_entry *e = stats_entry_at(in->stats, i);
        if (!stats_entry_used(e))
            continue;
        PUT(p, "%s_total", family);
        put_entry_labels(p, e->method, e->name);
        PUT(p, "} %llu\n", (unsigned long long)value(e));
    }
}

static uint64_t requests_of(const struct stats_entry *e)
{
    return e->num_requests;
}

static uint64_t bytes_of(const struct stats_entry *e)
{
    return e->total_content_length_bytes;
}

static void put_failures(struct page *p, const struct metrics_input *in)
{
    put_head(p, "cicada_failures", "counter", "Failed requests by reason.");
    for (uint32_t i = 0; i < stats_error_count(in->stats); i++) {
        const struct stats_error *e = stats_error_at(in->stats, i);
        PUT(p, "cicada_failures_total");
        put_entry_labels(p, e->method, e->name);
        PUT(p, ",");
        put_label(p, "reason", e->error);
        PUT(p, "} %llu\n", (unsigned long long)e->occurrences);
    }
}

/* Steps of the exact histogram go to the first bound that is not below their lowest value. */
static void count_buckets(const struct histogram *h, uint64_t counts[static BOUND_COUNT + 1])
{
    uint32_t position = 0;
    uint64_t low_us, n;
    size_t bound = 0;
    while (histogram_next(h, &position, &low_us, &n)) {
        while (bound < BOUND_COUNT && low_us > bounds_us[bound])
            bound++;
        counts[bound] += n;
    }
}

static void put_bucket(struct page *p, const struct stats_entry *e, const char *bound, uint64_t n)
{
    PUT(p, "cicada_response_time_seconds_bucket");
    put_entry_labels(p, e->method, e->name);
    PUT(p, ",le=\"%s\"} %llu\n", bound, (unsigned long long)n);
}

static void put_histogram(struct page *p, const struct stats_entry *e)
{
    uint64_t counts[BOUND_COUNT + 1] = {0}, sum = 0;
    count_buckets(&e->response_times, counts);
    for (size_t i = 0; i < BOUND_COUNT; i++) {
        char bound[NUM_TEXT_BYTES];
        num_format_repr((double)bounds_us[i] / 1e6, bound);
        sum += counts[i];
        put_bucket(p, e, bound, sum);
    }
    /* the histogram's own count, so that the buckets fit together even if a sample was lost in it
     */
    put_bucket(p, e, "+Inf", e->response_times.count);
    PUT(p, "cicada_response_time_seconds_sum");
    put_entry_labels(p, e->method, e->name);
    PUT(p, "} ");
    put_double(p, (double)e->total_response_time_us / 1e6);
    PUT(p, "\ncicada_response_time_seconds_count");
    put_entry_labels(p, e->method, e->name);
    PUT(p, "} %llu\n", (unsigned long long)e->response_times.count);
}

static void put_histograms(struct page *p, const struct metrics_input *in)
{
    put_head(p, "cicada_response_time_seconds", "histogram",
             "Response times, failures included, from the scheduled start to the last byte.");
    for (uint32_t i = 0; i < stats_entry_count(in->stats); i++) {
        const struct stats_entry *e = stats_entry_at(in->stats, i);
        if (stats_entry_used(e))
            put_histogram(p, e);
    }
}

int metrics_render(struct buf *out, enum metrics_format format, const struct metrics_input *input)
{
    struct page p = {out, format, 0};
    put_process(&p, input);
    put_entry_counter(&p, input, "cicada_requests", "Requests of this run, failed ones included.",
                      requests_of);
    put_failures(&p, input);
    put_entry_counter(&p, input, "cicada_response_bytes", "Bytes of response bodies.", bytes_of);
    put_histograms(&p, input);
    if (format == METRICS_OPENMETRICS)
        PUT(&p, "# EOF\n");
    return p.rc;
}

const char *metrics_content_type(enum metrics_format format)
{
    return format == METRICS_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}

enum metrics_format metrics_accepted(struct str accept)
{
    struct str wanted = STR("application/openmetrics-text");
    return str_find_str(accept, wanted) < accept.len ? METRICS_OPENMETRICS : METRICS_TEXT;
}

/* Runs the engine alone, without a master, for tests and benchmarks:
 *   engine_run [-s SHARDS] [-u USERS] [-t SECONDS] [-n REQUESTS] [-o STOP_TIMEOUT_S]
 * [-c] [-p] URL|scenario.json Prints one JSON object: what was counted, the CPU time of a request,
 * the memory. */
#include "base/clock.h"
#include "base/num.h"
#include "worker/engine/engine.h"
#include "worker/scenario/url.h"
#include "worker/stats/percentile.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

struct settings {
    struct engine_options engine;
    uint32_t users;
    double seconds;
    uint64_t requests;
    double stop_timeout_s;
    const char *target;
};

static void die(const char *text)
{
    (void)fprintf(stderr, "engine_run: %s\n", text);
    exit(2);
}

static double number(const char *text)
{
    double v;
    if (num_parse_double(str_of(text), &v) < 0)
        die("not a number");
    return v;
}

static struct settings read_args(int argc, char **argv)
{
    struct settings s = {.engine.shards = 1, .users = 10, .seconds = 2};
    int c;
    while ((c = getopt(argc, argv, "s:u:t:n:o:cp")) != -1) {
        switch (c) {
        case 's':
            s.engine.shards = (unsigned)number(optarg);
            break;
        case 'u':
            s.users = (uint32_t)number(optarg);
            break;
        case 't':
            s.seconds = number(optarg);
            break;
        case 'n':
            s.requests = (uint64_t)number(optarg);
            break;
        case 'c':
            s.engine.http = ENGINE_HTTP_CURL;
            break;
        case 'p':
            s.engine.phases = true;
            break;
        case 'o':
            s.stop_timeout_s = number(optarg);
            break;
        default:
            die("usage");
        }
    }
    if (optind != argc - 1)
        die("one URL or scenario");
    s.target = argv[optind];
    return s;
}

static void take(struct engine *e, struct stats *into)
{
    if (engine_take_stats(e, into) < 0)
        die("out of memory");
}

static void poll_for(struct engine *e, struct stats *into, int ms)
{
    struct pollfd p = {.fd = engine_fd(e), .events = POLLIN};
    if (poll(&p, 1, ms) > 0)
        engine_poll(e);
    take(e, into);
}

static double cpu_s(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void print_errors(const struct stats *stats)
{
    for (uint32_t i = 0; i < stats_error_count(stats); i++) {
        const struct stats_error *e = stats_error_at(stats, i);
        (void)printf("%s[\"%.*s\", \"%.*s\", \"%.*s\", %" PRIu64 "]", i ? ", " : "",
                     STR_ARG(e->method), STR_ARG(e->name), STR_ARG(e->error), e->occurrences);
    }
}

static void print_histogram(const char *name, const struct histogram *h)
{
    uint64_t p50, p99;
    if (histogram_percentile(h, 0.5, &p50) && histogram_percentile(h, 0.99, &p99))
        (void)printf(", \"%s\": {\"count\": %" PRIu64 ", \"p50_us\": %" PRIu64
                     ", \"p99_us\": %" PRIu64 "}",
                     name, h->count, p50, p99);
}

static void print_details(const struct stats_details *details)
{
    if (!details)
        return;
    print_histogram("service", &details->service_times);
    for (int i = 0; i < STATS_PHASE_COUNT; i++)
        print_histogram(stats_phase_name((enum stats_phase)i), &details->phases[i]);
}

static void print_entries(const struct stats *stats)
{
    const char *comma = "";
    for (uint32_t i = 0; i < stats_entry_count(stats); i++) {
        const struct stats_entry *e = stats_entry_at(stats, i);
        if (!stats_entry_used(e))
            continue;
        (void)printf("%s[\"%.*s\", \"%.*s\", %" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", comma,
                     STR_ARG(e->method), STR_ARG(e->name), e->num_requests, e->num_failures,
                     e->total_content_length_bytes);
        comma = ", ";
    }
}

static void print(const struct stats *stats, const struct engine_status *st, double cpu,
                  double wall)
{
    struct stats_entry *total;
    struct rusage r;
    uint64_t p50 = 0, p99 = 0;
    if (stats_total(stats, &total) < 0)
        die("out of memory");
    (void)histogram_percentile(&total->response_times, 0.5, &p50);
    (void)histogram_percentile(&total->response_times, 0.99, &p99);
    getrusage(RUSAGE_SELF, &r);
    (void)printf("{\"requests\": %" PRIu64 ", \"failures\": %" PRIu64 ", \"started\": %" PRIu64
                 ", \"succeeded\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"interrupted\": %" PRIu64
                 ", \"retries\": %" PRIu64 ", \"bytes\": %" PRIu64,
                 total->num_requests, total->num_failures, st->started, st->succeeded, st->failed,
                 st->interrupted, st->retries, total->total_content_length_bytes);
    print_details(total->details);
    (void)printf(", \"rps\": %.0f, \"us_per_req\": %.3f, \"cpu_s\": %.3f, \"p50_us\": %" PRIu64
                 ", \"p99_us\": %" PRIu64 ", \"peak_kb\": %ld, \"errors\": [",
                 (double)total->num_requests / wall,
                 total->num_requests ? cpu * 1e6 / (double)total->num_requests : 0, cpu, p50, p99,
                 r.ru_maxrss);
    print_errors(stats);
    (void)printf("], \"entries\": [");
    print_entries(stats);
    (void)printf("]}\n");
    stats_entry_free(total);
}

/* Until the time is over or enough requests are done. */
static void load(const struct settings *s, struct engine *e, struct stats *stats, uint64_t start_us)
{
    for (;;) {
        struct engine_status st;
        double left = s->seconds - (double)(clock_mono_us() - start_us) / 1e6;
        engine_status(e, &st);
        if (left <= 0 || (s->requests && st.succeeded + st.failed >= s->requests))
            return;
        poll_for(e, stats, s->requests ? 1 : (int)(left * 1000) + 1);
        if (s->requests && engine_request_stats(e) < 0)
            die("a shard is gone");
    }
}

static void finish(const struct settings *s, struct engine *e, struct stats *stats)
{
    struct engine_status st;
    if (engine_stop(e, s->stop_timeout_s) < 0)
        die("out of memory");
    do {
        poll_for(e, stats, 1000);
        engine_status(e, &st);
    } while (!st.reached);
    if (engine_request_stats(e) < 0)
        die("a shard is gone");
    while (!engine_stats_complete(e))
        poll_for(e, stats, 1000);
    take(e, stats);
}

static void run(const struct settings *s, struct plan *plan)
{
    struct engine *e;
    struct stats *stats;
    struct err err = {0};
    struct engine_status st;
    uint32_t *targets = calloc(plan->class_count, sizeof *targets);
    if (!targets || engine_new(plan, &s->engine, &e, &err) < 0)
        die(err.text);
    if (stats_new(s->engine.limits, clock_wall_s(), &stats) < 0)
        die("out of memory");
    for (uint32_t i = 0; i < s->users; i++)
        targets[i % plan->class_count]++;
    uint64_t start_us = clock_mono_us();
    double cpu = cpu_s();
    if (engine_set_users(e, targets, s->stop_timeout_s, &err) < 0)
        die(err.text);
    load(s, e, stats, start_us);
    finish(s, e, stats);
    engine_status(e, &st);
    print(stats, &st, cpu_s() - cpu, (double)(clock_mono_us() - start_us) / 1e6);
    engine_free(e);
    stats_free(stats);
    free(targets);
}

int main(int argc, char **argv)
{
    struct settings s = read_args(argc, argv);
    struct plan *plan;
    struct err err = {0};
    struct plan_tags tags = {0};
    (void)signal(SIGPIPE, SIG_IGN);
    (void)engine_raise_file_limit(); /* fewer users then: seen in the failures */
    if (curl_global_init(CURL_GLOBAL_ALL) != 0)
        die("libcurl");
    int rc = url_is_absolute(str_of(s.target)) ? plan_from_url(str_of(s.target), &plan, &err)
                                               : plan_load_file(s.target, &tags, &plan, &err);
    if (rc < 0)
        die(err.text);
    run(&s, plan);
    plan_free(plan);
    curl_global_cleanup();
    return 0;
}

/* Runs the engine alone, without a master, for tests and benchmarks:
 *   engine_run [option...] URL|scenario.json|tasks.so
 *     -H HOST     for requests with a path only; it wins over the scenario's
 *     -s SHARDS  -u USERS  -r USERS_PER_S  -c (libcurl's engine)  -p (phases)
 *     -w SECONDS  warm up: what is printed is of the time after it
 *     -t SECONDS  and then run so long
 *     -n REQUESTS or until so many are done. For a prompt end the samples are asked for each
 *                 millisecond, which costs: not for measuring.
 *     -o SECONDS  the stop timeout
 * Prints one JSON object: what was counted, the CPU time of a request, the memory. */
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

#define SPAWN_STEP_MS 10

struct settings {
    struct engine_options engine;
    uint32_t users;
    double users_per_s; /* 0: all at once */
    double warm_up_s;
    double seconds;
    uint64_t requests;
    double stop_timeout_s;
    const char *host; /* NULL: the scenario's */
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
    while ((c = getopt(argc, argv, "H:s:u:r:w:t:n:o:cp")) != -1) {
        switch (c) {
        case 'H':
            s.host = optarg;
            break;
        case 's':
            s.engine.shards = (unsigned)number(optarg);
            break;
        case 'u':
            s.users = (uint32_t)number(optarg);
            break;
        case 'r':
            s.users_per_s = number(optarg);
            break;
        case 'w':
            s.warm_up_s = number(optarg);
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

/* Resident memory now, without what was given back. */
static uint64_t resident_kb(void)
{
    char text[128];
    struct str rest, field;
    uint64_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || !fgets(text, sizeof text, f))
        die("no /proc/self/statm");
    (void)fclose(f);
    rest = str_of(text); /* the second field */
    if (!str_next(&rest, ' ', &field) || !str_next(&rest, ' ', &field) ||
        num_parse_u64(field, UINT32_MAX, &pages) < 0)
        die("/proc/self/statm is not understood");
    return pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* The most that it was. Not getrusage's: a process inherits that from the one that started it. */
static uint64_t peak_kb(void)
{
    char line[128];
    uint64_t kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && kb == 0 && fgets(line, sizeof line, f)) {
        if (strncmp(line, "VmHWM:", 6) == 0)
            kb = strtoull(line + 6, NULL, 10);
    }
    if (f)
        (void)fclose(f);
    if (kb == 0)
        die("/proc/self/status is not understood");
    return kb;
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

/* What was used, and what of it was there before. */
struct usage {
    uint64_t from_us;
    double cpu_s;
    uint64_t base_kb; /* before the first user */
    uint64_t resident_kb;
};

static void print(const struct stats *stats, const struct engine_status *st,
                  const struct usage *usage)
{
    double wall = (double)(clock_mono_us() - usage->from_us) / 1e6, cpu = cpu_s() - usage->cpu_s;
    struct stats_entry *total;
    uint64_t p50 = 0, p99 = 0;
    if (stats_total(stats, &total) < 0)
        die("out of memory");
    (void)histogram_percentile(&total->response_times, 0.5, &p50);
    (void)histogram_percentile(&total->response_times, 0.99, &p99);
    (void)printf("{\"requests\": %" PRIu64 ", \"failures\": %" PRIu64 ", \"started\": %" PRIu64
                 ", \"succeeded\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"interrupted\": %" PRIu64
                 ", \"retries\": %" PRIu64 ", \"bytes\": %" PRIu64,
                 total->num_requests, total->num_failures, st->started, st->succeeded, st->failed,
                 st->interrupted, st->retries, total->total_content_length_bytes);
    print_details(total->details);
    (void)printf(", \"rps\": %.0f, \"us_per_req\": %.3f, \"cpu_s\": %.3f, \"p50_us\": %" PRIu64
                 ", \"p99_us\": %" PRIu64 ", \"base_kb\": %" PRIu64 ", \"resident_kb\": %" PRIu64
                 ", \"peak_kb\": %" PRIu64 ", \"errors\": [",
                 (double)total->num_requests / wall,
                 total->num_requests ? cpu * 1e6 / (double)total->num_requests : 0, cpu, p50, p99,
                 usage->base_kb, usage->resident_kb, peak_kb());
    print_errors(stats);
    (void)printf("], \"entries\": [");
    print_entries(stats);
    (void)printf("]}\n");
    stats_entry_free(total);
}

/* Start the users, at their rate. */
static void spawn(const struct settings *s, const struct plan *plan, struct engine *e,
                  struct stats *stats)
{
    struct err err = {0};
    uint32_t *targets = calloc(plan->class_count, sizeof *targets), started = 0;
    uint64_t start_us = clock_mono_us();
    if (!targets)
        die("out of memory");
    for (;;) {
        double due = s->users_per_s * (double)(clock_mono_us() - start_us) / 1e6;
        uint32_t want = s->users_per_s > 0 && due < s->users ? (uint32_t)due : s->users;
        for (; started < want; started++)
            targets[started % plan->class_count]++;
        if (engine_set_users(e, targets, s->stop_timeout_s, &err) < 0)
            die(err.text);
        if (started == s->users)
            break;
        poll_for(e, stats, SPAWN_STEP_MS);
    }
    free(targets);
}

static void take_all(struct engine *e, struct stats *stats)
{
    if (engine_request_stats(e) < 0)
        die("a shard is gone");
    while (!engine_stats_complete(e))
        poll_for(e, stats, 1000);
    take(e, stats);
}

/* Let it run, and forget what was counted. */
static void warm_up(const struct settings *s, struct engine *e, struct stats *stats)
{
    uint64_t end_us = clock_mono_us() + (uint64_t)(s->warm_up_s * 1e6), now_us;
    while ((now_us = clock_mono_us()) < end_us)
        poll_for(e, stats, (int)((end_us - now_us) / 1000) + 1);
    take_all(e, stats);
    stats_clear(stats, clock_wall_s());
}

/* Until the time is over or enough requests are done. */
static void load(const struct settings *s, struct engine *e, struct stats *stats)
{
    uint64_t start_us = clock_mono_us();
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
    take_all(e, stats);
}

static void run(const struct settings *s, struct plan *plan)
{
    struct engine *e;
    struct stats *stats;
    struct err err = {0};
    struct engine_status st;
    if (engine_new(plan, &s->engine, &e, &err) < 0)
        die(err.text);
    if (s->host && engine_set_host(e, str_of(s->host), &err) < 0)
        die(err.text);
    if (stats_new(s->engine.limits, clock_wall_s(), &stats) < 0)
        die("out of memory");
    struct usage usage = {.base_kb = resident_kb(), .from_us = clock_mono_us(), .cpu_s = cpu_s()};
    spawn(s, plan, e, stats);
    if (s->warm_up_s > 0) {
        warm_up(s, e, stats);
        usage.from_us = clock_mono_us();
        usage.cpu_s = cpu_s();
    }
    load(s, e, stats);
    usage.resident_kb = resident_kb();
    finish(s, e, stats);
    engine_status(e, &st);
    print(stats, &st, &usage);
    engine_free(e);
    stats_free(stats);
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

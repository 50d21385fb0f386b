/* Harvests one run and prints {"document", "flat", "failures", "remarks", "seconds"} for the tests
 * against a real Prometheus and against faulty servers. */
#include "base/clock.h"
#include "base/num.h"
#include "telemetry/harvest.h"

#include <curl/curl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#define LIST_MAX 64

struct arguments {
    struct telemetry_options options;
    struct profile profile;
    struct window_sample samples[LIST_MAX];
    const char *headers[LIST_MAX];
    bool aborted;
};

static void stop(const char *text)
{
    fprintf(stderr, "%s\n", text);
    exit(2);
}

static double number(struct str text)
{
    double v;
    if (num_parse_double(text, &v) < 0)
        stop("not a number");
    return v;
}

/* "A:B" */
static void pair(const char *text, double *ret_a, double *ret_b)
{
    struct str s = str_of(text);
    size_t at = str_find(s, ':');
    *ret_a = number(str_sub(s, 0, at));
    *ret_b = number(str_sub(s, at + 1, s.len));
}

static void set_variable(struct arguments *a, const char *text)
{
    struct err err = {0};
    struct str s = str_of(text);
    size_t at = str_find(s, '=');
    if (profile_set_variable(&a->profile, str_sub(s, 0, at), str_sub(s, at + 1, s.len), &err) < 0)
        stop(err.text);
}

static void load_profile(struct arguments *a, const char *name)
{
    struct err err = {0};
    profile_done(&a->profile);
    if (profile_load(name, &a->profile, &err) < 0)
        stop(err.text);
}

static void take(struct arguments *a, int option, const char *value)
{
    struct telemetry_options *o = &a->options;
    switch (option) {
    case 'u':
        o->access.url = value;
        break;
    case 'p':
        load_profile(a, value);
        break;
    case 'v':
        set_variable(a, value);
        break;
    case 'r':
        pair(value, &o->run.start_s, &o->run.end_s);
        break;
    case 's':
        if (o->sample_count < LIST_MAX)
            pair(value, &a->samples[o->sample_count].wall_s, &a->samples[o->sample_count].users);
        o->sample_count += o->sample_count < LIST_MAX;
        break;
    case 'l':
        o->lag_s = measure_of(number(str_of(value)));
        break;
    case 'w':
        o->worker_pod_count = measure_of(number(str_of(value)));
        break;
    case 'b':
        o->access.bearer_token = value;
        break;
    case 'c':
        o->access.tls.ca.file = value;
        break;
    case 'h':
        if (o->access.header_count < LIST_MAX)
            a->headers[o->access.header_count++] = value;
        break;
    case 'a':
        a->aborted = true;
        break;
    default:
        stop("unknown option");
    }
}

static json_t *lines_json(const struct notes *n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n->count; i++)
        (void)json_array_append_new(list, json_string(n->lines[i])); /* a test sees it missing */
    return list;
}

static void print(const struct telemetry_result *r, double seconds)
{
    struct buf text;
    buf_init(&text, 64u << 20);
    json_t *all =
        json_pack("{s:O, s:O, s:o, s:o, s:f}", "document", r->document, "flat", r->flat, "failures",
                  lines_json(&r->failures), "remarks", lines_json(&r->remarks), "seconds", seconds);
    if (summary_write(&text, all) < 0)
        stop("out of memory");
    fputs(buf_c(&text), stdout);
    json_decref(all);
    buf_done(&text);
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"url", 1, NULL, 'u'},    {"profile", 1, NULL, 'p'}, {"var", 1, NULL, 'v'},
        {"run", 1, NULL, 'r'},    {"sample", 1, NULL, 's'},  {"lag", 1, NULL, 'l'},
        {"pods", 1, NULL, 'w'},   {"bearer", 1, NULL, 'b'},  {"ca", 1, NULL, 'c'},
        {"header", 1, NULL, 'h'}, {"aborted", 0, NULL, 'a'}, {NULL, 0, NULL, 0},
    };
    struct arguments a = {0};
    load_profile(&a, "substrate");
    for (int option; (option = getopt_long(argc, argv, "", longs, NULL)) != -1;)
        take(&a, option, optarg);
    a.options.profile = &a.profile;
    a.options.samples = a.samples;
    a.options.access.headers = a.headers;
    a.options.test_name = "unit-run";
    a.options.tag = "unit";
    a.options.data_timestamp = "2023-11-14T22:13:20Z";
    if (curl_global_init(CURL_GLOBAL_DEFAULT))
        stop("curl");
    int abort_fd = eventfd(a.aborted ? 1 : 0, EFD_CLOEXEC);
    struct telemetry_result result;
    uint64_t began = clock_mono_us();
    if (telemetry_harvest(&a.options, abort_fd, &result) < 0)
        stop("out of memory");
    print(&result, (double)(clock_mono_us() - began) / 1e6);
    telemetry_result_done(&result);
    profile_done(&a.profile);
    curl_global_cleanup();
    return 0;
}

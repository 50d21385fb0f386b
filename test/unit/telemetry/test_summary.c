#include "telemetry/harvest.h"
#include "telemetry/summary.h"
#include "test/unit/alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char own[] =
    "{\"profile\":\"own\",\"measurements\":["
    "{\"name\":\"pool\",\"kind\":\"state_packing\",\"query\":\"x\",\"process\":[\"p\"],"
    "\"state\":\"s\",\"busy\":[\"b\"]},"
    "{\"name\":\"a.load\",\"kind\":\"range_distribution\",\"query\":\"x\",\"count_as\":\"a.n\","
    "\"flat\":\"load_{avg}\"},"
    "{\"name\":\"a.{p50,mean}_s\",\"kind\":\"histogram_quantiles\",\"histogram\":\"h\","
    "\"flat\":\"took_{mean}\"},"
    "{\"name\":\"a.rows\",\"kind\":\"counter_growth\",\"counter\":\"c\",\"integer\":true},"
    "{\"name\":\"mb_s\",\"kind\":\"counter_growth\",\"counter\":\"c\",\"per_second\":true},"
    "{\"name\":\"hidden\",\"kind\":\"value\",\"query\":\"x\",\"flat\":null}]}";

static struct profile own_profile(void)
{
    struct profile p;
    struct err err = {0};
    if (profile_parse(str_of(own), "own", &p, &err) < 0)
        fail_msg("%s", err.text);
    return p;
}

static void check_text(const json_t *json, const char *want)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    assert_string_equal(text, want);
    free(text);
}

#define STATS_NULL                                                                                 \
    "{\"min\":null,\"p50\":null,\"p90\":null,\"p95\":null,\"p99\":null,\"max\":null,\"avg\":null}"

static void test_unknown_is_null_everywhere(void **state)
{
    (void)state;
    struct profile p = own_profile();
    struct measured none[6] = {0};
    struct summary_head head = {0};
    json_auto_t *document = summary_document(&head, &p, none), *flat = summary_flat(&p, none);
    check_text(document, "{\"metadata\":{\"test_name\":null,\"tag\":null,\"data_timestamp\":null,"
                         "\"prom_url\":null,\"profile\":\"own\",\"start_ts\":0,\"end_ts\":0,"
                         "\"steady_start_ts\":0,\"steady_end_ts\":0,\"telemetry_lag_s\":0,"
                         "\"worker_pod_count\":null,\"queries_ok\":0,\"queries_failed\":0},"
                         "\"pool\":{\"summary\":" STATS_NULL ",\"timeseries\":[]},"
                         "\"a\":{\"load\":" STATS_NULL ",\"n\":null,\"p50_s\":null,\"mean_s\":null,"
                         "\"rows\":null},\"mb_s\":null,\"hidden\":null}");
    check_text(flat, "{\"pool_p50\":null,\"pool_p90\":null,\"pool_p95\":null,\"pool_p99\":null,"
                     "\"load_avg\":null,\"took_mean\":null,\"a_rows\":null,\"mb_s\":null}");
    profile_done(&p);
}

static void test_zero_is_zero_and_numbers_are_plain(void **state)
{
    (void)state;
    struct profile p = own_profile();
    struct packing_point points[] = {{1700000000, 3, 4, {true, 0.75}},
                                     {1700000010.5, 0, 0, {false, 0}}};
    struct measured m[6] = {
        {.packing = {.points = points, .count = 2}},
        {.series_count = {true, 2}},
        {.values = {{true, 0.0375}, {true, 101}}},
        {.values = {{true, 0}}},
        {.values = {{true, 0}}},
        {.values = {{true, 19.5833}}},
    };
    double values[] = {0, 0.1};
    m[0].distribution = m[0].packing.summary = distribution_of(values, 2);
    m[1].distribution = distribution_of(values, 2);
    struct summary_head head = {.worker_pod_count = {true, 5},
                                .test_name = "a\xff"
                                             "b"};
    json_auto_t *document = summary_document(&head, &p, m), *flat = summary_flat(&p, m);
    check_text(json_object_get(document, "pool"),
               "{\"summary\":{\"min\":0.0,\"p50\":0.1,\"p90\":0.1,\"p95\":0.1,\"p99\":0.1,"
               "\"max\":0.1,\"avg\":0.05},\"timeseries\":["
               "{\"timestamp\":1700000000,\"busy_workers\":3,\"total_workers\":4,"
               "\"packing_ratio\":0.75},"
               "{\"timestamp\":1700000010.5,\"busy_workers\":0,\"total_workers\":0,"
               "\"packing_ratio\":null}]}");
    check_text(json_object_get(json_object_get(document, "a"), "rows"), "0");
    check_text(json_object_get(document, "mb_s"), "0.0");
    check_text(json_object_get(document, "hidden"), "19.5833");
    check_text(json_object_get(json_object_get(document, "metadata"), "worker_pod_count"), "5");
    check_text(json_object_get(json_object_get(document, "metadata"), "test_name"),
               "\"a\xEF\xBF\xBD"
               "b\"");
    check_text(flat, "{\"pool_p50\":\"0.1\",\"pool_p90\":\"0.1\",\"pool_p95\":\"0.1\","
                     "\"pool_p99\":\"0.1\",\"load_avg\":\"0.05\",\"took_mean\":\"101.0\","
                     "\"a_rows\":\"0\",\"mb_s\":\"0.0\"}");
    profile_done(&p);
}

static void test_urls_are_shown_without_user_info(void **state)
{
    (void)state;
    static const struct {
        const char *url, *shown;
    } cases[] = {
        {"http://127.0.0.1:9090", "\"http://127.0.0.1:9090\""},
        {"https://me:se%40cret@prom.example/base/", "\"https://prom.example/base/\""},
        {"http://me:secret@h:1?token=x", "\"http://h:1\""},
        {"prom:9090", "null"},
    };
    struct profile p = own_profile();
    struct measured none[6] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct summary_head head = {.url = cases[i].url};
        json_auto_t *document = summary_document(&head, &p, none);
        check_text(json_object_get(json_object_get(document, "metadata"), "prom_url"),
                   cases[i].shown);
    }
    profile_done(&p);
}

/* The names that output-files.md promises, in full. */
static void test_substrate_gives_every_documented_name(void **state)
{
    (void)state;
    static const char *const stats[] = {"min", "p50", "p90", "p95", "p99", "max", "avg"};
    static const char *const distributions[] = {
        "cluster_packing.summary", "node_psi.cpu_stall_pct",      "node_psi.mem_stall_pct",
        "node_psi.io_stall_pct",   "node_psi.cfs_throttled_rate", "pod_psi.cpu_stall_pct",
        "pod_psi.mem_stall_pct",   "pod_psi.io_stall_pct"};
    static const char *const snapshots[] = {
        "size_p50_mb",       "size_p90_mb",      "size_p95_mb",           "size_p99_mb",
        "size_avg_mb",       "restore_p50_s",    "checkpoints_in_window", "checkpoints_cumulative",
        "restore_p90_s",     "restore_p95_s",    "restore_p99_s",         "restore_mean_s",
        "checkpoint_p50_s",  "checkpoint_p90_s", "checkpoint_p95_s",      "checkpoint_p99_s",
        "checkpoint_mean_s", "checkpoint_mb_s",  "throughput_mb_s"};
    static const char flat_names[] =
        "cluster_packing_p50 cluster_packing_p90 cluster_packing_p95 cluster_packing_p99 "
        "psi_cpu_stall_p50 psi_cpu_stall_p90 psi_cpu_stall_p95 psi_cpu_stall_p99 "
        "psi_mem_stall_p50 psi_mem_stall_p90 psi_mem_stall_p95 psi_mem_stall_p99 "
        "psi_io_stall_p50 psi_io_stall_p90 psi_io_stall_p95 psi_io_stall_p99 "
        "pod_psi_cpu_stall_p50 pod_psi_cpu_stall_p90 pod_psi_cpu_stall_p95 pod_psi_cpu_stall_p99 "
        "pod_psi_mem_stall_p50 pod_psi_mem_stall_p90 pod_psi_mem_stall_p95 pod_psi_mem_stall_p99 "
        "pod_psi_io_stall_p50 pod_psi_io_stall_p90 pod_psi_io_stall_p95 pod_psi_io_stall_p99 "
        "cfs_throttled_rate_avg snapshot_size_p50_mb snapshot_size_p90_mb snapshot_size_p95_mb "
        "snapshot_size_p99_mb snapshot_size_avg_mb checkpoints_in_window "
        "restore_p50_s restore_p90_s restore_p95_s restore_p99_s restore_mean_s "
        "checkpoint_p50_s checkpoint_p90_s checkpoint_p95_s checkpoint_p99_s checkpoint_mean_s "
        "checkpoint_mb_s checkpoint_throughput_mb_s";
    struct profile p;
    struct telemetry_result r;
    assert_int_equal(profile_load("substrate", &p, NULL), 0);
    struct telemetry_options o = {.profile = &p, .run = {100, 150}};
    assert_int_equal(telemetry_harvest(&o, -1, &r), 0); /* no URL: nothing is asked */
    assert_int_equal(r.failures.count, 0);
    assert_int_equal(json_object_size(r.document), 5);
    for (size_t i = 0; i < sizeof distributions / sizeof *distributions; i++) {
        struct str path = str_of(distributions[i]);
        size_t dot = str_find(path, '.');
        const json_t *at =
            json_object_get(json_object_getn(r.document, path.ptr, dot), path.ptr + dot + 1);
        for (size_t k = 0; k < DISTRIBUTION_STATS; k++)
            assert_true(json_is_null(json_object_get(at, stats[k])));
    }
    const json_t *s = json_object_get(r.document, "snapshots");
    for (size_t i = 0; i < sizeof snapshots / sizeof *snapshots; i++)
        assert_true(json_is_null(json_object_get(s, snapshots[i])));
    assert_int_equal(json_object_size(s), sizeof snapshots / sizeof *snapshots);
    assert_true(json_is_null(json_object_get(json_object_get(r.document, "node_psi"), "nodes")));
    assert_true(json_is_null(json_object_get(json_object_get(r.document, "pod_psi"), "pods")));
    struct str rest = str_of(flat_names), name;
    size_t names = 0;
    for (; str_next(&rest, ' ', &name); names++) {
        if (!json_is_null(json_object_getn(r.flat, name.ptr, name.len)))
            fail_msg("%.*s", STR_ARG(name));
    }
    assert_int_equal(json_object_size(r.flat), names);
    telemetry_result_done(&r);
    telemetry_result_done(&r);
    profile_done(&p);
}

static void test_a_bad_url_is_one_line(void **state)
{
    (void)state;
    struct profile p = own_profile();
    struct telemetry_result r;
    struct telemetry_options o = {.profile = &p, .run = {100, 150}, .access = {.url = "prom:9090"}};
    assert_int_equal(telemetry_harvest(&o, -1, &r), 0);
    assert_int_equal(r.failures.count, 1);
    assert_string_equal(r.failures.lines[0], "Prometheus: not an absolute http or https URL");
    assert_int_equal(r.queries_ok, 0);
    assert_true(r.queries_failed > 0);
    telemetry_result_done(&r);
    profile_done(&p);
}

static void test_the_longest_harvest(void **state)
{
    (void)state;
    struct profile p;
    assert_int_equal(profile_load("substrate", &p, NULL), 0);
    assert_float_equal(telemetry_longest_s(&p, MEASURE_UNKNOWN), 70 + 8, 0);
    assert_float_equal(telemetry_longest_s(&p, measure_of(600)), 600 + 8, 0);
    assert_float_equal(telemetry_longest_s(&p, measure_of(0)), 5 + 8, 0); /* the probe's time-out */
    profile_done(&p);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    struct packing_point points[] = {{1, 3, 4, {true, 0.75}}};
    struct measured m[6] = {{.packing = {.points = points, .count = 1}}};
    struct summary_head head = {.url = "http://me:secret@h/", .test_name = "x"};
    json_set_alloc_funcs(malloc, free);
    struct profile p = own_profile();
    json_t *whole = summary_document(&head, &p, m);
    for (unsigned long n = 1;; n++) {
        struct buf text;
        buf_init(&text, 1u << 20);
        alloc_fail_at(n);
        json_t *document = summary_document(&head, &p, m), *flat = summary_flat(&p, m);
        int rc = document && flat ? summary_write(&text, document) : -ENOMEM;
        bool failed = alloc_failed();
        alloc_fail_at(0);
        /* jansson gives up its search for loops when it finds no memory for that */
        assert_true(rc == -ENOMEM || json_equal(document, whole));
        json_decref(document);
        json_decref(flat);
        buf_done(&text);
        if (!failed)
            break;
    }
    json_decref(whole);
    profile_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_is_null_everywhere),
        cmocka_unit_test(test_zero_is_zero_and_numbers_are_plain),
        cmocka_unit_test(test_urls_are_shown_without_user_info),
        cmocka_unit_test(test_substrate_gives_every_documented_name),
        cmocka_unit_test(test_a_bad_url_is_one_line),
        cmocka_unit_test(test_the_longest_harvest),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

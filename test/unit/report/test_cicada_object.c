#include "worker/report/cicada_object.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_json(json_t *got, const char *want)
{
    json_error_t e;
    json_t *wanted = json_loads(want, 0, &e);
    assert_non_null(wanted);
    if (!json_equal(got, wanted)) {
        char *text = json_dumps(got, JSON_INDENT(1));
        print_error("%s\n", text);
        free(text);
        fail();
    }
    json_decref(wanted);
    json_decref(got);
}

#define NO_REQUESTS                                                                                \
    "\"requests_started\": 0, \"requests_succeeded\": 0, \"requests_failed\": 0,"                  \
    "\"requests_interrupted\": 0"

static void test_a_worker_tells_of_itself_alone(void **state)
{
    (void)state;
    const struct generator_verdict verdict = {.cpu_p50 = measure_of(30),
                                              .cpu_p90 = measure_of(90),
                                              .cpu_max = measure_of(95.5),
                                              .missed_starts_1ms = 7,
                                              .missed_starts_10ms = 3,
                                              .connect_errors = 1,
                                              .retries = 2,
                                              .sockets_peak = 8,
                                              .saturated = true,
                                              .reasons = "CPU above 90 %"};
    struct cicada_object c = {
        .cpu_pct = measure_of(37.5),
        .loop_lag_ms = measure_of(0),
        .generator = &verdict,
        .requests = {.started = 10, .succeeded = 6, .failed = 3, .interrupted = 1},
        .may_report = true,
        .report_within_s = measure_of(13), /* which count for */
        .over = true};                     /* a reporter only */
    assert_json(
        cicada_object_json(&c),
        "{\"version\": \"" CICADA_VERSION
        "\", \"reporter\": false, \"may_report\": true, \"generator\": "
        "{\"cpu_pct\": 37.5, \"loop_lag_ms\": 0.0, \"requests_started\": 10,"
        " \"requests_succeeded\": 6, \"requests_failed\": 3, \"requests_interrupted\": 1,"
        " \"cpu_p50\": 30.0, \"cpu_p90\": 90.0, \"cpu_max\": 95.5, \"loop_lag_p99_ms\": null,"
        " \"missed_starts\": 7, \"missed_starts_over_10ms\": 3, \"connect_errors\": 1,"
        " \"retries\": 2, \"sockets_peak\": 8, \"saturated\": true,"
        " \"saturated_reasons\": \"CPU above 90 %\"}}");
    c = (struct cicada_object){.reporter = true}; /* before the run is over */
    assert_json(cicada_object_json(&c),
                "{\"version\": \"" CICADA_VERSION
                "\", \"reporter\": true, \"may_report\": false, \"generator\": "
                "{\"cpu_pct\": null, \"loop_lag_ms\": null, " NO_REQUESTS "}}");
    c.report_within_s = measure_of(83);
    assert_json(cicada_object_json(&c),
                "{\"version\": \"" CICADA_VERSION
                "\", \"reporter\": true, \"may_report\": false, \"generator\": "
                "{\"cpu_pct\": null, \"loop_lag_ms\": null, " NO_REQUESTS "},"
                " \"report_within_s\": 83.0}");
}

static struct cicada_object full(json_t *flat, json_t *document)
{
    static char machine[] = "n2-standard-4";
    static struct cluster_facts facts;
    static struct frontiers frontiers;
    static struct actors_summary actors;
    facts = (struct cluster_facts){.node_count = measure_of(2),
                                   .allocatable_cores = measure_of(7.84),
                                   .allocatable_ram_gb = measure_of(26),
                                   .worker_pod_count = measure_of(4),
                                   .machine_type = machine,
                                   .capacity_scope = FACTS_SCOPE_WORKER_NODES};
    frontiers = (struct frontiers){.actors_per_node = measure_of(10),
                                   .ap_ratio_p50 = measure_of(5),
                                   .aggregate_failure_ratio = measure_of(0)};
    actors =
        (struct actors_summary){.running_peak = measure_of(12), .crashed_final = measure_of(0)};
    return (struct cicada_object){.reporter = true,
                                  .over = true,
                                  .complete = true,
                                  .start_s = 1700000000.5,
                                  .end_s = 1700000060,
                                  .facts = &facts,
                                  .frontiers = &frontiers,
                                  .users_source = USERS_SOURCE_MASTER_WEB,
                                  .actors_per_user = 1,
                                  .actors = &actors,
                                  .test_name = "shop \xc3\xa4",
                                  .tag = "a\xff", /* no UTF-8 */
                                  .server_flat = flat,
                                  .server_document = document};
}

static void test_the_leader_tells_all_when_the_run_is_over(void **state)
{
    (void)state;
    json_t *flat = json_pack("{s:s, s:n}", "cluster_packing_p50", "0.5", "checkpoint_mb_s");
    json_t *document = json_pack("{s:{s:n}}", "metadata", "tag");
    const struct cicada_object c = full(flat, document);
    assert_json(
        cicada_object_json(&c),
        "{\"version\": \"" CICADA_VERSION
        "\", \"reporter\": true, \"may_report\": false, \"complete\": true,"
        " \"start_s\": 1700000000.5, \"end_s\": 1700000060.0, \"users_source\": \"master_web\","
        " \"actors_per_user\": 1.0,"
        " \"test_name\": \"shop \xc3\xa4\", \"tag\": null, \"generator\":"
        " {\"cpu_pct\": null, \"loop_lag_ms\": null, " NO_REQUESTS "},"
        " \"cluster_facts\": {\"machine_type\": \"n2-standard-4\", \"node_count\": 2,"
        " \"allocatable_cores\": 7.84, \"allocatable_ram_gb\": 26.0, \"worker_pod_count\": 4,"
        " \"capacity_scope\": \"worker_nodes\"},"
        " \"frontiers\": {\"actors_per_node\": 10.0, \"actors_per_vcpu\": null,"
        " \"actors_per_gb_ram\": null, \"ap_ratio_p50\": 5.0, \"ap_ratio_p90\": null,"
        " \"ap_ratio_p99\": null, \"actors_per_pod_p50\": null, \"actors_per_pod_p90\": null,"
        " \"actors_per_pod_p99\": null, \"aggregate_failure_ratio\": 0.0},"
        " \"actors\": {\"running_actors_peak\": 12, \"running_actors_p50\": null,"
        " \"running_actors_p90\": null, \"live_actors_peak\": null,"
        " \"hibernate_pending_actors_peak\": null, \"crashed_actors_final\": 0},"
        " \"server_summary\": {\"cluster_packing_p50\": \"0.5\", \"checkpoint_mb_s\": null},"
        " \"server_document\": {\"metadata\": {\"tag\": null}}}");
    json_decref(document);
    json_decref(flat);
}

static void test_what_is_not_known_is_null(void **state)
{
    (void)state;
    const struct cicada_object c = {.reporter = true, .over = true, .actors_per_user = 2};
    json_t *root = cicada_object_json(&c);
    assert_true(json_is_false(json_object_get(root, "complete")));
    assert_true(json_is_null(json_object_get(root, "users_source")));
    assert_null(json_object_get(root, "actors"));
    assert_null(json_object_get(root, "server_summary"));
    const char *key;
    json_t *value;
    unsigned count = 0;
    json_object_foreach(json_object_get(root, "cluster_facts"), key, value)
    {
        assert_true(json_is_null(value));
        count++;
    }
    assert_int_equal(count, 6);
    json_object_foreach(json_object_get(root, "frontiers"), key, value)
    {
        assert_true(json_is_null(value));
        count++;
    }
    assert_int_equal(count, 16);
    json_decref(root);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    json_set_alloc_funcs(malloc, free); /* jansson's allocations fail as well */
    json_t *flat = json_pack("{s:s}", "checkpoints_in_window", "3");
    json_t *document = json_pack("{s:{s:n}}", "metadata", "tag");
    const struct generator_verdict verdict = {.reasons = ""};
    struct cicada_object c = full(flat, document);
    c.generator = &verdict;
    json_t *whole = cicada_object_json(&c);
    for (unsigned long n = 1;; n++) {
        alloc_fail_at(n);
        json_t *root = cicada_object_json(&c);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_true(failed || root);
        assert_true(!root || json_equal(root, whole)); /* whole or not at all */
        json_decref(root);
        if (!failed)
            break;
    }
    json_decref(whole);
    json_decref(document);
    json_decref(flat);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_worker_tells_of_itself_alone),
        cmocka_unit_test(test_the_leader_tells_all_when_the_run_is_over),
        cmocka_unit_test(test_what_is_not_known_is_null),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "facts/frontiers.h"

#include "facts/json.h"
#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define SAMPLES 300

static void assert_measure(struct measure m, double want)
{
    assert_true(m.known);
    assert_true(m.value == want);
}

static void test_steady_samples_make_the_ratio(void **state)
{
    (void)state;
    struct users_sample samples[SAMPLES] = {{0, 1}, {1, 50}, {2, 89}};
    struct frontiers f;
    for (int i = 0; i < 200; i++)
        samples[3 + i] = (struct users_sample){3 + i, 100 + i};
    struct frontiers_input in = {.samples = samples,
                                 .sample_count = 203,
                                 .target_users = measure_of(100),
                                 .actors_per_user = 1,
                                 .worker_pod_count = measure_of(5)};
    assert_int_equal(frontiers_compute(&in, &f), 0);
    assert_measure(f.ap_ratio_p50, 40.0);
    assert_measure(f.ap_ratio_p90, 56.0);
    assert_measure(f.ap_ratio_p99, 59.6);
    /* all 203: v[101] = 198, v[182] = 279, v[200] = 297 */
    assert_measure(f.actors_per_pod_p50, 39.6);
    assert_measure(f.actors_per_pod_p90, 55.8);
    assert_measure(f.actors_per_pod_p99, 59.4);
    assert_false(f.actors_per_node.known);
    assert_false(f.aggregate_failure_ratio.known);

    /* a target nobody comes near: nine tenths of the peak of 299 are 269.1, so 270 to 299 */
    in.target_users = measure_of(1000);
    assert_int_equal(frontiers_compute(&in, &f), 0);
    assert_measure(f.ap_ratio_p50, 57.0); /* v[15] = 285 */
    in.target_users = MEASURE_UNKNOWN;
    assert_int_equal(frontiers_compute(&in, &f), 0);
    assert_measure(f.ap_ratio_p50, 57.0);
}

static void test_one_constant_sample(void **state)
{
    (void)state;
    struct users_sample sample = {0, 10};
    struct frontiers f;
    struct frontiers_input in = {.samples = &sample,
                                 .sample_count = 1,
                                 .actors_per_user = 1,
                                 .node_count = measure_of(1),
                                 .allocatable_cores = measure_of(3.92),
                                 .allocatable_ram_gb = measure_of(12.96),
                                 .worker_pod_count = measure_of(5),
                                 .requests = 100,
                                 .failures = 25};
    assert_int_equal(frontiers_compute(&in, &f), 0);
    assert_measure(f.actors_per_node, 10.0);
    assert_measure(f.actors_per_vcpu, 2.55);
    assert_measure(f.actors_per_gb_ram, 0.77);
    assert_measure(f.ap_ratio_p50, 2.0);
    assert_measure(f.ap_ratio_p99, 2.0);
    assert_measure(f.aggregate_failure_ratio, 0.25);
    in.actors_per_user = 2.5;
    assert_int_equal(frontiers_compute(&in, &f), 0);
    assert_measure(f.actors_per_node, 25.0);
    assert_measure(f.ap_ratio_p50, 5.0);
}

static void test_pods_unknown_or_none(void **state)
{
    (void)state;
    struct users_sample sample = {0, 10};
    const struct measure pods[] = {MEASURE_UNKNOWN, measure_of(0)};
    for (int i = 0; i < 2; i++) {
        struct frontiers f;
        struct frontiers_input in = {.samples = &sample,
                                     .sample_count = 1,
                                     .actors_per_user = 1,
                                     .node_count = measure_of(2),
                                     .worker_pod_count = pods[i]};
        assert_int_equal(frontiers_compute(&in, &f), 0);
        assert_false(f.ap_ratio_p50.known || f.ap_ratio_p90.known || f.ap_ratio_p99.known);
        assert_false(f.actors_per_pod_p50.known);
        assert_measure(f.actors_per_node, 5.0);
    }
}

static void test_zero_users_are_measured_but_never_steady(void **state)
{
    (void)state;
    struct users_sample samples[] = {{0, 0}, {1, 0}};
    struct frontiers f;
    struct frontiers_input in = {.samples = samples,
                                 .sample_count = 2,
                                 .actors_per_user = 1,
                                 .node_count = measure_of(2),
                                 .worker_pod_count = measure_of(5)};
    assert_int_equal(frontiers_compute(&in, &f), 0);
    assert_measure(f.actors_per_node, 0.0);
    assert_measure(f.actors_per_pod_p50, 0.0);
    assert_false(f.ap_ratio_p50.known);
    in.sample_count = 0;
    assert_int_equal(frontiers_compute(&in, &f), 0);
    assert_false(f.actors_per_node.known || f.actors_per_pod_p50.known);
}

static void test_failure_ratio(void **state)
{
    (void)state;
    assert_measure(failure_ratio(25, 100), 0.25);
    assert_measure(failure_ratio(0, 1708), 0.0);
    assert_false(failure_ratio(0, 0).known);
}

static void test_steady_edges(void **state)
{
    (void)state;
    assert_true(users_steady(90, 100));
    assert_false(users_steady(89.9, 100));
    assert_true(users_steady(6.3, 7)); /* 0.9 * 7 rounds, 63 tenths do not */
    assert_true(users_steady(1, 1));
    assert_false(users_steady(0, 0));
}

static void test_nearest_rank(void **state)
{
    (void)state;
    double v[200];
    for (int i = 0; i < 200; i++)
        v[i] = 200 - i;
    sort_doubles(v, 200);
    static const struct {
        size_t count;
        double q, want;
    } cases[] = {{200, 0.5, 101}, {200, 0.9, 181}, {200, 0.95, 191}, {200, 0.99, 199},
                 {200, 1.0, 200}, {200, 0.0, 1},   {1, 0.99, 1},     {2, 0.5, 2},
                 {10, 0.9, 10},   {3, 0.5, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_measure(nearest_rank(v, cases[i].count, cases[i].q), cases[i].want);
    assert_false(nearest_rank(v, 0, 0.5).known);
}

static void test_snake_case(void **state)
{
    (void)state;
    static const struct {
        const char *name, *want;
    } cases[] = {{"DurDirWrite", "dur_dir_write"},
                 {"GET /api/v1?x=1", "get_api_v1_x_1"},
                 {"HTTPServer2Ready", "http_server2_ready"},
                 {"fooBar", "foo_bar"},
                 {"__a--b__", "a_b"},
                 {"/", ""},
                 {"", ""},
                 {"aB", "a_b"},
                 {"ABC", "abc"},
                 {"caf\xc3\xa9 Noir", "caf\xc3\xa9_noir"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf b;
        buf_init(&b, 100);
        assert_int_equal(snake_case(&b, str_of(cases[i].name)), 0);
        assert_string_equal(buf_c(&b), cases[i].want);
        buf_done(&b);
    }
}

static void test_json_null_is_never_zero(void **state)
{
    (void)state;
    struct frontiers f = {.actors_per_node = measure_of(0), .actors_per_vcpu = measure_of(2.55)};
    json_t *object = facts_frontiers(&f);
    char *text = json_dumps(object, JSON_COMPACT | FACTS_DUMP_FLAGS);
    assert_string_equal(text, "{\"actors_per_node\":0.0,\"actors_per_vcpu\":2.55,"
                              "\"actors_per_gb_ram\":null,\"ap_ratio_p50\":null,"
                              "\"ap_ratio_p90\":null,\"ap_ratio_p99\":null,"
                              "\"aggregate_failure_ratio\":null}");
    free(text);
    json_decref(object);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    struct frontiers f;
    struct frontiers_input in = {0};
    alloc_fail_at(1);
    int rc = frontiers_compute(&in, &f);
    alloc_fail_at(0);
    assert_int_equal(rc, -ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steady_samples_make_the_ratio),
        cmocka_unit_test(test_one_constant_sample),
        cmocka_unit_test(test_pods_unknown_or_none),
        cmocka_unit_test(test_zero_users_are_measured_but_never_steady),
        cmocka_unit_test(test_failure_ratio),
        cmocka_unit_test(test_steady_edges),
        cmocka_unit_test(test_nearest_rank),
        cmocka_unit_test(test_snake_case),
        cmocka_unit_test(test_json_null_is_never_zero),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

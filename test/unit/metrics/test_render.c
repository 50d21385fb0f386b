#include "worker/metrics/render.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct plan_class classes[] = {{.name = {"Shopper", 7}}, {.name = {"A\"b\\c\nd", 7}}};
static const struct plan plan = {.classes = classes, .class_count = 2};

static char *render(struct stats *stats, enum metrics_format format)
{
    static const uint32_t running[] = {3, 0};
    const struct engine_status status = {
        .running = running,
        .running_total = 3,
        .cpu_pct = 12.5,
        .loop_lag_ms = 2,
        .started = 9,
        .in_flight = 1,
        .interrupted = 2,
        .connections_opened = 4,
    };
    const struct metrics_input input = {
        .plan = &plan, .stats = stats, .engine = &status, .state = "running", .saturated = false};
    struct buf out;
    buf_init(&out, METRICS_MAX_BYTES);
    assert_int_equal(metrics_render(&out, format, &input), 0);
    return buf_take(&out);
}

static struct stats *some_stats(void)
{
    struct stats *s;
    uint32_t slot;
    static const uint64_t times_us[] = {90, 100, 101, 999, 61000000};
    assert_int_equal(stats_new((struct stats_limits){0}, 1000, &s), 0);
    assert_int_equal(stats_slot(s, STR("GET"), STR("/a\"b"), &slot), 0);
    for (size_t i = 0; i < sizeof times_us / sizeof *times_us; i++) {
        struct stats_sample sample = {times_us[i], 10, 1001};
        stats_record(s, slot, &sample);
    }
    stats_record_error(s, slot, STR("HTTP status 404"), 1001);
    return s;
}

static void assert_has(const char *page, const char *line)
{
    if (!strstr(page, line))
        fail_msg("no line %s in:\n%s", line, page);
}

static void test_every_family_in_text(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "# TYPE cicada_requests_total counter\n",
        "\ncicada_requests_total{method=\"GET\",name=\"/a\\\"b\"} 5\n",
        "\ncicada_failures_total{method=\"GET\",name=\"/a\\\"b\",reason=\"HTTP status 404\"} 1\n",
        "\ncicada_response_bytes_total{method=\"GET\",name=\"/a\\\"b\"} 50\n",
        "\ncicada_response_time_seconds_bucket{method=\"GET\",name=\"/a\\\"b\",le=\"0.0001\"} 2\n",
        "\ncicada_response_time_seconds_bucket{method=\"GET\",name=\"/a\\\"b\",le=\"0.00025\"} 3\n",
        "\ncicada_response_time_seconds_bucket{method=\"GET\",name=\"/a\\\"b\",le=\"0.001\"} 4\n",
        "\ncicada_response_time_seconds_bucket{method=\"GET\",name=\"/a\\\"b\",le=\"60.0\"} 4\n",
        "\ncicada_response_time_seconds_bucket{method=\"GET\",name=\"/a\\\"b\",le=\"+Inf\"} 5\n",
        "\ncicada_response_time_seconds_sum{method=\"GET\",name=\"/a\\\"b\"} 61.00129\n",
        "\ncicada_response_time_seconds_count{method=\"GET\",name=\"/a\\\"b\"} 5\n",
        "\ncicada_users{user_class=\"Shopper\",state=\"running\"} 3\n",
        "\ncicada_users{user_class=\"A\\\"b\\\\c\\nd\",state=\"running\"} 0\n",
        "\ncicada_state{state=\"running\"} 1\n",
        "\ncicada_state{state=\"ready\"} 0\n",
        "\ncicada_cpu_ratio 0.125\n",
        "\ncicada_loop_lag_seconds 0.002\n",
        "\ncicada_requests_started_total 9\n",
        "\ncicada_requests_in_flight 1.0\n",
        "\ncicada_connections_opened_total 4\n",
    };
    struct stats *s = some_stats();
    char *page = render(s, METRICS_TEXT);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_has(page, lines[i]);
    assert_null(strstr(page, "# EOF"));
    free(page);
    stats_free(s);
}

static void test_openmetrics_names_families_without_total_and_ends(void **state)
{
    (void)state;
    struct stats *s = some_stats();
    char *page = render(s, METRICS_OPENMETRICS);
    assert_has(page, "# TYPE cicada_requests counter\n");
    assert_has(page, "\ncicada_requests_total{method=\"GET\"");
    assert_string_equal(page + strlen(page) - 6, "# EOF\n");
    free(page);
    stats_free(s);
}

static void test_without_requests_there_are_heads_only(void **state)
{
    (void)state;
    struct stats *s;
    assert_int_equal(stats_new((struct stats_limits){0}, 1000, &s), 0);
    char *page = render(s, METRICS_TEXT);
    assert_has(page, "# TYPE cicada_response_time_seconds histogram\n");
    assert_null(strstr(page, "_bucket"));
    free(page);
    stats_free(s);
}

static void test_a_page_too_large_is_said(void **state)
{
    (void)state;
    struct stats *s = some_stats();
    static const uint32_t running[] = {0, 0};
    const struct engine_status status = {.running = running};
    const struct metrics_input input = {
        .plan = &plan, .stats = s, .engine = &status, .state = "ready"};
    struct buf out;
    buf_init(&out, 300);
    assert_int_equal(metrics_render(&out, METRICS_TEXT, &input), -ERANGE);
    buf_done(&out);
    stats_free(s);
}

static void test_accept_header(void **state)
{
    (void)state;
    assert_int_equal(metrics_accepted(str_of(NULL)), METRICS_TEXT);
    assert_int_equal(metrics_accepted(STR("text/plain;version=0.0.4")), METRICS_TEXT);
    assert_int_equal(
        metrics_accepted(STR("application/openmetrics-text;version=1.0.0,text/plain;q=0.5")),
        METRICS_OPENMETRICS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_family_in_text),
        cmocka_unit_test(test_openmetrics_names_families_without_total_and_ends),
        cmocka_unit_test(test_without_requests_there_are_heads_only),
        cmocka_unit_test(test_a_page_too_large_is_said),
        cmocka_unit_test(test_accept_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

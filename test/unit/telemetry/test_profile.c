#include "telemetry/builtin.h"
#include "telemetry/profile.h"
#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define PROFILE(measurements) "{\"profile\":\"own\",\"measurements\":[" measurements "]}"
#define VALUE(more)           "{\"name\":\"a\",\"kind\":\"value\",\"query\":\"up\"" more "}"

static void test_shipped_profiles_load(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double lag_s;
        const char *variable;
    } cases[] = {
        {"substrate", 70, "pods"}, {"kubernetes", 0, "namespace"}, {"node", 0, "instance"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct profile p;
        struct err err = {0};
        if (profile_load(cases[i].name, &p, &err) < 0)
            fail_msg("%s", err.text);
        assert_string_equal(p.name, cases[i].name);
        assert_true(p.lag_s == cases[i].lag_s && p.step_s == 10);
        assert_int_equal(profile_set_variable(&p, str_of(cases[i].variable), STR("x.*"), &err), 0);
        assert_string_equal(json_string_value(json_object_get(p.variables, cases[i].variable)),
                            "x.*");
        profile_done(&p);
        profile_done(&p);
    }
}

static void test_own_profile(void **state)
{
    (void)state;
    static const char text[] = PROFILE(
        "{\"name\":\"db.rows\",\"kind\":\"counter_growth\",\"counter\":\"rows_total{db=\\\"${db}"
        "\\\"}\","
        "\"integer\":true,\"late\":true,\"divide_by\":2},"
        "{\"name\":\"db.{p50,mean}_s\",\"kind\":\"histogram_quantiles\",\"histogram\":\"t\"},"
        "{\"name\":\"db.load\",\"kind\":\"range_distribution\",\"query\":\"x\",\"count_as\":\"db."
        "n\"},"
        "{\"name\":\"hidden\",\"kind\":\"value\",\"query\":\"x\",\"flat\":null}");
    struct buf with_variables;
    buf_init(&with_variables, 10000);
    assert_int_equal(buf_printf(&with_variables, "{\"variables\":{\"db\":\"main\"},%s", text + 1),
                     0);
    struct profile p;
    struct err err = {0};
    if (profile_parse(buf_str(&with_variables), "own.json", &p, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(p.count, 4);
    const struct profile_measurement *m = p.measurements;
    assert_true(m[0].kind == PROFILE_COUNTER_GROWTH && m[0].integer && m[0].late);
    assert_true(m[0].divide_by == 2 && m[0].multiply_by == 1);
    assert_string_equal(m[0].flat, "db_rows");
    assert_string_equal(m[1].flat, "db_{p50,mean}_s");
    assert_string_equal(m[2].flat, "db_load_{p50,p90,p95,p99}");
    assert_string_equal(m[2].count_as, "db.n");
    assert_null(m[3].flat);
    assert_true(p.lag_s == 0);
    profile_done(&p);
    buf_done(&with_variables);
}

static const struct {
    const char *text, *reason;
} refused[] = {
    {"", "my.json: line 1, column 0: '[' or '{' expected near end of file"},
    {"{\n \"a\": 1,\n}", "my.json: line 3, column 1: string or '}' expected near '}'"},
    {"{\"a\":1,\"a\":2}", "my.json: line 1, column 10: duplicate object key near '\"a\"'"},
    {"[]", "my.json: must be a JSON object"},
    {"{}", "my.json: 'profile' must be the profile's name"},
    {"{\"profile\":\"x\",\"lag\":1}", "my.json: 'lag' is no known key"},
    {"{\"profile\":\"x\",\"telemetry_lag_s\":-1}",
     "my.json: 'telemetry_lag_s' must be seconds from 0 to 3600"},
    {"{\"profile\":\"x\",\"step_s\":\"10s\"}", "my.json: 'step_s' must be seconds from 1 to 3600"},
    {"{\"profile\":\"x\",\"variables\":[]}", "my.json: 'variables' must be an object of texts"},
    {"{\"profile\":\"x\",\"variables\":{\"a\":1}}", "my.json: variables: 'a' must be a text"},
    {"{\"profile\":\"x\"}", "my.json: 'measurements' must be a list of 1 to 200 objects"},
    {PROFILE(""), "my.json: 'measurements' must be a list of 1 to 200 objects"},
    {PROFILE("3"), "my.json: measurements[0] '': must be an object"},
    {PROFILE("{}"), "my.json: measurements[0] '': 'kind': '' is none of range_distribution, value, "
                    "counter_growth, growth_ratio, histogram_quantiles, state_packing"},
    {PROFILE("{\"kind\":\"value\",\"query\":\"x\"}"),
     "my.json: measurements[0] '': 'name' is missing"},
    {PROFILE("{\"kind\":\"value\",\"name\":\"a\"}"),
     "my.json: measurements[0] 'a': 'query' is missing"},
    {PROFILE(VALUE(",\"qury\":\"x\"")), "my.json: measurements[0] 'a': 'qury' is no known key"},
    {PROFILE(VALUE(",\"counter\":\"x\"")),
     "my.json: measurements[0] 'a': 'counter' does not go with this kind"},
    {PROFILE(VALUE(",\"late\":1")), "my.json: measurements[0] 'a': 'late': must be true or false"},
    {PROFILE(VALUE(",\"divide_by\":0")),
     "my.json: measurements[0] 'a': 'divide_by': must be a number above 0"},
    {PROFILE(VALUE(",\"unit\":7")), "my.json: measurements[0] 'a': 'unit': must be a text"},
    {PROFILE(VALUE(",\"flat\":\"a.b\"")),
     "my.json: measurements[0] 'a': 'flat': must have no dots"},
    {PROFILE(VALUE(",\"flat\":\"a_{p50}\"")),
     "my.json: measurements[0] 'a': 'flat': must have no braces"},
    {PROFILE("{\"kind\":\"value\",\"name\":\"a\",\"query\":\"x ${pod}\"}"),
     "my.json: measurements[0] 'a': 'query': unknown placeholder 'pod'"},
    {PROFILE("{\"kind\":\"value\",\"name\":\"a\\u0000b\",\"query\":\"x\"}"),
     "my.json: line 1, column 66: \\u0000 is not allowed without JSON_ALLOW_NUL near "
     "'\"a\\u0000b\"'"},
    {PROFILE("{\"kind\":\"value\",\"name\":\"a..b\",\"query\":\"x\"}"),
     "my.json: measurements[0] 'a..b': 'name': must be names of letters, digits and '_' joined by "
     "dots, not 'metadata'"},
    {PROFILE("{\"kind\":\"value\",\"name\":\"metadata.a\",\"query\":\"x\"}"),
     "my.json: measurements[0] 'metadata.a': 'name': must be names of letters, digits and '_' "
     "joined by dots, not 'metadata'"},
    {PROFILE("{\"kind\":\"value\",\"name\":\"a{\",\"query\":\"x\"}"),
     "my.json: measurements[0] 'a{': 'name': braces do not match"},
    {PROFILE("{\"kind\":\"counter_growth\",\"name\":\"a\",\"counter\":\"rate(x[1m])\"}"),
     "my.json: measurements[0] 'a': 'counter': must be one selector such as "
     "name{label=\"value\"}, with nothing behind it"},
    {PROFILE("{\"kind\":\"histogram_quantiles\",\"name\":\"a_{p50}\","
             "\"histogram\":\"x_bucket{a=\\\"b\\\"}\"}"),
     "my.json: measurements[0] 'a_{p50}': 'histogram': must be the histogram's own name, without "
     "'_bucket'"},
    {PROFILE("{\"kind\":\"growth_ratio\",\"name\":\"a\",\"counter\":\"x\"}"),
     "my.json: measurements[0] 'a': 'over' is missing"},
    {PROFILE("{\"kind\":\"histogram_quantiles\",\"name\":\"a\",\"histogram\":\"x\"}"),
     "my.json: measurements[0] 'a': 'name': needs a list such as {p50,p99}"},
    {PROFILE("{\"kind\":\"histogram_quantiles\",\"name\":\"a_{p50,max}\",\"histogram\":\"x\"}"),
     "my.json: measurements[0] 'a_{p50,max}': 'name': 'max' is none of pNN, pNN_N, avg, mean"},
    {PROFILE("{\"kind\":\"histogram_quantiles\",\"name\":\"a_{p50}\",\"histogram\":\"x\","
             "\"flat\":\"a_{p50,p90}\"}"),
     "my.json: measurements[0] 'a_{p50}': 'flat': 'p90' is not in the name"},
    {PROFILE(
         "{\"kind\":\"range_distribution\",\"name\":\"a\",\"query\":\"x\",\"flat\":\"a_{p75}\"}"),
     "my.json: measurements[0] 'a': 'flat': 'p75' is none of min, p50, p90, p95, p99, max, avg"},
    {PROFILE("{\"kind\":\"state_packing\",\"name\":\"a\",\"query\":\"x\",\"process\":[],"
             "\"state\":\"s\",\"busy\":[\"b\"]}"),
     "my.json: measurements[0] 'a': 'process': must be a list of 1 to 16 texts"},
    {PROFILE(VALUE("") "," VALUE("")), "my.json: measurements[1]: the name 'a' is taken already"},
    {PROFILE(VALUE("") ",{\"kind\":\"value\",\"name\":\"a.b\",\"query\":\"x\"}"),
     "my.json: measurements[1]: 'a.b' lies within the result 'a'"},
    {PROFILE("{\"kind\":\"value\",\"name\":\"a.b\",\"query\":\"x\"}," VALUE("")),
     "my.json: measurements[1]: the name 'a' is taken already"},
    {PROFILE("{\"kind\":\"value\",\"name\":\"a.b\",\"query\":\"x\"},"
             "{\"kind\":\"value\",\"name\":\"a_b\",\"query\":\"x\"}"),
     "my.json: measurements[1]: the name 'a_b' is taken already"},
};

static void test_refused_with_file_and_path(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct profile p;
        struct err err = {0};
        if (profile_parse(str_of(refused[i].text), "my.json", &p, &err) != -EINVAL)
            fail_msg("%s: taken", refused[i].text);
        assert_string_equal(err.text, refused[i].reason);
        profile_done(&p);
    }
}

static void test_files(void **state)
{
    (void)state;
    char path[] = "/tmp/profile-XXXXXX";
    int fd = mkstemp(path);
    struct profile p;
    struct err err = {0};
    assert_true(fd >= 0);
    static const char text[] = PROFILE(VALUE(""));
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    assert_int_equal(profile_load(path, &p, &err), 0);
    assert_string_equal(p.name, "own");
    profile_done(&p);
    unlink(path);
    assert_int_equal(profile_load(path, &p, &err), -ENOENT);
    assert_non_null(strstr(err.text, path));
    profile_done(&p);
    err = (struct err){0};
    assert_int_equal(profile_load("kubernetis", &p, &err), -ENOENT);
    assert_non_null(strstr(err.text, "(" BUILTIN_PROFILE_NAMES ")"));
    profile_done(&p);
}

static void test_variables(void **state)
{
    (void)state;
    struct profile p;
    struct err err = {0};
    assert_int_equal(profile_load("kubernetes", &p, &err), 0);
    assert_int_equal(profile_set_variable(&p, STR("ns"), STR("x"), &err), -ENOENT);
    assert_string_equal(err.text, "the telemetry profile 'kubernetes' has no variable 'ns'; it "
                                  "has: namespace, pod, rate");
    assert_int_equal(profile_set_variable(&p, STR(""), STR("x"), NULL), -ENOENT);
    assert_int_equal(profile_set_variable(&p, STR("pod"), STR("\xff"), NULL), -EINVAL);
    assert_int_equal(profile_set_variable(&p, STR("pod"), STR(""), NULL), 0);
    profile_done(&p);
}

static void test_items(void **state)
{
    (void)state;
    static const struct {
        const char *item;
        double q;
    } good[] = {{"p50", 0.5}, {"p99_9", 0.999}, {"p0", 0}, {"p100", 1}, {"p5", 0.05}};
    static const char *const bad[] = {"", "p", "50", "p101", "p-1", "p1e1", "p9_9_9", "max", "p+5"};
    double q;
    bool mean;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(profile_item_parse(str_of(good[i].item), &q, &mean));
        assert_false(mean);
        if (q < good[i].q - 1e-12 || q > good[i].q + 1e-12)
            fail_msg("%s: %g", good[i].item, q);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (profile_item_parse(str_of(bad[i]), &q, &mean))
            fail_msg("%s", bad[i]);
    }
    assert_true(profile_item_parse(STR("mean"), &q, &mean) && mean);
    assert_true(profile_item_parse(STR("avg"), &q, &mean) && mean);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    static const char text[] =
        "{\"profile\":\"own\",\"measurements\":["
        "{\"name\":\"b.{p50}\",\"kind\":\"histogram_quantiles\",\"histogram\":\"x{a=\\\"b\\\"}\"},"
        "{\"name\":\"b.c\",\"kind\":\"range_distribution\",\"query\":\"x ${start}\","
        "\"count_as\":\"n\"}," VALUE(",\"flat\":\"f\"") "]}";
    json_set_alloc_funcs(malloc, free);
    for (unsigned long n = 1;; n++) {
        struct profile p;
        alloc_fail_at(n);
        int rc = profile_parse(str_of(text), "my.json", &p, NULL);
        if (rc == 0)
            rc = profile_set_variable(&p, STR("none"), STR("x"), NULL);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        profile_done(&p);
        if (!failed)
            break;
        assert_true(rc < 0); /* jansson calls some of its own a syntax error */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped_profiles_load),
        cmocka_unit_test(test_own_profile),
        cmocka_unit_test(test_refused_with_file_and_path),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

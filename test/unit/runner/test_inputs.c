#include "worker/runner/inputs.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SETS(...)                                                                                  \
    (const struct str[]){__VA_ARGS__},                                                             \
        sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str)

/* An engine that writes down what it is given; "broken" finds no memory. */
struct engine {
    struct buf said;
};

int engine_set_variable(struct engine *e, struct str name, struct str value)
{
    if (str_eq(name, STR("broken")))
        return -ENOMEM;
    if (!value.ptr)
        return buf_printf(&e->said, "<%.*s none>", STR_ARG(name));
    return buf_printf(&e->said, "<%.*s=%.*s>", STR_ARG(name), STR_ARG(value));
}

static struct plan *plan_with(const char *variables)
{
    char text[512];
    struct plan *plan;
    struct err err = {0};
    (void)snprintf(text, sizeof text,
                   "{\"host\": \"http://h\", \"variables\": {%s}, \"tasks\": "
                   "[{\"steps\": [{\"set\": {\"inner\": 1}}, \"/${inner}\"]}]}",
                   variables);
    if (plan_load_json(str_of(text), "s.json", NULL, &plan, &err) < 0)
        fail_msg("%s", err.text);
    return plan;
}

static void check(const struct plan *plan, const struct str *sets, size_t count, const char *why)
{
    struct err err = {0};
    assert_int_equal(inputs_check(plan, sets, count, &err), why ? -EINVAL : 0);
    assert_string_equal(err.text, why ? why : "");
}

static void test_only_declared_variables_are_taken(void **state)
{
    (void)state;
    struct plan *plan = plan_with("\"region\": \"eu\", \"token\": null");
    check(plan, NULL, 0, NULL);
    check(plan, SETS(STR("token=x"), STR("region="), STR("token=a=b")), NULL);
    check(plan, SETS(STR("token")), "--set: must be NAME=VALUE");
    check(plan, SETS(STR("=secret")), "--set: must be NAME=VALUE");
    check(plan, SETS(STR("token=x"), STR("tokem=secret")),
          "--set: the scenario declares no variable 'tokem'; it has: region, token");
    /* a step's own is none from outside */
    check(plan, SETS(STR("inner=1")),
          "--set: the scenario declares no variable 'inner'; it has: region, token");
    plan_free(plan);
    plan = plan_with("");
    check(plan, SETS(STR("a=1")), "--set: the scenario declares no variable 'a'");
    plan_free(plan);
}

static void test_a_test_in_c_takes_any_variable(void **state)
{
    (void)state;
    const struct plan plan = {.native = (void *)1};
    check(&plan, SETS(STR("whatever=1")), NULL);
    check(&plan, SETS(STR("whatever")), "--set: must be NAME=VALUE");
}

static void apply(const struct plan *plan, const struct str *sets, size_t count,
                  const char *arguments, int rc, const char *said)
{
    struct engine e;
    json_t *json = arguments ? json_loads(arguments, 0, NULL) : NULL;
    buf_init(&e.said, 1000);
    assert_true(json || !arguments);
    assert_int_equal(inputs_apply(&e, plan, sets, count, json), rc);
    assert_string_equal(buf_c(&e.said), said);
    json_decref(json);
    buf_done(&e.said);
}

static void test_the_masters_arguments_win_over_the_last_set(void **state)
{
    (void)state;
    struct plan *plan = plan_with("\"a\": 1, \"b\": null, \"c\": \"x\"");
    apply(plan, NULL, 0, NULL, 0, "<a none><b none><c none>");
    apply(plan, SETS(STR("b=1"), STR("b=2=3"), STR("c=")), NULL, 0, "<a none><b=2=3><c=>");
    apply(plan, SETS(STR("a=1"), STR("b=2"), STR("c=3")),
          "{\"a\": \"text\", \"b\": 7, \"c\": true, \"users\": 5}", 0, "<a=text><b=7><c=true>");
    /* what is no single value counts for nothing */
    apply(plan, SETS(STR("a=1"), STR("b=2")), "{\"a\": null, \"b\": [1], \"c\": {}}", 0,
          "<a=1><b=2><c none>");
    apply(plan, NULL, 0, "{\"a\": 0.5, \"b\": \"\", \"c\": false}", 0, "<a=0.5><b none><c=false>");
    /* an empty field of the web page does not give what must be given */
    apply(plan, SETS(STR("b=2"), STR("c=3")), "{\"b\": \"\", \"c\": \"\"}", 0, "<a none><b=2><c=>");
    plan_free(plan);
}

static void test_a_test_in_c_gets_all_there_is(void **state)
{
    (void)state;
    const struct plan plan = {.native = (void *)1};
    apply(&plan, SETS(STR("a=1"), STR("b=2"), STR("a=3")), "{\"b\": \"x\", \"n\": null, \"u\": 5}",
          0, "<a=3><b=2><a=3><b=x><u=5>");
}

static void test_want_of_memory_is_told(void **state)
{
    (void)state;
    const struct plan native = {.native = (void *)1};
    struct plan *plan = plan_with("\"a\": 1, \"broken\": 2, \"c\": 3");
    apply(plan, NULL, 0, NULL, -ENOMEM, "<a none>");
    apply(&native, SETS(STR("broken=1"), STR("a=1")), NULL, -ENOMEM, "");
    apply(&native, NULL, 0, "{\"broken\": 1}", -ENOMEM, "");
    plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_declared_variables_are_taken),
        cmocka_unit_test(test_a_test_in_c_takes_any_variable),
        cmocka_unit_test(test_the_masters_arguments_win_over_the_last_set),
        cmocka_unit_test(test_a_test_in_c_gets_all_there_is),
        cmocka_unit_test(test_want_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "worker/engine/binding.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define NO_HOST ((struct str){NULL, 0})

/* An engine that prepares nothing but counts. */
static unsigned prepared;
static unsigned prepare_at_most;

static int prepare(struct http_call *call)
{
    if (prepared == prepare_at_most)
        return -ENOMEM;
    prepared++;
    call->prepared = &prepared;
    return 0;
}

static void unprepare(struct http_call *call)
{
    prepared -= call->prepared != NULL;
    call->prepared = NULL;
}

static const struct binding_inputs no_inputs = {.values = NULL};
static const struct http_ops counting_ops = {.prepare = prepare, .unprepare = unprepare};

static struct plan *load(const char *text)
{
    struct plan *plan = NULL;
    struct err err = {0};
    if (plan_load_json(str_of(text), "test", NULL, &plan, &err) < 0)
        fail_msg("%s", err.text);
    return plan;
}

static struct binding *bind(const struct plan *plan, struct str host)
{
    struct binding *b = NULL;
    struct err err = {0};
    prepare_at_most = 1000;
    if (binding_new(plan, &counting_ops, host, &no_inputs, &b, &err) < 0)
        fail_msg("%s", err.text);
    return b;
}

static const char *url_of(const struct binding *b, size_t class, size_t task, size_t step)
{
    return b->classes[class].tasks[task].calls[step].url.ptr;
}

static const char two_classes[] =
    "{\"host\": \"http://plan/base\", \"users\": ["
    "{\"name\": \"A\", \"tasks\": [\"/x\", {\"name\": \"two\", \"steps\": [\"/y?z=1\", "
    "{\"post\": \"http://absolute/w\", \"body\": \"b\", \"headers\": {\"X\": \"1\"}, "
    "\"timeout\": 2}]}]},"
    "{\"name\": \"B\", \"host\": \"https://class\", \"tasks\": [\"/x\"]}]}";

static void test_hosts_win_in_locusts_order(void **state)
{
    (void)state;
    struct plan *plan = load(two_classes);
    struct binding *b = bind(plan, NO_HOST);
    assert_string_equal(url_of(b, 0, 0, 0), "http://plan/base/x");
    assert_string_equal(url_of(b, 0, 1, 0), "http://plan/base/y?z=1");
    assert_string_equal(url_of(b, 0, 1, 1), "http://absolute/w");
    assert_string_equal(url_of(b, 1, 0, 0), "https://class/x");
    binding_unref(b);
    b = bind(plan, STR("http://given:81/"));
    assert_string_equal(url_of(b, 0, 0, 0), "http://given:81/x");
    assert_string_equal(url_of(b, 0, 1, 1), "http://absolute/w");
    assert_string_equal(url_of(b, 1, 0, 0), "http://given:81/x");
    binding_unref(b);
    plan_free(plan);
    assert_int_equal(prepared, 0);
}

static void test_calls_are_those_of_the_plan(void **state)
{
    (void)state;
    struct plan *plan = load(two_classes);
    struct binding *b = bind(plan, NO_HOST);
    const struct http_call *call = &b->classes[0].tasks[1].calls[1];
    assert_true(str_eq(call->method, STR("POST")));
    assert_true(str_eq(call->body, STR("b")));
    assert_int_equal(call->header_count, 1);
    assert_true(str_eq(call->headers[0].name, STR("X")));
    assert_int_equal(call->timeouts.total_us, 2000000);
    assert_int_equal(b->call_count, 4);
    assert_int_equal(prepared, 4);
    binding_unref(b);
    plan_free(plan);
}

static void test_a_class_without_a_host_is_told(void **state)
{
    (void)state;
    struct plan *plan = load("{\"users\": [{\"name\": \"A\", \"tasks\": [\"/x\"]},"
                             "{\"name\": \"B\", \"tasks\": [\"http://h/x\"]},"
                             "{\"name\": \"C\", \"host\": \"http://c\", \"tasks\": [\"/x\"]}]}");
    struct binding *b = bind(plan, NO_HOST);
    assert_true(b->classes[0].lacks_host);
    assert_false(b->classes[1].lacks_host);
    assert_false(b->classes[2].lacks_host);
    assert_string_equal(url_of(b, 0, 0, 0), "");
    binding_unref(b);
    b = bind(plan, STR("http://given"));
    assert_false(b->classes[0].lacks_host);
    binding_unref(b);
    plan_free(plan);
}

static void test_what_is_no_host_is_refused(void **state)
{
    (void)state;
    static const char *const hosts[] = {"", "h", "h:80", "ftp://h", "http://", "http://h/?q"};
    struct plan *plan = load(two_classes);
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        struct binding *b = NULL;
        struct err err = {0};
        assert_int_equal(binding_new(plan, &counting_ops, str_of(hosts[i]), &no_inputs, &b, &err),
                         -EINVAL);
        assert_null(b);
        assert_true(strncmp(err.text, "host '", 6) == 0);
    }
    plan_free(plan);
    assert_int_equal(prepared, 0);
}

static void test_the_last_reference_frees(void **state)
{
    (void)state;
    struct plan *plan = load(two_classes);
    struct binding *b = bind(plan, NO_HOST);
    assert_ptr_equal(binding_ref(b), b);
    binding_unref(b);
    assert_int_equal(prepared, 4);
    assert_string_equal(url_of(b, 0, 0, 0), "http://plan/base/x");
    binding_unref(b);
    assert_int_equal(prepared, 0);
    binding_unref(NULL);
    plan_free(plan);
}

static void test_without_memory_nothing_leaks(void **state)
{
    (void)state;
    struct plan *plan = load(two_classes);
    int rc;
    unsigned long n = 0;
    do {
        struct binding *b = NULL;
        struct err err = {0};
        prepare_at_most = 1000;
        alloc_fail_at(++n);
        rc = binding_new(plan, &counting_ops, STR("http://h"), &no_inputs, &b, &err);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        binding_unref(b);
        assert_int_equal(prepared, 0);
    } while (rc != 0);
    assert_true(n > 4);
    for (prepare_at_most = 0; prepare_at_most < 4; prepare_at_most++) {
        struct binding *b = NULL;
        assert_int_equal(binding_new(plan, &counting_ops, NO_HOST, &no_inputs, &b, NULL), -ENOMEM);
        assert_null(b);
        assert_int_equal(prepared, 0);
    }
    plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts_win_in_locusts_order),
        cmocka_unit_test(test_calls_are_those_of_the_plan),
        cmocka_unit_test(test_a_class_without_a_host_is_told),
        cmocka_unit_test(test_what_is_no_host_is_refused),
        cmocka_unit_test(test_the_last_reference_frees),
        cmocka_unit_test(test_without_memory_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Requests made of variables, without sending them. */
#include "test/unit/alloc.h"
#include "worker/engine/made_call.h"
#include "worker/engine/user.h"
#include "worker/engine/variables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char scenario[] =
    "{\"host\": \"http://${region}.h/base\", \"variables\": {\"region\": \"eu\", \"five\": 5, "
    "\"path\": "
    "\"http://other/x y?q\", \"line\": \"a\\nb\", \"empty\": \"\", \"pad\": \"  \"}, \"tasks\": "
    "[{\"steps\": ["
    "{\"post\": \"/p/${five}\", \"query\": {\"a b\": \"${region}&\"}, \"headers\": {\"A\": \"1\", "
    "\"B\": \"${pad}5\"}, "
    "\"json\": {\"n\": \"${five}\", \"s\": \"<${five}>\"}},"
    "{\"get\": \"${path}\"},"
    "{\"get\": \"/x\", \"name\": \"in ${region}\"},"
    "{\"get\": \"/x\", \"host\": \"https://${five}\"},"
    "{\"get\": \"/x\", \"headers\": {\"A\": \"${line}\"}},"
    "{\"get\": \"/x\", \"host\": \"${empty}\"},"
    "{\"get\": \"/${later}\"}, {\"set\": {\"later\": 1}}"
    "]}]}";

static unsigned prepared;

static int prepare(struct http_call *call)
{
    call->prepared = malloc(1);
    prepared += call->prepared != NULL;
    return call->prepared ? 0 : -ENOMEM;
}

static void unprepare(struct http_call *call)
{
    prepared -= call->prepared != NULL;
    free(call->prepared);
    call->prepared = NULL;
}

static const struct http_ops ops = {.prepare = prepare, .unprepare = unprepare};

struct world {
    struct plan *plan;
    struct binding *binding;
    struct shard shard;
    struct user user;
};

static void begin(struct world *w)
{
    struct err err = {0};
    *w = (struct world){0};
    if (plan_load_json(str_of(scenario), "s.json", NULL, &w->plan, &err) < 0 ||
        binding_new(w->plan, &ops, (struct str){NULL, 0}, NULL, &w->binding, &err) < 0)
        fail_msg("%s", err.text);
    w->shard.plan = w->plan;
    w->shard.ops = &ops;
    rng_init(&w->shard.rng, 1);
    w->user = (struct user){.shard = &w->shard, .binding = w->binding};
    w->user.variables = variables_new(w->plan, 1);
    assert_non_null(w->user.variables);
}

static void end(struct world *w)
{
    variables_free(w->user.variables, &w->shard);
    made_call_free_all(&w->shard);
    binding_unref(w->binding);
    plan_free(w->plan);
    assert_int_equal(prepared, 0);
}

static int make(struct world *w, size_t step, struct made_call **ret)
{
    const struct plan_task *task = &w->plan->classes[0].tasks[0];
    const struct http_call *bound = &w->binding->classes[0].tasks[0].calls[step];
    assert_true(bound->once);
    return made_call_new(&w->user, &task->steps[step].request, bound, 1000000, ret);
}

static void test_parts(void **state)
{
    struct world w;
    struct made_call *m;
    (void)state;
    begin(&w);
    assert_int_equal(make(&w, 0, &m), 0);
    assert_string_equal(m->call.url.ptr, "http://eu.h/base/p/5?a+b=eu%26");
    assert_int_equal(m->call.header_count, 3);
    assert_true(str_eq(m->call.headers[0].value, STR("1")));
    assert_true(str_eq(m->call.headers[1].value, STR("5")));
    assert_true(str_eq(m->call.headers[2].value, STR("application/json")));
    assert_true(str_eq(m->call.body, STR("{\"n\": 5, \"s\": \"<5>\"}")));
    assert_true(str_eq(m->name, STR("/p/:five?a+b=:region%26")));
    made_call_release(m, &w.shard);
    assert_int_equal(make(&w, 1, &m), 0); /* in the memory of the first */
    assert_string_equal(m->call.url.ptr, "http://other/x%20y?q");
    assert_true(str_eq(m->name, STR("/x%20y")));
    assert_int_equal(m->call.header_count, 0);
    assert_null(m->call.body.ptr);
    made_call_release(m, &w.shard);
    assert_int_equal(make(&w, 2, &m), 0);
    assert_string_equal(m->call.url.ptr, "http://eu.h/base/x");
    assert_true(str_eq(m->name, STR("in eu")));
    made_call_release(m, &w.shard);
    assert_int_equal(make(&w, 3, &m), 0);
    assert_string_equal(m->call.url.ptr, "https://5/x");
    made_call_release(m, &w.shard);
    end(&w);
}

static void test_what_cannot_be_sent(void **state)
{
    static const struct {
        size_t step;
        const char *error;
    } cases[] = {
        {4, "request has a header value with control characters"},
        {5, "request has no valid URL"},
        {6, "variable has no value: later"},
    };
    struct world w;
    (void)state;
    begin(&w);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made_call *m;
        assert_int_equal(make(&w, cases[i].step, &m), -EINVAL);
        assert_string_equal(m->error, cases[i].error);
        assert_true(m->name.len > 0);
        made_call_release(m, &w.shard);
    }
    made_call_release(NULL, &w.shard);
    end(&w);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    for (size_t step = 0; step < 4; step++) {
        for (unsigned long n = 1;; n++) {
            struct world w;
            struct made_call *m = NULL;
            begin(&w);
            alloc_fail_at(n);
            int rc = make(&w, step, &m);
            bool failed = alloc_failed();
            alloc_fail_at(0);
            assert_int_equal(rc, failed ? -ENOMEM : 0);
            made_call_release(m, &w.shard);
            end(&w);
            if (!failed)
                break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_what_cannot_be_sent),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Checks and extraction, without a server: a scenario's one request, a response, and what comes of
 * it. */
#include "test/unit/alloc.h"
#include "worker/engine/answer.h"
#include "worker/engine/user.h"
#include "worker/engine/variables.h"
#include "worker/scenario/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char head[] = "Content-Type: text/x; a=b\r\nX-Count: 12\r\nSet-Cookie: other=1\r\n"
                           "set-cookie: sid=abc ; Path=/\r\nX-Empty:\r\n\r\n";
static const char body[] = "{\"ok\": true, \"n\": 5, \"s\": \"caf\\u00e9\", \"none\": null, \"a\": "
                           "[1, \"2\", {\"b\": -0.5}], \"t\": \"5\"}";

/* A user of a plan whose first task has one request. */
struct world {
    struct plan *plan;
    struct binding binding;
    struct shard shard;
    struct user user;
    const struct plan_request *request;
    struct http_result result;
};

static void begin(struct world *w, const char *options)
{
    char text[2000];
    struct err err = {0};
    *w = (struct world){0};
    (void)snprintf(text, sizeof text,
                   "{\"variables\": {\"five\": \"5\", \"word\": \"ok\"}, \"tasks\": [{\"steps\": "
                   "[{\"get\": \"/\", %s}]}]}",
                   options);
    if (plan_load_json(str_of(text), "s.json", NULL, &w->plan, &err) < 0)
        fail_msg("%s", err.text);
    w->request = &w->plan->classes[0].tasks[0].steps[0].request;
    w->binding.plan = w->plan;
    w->shard.plan = w->plan;
    buf_init(&w->shard.operand, 10000);
    buf_init(&w->shard.decoded, 10000);
    w->shard.patterns = pattern_scratch_new();
    rng_init(&w->shard.rng, 1);
    w->user = (struct user){.shard = &w->shard, .binding = &w->binding};
    w->user.variables = variables_new(w->plan, 1);
    assert_non_null(w->user.variables);
    w->result = (struct http_result){
        .status = 200, .head = str_of(head), .body = str_of(body), .body_bytes = 100};
}

static void end(struct world *w)
{
    variables_free(w->user.variables, &w->shard);
    pattern_scratch_free(w->shard.patterns);
    buf_done(&w->shard.operand);
    buf_done(&w->shard.decoded);
    json_tape_done(&w->shard.tape);
    plan_free(w->plan);
}

/* The failure's text, "" for none. */
static struct str judge(struct world *w)
{
    struct str error;
    assert_int_equal(answer_judge(&w->user, w->request, &w->result, 250000, 1000000, &error), 0);
    return error;
}

static void test_checks(void **state)
{
    static const struct {
        const char *check;
        bool holds;
    } cases[] = {
        {"\"json\": {\"/ok\": true}", true},
        {"\"json\": {\"/ok\": false}", false},
        {"\"json\": {\"/ok\": \"true\"}", false},
        {"\"json\": {\"/ok\": {\"!=\": \"true\"}}", true},
        {"\"json\": {\"/n\": 5}", true},
        {"\"json\": {\"/n\": 5.0}", true},
        {"\"json\": {\"/n\": \"5\"}", false},
        {"\"json\": {\"/n\": \"${five}\"}", true},
        {"\"json\": {\"/n\": {\"<\": 5}}", false},
        {"\"json\": {\"/n\": {\"<=\": 5, \">\": 4.9}}", true},
        {"\"json\": {\"/n\": {\">\": \"${five}\"}}", false},
        {"\"json\": {\"/t\": \"5\"}", true},
        {"\"json\": {\"/t\": 5}", false},
        {"\"json\": {\"/t\": {\"<\": 6}}", false},
        {"\"json\": {\"/t\": \"${five}\"}", true},
        {"\"json\": {\"/s\": \"caf\xC3\xA9\"}", true},
        {"\"json\": {\"/s\": {\"length\": 4, \"contains\": \"\xC3\xA9\", \"matches\": \"^caf.$\"}}",
         true},
        {"\"json\": {\"/s\": {\"<\": \"cag\"}}", true},
        {"\"json\": {\"/none\": null}", true},
        {"\"json\": {\"/none\": {\"exists\": true, \"type\": \"null\", \"!=\": 0}}", true},
        {"\"json\": {\"/ok\": {\"!=\": null}}", true},
        {"\"json\": {\"/a\": {\"type\": \"array\", \"length\": {\">=\": 3, \"<\": 4}}}", true},
        {"\"json\": {\"/a/2/b\": -0.5, \"/a/1\": \"2\", \"/a/0\": 1}", true},
        {"\"json\": {\"/a/3\": {\"exists\": false}, \"/x/y\": {\"exists\": false}}", true},
        {"\"json\": {\"/a/3\": {\"!=\": 1}}", true},
        {"\"json\": {\"/a/3\": {\"<\": 1}}", false},
        {"\"json\": {\"/n\": {\"length\": 1}}", false},
        {"\"json\": {\"\": {\"type\": \"object\", \"length\": 6}}", true},
        {"\"json\": {\"/n\": {\"contains\": \"5\"}}", false},
        {"\"headers\": {\"content-type\": {\"contains\": \"x; a\", \"matches\": \"b$\"}}", true},
        {"\"headers\": {\"X-Count\": 12}", true},
        {"\"headers\": {\"X-Count\": {\">\": 9, \"<\": \"${five}\"}}", false},
        {"\"headers\": {\"X-Count\": \"12\"}", true},
        {"\"headers\": {\"X-Empty\": \"\", \"X-No\": {\"exists\": false}}", true},
        {"\"headers\": {\"X-No\": \"\"}", false},
        {"\"headers\": {\"X-Empty\": {\"exists\": true, \"length\": 0}}", true},
        {"\"body\": {\"contains\": \"${word}\"}", true},
        {"\"body\": {\"contains\": \"nothing\"}", false},
        {"\"body\": {\"matches\": \"\\\"n\\\": \\\\d,\"}", true},
        {"\"body\": \"x\"", false},
        {"\"size\": 100", true},
        {"\"size\": {\">\": 100}", false},
        {"\"time\": {\"<\": 0.2500001, \">=\": 0.25}", true},
        {"\"status\": {\">=\": 200, \"<\": 300}", true},
        {"\"status\": {\">\": 200}", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world w;
        char options[500];
        (void)snprintf(options, sizeof options, "\"check\": {%s}", cases[i].check);
        print_message("%s\n", cases[i].check);
        begin(&w, options);
        assert_int_equal(judge(&w).ptr == NULL, cases[i].holds);
        end(&w);
    }
}

static void test_failures_say_what_failed(void **state)
{
    static const struct {
        const char *options, *error;
    } cases[] = {
        {"\"check\": {\"json\": {\"/ok\": true, \"/n\": {\">\": 5}}}", "check failed: json /n > 5"},
        {"\"check\": {\"json\": {\"/a\": {\"length\": {\"<\": 2}}}}",
         "check failed: json /a length < 2"},
        {"\"check\": {\"json\": {\"/x\": {\"exists\": true}}}", "check failed: json /x exists"},
        {"\"check\": {\"json\": {\"/n\": {\"exists\": false}}}",
         "check failed: json /n exists false"},
        {"\"check\": {\"json\": {\"/n\": {\"type\": \"string\"}}}",
         "check failed: json /n type string"},
        {"\"check\": {\"json\": {\"\": null}}", "check failed: json == null"},
        {"\"check\": {\"headers\": {\"A\": \"b ${word}\"}}",
         "check failed: header A == \"b ${word}\""},
        {"\"check\": {\"body\": {\"matches\": \"a\\tb\"}}", "check failed: body matches \"a b\""},
        {"\"check\": {\"size\": {\"<\": 1}}", "check failed: size < 1"},
        {"\"check\": {\"time\": {\"<\": 0.1}}", "check failed: time < 0.1"},
        {"\"extract\": {\"a\": \"/ok\", \"b\": \"/no\"}", "extraction failed: b"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world w;
        begin(&w, cases[i].options);
        struct str error = judge(&w);
        print_message("%.*s\n", STR_ARG(error));
        assert_true(str_eq(error, str_of(cases[i].error)));
        end(&w);
    }
}

static void test_extraction(void **state)
{
    static const struct {
        const char *from, *value;
        bool json;
    } cases[] = {
        {"\"/n\"", "5", true},
        {"\"/s\"", "caf\xC3\xA9", false},
        {"\"/none\"", "null", true},
        {"\"/a\"", "[1, \"2\", {\"b\": -0.5}]", true},
        {"{\"json\": \"/x\", \"default\": \"<${five}>\"}", "<5>", false},
        {"{\"json\": \"/x\", \"default\": 7}", "7", true},
        {"{\"regex\": \"\\\"(\\\\w)\\\": (\\\\d)\"}", "n", false},
        {"{\"regex\": \"\\\"(\\\\w)\\\": (\\\\d)\", \"group\": 2}", "5", false},
        {"{\"regex\": \"tru.\"}", "true", false},
        {"{\"header\": \"x-COUNT\"}", "12", false},
        {"{\"header\": \"X-Empty\"}", "", false},
        {"{\"cookie\": \"sid\"}", "abc", false},
        {"{\"cookie\": \"SID\", \"default\": \"none\"}", "none", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world w;
        char options[500];
        (void)snprintf(options, sizeof options, "\"extract\": {\"v\": %s}", cases[i].from);
        print_message("%s\n", cases[i].from);
        begin(&w, options);
        assert_null(judge(&w).ptr);
        const struct value *v = &w.user.variables->values[plan_variable_index(w.plan, STR("v"))];
        assert_true(v->set && v->json == cases[i].json);
        assert_true(str_eq((struct str){v->bytes, v->len}, str_of(cases[i].value)));
        end(&w);
    }
}

static void test_a_body_that_is_no_json_or_cut(void **state)
{
    struct world w;
    (void)state;
    begin(&w, "\"check\": {\"json\": {\"/ok\": {\"!=\": 5}, \"\": {\"exists\": true}}}");
    w.result.body = STR("<html>");
    assert_true(str_eq(judge(&w), STR("check failed: json exists")));
    w.result.body_cut = true;
    assert_true(str_eq(judge(&w), STR("body larger than body_limit")));
    end(&w);
}

static void test_a_value_that_is_too_long_is_no_value(void **state)
{
    struct world w;
    size_t size = (size_t)PLAN_MAX_VARIABLE_BYTES + 10;
    char *long_body = malloc(size);
    (void)state;
    assert_non_null(long_body);
    memset(long_body, 'a', size);
    begin(&w, "\"extract\": {\"v\": {\"regex\": \"(?s)^.*$\"}}");
    w.result.body = (struct str){long_body, size};
    assert_true(str_eq(judge(&w), STR("extraction failed: v")));
    end(&w);
    free(long_body);
}

/* Without memory the request fails, and nothing is lost or leaked. */
static void test_out_of_memory(void **state)
{
    (void)state;
    for (unsigned long n = 1;; n++) {
        struct world w;
        begin(
            &w,
            "\"check\": {\"json\": {\"/s\": \"caf\xC3\xA9\", \"/n\": \"${five}\"}}, "
            "\"extract\": {\"v\": \"/s\", \"w\": {\"json\": \"/x\", \"default\": \"<${five}>\"}}");
        alloc_fail_at(n);
        struct str error = judge(&w);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(error.ptr != NULL, failed);
        end(&w);
        if (!failed)
            break;
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_failures_say_what_failed),
        cmocka_unit_test(test_extraction),
        cmocka_unit_test(test_a_body_that_is_no_json_or_cut),
        cmocka_unit_test(test_a_value_that_is_too_long_is_no_value),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

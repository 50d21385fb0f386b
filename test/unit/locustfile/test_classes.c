#include "test/unit/alloc.h"
#include "worker/locustfile/classes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define TEXT_BYTES (1u << 20)

static struct plan *load(const char *scenario)
{
    struct plan *plan = NULL;
    struct err err = {0};
    if (plan_load_yaml(str_of(scenario), "s.yaml", NULL, &plan, &err) < 0)
        fail_msg("%s", err.text);
    return plan;
}

static int write(const struct plan *plan, struct buf *out)
{
    struct buf taken;
    struct script s = {.out = out};
    buf_init(&taken, TEXT_BYTES);
    classes_write(&s, plan, &taken);
    buf_done(&taken);
    return s.rc;
}

/* --- one step of a task --- */

static const struct {
    const char *label, *steps, *expect;
} steps[] = {
    {"path alone", "[/items?page=2]", "        self.get(\"/items?page=2\")\n"},
    {"name", "[{get: /a, name: b}]", "        self.get(\"/a\", name=\"b\")\n"},
    {"name that goes without saying", "[{get: /a, name: /a}]", "        self.get(\"/a\")\n"},
    {"host of its own", "[{get: /a, host: 'http://h/b'}]",
     "        self.get(\"http://h/b/a\", name=\"/a\")\n"},
    {"host with variables", "[{set: {v: x}}, {get: /a, host: 'http://${v}'}]",
     "        self.set({\"v\": \"x\"})\n        self.get(\"/a\", host=\"http://${v}\")\n"},
    {"method of one's own", "[{request: /a, method: purge}]",
     "        self.request(\"PURGE\", \"/a\")\n"},
    {"encoded", "[{get: '/\u00e9 x'}]", "        self.get(\"/%C3%A9%20x\")\n"},
    {"variables in a path", "[{get: '/a/${user}?b=${uuid}'}]",
     "        self.get(\"/a/${user}?b=${uuid}\", name=\"/a/:user?b=:uuid\")\n"},
    {"query", "[{get: /a, query: {b: ['${user}', 'c d']}}]",
     "        self.get(\"/a?b=${user|form}&b=c+d\", name=\"/a?b=:user&b=c+d\")\n"},
    {"named when it is known", "[{set: {l: /a}}, {get: '${l}'}]",
     "        self.set({\"l\": \"/a\"})\n        self.get(\"${l}\")\n"},
    {"json", "[{post: /a, json: {n: 1.50, t: 'x\"y'}}]",
     "        self.post(\"/a\", json='{\"n\": 1.50, \"t\": \"x\\\\\"y\"}')\n"},
    {"json with variables", "[{post: /a, json: {n: '${user}', t: 'no. ${user}'}}]",
     "        self.post(\"/a\", json='{\"n\": ${user|value}, \"t\": \"no. ${user|json}\"}')\n"},
    {"json of another type", "[{post: /a, json: 1, headers: {content-type: text/x}}]",
     "        self.post(\"/a\", headers={\"content-type\": \"text/x\"}, body=\"1\")\n"},
    {"form", "[{put: /a, form: {a: b c}}]", "        self.put(\"/a\", form=\"a=b+c\")\n"},
    {"body", "[{patch: /a, body: \"x\\n\\u00e9\\U0001F600$${y}\"}]",
     "        self.patch(\"/a\", body=\"x\\n\\u00e9\\U0001f600$${y}\")\n"},
    {"headers", "[{get: /a, headers: {X-A: b, X-C: '${user}'}}]",
     "        self.get(\"/a\", headers={\"X-A\": \"b\", \"X-C\": \"${user}\"})\n"},
    {"redirects and time-out", "[{get: /a, redirects: false, timeout: 0.5}]",
     "        self.get(\"/a\", redirects=False, timeout=0.5)\n"},
    {"time-outs", "[{get: /a, timeout: {connect: 2, total: 5}}]",
     "        self.get(\"/a\", timeout={\"connect\": 2, \"total\": 5})\n"},
    {"expect", "[{get: /a, expect: [200, 404], on_failure: stop user}]",
     "        self.get(\"/a\", expect=[200, 404], on_failure=\"stop user\")\n"},
    {"checks",
     "[{get: /a, body_limit: 9, check: {status: {<: 300}, headers: {A: {exists: false}}, json: "
     "{/b: true, /c: {length: 2, type: array}, /d: null, /e: 1.5}, body: {contains: x}, size: 1}}]",
     "        self.get(\n            \"/a\",\n            check=[\n"
     "                (\"status < 300\", status < 300),\n"
     "                (\"header A exists false\", header(\"A\").exists(False)),\n"
     "                (\"json /b == true\", json_at(\"/b\") == True),\n"
     "                (\"json /c length == 2\", json_at(\"/c\").length == 2),\n"
     "                (\"json /c type array\", json_at(\"/c\").has_type(\"array\")),\n"
     "                (\"json /d == null\", json_at(\"/d\") == None),\n"
     "                (\"json /e == 1.5\", json_at(\"/e\") == 1.5),\n"
     "                ('body contains \"x\"', body.contains(\"x\")),\n"
     "                (\"size == 1\", size == 1),\n"
     "            ],\n            body_limit=9,\n        )\n"},
    {"extraction",
     "[{get: /a, extract: {b: /c, d: {regex: '(\\d+)x', default: 1}, e: {header: F}, g: {cookie: "
     "h, "
     "default: i}}}]",
     "        self.get(\n            \"/a\",\n            extract={\n"
     "                \"b\": json_at(\"/c\"),\n"
     "                \"d\": regex(r\"(\\d+)x\", group=1, default=1),\n"
     "                \"e\": header(\"F\"),\n"
     "                \"g\": cookie(\"h\", default=\"i\"),\n"
     "            },\n        )\n"},
    {"pauses", "[{pause: 0.5}, {pause: {between: [1, 2]}}, {pause: '${user}'}]",
     "        self.pause(0.5)\n        self.pause(1, 2)\n        self.pause(\"${user}\")\n"},
    {"loops", "[{repeat: 2, steps: [{repeat: '${user}', steps: [/a]}]}, /b]",
     "        for _ in range(2):\n            for _ in self.repeat(\"${user}\"):\n"
     "                self.get(\"/a\")\n        self.get(\"/b\")\n"},
    {"while", "[{while: {user: {<: 3}}, limit: 7, steps: [/a]}]",
     "        for _ in self.as_long_as(value(\"user\") < 3, limit=7):\n"
     "            self.get(\"/a\")\n"},
    {"if and else",
     "[{if: {'random(1, 9)': {'>': 1, '!=': 5}}, then: [/a], else: [{if: {user: x}, then: [/b]}]}]",
     "        if self.holds(value(\"random(1, 9)\") > 1, value(\"random(1, 9)\") != 5):\n"
     "            self.get(\"/a\")\n        else:\n"
     "            if self.holds(value(\"user\") == \"x\"):\n                self.get(\"/b\")\n"},
    {"group", "[{group: 'the \"first\"', steps: [/a, {stop: task}]}]",
     "        with self.group('the \"first\"'):\n            self.get(\"/a\")\n"
     "            self.stop_task()\n"},
    {"set, log, stop", "[{set: {a: 1, b: 1.50, c: true}}, {log: 'at ${user}'}, {stop: run}]",
     "        self.set({\"a\": 1, \"b\": Number(\"1.50\"), \"c\": True})\n"
     "        self.log(\"at ${user}\")\n        self.stop_run()\n"},
};

static void test_steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct buf scenario, text;
        print_message("%s\n", steps[i].label);
        buf_init(&scenario, TEXT_BYTES);
        buf_init(&text, TEXT_BYTES);
        assert_int_equal(buf_printf(&scenario, "tasks: [{name: t, steps: %s}]", steps[i].steps), 0);
        struct plan *plan = load(buf_c(&scenario));
        assert_int_equal(write(plan, &text), 0);
        const char *body = strstr(buf_c(&text), "(self):\n");
        assert_non_null(body);
        assert_string_equal(body + strlen("(self):\n"), steps[i].expect);
        plan_free(plan);
        buf_done(&text);
        buf_done(&scenario);
    }
}

/* --- classes --- */

static const char shop[] = "host: http://h\n"
                           "users:\n"
                           "  - {name: Locked out, fixed_count: 2, wait_time: "
                           "{constant_throughput: 0.5}, order: sequential,\n"
                           "     insecure: true, proxy: 'http://a:b@p:1', tasks: [{name: run, "
                           "weight: 3, tags: [a, 'b c'], "
                           "steps: [/]}, {name: run!, "
                           "steps: [/]}],\n"
                           "     on_stop: [/bye]}\n"
                           "  - {name: HttpUser, weight: 3, host: 'http://${v}', wait_time: "
                           "{between: [1, 2.5]}, tasks: [{name: "
                           "'1 + 1', weight: 2, steps: [/]}]}\n"
                           "variables: {v: x}\n";

static const char shop_text[] = "\n\n@named(\"Locked out\")\n"
                                "class Locked_out(ScenarioUser):\n"
                                "    host = \"http://h\"\n"
                                "    fixed_count = 2\n"
                                "    wait_time = constant_throughput(0.5)\n"
                                "    insecure = True\n"
                                "    proxy = \"http://a:b@p:1\"\n"
                                "    order = \"sequential\"\n"
                                "\n"
                                "    @named(\"run\")\n"
                                "    @tag(\"a\", \"b c\")\n"
                                "    @task\n"
                                "    @steps\n"
                                "    def run_(self):\n"
                                "        self.get(\"/\")\n"
                                "\n"
                                "    @named(\"run!\")\n"
                                "    @task\n"
                                "    @steps\n"
                                "    def run_2(self):\n"
                                "        self.get(\"/\")\n"
                                "\n"
                                "    @steps\n"
                                "    def on_stop(self):\n"
                                "        self.get(\"/bye\")\n"
                                "\n\n"
                                "@named(\"HttpUser\")\n"
                                "class HttpUser_(ScenarioUser):\n"
                                "    own_host = \"http://${v}\"\n"
                                "    weight = 3\n"
                                "    wait_time = between(1, 2.5)\n"
                                "\n"
                                "    @named(\"1 + 1\")\n"
                                "    @task(2)\n"
                                "    @steps\n"
                                "    def unnamed(self):\n"
                                "        self.get(\"/\")\n";

static void test_classes(void **state)
{
    (void)state;
    struct buf text;
    struct plan *plan = load(shop);
    buf_init(&text, TEXT_BYTES);
    assert_int_equal(write(plan, &text), 0);
    assert_string_equal(buf_c(&text), shop_text);
    buf_done(&text);
    plan_free(plan);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct plan *plan = load(shop);
    bool failed = true;
    for (unsigned long n = 1; failed; n++) {
        struct buf text;
        buf_init(&text, TEXT_BYTES);
        alloc_fail_at(n);
        int rc = write(plan, &text);
        failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        buf_done(&text);
    }
    plan_free(plan);
}

static void test_no_room(void **state)
{
    (void)state;
    struct buf text;
    struct plan *plan = load(shop);
    buf_init(&text, 100);
    assert_int_equal(write(plan, &text), -ERANGE);
    buf_done(&text);
    plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "test/unit/alloc.h"
#include "worker/scenario/describe.h"
#include "worker/scenario/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define ASSERT_STR(got, want) assert_true(str_eq((got), STR(want)))

static struct plan *load(const char *text)
{
    struct plan *plan = NULL;
    struct err err = {0};
    int rc = plan_load_json(str_of(text), "s.json", NULL, &plan, &err);
    if (rc < 0)
        fail_msg("%s", err.text);
    return plan;
}

static void refuse(struct str text, const char *why)
{
    struct plan *plan = NULL;
    struct err err = {0};
    assert_int_equal(plan_load_json(text, "s.json", NULL, &plan, &err), -EINVAL);
    assert_null(plan);
    assert_string_equal(err.text, why);
}

static const struct plan_request *request(const struct plan *p, size_t step)
{
    return &p->classes[0].tasks[0].steps[step].request;
}

static void test_every_field(void **state)
{
    (void)state;
    struct plan *p = load(
        "{\"host\": \"http://h\", \"users\": [{\"name\": \"A\", \"weight\": 3, \"insecure\": true,"
        "  \"host\": \"https://i/\", \"wait_time\": {\"between\": [0.5, 2]}, \"tasks\": ["
        "  {\"name\": \"t\", \"weight\": 5, \"tags\": [\"x\", \"y\"], \"steps\": ["
        "    {\"put\": \"a b\", \"headers\": {\"X-A\": \"1\"}, \"body\": \"hi\", \"timeout\": 1.5,"
        "     \"expect\": [200, 404], \"redirects\": false, \"name\": \"n\"}]}, \"/z\"]}]}");
    ASSERT_STR(p->source, "s.json");
    ASSERT_STR(p->host, "http://h");
    assert_int_equal(p->class_count, 1);
    const struct plan_class *c = p->classes;
    ASSERT_STR(c->name, "A");
    ASSERT_STR(c->host, "https://i/");
    assert_int_equal(c->weight, 3);
    assert_int_equal(c->fixed_count, 0);
    assert_true(c->insecure);
    assert_int_equal(c->wait.kind, PLAN_WAIT_BETWEEN);
    assert_int_equal(c->wait.min_us, 500000);
    assert_int_equal(c->wait.max_us, 2000000);
    assert_int_equal(c->task_count, 2);
    assert_int_equal(c->task_weight_sum, 6);
    ASSERT_STR(c->tasks[0].name, "t");
    assert_int_equal(c->tasks[0].tag_count, 2);
    ASSERT_STR(c->tasks[0].tags[1], "y");
    assert_int_equal(c->tasks[0].step_count, 1);
    const struct plan_request *r = request(p, 0);
    ASSERT_STR(r->method, "PUT");
    ASSERT_STR(r->url, "/a%20b");
    ASSERT_STR(r->name, "n");
    assert_int_equal(r->entry, 0);
    assert_int_equal(r->header_count, 1);
    ASSERT_STR(r->headers[0].name, "X-A");
    ASSERT_STR(r->headers[0].value, "1");
    ASSERT_STR(r->body, "hi");
    assert_int_equal(r->body.ptr[r->body.len], '\0');
    assert_int_equal(r->expected_status_count, 2);
    assert_int_equal(r->expected_status[1], 404);
    assert_false(r->follow_redirects);
    assert_int_equal(r->timeouts.total_us, 1500000);
    r = &c->tasks[1].steps[0].request;
    ASSERT_STR(r->method, "GET");
    assert_null(r->body.ptr);
    assert_int_equal(r->header_count, 0);
    assert_int_equal(r->expected_status_count, 0);
    assert_true(r->follow_redirects);
    assert_int_equal(r->timeouts.total_us, 0);
    assert_int_equal(r->entry, 1);
    assert_int_equal(p->entry_count, 2);
    ASSERT_STR(p->entries[1].method, "GET");
    ASSERT_STR(p->entries[1].name, "/z");
    plan_free(p);
}

static void test_wait_times(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        struct plan_wait wait;
    } cases[] = {
        {"0", {PLAN_WAIT_CONSTANT, 0, 0}},
        {"1e-6", {PLAN_WAIT_CONSTANT, 1, 1}},
        {"1.5", {PLAN_WAIT_CONSTANT, 1500000, 1500000}},
        {"{\"constant\": 2}", {PLAN_WAIT_CONSTANT, 2000000, 2000000}},
        {"{\"between\": [0.1, 0.3]}", {PLAN_WAIT_BETWEEN, 100000, 300000}},
        {"{\"constant_pacing\": 2.5}", {PLAN_WAIT_PACING, 2500000, 2500000}},
        {"{\"constant_throughput\": 0.5}", {PLAN_WAIT_THROUGHPUT, 2000000, 2000000}},
        {"{\"constant_throughput\": 3}", {PLAN_WAIT_THROUGHPUT, 333333, 333333}},
        {"{\"constant_throughput\": 1000000}", {PLAN_WAIT_THROUGHPUT, 1, 1}},
        {"{\"constant_throughput\": 0.000001}",
         {PLAN_WAIT_THROUGHPUT, 1000000000000, 1000000000000}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        (void)snprintf(text, sizeof text, "{\"tasks\": [\"/\"], \"wait_time\": %s}", cases[i].json);
        struct plan *p = load(text);
        const struct plan_wait *got = &p->classes[0].wait;
        assert_int_equal(got->kind, cases[i].wait.kind);
        assert_int_equal(got->min_us, cases[i].wait.min_us);
        assert_int_equal(got->max_us, cases[i].wait.max_us);
        plan_free(p);
    }
    struct plan *p = load("{\"tasks\": [\"/\"]}");
    assert_int_equal(p->classes[0].wait.kind, PLAN_WAIT_NONE);
    plan_free(p);
}

/* The wanted texts are those of CPython's json.dumps, but for numbers: they stay as written. */
static void test_json_bodies(void **state)
{
    (void)state;
    static const struct {
        const char *json, *body;
    } cases[] = {
        {"null", "null"},
        {" [ ] ", "[]"},
        {"{ }", "{}"},
        {"{\"b\" : [1,2.50,-0,1E5],\n\"a\":{\"c\":true,\"d\":false}}",
         "{\"b\": [1, 2.50, -0, 1E5], \"a\": {\"c\": true, \"d\": false}}"},
        {"12345678901234567890123", "12345678901234567890123"},
        {"\"\\u00e9 \xC3\xA9 \\ud83d\\ude00 \xF0\x9F\x98\x80 \xE2\x82\xAC\"",
         "\"\\u00e9 \\u00e9 \\ud83d\\ude00 \\ud83d\\ude00 \\u20ac\""},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\"",
         "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\""},
        {"{\"k\\u00e9y\": 1}", "{\"k\\u00e9y\": 1}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        (void)snprintf(text, sizeof text,
                       "{\"tasks\": [{\"steps\": [{\"post\": \"/\", \"json\": %s}]}]}",
                       cases[i].json);
        struct plan *p = load(text);
        const struct plan_request *r = request(p, 0);
        assert_string_equal(r->body.ptr, cases[i].body);
        assert_int_equal(r->header_count, 1);
        ASSERT_STR(r->headers[0].name, "Content-Type");
        ASSERT_STR(r->headers[0].value, "application/json");
        plan_free(p);
    }
}

static void test_bodies(void **state)
{
    (void)state;
    struct plan *p =
        load("{\"tasks\": [{\"steps\": [{\"post\": \"/\", \"body\": \"\"},"
             " {\"post\": \"/\", \"body\": \"a\\u0000b\"},"
             " {\"post\": \"/\", \"json\": 1, \"headers\": {\"content-TYPE\": \"text/x\"}}]}]}");
    assert_non_null(request(p, 0)->body.ptr);
    assert_int_equal(request(p, 0)->body.len, 0);
    ASSERT_STR(request(p, 1)->body, "a\0b");
    assert_int_equal(request(p, 2)->header_count, 1);
    ASSERT_STR(request(p, 2)->headers[0].value, "text/x");
    plan_free(p);
}

static void test_entries_are_found_once(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text, 1 << 20);
    assert_int_equal(buf_add(&text, STR("{\"tasks\": [")), 0);
    for (unsigned i = 0; i < 3000; i++)
        assert_int_equal(buf_printf(&text, "%s\"/%u\"", i ? "," : "", i % 1000), 0);
    assert_int_equal(buf_add(&text, STR("]}")), 0);
    struct plan *p = load(buf_c(&text));
    assert_int_equal(p->entry_count, 1000);
    for (unsigned i = 0; i < 3000; i++)
        assert_int_equal(p->classes[0].tasks[i].steps[0].request.entry, i % 1000);
    plan_free(p);
    buf_done(&text);
}

static void test_class_index(void **state)
{
    (void)state;
    struct plan *p = load("{\"users\": [{\"name\": \"A\", \"tasks\": [\"/\"]},"
                          " {\"name\": \"B\", \"tasks\": [\"/\"]}]}");
    assert_int_equal(plan_class_index(p, STR("A")), 0);
    assert_int_equal(plan_class_index(p, STR("B")), 1);
    assert_int_equal(plan_class_index(p, STR("b")), 2);
    assert_int_equal(plan_class_index(p, STR("")), 2);
    plan_free(p);
}

static void test_examples_load(void **state)
{
    (void)state;
    static const char *const paths[] = {"examples/basic.json", "examples/shop.json"};
    for (size_t i = 0; i < 2; i++) {
        struct plan *p = NULL;
        struct err err = {0};
        if (plan_load_file(paths[i], NULL, &p, &err) < 0)
            fail_msg("%s", err.text);
        assert_true(str_eq(p->source, str_of(paths[i])));
        plan_free(p);
    }
}

static void test_a_file_that_is_missing(void **state)
{
    (void)state;
    struct plan *p = NULL;
    struct err err = {0};
    assert_int_equal(plan_load_file("no/such.json", NULL, &p, &err), -ENOENT);
    assert_string_equal(err.text, "no/such.json: No such file or directory");
    err = (struct err){0};
    assert_int_equal(plan_load_file("test", NULL, &p, &err), -EISDIR);
    assert_null(p);
}

/* head, then n times part with commas between, then tail */
static void repeat(struct buf *text, const char *head, const char *part, unsigned n,
                   const char *tail)
{
    buf_init(text, PLAN_MAX_FILE_BYTES + 1);
    assert_int_equal(buf_add(text, str_of(head)), 0);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(buf_printf(text, "%s%s", i ? "," : "", part), 0);
    assert_int_equal(buf_add(text, str_of(tail)), 0);
}

static void test_limits(void **state)
{
    (void)state;
    static const struct {
        const char *head, *part;
        unsigned count;
        const char *tail, *why;
    } cases[] = {
        {"{\"users\": [", "{}", PLAN_MAX_CLASSES + 1, "]}",
         "s.json:1: users: must not have more than 1000 user classes, has 1001"},
        {"{\"tasks\": [", "\"/\"", PLAN_MAX_TASKS + 1, "]}",
         "s.json:1: tasks: must not have more than 10000 tasks, has 10001"},
        {"{\"tasks\": [{\"steps\": [", "\"/\"", PLAN_MAX_STEPS + 1, "]}]}",
         "s.json:1: tasks[0].steps: must not have more than 100000 steps, has 100001"},
        {"{\"tasks\": [{\"tags\": [", "\"t\"", PLAN_MAX_TAGS + 1, "]}]}",
         "s.json:1: tasks[0].tags: must not have more than 1000 tags, has 1001"},
        {"{\"tasks\": [{\"steps\": [{\"get\": \"/\", \"expect\": [", "200", PLAN_MAX_STATUSES + 1,
         "]}]}]}",
         "s.json:1: tasks[0].steps[0].expect: must not have more than 500 status codes, has 501"},
        {"{\"tasks\": [", "0", 2000001, "]}", "s.json:1: more than 2000000 values"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf text;
        repeat(&text, cases[i].head, cases[i].part, cases[i].count, cases[i].tail);
        refuse(buf_str(&text), cases[i].why);
        buf_done(&text);
    }
    struct buf text;
    repeat(&text, "{\"tasks\": [{\"steps\": [", "\"/\"", PLAN_MAX_STEPS, "]}]}");
    struct plan *p = load(buf_c(&text));
    assert_int_equal(p->classes[0].tasks[0].step_count, PLAN_MAX_STEPS);
    plan_free(p);
    buf_done(&text);
}

static void test_a_text_that_is_too_large(void **state)
{
    (void)state;
    size_t size = (size_t)PLAN_MAX_FILE_BYTES + 1;
    char *spaces = malloc(size);
    assert_non_null(spaces);
    memset(spaces, ' ', size);
    refuse((struct str){spaces, size}, "s.json:1: larger than 67108864 bytes");
    free(spaces);
}

static void test_long_names_leave_room_for_the_message(void **state)
{
    (void)state;
    char source[1000], text[1000];
    memset(source, 'd', sizeof source);
    memcpy(source + sizeof source - sizeof "/s.json", "/s.json", sizeof "/s.json");
    char key[400];
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = '\0';
    (void)snprintf(text, sizeof text,
                   "{\"tasks\": [{\"steps\": [{\"get\": \"/\", \"headers\": {\"%s\": 1}}]}]}", key);
    struct plan *p = NULL;
    struct err err = {0};
    assert_int_equal(plan_load_json(str_of(text), source, NULL, &p, &err), -EINVAL);
    struct str told = str_of(err.text);
    assert_true(str_starts(told, STR("\xE2\x80\xA6"
                                     "ddd")));
    assert_true(str_find_str(told, STR("/s.json:1: ")) < told.len);
    assert_true(str_ends(told, STR(": must not be longer than 256 bytes")));
}

static void test_url_alone_is_a_scenario(void **state)
{
    (void)state;
    static const struct {
        const char *url, *host, *path;
    } cases[] = {
        {"http://127.0.0.1:8080", "http://127.0.0.1:8080", "/"},
        {"https://h/a b?c=\"d\"#e", "https://h", "/a%20b?c=%22d%22"},
        {"HTTP://u:p@[::1]:81?x", "HTTP://u:p@[::1]:81", "/?x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan *p = NULL;
        struct err err = {0};
        assert_int_equal(plan_from_url(str_of(cases[i].url), &p, &err), 0);
        assert_true(str_eq(p->host, str_of(cases[i].host)));
        assert_int_equal(p->class_count, 1);
        ASSERT_STR(p->classes[0].name, "User");
        assert_int_equal(p->classes[0].wait.kind, PLAN_WAIT_NONE);
        assert_int_equal(p->classes[0].task_count, 1);
        assert_int_equal(p->classes[0].tasks[0].step_count, 1);
        ASSERT_STR(request(p, 0)->method, "GET");
        assert_true(str_eq(request(p, 0)->url, str_of(cases[i].path)));
        assert_int_equal(p->entry_count, 1);
        assert_true(str_eq(p->entries[0].name, str_of(cases[i].path)));
        plan_free(p);
    }
}

static void test_url_that_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *url, *why;
    } cases[] = {
        {"", "URL '' has no scheme: write http://… or https://…"},
        {"localhost:8080", "URL 'localhost:8080' has no scheme: write http://… or https://…"},
        {"http://h:0/", "URL 'http://h:0/' has a port that is not a number from 1 to 65535"},
        {"http://me:secret@h:0/", "the URL has a port that is not a number from 1 to 65535"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan *p = NULL;
        struct err err = {0};
        assert_int_equal(plan_from_url(str_of(cases[i].url), &p, &err), -EINVAL);
        assert_string_equal(err.text, cases[i].why);
        assert_null(p);
    }
}

static void test_url_too_long(void **state)
{
    (void)state;
    char url[PLAN_MAX_URL_BYTES + 100];
    memset(url, 'a', sizeof url);
    memcpy(url, "http://h/", 9);
    struct plan *p = NULL;
    struct err err = {0};
    assert_int_equal(plan_from_url((struct str){url, sizeof url}, &p, &err), -EINVAL);
    assert_string_equal(err.text, "the URL is longer than 65536 bytes");
}

/* Each allocation of ours fails once; whatever comes is -ENOMEM, told, and leaks nothing. */
static void test_out_of_memory(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text, 1 << 20);
    assert_int_equal(buf_read_file(&text, "examples/shop.json", NULL), 0);
    unsigned long n = 0;
    for (bool failed = true; failed;) {
        struct plan *p = NULL;
        struct err err = {0};
        alloc_fail_at(++n);
        int rc = plan_load_json(buf_str(&text), "s.json", NULL, &p, &err);
        failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        if (failed)
            assert_string_equal(err.text, "s.json: out of memory");
        assert_int_equal(p == NULL, failed);
        plan_free(p);
    }
    assert_true(n > 5);
    buf_done(&text);
}

/* The same for the whole language: the case with all of it, and YAML. */
static void test_out_of_memory_for_everything(void **state)
{
    static const char *const folders[] = {"good-variables", "good-yaml", "good-blocks",
                                          "good-feeds"};
    static const char *const files[] = {"input.json", "input.yaml", "input.yaml", "input.yaml"};
    (void)state;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[200];
        (void)snprintf(path, sizeof path, "test/data/scenario/%s/%s", folders[i], files[i]);
        unsigned long n = 0;
        for (bool failed = true; failed;) {
            struct plan *p = NULL;
            struct err err = {0};
            alloc_fail_at(++n);
            int rc = plan_load_file(path, NULL, &p, &err);
            failed = alloc_failed();
            alloc_fail_at(0);
            assert_int_equal(rc, failed ? -ENOMEM : 0);
            assert_int_equal(err.code, rc);
            assert_int_equal(p == NULL, failed);
            plan_free(p);
        }
        assert_true(n > 5);
    }
}

static void count_faults(void *context, const char *line)
{
    struct buf *all = context;
    assert_int_equal(buf_printf(all, "%s\n", line), 0);
}

static void test_all_faults_are_told(void **state)
{
    static const char text[] = "users:\n"
                               "  - name: A\n"
                               "    tasks:\n"
                               "      - steps:\n"
                               "          - {get: /x, chek: 1}\n"
                               "          - {pause: -1}\n"
                               "          - {group: g, steps: [{sleep: 1}, /]}\n"
                               "      - {steps: [/], weight: 0}\n"
                               "  - {name: B, wait_time: x, tasks: [/]}\n"
                               "  - {name: A, tasks: [/]}\n";
    const char *path = "build/faults.yaml";
    struct plan *p = NULL;
    struct err err = {0};
    struct buf all;
    (void)state;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
    buf_init(&all, 10000);
    assert_int_equal(plan_check_file(path, NULL, count_faults, &all, &p, &err), -EINVAL);
    assert_null(p);
    assert_string_equal(
        buf_c(&all),
        "build/faults.yaml:5: users[0].tasks[0].steps[0].chek: unknown key; did you mean 'check'?\n"
        "build/faults.yaml:6: users[0].tasks[0].steps[1].pause: must be a number from 0 to "
        "1000000, "
        "not -1\n"
        "build/faults.yaml:7: users[0].tasks[0].steps[2].steps[0].sleep: unknown key; did you mean "
        "'pause'?\n"
        "build/faults.yaml:8: users[0].tasks[1].weight: must be a whole number from 1 to 1000000, "
        "not 0\n"
        "build/faults.yaml:9: users[1].wait_time: must be seconds, or an object with one of "
        "constant, between, constant_pacing, constant_throughput\n"
        "build/faults.yaml:10: users[2].name: another user class has the same name\n");
    buf_clear(&all);
    assert_int_equal(plan_check_file("no/such.yaml", NULL, count_faults, &all, &p, NULL), -ENOENT);
    assert_string_equal(buf_c(&all), "no/such.yaml: No such file or directory\n");
    assert_int_equal(plan_check_file("examples/shop.json", NULL, count_faults, &all, &p, NULL), 0);
    plan_free(p);
    buf_done(&all);
    (void)remove(path);
}

/* What a faulty step or feed defines is not told as unknown as well. */
static void test_faults_have_no_echo(void **state)
{
    static const char text[] = "host: http://h\n"
                               "tasks:\n"
                               "  - name: a\n"
                               "    steps:\n"
                               "      - {get: /x, chek: 1, extract: {token: /token, id: /id}}\n"
                               "      - /y/${token}/${id}/${missing}\n";
    static const char feed[] = "host: http://h\n"
                               "feeds: [{file: no-such.csv}]\n"
                               "tasks: ['/${name}']\n";
    const char *path = "build/echo.yaml";
    struct plan *p = NULL;
    struct err err = {0};
    struct buf all;
    (void)state;
    buf_init(&all, 10000);
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_true(fputs(i ? feed : text, f) >= 0 && fclose(f) == 0);
        assert_int_equal(plan_check_file(path, NULL, count_faults, &all, &p, &err), -EINVAL);
        assert_null(p);
    }
    assert_string_equal(
        buf_c(&all),
        "build/echo.yaml:5: tasks[0].steps[0].chek: unknown key; did you mean 'check'?\n"
        "build/echo.yaml:6: tasks[0].steps[1]: 'missing' is no variable: no step sets or extracts "
        "it, no feed has it, and 'variables' does not either\n"
        "build/echo.yaml:2: feeds[0].file: build/no-such.csv: No such file or directory\n");
    buf_done(&all);
    (void)remove(path);
}

/* --- texts with variables --- */

static void test_texts_become_pieces(void **state)
{
    (void)state;
    struct plan *p =
        load("{\"variables\": {\"a\": 1, \"b\": \"x\"}, \"tasks\": [{\"steps\": ["
             "{\"post\": \"/p/${a}\", \"json\": {\"k\": \"v${b}\\\"\", \"n\": \"${a}\"},"
             " \"headers\": {\"A\": \"1\", \"B\": \"$${a} ${b}\"}},"
             "{\"post\": \"/\", \"form\": {\"q &\": [\"a b\", \"${b}\"]}}]}]}");
    const struct plan_request *r = request(p, 0);
    assert_true(r->has_variables);
    assert_int_equal(r->url_text.piece_count, 1);
    ASSERT_STR(r->url_text.pieces[0].before, "/p/");
    assert_int_equal(r->url_text.pieces[0].value->kind, PLAN_SOURCE_VARIABLE);
    ASSERT_STR(r->name, "/p/:a");
    assert_int_equal(r->body_text.piece_count, 3);
    ASSERT_STR(r->body_text.pieces[0].before, "{\"k\": \"v");
    assert_int_equal(r->body_text.pieces[0].insert, PLAN_INSERT_JSON_TEXT);
    ASSERT_STR(r->body_text.pieces[1].before, "\\\"\", \"n\": ");
    assert_int_equal(r->body_text.pieces[1].insert, PLAN_INSERT_JSON_VALUE);
    ASSERT_STR(r->body_text.pieces[2].before, "}");
    assert_null(r->body_text.pieces[2].value);
    assert_int_equal(r->header_texts[0].piece_count, 0);
    assert_int_equal(r->header_texts[1].piece_count, 1);
    ASSERT_STR(r->header_texts[1].pieces[0].before, "${a} ");
    r = request(p, 1);
    assert_int_equal(r->body_text.piece_count, 1);
    ASSERT_STR(r->body_text.pieces[0].before, "q+%26=a+b&q+%26=");
    assert_int_equal(r->body_text.pieces[0].insert, PLAN_INSERT_FORM);
    assert_int_equal(p->variable_count, 2);
    assert_int_equal(plan_variable_index(p, STR("b")), 1);
    assert_int_equal(plan_variable_index(p, STR("c")), 2);
    assert_true(p->variables[0].initial_json && !p->variables[1].initial_json);
    plan_free(p);
}

static void test_a_request_without_variables_is_ready(void **state)
{
    (void)state;
    struct plan *p = load("{\"tasks\": [{\"steps\": [{\"post\": \"/a $${x}\", \"body\": "
                          "\"$${y} $5\", \"query\": {\"a\": \"1 2\"}}]}]}");
    const struct plan_request *r = request(p, 0);
    assert_false(r->has_variables);
    assert_null(r->header_texts);
    ASSERT_STR(r->url, "/a%20$%7Bx%7D?a=1+2");
    ASSERT_STR(r->body, "${y} $5");
    assert_false(p->has_values);
    plan_free(p);
}

static void test_out_of_memory_for_a_url_and_a_file(void **state)
{
    (void)state;
    for (int file = 0; file < 2; file++) {
        unsigned long n = 0;
        for (bool failed = true; failed;) {
            struct plan *p = NULL;
            struct err err = {0};
            alloc_fail_at(++n);
            int rc = file ? plan_load_file("examples/basic.json", NULL, &p, &err)
                          : plan_from_url(STR("http://h/a b"), &p, &err);
            failed = alloc_failed();
            alloc_fail_at(0);
            assert_int_equal(rc, failed ? -ENOMEM : 0);
            assert_int_equal(err.code, rc);
            plan_free(p);
        }
        assert_true(n > 5);
    }
}

static void test_out_of_memory_for_a_description(void **state)
{
    (void)state;
    struct plan *p = load("{\"tasks\": [\"/\"], \"host\": \"http://u@h\"}");
    struct buf out;
    buf_init(&out, 1 << 20);
    alloc_fail_at(1);
    assert_int_equal(plan_describe(p, &out), -ENOMEM);
    alloc_fail_at(0);
    buf_done(&out);
    for (size_t max = 0;; max++) {
        buf_init(&out, max);
        int rc = plan_describe(p, &out);
        buf_done(&out);
        if (rc == 0)
            break;
        assert_int_equal(rc, -ERANGE);
    }
    plan_free(p);
    plan_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field),
        cmocka_unit_test(test_wait_times),
        cmocka_unit_test(test_json_bodies),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_entries_are_found_once),
        cmocka_unit_test(test_class_index),
        cmocka_unit_test(test_examples_load),
        cmocka_unit_test(test_a_file_that_is_missing),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_a_text_that_is_too_large),
        cmocka_unit_test(test_long_names_leave_room_for_the_message),
        cmocka_unit_test(test_url_alone_is_a_scenario),
        cmocka_unit_test(test_url_that_is_none),
        cmocka_unit_test(test_url_too_long),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_out_of_memory_for_everything),
        cmocka_unit_test(test_all_faults_are_told),
        cmocka_unit_test(test_faults_have_no_echo),
        cmocka_unit_test(test_texts_become_pieces),
        cmocka_unit_test(test_a_request_without_variables_is_ready),
        cmocka_unit_test(test_out_of_memory_for_a_url_and_a_file),
        cmocka_unit_test(test_out_of_memory_for_a_description),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "test/unit/alloc.h"
#include "worker/locustfile/locustfile.h"
#include "worker/locustfile/sections.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define TEXT_BYTES (4u << 20)

/* Everything that is not a class: variables, feeds, load, and what falls short. */
static const char whole[] = "{\"host\": \"http://h\", \"variables\": {\"a\": null, \"b\": \"x\", "
                            "\"c\": 1.50, \"d\": true},\n"
                            "\"arrival\": {\"rate\": 5}, \"thresholds\": [\"p95 < 300\"],\n"
                            "\"tasks\": [{\"name\": \"t\", \"steps\": [{\"get\": \"/\", \"check\": "
                            "{\"body\": {\"matches\": \"a\\\\Kb\"}}}]}]}\n";

struct made {
    char path[64];
    struct plan *plan;
    char warned[1024];
};

static void warn(void *context, const char *line)
{
    struct made *m = context;
    const char *text = strstr(line, ": ");
    size_t at = strlen(m->warned);
    (void)snprintf(m->warned + at, sizeof m->warned - at, "%.20s|", text ? text + 2 : line);
}

static void make(struct made *m, const char *text)
{
    struct err err = {0};
    *m = (struct made){.path = "/tmp/cicada-locustfile-XXXXXX.json"};
    int fd = mkstemps(m->path, 5);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
    if (plan_load_file(m->path, NULL, &m->plan, &err) < 0)
        fail_msg("%s", err.text);
}

static void unmake(struct made *m)
{
    plan_free(m->plan);
    assert_int_equal(unlink(m->path), 0);
}

/* Each of the texts stands behind the one before it. */
static void assert_in_order(const char *text, const char *const *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *found = strstr(text, parts[i]);
        if (!found)
            fail_msg("'%s' is not there, or not in its place", parts[i]);
        text = found + 1;
    }
}

static void test_parts_in_order(void **state)
{
    static const char *const parts[] = {
        "\"\"\"Made by cicada locustfile",
        "# --- cicada scenario begin",
        "CICADA_SCENARIO = r\"\"\"\n",
        "# --- cicada scenario end\n",
        "USER_AGENT = \"cicada/" CICADA_VERSION "\"\n",
        "class ScenarioUser(HttpUser):\n",
        "class CicadaMaster",
        "# --- the scenario's own part ---\n",
        "# regular expression 'a\\\\Kb'",
        "VARIABLES.update({\n    \"a\": None,\n    \"b\": \"x\",\n",
        "    \"c\": Number(\"1.50\"),\n    \"d\": True,\n})\n",
        "class User(ScenarioUser):\n",
        "# arrival: ",
        "# thresholds: ",
        "#   p95 < 300\n",
    };
    struct made m;
    struct buf text;
    struct err err = {0};
    (void)state;
    make(&m, whole);
    buf_init(&text, TEXT_BYTES);
    assert_int_equal(locustfile_add(m.plan, m.path, warn, &m, &text, &err), 0);
    assert_in_order(buf_c(&text), parts, sizeof parts / sizeof *parts);
    assert_string_equal(m.warned,
                        "regular expression '|arrival: Locust has |thresholds: they are|");
    buf_done(&text);
    unmake(&m);
}

static void test_stages(void **state)
{
    static const char stages[] =
        "{\"host\": \"http://h\", \"stages\": [{\"duration\": \"90s\", \"users\": 5, "
        "\"spawn_rate\": 0.5, \"user_classes\": [\"B b\"]}, {\"duration\": 100, \"users\": "
        "{\"A\": 2, \"B b\": 1}, \"spawn_rate\": 3}],\n"
        "\"users\": [{\"name\": \"A\", \"tasks\": [\"/\"]}, {\"name\": \"B b\", \"tasks\": "
        "[\"/\"]}]}\n";
    static const char *const parts[] = {
        "from locust import LoadTestShape, between",
        "class B_b(ScenarioUser)",
        "# stages: ",
        "class StagesShape(LoadTestShape):\n    stages = [\n",
        "        {\"duration\": 90, \"users\": 5, \"spawn_rate\": 0.5, \"user_classes\": [B_b]},\n",
        "        {\"duration\": 100, \"users\": 3, \"spawn_rate\": 3},\n",
        "    ]\n",
    };
    struct made m;
    struct buf text;
    struct err err = {0};
    (void)state;
    make(&m, stages);
    buf_init(&text, TEXT_BYTES);
    assert_int_equal(locustfile_add(m.plan, m.path, warn, &m, &text, &err), 0);
    assert_in_order(buf_c(&text), parts, sizeof parts / sizeof *parts);
    assert_string_equal(m.warned, "stages: Python has n|");
    buf_done(&text);
    unmake(&m);
}

static void test_no_memory(void **state)
{
    struct made m;
    bool failed = true;
    (void)state;
    make(&m, whole);
    for (unsigned long n = 1; failed; n++) {
        struct buf text;
        struct err err = {0};
        buf_init(&text, TEXT_BYTES);
        alloc_fail_at(n);
        int rc = locustfile_add(m.plan, m.path, NULL, NULL, &text, &err);
        failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        buf_done(&text);
    }
    unmake(&m);
}

static void test_no_room(void **state)
{
    struct made m;
    struct buf text;
    struct err err = {0};
    (void)state;
    make(&m, whole);
    buf_init(&text, 4096);
    assert_int_equal(locustfile_add(m.plan, m.path, NULL, NULL, &text, &err), -ERANGE);
    assert_string_equal(err.text, "the locustfile is too long");
    buf_done(&text);
    unmake(&m);
}

/* What the assembler took in is whole. */
static void test_sections_end_in_a_line_end(void **state)
{
    (void)state;
    assert_true(str_ends(locustfile_runtime(), STR("\n")));
    assert_true(str_ends(locustfile_listener(), STR("\n")));
    assert_true(str_starts(locustfile_runtime(), STR("# ---")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_in_order),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_sections_end_in_a_line_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

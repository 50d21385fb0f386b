#include "test/unit/alloc.h"
#include "worker/scenario/bundle.h"
#include "worker/scenario/describe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define BEGIN                                                                                      \
    "# --- cicada scenario begin (made by cicada locustfile; run it again rather than edit "       \
    "this)\nCICADA_SCENARIO = r\"\"\"\n"
#define END "\n\"\"\"\n# --- cicada scenario end\n"

/* A scenario with a feed, a body that is no text, and a file that is named twice. */
#define SHOP                                                                                       \
    "host: http://h\n"                                                                             \
    "feeds: [{file: data/users.csv}]\n"                                                            \
    "tasks:\n"                                                                                     \
    "  - steps:\n"                                                                                 \
    "      - post: /a?${name}\n"                                                                   \
    "        file: logo.png\n"                                                                     \
    "      - post: /\xC3\xA9\n"                                                                    \
    "        multipart: {logo: {file: logo.png}}\n"
#define SHOP_Q                                                                                     \
    "host: http://h\\nfeeds: [{file: data/users.csv}]\\ntasks:\\n  - steps:\\n      - post: "      \
    "/a?${name}\\n        file: logo.png\\n      - post: /\\u00e9\\n        multipart: {logo: "    \
    "{file: logo.png}}\\n"
#define SHOP_BUNDLE                                                                                \
    BEGIN "{\"version\": 1, \"scenario\": \"shop.yaml\", \"files\": {\n"                           \
          "\"shop.yaml\": \"" SHOP_Q "\",\n"                                                       \
          "\"data/users.csv\": \"name,quote\\r\\nann,\\\"\\\"\\\"\\\"\\n\",\n"                     \
          "\"logo.png\": {\"base64\": \"iVBORwAK\"}\n"                                             \
          "}}" END

static void write_file(const char *path, struct str bytes)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes.ptr, 1, bytes.len, f), bytes.len);
    assert_int_equal(fclose(f), 0);
}

/* A folder of its own for each test, and the working folder while it runs. */
static int enter(void **state)
{
    static char folder[] = "/tmp/cicada-bundle-XXXXXX";
    char *home = getcwd(NULL, 0);
    *state = home;
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    if (!home || !mkdtemp(folder) || chdir(folder) < 0 || mkdir("in", 0700) < 0 ||
        mkdir("in/data", 0700) < 0)
        return -1;
    write_file("in/shop.yaml", STR(SHOP));
    write_file("in/data/users.csv", STR("name,quote\r\nann,\"\"\"\"\n"));
    write_file("in/logo.png", STR("\x89PNG\0\n"));
    write_file("outside.csv", STR("name\nann\n"));
    return 0;
}

static int leave(void **state)
{
    static const char *const files[] = {"in/shop.yaml", "in/data/users.csv", "in/logo.png",
                                        "in/x.json",    "in/x.so",           "outside.csv"};
    char *folder = getcwd(NULL, 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        (void)unlink(files[i]); /* not every test makes every one */
    int rc = !folder || rmdir("in/data") < 0 || rmdir("in") < 0 || chdir(*state) < 0 ||
             rmdir(folder) < 0;
    free(folder);
    free(*state);
    return rc ? -1 : 0;
}

static void test_written_as_told(void **state)
{
    (void)state;
    struct buf out;
    struct err err = {0};
    buf_init(&out, 1 << 20);
    assert_int_equal(buf_add(&out, STR("x = 1\n")), 0);
    int rc = bundle_write("in/shop.yaml", &out, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
    assert_string_equal(buf_c(&out), "x = 1\n" SHOP_BUNDLE);
    buf_done(&out);
}

static void describe(const struct plan *p, struct buf *out)
{
    buf_init(out, 1 << 20);
    assert_int_equal(plan_describe(p, out), 0);
    buf_drop(out, str_find(buf_str(out), '\n')); /* the source's name */
}

/* With the files gone, the bundle's plan is the one that the files gave. */
static void test_read_back(void **state)
{
    (void)state;
    struct plan *plan = NULL, *again = NULL;
    struct buf before, after;
    struct err err = {0};
    assert_int_equal(plan_load_file("in/shop.yaml", NULL, &plan, &err), 0);
    (void)unlink("in/shop.yaml");
    (void)unlink("in/logo.png");
    int rc = bundle_load(STR("import os\r\n\n" SHOP_BUNDLE "y = 2\n"), "l.py", NULL, &again, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
    assert_true(str_eq(again->source, STR("l.py: shop.yaml")));
    describe(plan, &before);
    describe(again, &after);
    assert_string_equal(buf_c(&before), buf_c(&after));
    assert_int_equal(again->feeds[0].row_count, 1);
    assert_true(str_eq(again->feeds[0].cells[1], STR("\"")));
    struct str body = again->classes[0].tasks[0].steps[0].request.body;
    assert_true(str_ends(body, STR("\x89PNG\0\n")));
    buf_done(&before);
    buf_done(&after);
    plan_free(plan);
    plan_free(again);
}

static void test_loaded_as_a_file(void **state)
{
    (void)state;
    struct plan *plan = NULL;
    struct err err = {0};
    write_file("in/x.json", STR(SHOP_BUNDLE)); /* another name is another kind of file */
    assert_int_equal(plan_load_file("in/x.json", NULL, &plan, &err), -EINVAL);
    err = (struct err){0};
    assert_int_equal(rename("in/x.json", "in/x.py"), 0);
    assert_int_equal(plan_load_file("in/x.py", NULL, &plan, &err), 0);
    assert_true(str_eq(plan->source, STR("in/x.py: shop.yaml")));
    plan_free(plan);
    assert_int_equal(unlink("in/x.py"), 0);
}

static void test_not_writable(void **state)
{
    static const struct {
        const char *label, *path, *text, *error;
    } cases[] = {
        {"missing", "in/none.json", NULL, "in/none.json: No such file or directory"},
        {"a fault", "in/x.json", "{\n\"tasks\": 1}",
         "in/x.json:2: tasks: must be a list of tasks, not 1"},
        {"no feed", "in/x.json", "{\"feeds\": [{\"file\": \"no.csv\"}],\n\"tasks\": [\"/\"]}",
         "in/x.json:1: feeds[0].file: in/no.csv: No such file or directory"},
        {"above", "in/x.json", "{\"feeds\": [{\"file\": \"../outside.csv\"}], \"tasks\": [\"/\"]}",
         "in/x.json:1: feeds[0].file: ../outside.csv: is outside of the scenario's folder, so it "
         "cannot go into a locustfile"},
        {"absolute", "in/x.json", "{\"feeds\": [{\"file\": \"/a.csv\"}], \"tasks\": [\"/\"]}",
         "in/x.json:1: feeds[0].file: /a.csv: is outside of the scenario's folder, so it cannot go "
         "into a locustfile"},
        {"C", "in/x.so", "ELF", "in/x.so: tasks in C cannot go into a locustfile"},
        {"Python", "in/x.py", NULL, "in/x.py: is a locustfile, not a scenario"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out;
        struct err err = {0};
        buf_init(&out, 1 << 20);
        if (cases[i].text)
            write_file(cases[i].path, str_of(cases[i].text));
        assert_true(bundle_write(cases[i].path, &out, &err) < 0);
        if (strcmp(err.text, cases[i].error) != 0 || out.len > 0)
            fail_msg("%s: %s", cases[i].label, err.text);
        buf_done(&out);
    }
}

static void test_too_large(void **state)
{
    struct buf out, text;
    struct err err = {0};
    (void)state;
    buf_init(&out, SIZE_MAX);
    buf_init(&text, BUNDLE_MAX_BYTES);
    assert_int_equal(buf_printf(&text, "{\"tasks\": [\"/\"], \"host\": \"http://h\"}%*s",
                                (int)BUNDLE_MAX_BYTES - 100, ""),
                     0);
    write_file("in/x.json", buf_str(&text));
    assert_int_equal(bundle_write("in/x.json", &out, &err), -ERANGE);
    assert_string_equal(err.text,
                        "in/x.json: with its files larger than the 16 MiB that fit a locustfile");
    assert_int_equal(out.len, 0);
    buf_done(&text);
    buf_done(&out);
}

#define ONE(version, scenario, files)                                                              \
    BEGIN "{\"version\": " version ", \"scenario\": " scenario ", \"files\": {" files "}}" END
#define DAMAGED "l.py: the scenario in it is damaged, make it again with 'cicada locustfile': "

static void test_not_readable(void **state)
{
    static const struct {
        const char *label, *text, *error;
    } cases[] = {
        {"empty", "",
         "l.py: holds no scenario: make one that does with 'cicada locustfile SCENARIO', or name "
         "the scenario itself"},
        {"another", "from locust import User\nx = '# --- cicada scenario begin'\n",
         "l.py: holds no scenario: make one that does with 'cicada locustfile SCENARIO', or name "
         "the scenario itself"},
        {"only begun", "# --- cicada scenario begin",
         DAMAGED "it does not begin with 'CICADA_SCENARIO = r\"\"\"'"},
        {"no text", "# --- cicada scenario begin\nx = 1\n",
         DAMAGED "it does not begin with 'CICADA_SCENARIO = r\"\"\"'"},
        {"cut off", BEGIN "{\"version\": 1, \"scen", DAMAGED "it has no end"},
        {"not JSON", BEGIN "{version: 1}" END,
         DAMAGED "CICADA_SCENARIO:1: not valid JSON: string or '}' expected near 'version'"},
        {"a list", BEGIN "[]" END, DAMAGED "'version' is missing"},
        {"later", ONE("2", "\"x\"", "\"x\": \"\""),
         DAMAGED "it is of a version that this cicada does not know"},
        {"no files", BEGIN "{\"version\": 1, \"scenario\": \"x\", \"files\": []}" END,
         DAMAGED "'files' is missing"},
        {"a number", ONE("1", "\"x\"", "\"x\": 1"), DAMAGED "a file is neither text nor base64"},
        {"twice", ONE("1", "\"x\"", "\"x\": \"\", \"x\": \"\""),
         DAMAGED "CICADA_SCENARIO:1: files.x: the key is given twice, first on line 1"},
        {"above", ONE("1", "\"x\"", "\"x\": \"\", \"a/../../y\": \"\""),
         DAMAGED "the name of a file leads out of it"},
        {"absolute", ONE("1", "\"x\"", "\"x\": \"\", \"/etc/passwd\": \"\""),
         DAMAGED "the name of a file leads out of it"},
        {"a control character", ONE("1", "\"x\"", "\"x\": \"\", \"a\\n\": \"\""),
         DAMAGED "the name of a file leads out of it"},
        {"no scenario", ONE("1", "\"y\"", "\"x\": \"\""),
         DAMAGED "'scenario' is not the name of a text in it"},
        {"binary scenario", ONE("1", "\"x\"", "\"x\": {\"base64\": \"\"}"),
         DAMAGED "'scenario' is not the name of a text in it"},
        {"empty scenario", ONE("1", "\"x\"", "\"x\": \"\""), "l.py: x:1: the file is empty"},
        {"a fault", ONE("1", "\"s.yaml\"", "\"s.yaml\": \"\\n\\nusers: 7\""),
         "l.py: s.yaml:3: users: must be a list of user classes, not 7"},
        {"from the disk",
         ONE("1", "\"s.yaml\"", "\"s.yaml\": \"feeds: [{file: outside.csv}]\\ntasks: [/]\""),
         "l.py: s.yaml:1: feeds[0].file: outside.csv: is not in the locustfile"},
        {"bad base64",
         ONE("1", "\"s.yaml\"",
             "\"s.yaml\": \"tasks: [{steps: [{post: /, file: b}]}]\", \"b\": {\"base64\": \"*\"}"),
         "l.py: s.yaml:1: tasks[0].steps[0].file: b: is not base64"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan *plan = NULL;
        struct err err = {0};
        int rc = bundle_load(str_of(cases[i].text), "l.py", NULL, &plan, &err);
        if (rc != -EINVAL || plan || strcmp(err.text, cases[i].error) != 0)
            fail_msg("%s: %s", cases[i].label, err.text);
    }
}

static void test_tags_are_kept_to(void **state)
{
    (void)state;
    struct str tag = STR("a");
    const struct plan_tags tags = {.include = &tag, .include_count = 1};
    struct plan *plan = NULL;
    struct err err = {0};
    const char *text =
        ONE("1", "\"s.yaml\"",
            "\"s.yaml\": \"tasks: [{tags: [a], steps: [/]}, {tags: [b], steps: [/]}]\"");
    assert_int_equal(bundle_load(str_of(text), "l.py", &tags, &plan, &err), 0);
    assert_int_equal(plan->classes[0].task_count, 1);
    plan_free(plan);
}

static void test_out_of_memory(void **state)
{
    bool failed = true;
    (void)state;
    for (unsigned long n = 1; failed; n++) {
        struct plan *plan = NULL;
        struct err err = {0};
        alloc_fail_at(n);
        int rc = bundle_load(STR(SHOP_BUNDLE), "l.py", NULL, &plan, &err);
        failed = alloc_failed();
        alloc_fail_at(0);
        assert_true(failed ? rc == -ENOMEM || rc == 0 : rc == 0);
        assert_true((rc == 0) == (err.code == 0));
        plan_free(plan);
    }
    failed = true;
    for (unsigned long n = 1; failed; n++) {
        struct buf out;
        struct err err = {0};
        buf_init(&out, 1 << 20);
        alloc_fail_at(n);
        int rc = bundle_write("in/shop.yaml", &out, &err);
        failed = alloc_failed();
        alloc_fail_at(0);
        assert_true(failed ? rc == -ENOMEM || rc == 0 : rc == 0);
        assert_true((rc == 0) == (err.code == 0));
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_written_as_told, enter, leave),
        cmocka_unit_test_setup_teardown(test_read_back, enter, leave),
        cmocka_unit_test_setup_teardown(test_loaded_as_a_file, enter, leave),
        cmocka_unit_test_setup_teardown(test_not_writable, enter, leave),
        cmocka_unit_test_setup_teardown(test_too_large, enter, leave),
        cmocka_unit_test(test_not_readable),
        cmocka_unit_test(test_tags_are_kept_to),
        cmocka_unit_test_setup_teardown(test_out_of_memory, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

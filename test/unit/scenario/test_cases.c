/* Each folder of test/data/scenario holds a scenario (input.json or input.yaml), perhaps files that
 * it names and tags ("+kept -left"), and what must come of it (expect): the plan in words when its
 * name begins with "good-", the error's one line when it begins with "bad-". */
#include "worker/scenario/describe.h"
#include "worker/scenario/plan.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define DATA     "test/data/scenario"
#define MAX_TAGS 8

static int read_case_file(const char *file, struct buf *ret)
{
    buf_init(ret, PLAN_MAX_FILE_BYTES);
    return access(file, F_OK) < 0 ? -ENOENT : buf_read_file(ret, file, NULL);
}

static void split_tags(struct str text, struct str *include, struct str *exclude,
                       struct plan_tags *ret)
{
    struct str rest = str_trim(text), word;
    *ret = (struct plan_tags){include, 0, exclude, 0};
    while (rest.ptr && str_next(&rest, ' ', &word)) {
        if (str_starts(word, STR("+")))
            include[ret->include_count++] = str_sub(word, 1, word.len);
        else if (str_starts(word, STR("-")))
            exclude[ret->exclude_count++] = str_sub(word, 1, word.len);
    }
}

/* Load and describe; the text is the plan's or the error's. */
static int run_case(const char *path, const struct plan_tags *tags, struct buf *out)
{
    struct plan *plan = NULL;
    struct err err = {0};
    int rc = plan_load_file(path, tags, &plan, &err);
    if (rc == 0) {
        assert_int_equal(plan_describe(plan, out), 0);
        assert_int_equal(err.code, 0);
    } else {
        assert_null(plan);
        assert_int_equal(err.code, rc);
        assert_int_equal(buf_printf(out, "%s\n", err.text), 0);
    }
    plan_free(plan);
    return rc;
}

/* A scenario names its files from where it is. */
static void check_case(const char *folder)
{
    struct buf expect, tag_text, got;
    struct str include[MAX_TAGS], exclude[MAX_TAGS];
    struct plan_tags tags;
    int home = open(".", O_RDONLY | O_DIRECTORY);
    assert_true(home >= 0 && chdir(DATA) == 0 && chdir(folder) == 0);
    bool yaml = access("input.yaml", F_OK) == 0;
    assert_int_equal(read_case_file("expect", &expect), 0);
    bool tagged = read_case_file("tags", &tag_text) == 0;
    split_tags(buf_str(&tag_text), include, exclude, &tags);
    buf_init(&got, PLAN_MAX_FILE_BYTES);
    int rc = run_case(yaml ? "input.yaml" : "input.json", tagged ? &tags : NULL, &got);
    assert_true(fchdir(home) == 0 && close(home) == 0);
    bool good = str_starts(str_of(folder), STR("good-"));
    if (!str_eq(buf_str(&got), buf_str(&expect)) || good != (rc == 0))
        fail_msg("%s:\n--- expected\n%s--- got (%d)\n%s", folder, buf_c(&expect), rc, buf_c(&got));
    buf_done(&got);
    buf_done(&tag_text);
    buf_done(&expect);
}

static int is_case(const struct dirent *entry)
{
    return strncmp(entry->d_name, "good-", 5) == 0 || strncmp(entry->d_name, "bad-", 4) == 0;
}

static void run_named_case(void **state)
{
    check_case(*state);
}

/* A cmocka test for each folder, so that each is counted and all failures are seen. */
int main(void)
{
    struct dirent **entries;
    int count = scandir(DATA, &entries, is_case, alphasort);
    if (count <= 0) {
        (void)fprintf(stderr, "no cases in " DATA "\n");
        return 1;
    }
    struct CMUnitTest *tests = calloc((size_t)count, sizeof *tests);
    if (!tests)
        return 1;
    for (int i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){.name = entries[i]->d_name,
                                       .test_func = run_named_case,
                                       .initial_state = entries[i]->d_name};
    int failed = _cmocka_run_group_tests("scenario cases", tests, (size_t)count, NULL, NULL);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    free(tests);
    return failed;
}

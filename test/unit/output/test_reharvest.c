#include "worker/output/reharvest.h"

#include "test/unit/alloc.h"
#include "worker/output/files.h"
#include "worker/output/results.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct rig {
    char folder[64];
    struct stats *stats;
    struct history history;
    json_t *document, *flat; /* of the first harvest */
};

/* A folder as a run leaves it. */
static struct rig *make_rig(void)
{
    struct rig *r = calloc(1, sizeof *r);
    struct err err = {0};
    struct buf page;
    unsigned failures = 0;
    assert_non_null(r);
    (void)snprintf(r->folder, sizeof r->folder, "/tmp/cicada-reharvest-XXXXXX");
    assert_non_null(mkdtemp(r->folder));
    assert_int_equal(stats_new((struct stats_limits){0}, 100, &r->stats), 0);
    for (uint32_t i = 0; i < 4; i++) {
        const struct history_point p = {.wall_s = 100 + 10 * i, .user_count = 5 * i, .target = 15};
        assert_int_equal(history_add(&r->history, &p), 0);
    }
    r->document = json_pack("{s:{s:s, s:i}}", "metadata", "test_name", "t", "worker_pod_count", 4);
    r->flat = json_pack("{s:s, s:n}", "old_value", "1.0", "old_null");
    const struct report report = {.test_name = "t",
                                  .tag = "a",
                                  .start_s = 100,
                                  .end_s = 125,
                                  .stats = r->stats,
                                  .history = &r->history,
                                  .server_document = r->document,
                                  .server_flat = r->flat};
    buf_init(&page, RESULTS_MAX_BYTES);
    assert_int_equal(results_page(&page, &report), 0);
    assert_int_equal(results_write(r->folder, &report, buf_str(&page), NULL, &failures, &err), 0);
    buf_done(&page);
    return r;
}

static char *path_of(const struct rig *r, const char *name)
{
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", r->folder, name);
    return path;
}

static void free_rig(struct rig *r)
{
    static const char *const names[] = {"stats.jsonl", "server_summary.json", "report.html",
                                        "histograms.json.gz"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)unlink(path_of(r, names[i])); /* some tests take them away */
    assert_int_equal(rmdir(r->folder), 0);
    stats_free(r->stats);
    history_done(&r->history);
    json_decref(r->document);
    json_decref(r->flat);
    free(r);
}

static char *text_of(const struct rig *r, const char *name)
{
    struct buf b;
    struct err err = {0};
    buf_init(&b, RESULTS_MAX_BYTES);
    assert_int_equal(buf_read_file(&b, path_of(r, name), &err), 0);
    return buf_take(&b);
}

static void put(const struct rig *r, const char *name, const char *text)
{
    struct err err = {0};
    assert_int_equal(files_write(path_of(r, name), str_of(text), &err), 0);
}

static void test_the_folder_tells_its_run(void **state)
{
    (void)state;
    struct rig *r = make_rig();
    struct reharvest run;
    struct err err = {0};
    assert_int_equal(reharvest_read(r->folder, &run, &err), 0);
    assert_string_equal(run.test_name, "t");
    assert_string_equal(run.tag, "a");
    assert_true(run.start_s == 100 && run.end_s == 125);
    assert_int_equal(run.sample_count, 3); /* the fourth is of the end of the users */
    assert_true(run.samples[2].wall_s == 120 && run.samples[2].users == 10);
    assert_true(run.worker_pod_count.known && run.worker_pod_count.value == 4);
    reharvest_done(&run);
    reharvest_done(&run);

    /* the window of the first harvest, unless it is none */
    put(r, "server_summary.json",
        "{\"metadata\": {\"steady_start_ts\": 103.5, \"steady_end_ts\": 119}}");
    assert_int_equal(reharvest_read(r->folder, &run, &err), 0);
    assert_int_equal(run.sample_count, 2);
    assert_true(run.samples[0].wall_s == 103.5 && run.samples[0].users == 1);
    assert_true(run.samples[1].wall_s == 119 && run.samples[1].users == 1);
    reharvest_done(&run);
    static const char *const strange[] = {
        "{\"metadata\": {\"steady_start_ts\": null, \"steady_end_ts\": 119}}",
        "{\"metadata\": {\"steady_start_ts\": 99, \"steady_end_ts\": 119}}",
        "{\"metadata\": {\"steady_start_ts\": 119, \"steady_end_ts\": 103}}",
        "{\"metadata\": {\"steady_start_ts\": 103, \"steady_end_ts\": 126}}",
    };
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        put(r, "server_summary.json", strange[i]);
        assert_int_equal(reharvest_read(r->folder, &run, &err), 0);
        assert_int_equal(run.sample_count, 3);
        reharvest_done(&run);
    }

    put(r, "server_summary.json", "{\"metadata\": "); /* then it is not known */
    assert_int_equal(reharvest_read(r->folder, &run, &err), 0);
    assert_false(run.worker_pod_count.known);
    reharvest_done(&run);

    put(r, "histograms.json.gz", "no gzip");
    assert_int_equal(reharvest_read(r->folder, &run, &err), -EPROTO);
    assert_non_null(strstr(err.text, "/histograms.json.gz: "));
    reharvest_done(&run);
    free_rig(r);
}

static void test_only_the_servers_part_changes(void **state)
{
    (void)state;
    struct rig *r = make_rig();
    struct err err = {0};
    json_t *document = json_pack("{s:i}", "new", 7);
    json_t *flat = json_pack("{s:s}", "new_value", "7.0");
    char *rows = text_of(r, "stats.jsonl"), *page = text_of(r, "report.html");
    assert_int_equal(reharvest_write(r->folder, document, flat, &err), 0);

    char *new_rows = text_of(r, "stats.jsonl"), *new_page = text_of(r, "report.html");
    char *summary = text_of(r, "server_summary.json");
    assert_non_null(strstr(summary, "\"new\": 7"));
    assert_non_null(strstr(new_rows, "\"measurements\": {\"new_value\": \"7.0\"}"));
    assert_null(strstr(new_rows, "old_value"));
    assert_non_null(strstr(new_page, "<td class=\"t\">new_value</td>"));
    assert_null(strstr(new_page, "old_value"));

    /* the way back gives the same bytes: nothing else was touched */
    assert_int_equal(reharvest_write(r->folder, r->document, r->flat, &err), 0);
    char *back_rows = text_of(r, "stats.jsonl"), *back_page = text_of(r, "report.html");
    assert_string_equal(back_rows, rows);
    assert_string_equal(back_page, page);

    /* no values: no table; and again one */
    json_t *nulls = json_pack("{s:n}", "new_value");
    assert_int_equal(reharvest_write(r->folder, document, nulls, &err), 0);
    free(back_page);
    back_page = text_of(r, "report.html");
    assert_null(strstr(back_page, "The servers"));
    assert_int_equal(reharvest_write(r->folder, r->document, r->flat, &err), 0);
    free(back_page);
    back_page = text_of(r, "report.html");
    assert_string_equal(back_page, page);

    char *texts[] = {rows, page, new_rows, new_page, summary, back_rows, back_page};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    json_decref(nulls);
    json_decref(document);
    json_decref(flat);
    free_rig(r);
}

static void test_what_is_not_there_is_not_made(void **state)
{
    (void)state;
    struct rig *r = make_rig();
    struct err err = {0};
    assert_int_equal(unlink(path_of(r, "stats.jsonl")), 0);
    assert_int_equal(unlink(path_of(r, "report.html")), 0);
    assert_int_equal(reharvest_write(r->folder, r->document, r->flat, &err), 0);
    assert_int_equal(access(path_of(r, "stats.jsonl"), F_OK), -1);
    assert_int_equal(access(path_of(r, "report.html"), F_OK), -1);
    free_rig(r);
}

static void test_a_foreign_file_stays_as_it_is(void **state)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"stats.jsonl", "{\"metric\": \"a\"}\nnot JSON\n"},
        {"stats.jsonl", "{\"metric\": \"server_summary\"}\n"},
        {"stats.jsonl", "[1]\n"},
        {"report.html", "<html>another page</html>"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig *r = make_rig();
        struct err err = {0};
        put(r, cases[i].name, cases[i].text);
        assert_int_equal(reharvest_write(r->folder, r->document, r->flat, &err), -EPROTO);
        assert_non_null(strstr(err.text, cases[i].name));
        assert_non_null(strstr(err.text, ": not a file of results"));
        char *text = text_of(r, cases[i].name);
        assert_string_equal(text, cases[i].text);
        free(text);
        free_rig(r);
    }
}

static void test_allocation_failures(void **state)
{
    (void)state;
    json_set_alloc_funcs(malloc, free); /* jansson's allocations fail as well */
    struct rig *r = make_rig();
    for (int write = 0; write < 2; write++) {
        for (unsigned long n = 1;; n++) {
            struct reharvest run = {0};
            struct err err = {0};
            alloc_fail_at(n);
            int rc = write ? reharvest_write(r->folder, r->document, r->flat, &err)
                           : reharvest_read(r->folder, &run, &err);
            bool failed = alloc_failed();
            alloc_fail_at(0);
            assert_true(failed || rc == 0);
            assert_true(rc == 0 || err.code < 0);
            reharvest_done(&run);
            if (!failed)
                break;
        }
    }
    free_rig(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_folder_tells_its_run),
        cmocka_unit_test(test_only_the_servers_part_changes),
        cmocka_unit_test(test_what_is_not_there_is_not_made),
        cmocka_unit_test(test_a_foreign_file_stays_as_it_is),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

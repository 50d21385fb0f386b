#include "worker/output/results.h"

#include "worker/output/files.h"
#include "worker/output/html.h"
#include "worker/output/keep.h"
#include "worker/output/rows.h"
#include "worker/output/server.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const names[] = {"stats.jsonl", "server_summary.json", "report.html", KEEP_FILE,
                                    "status.json"};

static int path_of(const char *folder, const char *name, char **ret, struct err *err)
{
    if (asprintf(ret, "%s/%s", folder, name) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    return 0;
}

int results_try(const char *folder, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof names / sizeof *names; i++) {
        char *path;
        rc = path_of(folder, names[i], &path, err);
        if (rc < 0)
            return rc;
        rc = files_try(path, err);
        free(path);
    }
    return rc;
}

/* Write the text, or tell why it could not be made. */
static int put(const char *folder, const char *name, int made, struct str text, struct err *err)
{
    char *path;
    int rc = path_of(folder, name, &path, err);
    if (rc < 0)
        return rc;
    rc = made < 0 ? err_set(err, made, "%s: %s", path, strerror(-made))
                  : files_write(path, text, err);
    free(path);
    return rc;
}

int results_page(struct buf *b, const struct report *r)
{
    struct pen pen = {b, 0};
    html_page(&pen, r);
    return pen.rc;
}

static int make_nulls(const struct report *r, const struct profile *profile, json_t **document,
                      json_t **flat)
{
    struct buf time;
    buf_init(&time, 64);
    struct pen pen = {&time, 0};
    pen_time(&pen, r->end_s);
    const struct server_head head = {
        .test_name = r->test_name,
        .tag = r->tag,
        .timestamp = buf_c(&time),
        .start_s = r->start_s,
        .end_s = r->end_s,
        .worker_pod_count = r->facts ? r->facts->worker_pod_count : MEASURE_UNKNOWN,
    };
    int rc = pen.rc < 0 ? pen.rc : server_nulls(profile, &head, document, flat);
    buf_done(&time);
    return rc;
}

/* Count a failure and keep the first. */
static void note(int rc, int *first, unsigned *failures)
{
    *failures += rc < 0;
    *first = *first ? *first : rc;
}

int results_write(const char *folder, const struct report *r, struct str page,
                  const struct profile *profile, unsigned *failures, struct err *err)
{
    int first = 0, made = 0;
    json_t *document = NULL, *flat = NULL;
    struct buf b;
    buf_init(&b, RESULTS_MAX_BYTES);
    if (profile && (!r->server_document || !r->server_flat))
        made = make_nulls(r, profile, &document, &flat);
    if (made == 0)
        made = rows_add(&b, r, flat);
    note(put(folder, "stats.jsonl", made, buf_str(&b), err), &first, failures);
    const json_t *server = r->server_document ? r->server_document : document;
    if (server) {
        buf_clear(&b);
        made = server_text(&b, server);
        note(put(folder, "server_summary.json", made, buf_str(&b), err), &first, failures);
    }
    note(put(folder, "report.html", page.ptr ? 0 : -ENOMEM, page, err), &first, failures);
    buf_clear(&b);
    made = keep_encode(&b, r);
    note(put(folder, KEEP_FILE, made, buf_str(&b), err), &first, failures);
    buf_done(&b);
    json_decref(flat);
    json_decref(document);
    return first;
}

int results_status(const char *folder, const struct report *r, int exit_code, struct err *err)
{
    char text[128];
    int n = snprintf(text, sizeof text, "{\"locust_exit_code\": %d, \"stats_generated\": %s}\n",
                     exit_code, rows_any(r) ? "true" : "false"); /* fits */
    return put(folder, "status.json", 0, (struct str){text, (size_t)n}, err);
}

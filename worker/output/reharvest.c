#include "worker/output/reharvest.h"

#include "facts/json.h"
#include "worker/output/files.h"
#include "worker/output/html_tables.h"
#include "worker/output/keep.h"
#include "worker/output/results.h"
#include "worker/output/server.h"

#include <stdio.h>
#include <stdlib.h>

#define SERVER_ROW    "\"metric\": \"server_summary\""
#define MEASUREMENTS  "\"measurements\": "
#define SERVERS_BEGIN "<section><h2>The servers</h2>"
#define SECTION_END   "</section>\n"
#define MAIN_END      "</main><footer>"

static int no_memory(struct err *err)
{
    return err_set(err, -ENOMEM, "out of memory");
}

/* A file of the folder; bytes is initialised here. */
static int read_file(const char *folder, const char *name, char **ret_path, struct buf *bytes,
                     struct err *err)
{
    buf_init(bytes, RESULTS_MAX_BYTES);
    if (asprintf(ret_path, "%s/%s", folder, name) < 0) {
        *ret_path = NULL;
        return no_memory(err);
    }
    return buf_read_file(bytes, *ret_path, err);
}

/* --- what the run was ------------------------------------------------------------------------ */

static int copy_text(const char *text, char **ret)
{
    *ret = text ? strdup(text) : NULL;
    return text && !*ret ? -ENOMEM : 0;
}

static int take_run(const struct report *r, struct reharvest *h)
{
    const struct history *history = r->history;
    h->start_s = r->start_s;
    h->end_s = r->end_s;
    h->samples = calloc(history->count + 1, sizeof *h->samples);
    if (!h->samples || copy_text(r->test_name, &h->test_name) < 0 || copy_text(r->tag, &h->tag) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < history->count; i++) {
        const struct history_point *p = &history->points[i];
        if (p->wall_s <= r->end_s) /* while the load went on */
            h->samples[h->sample_count++] =
                (struct users_sample){.wall_s = p->wall_s, .users = p->user_count};
    }
    return 0;
}

static int read_run(const char *folder, struct reharvest *h, struct err *err)
{
    char *path;
    struct buf bytes;
    struct kept kept;
    int rc = read_file(folder, KEEP_FILE, &path, &bytes, err);
    if (rc == 0) {
        rc = keep_decode(buf_str(&bytes), &kept, err);
        if (rc == 0 && take_run(&kept.report, h) < 0)
            rc = no_memory(err);
        else if (rc < 0)
            (void)err_prefix(err, "%s", path); /* rc is the answer */
        kept_done(&kept);
    }
    buf_done(&bytes);
    free(path);
    return rc;
}

/* A first harvest of the run tells its steady window: another one has the same. */
static void take_window(const json_t *metadata, struct reharvest *h)
{
    const json_t *start = json_object_get(metadata, "steady_start_ts");
    const json_t *end = json_object_get(metadata, "steady_end_ts");
    double start_s = json_number_value(start), end_s = json_number_value(end);
    if (!json_is_number(start) || !json_is_number(end) || h->sample_count < 2 ||
        !(h->start_s <= start_s && start_s <= end_s && end_s <= h->end_s))
        return;
    h->samples[0] = (struct users_sample){.wall_s = start_s, .users = 1};
    h->samples[1] = (struct users_sample){.wall_s = end_s, .users = 1};
    h->sample_count = 2;
}

/* A summary that is not there or not whole tells nothing. */
static int read_summary(const char *folder, struct reharvest *h)
{
    char *path;
    struct buf bytes;
    int rc = read_file(folder, "server_summary.json", &path, &bytes, NULL);
    if (rc == 0) {
        json_auto_t *root = json_loadb(buf_c(&bytes), bytes.len, 0, NULL);
        const json_t *metadata = json_object_get(root, "metadata");
        const json_t *pods = json_object_get(metadata, "worker_pod_count");
        if (json_is_number(pods))
            h->worker_pod_count = measure_of(json_number_value(pods));
        take_window(metadata, h);
    }
    buf_done(&bytes);
    free(path);
    return rc == -ENOMEM ? rc : 0;
}

int reharvest_read(const char *folder, struct reharvest *ret, struct err *err)
{
    *ret = (struct reharvest){0};
    int rc = read_run(folder, ret, err);
    if (rc == 0 && read_summary(folder, ret) < 0)
        rc = no_memory(err);
    return rc;
}

void reharvest_done(struct reharvest *h)
{
    free(h->test_name);
    free(h->tag);
    free(h->samples);
    *h = (struct reharvest){0};
}

/* --- its files ------------------------------------------------------------------------------- */

/* The row with other measurements, which are its last member. */
static int add_row(struct buf *b, struct str line, const json_t *flat)
{
    size_t at = str_find_str(line, STR(MEASUREMENTS));
    char *text = json_dumps(flat, FACTS_DUMP_FLAGS);
    int rc = at == line.len ? -EPROTO : text ? 0 : -ENOMEM;
    if (rc == 0)
        rc = buf_add(b, str_sub(line, 0, at + sizeof MEASUREMENTS - 1));
    if (rc == 0)
        rc = buf_add(b, str_of(text));
    free(text);
    return rc < 0 ? rc : buf_add(b, STR("}\n"));
}

/* stats.jsonl with another server_summary; all other lines as they are. Text, not JSON: our own
 * rows have one form, and within a JSON string no quote stands bare. */
static int new_rows(struct buf *b, struct str old, const json_t *flat)
{
    struct str line;
    int rc = 0;
    bool found = false;
    while (rc == 0 && str_next(&old, '\n', &line)) {
        if (line.len == 0)
            continue;
        if (str_find_str(line, STR(SERVER_ROW)) < line.len) {
            found = true;
            rc = add_row(b, line, flat);
        } else {
            rc = buf_add(b, line);
            if (rc == 0)
                rc = buf_add_byte(b, '\n');
        }
    }
    return rc < 0 || found ? rc : -EPROTO;
}

/* The page with another table of the servers, which is its last one. */
static int new_page(struct buf *b, struct str old, const json_t *flat)
{
    const struct report servers = {.server_flat = flat};
    struct pen pen = {b, 0};
    size_t end = str_find_str(old, STR(MAIN_END));
    size_t begin = str_find_str(str_sub(old, 0, end), STR(SERVERS_BEGIN));
    if (end == old.len)
        return -EPROTO;
    size_t behind = begin;
    if (begin < end) {
        struct str section = str_sub(old, begin, end);
        behind = begin + str_find_str(section, STR(SECTION_END)) + sizeof SECTION_END - 1;
    }
    pen_str(&pen, str_sub(old, 0, begin));
    html_server(&pen, &servers);
    pen_str(&pen, str_sub(old, behind, old.len));
    return pen.rc;
}

/* Read the file, make it new, write it whole. One that is not there stays so. */
static int rewrite(const char *folder, const char *name, const json_t *flat,
                   int (*make)(struct buf *b, struct str old, const json_t *flat), struct err *err)
{
    char *path;
    struct buf old, new;
    struct err why = {0};
    buf_init(&new, RESULTS_MAX_BYTES);
    int rc = read_file(folder, name, &path, &old, &why);
    if (rc == 0) {
        rc = make(&new, buf_str(&old), flat);
        if (rc < 0)
            (void)err_set(&why, rc, "%s: %s", path, /* rc is the answer */
                          rc == -EPROTO ? "not a file of results" : strerror(-rc));
    }
    if (rc == 0)
        rc = files_write(path, buf_str(&new), &why);
    buf_done(&old);
    buf_done(&new);
    free(path);
    if (rc == -ENOENT)
        return 0;
    return rc < 0 ? err_set(err, rc, "%s", why.text) : 0;
}

static int write_document(const char *folder, const json_t *document, struct err *err)
{
    char *path;
    struct buf text;
    buf_init(&text, RESULTS_MAX_BYTES);
    if (asprintf(&path, "%s/server_summary.json", folder) < 0)
        return no_memory(err);
    int rc = server_text(&text, document);
    rc = rc < 0 ? err_set(err, rc, "%s: %s", path, strerror(-rc))
                : files_write(path, buf_str(&text), err);
    buf_done(&text);
    free(path);
    return rc;
}

int reharvest_write(const char *folder, const json_t *document, const json_t *flat, struct err *err)
{
    int rc = write_document(folder, document, err);
    if (rc == 0)
        rc = rewrite(folder, "stats.jsonl", flat, new_rows, err);
    return rc < 0 ? rc : rewrite(folder, "report.html", flat, new_page, err);
}

#include "worker/output/merge.h"

#include "worker/output/csv_files.h"
#include "worker/output/files.h"
#include "worker/output/keep.h"
#include "worker/output/results.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct inode {
    dev_t device;
    ino_t number;
};

struct merged {
    struct kept *parts;
    struct inode *inodes; /* of the folders so far */
    size_t count;
    struct stats *stats;
    struct history history;
    struct stats_csv_exception *exceptions; /* borrow from the parts */
    struct buf traces;                      /* all rows */
    bool traced;                            /* there is such a file */
    struct report report;
};

static int no_memory(struct err *err)
{
    return err_set(err, -ENOMEM, "out of memory");
}

/* --- reading the parts ---------------------------------------------------------------------- */

static int read_part(const char *folder, struct kept *ret, struct err *err)
{
    struct stat st;
    struct buf bytes;
    char *path;
    bool is_file = stat(folder, &st) == 0 && S_ISREG(st.st_mode);
    if (asprintf(&path, "%s%s", folder, is_file ? "" : "/" KEEP_FILE) < 0)
        return no_memory(err);
    buf_init(&bytes, KEEP_MAX_BYTES);
    struct err why = {0};
    int rc = buf_read_file(&bytes, path, &why);
    if (rc == -ENOENT && !is_file)
        (void)err_set(err, rc, "%s: is no folder of results: it has no %s", folder, KEEP_FILE);
    else if (rc < 0)
        (void)err_set(err, rc, "%s", why.text);
    if (rc == 0) {
        rc = keep_decode(buf_str(&bytes), ret, err);
        if (rc < 0)
            (void)err_prefix(err, "%s", path);
    }
    buf_done(&bytes);
    free(path);
    return rc;
}

/* Two folders may have many names, but only one inode. */
static bool same_folder(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* What is read twice would count twice. */
static bool given_before(struct merged *m, const char *folder)
{
    struct stat st = {0};
    if (stat(folder, &st) < 0)
        return false; /* reading it tells */
    for (size_t i = 0; i < m->count; i++) {
        if (m->inodes[i].device == st.st_dev && m->inodes[i].number == st.st_ino)
            return true;
    }
    m->inodes[m->count] = (struct inode){st.st_dev, st.st_ino};
    return false;
}

static int read_parts(struct merged *m, const char *const *folders, size_t count, const char *out,
                      struct err *err)
{
    if (count == 0 || count > MERGE_MAX_FOLDERS)
        return err_set(err, -EINVAL, "merge: give 1 to %d folders of results", MERGE_MAX_FOLDERS);
    m->parts = calloc(count, sizeof *m->parts);
    m->inodes = calloc(count, sizeof *m->inodes);
    if (!m->parts || !m->inodes)
        return no_memory(err);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (same_folder(folders[i], out))
            return err_set(err, -EINVAL, "merge: %s is both read and written", out);
        if (given_before(m, folders[i]))
            return err_set(err, -EINVAL, "merge: %s is given twice", folders[i]);
        m->count = i + 1;
        rc = read_part(folders[i], &m->parts[i], err);
    }
    return rc;
}

/* --- adding up ------------------------------------------------------------------------------ */

static int merge_stats(struct merged *m, struct err *err)
{
    const struct stats_limits limits = {KEEP_MAX_NAMES, KEEP_MAX_NAMES};
    double start_s = 0;
    for (size_t i = 0; i < m->count; i++) {
        struct stats_entry *total;
        if (stats_total(m->parts[i].stats, &total) < 0)
            return no_memory(err);
        if (i == 0 || total->start_time_s < start_s)
            start_s = total->start_time_s;
        stats_entry_free(total);
    }
    if (stats_new(limits, start_s, &m->stats) < 0)
        return no_memory(err);
    for (size_t i = 0; i < m->count; i++) {
        if (stats_merge(m->stats, m->parts[i].stats) < 0)
            return no_memory(err);
    }
    return 0;
}

static void max_measure(struct measure *into, struct measure m)
{
    if (m.known && (!into->known || m.value > into->value))
        *into = m;
}

/* Of percentiles of several machines the worst says most; counts are added. */
static void merge_generator(struct generator_verdict *into, const struct generator_verdict *g)
{
    max_measure(&into->cpu_p50, g->cpu_p50);
    max_measure(&into->cpu_p90, g->cpu_p90);
    max_measure(&into->cpu_max, g->cpu_max);
    max_measure(&into->loop_lag_p99_ms, g->loop_lag_p99_ms);
    into->missed_starts_1ms += g->missed_starts_1ms;
    into->missed_starts_10ms += g->missed_starts_10ms;
    into->connect_errors += g->connect_errors;
    into->retries += g->retries;
    into->sockets_peak += g->sockets_peak;
    into->saturated |= g->saturated;
    into->too_short |= g->too_short;
    if (into->reasons[0] == '\0' && g->reasons[0])
        memcpy(into->reasons, g->reasons, sizeof into->reasons);
}

static void merge_requests(struct report_requests *into, const struct report_requests *n)
{
    into->started += n->started;
    into->succeeded += n->succeeded;
    into->failed += n->failed;
    into->interrupted += n->interrupted;
    if (n->interrupted_oldest_us > into->interrupted_oldest_us)
        into->interrupted_oldest_us = n->interrupted_oldest_us;
}

static const char *common(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0 ? a : NULL;
}

static void merge_head(struct report *into, const struct report *r, bool first)
{
    into->test_name = first ? r->test_name : common(into->test_name, r->test_name);
    into->tag = first ? r->tag : common(into->tag, r->tag);
    into->host = first ? r->host : common(into->host, r->host);
    into->start_s = first || r->start_s < into->start_s ? r->start_s : into->start_s;
    into->end_s = first || r->end_s > into->end_s ? r->end_s : into->end_s;
    into->exit_code = r->exit_code > into->exit_code ? r->exit_code : into->exit_code;
    merge_requests(&into->requests, &r->requests);
    merge_generator(&into->generator, &r->generator);
}

/* --- exceptions ----------------------------------------------------------------------------- */

static struct stats_csv_exception *find_exception(struct merged *m,
                                                  const struct stats_csv_exception *like)
{
    for (size_t i = 0; i < m->report.exception_count; i++) {
        if (str_eq(m->exceptions[i].message, like->message) &&
            str_eq(m->exceptions[i].traceback, like->traceback))
            return &m->exceptions[i];
    }
    return NULL;
}

/* The nodes are those of the first part that saw it: "local" in most. */
static int merge_exceptions(struct merged *m, struct err *err)
{
    size_t most = 0;
    for (size_t i = 0; i < m->count; i++)
        most += m->parts[i].report.exception_count;
    m->exceptions = calloc(most + 1, sizeof *m->exceptions);
    if (!m->exceptions)
        return no_memory(err);
    for (size_t i = 0; i < m->count; i++) {
        for (size_t e = 0; e < m->parts[i].report.exception_count; e++) {
            const struct stats_csv_exception *one = &m->parts[i].exceptions[e];
            struct stats_csv_exception *same = find_exception(m, one);
            if (same)
                same->count += one->count;
            else
                m->exceptions[m->report.exception_count++] = *one;
        }
    }
    return 0;
}

/* --- the history ---------------------------------------------------------------------------- */

static void add_measure(struct measure *into, struct measure m)
{
    if (m.known)
        *into = measure_of(into->known ? into->value + m.value : m.value);
}

/* Another part's point of the same second. */
static void add_point(struct history_point *into, const struct history_point *p)
{
    into->user_count += p->user_count;
    into->target = into->target && p->target ? into->target + p->target : 0;
    add_measure(&into->rps, p->rps);
    add_measure(&into->fail_per_s, p->fail_per_s);
    into->p50_ms = into->p95_ms = into->p99_ms = into->average_ms = MEASURE_UNKNOWN;
    into->cpu_pct = p->cpu_pct > into->cpu_pct ? p->cpu_pct : into->cpu_pct;
    into->loop_lag_ms = p->loop_lag_ms > into->loop_lag_ms ? p->loop_lag_ms : into->loop_lag_ms;
}

static int by_time(const void *a, const void *b)
{
    const struct history_point *x = a, *y = b;
    return (x->wall_s > y->wall_s) - (x->wall_s < y->wall_s);
}

/* What a counter went up by; after a reset it began anew. */
static uint64_t step(uint64_t now, uint64_t before)
{
    return now >= before ? now - before : now;
}

/* Each part tells its requests and failures so far; in the whole they are sums of all steps. */
static void make_steps(const struct history *from, struct history_point *into)
{
    for (size_t i = 0; i < from->count; i++) {
        into[i] = from->points[i];
        if (i == 0)
            continue;
        into[i].requests = step(into[i].requests, from->points[i - 1].requests);
        into[i].failures = step(into[i].failures, from->points[i - 1].failures);
    }
}

static int merge_history(struct merged *m, struct err *err)
{
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++)
        count += m->parts[i].history.count;
    struct history_point *points = calloc(count + 1, sizeof *points);
    if (!points)
        return no_memory(err);
    count = 0;
    for (size_t i = 0; i < m->count; i++) {
        make_steps(&m->parts[i].history, points + count);
        count += m->parts[i].history.count;
    }
    if (m->count > 1)
        qsort(points, count, sizeof *points, by_time);
    struct history *h = &m->history;
    *h = (struct history){.points = points, .cap = count + 1};
    uint64_t requests = 0, failures = 0;
    for (size_t i = 0; i < count; i++) {
        struct history_point p = points[i], *last = h->count ? &points[h->count - 1] : NULL;
        requests += p.requests;
        failures += p.failures;
        if (last && floor(last->wall_s) == floor(p.wall_s) && m->count > 1)
            add_point(last, &p);
        else
            points[h->count++] = p;
        points[h->count - 1].requests = requests;
        points[h->count - 1].failures = failures;
    }
    return 0;
}

/* --- traces.txt ------------------------------------------------------------------------------ */

static int read_traces(const char *folder, struct buf *rows, bool *any, struct err *err)
{
    struct buf one;
    char *path;
    if (asprintf(&path, "%s/traces.txt", folder) < 0)
        return no_memory(err);
    buf_init(&one, RESULTS_MAX_BYTES);
    int rc = 0;
    if (access(path, F_OK) == 0) { /* else nothing was traced there, or it is no folder */
        *any = true;
        rc = buf_read_file(&one, path, err);
        if (rc == 0 && (rc = buf_add(rows, buf_str(&one))) < 0)
            (void)err_set(err, rc, "%s: %s", path, strerror(-rc));
    }
    buf_done(&one);
    free(path);
    return rc;
}

/* One folder's rows behind the other's. */
static int merge_traces(struct merged *m, const char *const *folders, size_t count, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = read_traces(folders[i], &m->traces, &m->traced, err);
    return rc;
}

static int write_traces(const struct merged *m, const char *out, struct err *err)
{
    char *path;
    if (!m->traced)
        return 0;
    if (asprintf(&path, "%s/traces.txt", out) < 0)
        return no_memory(err);
    int rc = files_write(path, buf_str(&m->traces), err);
    free(path);
    return rc;
}

/* --- all of it ------------------------------------------------------------------------------ */

static int add_up(struct merged *m, struct err *err)
{
    for (size_t i = 0; i < m->count; i++)
        merge_head(&m->report, &m->parts[i].report, i == 0);
    int rc = merge_stats(m, err);
    if (rc == 0)
        rc = merge_exceptions(m, err);
    if (rc == 0)
        rc = merge_history(m, err);
    m->report.phase = REPORT_DONE;
    m->report.now_s = m->report.end_s;
    m->report.stats = m->stats;
    m->report.history = &m->history;
    m->report.exceptions = m->exceptions;
    return rc;
}

static int write_all(const struct merged *m, const char *out, struct err *err)
{
    struct csv_files csv = {0};
    struct buf page;
    unsigned failures = 0;
    char *prefix;
    if (asprintf(&prefix, "%s/", out) < 0)
        return no_memory(err);
    buf_init(&page, RESULTS_MAX_BYTES);
    int rc = results_try(out, err);
    if (rc == 0)
        rc = csv_files_add(&csv, prefix, false, err);
    if (rc == 0)
        rc = results_page(&page, &m->report);
    if (rc == 0)
        rc = csv_files_write(&csv, &m->report, err);
    if (rc == 0)
        rc = results_write(out, &m->report, buf_str(&page), NULL, &failures, err);
    if (rc == 0)
        rc = write_traces(m, out, err);
    if (rc == 0)
        rc = results_status(out, &m->report, m->report.exit_code, err);
    if (rc < 0)
        (void)err_set(err, rc, "%s: %s", out, strerror(-rc)); /* unless it was told in detail */
    buf_done(&page);
    free(prefix);
    csv_files_done(&csv);
    return rc;
}

int merge_results(const char *const *folders, size_t count, const char *out,
                  struct report_requests *ret, struct err *err)
{
    struct merged m = {0};
    buf_init(&m.traces, RESULTS_MAX_BYTES);
    int rc = read_parts(&m, folders, count, out, err);
    if (rc == 0)
        rc = add_up(&m, err);
    if (rc == 0)
        rc = merge_traces(&m, folders, count, err);
    if (rc == 0)
        rc = write_all(&m, out, err);
    if (rc == 0)
        *ret = m.report.requests;
    buf_done(&m.traces);
    free(m.exceptions);
    free(m.history.points);
    stats_free(m.stats);
    for (size_t i = 0; i < m.count; i++)
        kept_done(&m.parts[i]);
    free(m.inodes);
    free(m.parts);
    return rc;
}

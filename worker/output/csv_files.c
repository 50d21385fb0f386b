#include "worker/output/csv_files.h"

#include "worker/output/files.h"
#include "worker/output/sorted.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CSV_MAX_BYTES (256u << 20) /* of one file, or of one second's rows of history */

static const char *const kind_names[CSV_KINDS] = {"stats.csv", "failures.csv", "exceptions.csv",
                                                  "stats_history.csv"};

static int begin_history(struct csv_place *place, struct err *err)
{
    struct buf header;
    int fd = files_open_growing(place->paths[CSV_HISTORY], err);
    if (fd < 0)
        return fd;
    place->history_fd = fd;
    buf_init(&header, CSV_MAX_BYTES);
    int rc = stats_csv_history_header(&header);
    if (rc == 0)
        rc = files_put(fd, buf_str(&header));
    buf_done(&header);
    return rc < 0 ? err_set(err, rc, "%s: %s", place->paths[CSV_HISTORY], strerror(-rc)) : 0;
}

int csv_files_add(struct csv_files *f, const char *prefix, bool history, struct err *err)
{
    struct csv_place *place = &f->places[f->place_count++];
    *place = (struct csv_place){.history_fd = -1};
    for (int k = 0; k < (history ? CSV_KINDS : CSV_HISTORY); k++) {
        if (asprintf(&place->paths[k], "%s%s", prefix, kind_names[k]) < 0) {
            place->paths[k] = NULL;
            return err_set(err, -ENOMEM, "out of memory");
        }
        int rc = files_try(place->paths[k], err);
        if (rc < 0)
            return rc;
    }
    return history ? begin_history(place, err) : 0;
}

/* --- the files that are rewritten ----------------------------------------------------------- */

static int exceptions_rows(struct buf *b, const struct report *r)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->exception_count; i++)
        rc = stats_csv_exceptions_row(b, &r->exceptions[i]);
    return rc;
}

static int make_text(struct buf *b, enum csv_kind kind, const struct report *r)
{
    int rc = 0;
    switch (kind) {
    case CSV_STATS:
        rc = stats_csv_requests_header(b);
        return rc < 0 ? rc : stats_csv_requests_rows(b, r->stats);
    case CSV_FAILURES:
        rc = stats_csv_failures_header(b);
        return rc < 0 ? rc : stats_csv_failures_rows(b, r->stats);
    case CSV_EXCEPTIONS:
        rc = stats_csv_exceptions_header(b);
        return rc < 0 ? rc : exceptions_rows(b, r);
    case CSV_HISTORY:
        break;
    }
    return rc;
}

int csv_files_write(const struct csv_files *f, const struct report *report, struct err *err)
{
    int first = 0;
    struct buf b;
    buf_init(&b, CSV_MAX_BYTES);
    for (int k = 0; k < CSV_HISTORY && f->place_count > 0; k++) {
        buf_clear(&b);
        int rc = make_text(&b, (enum csv_kind)k, report);
        if (rc < 0)
            (void)err_set(err, rc, "%s: %s", f->places[0].paths[k], strerror(-rc));
        for (unsigned i = 0; rc == 0 && i < f->place_count; i++) {
            rc = files_write(f->places[i].paths[k], buf_str(&b), err);
            first = first ? first : rc;
            rc = 0; /* the next place is another disk, maybe */
        }
        first = first ? first : rc;
    }
    buf_done(&b);
    return first;
}

/* --- the history ---------------------------------------------------------------------------- */

/* Room for the recents of all entries, the total's first. */
static int reserve_recents(struct csv_files *f, uint32_t count)
{
    if (count <= f->recent_count)
        return 0;
    struct recent *grown = realloc(f->recents, count * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    memset(grown + f->recent_count, 0, (count - f->recent_count) * sizeof *grown);
    f->recents = grown;
    f->recent_count = count;
    return 0;
}

static int note_recents(struct csv_files *f, const struct report *r, const struct sorted *sorted,
                        uint64_t second)
{
    int rc = reserve_recents(f, stats_entry_count(r->stats) + 1);
    if (rc == 0)
        rc = recent_note(&f->recents[0], sorted->total, second);
    for (uint32_t i = 0; rc == 0 && i < stats_entry_count(r->stats); i++)
        rc = recent_note(&f->recents[i + 1], stats_entry_at(r->stats, i), second);
    return rc;
}

static const struct recent *recent_of(const struct csv_files *f, const struct report *r,
                                      const struct stats_entry *e)
{
    for (uint32_t i = 0; i < stats_entry_count(r->stats); i++) {
        if (stats_entry_at(r->stats, i) == e)
            return &f->recents[i + 1];
    }
    return &f->recents[0];
}

static int add_row(struct csv_files *f, struct buf *b, const struct report *r,
                   struct stats_csv_moment now, const struct stats_entry *e,
                   const struct stats_entry *total)
{
    struct stats_entry *recent = NULL;
    int rc = f->full_history ? recent_entry(recent_of(f, r, e), e, now.second, &recent) : 0;
    if (rc == 0)
        rc = stats_csv_history_row(b, now, e, total, recent);
    stats_entry_free(recent);
    return rc;
}

static int history_rows(struct csv_files *f, struct buf *b, const struct report *r, uint64_t second)
{
    struct sorted sorted;
    const struct history *h = r->history;
    struct stats_csv_moment now = {second, h && h->count ? h->points[h->count - 1].user_count : 0};
    int rc = sorted_make(r->stats, &sorted);
    if (rc == 0 && f->full_history)
        rc = note_recents(f, r, &sorted, second);
    for (size_t i = 0; rc == 0 && f->full_history && i < sorted.count; i++)
        rc = add_row(f, b, r, now, sorted.entries[i], sorted.total);
    if (rc == 0)
        rc = add_row(f, b, r, now, sorted.total, sorted.total);
    sorted_done(&sorted);
    return rc;
}

static int put_history(struct csv_files *f, const struct report *r, uint64_t second,
                       struct err *err)
{
    struct buf b;
    buf_init(&b, CSV_MAX_BYTES);
    int first = history_rows(f, &b, r, second);
    if (first < 0)
        (void)err_set(err, first, "stats_history.csv: %s", strerror(-first));
    for (unsigned i = 0; first == 0 && i < f->place_count; i++) {
        int rc = files_put(f->places[i].history_fd, buf_str(&b));
        if (rc < 0)
            (void)err_set(err, rc, "%s: %s", f->places[i].paths[CSV_HISTORY], strerror(-rc));
        first = first ? first : rc;
    }
    buf_done(&b);
    f->last_second = second;
    return first;
}

int csv_files_tick(struct csv_files *f, const struct report *now, struct err *err)
{
    if (f->place_count == 0)
        return 0;
    uint64_t second = now->now_s > 0 ? (uint64_t)now->now_s : 0;
    int rc = put_history(f, now, second, err);
    if (second >= f->last_rewrite && second - f->last_rewrite < CSV_FLUSH_S)
        return rc;
    f->last_rewrite = second;
    int rewritten = csv_files_write(f, now, err);
    return rc < 0 ? rc : rewritten;
}

int csv_files_finish(struct csv_files *f, const struct report *final, struct err *err)
{
    if (f->place_count == 0)
        return 0;
    uint64_t second = final->end_s > 0 ? (uint64_t) final->end_s : 0;
    int first = second > f->last_second ? put_history(f, final, second, err) : 0;
    int rc = csv_files_write(f, final, err);
    first = first ? first : rc;
    for (unsigned i = 0; i < f->place_count; i++) {
        rc = close(f->places[i].history_fd) < 0 ? -errno : 0;
        f->places[i].history_fd = -1;
        if (rc < 0)
            (void)err_set(err, rc, "%s: %s", f->places[i].paths[CSV_HISTORY], strerror(-rc));
        first = first ? first : rc;
    }
    return first;
}

void csv_files_done(struct csv_files *f)
{
    for (uint32_t i = 0; i < f->recent_count; i++)
        recent_done(&f->recents[i]);
    free(f->recents);
    for (unsigned i = 0; i < f->place_count; i++) {
        if (f->places[i].history_fd >= 0)
            (void)close(f->places[i].history_fd); /* left without a report: nobody can be told */
        for (int k = 0; k < CSV_KINDS; k++)
            free(f->places[i].paths[k]);
    }
    *f = (struct csv_files){0};
}

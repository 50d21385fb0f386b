/* Locust's CSV files as text: headers and rows, byte for byte as its StatsCSV hands them to
 * Python's csv module. Pure formatting, no files; whoever owns the set.
 *
 * Each function appends whole lines (they end in CR LF) and leaves b unchanged on failure:
 * 0, -ERANGE (b's maximum), -ENOMEM. `total` is the stats_total of the entry's set.
 * Source: locust/stats.py StatsCSV, StatsCSVFileWriter, 2.47; the csv module of Python 3.11. */
#ifndef CICADA_WORKER_STATS_CSV_H
#define CICADA_WORKER_STATS_CSV_H

#include "base/buf.h"
#include "worker/stats/percentile.h"
#include "worker/stats/stats.h"

/* --- *_stats.csv */

#define STATS_CSV_COLUMN_COUNT (11 + STATS_PERCENTILE_COUNT)

/* "Type", "Name", …, "100%" */
const char *stats_csv_column(unsigned column);
/* One value as the file prints it, but without quoting: for other files that repeat it. */
MUST_USE int stats_csv_value(struct buf *b, unsigned column, const struct stats_entry *e,
                             const struct stats_entry *total);

MUST_USE int stats_csv_requests_header(struct buf *b);
MUST_USE int stats_csv_requests_row(struct buf *b, const struct stats_entry *e,
                                    const struct stats_entry *total);
/* All used entries ordered by name and method, then "Aggregated". */
MUST_USE int stats_csv_requests_rows(struct buf *b, const struct stats *s);

/* --- *_failures.csv, rows ordered by Locust's error key */

MUST_USE int stats_csv_failures_header(struct buf *b);
MUST_USE int stats_csv_failures_rows(struct buf *b, const struct stats *s);

/* --- *_exceptions.csv */

struct stats_csv_exception {
    uint64_t count;
    struct str message;
    struct str traceback;
    const struct str *nodes; /* names of workers, "local" in a headless run */
    size_t node_count;
};

MUST_USE int stats_csv_exceptions_header(struct buf *b);
MUST_USE int stats_csv_exceptions_row(struct buf *b, const struct stats_csv_exception *e);

/* --- *_stats_history.csv */

struct stats_csv_moment {
    uint64_t second; /* Unix time */
    uint64_t user_count;
};

MUST_USE int stats_csv_history_header(struct buf *b);
/* window: what e counted in the last ten seconds, whose percentiles a full history shows; NULL
 * shows those of the whole run, as Locust does by default. */
MUST_USE int stats_csv_history_row(struct buf *b, struct stats_csv_moment now,
                                   const struct stats_entry *e, const struct stats_entry *total,
                                   const struct stats_entry *window);

/* Any line of texts, quoted as Python's csv.writer does by default. */
MUST_USE int stats_csv_line(struct buf *b, const struct str *fields, size_t count);

#endif

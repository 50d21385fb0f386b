/* Locust's four CSV files, under as many prefixes as are wished. A row of history goes out each
 * second; the other three are rewritten as wholes. The runner's thread; blocking.
 * Source: locust/stats.py StatsCSVFileWriter, 2.47. */
#ifndef CICADA_WORKER_OUTPUT_CSV_FILES_H
#define CICADA_WORKER_OUTPUT_CSV_FILES_H

#include "worker/output/recent.h"
#include "worker/report/report.h"

#define CSV_FLUSH_S                                                                                \
    5 /* CSV_STATS_FLUSH_INTERVAL_SEC: how often readers of Locust's see a change                  \
       */

#define CSV_FILES_MAX 2 /* --csv and the results folder */

enum csv_kind { CSV_STATS, CSV_FAILURES, CSV_EXCEPTIONS, CSV_HISTORY };
#define CSV_KINDS 4

struct csv_place {
    char *paths[CSV_KINDS];
    int history_fd; /* -1: not open */
};

/* Zeroed at first. */
struct csv_files {
    struct csv_place places[CSV_FILES_MAX];
    unsigned place_count;
    bool full_history;
    struct recent *recents; /* by slot, the total's first; only with a full history */
    uint32_t recent_count;
    uint64_t last_second;  /* of the last row of history; 0: none */
    uint64_t last_rewrite; /* second */
};

/* Write to prefix + "stats.csv" and so on: "dir/" or "dir/x_". Tries them all, and begins the
 * history unless there is to be none. 0, the errno (err names the path), -ENOMEM. */
MUST_USE int csv_files_add(struct csv_files *f, const char *prefix, bool history, struct err *err);

/* Each second: 0, or the first error (the other files were tried). */
MUST_USE int csv_files_tick(struct csv_files *f, const struct report *now, struct err *err);
/* At the end: all four as of the report. */
MUST_USE int csv_files_finish(struct csv_files *f, const struct report *final, struct err *err);

/* The three that are rewritten, as of the report. */
MUST_USE int csv_files_write(const struct csv_files *f, const struct report *report,
                             struct err *err);

void csv_files_done(struct csv_files *f);

#endif

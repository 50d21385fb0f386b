/* The sampled actor gauge of one run: the sums of each sample, and its rows as the file of the
 * actors' history has them. The runner's thread. */
#ifndef CICADA_WORKER_REPORT_ACTORS_LOG_H
#define CICADA_WORKER_REPORT_ACTORS_LOG_H

#include "worker/report/report.h"

#define ACTORS_LOG_ROWS_MAX  2000000 /* 96 MB; further rows are left out, not the sums */
#define ACTORS_LOG_NAMES_MAX 4096    /* of different classes and states */

/* Zeroed at first. */
struct actors_log {
    struct actors_series series;
    struct report_actors *rows; /* names are kept in names */
    size_t count, cap;
    char **names;
    size_t name_count;
};

/* 0; -ERANGE (a limit), -ENOMEM: the sample is not there, or its rows are not. */
MUST_USE int actors_log_add(struct actors_log *l, const struct actors_scrape *scrape,
                            double wall_s);
void actors_log_clear(struct actors_log *l);
void actors_log_done(struct actors_log *l);

#endif

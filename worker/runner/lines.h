/* The last log lines of this worker, for the master's "Logs" page. The page shows what came last,
 * not what came since, so each message holds all that are kept. The runner's thread. */
#ifndef CICADA_WORKER_RUNNER_LINES_H
#define CICADA_WORKER_RUNNER_LINES_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

#define LINES_KEPT 70 /* as many as Locust's worker sends at once */

struct lines {
    char *at[LINES_KEPT]; /* a ring: first is the oldest */
    size_t first;
    size_t count;
    bool news; /* taken in since lines_told */
};

void lines_done(struct lines *l);

/* Take in what the log's tap holds. A line without memory for it is left out. */
void lines_take(struct lines *l);

/* Views of all lines, oldest first; returns how many. Valid until the next lines_take. */
size_t lines_views(const struct lines *l, struct str ret[static LINES_KEPT]);

#endif

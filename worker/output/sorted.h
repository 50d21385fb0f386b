/* The used entries of a set in the order of every output: by name, then by method, as Locust sorts
 * them. Whoever owns the set. */
#ifndef CICADA_WORKER_OUTPUT_SORTED_H
#define CICADA_WORKER_OUTPUT_SORTED_H

#include "worker/stats/stats.h"

struct sorted {
    const struct stats_entry **entries;
    size_t count;
    struct stats_entry *total; /* "Aggregated" */
};

/* ret is written in any case; sorted_done it. 0, -ENOMEM. */
MUST_USE int sorted_make(const struct stats *s, struct sorted *ret);
void sorted_done(struct sorted *s);

#endif

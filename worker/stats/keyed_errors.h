/* The errors of a set under Locust's keys. Whoever owns the set. */
#ifndef CICADA_WORKER_STATS_KEYED_ERRORS_H
#define CICADA_WORKER_STATS_KEYED_ERRORS_H

#include "worker/stats/error_key.h"
#include "worker/stats/stats.h"

struct keyed_error {
    char key[ERROR_KEY_BYTES];
    struct stats_error shown; /* borrows from the set */
};

/* One row a key, in the order in which they first occurred. Two errors may share a key ("a.b" and
 * "c", "a" and "b.c"); Locust has one row for them, named after the first, and so have we.
 * The array is freed with free(). 0, -ENOMEM. */
MUST_USE int keyed_errors_new(const struct stats *s, struct keyed_error **ret, size_t *ret_count);

/* Order them by key, as Locust sorts the rows of its failures file. */
void keyed_errors_sort(struct keyed_error *errors, size_t count);

#endif

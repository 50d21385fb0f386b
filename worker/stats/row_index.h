/* An index from hashes to the rows of a caller's array: open addressing, no deletion but of all.
 * It keeps hash and row only; the caller compares what it finds. Owned by a struct stats. */
#ifndef CICADA_WORKER_STATS_ROW_INDEX_H
#define CICADA_WORKER_STATS_ROW_INDEX_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct row_cell {
    uint32_t hash;
    uint32_t row_plus_1; /* 0: empty */
};

struct row_index {
    struct row_cell *cells;
    uint32_t cell_count; /* 0, or a power of two at least twice the rows */
    uint32_t row_count;
};

/* Make room for one row more. 0, -ENOMEM. */
MUST_USE int row_index_reserve(struct row_index *x);
/* There must be room. */
void row_index_put(struct row_index *x, size_t hash, uint32_t row);
void row_index_clear(struct row_index *x);
void row_index_done(struct row_index *x);

/* The next row that was put with this hash (or one that looks like it): start with *probe 0; false
 * at the end. */
bool row_index_next(const struct row_index *x, size_t hash, uint32_t *probe, uint32_t *ret_row);

#endif

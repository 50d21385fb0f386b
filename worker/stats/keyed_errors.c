#include "worker/stats/keyed_errors.h"

#include "worker/stats/row_index.h"

#include <stdlib.h>

static struct stats_error *find(const struct row_index *index, struct keyed_error *rows,
                                size_t hash, const char *key)
{
    uint32_t probe = 0, row;
    while (row_index_next(index, hash, &probe, &row)) {
        if (memcmp(rows[row].key, key, ERROR_KEY_BYTES) == 0)
            return &rows[row].shown;
    }
    return NULL;
}

static void add_to(struct stats_error *into, const struct stats_error *e)
{
    into->occurrences += e->occurrences;
    if (e->first_seen_s < into->first_seen_s)
        into->first_seen_s = e->first_seen_s;
    if (e->last_seen_s > into->last_seen_s)
        into->last_seen_s = e->last_seen_s;
}

/* Put the error behind the count rows there are, or into the one of its key. */
static int put(struct row_index *index, struct keyed_error *rows, uint32_t *count,
               const struct stats_error *e)
{
    struct keyed_error *row = &rows[*count];
    int rc = error_key(e->method, e->name, e->error, row->key);
    if (rc == 0)
        rc = row_index_reserve(index);
    if (rc < 0)
        return rc;
    size_t hash = str_hash((struct str){row->key, ERROR_KEY_BYTES - 1});
    struct stats_error *same = find(index, rows, hash, row->key);
    if (same) {
        add_to(same, e);
        return 0;
    }
    row->shown = *e;
    row_index_put(index, hash, (*count)++);
    return 0;
}

int keyed_errors_new(const struct stats *s, struct keyed_error **ret, size_t *ret_count)
{
    struct row_index index = {0};
    uint32_t count = 0;
    /* one more than needed: an empty array is not NULL */
    struct keyed_error *rows = calloc((size_t)stats_error_count(s) + 1, sizeof *rows);
    int rc = rows ? 0 : -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < stats_error_count(s); i++)
        rc = put(&index, rows, &count, stats_error_at(s, i));
    row_index_done(&index);
    if (rc < 0) {
        free(rows);
        return rc;
    }
    *ret = rows;
    *ret_count = count;
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const struct keyed_error *x = a, *y = b;
    return memcmp(x->key, y->key, ERROR_KEY_BYTES);
}

void keyed_errors_sort(struct keyed_error *errors, size_t count)
{
    qsort(errors, count, sizeof *errors, by_key);
}

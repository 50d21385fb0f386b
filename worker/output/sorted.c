#include "worker/output/sorted.h"

#include <stdlib.h>

static int by_name(const void *a, const void *b)
{
    const struct stats_entry *const *x = a, *const *y = b;
    int order = str_cmp((*x)->name, (*y)->name);
    return order ? order : str_cmp((*x)->method, (*y)->method);
}

int sorted_make(const struct stats *s, struct sorted *ret)
{
    *ret = (struct sorted){0};
    ret->entries = calloc((size_t)stats_entry_count(s) + 1, sizeof *ret->entries);
    int rc = ret->entries ? stats_total(s, &ret->total) : -ENOMEM;
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < stats_entry_count(s); i++) {
        if (stats_entry_used(stats_entry_at(s, i)))
            ret->entries[ret->count++] = stats_entry_at(s, i);
    }
    if (ret->count > 0)
        qsort(ret->entries, ret->count, sizeof *ret->entries, by_name);
    return 0;
}

void sorted_done(struct sorted *s)
{
    stats_entry_free(s->total);
    free(s->entries);
    *s = (struct sorted){0};
}

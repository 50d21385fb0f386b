#include "worker/stats/seconds.h"

#include <stdlib.h>
#include <string.h>

/* The first position whose second is not below `second`. */
static uint32_t lower_bound(const struct stats_seconds *s, uint64_t second)
{
    uint32_t low = 0, high = s->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->at[middle].second < second)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int stats_seconds_reserve(struct stats_seconds *s, uint32_t more)
{
    uint32_t want;
    if (__builtin_add_overflow(s->count, more, &want))
        return -ENOMEM;
    if (want <= s->cap)
        return 0;
    uint32_t cap = s->cap > UINT32_MAX / 2 ? UINT32_MAX : s->cap * 2;
    if (cap < STATS_SECONDS_FIRST)
        cap = STATS_SECONDS_FIRST;
    if (cap < want)
        cap = want;
    struct stats_second *grown = realloc(s->at, (size_t)cap * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    s->at = grown;
    s->cap = cap;
    return 0;
}

int stats_seconds_insert(struct stats_seconds *s, uint64_t second, uint64_t count)
{
    uint32_t at = lower_bound(s, second);
    if (at < s->count && s->at[at].second == second) {
        s->at[at].count += count;
        return 0;
    }
    int rc = stats_seconds_reserve(s, 1);
    if (rc < 0)
        return rc;
    if (at < s->count)
        memmove(s->at + at + 1, s->at + at, (s->count - at) * sizeof *s->at);
    s->at[at] = (struct stats_second){second, count};
    s->count++;
    return 0;
}

uint64_t stats_seconds_get(const struct stats_seconds *s, uint64_t second)
{
    uint32_t at = lower_bound(s, second);
    return at < s->count && s->at[at].second == second ? s->at[at].count : 0;
}

void stats_seconds_done(struct stats_seconds *s)
{
    free(s->at);
    *s = (struct stats_seconds){0};
}

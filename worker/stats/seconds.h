/* Counts by second, ascending. Time mostly runs forward, so the last second is where a count goes
 * or behind which a new one is put; a clock that stepped back costs a search, not a wrong order.
 * Owned by a stats entry; see entry.h for the structs. */
#ifndef CICADA_WORKER_STATS_SECONDS_H
#define CICADA_WORKER_STATS_SECONDS_H

#include "base/err.h"
#include "worker/stats/entry.h"

#define STATS_SECONDS_FIRST 8 /* a shard hands its set over every 3 s: it never grows beyond */

/* Room for so many seconds more. 0, -ENOMEM. */
MUST_USE int stats_seconds_reserve(struct stats_seconds *s, uint32_t more);

/* The general case of stats_seconds_add. */
int stats_seconds_insert(struct stats_seconds *s, uint64_t second, uint64_t count);

/* 0; -ENOMEM: not counted (never when there is room for one second more). */
static inline int stats_seconds_add(struct stats_seconds *s, uint64_t second, uint64_t count)
{
    if (__builtin_expect(s->count > 0 && s->at[s->count - 1].second == second, 1)) {
        s->at[s->count - 1].count += count;
        return 0;
    }
    return stats_seconds_insert(s, second, count);
}

/* The count of a second; 0 when there is none. */
uint64_t stats_seconds_get(const struct stats_seconds *s, uint64_t second);

static inline void stats_seconds_clear(struct stats_seconds *s)
{
    s->count = 0;
}

void stats_seconds_done(struct stats_seconds *s);

#endif

#include "worker/engine/dispatch.h"

#include "base/str.h"

static uint64_t load_of(const uint32_t *row, size_t class_count)
{
    uint64_t sum = 0;
    for (size_t c = 0; c < class_count; c++)
        sum += row[c];
    return sum;
}

struct table {
    uint32_t *counts;
    size_t shards;
    size_t classes;
};

/* The shard with the smallest load, or with the largest among those that have some of the class. */
static size_t choose(const struct table *t, const uint64_t *loads, size_t class, bool fewest)
{
    size_t best = t->shards;
    for (size_t s = 0; s < t->shards; s++) {
        if (!fewest && t->counts[s * t->classes + class] == 0)
            continue;
        if (best == t->shards || (fewest ? loads[s] < loads[best] : loads[s] >= loads[best]))
            best = s;
    }
    return best;
}

#define DISPATCH_STACK_SHARDS 1024

void dispatch_spread(uint32_t *counts, size_t shard_count, size_t class_count,
                     const uint32_t *targets)
{
    struct table t = {counts, shard_count, class_count};
    uint64_t loads[DISPATCH_STACK_SHARDS];
    for (size_t s = 0; s < shard_count; s++)
        loads[s] = load_of(counts + s * class_count, class_count);
    /* leavers first, so that newcomers see the room they leave */
    for (int joining = 0; joining <= 1; joining++) {
        for (size_t c = 0; c < class_count; c++) {
            uint64_t have = 0;
            for (size_t s = 0; s < shard_count; s++)
                have += counts[s * class_count + c];
            for (; joining ? have < targets[c] : have > targets[c]; have += joining ? 1 : -1) {
                size_t s = choose(&t, loads, c, joining);
                counts[s * class_count + c] += joining ? 1 : -1;
                loads[s] += joining ? 1 : -1;
            }
        }
    }
}

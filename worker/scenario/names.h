/* A table of distinct names, each a pair of texts (a method and a name; the first may be empty),
 * numbered in the order they came. One thread at a time; its memory is its arena's. */
#ifndef CICADA_WORKER_SCENARIO_NAMES_H
#define CICADA_WORKER_SCENARIO_NAMES_H

#include "base/err.h"
#include "base/str.h"
#include "worker/scenario/arena.h"
#include "worker/scenario/plan.h"

#include <stdbool.h>

struct names {
    struct arena *arena;
    struct plan_entry *items; /* borrowed texts */
    size_t count, room;
    uint32_t *slots; /* open addressing, index + 1; twice as many as room */
};

/* Find the pair, or add it; the texts are not copied. 0, -ENOMEM. */
MUST_USE int names_add(struct names *t, struct str method, struct str name, uint32_t *ret_index,
                       bool *ret_new);

#endif

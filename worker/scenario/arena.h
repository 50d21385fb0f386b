/* Memory that is freed all at once: blocks, filled from the front. What is allocated stays where it
 * is until arena_done. Caller's storage; one thread at a time. */
#ifndef CICADA_WORKER_SCENARIO_ARENA_H
#define CICADA_WORKER_SCENARIO_ARENA_H

#include "base/str.h"

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks; /* the newest first */
};

/* A zeroed struct arena is an empty one. */
void arena_done(struct arena *a);

/* Room for count things of size bytes, zeroed and aligned for any type. NULL: out of memory, or
 * the product overflows. */
void *arena_array(struct arena *a, size_t count, size_t size);

#define ARENA_NEW(arena, type)          ((type *)arena_array(arena, 1, sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_array(arena, count, sizeof(type)))

/* A copy of the text with a NUL behind it; an empty text has a ptr too. ptr NULL: out of memory. */
struct str arena_copy(struct arena *a, struct str text);

#endif

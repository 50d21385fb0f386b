/* Spreads the users of each class evenly over the shards. Pure. */
#ifndef CICADA_WORKER_ENGINE_DISPATCH_H
#define CICADA_WORKER_ENGINE_DISPATCH_H

#include <stddef.h>
#include <stdint.h>

/* counts is a table of shard_count rows of class_count numbers: what each shard has, changed to
 * what it should have so that each class sums up to its target. Users stay where they are as far as
 * possible; a new one goes to the shard with the fewest, a surplus one leaves the shard with the
 * most. */
void dispatch_spread(uint32_t *counts, size_t shard_count, size_t class_count,
                     const uint32_t *targets);

#endif

/* Where the users of a process are in the feeds of their plan. Shared by all shards: a row is taken
 * once for a user or a task, not for a request, and only what must be the same for all of them (no
 * row twice, rows in order) is shared. Any thread. */
#ifndef CICADA_WORKER_ENGINE_FEEDS_H
#define CICADA_WORKER_ENGINE_FEEDS_H

#include "base/err.h"
#include "base/random.h"
#include "worker/scenario/plan.h"

#define FEEDS_NO_ROW UINT32_MAX

struct feeds;

/* The plan must outlive it. A plan without feeds gives NULL. 0, -ENOMEM. */
MUST_USE int feeds_new(const struct plan *plan, struct feeds **ret);
void feeds_free(struct feeds *f);

/* Begin anew: between two runs, when no user has a row. */
void feeds_rewind(struct feeds *f);

/* The next row of a feed for a user of this worker (its number from 0), or FEEDS_NO_ROW at the end
 * of one that stops there. */
uint32_t feeds_take(struct feeds *f, uint32_t feed, uint32_t worker, struct rng *rng);

/* A user ended: its unique row may go to another one. */
void feeds_give_back(struct feeds *f, uint32_t feed, uint32_t row);

#endif

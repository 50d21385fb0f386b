/* An open model: tasks start at the plan's rate, whoever is still busy. Each class has a schedule
 * of its own, its share of the rate; each shard takes every n-th arrival of it, so that shards need
 * not speak to each other and all together keep an even rate. A user without a task waits in a
 * stack for the next arrival; when none waits, the pool grows; when it is full, the arrival waits,
 * and its response time counts from when it was due all the same. The shard's thread, but for
 * making and freeing one. */
#ifndef CICADA_WORKER_ENGINE_ARRIVAL_H
#define CICADA_WORKER_ENGINE_ARRIVAL_H

#include "worker/engine/timers.h"
#include "worker/scenario/plan.h"
#include "worker/scenario/shape.h"

struct shard;
struct user;

struct arrival_class {
    struct timer timer;
    struct shard *shard;
    const struct plan_shape *shape;
    uint64_t begin_us; /* of the schedule, monotonic */
    uint32_t class;
    double share;       /* of the rate, 0: none of this class here */
    uint64_t next;      /* number of the first arrival of the class that has not begun here */
    uint64_t step;      /* from one of ours to the next */
    uint32_t max_users; /* here */
    uint32_t users;     /* here */
    uint32_t starting;  /* of them: begun for an arrival, not ready for it yet */
    struct user *idle;  /* those without a task, linked by next_idle */
};

struct arrivals {
    size_t class_count;
    struct arrival_class classes[];
};

/* What shard number `shard` of shard_count does of the plan's arrivals. wanted tells by class who
 * takes part, NULL: all. NULL: out of memory. */
struct arrivals *arrivals_new(const struct plan *plan, const bool *wanted, unsigned shard,
                              unsigned shard_count, uint64_t begin_us);
void arrivals_free(struct arrivals *a); /* NULL is nothing */

/* Begin, in the shard's loop. */
void arrivals_begin(struct arrivals *a, struct shard *s, uint64_t now_us);
/* End: no arrival begins any more; those that were due count as missed, but for those of
 * the last moment that a user was free for. Users stay. */
void arrivals_end(struct arrivals *a, uint64_t now_us);

/* A user has no task: give it one that is due, or let it wait. */
void arrivals_ready(struct arrivals *a, struct user *u, uint64_t now_us);

/* A user ended by itself, in the midst of a task. */
void arrivals_gone(struct arrivals *a, struct user *u, uint64_t now_us);

#endif

/* Timers of a shard: a hierarchical wheel, so that setting and cancelling cost the same for ten
 * timers and for a million. Ticks are 64 µs: no timer fires early, and at most one tick late
 * when the loop is not. The shard's thread only; timers are embedded in what they belong to. */
#ifndef CICADA_WORKER_ENGINE_TIMERS_H
#define CICADA_WORKER_ENGINE_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMERS_TICK_SHIFT 6   /* 64 µs */
#define TIMERS_SLOTS      256 /* a level */
#define TIMERS_LEVELS     4   /* 2^32 ticks: 3 days; what lies beyond waits in the last slot */

#define TIMERS_A_RUN 1024 /* fired at most in one run: the loop has other work too */

struct timer {
    struct timer *next; /* NULL: not set */
    struct timer *prev;
    uint64_t due_us;
    void (*fire)(struct timer *t, void *context, uint64_t now_us);
};

struct timers {
    uint64_t tick; /* the next one to run; stays behind while nothing is due */
    uint64_t next_us;
    size_t count;
    uint64_t used[TIMERS_LEVELS][TIMERS_SLOTS / 64];
    struct timer slots[TIMERS_LEVELS][TIMERS_SLOTS]; /* list heads */
};

void timers_init(struct timers *w, uint64_t now_us);

static inline bool timer_is_set(const struct timer *t)
{
    return t->next != NULL;
}

/* Set or move a timer; t->fire is set by the caller. */
void timers_set(struct timers *w, struct timer *t, uint64_t due_us);
void timers_cancel(struct timers *w, struct timer *t); /* one that is not set is left alone */

/* When timers_run must be called next; UINT64_MAX without timers. May be early: a timer far away
 * needs a call or two in between, and one that was cancelled is forgotten when its time comes. */
static inline uint64_t timers_next_us(const struct timers *w)
{
    return w->next_us;
}

/* Fire what is due, in the order of the ticks, at most TIMERS_A_RUN timers; when more are due,
 * timers_next_us is past. A callback may set and cancel any timer; one
 * set to a time that is past fires in the next call at the earliest. */
void timers_run_due(struct timers *w, uint64_t now_us, void *context);

static inline void timers_run(struct timers *w, uint64_t now_us, void *context)
{
    if (now_us >= w->next_us)
        timers_run_due(w, now_us, context);
}

#endif

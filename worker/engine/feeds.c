#include "worker/engine/feeds.h"

#include "base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct position {
    atomic_uint_fast64_t next; /* rows taken so far */
    atomic_bool end_told;
    uint32_t *returned; /* unique rows that nobody has any more; under the lock */
    uint32_t returned_count;
};

struct feeds {
    const struct plan *plan;
    pthread_mutex_t lock;
    struct position at[];
};

int feeds_new(const struct plan *plan, struct feeds **ret)
{
    *ret = NULL;
    if (plan->feed_count == 0)
        return 0;
    struct feeds *f = calloc(1, sizeof *f + plan->feed_count * sizeof f->at[0]);
    if (!f)
        return -ENOMEM;
    f->plan = plan;
    pthread_mutex_init(&f->lock, NULL);
    for (size_t i = 0; i < plan->feed_count; i++) {
        atomic_init(&f->at[i].next, 0);
        atomic_init(&f->at[i].end_told, false);
        if (plan->feeds[i].order != PLAN_FEED_UNIQUE)
            continue;
        f->at[i].returned = calloc(plan->feeds[i].row_count, sizeof *f->at[i].returned);
        if (!f->at[i].returned) {
            feeds_free(f);
            return -ENOMEM;
        }
    }
    *ret = f;
    return 0;
}

void feeds_free(struct feeds *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->plan->feed_count; i++)
        free(f->at[i].returned);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

void feeds_rewind(struct feeds *f)
{
    for (size_t i = 0; f && i < f->plan->feed_count; i++) {
        pthread_mutex_lock(&f->lock);
        f->at[i].returned_count = 0;
        pthread_mutex_unlock(&f->lock);
        atomic_store(&f->at[i].next, 0);
        atomic_store(&f->at[i].end_told, false);
    }
}

/* The rows of a worker are every feed->workers-th one. */
static uint64_t share_of(const struct plan_feed *feed, uint32_t first)
{
    return (feed->row_count - first + feed->workers - 1) / feed->workers;
}

static void tell_end(const struct plan_feed *feed, struct position *at)
{
    char quoted[LOG_QUOTED_BYTES];
    if (!atomic_exchange(&at->end_told, true))
        log_warning("feed %s has no more rows: users that want one end, continuing",
                    log_quote(feed->file, quoted));
}

static bool take_returned(struct feeds *f, struct position *at, uint32_t *ret_row)
{
    pthread_mutex_lock(&f->lock);
    bool any = at->returned_count > 0;
    if (any)
        *ret_row = at->returned[--at->returned_count];
    pthread_mutex_unlock(&f->lock);
    return any;
}

uint32_t feeds_take(struct feeds *f, uint32_t feed, uint32_t worker, struct rng *rng)
{
    const struct plan_feed *plan = &f->plan->feeds[feed];
    struct position *at = &f->at[feed];
    uint32_t first = worker % plan->workers, row;
    uint64_t share = share_of(plan, first);
    if (plan->order == PLAN_FEED_RANDOM)
        return first + (uint32_t)rng_below(rng, share) * plan->workers;
    if (plan->order == PLAN_FEED_UNIQUE && take_returned(f, at, &row))
        return row;
    uint64_t n = atomic_fetch_add_explicit(&at->next, 1, memory_order_relaxed);
    if (n >= share && plan->stop_at_end) {
        tell_end(plan, at);
        return FEEDS_NO_ROW;
    }
    return first + (uint32_t)(n % share) * plan->workers;
}

void feeds_give_back(struct feeds *f, uint32_t feed, uint32_t row)
{
    struct position *at = &f->at[feed];
    if (f->plan->feeds[feed].order != PLAN_FEED_UNIQUE || row == FEEDS_NO_ROW)
        return;
    pthread_mutex_lock(&f->lock);
    if (at->returned_count < f->plan->feeds[feed].row_count) /* a rewind may have come between */
        at->returned[at->returned_count++] = row;
    pthread_mutex_unlock(&f->lock);
}

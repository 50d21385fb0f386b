#include "worker/engine/arrival.h"

#include "worker/engine/shard.h"
#include "worker/engine/user.h"

#include <math.h>
#include <stdlib.h>

#define BEGUN_AT_ONCE 64     /* before sockets are looked at again */
#define RETRY_US      100000 /* without memory for a user */
#define BLINK_US      10000  /* a loop may be as late as that */

/* --- the schedule ---------------------------------------------------------------------------- */

/* When arrival number n of the class is due; UINT64_MAX: never. */
static uint64_t due_us(const struct arrival_class *c, uint64_t n)
{
    if (c->share <= 0)
        return UINT64_MAX;
    uint64_t us = shape_arrival_us(c->shape, (double)n / c->share);
    return us == UINT64_MAX ? us : c->begin_us + us;
}

/* The first arrival for which no user is on the way. */
static uint64_t open_us(const struct arrival_class *c)
{
    return due_us(c, c->next + c->starting * c->step);
}

/* Arrivals that were due by now and have not begun. */
static uint64_t overdue(const struct arrival_class *c, uint64_t now_us)
{
    if (c->share <= 0 || now_us <= c->begin_us)
        return 0;
    double due = shape_arrivals(c->shape, now_us - c->begin_us) * c->share - (double)c->next;
    return due > 0 ? (uint64_t)ceil(due / (double)c->step) : 0;
}

static bool is_full(const struct arrival_class *c)
{
    return !c->idle && c->users >= c->max_users;
}

/* Wake up for the next arrival that somebody could take, not before so soon. When all are busy, who
 * is ready first comes by himself. */
static void arm(struct arrival_class *c, uint64_t soonest_us)
{
    uint64_t us = open_us(c);
    if (us == UINT64_MAX || is_full(c))
        timers_cancel(&c->shard->timers, &c->timer);
    else
        timers_set(&c->shard->timers, &c->timer, us > soonest_us ? us : soonest_us);
}

/* --- users ----------------------------------------------------------------------------------- */

static void begin_next(struct arrival_class *c, struct user *u, uint64_t now_us)
{
    uint64_t us = due_us(c, c->next);
    c->next += c->step;
    user_begin_task(u, us, now_us);
}

static void take_idle(struct arrival_class *c, uint64_t now_us)
{
    struct user *u = c->idle;
    c->idle = u->next_idle;
    u->next_idle = NULL;
    user_note_late_start(u, now_us - due_us(c, c->next));
    begin_next(c, u, now_us);
}

/* One more user for an arrival; it takes it when it is ready, often before this returns. False:
 * there is no memory now, or it can have none more. */
static bool grow(struct arrival_class *c)
{
    if (c->users >= c->max_users)
        return false;
    c->users++;
    c->starting++;
    if (user_start(c->shard, c->class) == 0)
        return true;
    c->users--;
    c->starting--;
    return false;
}

static void arrival_due(struct timer *t, void *context, uint64_t now_us)
{
    struct arrival_class *c = (struct arrival_class *)t; /* its first member */
    (void)context;
    uint64_t soonest_us = now_us;
    for (unsigned i = 0; i < BEGUN_AT_ONCE && open_us(c) <= now_us; i++) {
        if (c->idle) {
            take_idle(c, now_us);
        } else if (!grow(c)) {
            soonest_us += RETRY_US;
            break;
        }
    }
    arm(c, soonest_us);
}

void arrivals_ready(struct arrivals *a, struct user *u, uint64_t now_us)
{
    struct arrival_class *c = &a->classes[u->class];
    bool was_busy = !u->arriving;
    c->starting -= u->arriving;
    u->arriving = false;
    if (due_us(c, c->next) <= now_us) {
        c->shard->counters.arrivals_waited += was_busy; /* the pool is too small */
        user_note_late_start(u, now_us - due_us(c, c->next));
        begin_next(c, u, now_us);
    } else {
        u->stage = USER_WORKS;
        u->state = USER_WAITING;
        u->fresh = false;
        u->next_idle = c->idle;
        c->idle = u;
    }
    arm(c, now_us);
}

void arrivals_gone(struct arrivals *a, struct user *u, uint64_t now_us)
{
    struct arrival_class *c = &a->classes[u->class];
    c->starting -= u->arriving;
    c->users--;
    arm(c, now_us);
}

/* --- life ------------------------------------------------------------------------------------ */

static uint64_t weight_of(const struct plan *plan, const bool *wanted, size_t class)
{
    bool runs = (!wanted || wanted[class]) && plan->classes[class].task_count > 0;
    return runs ? plan->classes[class].weight : 0;
}

/* The class's part of the pool, at least one user, and this shard's part of that. A class with
 * fewer users than there are shards is the business of some of them, others for each class. */
static void share_out(struct arrival_class *c, unsigned shard, unsigned shard_count)
{
    double users = (double)c->shape->max_users * c->share;
    uint32_t all = users < 1 ? 1 : (uint32_t)users;
    uint32_t hands = all < shard_count ? all : shard_count;
    uint32_t place = (shard + c->class) % shard_count;
    if (place >= hands)
        c->share = 0;
    c->max_users = all / hands + (place < all % hands ? 1 : 0);
    c->next = place;
    c->step = hands;
}

struct arrivals *arrivals_new(const struct plan *plan, const bool *wanted, unsigned shard,
                              unsigned shard_count, uint64_t begin_us)
{
    uint64_t weights = 0;
    size_t n = plan->class_count;
    struct arrivals *a = calloc(1, sizeof *a + n * sizeof a->classes[0]);
    if (!a)
        return NULL;
    a->class_count = n;
    for (size_t i = 0; i < n; i++)
        weights += weight_of(plan, wanted, i);
    for (size_t i = 0; i < n; i++) {
        struct arrival_class *c = &a->classes[i];
        *c = (struct arrival_class){
            .timer.fire = arrival_due,
            .shape = plan->shape,
            .begin_us = begin_us,
            .class = (uint32_t)i,
            .share = weights ? (double)weight_of(plan, wanted, i) / (double)weights : 0,
            .step = 1,
        };
        if (c->share > 0)
            share_out(c, shard, shard_count);
    }
    return a;
}

void arrivals_free(struct arrivals *a)
{
    free(a);
}

void arrivals_begin(struct arrivals *a, struct shard *s, uint64_t now_us)
{
    for (size_t i = 0; i < a->class_count; i++) {
        a->classes[i].shard = s;
        arrival_due(&a->classes[i].timer, s, now_us);
    }
}

/* With a free user, what came due just as the end came is no more missed than what is due next. */
void arrivals_end(struct arrivals *a, uint64_t now_us)
{
    for (size_t i = 0; i < a->class_count; i++) {
        struct arrival_class *c = &a->classes[i];
        timers_cancel(&c->shard->timers, &c->timer);
        uint64_t blink_us = is_full(c) || now_us < BLINK_US ? 0 : BLINK_US;
        c->shard->counters.arrivals_missed += overdue(c, now_us - blink_us);
    }
}

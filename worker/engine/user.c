#include "worker/engine/user.h"

#include "base/clock.h"
#include "worker/engine/arrival.h"
#include "worker/engine/cookies.h"
#include "worker/engine/engine.h"
#include "worker/engine/interpreter.h"
#include "worker/engine/native.h"
#include "worker/engine/requests.h"
#include "worker/engine/tracer.h"
#include "worker/engine/variables.h"

#include <stdlib.h>

/* Think times of many users end on common ticks, so that they share a wake-up of the loop, which
 * more than halves the cost of a thousand waiting users. A tick is at most 4 ms and at most 1/128
 * of the wait; the nearest one is taken, so that the mean wait stays as it was given. And it is so
 * short that not many users share it: they would wait for each other at the server. */
#define THINK_TICK_SHIFT     12 /* 4,096 µs */
#define THINK_FRACTION_SHIFT 7
#define THINK_SHARING_SHIFT  4 /* 16 users */

void user_list_add(struct user_list *list, struct user *u)
{
    u->prev = NULL;
    u->next = list->first;
    if (list->first)
        list->first->prev = u;
    list->first = u;
    list->count++;
}

void user_list_remove(struct user_list *list, struct user *u)
{
    if (u->prev)
        u->prev->next = u->next;
    else
        list->first = u->next;
    if (u->next)
        u->next->prev = u->prev;
    u->next = u->prev = NULL;
    list->count--;
}

static const struct plan_class *class_of(const struct user *u)
{
    return &u->shard->plan->classes[u->class];
}

bool user_has_schedule(const struct user *u)
{
    if (u->shard->arrivals)
        return true;
    enum plan_wait_kind kind = class_of(u)->wait.kind;
    return kind == PLAN_WAIT_PACING || kind == PLAN_WAIT_THROUGHPUT;
}

/* --- going on ------------------------------------------------------------------------------- */

static void task_done(struct user *u, uint64_t now_us);
static void leave(struct user *u, uint64_t now_us);

void user_go_on(struct user *u, uint64_t now_us)
{
    enum interpreter_end end;
    if (u->stop_next != PLAN_STOP_NOTHING) {
        enum plan_stop what = (enum plan_stop)u->stop_next;
        u->stop_next = PLAN_STOP_NOTHING;
        end = interpreter_stop(u, what);
    } else {
        end = u->native ? native_run(u, now_us) : interpreter_run(u, now_us);
    }
    switch (end) {
    case INTERPRETER_WAITS:
        return;
    case INTERPRETER_DONE:
        task_done(u, now_us);
        return;
    case INTERPRETER_LEAVES:
        leave(u, now_us);
        return;
    }
}

/* Go on when the loop comes round: what takes no time must neither recurse nor keep the loop from
 * the other users. */
void user_resume_soon(struct user *u, uint64_t now_us)
{
    u->state = USER_RESUMING;
    timers_set(&u->shard->timers, &u->timer, now_us);
}

void user_request_done(void *user, const struct http_result *result, uint64_t now_us)
{
    struct user *u = user;
    switch (u->native ? native_answered(u, result, now_us) : requests_answered(u, result, now_us)) {
    case REQUESTS_REDIRECTED:
        return;
    case REQUESTS_NOT_REDIRECTED:
        u->step++;
        user_resume_soon(u, now_us);
        return;
    case REQUESTS_ANSWERED:
        u->step++;
        user_go_on(u, now_us);
        return;
    }
}

void user_set_cookie(void *user, struct str value)
{
    requests_take_cookie(user, value);
}

/* --- tasks ---------------------------------------------------------------------------------- */

static uint32_t pick_task(struct user *u)
{
    const struct plan_class *class = class_of(u);
    if (class->task_count == 1)
        return 0;
    if (class->sequential)
        return u->tasks_begun++ % (uint32_t) class->task_count;
    uint64_t at = rng_below(&u->shard->rng, class->task_weight_sum);
    uint32_t t = 0;
    while (at >= class->tasks[t].weight)
        at -= class->tasks[t++].weight;
    return t;
}

static void begin_task(struct user *u, const struct plan_task *task, const struct bound_task *bound,
                       uint64_t start_us)
{
    u->task = task;
    u->calls = bound->calls;
    u->task_start_us = start_us;
    u->step = 0;
    u->fresh = true;
    if (u->variables)
        variables_begin_task(u->variables, u->shard->plan);
}

/* One of the run's limited number of tasks, if it is limited. */
static bool may_begin(struct shard *s)
{
    return !s->tasks_left || atomic_fetch_sub_explicit(s->tasks_left, 1, memory_order_relaxed) > 0;
}

static void task_ended(struct user *u)
{
    struct shard *s = u->shard;
    if (!u->in_task)
        return;
    u->in_task = false;
    s->counters.tasks_ended++;
    if (s->tasks_left && atomic_load_explicit(s->tasks_left, memory_order_relaxed) <= 0)
        s->dirty = true; /* the run waits for the last one */
}

static void next_task(struct user *u, uint64_t start_us, uint64_t now_us)
{
    const struct plan_class *class = class_of(u);
    /* a task that took no time must not recurse into the next one */
    bool idle = u->fresh && u->stage == USER_WORKS;
    u->stage = USER_WORKS;
    if (class->task_count == 0 || !may_begin(u->shard)) {
        u->state = USER_WAITING; /* for ever: tags left no task to its class, or all are begun */
        return;
    }
    u->in_task = true;
    u->shard->counters.tasks_started++;
    uint32_t t = pick_task(u);
    begin_task(u, &class->tasks[t], &u->binding->classes[u->class].tasks[t], start_us);
    if (idle)
        user_resume_soon(u, now_us);
    else
        user_go_on(u, now_us);
}

/* When a think time that begins now ends, beside those of `others` users. */
static uint64_t think_until(uint64_t now_us, uint64_t wait_us, size_t others)
{
    unsigned shift = THINK_TICK_SHIFT;
    while (shift > TIMERS_TICK_SHIFT &&
           (wait_us >> (THINK_FRACTION_SHIFT + shift) == 0 ||
            (uint64_t)others << shift > wait_us << THINK_SHARING_SHIFT))
        shift--;
    uint64_t tick = (uint64_t)1 << shift;
    return (now_us + wait_us + tick / 2) & ~(tick - 1);
}

void user_pause(struct user *u, uint64_t pause_us, uint64_t now_us)
{
    u->fresh = false;
    u->state = USER_PAUSING;
    timers_set(&u->shard->timers, &u->timer, think_until(now_us, pause_us, u->shard->timers.count));
}

static void think(struct user *u, uint64_t wait_us, uint64_t now_us)
{
    if (wait_us == 0) {
        next_task(u, now_us, now_us);
        return;
    }
    u->state = USER_WAITING;
    timers_set(&u->shard->timers, &u->timer, think_until(now_us, wait_us, u->shard->timers.count));
}

/* The next task starts one period after the last one was to start. When that is past it starts at
 * once, and its response time counts from then all the same. Pacing forgives the delay, as Locust's
 * does; throughput keeps to its rate and makes up for it. */
static void keep_pace(struct user *u, const struct plan_wait *wait, uint64_t now_us)
{
    uint64_t next_us = u->paced_from_us + wait->min_us;
    bool late = next_us <= now_us;
    u->paced_from_us = late && wait->kind == PLAN_WAIT_PACING ? now_us : next_us;
    if (late) {
        next_task(u, next_us, now_us);
        return;
    }
    u->state = USER_WAITING;
    timers_set(&u->shard->timers, &u->timer, next_us);
}

/* It has no task and may begin one. */
static void ready(struct user *u, uint64_t now_us)
{
    if (u->shard->arrivals)
        arrivals_ready(u->shard->arrivals, u, now_us);
    else
        next_task(u, now_us, now_us);
}

static void task_done(struct user *u, uint64_t now_us)
{
    const struct plan_wait *wait = &class_of(u)->wait;
    task_ended(u);
    if (u->ending || u->stage == USER_STOPS) {
        leave(u, now_us);
        return;
    }
    if (u->stage == USER_STARTS || u->shard->arrivals) {
        ready(u, now_us);
        return;
    }
    switch (wait->kind) {
    case PLAN_WAIT_NONE:
        next_task(u, now_us, now_us);
        return;
    case PLAN_WAIT_CONSTANT:
        think(u, wait->min_us, now_us);
        return;
    case PLAN_WAIT_BETWEEN:
        think(u, wait->min_us + rng_below(&u->shard->rng, wait->max_us - wait->min_us + 1), now_us);
        return;
    case PLAN_WAIT_PACING:
    case PLAN_WAIT_THROUGHPUT:
        keep_pace(u, wait, now_us);
        return;
    }
}

/* Late is what this program is to blame for: the loop came round too late. */
static void note_late_start(struct shard *s, uint64_t late_us)
{
    s->counters.late_starts_1ms += late_us > 1000;
    s->counters.late_starts_10ms += late_us > 10000;
}

void user_begin_task(struct user *u, uint64_t start_us, uint64_t now_us)
{
    next_task(u, start_us, now_us);
}

void user_note_late_start(struct user *u, uint64_t late_us)
{
    note_late_start(u->shard, late_us);
}

static void timer_fired(struct timer *t, void *context, uint64_t now_us)
{
    struct user *u = (struct user *)t; /* its first member */
    (void)context;
    now_us = clock_mono_us(); /* those before it in this turn took their time */
    if (u->state == USER_RESUMING || u->state == USER_PAUSING) {
        user_go_on(u, now_us);
        return;
    }
    note_late_start(u->shard, now_us - t->due_us);
    next_task(u, user_has_schedule(u) ? t->due_us : now_us, now_us);
}

/* --- birth and death ------------------------------------------------------------------------ */

static void begin_life(struct user *u, uint64_t now_us)
{
    const struct plan_class *class = class_of(u);
    u->paced_from_us = now_us;
    if (plan_task_is_empty(&class->on_start)) {
        ready(u, now_us);
        return;
    }
    begin_task(u, &class->on_start, &u->binding->classes[u->class].on_start, now_us);
    user_go_on(u, now_us);
}

static void spare(struct shard *s, struct user *u)
{
    s->ops->client_free(u->client);
    u->client = NULL;
    variables_free(u->variables, s);
    u->variables = NULL;
    tracer_forget(u);
    native_free(u);
    user_list_add(&s->spare, u);
}

int user_start(struct shard *s, uint32_t class)
{
    struct user *u = s->spare.first;
    uint64_t number = s->users_started * s->count + s->index + 1;
    if (u)
        user_list_remove(&s->spare, u);
    else
        u = calloc(1, sizeof *u);
    if (!u)
        return -ENOMEM;
    *u = (struct user){.timer.fire = timer_fired,
                       .shard = s,
                       .class = class,
                       .fresh = true,
                       .arriving = s->arrivals != NULL};
    u->client = s->ops->client_new(s->http, u, &s->plan->classes[class]);
    if (s->plan->has_values)
        u->variables = variables_new(s->plan, number);
    int rc = s->native ? native_new(u, number) : 0;
    if (rc < 0 || !u->client || (s->plan->has_values && !u->variables)) {
        spare(s, u);
        return -ENOMEM;
    }
    s->users_started++;
    u->binding = binding_ref(s->binding);
    user_list_add(&s->users[class], u);
    s->running[class]++;
    s->dirty = true;
    begin_life(u, clock_mono_us());
    return 0;
}

/* Nothing of the task goes on; a request under way is cut. */
static void cut(struct user *u)
{
    struct shard *s = u->shard;
    task_ended(u);
    timers_cancel(&s->timers, &u->timer);
    if (u->state == USER_REQUESTING && u->client) {
        requests_count_cut(u, clock_mono_us());
        s->ops->client_free(u->client);
        u->client = NULL;
    }
    u->state = USER_RESUMING;
    u->stop_next = PLAN_STOP_NOTHING;
    requests_forget(u);
    if (u->native)
        native_cut(u);
}

void user_end_now(struct user *u)
{
    struct shard *s = u->shard;
    cut(u);
    cookies_free(u->cookies);
    u->cookies = NULL;
    binding_unref(u->binding);
    user_list_remove(u->ending ? &s->ending : &s->users[u->class], u);
    s->running[u->class]--;
    s->dirty = true;
    if (s->arrivals)
        arrivals_gone(s->arrivals, u, s->now_us);
    spare(s, u);
}

/* The task is over, or cut: what is left is on_stop, as in Locust also for a user whose time is up.
 * A request that was cut took the connections with it. */
static void leave(struct user *u, uint64_t now_us)
{
    const struct plan_class *class = class_of(u);
    if (u->stage == USER_STOPS || plan_task_is_empty(&class->on_stop)) {
        user_end_now(u);
        return;
    }
    if (!u->client)
        u->client = u->shard->ops->client_new(u->shard->http, u, class);
    if (!u->client) {
        user_end_now(u);
        return;
    }
    u->stage = USER_STOPS;
    if (u->end_by_us < now_us + ENGINE_ON_STOP_S * UINT64_C(1000000))
        u->end_by_us = now_us + ENGINE_ON_STOP_S * UINT64_C(1000000);
    begin_task(u, &class->on_stop, &u->binding->classes[u->class].on_stop, now_us);
    user_go_on(u, now_us);
}

/* Into the list of those whose end is waited for. */
static void move_to_ending(struct user *u, uint64_t end_by_us)
{
    struct shard *s = u->shard;
    user_list_remove(&s->users[u->class], u);
    user_list_add(&s->ending, u);
    u->ending = true;
    u->end_by_us = end_by_us;
}

void user_time_is_up(struct user *u, uint64_t now_us)
{
    if (u->stage == USER_STOPS || plan_task_is_empty(&class_of(u)->on_stop)) {
        user_end_now(u);
        return;
    }
    cut(u);
    leave(u, now_us);
}

/* Whoever is at on_stop has its time in any case. */
static uint64_t end_by(const struct user *u, uint64_t timeout_us)
{
    const uint64_t least_us = ENGINE_ON_STOP_S * UINT64_C(1000000);
    if (u->stage == USER_STOPS && timeout_us < least_us)
        timeout_us = least_us;
    return u->shard->now_us + timeout_us;
}

void user_end_soon(struct user *u, uint64_t timeout_us)
{
    uint64_t end_by_us = end_by(u, timeout_us);
    bool stops = !plan_task_is_empty(&class_of(u)->on_stop);
    bool at_once = timeout_us == 0 || u->state == USER_WAITING;
    if (at_once && !stops) {
        user_end_now(u);
        return;
    }
    if (u->ending) {
        if (end_by_us < u->end_by_us)
            u->end_by_us = end_by_us;
        return;
    }
    move_to_ending(u, end_by_us);
    if (at_once && u->stage != USER_STOPS)
        user_time_is_up(u, u->shard->now_us);
}

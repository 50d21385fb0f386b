#include "worker/engine/user.h"

#include "base/clock.h"
#include "worker/engine/cookies.h"
#include "worker/engine/redirect.h"
#include "worker/engine/user_cookies.h"

#include <stdlib.h>

/* Think times of many users end on common ticks, so that they share a wake-up of the loop, which
 * halves the cost of a thousand waiting users. A tick is at most this, and at most 1/256 of the
 * wait; the nearest one is taken, so that the mean wait stays as it was given. */
#define THINK_TICK_SHIFT     12 /* 4,096 µs */
#define THINK_FRACTION_SHIFT 8

#define MAX_REDIRECTS      30    /* as Locust's client */
#define MAX_REDIRECT_BYTES 65536 /* of one URL */

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

static const struct plan_task *task_of(const struct user *u)
{
    return &class_of(u)->tasks[u->task];
}

static const struct plan_request *request_of(const struct user *u)
{
    return &task_of(u)->steps[u->step].request;
}

static void redirect_clear(struct user *u)
{
    struct user_redirect *r = u->redirect;
    if (!r)
        return;
    u->shard->ops->unprepare(&r->call);
    free(r->headers);
    buf_done(&r->url);
    free(r);
    u->redirect = NULL;
}

/* --- requests ------------------------------------------------------------------------------- */

static void do_step(struct user *u, uint64_t now_us);

static bool status_expected(const struct plan_request *request, unsigned status)
{
    if (request->expected_status_count == 0)
        return status < 400;
    for (size_t i = 0; i < request->expected_status_count; i++) {
        if (request->expected_status[i] == status)
            return true;
    }
    return false;
}

/* Does a class keep a schedule, so that response times count from scheduled starts? */
static bool has_schedule(const struct user *u)
{
    enum plan_wait_kind kind = class_of(u)->wait.kind;
    return kind == PLAN_WAIT_PACING || kind == PLAN_WAIT_THROUGHPUT;
}

static void record_times(struct user *u, const struct plan_request *request,
                         const struct http_result *result, uint64_t now_us)
{
    bool service = has_schedule(u);
    if (!service && !result->phases_us)
        return;
    struct stats_times times = {
        .service_us = service ? now_us - u->request_sent_us : STATS_NO_TIME,
        .phases_us = result->phases_us,
    };
    stats_record_times(u->shard->stats, request->entry, &times);
}

static void record(struct user *u, const struct http_result *result, uint64_t now_us)
{
    struct shard *s = u->shard;
    const struct plan_request *request = request_of(u);
    bool answered = result->failure == HTTP_FAILURE_NONE;
    struct stats_sample sample = {
        .response_time_us = now_us - u->request_start_us,
        .content_length_bytes = answered ? result->body_bytes : 0,
        .wall_s = (double)now_us / 1e6 + s->wall_offset_s,
    };
    stats_record(s->stats, request->entry, &sample);
    record_times(u, request, result, now_us);
    u->state = USER_RESUMING; /* nothing is under way any more, should the user end now */
    s->counters.in_flight--;
    if (answered && status_expected(request, result->status)) {
        s->counters.succeeded++;
        return;
    }
    s->counters.failed++;
    s->counters.by_failure[result->failure]++;
    stats_record_error(s->stats, request->entry,
                       answered ? http_status_text(result->status)
                                : http_failure_text(result->failure),
                       sample.wall_s);
}

/* Go on inside the task when the loop comes round: a step that failed before anything was sent must
 * neither recurse nor keep the loop from the other users. */
static void resume_soon(struct user *u, uint64_t now_us)
{
    u->state = USER_RESUMING;
    timers_set(&u->shard->timers, &u->timer, now_us);
}

static void step_failed(struct user *u, enum http_failure failure, uint64_t now_us)
{
    struct http_result result = {.failure = failure};
    redirect_clear(u);
    record(u, &result, now_us);
    u->step++;
    resume_soon(u, now_us);
}

/* The call that the plan makes of the step. */
static const struct http_call *call_of(const struct user *u)
{
    return &u->binding->classes[u->class].tasks[u->task].calls[u->step];
}

static enum http_failure send_with_cookies(struct user *u, const struct http_call *call,
                                           uint64_t now_us)
{
    struct str cookies;
    if (user_cookies_for(u, call, now_us, &cookies) < 0)
        return HTTP_FAILURE_MEMORY;
    return u->shard->ops->begin(u->client, call, cookies, now_us);
}

static inline enum http_failure send_call(struct user *u, const struct http_call *call,
                                          uint64_t now_us)
{
    if (u->cookies)
        return send_with_cookies(u, call, now_us);
    return u->shard->ops->begin(u->client, call, (struct str){NULL, 0}, now_us);
}

static void begin_request(struct user *u, uint64_t now_us)
{
    struct shard *s = u->shard;
    u->request_sent_us = now_us;
    u->request_start_us = u->step == 0 ? u->task_start_us : now_us;
    s->counters.started++;
    s->counters.in_flight++;
    u->state = USER_REQUESTING;
    enum http_failure failure = send_call(u, call_of(u), now_us);
    if (failure != HTTP_FAILURE_NONE)
        step_failed(u, failure, now_us);
}

/* --- redirects ------------------------------------------------------------------------------ */

/* The scenario's own cookies are for the first request only, as in Locust: the jar's go with the
 * next ones. */
static bool keeps_header(struct str name, bool body, bool same)
{
    if (str_eq_nocase(name, STR("Cookie")) || (!body && str_eq_nocase(name, STR("Content-Type"))))
        return false;
    return same || !(str_eq_nocase(name, STR("Authorization")) || str_eq_nocase(name, STR("Host")));
}

static int copy_headers(struct user_redirect *r, const struct http_call *from, bool body, bool same)
{
    struct plan_header *headers = calloc(from->header_count + 1, sizeof *headers);
    size_t n = 0;
    if (!headers)
        return -ENOMEM;
    for (size_t i = 0; i < from->header_count; i++) {
        if (keeps_header(from->headers[i].name, body, same))
            headers[n++] = from->headers[i];
    }
    free(r->headers);
    r->headers = headers;
    r->call.headers = headers;
    r->call.header_count = n;
    return 0;
}

/* Build the hop in a new struct beside the one it comes from. */
static enum http_failure make_hop(struct user *u, const struct http_call *from,
                                  const struct http_result *result, struct user_redirect *r)
{
    bool body = redirect_keeps_body(result->status);
    buf_init(&r->url, MAX_REDIRECT_BYTES);
    int rc = redirect_resolve(&r->url, from->url, result->location);
    if (rc < 0)
        return rc == -ENOMEM ? HTTP_FAILURE_MEMORY : HTTP_FAILURE_BAD_REDIRECT;
    bool same = redirect_same_origin(from->url, buf_str(&r->url));
    r->call = *from;
    r->call.prepared = NULL;
    r->call.url = buf_str(&r->url);
    if (redirect_becomes_get(result->status, from->method))
        r->call.method = STR("GET");
    if (!body)
        r->call.body = (struct str){NULL, 0};
    if (copy_headers(r, from, body, same) < 0 || u->shard->ops->prepare(&r->call) < 0)
        return HTTP_FAILURE_MEMORY;
    return HTTP_FAILURE_NONE;
}

static enum http_failure follow(struct user *u, const struct http_result *result, uint64_t now_us)
{
    const struct http_call *first = call_of(u);
    const struct http_call *from = u->redirect ? &u->redirect->call : first;
    unsigned hops = u->redirect ? u->redirect->hops + 1 : 1;
    uint64_t spent_us = now_us - u->request_sent_us;
    if (hops > MAX_REDIRECTS)
        return HTTP_FAILURE_TOO_MANY_REDIRECTS;
    if (first->timeouts.total_us && spent_us >= first->timeouts.total_us)
        return HTTP_FAILURE_TIMEOUT;
    struct user_redirect *r = calloc(1, sizeof *r), *old = u->redirect;
    if (!r)
        return HTTP_FAILURE_MEMORY;
    r->hops = hops;
    enum http_failure failure = make_hop(u, from, result, r);
    if (failure == HTTP_FAILURE_NONE && first->timeouts.total_us)
        r->call.timeouts.total_us = first->timeouts.total_us - spent_us;
    u->redirect = r;
    if (failure == HTTP_FAILURE_NONE)
        failure = send_call(u, &r->call, now_us);
    u->redirect = old; /* the hop before: freed now that nothing is made of it any more */
    redirect_clear(u);
    u->redirect = r;
    return failure;
}

void user_request_done(void *user, const struct http_result *result, uint64_t now_us)
{
    struct user *u = user;
    const struct plan_request *request = request_of(u);
    if (result->failure == HTTP_FAILURE_NONE && result->location.ptr && request->follow_redirects &&
        redirect_status(result->status)) {
        enum http_failure failure = follow(u, result, now_us);
        if (failure != HTTP_FAILURE_NONE)
            step_failed(u, failure, now_us);
        return;
    }
    redirect_clear(u);
    record(u, result, now_us);
    u->step++;
    do_step(u, now_us);
}

void user_set_cookie(void *user, struct str value)
{
    struct user *u = user;
    user_cookies_take(u, u->redirect ? &u->redirect->call : call_of(u), value);
}

/* --- tasks ---------------------------------------------------------------------------------- */

static uint32_t pick_task(struct user *u)
{
    const struct plan_class *class = class_of(u);
    if (class->task_count == 1)
        return 0;
    uint64_t at = rng_below(&u->shard->rng, class->task_weight_sum);
    uint32_t t = 0;
    while (at >= class->tasks[t].weight)
        at -= class->tasks[t++].weight;
    return t;
}

static void next_task(struct user *u, uint64_t start_us, uint64_t now_us)
{
    u->task = pick_task(u);
    u->task_start_us = start_us;
    u->step = 0;
    do_step(u, now_us);
}

/* When a think time that begins now ends. */
static uint64_t think_until(uint64_t now_us, uint64_t wait_us)
{
    unsigned shift = THINK_TICK_SHIFT;
    while (shift > TIMERS_TICK_SHIFT && wait_us >> (THINK_FRACTION_SHIFT + shift) == 0)
        shift--;
    uint64_t tick = (uint64_t)1 << shift;
    return (now_us + wait_us + tick / 2) & ~(tick - 1);
}

static void think(struct user *u, uint64_t wait_us, uint64_t now_us)
{
    if (wait_us == 0) {
        next_task(u, now_us, now_us);
        return;
    }
    u->state = USER_WAITING;
    timers_set(&u->shard->timers, &u->timer, think_until(now_us, wait_us));
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

static void task_done(struct user *u, uint64_t now_us)
{
    const struct plan_wait *wait = &class_of(u)->wait;
    if (u->ending) {
        user_end_now(u);
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

static void do_step(struct user *u, uint64_t now_us)
{
    if (u->step < task_of(u)->step_count)
        begin_request(u, now_us);
    else
        task_done(u, now_us);
}

/* Late is what this program is to blame for: the loop came round too late. */
static void note_late_start(struct shard *s, uint64_t late_us)
{
    s->counters.late_starts_1ms += late_us > 1000;
    s->counters.late_starts_10ms += late_us > 10000;
}

static void timer_fired(struct timer *t, void *context, uint64_t now_us)
{
    struct user *u = (struct user *)t; /* its first member */
    (void)context;
    if (u->state == USER_RESUMING) {
        do_step(u, now_us);
        return;
    }
    note_late_start(u->shard, now_us - t->due_us);
    next_task(u, has_schedule(u) ? t->due_us : now_us, now_us);
}

/* --- birth and death ------------------------------------------------------------------------ */

int user_start(struct shard *s, uint32_t class)
{
    struct user *u = s->spare.first;
    if (u)
        user_list_remove(&s->spare, u);
    else
        u = calloc(1, sizeof *u);
    if (!u)
        return -ENOMEM;
    *u = (struct user){.timer.fire = timer_fired, .shard = s, .class = class};
    u->client = s->ops->client_new(s->http, u, s->plan->classes[class].insecure);
    if (!u->client) {
        user_list_add(&s->spare, u);
        return -ENOMEM;
    }
    u->binding = binding_ref(s->binding);
    user_list_add(&s->users[class], u);
    s->running[class]++;
    s->dirty = true;
    uint64_t now_us = clock_mono_us();
    u->paced_from_us = now_us;
    u->state = USER_WAITING; /* for ever, when tags left its class without a task */
    if (class_of(u)->task_count > 0)
        next_task(u, now_us, now_us);
    return 0;
}

void user_end_now(struct user *u)
{
    struct shard *s = u->shard;
    if (u->state == USER_REQUESTING && u->client) {
        uint64_t age_us = clock_mono_us() - u->request_start_us;
        s->counters.interrupted++;
        s->counters.in_flight--;
        if (age_us > s->counters.interrupted_oldest_us)
            s->counters.interrupted_oldest_us = age_us;
    }
    timers_cancel(&s->timers, &u->timer);
    s->ops->client_free(u->client);
    u->client = NULL;
    redirect_clear(u);
    cookies_free(u->cookies);
    u->cookies = NULL;
    binding_unref(u->binding);
    user_list_remove(u->ending ? &s->ending : &s->users[u->class], u);
    s->running[u->class]--;
    s->dirty = true;
    user_list_add(&s->spare, u);
}

void user_end_soon(struct user *u, uint64_t timeout_us)
{
    struct shard *s = u->shard;
    if (timeout_us == 0 || u->state == USER_WAITING) {
        user_end_now(u);
        return;
    }
    uint64_t end_by_us = s->now_us + timeout_us;
    if (u->ending) {
        if (end_by_us < u->end_by_us)
            u->end_by_us = end_by_us;
        return;
    }
    user_list_remove(&s->users[u->class], u);
    user_list_add(&s->ending, u);
    u->ending = true;
    u->end_by_us = end_by_us;
}

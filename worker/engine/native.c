/* The loop's side of C tasks. All that takes stack (sending, TLS, preparing a request) is done here
 * on the thread's own stack, between parking and resuming, so that a fiber's stack holds the task's
 * own frames and stays within its first page. */
#include "worker/engine/native.h"

#include "base/clock.h"
#include "base/log.h"
#include "worker/engine/tracer.h"
#include "worker/engine/user_cookies.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define NO_MEMORY_RETRY_US 100000 /* a task that could not get a stack */

/* --- the shard's ---------------------------------------------------------------------------- */

struct native_shard *native_shard_new(const struct http_ops *ops, struct cicada_run *run,
                                      unsigned shards)
{
    struct native_shard *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->run = run;
    atomic_init(&s->class, NULL);
    atomic_init(&s->task, NULL);
    s->calls = native_calls_new(ops);
    s->crash_stack = malloc(CRASH_STACK_BYTES);
    if (s->calls && s->crash_stack && fiber_pool_new(FIBER_MAX_GUARDED / shards, &s->fibers) == 0)
        return s;
    native_shard_free(s);
    return NULL;
}

static void trim_to(struct native_shard *s, uint32_t count)
{
    while (s->spare_count > count) {
        struct cicada_user *n = s->spare;
        s->spare = n->next;
        s->spare_count--;
        free(n);
    }
}

void native_shard_trim(struct native_shard *s)
{
    trim_to(s, NATIVE_SPARE_USERS);
}

void native_shard_free(struct native_shard *s)
{
    if (!s)
        return;
    trim_to(s, 0);
    native_calls_free(s->calls);
    fiber_pool_free(s->fibers);
    free(s->crash_stack);
    free(s);
}

/* --- what runs ------------------------------------------------------------------------------ */

bool native_running_text(const struct native_shard *s, char *ret, size_t size)
{
    const struct plan_task *task = atomic_load_explicit(&s->task, memory_order_relaxed);
    const struct plan_class *class = atomic_load_explicit(&s->class, memory_order_relaxed);
    if (!task || !class)
        return false;
    (void)snprintf(ret, size, "user class '%.*s', task '%.*s'", STR_ARG(class->name),
                   STR_ARG(task->name)); /* a name that is too long is cut */
    return true;
}

/* Let the task run until it waits, or ends: false. */
static bool resume(struct cicada_user *n)
{
    const struct user *u = n->user;
    struct native_shard *s = u->shard->native;
    atomic_store_explicit(&s->class, n->class, memory_order_relaxed);
    atomic_store_explicit(&s->task, u->task, memory_order_relaxed);
    bool parked = fiber_resume(n->fiber);
    atomic_store_explicit(&s->task, NULL, memory_order_relaxed);
    return parked;
}

/* --- responses ------------------------------------------------------------------------------ */

static double wall_s(const struct shard *s, uint64_t now_us)
{
    return (double)now_us / 1e6 + s->wall_offset_s;
}

static void count_times(struct cicada_user *n, uint32_t slot)
{
    const struct user *u = n->user;
    bool service = n->scheduled;
    if (!service && !n->phases_us)
        return;
    const struct stats_times times = {
        .service_us = service ? n->answered_us - u->request_sent_us : STATS_NO_TIME,
        .phases_us = n->phases_us,
    };
    stats_record_times(u->shard->stats, slot, &times);
}

void native_count_response(struct cicada_user *n)
{
    struct user *u = n->user;
    struct shard *s = u->shard;
    uint32_t slot;
    bool known = n->call && native_call_slot(n->call, s->stats, &slot) == 0;
    const struct stats_sample sample = {
        .response_time_us = n->answered_us - u->request_start_us,
        .content_length_bytes = n->failure == HTTP_FAILURE_NONE ? n->response.content_length : 0,
        .wall_s = wall_s(s, n->answered_us),
    };
    n->uncounted = false;
    if (u->trace)
        tracer_record(u, n->call->row, n->judged ? str_of(n->judged) : STR(""), n->answered_us);
    if (known) {
        stats_record(s->stats, slot, &sample);
        count_times(n, slot);
    }
    if (!n->judged) {
        s->counters.succeeded++;
        return;
    }
    s->counters.failed++;
    s->counters.by_failure[n->failure]++;
    if (known)
        stats_record_error(s->stats, slot, str_of(n->judged), sample.wall_s);
}

void native_record(struct cicada_user *n, struct str type, struct str name, double response_time_ms,
                   uint64_t length, const char *error)
{
    struct shard *s = n->user->shard;
    uint32_t slot;
    const struct stats_sample sample = {
        .response_time_us = response_time_ms > 0 && response_time_ms < 1e12
                                ? (uint64_t)(response_time_ms * 1e3 + 0.5)
                                : 0,
        .content_length_bytes = length,
        .wall_s = wall_s(s, clock_mono_us()),
    };
    s->counters.started++;
    if (error)
        s->counters.failed++;
    else
        s->counters.succeeded++;
    if (stats_slot(s->stats, type, name, &slot) < 0)
        return;
    stats_record(s->stats, slot, &sample);
    if (error)
        stats_record_error(s->stats, slot, str_of(error), sample.wall_s);
}

/* The request is over, and waits to be counted. error wins over what the result says. */
static void answer(struct cicada_user *n, const struct http_result *result, const char *error,
                   uint64_t now_us)
{
    struct user *u = n->user;
    struct str body = result->body;
    if (!error && result->failure != HTTP_FAILURE_NONE)
        error = http_failure_text(result->failure).ptr;
    if (!error && result->status >= 400)
        error = http_status_text(result->status).ptr;
    n->waits = false;
    n->failure = result->failure;
    n->head = result->head;
    n->phases_us = result->phases_us;
    n->judged = error;
    n->uncounted = true;
    n->answered_us = now_us;
    n->response = (struct cicada_response){
        .result =
            result->failure == HTTP_FAILURE_NONE && result->status ? CICADA_OK : CICADA_FAILED,
        .status = result->status,
        .error = error,
        .response_time_ms = (double)(now_us - u->request_start_us) / 1e3,
        .content_length = result->body_bytes,
        .body = body.ptr ? body.ptr : "",
        .body_length = body.len,
        .body_cut = result->body_cut,
    };
    u->state = USER_RESUMING; /* nothing is under way any more, should the user end now */
}

void native_refuse(struct cicada_user *n)
{
    n->head = (struct str){NULL, 0};
    n->response = (struct cicada_response){
        .result = CICADA_STOPPED, .error = "the user is stopped", .body = ""};
}

static void release_call(struct cicada_user *n)
{
    if (n->call)
        native_call_release(n->user->shard->native->calls, n->call);
    n->call = NULL;
}

/* --- waiting -------------------------------------------------------------------------------- */

/* A request that could not be sent: the task hears of it when the loop comes round. */
static __attribute__((noinline)) void refuse(struct cicada_user *n, enum http_failure failure,
                                             const char *error, uint64_t now_us)
{
    const struct http_result result = {.failure = failure};
    answer(n, &result, error, now_us);
    user_resume_soon(n->user, now_us);
}

static void begin_request(struct cicada_user *n)
{
    struct user *u = n->user;
    struct shard *s = u->shard;
    uint64_t now_us = clock_mono_us(); /* the task may have taken its time */
    release_call(n);
    n->call =
        native_call_get(s->native->calls, u->binding, u->binding->classes[u->class].host, &n->ask);
    if (!n->call || n->call->error) {
        requests_stamp(u, now_us);
        s->counters.started++;
        refuse(n, n->call ? HTTP_FAILURE_OTHER : HTTP_FAILURE_MEMORY,
               n->call ? n->call->error : NULL, now_us);
        return;
    }
    enum http_failure failure = requests_send(u, now_us);
    if (failure == HTTP_FAILURE_NONE)
        return;
    s->counters.in_flight--;
    refuse(n, failure, NULL, now_us);
}

enum requests_end native_answered(struct user *u, const struct http_result *result, uint64_t now_us)
{
    struct cicada_user *n = u->native;
    const struct http_result *last = result;
    struct http_result broken = {0};
    if (n->call->follow && requests_redirects(result)) {
        broken.failure = requests_follow(u, result, now_us);
        if (broken.failure == HTTP_FAILURE_NONE)
            return REQUESTS_REDIRECTED;
        last = &broken;
    }
    u->shard->counters.in_flight--;
    answer(n, last, NULL, now_us);
    if (u->redirect)
        requests_forget(u);
    return last == result ? REQUESTS_ANSWERED : REQUESTS_NOT_REDIRECTED;
}

const struct http_call *native_http_call(const struct user *u)
{
    return &u->native->call->call;
}

/* --- descriptors ---------------------------------------------------------------------------- */

static void forget_fd(struct cicada_user *n)
{
    if (n->fd_registered >= 0) /* it may be closed already */
        (void)epoll_ctl(n->user->shard->epoll_fd, EPOLL_CTL_DEL, n->fd_registered, NULL);
    n->fd_registered = -1;
}

/* It tells once, then keeps quiet until it is asked again. Descriptors are reused, so whether one
 * is registered is only known to the kernel. */
static int register_fd(struct cicada_user *n)
{
    int epoll_fd = n->user->shard->epoll_fd;
    struct epoll_event event = {.events = n->fd_events | EPOLLONESHOT, .data.ptr = &n->fd_source};
    bool known = n->fd_registered == n->fd;
    if (epoll_ctl(epoll_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, n->fd, &event) < 0 &&
        (errno != (known ? ENOENT : EEXIST) ||
         epoll_ctl(epoll_fd, known ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, n->fd, &event) < 0))
        return -errno;
    n->fd_registered = n->fd;
    return 0;
}

static void fd_ready(struct loop_source *source, uint32_t events, uint64_t now_us)
{
    struct cicada_user *n =
        (struct cicada_user *)((char *)source - offsetof(struct cicada_user, fd_source));
    if (!n->waits || n->wish != NATIVE_FD)
        return; /* of this turn of the loop, before the user was told to stop */
    n->waits = false;
    n->came = (int)(events & (EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLERR | EPOLLHUP));
    timers_cancel(&n->user->shard->timers, &n->user->timer);
    user_go_on(n->user, now_us);
}

static void begin_fd_wait(struct cicada_user *n, uint64_t now_us)
{
    struct user *u = n->user;
    u->fresh = false;
    int rc = register_fd(n);
    if (rc < 0) {
        n->waits = false;
        n->came = CICADA_FAILED;
        n->wait_us = (uint64_t)-rc; /* the errno */
        user_resume_soon(u, now_us);
        return;
    }
    u->state = USER_PAUSING;
    if (n->wait_us)
        timers_set(&u->shard->timers, &u->timer, clock_mono_us() + n->wait_us);
}

/* --- the task ------------------------------------------------------------------------------- */

static void entry(void *arg)
{
    struct cicada_user *n = arg;
    n->user->task->native(n);
}

/* 0, -ENOMEM. */
static int begin_task(struct cicada_user *n)
{
    n->stopping = n->waits = false;
    n->refusals = 0;
    return fiber_new(n->user->shard->native->fibers, entry, n, &n->fiber);
}

static void overflowed(const struct cicada_user *n)
{
    log_line(LOG_CRITICAL, "user class '%.*s', task '%.*s': its stack of %u KiB was used up",
             STR_ARG(n->class->name), STR_ARG(n->user->task->name), FIBER_STACK_BYTES >> 10);
    __builtin_trap(); /* what lies below the stack is overwritten */
}

static void end_task(struct cicada_user *n)
{
    native_count(n);
    if (__builtin_expect(fiber_overflowed(n->fiber), 0))
        overflowed(n);
    release_call(n);
    fiber_free(n->user->shard->native->fibers, n->fiber);
    n->fiber = NULL;
    n->waits = false;
}

/* Do what the task parked for. */
static void grant(struct cicada_user *n, uint64_t now_us)
{
    n->waits = true;
    switch ((enum native_wish)n->wish) {
    case NATIVE_REQUEST:
        begin_request(n);
        return;
    case NATIVE_SLEEP:
        n->came = CICADA_OK;
        n->user->fresh = false;
        if (n->wait_us)
            user_pause(n->user, n->wait_us, clock_mono_us());
        else
            user_resume_soon(n->user, now_us);
        return;
    case NATIVE_FD:
        begin_fd_wait(n, now_us);
        return;
    case NATIVE_DROP:
        return;
    }
}

enum interpreter_end native_run(struct user *u, uint64_t now_us)
{
    struct cicada_user *n = u->native;
    if (!n->fiber) {
        if (begin_task(n) < 0) {
            u->shard->counters.stackless++;
            user_pause(u, NO_MEMORY_RETRY_US, now_us);
            return INTERPRETER_WAITS;
        }
    } else if (n->waits && n->wish == NATIVE_FD) {
        n->came = CICADA_TIMEOUT;
        forget_fd(n);
    }
    n->waits = false;
    if (resume(n)) {
        grant(n, now_us);
        return INTERPRETER_WAITS;
    }
    end_task(n);
    return n->leaves ? INTERPRETER_LEAVES : INTERPRETER_DONE;
}

static void tell_dropped(struct cicada_user *n)
{
    struct native_shard *s = n->user->shard->native;
    uint64_t skipped;
    if (!log_due(&s->dropped_us, clock_mono_us(), &s->dropped_skipped, &skipped))
        return;
    log_warning("user class '%.*s', task '%.*s': went on after %d calls said CICADA_STOPPED, and "
                "was dropped: what it held is "
                "lost (%llu more), continuing",
                STR_ARG(n->class->name), STR_ARG(n->user->task->name), NATIVE_MAX_REFUSALS,
                (unsigned long long)skipped);
}

void native_cut(struct user *u)
{
    struct cicada_user *n = u->native;
    if (!n->fiber)
        return;
    n->stopping = true;
    if (n->waits) {
        if (n->wish == NATIVE_REQUEST)
            native_refuse(n);
        else if (n->wish == NATIVE_FD)
            forget_fd(n);
        n->came = CICADA_STOPPED;
        n->waits = false;
    }
    if (resume(n))
        tell_dropped(n);
    end_task(n);
}

/* --- birth and death ------------------------------------------------------------------------ */

int native_new(struct user *u, uint64_t number)
{
    struct native_shard *s = u->shard->native;
    struct cicada_user *n = s->spare;
    if (n) {
        s->spare = n->next;
        s->spare_count--;
    } else if (!(n = malloc(sizeof *n))) {
        return -ENOMEM;
    }
    *n = (struct cicada_user){.user = u,
                              .class = &u->shard->plan->classes[u->class],
                              .number = number,
                              .fd_source.ready = fd_ready,
                              .fd_registered = -1};
    n->scheduled = user_has_schedule(u);
    u->native = n;
    return 0;
}

/* Not freed in this turn of the loop: an event of its descriptor may still be read. */
void native_free(struct user *u)
{
    struct cicada_user *n = u->native;
    struct native_shard *s = u->shard->native;
    if (!n)
        return;
    while (n->variables) {
        struct native_variable *v = n->variables;
        n->variables = v->next;
        free(v->value);
        free(v);
    }
    n->waits = false;
    n->next = s->spare;
    s->spare = n;
    s->spare_count++;
    u->native = NULL;
}

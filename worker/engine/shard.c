/* The loop: wait, sockets, timers, new users, HTTP engine, and now and then a word with the engine.
 * Nothing in it blocks; what takes long (starting thousands of users) is done in portions, so that
 * requests under way are read in time. */
#include "worker/engine/shard.h"

#include "base/clock.h"
#include "worker/engine/arrival.h"
#include "worker/engine/cookies.h"
#include "worker/engine/engine.h"
#include "worker/engine/made_call.h"
#include "worker/engine/native.h"
#include "worker/engine/tracer.h"
#include "worker/engine/user.h"
#include "worker/scenario/pattern.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS_A_TURN   512
#define STARTS_A_TURN   64      /* users started before sockets are looked at again */
#define SPARE_USERS     1024    /* kept for reuse */
#define HOUSEKEEPING_US 1000000 /* CPU and lag are figures of a second */

/* --- the mailbox ---------------------------------------------------------------------------- */

static void ring(int fd)
{
    uint64_t one = 1;
    if (write(fd, &one, sizeof one) < 0)
        return; /* the counter is full: it is readable anyway */
}

void shard_wake(struct shard *s)
{
    ring(s->mail.wake_shard_fd);
}

/* Let surplus users of a class end: those that wait first, they lose nothing. */
static void end_surplus(struct shard *s, uint32_t class, uint32_t surplus)
{
    for (int waiting = 1; waiting >= 0 && surplus > 0; waiting--) {
        struct user *next;
        for (struct user *u = s->users[class].first; u && surplus > 0; u = next) {
            next = u->next;
            if (waiting && u->state != USER_WAITING)
                continue;
            user_end_soon(u, s->stop_timeout_us);
            surplus--;
        }
    }
}

static void cut_overdue(struct timer *t, void *context, uint64_t now_us)
{
    struct shard *s = context;
    uint64_t next_us = UINT64_MAX;
    struct user *next;
    for (struct user *u = s->ending.first; u; u = next) {
        next = u->next;
        if (u->end_by_us <= now_us)
            user_time_is_up(u, now_us);
    }
    for (struct user *u = s->ending.first; u; u = u->next)
        next_us = u->end_by_us < next_us ? u->end_by_us : next_us;
    if (next_us != UINT64_MAX)
        timers_set(&s->timers, t, next_us);
}

/* Arrivals take the place of others, or end where an order comes without. */
static void change_arrivals(struct shard *s, struct arrivals *arrivals)
{
    if (s->arrivals)
        arrivals_end(s->arrivals, s->now_us);
    arrivals_free(s->arrivals);
    s->arrivals = arrivals;
    if (arrivals)
        arrivals_begin(arrivals, s, s->now_us);
}

/* A new order may also shorten the time of those that are ending already. */
static void carry_out(struct shard *s, const uint32_t *targets)
{
    struct user *next;
    s->to_start_total = 0;
    for (uint32_t c = 0; c < s->plan->class_count; c++) {
        uint32_t have = s->users[c].count;
        s->to_start[c] = targets[c] > have ? targets[c] - have : 0;
        s->to_start_total += s->to_start[c];
        if (have > targets[c])
            end_surplus(s, c, have - targets[c]);
    }
    for (struct user *u = s->ending.first; u; u = next) {
        next = u->next;
        user_end_soon(u, s->stop_timeout_us);
    }
    if (s->ending.first)
        cut_overdue(&s->stop_timer, s, s->now_us);
}

/* The engine took the rows before when it gave back the set. */
static void swap_rows(struct shard_mailbox *mail, struct tracer *t)
{
    struct buf empty = mail->traced;
    mail->traced = t->rows;
    t->rows = empty;
    buf_clear(&t->rows);
}

/* The samples go out when the engine has given back the other set. */
static void hand_over(struct shard *s)
{
    if (s->stats_wanted == s->stats_done || !s->empty)
        return;
    stats_clear(s->empty, (double)s->now_us / 1e6 + s->wall_offset_s);
    pthread_mutex_lock(&s->mail.lock);
    s->mail.filled = s->stats; /* NULL before: there are two sets, and we have the other one */
    if (s->tracer)
        swap_rows(&s->mail, s->tracer);
    pthread_mutex_unlock(&s->mail.lock);
    s->stats = s->empty;
    s->empty = NULL;
    s->stats_done = s->stats_wanted;
    s->dirty = true;
}

static void tell(struct shard *s)
{
    struct shard_mailbox *mail = &s->mail;
    bool done = s->to_start_total == 0 && s->ending.count == 0;
    if (done)
        s->order_done = s->order_number;
    pthread_mutex_lock(&mail->lock);
    mail->report = (struct shard_report){
        .order_done = s->order_done,
        .stats_done = s->stats_done,
        .stopped_run = s->stopped_run,
        .counters = s->counters,
        .http_counters = s->http_counters,
        .traces_left_out = s->tracer ? s->tracer->left_out : 0,
        .cpu_pct = s->cpu_pct,
        .loop_lag_ms = s->loop_lag_ms,
    };
    memcpy(mail->running, s->running, s->plan->class_count * sizeof *mail->running);
    pthread_mutex_unlock(&mail->lock);
    ring(mail->wake_engine_fd);
    s->dirty = false;
}

/* Samples that are asked for go out before an order is looked at: ending thousands of users takes
 * longer than a master that said quit will listen. */
static void read_stats_mail(struct shard *s)
{
    struct shard_mailbox *mail = &s->mail;
    pthread_mutex_lock(&mail->lock);
    s->stats_wanted = mail->stats_wanted;
    s->quit = mail->quit;
    if (mail->empty) {
        s->empty = mail->empty;
        mail->empty = NULL;
    }
    pthread_mutex_unlock(&mail->lock);
    hand_over(s);
    if (s->dirty)
        tell(s);
}

static void read_order(struct shard *s)
{
    struct shard_mailbox *mail = &s->mail;
    struct binding *old = NULL;
    uint64_t run = s->run, trace_rows = 0;
    struct arrivals *arrivals = NULL;
    uint32_t *targets = NULL;
    pthread_mutex_lock(&mail->lock);
    if (mail->order_is_new) {
        targets = mail->order.targets;
        old = s->binding;
        s->binding = mail->order.binding;
        s->stop_timeout_us = mail->order.stop_timeout_us;
        s->order_number = mail->order.number;
        s->run = mail->order.run;
        arrivals = mail->order.arrivals;
        trace_rows = mail->order.trace_rows;
        mail->order.targets = NULL;
        mail->order.binding = NULL;
        mail->order.arrivals = NULL;
        mail->order_is_new = false;
    }
    pthread_mutex_unlock(&mail->lock);
    binding_unref(old);
    if (s->tracer && s->run != run)
        tracer_begin_run(s->tracer, trace_rows);
    if (targets) {
        change_arrivals(s, arrivals);
        if (!arrivals)
            carry_out(s, targets);
        s->dirty = true; /* also when there was nothing to do */
    }
    free(targets);
}

static void mail_ready(struct loop_source *source, uint32_t events, uint64_t now_us)
{
    struct shard *s = (struct shard *)((char *)source - offsetof(struct shard, mail_source));
    uint64_t count;
    (void)events;
    (void)now_us;
    if (read(s->mail.wake_shard_fd, &count, sizeof count) < 0)
        return; /* nothing there after all */
    read_stats_mail(s);
    read_order(s);
}

/* --- the loop ------------------------------------------------------------------------------- */

static void set_wall_offset(struct shard *s)
{
    s->wall_offset_s = clock_wall_s() - (double)clock_mono_us() / 1e6;
}

static void housekeeping(struct timer *t, void *context, uint64_t now_us)
{
    struct shard *s = context;
    uint64_t cpu_us = clock_thread_cpu_us();
    if (now_us > s->second_us)
        s->cpu_pct = 100.0 * (double)(cpu_us - s->cpu_us) / (double)(now_us - s->second_us);
    s->loop_lag_ms = (double)s->lag_us / 1000.0;
    s->cpu_us = cpu_us;
    s->second_us = now_us;
    s->lag_us = 0;
    s->dirty = true;
    set_wall_offset(s); /* follows a clock that is being set */
    timers_set(&s->timers, t, now_us + HOUSEKEEPING_US);
}

/* A portion of the users to start, one of each class in turn. Without memory the rest waits for the
 * next turns; it shows as a target that is not reached. */
static void start_users(struct shard *s)
{
    unsigned left = STARTS_A_TURN;
    while (s->to_start_total > 0 && left > 0) {
        for (uint32_t c = 0; c < s->plan->class_count && left > 0; c++) {
            if (s->to_start[c] == 0)
                continue;
            left--;
            if (user_start(s, c) < 0)
                return;
            s->to_start[c]--;
            s->to_start_total--;
        }
    }
}

static void trim_spare(struct shard *s)
{
    while (s->spare.count > SPARE_USERS) {
        struct user *u = s->spare.first;
        user_list_remove(&s->spare, u);
        free(u);
    }
    if (s->native)
        native_shard_trim(s->native);
}

static int wait_for_events(struct shard *s, struct epoll_event *events, uint64_t timeout_us)
{
    if (!s->no_fine_wait) {
        struct timespec timeout = {(time_t)(timeout_us / 1000000),
                                   (long)(timeout_us % 1000000) * 1000};
        int n = epoll_pwait2(s->epoll_fd, events, EVENTS_A_TURN, &timeout, NULL);
        if (n >= 0 || errno != ENOSYS)
            return n;
        s->no_fine_wait = true;
    }
    return epoll_wait(s->epoll_fd, events, EVENTS_A_TURN, (int)((timeout_us + 999) / 1000));
}

static void note_lag(struct shard *s, uint64_t due_us)
{
    if (s->now_us > due_us && s->now_us - due_us > s->lag_us)
        s->lag_us = s->now_us - due_us;
}

static void end_users(struct shard *s)
{
    for (size_t c = 0; c < s->plan->class_count; c++) {
        while (s->users[c].first)
            user_end_now(s->users[c].first);
    }
    while (s->ending.first)
        user_end_now(s->ending.first);
}

static void *shard_main(void *arg)
{
    struct shard *s = arg;
    struct epoll_event events[EVENTS_A_TURN];
    bool again = false;
    unsigned turns = 0;
    s->now_us = s->second_us = clock_mono_us();
    s->cpu_us = clock_thread_cpu_us();
    set_wall_offset(s);
    timers_set(&s->timers, &s->second_timer, s->now_us + HOUSEKEEPING_US);
    if (s->native)
        crash_thread_begin(&s->native->crash, s->native->crash_stack);
    while (!s->quit) {
        uint64_t due_us = timers_next_us(&s->timers), now_us = clock_mono_us();
        bool at_once = again || s->to_start_total > 0 || due_us <= now_us;
        int n = wait_for_events(s, events, at_once ? 0 : due_us - now_us);
        s->now_us = clock_mono_us();
        note_lag(s, due_us);
        for (int i = 0; i < n; i++) {
            struct loop_source *source = events[i].data.ptr;
            source->ready(source, events[i].events, s->now_us);
        }
        timers_run(&s->timers, s->now_us, s);
        start_users(s);
        again = s->ops->turn(s->http, s->now_us);
        trim_spare(s);
        atomic_store_explicit(&s->turns, ++turns, memory_order_relaxed);
        if (s->dirty)
            tell(s);
    }
    end_users(s); /* here, for a task in C keeps its thread */
    if (s->native)
        crash_thread_end(&s->native->crash);
    return NULL;
}

/* --- birth and death ------------------------------------------------------------------------ */

static int new_sets(struct shard *s, struct stats_limits limits)
{
    struct stats **sets[] = {&s->stats, &s->empty};
    s->slots = calloc(s->plan->entry_count ? s->plan->entry_count : 1, sizeof *s->slots);
    if (!s->slots)
        return -ENOMEM;
    for (size_t i = 0; i < 2; i++) {
        int rc = stats_new(limits, clock_wall_s(), sets[i]);
        /* the same names in the same order get the same slots in both sets; those beyond the limit
         * share "(other)", so an entry's number is not its slot */
        for (size_t e = 0; rc == 0 && e < s->plan->entry_count; e++)
            rc = stats_slot(*sets[i], s->plan->entries[e].method, s->plan->entries[e].name,
                            &s->slots[e]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int open_loop(struct shard *s, const struct engine_options *options)
{
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->mail.wake_shard_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->epoll_fd < 0 || s->mail.wake_shard_fd < 0)
        return -errno;
    s->mail_source.ready = mail_ready;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &s->mail_source};
    if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->mail.wake_shard_fd, &event) < 0)
        return -errno;
    struct http_engine_setup setup = {
        .epoll_fd = s->epoll_fd,
        .timers = &s->timers,
        .phases = options->phases,
        .sources = options->sources,
        .source_count = options->source_count,
        .http2 = options->http2,
        .proxy = options->proxy,
        .counters = &s->http_counters,
        .keeper = &s->keeper,
        .done = user_request_done,
        .set_cookie = user_set_cookie,
    };
    return s->ops->open(&setup, &s->http);
}

int shard_init(struct shard *s, const struct plan *plan, const struct http_ops *ops,
               int wake_engine_fd, const struct engine_options *options, uint64_t seed)
{
    size_t n = plan->class_count;
    *s = (struct shard){.plan = plan, .ops = ops, .epoll_fd = -1};
    s->mail.wake_shard_fd = -1;
    s->mail.wake_engine_fd = wake_engine_fd;
    pthread_mutex_init(&s->mail.lock, NULL);
    timers_init(&s->timers, clock_mono_us());
    s->stop_timer.fire = cut_overdue;
    s->second_timer.fire = housekeeping;
    rng_init(&s->rng, seed);
    buf_init(&s->operand, PLAN_MAX_VARIABLE_BYTES * 2);
    buf_init(&s->decoded, PLAN_MAX_BODY_BYTES);
    buf_init(&s->cookie_header, COOKIES_MAX_HEADER_BYTES);
    s->mail.running = calloc(n, sizeof *s->mail.running);
    s->running = calloc(n, sizeof *s->running);
    s->to_start = calloc(n, sizeof *s->to_start);
    s->users = calloc(n, sizeof *s->users);
    if (!s->mail.running || !s->running || !s->to_start || !s->users)
        return -ENOMEM;
    if (options->trace_ratio > 0) {
        s->tracer = tracer_new(options->trace_ratio);
        if (!s->tracer)
            return -ENOMEM;
        buf_init(&s->mail.traced, TRACER_MAX_BYTES);
    }
    if (plan->has_patterns && !(s->patterns = pattern_scratch_new()))
        return -ENOMEM;
    int rc = new_sets(s, options->limits);
    return rc < 0 ? rc : open_loop(s, options);
}

int shard_start(struct shard *s)
{
    int rc = pthread_create(&s->thread, NULL, shard_main, s);
    s->thread_started = rc == 0;
    return -rc;
}

static void free_spare(struct shard *s)
{
    while (s->spare.first) {
        struct user *u = s->spare.first;
        user_list_remove(&s->spare, u);
        free(u);
    }
}

void shard_done(struct shard *s)
{
    if (s->thread_started) {
        pthread_mutex_lock(&s->mail.lock);
        s->mail.quit = true;
        pthread_mutex_unlock(&s->mail.lock);
        shard_wake(s);
        pthread_join(s->thread, NULL);
    }
    free_spare(s);
    native_shard_free(s->native);
    made_call_free_all(s);
    if (s->ops)
        s->ops->close(s->http);
    http_keeper_done(&s->keeper);
    pattern_scratch_free(s->patterns);
    tracer_free(s->tracer);
    buf_done(&s->mail.traced);
    buf_done(&s->operand);
    buf_done(&s->decoded);
    json_tape_done(&s->tape);
    if (s->epoll_fd >= 0)
        (void)close(s->epoll_fd);
    if (s->mail.wake_shard_fd >= 0)
        (void)close(s->mail.wake_shard_fd);
    binding_unref(s->binding);
    binding_unref(s->mail.order.binding);
    free(s->mail.order.targets);
    arrivals_free(s->mail.order.arrivals);
    arrivals_free(s->arrivals);
    stats_free(s->stats);
    stats_free(s->empty);
    stats_free(s->mail.empty);
    stats_free(s->mail.filled);
    free(s->mail.running);
    free(s->running);
    free(s->to_start);
    free(s->slots);
    free(s->users);
    buf_done(&s->cookie_header);
    pthread_mutex_destroy(&s->mail.lock);
}

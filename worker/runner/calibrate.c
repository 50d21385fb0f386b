/* Time is a grid of seconds. A step is: the users are made (evenly over the time that they wait, or
 * all at once would work at once), they settle, the samples so far are thrown away, and what the
 * seconds up to the step's end bring is a window. The grid begins a quarter of a second after the
 * threads do, so that their own figures of a second are there when a second is over. */
#include "worker/runner/calibrate.h"

#include "base/clock.h"
#include "base/log.h"
#include "worker/runner/dispatcher.h"
#include "worker/runner/inputs.h"
#include "worker/runner/pace.h"
#include "worker/runner/signals.h"
#include "worker/runner/tasks.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define SECOND_US   1000000u
#define GRID_US     250000u   /* behind the threads' own seconds */
#define LATE_US     250000u   /* samples that took longer: the grid begins anew */
#define SPAWN_US    20000u    /* between two portions of users */
#define GRACE_US    15000000u /* for users that will not end: on_stop has ENGINE_ON_STOP_S */
#define AT_ONCE     1e7       /* users a second */
#define SHORTEST_MS 1

enum phase {
    PHASE_SETTLING,
    PHASE_FORGETTING, /* the samples from before are awaited, to be thrown away */
    PHASE_MEASURING,
    PHASE_COLLECTING, /* the samples of the window are awaited */
    PHASE_ENDING,     /* users end */
    PHASE_DONE,
};

struct run {
    const struct calibrate_options *options;
    const struct plan *plan;
    struct calibration *c;
    struct engine *engine;
    struct tasks tasks;
    struct dispatcher dispatcher;
    struct stats *samples;
    enum phase phase;
    double pace_s; /* of the users who wait longest */
    uint64_t settle_s, spawn_us;
    uint64_t begin_us;
    uint64_t step_us;  /* the step began */
    uint64_t second_s; /* of the step, the next to end */
    uint64_t spawn_at_us;
    uint32_t from_users; /* when the step began */
    uint64_t window_us;
    struct engine_status before; /* at the window's begin */
    struct capacity_window window;
    unsigned seconds; /* that the window has figures of */
    double cpu_sum_pct;
    uint64_t give_up_us;
};

void calibrate_times(const struct plan *plan, const bool *classes, uint64_t *step_s,
                     uint64_t *max_s)
{
    uint64_t twice_s = (uint64_t)ceil(2 * pace_longest_s(plan, classes));
    if (*step_s == 0)
        *step_s = twice_s > CALIBRATE_STEP_S ? twice_s : CALIBRATE_STEP_S;
    if (*max_s == 0)
        *max_s = *step_s * CALIBRATE_STEPS;
}

/* --- steps ------------------------------------------------------------------------------------ */

static int set_users(struct run *r, uint32_t users, struct err *err)
{
    int rc = dispatcher_ramp(&r->dispatcher, users, AT_ONCE, NULL);
    if (rc < 0)
        return err_set(err, rc, "%s", strerror(-rc));
    while (dispatcher_step(&r->dispatcher))
        ;
    return engine_set_users(r->engine, r->dispatcher.counts, 0, err);
}

/* As many as there are to be by now. */
static int spawn(struct run *r, uint64_t now_us, struct err *err)
{
    uint32_t users = r->c->search.users;
    uint64_t age_us = now_us > r->step_us ? now_us - r->step_us : 0;
    r->spawn_at_us = UINT64_MAX;
    if (users > r->from_users && age_us < r->spawn_us) {
        double part = ((double)age_us + SPAWN_US) / ((double)r->spawn_us + SPAWN_US);
        users = r->from_users + (uint32_t)(part * (users - r->from_users));
        r->spawn_at_us = now_us + SPAWN_US;
    }
    return dispatcher_total(&r->dispatcher) == users ? 0 : set_users(r, users, err);
}

static int begin_step(struct run *r, uint64_t step_us, struct err *err)
{
    uint64_t now_us = clock_mono_us();
    r->phase = PHASE_SETTLING;
    r->step_us = now_us > step_us + LATE_US ? now_us : step_us;
    r->second_s = 1;
    r->from_users = dispatcher_total(&r->dispatcher);
    return spawn(r, now_us, err);
}

static int end_load(struct run *r)
{
    r->phase = PHASE_ENDING;
    r->spawn_at_us = UINT64_MAX;
    r->give_up_us = clock_mono_us() + GRACE_US;
    return engine_stop(r->engine, 0);
}

static int ask(struct run *r, enum phase phase)
{
    r->phase = phase;
    return engine_request_stats(r->engine);
}

/* --- windows ---------------------------------------------------------------------------------- */

static void begin_window(struct run *r)
{
    stats_clear(r->samples, clock_wall_s());
    engine_status(r->engine, &r->before);
    r->window_us = clock_mono_us();
    r->window = (struct capacity_window){.users = r->c->search.users, .loop_lag_ms = HUGE_VAL};
    r->seconds = 0;
    r->cpu_sum_pct = 0;
    r->phase = PHASE_MEASURING;
}

static void add_second(struct run *r)
{
    struct engine_status now;
    engine_status(r->engine, &now);
    r->seconds++;
    r->cpu_sum_pct += now.cpu_pct;
    if (now.loop_lag_ms < r->window.loop_lag_ms)
        r->window.loop_lag_ms = now.loop_lag_ms;
}

static struct measure percentile(const struct stats_entry *e, double q)
{
    uint64_t us;
    return histogram_percentile(&e->response_times, q, &us) ? measure_of((double)us / 1000.0)
                                                            : MEASURE_UNKNOWN;
}

static void note_failure(struct run *r)
{
    const struct stats_error *most = NULL;
    for (uint32_t i = 0; i < stats_error_count(r->samples); i++) {
        const struct stats_error *e = stats_error_at(r->samples, i);
        if (!most || e->occurrences > most->occurrences)
            most = e;
    }
    if (most)
        (void)snprintf(r->c->failure, sizeof r->c->failure, "%.*s %.*s: %.*s",
                       STR_ARG(most->method), STR_ARG(most->name), STR_ARG(most->error)); /* cut */
}

static int end_window(struct run *r)
{
    struct capacity_window *w = &r->window;
    struct engine_status now;
    struct stats_entry *total;
    int rc = stats_total(r->samples, &total);
    if (rc < 0)
        return rc;
    engine_status(r->engine, &now);
    w->running = now.running_total;
    w->seconds = (double)(clock_mono_us() - r->window_us) / 1e6;
    w->cpu_pct = r->cpu_sum_pct / r->seconds;
    w->requests = total->num_requests;
    w->failures = total->num_failures;
    w->late_starts = now.late_starts_10ms - r->before.late_starts_10ms;
    w->files_exhausted = now.files_exhausted - r->before.files_exhausted;
    w->ports_exhausted = now.ports_exhausted - r->before.ports_exhausted;
    w->memory_exhausted = now.memory_exhausted - r->before.memory_exhausted;
    w->p50_ms = percentile(total, 0.5);
    w->p95_ms = percentile(total, 0.95);
    stats_entry_free(total);
    note_failure(r);
    return 0;
}

static int keep_window(struct calibration *c, const struct capacity_window *w)
{
    struct capacity_window *grown = realloc(c->windows, (c->window_count + 1) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    c->windows = grown;
    c->windows[c->window_count++] = *w;
    return 0;
}

/* The step is over: the next one, or the end. */
static int take_window(struct run *r, struct err *err)
{
    const struct calibrate_options *o = r->options;
    struct capacity *search = &r->c->search;
    int rc = end_window(r);
    if (rc == 0)
        rc = keep_window(r->c, &r->window);
    if (rc < 0)
        return err_set(err, rc, "%s", strerror(-rc));
    if (o->tell)
        o->tell(o->context, &r->window, capacity_judge(&search->options, &r->window));
    uint64_t step_us = r->step_us + r->c->step_s * SECOND_US;
    if (capacity_add(search, &r->window) &&
        step_us + r->c->step_s * SECOND_US > r->begin_us + r->c->max_s * SECOND_US)
        capacity_stop(search, CAPACITY_TIME);
    return search->limit == CAPACITY_NONE ? begin_step(r, step_us, err) : end_load(r);
}

static int second_over(struct run *r, uint64_t now_us)
{
    tasks_watch(&r->tasks, now_us);
    r->second_s++;
    uint64_t age_s = r->second_s - 1;
    if (r->phase == PHASE_SETTLING && age_s >= r->settle_s)
        return ask(r, PHASE_FORGETTING);
    if (r->phase != PHASE_MEASURING)
        return 0;
    add_second(r);
    return age_s >= r->c->step_s ? ask(r, PHASE_COLLECTING) : 0;
}

/* --- the loop --------------------------------------------------------------------------------- */

static int stop(struct run *r, enum capacity_limit why)
{
    if (r->phase >= PHASE_ENDING)
        return 0;
    capacity_stop(&r->c->search, why);
    return end_load(r);
}

static int look_at_engine(struct run *r, struct err *err)
{
    struct engine_status status;
    engine_poll(r->engine);
    tasks_hear(&r->tasks);
    if (engine_take_stats(r->engine, r->samples) < 0)
        log_warning("out of memory: samples wait, continuing");
    engine_status(r->engine, &status);
    if (status.run_stopped && r->phase < PHASE_ENDING)
        return stop(r, CAPACITY_SCENARIO);
    if (r->phase == PHASE_FORGETTING && engine_stats_complete(r->engine))
        begin_window(r);
    else if (r->phase == PHASE_COLLECTING && engine_stats_complete(r->engine))
        return take_window(r, err);
    else if (r->phase == PHASE_ENDING && status.reached && status.running_total == 0)
        r->phase = PHASE_DONE;
    return 0;
}

static int look_at_signals(struct run *r)
{
    int rc = 0;
    for (int signal; (signal = signals_next(r->options->signal_fd)) != 0;) {
        if (r->c->signal != 0)
            r->phase = PHASE_DONE; /* the second one waits for nothing */
        r->c->signal = signal;
        rc = stop(r, CAPACITY_SIGNAL);
    }
    return rc;
}

static int look_at_clock(struct run *r, struct err *err)
{
    uint64_t now_us = clock_mono_us();
    int rc = now_us >= r->spawn_at_us ? spawn(r, now_us, err) : 0;
    if (rc == 0 && r->phase < PHASE_ENDING && now_us >= r->step_us + r->second_s * SECOND_US)
        rc = second_over(r, now_us);
    if (r->phase == PHASE_ENDING && now_us >= r->give_up_us) {
        log_warning("some users do not end, continuing");
        r->phase = PHASE_DONE;
    }
    return rc;
}

static int timeout_ms(const struct run *r)
{
    uint64_t now_us = clock_mono_us();
    uint64_t at_us =
        r->phase == PHASE_ENDING ? r->give_up_us : r->step_us + r->second_s * SECOND_US;
    if (r->spawn_at_us < at_us)
        at_us = r->spawn_at_us;
    return at_us <= now_us ? 0 : (int)((at_us - now_us) / 1000) + SHORTEST_MS;
}

static int loop(struct run *r, struct err *err)
{
    struct pollfd fds[] = {{.fd = engine_fd(r->engine), .events = POLLIN},
                           {.fd = r->options->signal_fd, .events = POLLIN}};
    int rc = 0;
    while (rc == 0 && r->phase != PHASE_DONE) {
        if (poll(fds, sizeof fds / sizeof *fds, timeout_ms(r)) < 0 && errno != EINTR)
            return err_set(err, -errno, "poll: %s", strerror(errno));
        rc = look_at_engine(r, err);
        if (rc == 0)
            rc = look_at_signals(r);
        if (rc == 0)
            rc = look_at_clock(r, err);
    }
    return rc < 0 ? err_set(err, rc, "the engine: %s", strerror(-rc)) : 0;
}

/* --- making ----------------------------------------------------------------------------------- */

static int make_engine(struct run *r, struct err *err)
{
    const struct calibrate_options *o = r->options;
    int rc = engine_new(r->plan, &o->engine, &r->engine, err);
    if (rc == 0)
        rc = inputs_apply(r->engine, r->plan, o->sets, o->set_count, NULL);
    if (rc == 0)
        rc = engine_check_inputs(r->engine, err);
    if (rc == 0 && o->host)
        rc = engine_set_host(r->engine, str_of(o->host), err);
    return rc < 0 ? rc : engine_check_hosts(r->engine, o->classes, err);
}

/* Users settle for as long as they wait, a second at the least, half of the step at the most; they
 * are made meanwhile. */
static void set_times(struct run *r)
{
    r->pace_s = pace_longest_s(r->plan, r->options->classes);
    r->c->step_s = r->options->step_s;
    r->c->max_s = r->options->max_s;
    double settle_s = ceil(r->pace_s);
    r->settle_s = settle_s >= (double)r->c->step_s / 2 ? r->c->step_s / 2 : (uint64_t)settle_s;
    r->settle_s = r->settle_s > 0 ? r->settle_s : 1;
    double spawn_s = r->pace_s < (double)r->settle_s ? r->pace_s : (double)r->settle_s;
    r->spawn_us = (uint64_t)(spawn_s * 1e6);
}

static void make_search(struct run *r)
{
    struct capacity_options search = r->options->search;
    r->c->threads = engine_shard_count(r->engine);
    search.unit = r->c->threads;
    search.waits = r->pace_s > 0;
    capacity_init(&r->c->search, &search);
}

static int make(struct run *r, struct err *err)
{
    int rc = make_engine(r, err);
    if (rc == 0)
        rc = dispatcher_init(&r->dispatcher, r->plan, r->options->classes);
    if (rc == 0)
        rc = stats_new(r->options->engine.limits, clock_wall_s(), &r->samples);
    if (rc < 0)
        return err_set(err, rc, "cannot start: %s", strerror(-rc));
    tasks_init(&r->tasks, r->plan, r->engine);
    set_times(r);
    make_search(r);
    return 0;
}

int calibrate_run(const struct calibrate_options *options, const struct plan *plan,
                  struct calibration *ret, struct err *err)
{
    struct run r = {.options = options, .plan = plan, .c = ret, .spawn_at_us = UINT64_MAX};
    *ret = (struct calibration){0};
    int rc = make(&r, err);
    if (rc == 0) {
        tasks_begin(&r.tasks);
        r.begin_us = clock_mono_us() + GRID_US;
        rc = begin_step(&r, r.begin_us, err);
        if (rc == 0)
            rc = loop(&r, err);
        tasks_end(&r.tasks);
    }
    stats_free(r.samples);
    dispatcher_done(&r.dispatcher);
    engine_free(r.engine);
    if (rc < 0)
        calibration_done(ret);
    return rc;
}

void calibration_done(struct calibration *c)
{
    free(c->windows);
    *c = (struct calibration){0};
}

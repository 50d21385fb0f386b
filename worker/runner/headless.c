/* The shell around course.h, which decides, and tally.h, which counts. Each second the engine is
 * asked for its samples; when they are in, they are a point of the history, and the output is told.
 * At the end users are given their time, then the last samples are fetched, judged and written. */
#include "worker/runner/headless.h"

#include "base/clock.h"
#include "base/log.h"
#include "worker/report/generator.h"
#include "worker/runner/course.h"
#include "worker/runner/inputs.h"
#include "worker/runner/keys.h"
#include "worker/runner/signals.h"
#include "worker/runner/survey.h"
#include "worker/runner/tally.h"
#include "worker/runner/tasks.h"
#include "worker/runner/traces.h"
#include "worker/scenario/shape.h"
#include "worker/scenario/url.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SECOND_US      1000000u
#define GRACE_US       10000000u /* beyond the stop timeout: users that will not end */
#define LAST_WORD_US   5000000u  /* for the last samples */
#define AFTER_LOAD_US  100000u   /* samples that come so soon after the load are of it alone */
#define EVENTS_AT_ONCE 8

enum phase {
    PHASE_LOAD,
    PHASE_STOPPING,   /* users end */
    PHASE_COLLECTING, /* the last samples are awaited */
    PHASE_READING,    /* cluster and servers are still being read */
    PHASE_DONE,
};

struct headless {
    const struct headless_options *options;
    const struct plan *plan;
    struct engine *engine;
    struct course course;
    struct tally tally;
    struct tasks tasks;
    struct output *output;
    struct scrape scrape;
    struct survey survey;
    struct traces traces;
    struct keys keys;
    struct buf host; /* as it is shown */
    enum phase phase;
    bool asked;   /* the engine, for a second's samples */
    bool aborted; /* by a threshold */
    bool failed;  /* the engine did */
    uint64_t begin_us;
    double begin_s;
    double end_s;
    uint64_t load_end_us; /* when the load ended, and what it was then */
    uint32_t load_end_users;
    bool load_end_steady;
    uint64_t second_us;  /* the next second's end */
    uint64_t give_up_us; /* of what the phase waits for */
    int epoll_fd;
    int timer_fd;
    struct err broken; /* the engine could not be told something */
};

static void end_load(struct headless *h, double stop_timeout_s);

/* --- the report ------------------------------------------------------------------------------ */

static enum report_phase report_phase(const struct headless *h)
{
    switch (h->phase) {
    case PHASE_LOAD:
        return h->course.state == COURSE_RUNNING ? REPORT_RUNNING : REPORT_SPAWNING;
    case PHASE_STOPPING:
    case PHASE_COLLECTING:
        return REPORT_STOPPING;
    case PHASE_READING:
        return REPORT_HARVESTING;
    case PHASE_DONE:
        break;
    }
    return REPORT_DONE;
}

/* How long the load is to last. Stages overrule --run-time. */
static struct measure planned_s(const struct headless *h)
{
    uint64_t end_us = h->plan->shape ? shape_end_us(h->plan->shape) : UINT64_MAX;
    if (end_us != UINT64_MAX)
        return measure_of((double)end_us / 1e6);
    uint64_t run_time_s = h->options->run_time_s;
    return run_time_s ? measure_of((double)run_time_s) : MEASURE_UNKNOWN;
}

static struct report make_report(const struct headless *h, const struct engine_status *status)
{
    const struct headless_options *o = h->options;
    return (struct report){
        .test_name = o->output.test_name,
        .tag = o->output.tag,
        .host = h->host.len > 0 ? buf_c(&h->host) : NULL,
        .start_s = h->begin_s,
        .end_s = h->end_s,
        .now_s = clock_wall_s(),
        .phase = report_phase(h),
        .run_time_s = planned_s(h),
        .requests = {.started = status->started,
                     .succeeded = status->succeeded,
                     .failed = status->failed,
                     .interrupted = status->interrupted,
                     .interrupted_oldest_us = status->interrupted_oldest_us},
        .plan = h->plan,
        .stats = h->tally.samples.run,
        .history = &h->tally.history,
        .thresholds = h->tally.outcomes,
        .threshold_count = h->tally.threshold_count,
    };
}

/* --- what the course asks for ---------------------------------------------------------------- */

static void engine_told(struct headless *h, int rc)
{
    if (rc < 0 && h->broken.code == 0)
        (void)err_set(&h->broken, rc, "the engine: %s", strerror(-rc)); /* told by the loop */
}

static void set_users(struct headless *h)
{
    struct err err = {0};
    int rc =
        engine_set_users(h->engine, h->course.dispatcher.counts, h->options->stop_timeout_s, &err);
    if (rc < 0 && h->broken.code == 0)
        (void)err_set(&h->broken, rc, "%s", err.text); /* told by the loop */
}

static void set_arrivals(struct headless *h)
{
    struct err err = {0};
    int rc = engine_set_arrivals(h->engine, h->options->classes, &err);
    if (rc < 0 && h->broken.code == 0)
        (void)err_set(&h->broken, rc, "%s", err.text); /* told by the loop */
}

static void tell_ramp(const struct headless *h)
{
    const struct course *c = &h->course;
    log_info("Ramping to %u users at a rate of %.2f per second", c->target, c->rate);
}

static void tell_spawned(struct headless *h)
{
    struct engine_status status;
    struct buf classes;
    int rc = 0;
    engine_status(h->engine, &status);
    buf_init(&classes, LOG_LINE_BYTES);
    for (size_t i = 0; rc == 0 && i < h->plan->class_count; i++)
        rc = buf_printf(&classes, "%s\"%.*s\": %u", i ? ", " : "",
                        STR_ARG(h->plan->classes[i].name), status.running[i]);
    log_info("All users spawned: {%s} (%llu total users)", buf_c(&classes),
             (unsigned long long)status.running_total);
    buf_done(&classes);
}

static void all_spawned(struct headless *h)
{
    if (!h->plan->shape || !h->plan->shape->arrival)
        tell_spawned(h);
    if (!h->options->reset_stats)
        return;
    log_info("Resetting stats");
    tally_reset(&h->tally, clock_mono_us(), clock_wall_s());
    engine_told(h, engine_request_stats(h->engine)); /* what comes by then is from before */
    h->asked = true;
}

static void perform(struct headless *h, unsigned wishes)
{
    if (wishes & COURSE_RAMPS)
        tell_ramp(h);
    if (wishes & COURSE_SET_USERS)
        set_users(h);
    if (wishes & COURSE_SET_ARRIVALS)
        set_arrivals(h);
    if (wishes & COURSE_SPAWNED)
        all_spawned(h);
    if (wishes & COURSE_END) {
        log_info("%s, shutting down", h->course.why);
        end_load(h, h->options->stop_timeout_s);
    }
}

static void advance(struct headless *h)
{
    struct engine_status status;
    unsigned wishes = 1;
    while (h->phase == PHASE_LOAD && wishes != 0 && h->broken.code == 0) {
        engine_status(h->engine, &status);
        int rc = course_advance(&h->course, clock_mono_us(), status.reached, &wishes);
        if (rc < 0) {
            engine_told(h, rc);
            return;
        }
        perform(h, wishes);
    }
}

/* --- the end --------------------------------------------------------------------------------- */

static void note_load(struct headless *h)
{
    struct engine_status status;
    engine_status(h->engine, &status);
    h->load_end_us = clock_mono_us();
    h->load_end_users = (uint32_t)status.running_total;
    h->load_end_steady = course_is_steady(&h->course, h->load_end_us, status.running_total);
}

static void end_load(struct headless *h, double stop_timeout_s)
{
    if (h->phase > PHASE_STOPPING)
        return;
    if (h->phase == PHASE_LOAD)
        note_load(h);
    h->phase = PHASE_STOPPING;
    course_end(&h->course);
    uint64_t wait_us = stop_timeout_s > 0 ? (uint64_t)(stop_timeout_s * 1e6) : 0;
    h->give_up_us = clock_mono_us() + wait_us + GRACE_US;
    engine_told(h, engine_stop(h->engine, stop_timeout_s));
}

static void collect(struct headless *h)
{
    tasks_end(&h->tasks);
    h->phase = PHASE_COLLECTING;
    h->end_s = clock_wall_s();
    survey_end(&h->survey, h->end_s);
    h->give_up_us = clock_mono_us() + LAST_WORD_US;
    engine_told(h, engine_request_stats(h->engine));
    h->asked = true;
}

/* --- seconds --------------------------------------------------------------------------------- */

static void check_abort(struct headless *h)
{
    if (h->phase != PHASE_LOAD)
        return;
    const struct report_threshold *t = tally_broken(&h->tally, clock_mono_us() - h->begin_us);
    if (!t)
        return;
    log_error("threshold '%.*s' is not met (%g%s), shutting down", STR_ARG(t->text),
              t->measured.value, t->unit ? t->unit : "");
    h->aborted = true;
    end_load(h, h->options->stop_timeout_s);
}

static void check_iterations(struct headless *h, const struct engine_status *status)
{
    uint64_t limit = h->options->engine.task_limit;
    if (h->phase != PHASE_LOAD || limit == 0 || status->tasks_ended < limit)
        return;
    log_info("%llu iterations done, shutting down", (unsigned long long)limit);
    end_load(h, h->options->stop_timeout_s);
}

/* The engine ends its users by itself. */
static void check_stopped(struct headless *h, const struct engine_status *status)
{
    if (h->phase != PHASE_LOAD || !status->run_stopped)
        return;
    log_info("a step of the scenario stopped the run, shutting down");
    end_load(h, 0);
}

/* All samples are in. */
static void collected(struct headless *h)
{
    survey_drop_facts(&h->survey);
    h->phase = survey_pending(&h->survey) ? PHASE_READING : PHASE_DONE;
    if (h->phase == PHASE_READING)
        log_info("waiting for the server telemetry; a signal ends the waiting");
}

static void tick(struct headless *h, const struct engine_status *status)
{
    struct report report = make_report(h, status);
    if (h->survey.background)
        report.actors_history =
            background_actors_history(h->survey.background, &report.actors_history_count);
    output_tick(h->output, &report);
}

/* The samples of the load's last second come when its users are gone; they are of those all the
 * same. */
static bool is_of_load(const struct headless *h, uint64_t now_us)
{
    return h->phase != PHASE_LOAD && now_us - h->load_end_us < AFTER_LOAD_US;
}

static bool is_steady(const struct headless *h, uint64_t now_us, uint64_t running)
{
    if (h->phase == PHASE_LOAD)
        return course_is_steady(&h->course, now_us, running);
    return is_of_load(h, now_us) && h->load_end_steady &&
           now_us - h->tally.since_us >= SECOND_US / 2; /* less is no second */
}

static void take_point(struct headless *h, const struct engine_status *now)
{
    uint64_t now_us = clock_mono_us();
    struct engine_status with_users = *now;
    if (is_of_load(h, now_us))
        with_users.running_total = h->load_end_users;
    const struct engine_status *status = &with_users;
    const struct tally_moment moment = {
        .now_us = now_us,
        .wall_s = clock_wall_s(),
        .target = h->course.target,
        .steady = is_steady(h, now_us, status->running_total),
        .engine = status,
    };
    h->asked = false;
    if (tally_point(&h->tally, &moment) < 0)
        log_warning("out of memory: a second is missing in the history, continuing");
    survey_add(&h->survey, USERS_SOURCE_LOCAL, moment.wall_s, (double)status->running_total);
    if (h->phase == PHASE_COLLECTING) {
        collected(h);
        return;
    }
    tick(h, status);
    check_abort(h);
}

static void look_at_engine(struct headless *h)
{
    struct engine_status status;
    engine_poll(h->engine);
    tasks_hear(&h->tasks);
    if (tally_take(&h->tally, h->engine, clock_wall_s()) < 0)
        log_warning("out of memory: samples wait, continuing");
    traces_pass(&h->traces, h->engine, h->output);
    engine_status(h->engine, &status);
    if (h->asked && engine_stats_complete(h->engine))
        take_point(h, &status);
    scrape_answer(&h->scrape, h->plan, h->tally.samples.run, h->engine,
                  h->phase != PHASE_LOAD              ? "stopping"
                  : h->course.state == COURSE_RUNNING ? "running"
                                                      : "spawning");
    check_iterations(h, &status);
    check_stopped(h, &status);
    if (h->phase == PHASE_STOPPING && status.reached && status.running_total == 0)
        collect(h);
}

static void second_over(struct headless *h, uint64_t now_us)
{
    while (h->second_us <= now_us)
        h->second_us += SECOND_US;
    tasks_watch(&h->tasks, now_us);
    if (h->phase == PHASE_READING) {
        struct engine_status status;
        engine_status(h->engine, &status);
        tick(h, &status);
        return;
    }
    if (h->asked)
        return; /* a shard is late: the point will be for longer than a second */
    engine_told(h, engine_request_stats(h->engine));
    h->asked = true;
}

/* For something that may not come? (Reading ends within its own time-outs.) */
static bool waits(const struct headless *h)
{
    return h->phase == PHASE_STOPPING || h->phase == PHASE_COLLECTING;
}

/* What was waited for does not come. */
static void give_up(struct headless *h)
{
    if (h->phase == PHASE_STOPPING) {
        log_warning("some users do not end, continuing");
        collect(h);
    } else {
        log_warning("the last samples of some threads did not come, continuing");
        collected(h);
    }
}

/* --- signals and keys ------------------------------------------------------------------------ */

static void interrupted(struct headless *h, int signal)
{
    if (signal == SIGTERM)
        log_info("Got SIGTERM signal");
    if (h->phase == PHASE_LOAD) {
        end_load(h, h->options->stop_timeout_s);
        return;
    }
    end_load(h, 0); /* the second one waits for nothing */
    if (h->phase == PHASE_READING)
        survey_abort(&h->survey);
}

static void look_at_signals(struct headless *h)
{
    for (int signal; (signal = signals_next(h->options->signal_fd)) != 0;)
        interrupted(h, signal);
}

static void look_at_keys(struct headless *h)
{
    int more = keys_read(&h->keys);
    if (!h->keys.open)
        (void)epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, STDIN_FILENO, NULL); /* may be gone by itself */
    if (more == 0 || h->phase != PHASE_LOAD)
        return;
    int rc = course_change_users(&h->course, more, clock_mono_us());
    if (rc == -EAGAIN)
        log_warning(more > 0 ? "Already spawning users, can't spawn more right now"
                             : "Spawning users, can't stop right now");
    else if (rc < 0)
        log_warning("the number of users cannot be changed now");
}

/* --- the loop -------------------------------------------------------------------------------- */

static uint64_t next_us(const struct headless *h)
{
    uint64_t next = h->second_us;
    if (h->phase == PHASE_LOAD && course_next_us(&h->course) < next)
        next = course_next_us(&h->course);
    if (waits(h) && h->give_up_us < next)
        next = h->give_up_us;
    return next;
}

static void arm_timer(const struct headless *h)
{
    uint64_t us = next_us(h);
    const struct itimerspec at = {
        .it_value = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000}};
    (void)timerfd_settime(h->timer_fd, TFD_TIMER_ABSTIME, &at, NULL); /* the time is a valid one */
}

static void look_at_clock(struct headless *h)
{
    uint64_t now_us = clock_mono_us(), ticks;
    if (read(h->timer_fd, &ticks, sizeof ticks) < 0)
        return; /* it did not fire after all */
    if (waits(h) && now_us >= h->give_up_us)
        give_up(h);
    else if (now_us >= h->second_us)
        second_over(h, now_us);
}

static void handle(struct headless *h, int fd)
{
    if (fd == h->options->signal_fd)
        look_at_signals(h);
    else if (fd == engine_fd(h->engine))
        look_at_engine(h);
    else if (fd == h->timer_fd)
        look_at_clock(h);
    else if (fd == keys_fd(&h->keys))
        look_at_keys(h);
    else if (fd == scrape_fd(&h->scrape))
        scrape_begin(&h->scrape, h->engine);
    else if (fd == survey_fd(&h->survey))
        survey_poll(&h->survey);
    if (h->phase == PHASE_READING && !survey_pending(&h->survey))
        h->phase = PHASE_DONE;
}

/* The engine could not be told something, for want of memory: what there is, is written. */
static void break_off(struct headless *h)
{
    log_error("%s", h->broken.text);
    h->broken = (struct err){0};
    h->failed = true;
    end_load(h, 0);
    h->broken = (struct err){0}; /* the same once more: then nobody ends, and it is given up */
}

static int loop(struct headless *h, struct err *err)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    while (h->phase != PHASE_DONE) {
        advance(h);
        if (h->broken.code < 0)
            break_off(h);
        arm_timer(h);
        int count = epoll_wait(h->epoll_fd, events, EVENTS_AT_ONCE, -1);
        if (count < 0 && errno != EINTR)
            return err_set(err, -errno, "epoll: %s", strerror(errno));
        for (int i = 0; i < count && h->phase != PHASE_DONE; i++)
            handle(h, events[i].data.fd);
    }
    return 0;
}

static int watch(struct headless *h, int fd)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    return fd < 0 || epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : -errno;
}

static int open_loop(struct headless *h)
{
    h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    h->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (h->epoll_fd < 0 || h->timer_fd < 0)
        return -errno;
    const int fds[] = {h->options->signal_fd, engine_fd(h->engine),  h->timer_fd,
                       keys_fd(&h->keys),     scrape_fd(&h->scrape), survey_fd(&h->survey)};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof fds / sizeof *fds; i++)
        rc = watch(h, fds[i]);
    return rc;
}

/* --- making ---------------------------------------------------------------------------------- */

/* The target as it is shown, without user and password; none when each class has its own. */
static int show_host(struct headless *h)
{
    struct str host = h->options->host ? str_of(h->options->host) : h->plan->host;
    struct url parts;
    if (!host.ptr || url_parse(host, &parts, NULL) < 0)
        return 0;
    if (!parts.userinfo.ptr)
        return buf_add(&h->host, host);
    size_t end = (size_t)(parts.userinfo.ptr + parts.userinfo.len + 1 - host.ptr);
    int rc = buf_add(&h->host, parts.tls ? STR("https://") : STR("http://"));
    return rc < 0 ? rc : buf_add(&h->host, str_sub(host, end, host.len));
}

static void tell_overruled(const struct headless *h)
{
    const struct headless_options *o = h->options;
    bool time = o->run_time_s && shape_end_us(h->plan->shape) != UINT64_MAX;
    if (!o->users_given && !o->spawn_rate_given && !time)
        return;
    log_warning("The scenario's %s. The following option(s) will be ignored:%s%s%s",
                h->plan->shape->arrival ? "arrival rate decides" : "stages decide",
                o->users_given ? " --users" : "", o->spawn_rate_given ? " --spawn-rate" : "",
                time ? " --run-time" : "");
}

static void tell_fixed(const struct headless *h)
{
    const struct headless_options *o = h->options;
    uint64_t fixed = 0;
    for (size_t c = 0; c < h->plan->class_count; c++)
        fixed += !o->classes || o->classes[c] ? h->plan->classes[c].fixed_count : 0;
    if (o->users_given && fixed > o->users)
        log_info("Total fixed_count of User classes (%llu) is greater than the specified number of "
                 "users (%u), so not all will be spawned.",
                 (unsigned long long)fixed, o->users);
}

static void tell_beginning(const struct headless *h)
{
    const struct headless_options *o = h->options;
    log_info("Starting cicada %s", CICADA_VERSION);
    if (h->plan->shape)
        tell_overruled(h);
    else
        tell_fixed(h);
    if (h->plan->shape && shape_end_us(h->plan->shape) != UINT64_MAX)
        log_info("Shape test starting.");
    else if (o->run_time_s)
        log_info("Run time limit set to %llu seconds", (unsigned long long)o->run_time_s);
    else if (o->engine.task_limit == 0)
        log_info("No run time limit set, use CTRL+C to interrupt");
}

static int open_output(struct headless *h, struct err *err)
{
    const struct headless_options *o = h->options;
    struct output_options output = o->output;
    output.users = measure_of(o->users); /* as Locust: what is not given is 1, also of stages */
    output.spawn_rate = measure_of(o->spawn_rate);
    output.run_time_s = o->run_time_s ? measure_of((double)o->run_time_s) : MEASURE_UNKNOWN;
    output.profile = o->report ? o->report->background.profile : NULL;
    output.now_s = clock_wall_s();
    return output_open(&output, &h->output, err);
}

static int make_course(struct headless *h)
{
    const struct headless_options *o = h->options;
    const struct course_options options = {
        .users = o->users,
        .spawn_rate = o->spawn_rate,
        .run_time_us = o->run_time_s * 1000000,
        .classes = o->classes,
    };
    return course_init(&h->course, h->plan, &options);
}

static int make(struct headless *h, struct err *err)
{
    const struct headless_options *o = h->options;
    int rc =
        tally_init(&h->tally, h->plan, o->thresholds, o->threshold_count, o->engine.limits, err);
    if (rc == 0)
        rc = engine_new(h->plan, &o->engine, &h->engine, err);
    if (rc == 0)
        tasks_init(&h->tasks, h->plan, h->engine);
    if (rc == 0 && inputs_apply(h->engine, h->plan, o->sets, o->set_count, NULL) < 0)
        rc = -ENOMEM;
    if (rc == 0)
        rc = engine_check_inputs(h->engine, err);
    if (rc == 0 && o->host)
        rc = engine_set_host(h->engine, str_of(o->host), err);
    if (rc == 0)
        rc = engine_check_hosts(h->engine, o->classes, err); /* before anything begins */
    if (rc == 0)
        rc = scrape_open(&h->scrape, &o->metrics, err);
    if (rc == 0)
        rc = survey_open(&h->survey, o->report, err);
    if (rc == 0)
        rc = open_output(h, err);
    if (rc < 0)
        return rc;
    keys_open(&h->keys);
    rc = open_loop(h);
    if (rc == 0)
        rc = make_course(h);
    if (rc == 0)
        rc = show_host(h);
    return rc < 0 ? err_set(err, rc, "cannot start the run: %s", strerror(-rc)) : 0;
}

static int begin(struct headless *h, struct err *err)
{
    h->begin_us = clock_mono_us();
    h->begin_s = clock_wall_s();
    h->second_us = h->begin_us + SECOND_US;
    tally_begin(&h->tally, h->begin_us, h->begin_s);
    scrape_set_ready(&h->scrape, true);
    tasks_begin(&h->tasks);
    int rc = course_begin(&h->course, h->begin_us);
    if (rc == 0)
        advance(h); /* the first request is not to wait for what follows */
    survey_begin(&h->survey, true, h->begin_s);
    return rc < 0 ? err_set(err, rc, "cannot start the run: %s", strerror(-rc)) : 0;
}

/* --- the outcome ----------------------------------------------------------------------------- */

static void tell_requests(const struct engine_status *s)
{
    log_info("%llu requests: %llu succeeded, %llu failed, %llu cut at the end of their user",
             (unsigned long long)s->started, (unsigned long long)s->succeeded,
             (unsigned long long)s->failed, (unsigned long long)s->interrupted);
    if (s->arrivals_waited + s->arrivals_missed > 0)
        log_warning("%llu tasks started late, %llu not at all, for want of a free user: a larger "
                    "max_users may help",
                    (unsigned long long)s->arrivals_waited, (unsigned long long)s->arrivals_missed);
}

static void tell_folded(const struct stats *s)
{
    if (s && stats_folded_names(s) > 0)
        log_warning("more than %d different names: requests of further ones are counted as "
                    "'(other)'; names of their own for requests whose paths differ may help",
                    STATS_MAX_ENTRIES_DEFAULT);
}

static bool thresholds_met(const struct tally *t)
{
    bool met = true;
    for (size_t i = 0; i < t->threshold_count; i++) {
        const struct report_threshold *o = &t->outcomes[i];
        met &= o->met;
        if (!o->met && o->measured.known)
            log_error("threshold '%.*s' is not met: %g%s", STR_ARG(o->text), o->measured.value,
                      o->unit ? o->unit : "");
        else if (!o->met)
            log_error("threshold '%.*s' is not met: %s", STR_ARG(o->text),
                      o->unsteady ? "the run had no steady state" : "nothing was measured");
    }
    return met;
}

static int exit_code(const struct headless *h, const struct generator_verdict *generator)
{
    const struct headless_options *o = h->options;
    bool met = thresholds_met(&h->tally);
    if (generator->saturated)
        log_warning("the load generator was saturated (%s): times and rates are not to be trusted",
                    generator->reasons);
    else if (generator->too_short && o->fail_if_saturated)
        log_warning("the full load was shorter than %d s: whether the generator was saturated is "
                    "not known, continuing",
                    GENERATOR_SECONDS);
    if (generator->saturated && o->fail_if_saturated)
        return HEADLESS_EXIT_SATURATED;
    if (h->failed)
        return HEADLESS_EXIT_FAILED;
    if (!met || h->aborted)
        return HEADLESS_EXIT_THRESHOLD;
    if (h->tasks.exceptions > 0)
        return o->exit_code_on_error;
    if (stats_error_count(h->tally.samples.run) > 0 && !tally_judges_failures(&h->tally))
        return o->exit_code_on_error;
    return 0;
}

static int finish(struct headless *h)
{
    struct engine_status status;
    struct err err = {0};
    engine_status(h->engine, &status);
    status.interrupted += status.in_flight; /* the end of the process cuts it */
    status.in_flight = 0;
    struct report report = make_report(h, &status);
    survey_fill(&h->survey, &report);
    if (tally_judge(&h->tally) < 0 ||
        generator_judge(&h->tally.generator, &status, &report.generator) < 0)
        log_warning("out of memory: thresholds and generator are judged in part, continuing");
    tell_requests(&status);
    tell_folded(h->tally.samples.run);
    traces_end(&h->traces, h->engine);
    report.exit_code = exit_code(h, &report.generator);
    log_info("Shutting down (exit code %d)", report.exit_code);
    keys_close(&h->keys);
    scrape_push(&h->options->metrics, &(struct metrics_input){.plan = h->plan,
                                                              .stats = h->tally.samples.run,
                                                              .engine = &status,
                                                              .state = "stopped"});
    if (output_close(&h->output, &report, &err) < 0) {
        log_error("%s", err.text);
        report.exit_code = report.exit_code ? report.exit_code : HEADLESS_EXIT_FAILED;
    }
    return report.exit_code;
}

static void end(struct headless *h)
{
    keys_close(&h->keys);
    output_free(h->output);
    scrape_done(&h->scrape);
    survey_close(&h->survey);
    engine_free(h->engine);
    course_done(&h->course);
    tally_done(&h->tally);
    buf_done(&h->host);
    if (h->epoll_fd >= 0)
        (void)close(h->epoll_fd);
    if (h->timer_fd >= 0)
        (void)close(h->timer_fd);
    free(h);
}

int headless_run(const struct headless_options *options, const struct plan *plan,
                 int *ret_exit_code, struct err *err)
{
    struct headless *h = calloc(1, sizeof *h);
    if (!h)
        return err_set(err, -ENOMEM, "out of memory");
    h->options = options;
    h->plan = plan;
    h->epoll_fd = h->timer_fd = -1;
    buf_init(&h->host, PLAN_MAX_URL_BYTES);
    int rc = make(h, err);
    if (rc == 0) {
        tell_beginning(h);
        rc = begin(h, err);
    }
    if (rc == 0)
        rc = loop(h, err);
    if (rc == 0)
        *ret_exit_code = finish(h);
    end(h);
    return rc;
}

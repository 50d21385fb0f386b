/* A run is on from its first spawn until users are to end; then it is over, and what is still being
 * read makes the report whole. Both can be overtaken by the next run, which forgets it all. The
 * files are open from the first spawn until the report is whole. */
#include "worker/runner/reporter.h"

#include "base/clock.h"
#include "base/log.h"
#include "proto/http/http.h"
#include "worker/output/folder.h"
#include "worker/report/cicada_object.h"
#include "worker/runner/signals.h"
#include "worker/runner/survey.h"
#include "worker/runner/traces.h"

#include <poll.h>
#include <stdlib.h>

#define SECOND_US 1000000u

struct reporter {
    struct reporter_options options;
    struct survey survey;
    struct generator generator;
    struct history history;
    struct output *output; /* NULL: no files are open */
    struct traces traces;
    struct buf host;            /* of the target, as files show it */
    struct measure planned;     /* users, as the master last said */
    struct engine_status first; /* as the run began; its counters are the process's */
    struct engine_status last;  /* a second ago */
    uint64_t second_us;         /* the next one */
    double start_s;             /* of the run */
    bool may_lead;
    bool named;           /* the master's listener wants this worker to lead, */
    uint64_t named_index; /* while it has this number */
    bool leads;           /* in this run */
    bool on;
    bool over;
    bool whole_in_object;
    bool told;      /* the whole report was sent */
    bool announced; /* that there will be one to wait for */
    bool files_failed;
};

/* --- the report ------------------------------------------------------------------------------ */

static struct report make_report(struct reporter *r, enum report_phase phase)
{
    const struct output_options *o = r->options.output;
    struct engine_status now;
    engine_status(r->options.engine, &now);
    return (struct report){
        .test_name = o ? o->test_name : NULL,
        .tag = o ? o->tag : NULL,
        .host = r->host.len > 0 ? buf_c(&r->host) : NULL,
        .start_s = r->survey.leader.start_s,
        .end_s = r->survey.leader.end_s,
        .now_s = clock_wall_s(),
        .phase = phase,
        .requests = {.started = now.started - r->first.started,
                     .succeeded = now.succeeded - r->first.succeeded,
                     .failed = now.failed - r->first.failed,
                     .interrupted = now.interrupted - r->first.interrupted,
                     .interrupted_oldest_us = now.interrupted_oldest_us},
        .plan = r->options.plan,
        .stats = r->options.samples->run,
        .history = &r->history,
    };
}

/* What the generator did in this run; what ran out, ran out for the process. */
static struct engine_status since_begin(const struct reporter *r)
{
    struct engine_status s;
    engine_status(r->options.engine, &s);
    s.late_starts_1ms -= r->first.late_starts_1ms;
    s.late_starts_10ms -= r->first.late_starts_10ms;
    s.connections_failed -= r->first.connections_failed;
    s.retries -= r->first.retries;
    s.ports_exhausted -= r->first.ports_exhausted;
    s.files_exhausted -= r->first.files_exhausted;
    s.memory_exhausted -= r->first.memory_exhausted;
    return s;
}

/* --- files ----------------------------------------------------------------------------------- */

static void files_fault(struct reporter *r, const struct err *err)
{
    r->files_failed = true;
    log_error("the results: %s", err->text);
}

static void open_files(struct reporter *r)
{
    struct err err = {0};
    const struct output_options *given = r->options.output;
    if (!given || (!given->results_dir && !given->dest))
        return;
    const struct output_options options = {
        .results_dir = given->results_dir,
        .dest = given->dest,
        .test_name = given->test_name,
        .tag = given->tag,
        .traces = given->traces,
        .console = OUTPUT_CONSOLE_NONE,
        .profile = r->options.settings->background.profile,
        .now_s = clock_wall_s(),
    };
    if (output_open(&options, &r->output, &err) < 0)
        files_fault(r, &err);
    else
        log_info("results go to %s", output_folder(r->output));
}

/* Only requests that will have a row are traced. */
static void begin_traces(struct reporter *r)
{
    traces_begin(&r->traces, r->options.engine);
    engine_set_trace_rows(r->options.engine, r->output ? ENGINE_TRACE_ROWS : 0);
    if (!r->leads && r->options.output && r->options.output->traces)
        log_info("this worker does not report, so it traces no requests");
}

/* Everything that will be known of the run is. */
static void close_files(struct reporter *r)
{
    struct err err = {0};
    if (!r->output)
        return;
    struct report report = make_report(r, REPORT_DONE);
    const struct engine_status status = since_begin(r);
    report.requests.interrupted += status.in_flight; /* the end of the process cuts it */
    traces_pass(&r->traces, r->options.engine, r->output);
    traces_end(&r->traces, r->options.engine);
    survey_fill(&r->survey, &report);
    if (generator_judge(&r->generator, &status, &report.generator) < 0)
        log_warning("out of memory: the generator is judged in part, continuing");
    if (output_close(&r->output, &report, &err) < 0)
        files_fault(r, &err);
}

/* --- the run --------------------------------------------------------------------------------- */

static void tell_who_leads(const struct reporter *r, const struct machine *m)
{
    if (r->leads)
        log_info("this worker reports for the test");
    else if (r->options.settings->role == LEADER_AUTO && !m->has_index)
        log_info("the master numbers no workers: give one of them --report always for a report");
}

static void set_host(struct reporter *r, const struct machine *m)
{
    const char *masters = m->wanted.has_host ? m->wanted.host : NULL;
    struct str own = m->options.host.ptr ? m->options.host : r->options.plan->host;
    buf_clear(&r->host);
    const char *url = masters ? masters : own.ptr;
    if (url && http_url_shown(&r->host, url) < 0) /* without user and password */
        log_debug("no URL to show as the host");
}

static bool is_whole(const struct reporter *r)
{
    return r->over && !survey_pending(&r->survey);
}

static void leave_last_run(struct reporter *r)
{
    if (r->over && survey_pending(&r->survey))
        log_warning("another run begins: what was still being read for the report of the last one "
                    "is left out, continuing");
    close_files(r);
}

static bool is_leader(const struct reporter *r, const struct machine *m)
{
    bool named = r->named && r->named_index == m->index;
    return leader_reports(r->options.settings->role, m->has_index, m->index, named);
}

/* From the beginning of a run, or from when it was named on. */
static void begin_to_lead(struct reporter *r, const struct machine *m)
{
    set_host(r, m);
    open_files(r);
    survey_begin(&r->survey, false, r->start_s);
    if (r->planned.known && r->planned.value > 0)
        r->survey.leader.target = r->planned;
}

void reporter_begin(struct reporter *r, const struct machine *m)
{
    leave_last_run(r);
    r->leads = is_leader(r, m);
    r->start_s = clock_wall_s();
    r->on = true;
    r->over = r->whole_in_object = r->told = r->announced = false;
    r->second_us = clock_mono_us();
    r->generator.count = 0;
    history_clear(&r->history);
    engine_status(r->options.engine, &r->first);
    r->last = r->first;
    r->planned = leader_planned_users(m->wanted.parsed_options);
    tell_who_leads(r, m);
    if (r->leads)
        begin_to_lead(r, m);
    begin_traces(r);
}

/* The master's listener knows of no leader. What happened before now is known by the run's start
 * alone. */
static void be_named(struct reporter *r, const struct machine *m)
{
    r->named = true;
    r->named_index = m->index;
    if (!r->on || r->leads || !is_leader(r, m))
        return;
    r->leads = true;
    tell_who_leads(r, m);
    begin_to_lead(r, m);
    begin_traces(r);
}

void reporter_follow(struct reporter *r, const struct machine *m)
{
    if (!r->on || m->state == RUNNER_SPAWNING || m->state == RUNNER_RUNNING ||
        m->state == RUNNER_LEAVING)
        return;
    r->on = false;
    if (!r->leads)
        return;
    r->over = true;
    survey_end(&r->survey, clock_wall_s());
}

void reporter_poll(struct reporter *r)
{
    if (r->may_lead)
        survey_poll(&r->survey);
}

/* --- each second ----------------------------------------------------------------------------- */

static uint64_t own_target(const struct machine *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < m->options.class_count; i++)
        sum += m->wanted.targets[i];
    return sum;
}

/* All users of the test, by the best source so far; else this worker's own. */
static double users_now(const struct reporter *r, const struct engine_status *now)
{
    struct leader_users users = leader_users(&r->survey.leader);
    return users.count > 0 ? users.samples[users.count - 1].users : (double)now->running_total;
}

static void add_point(struct reporter *r, const struct engine_status *now, double wall_s)
{
    const struct engine_status *first = &r->first, *last = &r->last;
    uint64_t done = now->succeeded + now->failed, done_before = last->succeeded + last->failed;
    const struct history_point point = {
        .wall_s = wall_s,
        .user_count = (uint32_t)users_now(r, now),
        .target = r->planned.known ? (uint32_t)r->planned.value : 0,
        .requests = done - first->succeeded - first->failed,
        .failures = now->failed - first->failed,
        .rps = measure_of((double)(done - done_before)),
        .fail_per_s = measure_of((double)(now->failed - last->failed)),
        .cpu_pct = now->cpu_pct,
        .loop_lag_ms = now->loop_lag_ms,
    };
    if (history_add(&r->history, &point) < 0)
        log_debug("no memory for a point of the history");
}

static void lead_second(struct reporter *r, const struct engine_status *now)
{
    double wall_s = clock_wall_s();
    survey_add(&r->survey, USERS_SOURCE_LOCAL, wall_s, (double)now->running_total);
    if (r->planned.known)
        survey_add(&r->survey, USERS_SOURCE_PLAN, wall_s, r->planned.value);
    add_point(r, now, wall_s);
    if (!r->output)
        return;
    struct report report = make_report(r, REPORT_RUNNING);
    report.actors_history =
        background_actors_history(r->survey.background, &report.actors_history_count);
    output_tick(r->output, &report);
}

static void run_second(struct reporter *r, const struct machine *m)
{
    struct engine_status now;
    engine_status(r->options.engine, &now);
    const struct generator_second second = {
        .cpu_pct = now.cpu_pct,
        .loop_lag_ms = now.loop_lag_ms,
        .steady = users_steady((double)now.running_total, (double)own_target(m)),
    };
    if (generator_add(&r->generator, &second) < 0)
        log_debug("no memory to judge the generator by this second");
    if (r->leads)
        lead_second(r, &now);
    r->last = now;
}

void reporter_tick(struct reporter *r, const struct machine *m)
{
    uint64_t now_us = clock_mono_us();
    traces_pass(&r->traces, r->options.engine, r->output);
    if (r->on && now_us >= r->second_us) {
        r->second_us = now_us - r->second_us < SECOND_US ? r->second_us + SECOND_US : now_us;
        run_second(r, m);
    }
    if (m->state == RUNNER_READY && is_whole(r)) /* and all samples are in */
        close_files(r);
}

bool reporter_message(struct reporter *r, const struct message *message, const struct machine *m)
{
    double users;
    if (message->type == MESSAGE_SPAWNING_COMPLETE && message->spawning_complete.known && r->on) {
        uint64_t total = message->spawning_complete.user_count;
        r->planned = measure_of((double)total);
        leader_total(&r->survey.leader, total, own_target(m));
    }
    if (message->type != MESSAGE_CUSTOM)
        return false;
    if (str_eq(message->custom.type, STR(LEADER_NAMED_MESSAGE))) {
        be_named(r, m);
        return true;
    }
    if (!str_eq(message->custom.type, STR(LEADER_MESSAGE)))
        return false;
    if (r->leads && leader_message_users(message->custom.data, &users))
        survey_add(&r->survey, USERS_SOURCE_MASTER, clock_wall_s(), users);
    return true;
}

/* --- what is told ---------------------------------------------------------------------------- */

json_t *reporter_object(struct reporter *r, const struct machine *m)
{
    struct report report = make_report(r, REPORT_DONE);
    const struct engine_status status = since_begin(r);
    bool judged = generator_judge(&r->generator, &status, &report.generator) == 0;
    struct cicada_object c = {
        .cpu_pct = measure_of(status.cpu_pct),
        .loop_lag_ms = measure_of(status.loop_lag_ms),
        .generator = judged ? &report.generator : NULL,
        .requests = report.requests,
        .reporter = r->on || r->over ? r->leads : is_leader(r, m),
        .may_report = r->may_lead,
        .over = r->over && !r->told,
    };
    if (r->leads && !r->told)
        c.report_within_s = survey_longest_s(&r->survey);
    r->whole_in_object = c.over && is_whole(r);
    if (c.over) {
        survey_fill(&r->survey, &report);
        c.complete = r->whole_in_object;
        c.start_s = report.start_s;
        c.end_s = report.end_s;
        c.test_name = report.test_name;
        c.tag = report.tag;
        c.facts = report.facts;
        c.frontiers = report.frontiers;
        c.users_source = report.users_source;
        c.actors_per_user = report.actors_per_user;
        c.actors = report.actors;
        c.server_flat = report.server_flat;
        c.server_document = report.server_document;
    }
    return cicada_object_json(&c);
}

void reporter_sent(struct reporter *r)
{
    r->told |= r->whole_in_object;
    r->announced = r->leads;
}

bool reporter_pending(const struct reporter *r)
{
    return r->over && survey_pending(&r->survey);
}

bool reporter_announces(const struct reporter *r)
{
    return r->on && r->leads && !r->announced && survey_longest_s(&r->survey).known;
}

bool reporter_owes(const struct reporter *r)
{
    return is_whole(r) && !r->told;
}

/* --- the end --------------------------------------------------------------------------------- */

/* 0, or the signal that ended the waiting. */
static int wait_whole(struct reporter *r, int signal_fd)
{
    struct pollfd fds[2] = {{.fd = reporter_fd(r), .events = POLLIN},
                            {.fd = signal_fd, .events = POLLIN}};
    if (reporter_pending(r))
        log_info("waiting for the server telemetry; a signal ends the waiting");
    while (reporter_pending(r)) {
        int n = poll(fds, 2, -1);
        int signal = n > 0 && fds[1].revents ? signals_next(signal_fd) : 0;
        if (signal != 0)
            return signal;
        if (n > 0)
            reporter_poll(r);
        else if (n < 0 && errno != EINTR)
            break;
    }
    return 0;
}

int reporter_finish(struct reporter *r, int signal_fd, bool hurry)
{
    if (!r->leads || !r->over) {
        close_files(r); /* of a run that broke off */
        return 0;
    }
    survey_drop_facts(&r->survey);
    int signal = hurry ? 0 : wait_whole(r, signal_fd);
    survey_abort(&r->survey);
    close_files(r);
    return signal;
}

bool reporter_wrote_all(const struct reporter *r)
{
    return !r->files_failed;
}

/* --- making ---------------------------------------------------------------------------------- */

static int check_folder(const struct output_options *o, struct err *err)
{
    char *path = NULL;
    if (o && o->traces && !o->results_dir && !o->dest)
        return err_set(err, -EINVAL, OUTPUT_TRACES_NEED_FOLDER);
    if (!o || !o->dest)
        return 0;
    if (o->results_dir)
        return err_set(err, -EINVAL, "--results-dir and --dest name two folders: give one");
    int rc = folder_path(o->dest, o->test_name, o->tag, clock_wall_s(), &path, err);
    free(path);
    return rc;
}

int reporter_new(const struct reporter_options *options, struct reporter **ret, struct err *err)
{
    struct reporter *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(err, -ENOMEM, "out of memory");
    r->options = *options;
    r->may_lead = options->settings->role != LEADER_NEVER;
    buf_init(&r->host, MACHINE_HOST_BYTES);
    int rc = check_folder(options->output, err);
    if (rc == 0)
        rc = survey_open(&r->survey, r->may_lead ? options->settings : NULL, err);
    if (rc < 0) {
        reporter_free(r);
        return rc;
    }
    *ret = r;
    return 0;
}

void reporter_free(struct reporter *r)
{
    if (!r)
        return;
    output_free(r->output);
    survey_close(&r->survey);
    generator_done(&r->generator);
    history_done(&r->history);
    buf_done(&r->host);
    free(r);
}

int reporter_fd(const struct reporter *r)
{
    return survey_fd(&r->survey);
}

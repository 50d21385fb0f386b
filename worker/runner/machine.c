/* The events, the run from spawn to stop, the reports of samples, and the ways out.
 *
 * Time is checked on each tick, and what the engine says is looked at after every event, so there
 * is one place for each decision (progress) and no timers to keep. The registration with the
 * master is a second, smaller state beside the run's: most of its changes (a retry, a doubt, a new
 * identity) do not concern the users. */
#include "worker/runner/machine.h"

#include "worker/runner/machine_private.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_TIMEOUT_S 1e7 /* of a foreign number: 115 days */

const char *runner_state_name(enum runner_state state)
{
    static const char *const names[] = {"ready",   "spawning", "running", "stopping",
                                        "leaving", "quitting", "stopped"};
    return names[state];
}

/* --- what the other files use ---------------------------------------------------------------- */

struct machine_action *machine_add(struct machine *m, enum machine_action_kind kind)
{
    assert(m->out->count < MACHINE_MAX_ACTIONS);
    struct machine_action *a = &m->out->at[m->out->count++];
    a->kind = kind;
    a->targets = NULL;
    a->host = (struct str){0};
    a->stop_timeout_s = 0;
    a->keep_identity = a->if_any = a->no_users = false;
    a->exit_code = 0;
    a->level = LOG_DEBUG;
    a->text[0] = '\0';
    return a;
}

void machine_log(struct machine *m, enum log_level level, const char *format, ...)
{
    struct machine_action *a = machine_add(m, ACTION_LOG);
    a->level = level;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(a->text, sizeof a->text, format, args); /* a cut line is still a line */
    va_end(args);
}

/* True the first time that a text is seen; false as well when seen is full. */
static bool is_news(struct str text, size_t *seen, unsigned *count, unsigned max)
{
    size_t hash = str_hash(text);
    for (unsigned i = 0; i < *count; i++) {
        if (seen[i] == hash)
            return false;
    }
    if (*count == max)
        return false;
    seen[(*count)++] = hash;
    return true;
}

void machine_fault(struct machine *m, const char *format, ...)
{
    char text[MACHINE_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args); /* the same */
    va_end(args);
    if (!is_news(str_of(text), m->reported, &m->reported_count, MACHINE_REPORTED))
        return;
    machine_log(m, LOG_ERROR, "%s", text);
    if (machine_heard(m)) {
        struct machine_action *a = machine_add(m, ACTION_SEND_EXCEPTION);
        (void)snprintf(a->text, sizeof a->text, "%s", text); /* it fits */
    }
}

void machine_set_state(struct machine *m, enum runner_state state, const char *why)
{
    if (m->state == state)
        return;
    machine_log(m, LOG_DEBUG, "%s -> %s (%s)", runner_state_name(m->state),
                runner_state_name(state), why);
    m->state = state;
    if (state == RUNNER_READY) {
        m->report = REPORT_NONE;
        m->reported_count = 0; /* the next run's faults are told anew */
        m->complete_due = false;
    }
}

void machine_exit(struct machine *m, int exit_code)
{
    machine_set_state(m, RUNNER_STOPPED, "exit");
    machine_add(m, ACTION_EXIT)->exit_code = exit_code;
}

void machine_request(struct machine *m, enum machine_report report, uint64_t force_after_us)
{
    (void)machine_add(m, ACTION_REQUEST_STATS);
    m->engine.stats_complete = false; /* until the engine says so of this request */
    m->report = report;
    m->force_us = m->now_us + force_after_us;
}

void machine_stop_users(struct machine *m, double stop_timeout_s)
{
    machine_add(m, ACTION_STOP_USERS)->stop_timeout_s = stop_timeout_s;
}

bool machine_heard(const struct machine *m)
{
    return m->registration == REGISTRATION_ACKED && m->linked && !m->link_doubt;
}

bool machine_is_idle(const struct machine *m)
{
    return m->state == RUNNER_READY && machine_heard(m);
}

bool machine_runs(const struct machine *m)
{
    return (m->state == RUNNER_SPAWNING || m->state == RUNNER_RUNNING) && machine_heard(m);
}

bool machine_attached(const struct machine *m)
{
    switch (m->state) {
    case RUNNER_READY:
    case RUNNER_SPAWNING:
    case RUNNER_RUNNING:
    case RUNNER_STOPPING:
        return true;
    case RUNNER_LEAVING:
    case RUNNER_QUITTING:
    case RUNNER_STOPPED:
        break;
    }
    return false;
}

uint64_t machine_us(double seconds)
{
    if (!(seconds > 0))
        return 0;
    return (uint64_t)((seconds < MAX_TIMEOUT_S ? seconds : MAX_TIMEOUT_S) * 1e6);
}

/* --- reports --------------------------------------------------------------------------------- */

static bool report_is_in(const struct machine *m)
{
    return m->engine.stats_complete || m->now_us >= m->force_us;
}

/* Each three seconds in every state; while heartbeats go unanswered the samples wait, because what
 * is sent into a dead connection is gone. */
static void periodic_report(struct machine *m)
{
    if (m->report == REPORT_PERIODIC && report_is_in(m)) {
        m->report = REPORT_NONE;
        if (machine_heard(m))
            (void)machine_add(m, ACTION_SEND_STATS);
    }
    bool silent =
        m->answers && m->unanswered_us != 0 && m->now_us - m->unanswered_us >= MACHINE_DOUBT_US;
    if (m->report != REPORT_NONE || m->now_us < m->stats_us || silent || !machine_heard(m))
        return;
    m->stats_us += MACHINE_STATS_US;
    if (m->stats_us <= m->now_us)
        m->stats_us = m->now_us + MACHINE_STATS_US;
    machine_request(m, REPORT_PERIODIC, MACHINE_REPORT_FORCE_US);
}

static void send_logs(struct machine *m)
{
    if (!m->takes_logs || !machine_attached(m) || !machine_heard(m) || m->now_us < m->logs_us)
        return;
    m->logs_us = m->now_us + MACHINE_LOGS_US;
    (void)machine_add(m, ACTION_SEND_LOGS);
}

/* --- stopping and quitting ------------------------------------------------------------------- */

static bool users_are_waited_for(const struct machine *m)
{
    return m->engine.running_total > 0 && m->now_us < m->end_us + MACHINE_GRACE_US;
}

/* Let the users end; a later call never gives them more time. */
static void end_users(struct machine *m, double stop_timeout_s)
{
    uint64_t end_us = m->now_us + machine_us(stop_timeout_s);
    if (m->state == RUNNER_STOPPING && end_us > m->end_us)
        end_us = m->end_us > m->now_us ? m->end_us : m->now_us;
    m->end_us = end_us;
    machine_stop_users(m, (double)(end_us - m->now_us) / 1e6);
}

static void enter_stopping(struct machine *m)
{
    m->was_idle = m->state == RUNNER_READY;
    m->complete_due = false;
    m->run_is_over = true;
    end_users(m, m->wanted.stop_timeout_s);
    machine_set_state(m, RUNNER_STOPPING, "stop");
}

/* Everything is in: the last samples, then the word that we stopped, then as a new worker. */
static void finish_stopping(struct machine *m)
{
    (void)machine_add(m, ACTION_SEND_STATS);
    (void)machine_add(m, ACTION_SEND_CLIENT_STOPPED);
    machine_set_state(m, RUNNER_READY, "stopped");
    m->registration = REGISTRATION_NONE;
    m->register_us = m->now_us + m->options.ready_wait_us;
    m->give_up_us = 0;
    if (m->options.master_timeout_us != 0)
        m->give_up_us = m->register_us + m->options.master_timeout_us;
    m->complain_us = m->register_us + MACHINE_ACK_US;
    registration_try(m);
}

static void progress_stopping(struct machine *m)
{
    bool running = users_are_waited_for(m);
    if (m->report == REPORT_FINAL) {
        if (!report_is_in(m))
            return;
        if (running) { /* they had only just been started when the stop came */
            m->report = REPORT_NONE;
        } else if (m->registration == REGISTRATION_NONE) { /* the link broke before an ack */
            m->flush_first = m->collected = true;
            machine_set_state(m, RUNNER_READY, "stopped");
        } else if (m->linked && !m->link_doubt) {
            finish_stopping(m);
        }
    } else if (running) {
        periodic_report(m);
    } else {
        machine_request(m, REPORT_FINAL, MACHINE_REPORT_FORCE_US);
    }
}

static void enter_quitting(struct machine *m, double stop_timeout_s, const char *why)
{
    if (m->state != RUNNER_STOPPING)
        m->was_idle = m->state == RUNNER_READY;
    bool from_silence = m->state == RUNNER_LEAVING && !m->run_is_over;
    m->goodbye_is_stop = from_silence;
    m->final_us = m->now_us + MACHINE_FINAL_US;
    if (from_silence)
        m->final_us = m->leave_us - MACHINE_MISSING_US + MACHINE_LEAVE_LATEST_US;
    m->complete_due = false;
    m->last_report = false;
    end_users(m, stop_timeout_s);
    machine_set_state(m, RUNNER_QUITTING, why);
    machine_request(m, from_silence ? REPORT_NONE : REPORT_PERIODIC, MACHINE_FINAL_FORCE_US);
}

static void report_at_the_end(struct machine *m)
{
    bool last_word = m->report == REPORT_FINAL && !m->goodbye_sent;
    m->report = REPORT_NONE;
    if (!m->linked || m->registration == REGISTRATION_NONE)
        return;
    struct machine_action *a = machine_add(m, ACTION_SEND_STATS);
    a->no_users = m->leave_us != 0;
    a->if_any = !last_word;
}

static void say_goodbye(struct machine *m)
{
    m->goodbye_sent = true;
    if (m->linked && m->registration != REGISTRATION_NONE)
        (void)machine_add(m, m->goodbye_is_stop ? ACTION_SEND_CLIENT_STOPPED : ACTION_SEND_QUIT);
}

/* The master hears us for half a second after its quit, the users may need longer: so a report at
 * once, another when they are gone (and all that shall go with it is there) or at MACHINE_FINAL_US,
 * then the goodbye; what comes after that goes out at the very end, if there is still somebody. */
static void progress_quitting(struct machine *m)
{
    bool running = users_are_waited_for(m);
    if (m->report == REPORT_FINAL) {
        if (!report_is_in(m))
            return;
        report_at_the_end(m);
        if (!m->goodbye_sent)
            say_goodbye(m);
        if (m->last_report && !running) /* not yet, if users had only just been started */
            machine_exit(m, m->exit_code);
        return;
    }
    bool late = m->now_us >= m->final_us;
    bool held = m->report_pending && m->run_is_over && !m->goodbye_sent && !late;
    if ((!running && !held) || (!m->goodbye_sent && late)) {
        m->last_report = !running;
        machine_request(m, REPORT_FINAL, MACHINE_FINAL_FORCE_US);
    } else if (m->report == REPORT_PERIODIC && report_is_in(m)) {
        report_at_the_end(m);
    }
}

/* --- signals --------------------------------------------------------------------------------- */

static bool rebalances(const struct machine *m)
{
    return json_is_true(json_object_get(m->wanted.parsed_options, "enable_rebalancing"));
}

static double own_timeout_s(const struct machine *m)
{
    double own = m->options.stop_timeout_s, masters = m->wanted.stop_timeout_s;
    return m->state != RUNNER_READY && masters > own ? masters : own;
}

/* A master with --enable-rebalancing gives a missing worker's users to the others and loses none,
 * where a quit would cost half of them from the second leaver on: so first be missing, with the
 * users at work until then. */
static void enter_leaving(struct machine *m)
{
    m->leave_us = m->beat_sent_us + MACHINE_MISSING_US;
    m->report = REPORT_NONE;
    m->complete_due = false;
    machine_set_state(m, RUNNER_LEAVING, "terminated, with rebalancing");
    machine_log(m, LOG_INFO, "leaving: the master gives the users to the other workers first");
}

static void on_signal(struct machine *m, bool terminated)
{
    if (m->signalled) {
        machine_log(m, LOG_WARNING, "a second signal: exiting at once");
        machine_exit(m, terminated ? 128 + 15 : 128 + 2); /* as a shell reports SIGTERM, SIGINT */
        return;
    }
    m->signalled = true;
    bool at_work = m->state == RUNNER_SPAWNING || m->state == RUNNER_RUNNING;
    if (m->state == RUNNER_QUITTING) {
        machine_log(m, LOG_INFO, "already quitting; another signal exits at once");
    } else if (terminated && at_work && rebalances(m) && machine_heard(m)) {
        enter_leaving(m);
    } else {
        machine_log(m, LOG_INFO, "%s, quitting", terminated ? "terminated" : "interrupted");
        if (terminated && at_work)
            machine_log(m, LOG_WARNING,
                        "the master runs without --enable-rebalancing: when several workers "
                        "leave, it may lose their users, continuing");
        enter_quitting(m, own_timeout_s(m), "signal");
    }
}

/* --- messages -------------------------------------------------------------------------------- */

static void on_ack(struct machine *m, const struct message_ack *ack)
{
    if (!machine_attached(m) || m->registration != REGISTRATION_ASKED)
        return; /* a repeated one */
    m->acked_before = true;
    m->has_index = ack->has_index;
    m->index = ack->index;
    if (ack->has_index)
        machine_log(m, LOG_INFO, "the master took us as worker %llu",
                    (unsigned long long)ack->index);
    else
        machine_log(m, LOG_INFO, "the master took us as a worker");
    registration_done(m);
}

static void on_spawn(struct machine *m, const struct message_spawn *spawn)
{
    switch (m->state) {
    case RUNNER_READY:
    case RUNNER_SPAWNING:
    case RUNNER_RUNNING:
        if (m->registration == REGISTRATION_ASKED && !m->acked_before) {
            m->never_acks = true; /* a spawn without an ack: only listed workers get it */
            registration_done(m);
        }
        if (m->registration == REGISTRATION_ACKED)
            spawn_take(m, spawn);
        else if (m->acked_before)
            spawn_defer(m, spawn);
        break;
    case RUNNER_STOPPING: /* of the next run: the users of this one end first */
        spawn_defer(m, spawn);
        break;
    case RUNNER_LEAVING:
    case RUNNER_QUITTING:
    case RUNNER_STOPPED:
        break;
    }
}

static void on_stop(struct machine *m)
{
    m->deferred.any = false;
    switch (m->state) {
    case RUNNER_READY: /* as Locust's worker, which answers each of several stops */
        if (m->registration != REGISTRATION_NONE)
            enter_stopping(m);
        break;
    case RUNNER_SPAWNING:
    case RUNNER_RUNNING:
        machine_log(m, LOG_INFO, "the test stops");
        enter_stopping(m);
        break;
    case RUNNER_LEAVING:
        m->run_is_over = true;
        enter_quitting(m, m->wanted.stop_timeout_s, "stop");
        break;
    case RUNNER_STOPPING:
    case RUNNER_QUITTING:
    case RUNNER_STOPPED:
        break;
    }
}

static void on_quit(struct machine *m)
{
    if (m->state == RUNNER_QUITTING || m->state == RUNNER_STOPPED)
        return;
    machine_log(m, LOG_INFO, "the master says quit");
    m->run_is_over = true;
    enter_quitting(m, m->wanted.stop_timeout_s, "quit");
}

static void on_unknown(struct machine *m, struct str type, const char *what)
{
    if (!is_news(type, m->custom, &m->custom_count, MACHINE_CUSTOM))
        return;
    char quoted[LOG_QUOTED_BYTES];
    machine_log(m, LOG_INFO, "%s %s from the master, ignoring", what, log_quote(type, quoted));
}

static void on_message(struct machine *m, const struct message *message)
{
    switch (message->type) {
    case MESSAGE_ACK:
        on_ack(m, &message->ack);
        break;
    case MESSAGE_SPAWN:
        on_spawn(m, &message->spawn);
        break;
    case MESSAGE_STOP:
        on_stop(m);
        break;
    case MESSAGE_QUIT:
        on_quit(m);
        break;
    case MESSAGE_HEARTBEAT:
        registration_answered(m);
        break;
    case MESSAGE_RECONNECT:
        registration_reconnect(m);
        break;
    case MESSAGE_SPAWNING_COMPLETE:
        m->takes_logs = true; /* came with 2.29, as the logs message did */
        m->total = message->spawning_complete;
        if (m->options.reset_stats)
            (void)machine_add(m, ACTION_RESET_STATS);
        break;
    case MESSAGE_CUSTOM:
        on_unknown(m, message->custom.type, "custom message");
        break;
    case MESSAGE_UPDATE_USER_CLASS: /* counts come by spawn; the rest is the scenario's */
    case MESSAGE_LOCUSTFILE:
    case MESSAGE_CLIENT_READY:
    case MESSAGE_SPAWNING:
    case MESSAGE_STATS:
    case MESSAGE_CLIENT_STOPPED:
    case MESSAGE_EXCEPTION:
    case MESSAGE_LOGS:
        on_unknown(m, str_of(message_type_name(message->type)), "message");
        break;
    }
}

/* --- events ---------------------------------------------------------------------------------- */

static void on_refused(struct machine *m, struct str why)
{
    if (m->state != RUNNER_SPAWNING && m->state != RUNNER_RUNNING)
        return;
    machine_fault(m, "%.*s: no users are run", STR_ARG(why));
    memset(m->wanted.targets, 0, m->options.class_count * sizeof *m->wanted.targets);
    struct machine_action *a = machine_add(m, ACTION_SET_USERS);
    a->targets = m->wanted.targets;
    a->stop_timeout_s = m->wanted.stop_timeout_s;
    m->engine.reached = false;
}

static void on_engine_broken(struct machine *m, struct str why)
{
    if (m->exit_code != 0)
        return;
    machine_fault(m, "the engine failed: %.*s", STR_ARG(why));
    m->exit_code = 1;
    if (m->state != RUNNER_QUITTING)
        enter_quitting(m, 0, "engine failed");
}

static void on_bad_message(struct machine *m, struct str why)
{
    uint64_t skipped;
    if (!log_due(&m->bad_us, m->now_us, &m->bad_skipped, &skipped))
        return;
    machine_log(m, LOG_WARNING, "cannot read a message of the master (%.*s)%s, ignoring",
                STR_ARG(why), skipped ? ", and others before it" : "");
}

static void on_send_failed(struct machine *m, struct str why)
{
    if (!machine_attached(m) || m->registration == REGISTRATION_NONE)
        return;
    char text[MACHINE_TEXT_BYTES / 2];
    (void)snprintf(text, sizeof text, "%.*s", STR_ARG(why)); /* a cut reason is still one */
    registration_lost(m, false, text);
}

/* After every event: what has become possible, or due. */
static void progress(struct machine *m)
{
    switch (m->state) {
    case RUNNER_SPAWNING:
        if (m->complete_due && m->engine.reached && machine_heard(m)) {
            m->complete_due = false;
            (void)machine_add(m, ACTION_SEND_SPAWNING_COMPLETE);
            machine_set_state(m, RUNNER_RUNNING, "all users are there");
        }
        periodic_report(m);
        break;
    case RUNNER_READY:
        registration_collect(m);
        periodic_report(m);
        break;
    case RUNNER_RUNNING:
        periodic_report(m);
        break;
    case RUNNER_STOPPING:
        progress_stopping(m);
        break;
    case RUNNER_LEAVING:
        if (m->now_us >= m->leave_us)
            enter_quitting(m, own_timeout_s(m), "the users are with others");
        break;
    case RUNNER_QUITTING:
        progress_quitting(m);
        break;
    case RUNNER_STOPPED:
        break;
    }
    registration_heartbeat(m);
    send_logs(m);
}

static void dispatch(struct machine *m, const struct machine_event *event)
{
    switch (event->kind) {
    case EVENT_TICK:
        registration_tick(m);
        break;
    case EVENT_MESSAGE:
        on_message(m, event->message);
        break;
    case EVENT_BAD_MESSAGE:
        on_bad_message(m, event->text);
        break;
    case EVENT_ENGINE:
        m->engine = event->engine;
        break;
    case EVENT_ENGINE_BROKEN:
        on_engine_broken(m, event->text);
        break;
    case EVENT_SPAWN_REFUSED:
        on_refused(m, event->text);
        break;
    case EVENT_LINK_UP:
        registration_link_up(m);
        break;
    case EVENT_LINK_DOWN:
        registration_link_down(m);
        break;
    case EVENT_SEND_FAILED:
        on_send_failed(m, event->text);
        break;
    case EVENT_TERMINATE:
        on_signal(m, true);
        break;
    case EVENT_INTERRUPT:
        on_signal(m, false);
        break;
    }
}

void machine_handle(struct machine *m, const struct machine_event *event, uint64_t now_us,
                    struct machine_actions *ret)
{
    ret->count = 0;
    if (m->state == RUNNER_STOPPED)
        return;
    m->now_us = now_us;
    m->out = ret;
    if (registration_forgotten(m))
        registration_lost(m, false, "this process stood still");
    dispatch(m, event);
    progress(m);
    m->out = NULL;
}

/* --- making ---------------------------------------------------------------------------------- */

int machine_init(struct machine *m, const struct machine_options *options, uint64_t now_us)
{
    memset(m, 0, sizeof *m);
    m->options = *options;
    m->last_timestamp = -HUGE_VAL;
    m->opened_us = m->register_us = now_us;
    m->give_up_us = options->master_timeout_us ? now_us + options->master_timeout_us : 0;
    m->complain_us = now_us + MACHINE_COMPLAIN_US;
    m->wanted.targets = calloc(options->class_count, sizeof *m->wanted.targets);
    m->deferred.targets = calloc(options->class_count, sizeof *m->deferred.targets);
    if (!m->wanted.targets || !m->deferred.targets) {
        machine_done(m);
        return -ENOMEM;
    }
    return 0;
}

void machine_done(struct machine *m)
{
    json_decref(m->wanted.parsed_options);
    json_decref(m->deferred.parsed_options);
    free(m->wanted.targets);
    free(m->deferred.targets);
    memset(m, 0, sizeof *m);
}

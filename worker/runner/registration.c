/* Being known to the master: client_ready and its ack, heartbeats and their answers, the loss of a
 * master and the way back to it.
 *
 * client_ready is said once for each identity and connection, never repeated: a master that gets it
 * twice during a run gives us a double share. So a try that had no ack ends with a fresh identity
 * on a fresh connection, where Locust's worker would repeat it; a master that only slept gets a
 * client_stopped for the old one first. Masters before 2.10 never ack; the second silent try with a
 * standing connection takes the master for such a one and waits for its spawn message, which is as
 * good as an ack: it goes to listed workers only. */
#include "worker/runner/machine_private.h"

#include <math.h>
#include <stdio.h>

static void reopen(struct machine *m, bool keep_identity)
{
    m->linked = false;
    m->opened_us = m->now_us;
    m->reopen_us = 0;
    if (!keep_identity) {
        m->acked_before = false;
        m->never_acks = false;
        m->link_doubt = false;
        m->deferred.any = false;
        m->register_us = m->now_us;
    }
    machine_add(m, ACTION_REOPEN)->keep_identity = keep_identity;
}

/* Leave this identity behind, with a word to a master that may only sleep. */
static void part(struct machine *m, bool goodbye)
{
    m->registration = REGISTRATION_NONE;
    if (!goodbye || !m->linked) {
        reopen(m, false);
        return;
    }
    (void)machine_add(m, ACTION_SEND_CLIENT_STOPPED);
    m->reopen_us = m->now_us + MACHINE_FLUSH_US;
}

void registration_done(struct machine *m)
{
    m->registration = REGISTRATION_ACKED;
    m->link_doubt = false;
    m->last_timestamp = -HUGE_VAL; /* of another master, perhaps with another clock */
    m->tries = m->unacked = 0;
    m->give_up_us = 0;
    m->answers = false;
    m->unanswered_us = 0;
    m->beat_sent_us = m->heartbeat_us = m->now_us;
    m->stats_us = m->now_us + MACHINE_STATS_US;
    m->logs_us = m->now_us + MACHINE_LOGS_US;
    if (m->state == RUNNER_READY)
        spawn_take_deferred(m);
}

static void ask(struct machine *m)
{
    if (m->flush_first) { /* before client_ready: no run can have begun with us */
        machine_add(m, ACTION_SEND_STATS)->if_any = true;
        m->flush_first = false;
    }
    (void)machine_add(m, ACTION_SEND_CLIENT_READY);
    m->registration = REGISTRATION_ASKED;
    m->asked_us = m->now_us;
    m->heartbeat_us = m->now_us + MACHINE_HEARTBEAT_US;
    if (m->never_acks)
        registration_done(m);
}

void registration_try(struct machine *m)
{
    if (m->state == RUNNER_READY && m->registration == REGISTRATION_NONE && m->linked &&
        m->reopen_us == 0 && m->now_us >= m->register_us && (m->collected || !m->flush_first))
        ask(m);
}

/* The samples of before the loss, all of them: what came later would be counted in the next run. */
void registration_collect(struct machine *m)
{
    if (!m->flush_first || m->collected)
        return;
    if (m->report == REPORT_FINAL) {
        if (!m->engine.stats_complete && m->now_us < m->force_us)
            return;
        m->report = REPORT_NONE;
        m->collected = true;
        registration_try(m);
    } else if (m->engine.running_total == 0 || m->now_us >= m->collect_us) {
        machine_request(m, REPORT_FINAL, MACHINE_REPORT_FORCE_US);
    }
}

static void no_ack(struct machine *m)
{
    m->tries++;
    m->unacked++;
    m->asked_us = m->now_us;
    if (m->unacked < 2 || m->acked_before || !m->linked) {
        part(m, true);
        return;
    }
    if (m->unacked == 2)
        machine_log(m, LOG_WARNING,
                    "connected, but no ack: taking it for a master older than 2.10, continuing");
}

static void tell_no_master(struct machine *m, enum log_level level, const char *what_follows)
{
    struct machine_action *a = machine_add(m, ACTION_NO_MASTER);
    a->level = level;
    (void)snprintf(a->text, sizeof a->text, "%s", what_follows); /* it fits */
}

static void tick_without_ack(struct machine *m)
{
    if (m->give_up_us != 0 && m->now_us >= m->give_up_us) {
        tell_no_master(m, LOG_ERROR, "giving up");
        machine_exit(m, 1);
        return;
    }
    bool collecting = m->linked && m->flush_first && !m->collected;
    if (m->now_us >= m->complain_us && !collecting) {
        /* a worker that was there before its master is nothing to warn of */
        bool first = m->tries == 0 && m->now_us - m->opened_us < MACHINE_ACK_US;
        tell_no_master(m, first ? LOG_INFO : LOG_WARNING, "trying on");
        m->complain_us = m->now_us + MACHINE_COMPLAIN_NEXT_US;
    }
    if (m->reopen_us != 0) {
        if (m->now_us >= m->reopen_us)
            reopen(m, false);
    } else if (m->registration == REGISTRATION_ASKED) {
        if (m->now_us - m->asked_us >= MACHINE_ACK_US)
            no_ack(m);
    } else if (!m->linked && m->now_us - m->opened_us >= MACHINE_ACK_US) {
        m->tries++;
        reopen(m, false);
    }
    registration_try(m);
}

static void tick_acked(struct machine *m)
{
    if (m->answers && m->unanswered_us != 0 && m->now_us - m->unanswered_us >= MACHINE_SILENCE_US)
        registration_lost(m, m->linked && !m->link_doubt, "it does not answer heartbeats");
    else if (!m->linked && m->now_us - m->opened_us >= MACHINE_SILENCE_US)
        registration_lost(m, false, "no connection");
}

void registration_tick(struct machine *m)
{
    if (!machine_attached(m))
        return;
    if (m->registration == REGISTRATION_ACKED)
        tick_acked(m);
    else if (m->state == RUNNER_READY)
        tick_without_ack(m);
}

static const char *beat_state(const struct machine *m)
{
    switch (m->state) {
    case RUNNER_SPAWNING:
        return "spawning";
    case RUNNER_RUNNING:
        return "running";
    case RUNNER_STOPPING:
    case RUNNER_QUITTING:
        return m->was_idle ? "ready" : "running";
    case RUNNER_READY:
    case RUNNER_LEAVING:
    case RUNNER_STOPPED:
        break;
    }
    return "ready";
}

void registration_heartbeat(struct machine *m)
{
    bool due = machine_attached(m) || (m->state == RUNNER_QUITTING && !m->goodbye_sent);
    if (!due || m->leave_us != 0 || m->registration == REGISTRATION_NONE ||
        m->now_us < m->heartbeat_us)
        return;
    m->heartbeat_us += MACHINE_HEARTBEAT_US;
    if (m->heartbeat_us <= m->now_us)
        m->heartbeat_us = m->now_us + MACHINE_HEARTBEAT_US;
    if (m->linked) {
        struct machine_action *a = machine_add(m, ACTION_SEND_HEARTBEAT);
        (void)snprintf(a->text, sizeof a->text, "%s", beat_state(m)); /* it fits */
        m->beat_sent_us = m->now_us;
    }
    if (m->unanswered_us == 0)
        m->unanswered_us = m->now_us;
}

void registration_answered(struct machine *m)
{
    m->answers = true;
    m->unanswered_us = 0;
    if (m->linked)
        m->link_doubt = false;
}

void registration_link_up(struct machine *m)
{
    m->linked = true;
    if (m->registration == REGISTRATION_ACKED)
        m->heartbeat_us = m->now_us; /* its answer tells that the master still knows us */
    registration_try(m);
}

void registration_link_down(struct machine *m)
{
    m->linked = false;
    m->opened_us = m->now_us;
    if (!machine_attached(m))
        return;
    switch (m->registration) {
    case REGISTRATION_NONE:
        break;
    case REGISTRATION_ASKED: /* perhaps heard: not to be said again under this name */
        m->registration = REGISTRATION_NONE;
        m->reopen_us = m->now_us + MACHINE_HEARTBEAT_US;
        break;
    case REGISTRATION_ACKED:
        if (m->answers) {
            m->link_doubt = true;
            machine_log(m, LOG_INFO, "lost the connection to the master, connecting again");
        } else { /* no answers would ever tell whether it is the same master */
            registration_lost(m, false, "the connection was lost");
        }
        break;
    }
}

void registration_reconnect(struct machine *m)
{
    if (!machine_attached(m) || m->registration != REGISTRATION_ACKED || !m->linked)
        return;
    if (m->reconnect_us != 0 && m->now_us - m->reconnect_us < MACHINE_HEARTBEAT_US)
        return; /* one message that the master cannot read must not become a storm */
    m->reconnect_us = m->now_us;
    machine_log(m, LOG_WARNING, "the master asks for a new connection, continuing");
    m->link_doubt = m->answers;
    reopen(m, true);
}

bool registration_forgotten(const struct machine *m)
{
    return machine_attached(m) && m->registration == REGISTRATION_ACKED && m->linked &&
           m->now_us - m->beat_sent_us >= MACHINE_FORGOTTEN_US;
}

void registration_lost(struct machine *m, bool goodbye, const char *why)
{
    /* a master that was started again may have another scenario, which nothing that it says tells
     */
    machine_log(m, LOG_WARNING, "lost the master (%s): %sregistering again%s", why,
                m->state == RUNNER_READY ? "" : "the load stops, ",
                m->options.fetched
                    ? ", with the scenario that came from it: if that changes, start "
                      "this worker anew"
                    : "");
    machine_stop_users(m, m->wanted.stop_timeout_s);
    if (m->state != RUNNER_READY)
        machine_set_state(m, RUNNER_READY, why);
    m->answers = false;
    m->takes_logs = false;
    m->complete_due = false;
    m->flush_first = true;
    m->collected = false;
    m->collect_us = m->now_us + MACHINE_COLLECT_US;
    m->report = REPORT_NONE;
    m->tries = m->unacked = 0;
    m->give_up_us = m->options.master_timeout_us ? m->now_us + m->options.master_timeout_us : 0;
    m->complain_us = m->now_us + MACHINE_ACK_US;
    part(m, goodbye);
}

/* A run is on from its first spawn until users are to end; then it is over, and what is still being
 * read makes the report whole. Both can be overtaken by the next run, which forgets it all. */
#include "worker/runner/reporter.h"

#include "base/clock.h"
#include "base/log.h"
#include "worker/report/cicada_object.h"
#include "worker/report/generator.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define SECOND_US 1000000u

struct reporter {
    const struct report_settings *settings;
    struct background *background; /* NULL: this worker never leads */
    struct leader leader;
    struct generator generator;
    struct measure planned; /* users, as the master last said */
    bool leads;             /* in this run */
    bool on;
    bool over;
    bool harvested; /* asked for */
    bool whole_in_object;
    bool told; /* the whole report was sent */
    uint64_t second_us;
    bool no_memory; /* said so in this run */
};

/* --- the run --------------------------------------------------------------------------------- */

static void tell_who_leads(const struct reporter *r, const struct machine *m)
{
    if (r->leads)
        log_info("this worker reports for the test");
    else if (r->settings->role == LEADER_AUTO && !m->has_index)
        log_info("the master numbers no workers: give one of them --report always for a report");
}

void reporter_begin(struct reporter *r, const struct machine *m)
{
    if (r->leads && background_busy(r->background))
        log_warning("another run begins: what was still being read for the report of the last one "
                    "is left out, continuing");
    r->leads = r->background && leader_reports(r->settings->role, m->has_index, m->index);
    r->on = true;
    r->over = r->harvested = r->whole_in_object = r->told = r->no_memory = false;
    r->second_us = clock_mono_us();
    r->generator.count = 0;
    r->planned = leader_planned_users(m->wanted.parsed_options);
    tell_who_leads(r, m);
    if (!r->leads)
        return;
    leader_begin(&r->leader, false, clock_wall_s());
    if (r->planned.known && r->planned.value > 0)
        r->leader.target = r->planned;
    background_begin(r->background);
}

/* What can be begun, is. */
static void go_on(struct reporter *r)
{
    if (!r->leads || !r->over || r->harvested || background_facts_pending(r->background))
        return;
    struct leader_users users = leader_users(&r->leader);
    const struct window run = {r->leader.start_s, r->leader.end_s};
    r->harvested = true;
    background_harvest(r->background, run, users.samples, users.count);
}

static bool is_whole(const struct reporter *r)
{
    return r->over && r->harvested && !background_busy(r->background);
}

void reporter_follow(struct reporter *r, const struct machine *m)
{
    if (!r->on || m->state == RUNNER_SPAWNING || m->state == RUNNER_RUNNING ||
        m->state == RUNNER_LEAVING)
        return;
    r->on = false;
    if (!r->leads)
        return;
    reporter_poll(r); /* the last samples */
    leader_end(&r->leader, clock_wall_s());
    background_end(r->background);
    r->over = true;
    go_on(r);
}

/* --- samples --------------------------------------------------------------------------------- */

static void add_users(struct reporter *r, enum users_source source, double wall_s, double users)
{
    if (leader_add(&r->leader, source, wall_s, users) == 0 || r->no_memory)
        return;
    r->no_memory = true;
    log_warning("no memory for a sample of the user count, continuing");
}

void reporter_poll(struct reporter *r)
{
    enum users_source source;
    struct users_sample sample;
    if (!r->background)
        return;
    background_poll(r->background);
    while (background_next_users(r->background, &source, &sample))
        add_users(r, source, sample.wall_s, sample.users);
    go_on(r);
}

static uint64_t own_target(const struct machine *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < m->options.class_count; i++)
        sum += m->wanted.targets[i];
    return sum;
}

void reporter_tick(struct reporter *r, const struct machine *m, struct engine *engine)
{
    uint64_t now_us = clock_mono_us();
    if (!r->on || now_us < r->second_us)
        return;
    r->second_us = now_us - r->second_us < SECOND_US ? r->second_us + SECOND_US : now_us;
    struct engine_status status;
    engine_status(engine, &status);
    const struct generator_second second = {
        .cpu_pct = status.cpu_pct,
        .loop_lag_ms = status.loop_lag_ms,
        .steady = users_steady((double)status.running_total, (double)own_target(m)),
    };
    if (generator_add(&r->generator, &second) < 0)
        log_debug("no memory to judge the generator by this second");
    if (!r->leads)
        return;
    double wall_s = clock_wall_s();
    add_users(r, USERS_SOURCE_LOCAL, wall_s, (double)status.running_total);
    if (r->planned.known)
        add_users(r, USERS_SOURCE_PLAN, wall_s, r->planned.value);
}

bool reporter_message(struct reporter *r, const struct message *message, const struct machine *m)
{
    double users;
    if (message->type == MESSAGE_SPAWNING_COMPLETE && message->spawning_complete.known && r->on) {
        uint64_t total = message->spawning_complete.user_count;
        r->planned = measure_of((double)total);
        leader_total(&r->leader, total, own_target(m));
    }
    if (message->type != MESSAGE_CUSTOM || !str_eq(message->custom.type, STR(LEADER_MESSAGE)))
        return false;
    if (r->leads && leader_message_users(message->custom.data, &users))
        add_users(r, USERS_SOURCE_MASTER, clock_wall_s(), users);
    return true;
}

/* --- what is told ---------------------------------------------------------------------------- */

static int run_frontiers(struct reporter *r, const struct stats *run, struct frontiers *ret)
{
    uint64_t requests = 0, failures = 0;
    for (uint32_t i = 0; i < stats_entry_count(run); i++) {
        requests += stats_entry_at(run, i)->num_requests;
        failures += stats_entry_at(run, i)->num_failures;
    }
    return leader_frontiers(&r->leader, background_facts(r->background),
                            r->settings->actors_per_user, requests, failures, ret);
}

json_t *reporter_object(struct reporter *r, struct engine *engine, const struct stats *run)
{
    struct engine_status status;
    struct generator_verdict verdict = {0};
    struct frontiers frontiers;
    engine_status(engine, &status);
    bool judged = generator_judge(&r->generator, &status, &verdict) == 0;
    struct cicada_object c = {
        .cpu_pct = measure_of(status.cpu_pct),
        .loop_lag_ms = measure_of(status.loop_lag_ms),
        .saturated = judged && verdict.saturated,
        .reporter = r->leads,
        .over = r->over && !r->told,
    };
    r->whole_in_object = c.over && is_whole(r);
    if (c.over) {
        c.complete = r->whole_in_object;
        c.start_s = r->leader.start_s;
        c.end_s = r->leader.end_s;
        c.facts = background_facts(r->background);
        c.frontiers = run_frontiers(r, run, &frontiers) == 0 ? &frontiers : NULL;
        c.users_source = leader_users(&r->leader).source;
        c.actors_per_user = r->settings->actors_per_user;
        c.actors = background_actors(r->background);
        c.server_flat = background_server_flat(r->background);
    }
    return cicada_object_json(&c);
}

void reporter_sent(struct reporter *r)
{
    r->told |= r->whole_in_object;
}

bool reporter_pending(const struct reporter *r)
{
    return r->over && !is_whole(r);
}

bool reporter_owes(const struct reporter *r)
{
    return is_whole(r) && !r->told;
}

/* --- the end --------------------------------------------------------------------------------- */

int reporter_finish(struct reporter *r, int signal_fd)
{
    struct signalfd_siginfo info;
    if (!reporter_pending(r))
        return 0;
    struct pollfd fds[2] = {{.fd = reporter_fd(r), .events = POLLIN},
                            {.fd = signal_fd, .events = POLLIN}};
    if (background_facts_pending(r->background)) { /* seconds after they were asked for */
        log_warning("cluster facts: not there when the run was over, continuing");
        background_drop_facts(r->background);
        go_on(r);
    }
    if (reporter_pending(r))
        log_info("waiting for the server telemetry; a signal ends the waiting");
    while (reporter_pending(r)) {
        int n = poll(fds, 2, -1);
        if (n > 0 && fds[1].revents && read(signal_fd, &info, sizeof info) == sizeof info) {
            log_warning("a signal: the report goes without what was not there yet, continuing");
            background_abort(r->background);
            return (int)info.ssi_signo;
        }
        if (n > 0)
            reporter_poll(r);
        else if (n < 0 && errno != EINTR)
            break;
    }
    return 0;
}

/* --- making ---------------------------------------------------------------------------------- */

int reporter_new(const struct report_settings *settings, struct reporter **ret, struct err *err)
{
    struct reporter *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(err, -ENOMEM, "out of memory");
    r->settings = settings;
    if (settings->role != LEADER_NEVER) {
        int rc = background_new(&settings->background, &r->background, err);
        if (rc < 0) {
            free(r);
            return rc;
        }
    }
    *ret = r;
    return 0;
}

void reporter_free(struct reporter *r)
{
    if (!r)
        return;
    background_free(r->background);
    leader_done(&r->leader);
    generator_done(&r->generator);
    free(r);
}

int reporter_fd(const struct reporter *r)
{
    return r->background ? background_fd(r->background) : -1;
}

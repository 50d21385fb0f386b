/* What a spawn message wants of this worker: absolute counts by the master's class names, turned
 * into targets by the plan's class index. Names decide; the one exception is a single class on each
 * side, which can only mean each other. */
#include "worker/runner/machine_private.h"

#include <stdio.h>

#define NAMES_TOLD 4 /* unknown classes that are named in one line */

struct str machine_class_name(const struct machine *m, size_t class_index)
{
    if (m->has_mapped_name)
        return str_of(m->mapped_name);
    return m->options.class_names[class_index];
}

static size_t find_class(const struct machine *m, struct str name)
{
    size_t i = 0;
    while (i < m->options.class_count && !str_eq(m->options.class_names[i], name))
        i++;
    return i;
}

static bool mapped_already(struct machine *m, struct str name)
{
    return m->has_mapped_name && str_eq(str_of(m->mapped_name), name);
}

/* The master's only class under another name than ours. */
static void map_name(struct machine *m, struct str name)
{
    if (mapped_already(m, name))
        return;
    (void)snprintf(m->mapped_name, sizeof m->mapped_name, "%.*s", STR_ARG(name)); /* it fits */
    m->has_mapped_name = true;
    char theirs[LOG_QUOTED_BYTES], ours[LOG_QUOTED_BYTES];
    machine_log(m, LOG_WARNING,
                "the master's only user class is %s, the scenario's is %s: taking one for the "
                "other, continuing",
                log_quote(name, theirs), log_quote(m->options.class_names[0], ours));
}

static bool may_map(const struct machine *m, const struct message_spawn *spawn)
{
    if (spawn->class_count != 1 || m->options.class_count != 1)
        return false;
    struct str name = spawn->classes[0].name;
    return find_class(m, name) != 0 && name.len > 0 && name.len < MACHINE_NAME_BYTES &&
           !memchr(name.ptr, '\0', name.len);
}

static void tell_unknown(struct machine *m, const struct message_spawn *spawn)
{
    char names[MACHINE_TEXT_BYTES / 2] = "";
    size_t used = 0, unknown = 0;
    for (size_t i = 0; i < spawn->class_count; i++) {
        const struct class_count *c = &spawn->classes[i];
        if (c->count == 0 || find_class(m, c->name) < m->options.class_count)
            continue;
        char quoted[LOG_QUOTED_BYTES];
        size_t room = sizeof names - used;
        if (unknown < NAMES_TOLD) {
            int n = snprintf(names + used, room, "%s%s", unknown ? ", " : "",
                             log_quote(c->name, quoted));
            used += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
        }
        unknown++;
    }
    if (unknown > 0)
        machine_fault(m, "the scenario has no user class %s%s: its users are not run", names,
                      unknown > NAMES_TOLD ? ", …" : "");
}

static void set_targets(struct machine *m, uint32_t *targets, const struct message_spawn *spawn)
{
    memset(targets, 0, m->options.class_count * sizeof *targets);
    if (may_map(m, spawn)) {
        map_name(m, spawn->classes[0].name);
        targets[0] = spawn->classes[0].count;
        return;
    }
    m->has_mapped_name = false;
    for (size_t i = 0; i < spawn->class_count; i++) {
        size_t index = find_class(m, spawn->classes[i].name);
        if (index < m->options.class_count)
            targets[index] = spawn->classes[i].count;
    }
    tell_unknown(m, spawn);
}

/* Fill w from the message; tell what is unknown in it. */
static void want(struct machine *m, struct machine_wanted *w, const struct message_spawn *spawn)
{
    w->any = true;
    w->timestamp = spawn->timestamp;
    w->stop_timeout_s = spawn->stop_timeout_s;
    json_t *options = json_incref(spawn->parsed_options);
    json_decref(w->parsed_options);
    w->parsed_options = options;
    set_targets(m, w->targets, spawn);
    w->has_host = spawn->host.ptr && spawn->host.len > 0;
    if (w->has_host && spawn->host.len >= sizeof w->host) {
        machine_fault(m, "the master's host is longer than %d bytes: no users are run",
                      MACHINE_HOST_BYTES - 1);
        memset(w->targets, 0, m->options.class_count * sizeof *w->targets);
        w->has_host = false;
    }
    if (w->has_host) {
        memcpy(w->host, spawn->host.ptr, spawn->host.len);
        w->host[spawn->host.len] = '\0';
    }
}

static void set_users(struct machine *m)
{
    struct machine_action *a = machine_add(m, ACTION_SET_USERS);
    a->targets = m->wanted.targets;
    a->host = m->wanted.has_host ? str_of(m->wanted.host) : m->options.host;
    a->stop_timeout_s = m->wanted.stop_timeout_s;
    m->engine.reached = false; /* until the engine says so of this target */
}

/* Go where m->wanted says. */
static void start(struct machine *m)
{
    m->last_timestamp = m->wanted.timestamp;
    if (m->state == RUNNER_READY) {
        m->total.known = false;
        m->run_is_over = false;
        m->report = REPORT_NONE;
        (void)machine_add(m, ACTION_BEGIN_RUN);
        machine_log(m, LOG_INFO, "the test starts");
    }
    machine_set_state(m, RUNNER_SPAWNING, "spawn");
    m->complete_due = true;
    set_users(m);
}

void spawn_take(struct machine *m, const struct message_spawn *spawn)
{
    (void)machine_add(m, ACTION_SEND_SPAWNING); /* also for an old one, as Locust's worker */
    if (!(spawn->timestamp > m->last_timestamp)) {
        machine_log(m, LOG_INFO, "discarded a spawn message that is not newer than the last one");
        return;
    }
    want(m, &m->wanted, spawn);
    start(m);
}

void spawn_defer(struct machine *m, const struct message_spawn *spawn)
{
    if (!m->deferred.any || spawn->timestamp > m->deferred.timestamp)
        want(m, &m->deferred, spawn);
}

void spawn_take_deferred(struct machine *m)
{
    if (!m->deferred.any)
        return;
    struct machine_wanted old = m->wanted;
    m->wanted = m->deferred;
    m->deferred = old;
    m->deferred.any = false;
    (void)machine_add(m, ACTION_SEND_SPAWNING);
    start(m);
}

/* Between the files of the machine only: machine.c (events, users, reports, the ways out),
 * registration.c (link, ack, loss), spawn.c (what a spawn message wants). */
#ifndef CICADA_WORKER_RUNNER_MACHINE_PRIVATE_H
#define CICADA_WORKER_RUNNER_MACHINE_PRIVATE_H

#include "worker/runner/machine.h"

/* Append an action of this event. */
struct machine_action *machine_add(struct machine *m, enum machine_action_kind kind);
void machine_log(struct machine *m, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A fault of this run: one error line and one exception for the master, the first time. */
void machine_fault(struct machine *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void machine_set_state(struct machine *m, enum runner_state state, const char *why);
void machine_exit(struct machine *m, int exit_code);
/* Ask the shards for their samples. */
void machine_request(struct machine *m, enum machine_report report, uint64_t force_after_us);
void machine_stop_users(struct machine *m, double stop_timeout_s);
/* The master lists us and hears us: what it must know may be said. */
bool machine_heard(const struct machine *m);
/* At work for a master: ready, spawning, running or stopping. */
bool machine_attached(const struct machine *m);

/* spawn.c */
/* Answer a spawn message and go where it says, unless it is old. */
void spawn_take(struct machine *m, const struct message_spawn *spawn);
/* Keep it (the newest one) until the master has acked us again. */
void spawn_defer(struct machine *m, const struct message_spawn *spawn);
void spawn_take_deferred(struct machine *m);

/* registration.c */
void registration_tick(struct machine *m);
void registration_heartbeat(struct machine *m);
/* Say client_ready as soon as the link stands and register_us has come. */
void registration_try(struct machine *m);
/* After a loss: wait for the users to end and for their samples. */
void registration_collect(struct machine *m);
/* The master lists us now. */
void registration_done(struct machine *m);
void registration_link_up(struct machine *m);
void registration_link_down(struct machine *m);
void registration_answered(struct machine *m);
void registration_reconnect(struct machine *m);
/* Stop the load, close the link and register as somebody new. goodbye: tell the old registration
 * first, for a master that only sleeps. */
void registration_lost(struct machine *m, bool goodbye, const char *why);
/* True when the master must have forgotten us while this process stood still. */
bool registration_forgotten(const struct machine *m);

#endif

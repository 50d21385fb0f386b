/* The runner's side of tasks in C: the hooks of the test, messages to and from the master, and what
 * is said of tasks that misbehave. Of a plan without such tasks nothing happens. The runner's
 * thread only. */
#ifndef CICADA_WORKER_RUNNER_TASKS_H
#define CICADA_WORKER_RUNNER_TASKS_H

#include "base/str.h"
#include "worker/engine/engine.h"
#include "worker/engine/run.h"
#include "worker/scenario/plan.h"

struct tasks {
    const struct cicada_test *test; /* NULL: a scenario */
    struct engine *engine;
    struct cicada_run *run;
    bool running;        /* between test_start and test_stop */
    uint64_t exceptions; /* since tasks_init */
    uint64_t exception_us, exceptions_skipped;
};

/* Both outlive it. */
void tasks_init(struct tasks *t, const struct plan *plan, struct engine *engine);

/* A run begins: no user has started yet. One that was going on has ended. */
void tasks_begin(struct tasks *t);
/* It has ended, with its users; nothing when none was going on. */
void tasks_end(struct tasks *t);

/* A message of an unknown type. False: nobody asked for it. data NULL: none. */
bool tasks_message(struct tasks *t, struct str type, const json_t *data);

/* What tasks want to be sent next; exceptions are logged here. NULL: nothing. run_outgoing_free. */
struct run_outgoing *tasks_next(struct tasks *t);

/* The same where there is nobody to send it to. */
void tasks_hear(struct tasks *t);

/* Name tasks that do not come to an end. Now and then. */
void tasks_watch(struct tasks *t, uint64_t now_us);

#endif

/* The steps of a scenario's task, done for a user up to the next one that waits. The shard's thread
 * only. */
#ifndef CICADA_WORKER_ENGINE_INTERPRETER_H
#define CICADA_WORKER_ENGINE_INTERPRETER_H

#include "worker/engine/user.h"

#define INTERPRETER_STEPS_A_TURN 1000 /* then other users have their turn */

enum interpreter_end {
    INTERPRETER_WAITS,  /* a request is under way, or the user's timer is set */
    INTERPRETER_DONE,   /* the task is over */
    INTERPRETER_LEAVES, /* the user is to end: a step says so, or a feed is at its end */
};

/* From u->step on. */
enum interpreter_end interpreter_run(struct user *u, uint64_t now_us);

/* What a step's failure, or a step, stops. */
enum interpreter_end interpreter_stop(struct user *u, enum plan_stop what);

#endif

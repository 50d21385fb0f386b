/* The samples of this worker on the runner's side, in two sets: `unsent` goes to the master and is
 * emptied only when a frame with it was taken by the link, `run` is the whole run's for our own
 * files. Both get every sample exactly once, also when memory runs out in between. The runner's
 * thread. */
#ifndef CICADA_WORKER_RUNNER_SAMPLES_H
#define CICADA_WORKER_RUNNER_SAMPLES_H

#include "worker/engine/engine.h"
#include "worker/stats/stats.h"

struct samples {
    struct stats *unsent;
    struct stats *run;
    struct stats *fresh; /* from the engine, not yet in both of the above */
    bool in_unsent;      /* fresh was added there already */
    bool dropping;       /* what the engine still brings belongs to before a reset */
};

/* 0, -ENOMEM (s is empty). */
MUST_USE int samples_init(struct samples *s, struct stats_limits limits, double wall_s);
void samples_done(struct samples *s);

/* Take over what the engine has. 0; -ENOMEM: call again, nothing is lost or doubled. */
MUST_USE int samples_take(struct samples *s, struct engine *engine, double wall_s);

/* Forget everything so far: another run begins. */
void samples_begin(struct samples *s, double wall_s);
/* The same, and what comes until samples_take finds the engine's answer complete. */
void samples_reset(struct samples *s, double wall_s);
/* The unsent ones are sent. */
void samples_sent(struct samples *s, double wall_s);

#endif

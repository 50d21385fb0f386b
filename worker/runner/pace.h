/* How long users of a plan wait of themselves, whatever the target does: it tells how long a
 * measurement must be to see each of them at work. Pure. */
#ifndef CICADA_WORKER_RUNNER_PACE_H
#define CICADA_WORKER_RUNNER_PACE_H

#include "worker/scenario/plan.h"

/* Seconds from one task to the next on average, wait time and pauses, of the class that waits
 * longest; wanted tells by class who counts (NULL: all). 0: nobody waits. Pauses in loops count
 * once, those that depend on a variable not at all; what tasks in C do is not known. */
double pace_longest_s(const struct plan *plan, const bool *wanted);

#endif

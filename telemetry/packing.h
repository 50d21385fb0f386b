/* How full a pool of workers was: busy over all workers at each sample. Pure.
 *
 * Replicas of the exporting process each tell the whole pool, and a collector may go on telling for
 * one that is gone, so they are not added up: at each sample the process whose series runs latest
 * counts; of two that run equally late, the one that began later, then the greater labels. */
#ifndef CICADA_TELEMETRY_PACKING_H
#define CICADA_TELEMETRY_PACKING_H

#include "base/measure.h"
#include "telemetry/answer.h"
#include "telemetry/distribution.h"
#include "telemetry/window.h"

#define PACKING_PROCESSES_MAX 1000 /* replicas are few; more is a wrong list of labels */

struct packing_point {
    double wall_s, busy, total;
    struct measure ratio; /* 4 decimals; unknown when there were no workers */
};

struct packing {
    struct distribution summary; /* of the known ratios within the steady window */
    struct packing_point *points;
    size_t count;
};

/* From a range answer with one series for each process and state.
 *   process  labels that tell a process from another; those a series lacks are empty
 *   state    label of the state; busy: the states that count as busy
 * ret is written in any case; packing_done it. 0, -ERANGE (too many processes), -ENOMEM. */
MUST_USE int packing_of(const struct query_answer *a, const json_t *process, const char *state,
                        const json_t *busy, struct window steady, struct packing *ret);
void packing_done(struct packing *p);

#endif

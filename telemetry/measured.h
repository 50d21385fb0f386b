/* From answers to the numbers of one measurement. Pure. What cannot be had is unknown. */
#ifndef CICADA_TELEMETRY_MEASURED_H
#define CICADA_TELEMETRY_MEASURED_H

#include "telemetry/notes.h"
#include "telemetry/packing.h"
#include "telemetry/plan.h"

/* Zeroed: all unknown, which is what a measurement is that was not asked. */
struct measured {
    struct distribution distribution;         /* range_distribution, state_packing */
    struct measure series_count;              /* range_distribution; unknown rather than 0 */
    struct measure values[PROFILE_ITEMS_MAX]; /* histogram: by item; the others: [0] */
    struct packing packing;                   /* state_packing */
};

/* outcomes are those of the whole plan; steady is the window before any shift by the lag. A failed
 * query leaves unknown what needs it and is not noted here; an answer that cannot be used is.
 * ret is written in any case; measured_done it. 0, -ENOMEM. */
MUST_USE int measured_of(const struct profile_measurement *m, const struct query_plan_entry *entry,
                         const struct query_outcome *outcomes, struct window steady, double lag_s,
                         struct notes *notes, struct measured *ret);
void measured_done(struct measured *m);

#endif

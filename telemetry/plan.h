/* From a profile and a window to the queries that answer it. Pure. Equal queries are asked once. */
#ifndef CICADA_TELEMETRY_PLAN_H
#define CICADA_TELEMETRY_PLAN_H

#include "telemetry/profile.h"
#include "telemetry/query.h"

#define PLAN_PARTS_MAX (PROFILE_ITEMS_MAX + 2) /* an item each, and the two growths of a mean */

/* The queries of one measurement, by their places in the plan: of a histogram the items in the
 * order of its name (a mean's place is unused) and then growth of sum and count; of a ratio both
 * growths; of all others one. */
struct query_plan_entry {
    size_t parts[PLAN_PARTS_MAX];
    size_t count;
};
#define PLAN_UNUSED SIZE_MAX

struct query_plan {
    struct query *queries;
    size_t count;
    struct query_plan_entry *entries; /* as many as the profile has measurements */
    size_t entry_count;
};

/* ret is written in any case; query_plan_done it. 0; -ERANGE with the measurement whose query is
 * too long; -ENOMEM. */
MUST_USE int query_plan_make(const struct profile *profile, struct window run, struct window steady,
                             double lag_s, struct query_plan *ret, struct err *err);
void query_plan_done(struct query_plan *p);

/* The window a measurement is read over: half the lag later when it is exported late. */
struct window plan_shift(const struct profile_measurement *m, struct window w, double lag_s);

/* The name of the first measurement that asked a query. */
const char *plan_asker(const struct query_plan *p, const struct profile *profile, size_t query);

#endif

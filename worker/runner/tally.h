/* What a headless run has measured so far: the samples of the whole run, a point a second, the
 * generator's own figures and the thresholds. The runner's thread. */
#ifndef CICADA_WORKER_RUNNER_TALLY_H
#define CICADA_WORKER_RUNNER_TALLY_H

#include "worker/report/generator.h"
#include "worker/report/history.h"
#include "worker/report/report.h"
#include "worker/runner/samples.h"
#include "worker/scenario/threshold.h"

struct tally {
    /* to be read by anybody */
    struct samples samples; /* .run is the whole run's; .unsent the present second's */
    struct history history;
    struct generator generator;
    struct report_threshold *outcomes; /* as tally_judge left them */
    size_t threshold_count;

    struct plan_threshold *thresholds;
    struct stats *steady; /* of the steady state; NULL: no threshold asks for it */
    bool any_abort;
    bool steady_began;
    uint64_t since_us; /* the present second began */
    uint64_t requests;
    uint64_t failures;
};

/* The thresholds are the plan's and those of more texts (of --threshold). 0; -EINVAL: one of them
 * cannot be read, err says which; -ENOMEM. */
MUST_USE int tally_init(struct tally *t, const struct plan *plan, const struct str *texts,
                        size_t text_count, struct stats_limits limits, struct err *err);
void tally_done(struct tally *t);

/* The run begins. */
void tally_begin(struct tally *t, uint64_t now_us, double wall_s);
/* Forget the samples, as --reset-stats does. */
void tally_reset(struct tally *t, uint64_t now_us, double wall_s);

/* Take in what the engine has. 0; -ENOMEM: call again, nothing is lost. */
MUST_USE int tally_take(struct tally *t, struct engine *e, double wall_s);

/* A second is over and its samples are in. */
struct tally_moment {
    uint64_t now_us;
    double wall_s;
    uint32_t target;
    bool steady;
    const struct engine_status *engine;
};
/* 0; -ENOMEM: the point is missing, its samples count for the next one. */
MUST_USE int tally_point(struct tally *t, const struct tally_moment *m);

/* Look at the thresholds. 0, -ENOMEM. */
MUST_USE int tally_judge(struct tally *t);

/* Does the run, so old, break a threshold for which it is to end? outcomes are new. NULL: no. */
const struct report_threshold *tally_broken(struct tally *t, uint64_t age_us);

/* Is there a threshold on the failures of all entries, which says how many are too many? */
bool tally_judges_failures(const struct tally *t);

#endif

/* Finds what this worker sustains against a real target: the shell around capacity.h. It owns the
 * engine; it makes the users, lets them settle, measures for some seconds, and asks for the next
 * number. One thread. */
#ifndef CICADA_WORKER_RUNNER_CALIBRATE_H
#define CICADA_WORKER_RUNNER_CALIBRATE_H

#include "base/err.h"
#include "worker/engine/engine.h"
#include "worker/runner/capacity.h"
#include "worker/scenario/plan.h"

#define CALIBRATE_STEP_S        3 /* a second to settle, two to measure */
#define CALIBRATE_SHORTEST_S    2
#define CALIBRATE_STEPS         20 /* of the whole: enough to double up to the most and to halve */
#define CALIBRATE_USERS_MAX     100000
#define CALIBRATE_FAILURE_BYTES 200

struct calibrate_options {
    const char *host;       /* --host; NULL: the scenario's */
    const struct str *sets; /* --set, "name=value" each, checked by inputs_check */
    size_t set_count;
    const bool *classes; /* by class: who runs; NULL: all */
    int signal_fd;       /* a non-blocking signalfd for SIGINT and SIGTERM, or -1 */
    struct engine_options engine;
    struct capacity_options search; /* .unit and .waits are filled in here */
    uint64_t step_s, max_s;         /* calibrate_times fills in what is not given */
    /* A window is measured, and which limit it is over; may be NULL. */
    void (*tell)(void *context, const struct capacity_window *window, enum capacity_limit over);
    void *context;
};

struct calibration {
    struct capacity search;
    struct capacity_window *windows; /* in the order of measuring */
    size_t window_count;
    unsigned threads;
    uint64_t step_s, max_s;
    int signal;                            /* that ended it; 0: none */
    char failure[CALIBRATE_FAILURE_BYTES]; /* the most frequent one; "": none */
};

/* How long a step and the whole are for such a plan, when they are not given (0). A step sees each
 * user at work: it is twice as long as the users' waits. */
void calibrate_times(const struct plan *plan, const bool *classes, uint64_t *step_s,
                     uint64_t *max_s);

/* SIGINT and SIGTERM are blocked by the caller in all threads. Either ends the search, the second
 * one the waiting for users that end. 0 with *ret to be calibration_done; -EINVAL (a user's
 * mistake) and other errnos: err says why. */
MUST_USE int calibrate_run(const struct calibrate_options *options, const struct plan *plan,
                           struct calibration *ret, struct err *err);
void calibration_done(struct calibration *c);

#endif

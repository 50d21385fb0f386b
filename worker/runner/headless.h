/* A headless run, as 'locust --headless': it starts the users, keeps to the scenario's shape, tells
 * the output each second how things stand, ends, judges and leaves. It owns the engine, the
 * samples, the output and the loop that joins them, all in the calling thread. */
#ifndef CICADA_WORKER_RUNNER_HEADLESS_H
#define CICADA_WORKER_RUNNER_HEADLESS_H

#include "base/err.h"
#include "worker/engine/engine.h"
#include "worker/output/output.h"
#include "worker/report/settings.h"
#include "worker/runner/scrape.h"
#include "worker/scenario/plan.h"

#include <stdbool.h>

/* Exit codes of its own; others are 0 and --exit-code-on-error. A threshold's is k6's. */
#define HEADLESS_EXIT_FAILED    1
#define HEADLESS_EXIT_SATURATED 98
#define HEADLESS_EXIT_THRESHOLD 99

struct headless_options {
    const char *host;       /* --host; NULL: the scenario's */
    const struct str *sets; /* --set, "name=value" each, checked by inputs_check */
    size_t set_count;
    const bool *classes; /* by class: who runs; NULL: all */
    bool users_given, spawn_rate_given;
    uint32_t users;
    double spawn_rate;
    uint64_t run_time_s; /* 0: until it is stopped */
    double stop_timeout_s;
    bool reset_stats;
    int exit_code_on_error;
    bool fail_if_saturated;
    const struct str *thresholds; /* of --threshold */
    size_t threshold_count;
    int signal_fd;                /* a non-blocking signalfd for SIGINT and SIGTERM, or -1 */
    struct engine_options engine; /* with .task_limit for --iterations */
    struct output_options output; /* what else of it is known, is filled in here */
    struct scrape_options metrics;
    const struct report_settings *report; /* NULL: neither cluster nor servers are asked */
};

/* Run it to its end. SIGINT and SIGTERM are blocked by the caller in all threads: the first one
 * ends the load, the second one cuts what is still at work; files are complete in any case. Logs
 * what a person should know. 0 with the exit code of the process; -EINVAL (a user's mistake) and
 * other errnos: it could not begin, and no load was made; err says why. */
MUST_USE int headless_run(const struct headless_options *options, const struct plan *plan,
                          int *ret_exit_code, struct err *err);

#endif

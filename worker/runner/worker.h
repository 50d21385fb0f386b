/* A distributed run as a Locust master's worker: the shell around the state machine. It owns the
 * link, the engine, the samples and the loop that joins them, all in the calling thread (the
 * runner's); it returns when the worker is done. */
#ifndef CICADA_WORKER_RUNNER_WORKER_H
#define CICADA_WORKER_RUNNER_WORKER_H

#include "base/err.h"
#include "worker/engine/engine.h"
#include "worker/runner/reporter.h"
#include "worker/runner/scrape.h"
#include "worker/scenario/plan.h"

#include <stdbool.h>

struct worker_options {
    const char *master_host;
    unsigned master_port;
    const char *host;       /* --host; NULL: the scenario's, or the master's */
    const struct str *sets; /* --set, "name=value" each, checked by inputs_check */
    size_t set_count;
    double stop_timeout_s;   /* --stop-timeout; the master's wins on stop and quit */
    double master_timeout_s; /* without a master for so long: exit 1; 0: never */
    double ready_wait_s;     /* LOCUST_WORKER_ADDITIONAL_WAIT_BEFORE_READY_AFTER_STOP */
    bool reset_stats;        /* --reset-stats */
    bool fetched;            /* the plan came from the master (-f -) */
    int signal_fd;           /* a non-blocking signalfd for SIGINT and SIGTERM, or -1 */
    uint64_t file_users;     /* as many have descriptors (engine_raise_file_limit); 0: unknown */
    struct engine_options engine;
    const struct report_settings *report;
    struct output_options output; /* the results folder of the leader */
    struct scrape_options metrics;
    struct scrape *scrape; /* serves them already, if it is open, and is the worker's from now on */
};

/* Attach to the master and work for it until it says quit, a signal comes, or there is no master.
 * SIGINT and SIGTERM are blocked by the caller in all threads. Logs what a person should know.
 * 0 with the exit code of the process; -EINVAL (host: a user's mistake) and other errnos: it could
 * not begin, err says why. */
MUST_USE int worker_run(const struct worker_options *options, const struct plan *plan,
                        int *ret_exit_code, struct err *err);

#endif

/* The run's final truth in one struct: what the load saw (stats), whether the generator is to be
 * believed, how dense the cluster was (facts) and what the servers measured (telemetry). Pure data:
 * whoever ran the load fills it in, worker/output writes it. Everything is borrowed for the time of
 * writing; a NULL pointer or an unknown measure is "not measured" and null in every output. */
#ifndef CICADA_WORKER_REPORT_REPORT_H
#define CICADA_WORKER_REPORT_REPORT_H

#include "base/measure.h"
#include "facts/actors.h"
#include "facts/facts.h"
#include "facts/frontiers.h"
#include "worker/report/generator.h"
#include "worker/report/history.h"
#include "worker/scenario/plan.h"
#include "worker/stats/csv.h"
#include "worker/stats/stats.h"

#include <jansson.h>

/* Where the total user count came from, best first. */
enum users_source {
    USERS_SOURCE_NONE,
    USERS_SOURCE_LOCAL,      /* this process runs all users */
    USERS_SOURCE_MASTER,     /* the master's listener told it */
    USERS_SOURCE_MASTER_WEB, /* the master's /stats/requests */
    USERS_SOURCE_PROMETHEUS, /* the sum of the workers' gauge */
    USERS_SOURCE_PLAN,       /* spawning_complete or the spawn message: not a measurement */
};

/* "local", "master", "master_web", "prometheus", "plan"; NULL for none. */
const char *users_source_name(enum users_source source);

/* Every started request ends in exactly one of the other three. */
struct report_requests {
    uint64_t started;
    uint64_t succeeded;
    uint64_t failed;
    uint64_t interrupted;           /* cut at the end of its user */
    uint64_t interrupted_oldest_us; /* age of the oldest one that was cut */
};

/* One threshold and how it came out. */
struct report_threshold {
    struct str text;         /* as written: "GET /items: p95 < 300" */
    struct measure measured; /* unknown: nothing to measure, and so not met */
    bool met;
    const char *unit; /* behind what was measured: " ms"; NULL: none */
    bool unsteady;    /* of the steady state, and there was none */
};

/* What there is to say of a threshold without a value. */
static inline const char *report_threshold_unmeasured(const struct report_threshold *t)
{
    return t->unsteady ? "no steady state" : "not measured";
}

/* Where the run stands. */
enum report_phase {
    REPORT_WAITING, /* no user has started yet */
    REPORT_SPAWNING,
    REPORT_RUNNING,
    REPORT_STOPPING,   /* users are ending */
    REPORT_HARVESTING, /* facts and telemetry are read */
    REPORT_DONE,
};

/* One count of the sampled actor gauge. */
struct report_actors {
    double wall_s;
    struct str user_class;
    struct str state;
    double count;
};

struct report {
    const char *test_name; /* NULL: none */
    const char *tag;
    const char *host; /* of the target, without user-info; NULL: several or none */
    double start_s;   /* first user's start, Unix time */
    double end_s;
    double now_s; /* when this was told */
    enum report_phase phase;
    struct measure run_time_s; /* asked for; unknown: until it is stopped */
    struct report_requests requests;
    const struct plan *plan;
    const struct stats *stats;     /* the whole run (since the last reset) */
    const struct history *history; /* a point a second */
    const struct stats_csv_exception *exceptions;
    size_t exception_count;
    const struct report_threshold *thresholds;
    size_t threshold_count;
    struct generator_verdict generator;

    const struct cluster_facts *facts; /* NULL: not read */
    const struct frontiers *frontiers; /* NULL: not computed */
    enum users_source users_source;
    double actors_per_user;
    const struct actors_summary *actors;        /* NULL: no gauge was sampled */
    const struct report_actors *actors_history; /* its samples so far, in order; only appended to */
    size_t actors_history_count;
    const json_t *server_document; /* server_summary.json; NULL: nulls */
    const json_t *server_flat;     /* its row; NULL: nulls */

    int exit_code;
};

#endif

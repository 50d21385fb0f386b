/* What cicada's workers tell beside Locust's own: the "cicada" object of a stats message, which the
 * master hands to worker_report listeners, and the objects that the files have in common with it.
 * docs/report.md lists the members. Pure, any thread. */
#ifndef CICADA_WORKER_REPORT_CICADA_OBJECT_H
#define CICADA_WORKER_REPORT_CICADA_OBJECT_H

#include "worker/report/report.h"

#include <jansson.h>

/* Borrowed for the time of the call. */
struct cicada_object {
    struct measure cpu_pct, loop_lag_ms;
    const struct generator_verdict *generator; /* of the run so far; NULL: could not be judged */
    struct report_requests requests;           /* of the run so far */
    bool reporter;                             /* this worker is the leader */
    bool may_report;                           /* it would be one if it were named */
    struct measure report_within_s; /* its report is complete so long after the end of the run;
                                       unknown: nothing is to be waited for */

    /* the leader only, once the run is over; all else is left out then */
    bool over;
    bool complete; /* nothing more will follow */
    double start_s, end_s;
    const char *test_name, *tag;       /* NULL: none */
    const struct cluster_facts *facts; /* NULL: not read (yet) */
    const struct frontiers *frontiers; /* NULL: not computed */
    enum users_source users_source;
    double actors_per_user;
    const struct actors_summary *actors; /* NULL: no gauge was sampled */
    const json_t *server_flat;           /* NULL: not harvested (yet) */
    const json_t *server_document;       /* the same */
};

/* NULL: out of memory. */
json_t *cicada_object_json(const struct cicada_object *c);

/* "raw_configuration": machine_type, node_count, allocatable_cores, allocatable_ram_gb,
 * worker_pod_count, capacity_scope; null where unknown. facts NULL: all. NULL: out of memory. */
json_t *cluster_facts_json(const struct cluster_facts *facts);

/* "frontiers": actors_per_node, …, aggregate_failure_ratio, and the three actors_per_pod. NULL in:
 * all null. NULL: out of memory. */
json_t *frontiers_json(const struct frontiers *f);

#endif

/* Facts and frontiers as the JSON objects of the report: unknown is null, never 0. Pure, any
 * thread. Dump them with JSON_REAL_PRECISION(15): by default jansson prints 2.55 with 17 digits. */
#ifndef CICADA_FACTS_JSON_H
#define CICADA_FACTS_JSON_H

#include "facts/facts.h"
#include "facts/frontiers.h"

#include <jansson.h>

#define FACTS_DUMP_FLAGS (JSON_REAL_PRECISION(15))

/* A measure as a JSON integer, a real, or null. NULL: out of memory. */
json_t *json_of_count(struct measure m);
json_t *json_of_measure(struct measure m);

/* raw_configuration: machine_type, node_count, allocatable_cores, allocatable_ram_gb,
 * worker_pod_count, capacity_scope, users_source, actors_per_user. users_source NULL: null.
 * A new reference; NULL: out of memory. */
json_t *facts_raw_configuration(const struct cluster_facts *f, const char *users_source,
                                struct measure actors_per_user);

/* frontiers: actors_per_node, actors_per_vcpu, actors_per_gb_ram, ap_ratio_p50, _p90, _p99,
 * aggregate_failure_ratio. A new reference; NULL: out of memory. */
json_t *facts_frontiers(const struct frontiers *f);

#endif

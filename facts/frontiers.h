/* Density frontiers: how many actors the cluster carried, for each node, core, GiB and worker pod.
 * Pure functions over the run's samples and the cluster facts, any thread. What cannot be measured
 * is unknown, never 0. */
#ifndef CICADA_FACTS_FRONTIERS_H
#define CICADA_FACTS_FRONTIERS_H

#include "base/buf.h"
#include "base/measure.h"

#include <stdint.h>

#define FRONTIERS_STEADY_TENTHS 9 /* steady: at least so many tenths of the target or the peak */

struct users_sample {
    double wall_s;
    double users;
};

struct frontiers_input {
    const struct users_sample *samples; /* the whole run, in order */
    size_t sample_count;
    struct measure target_users; /* what was asked for; 0 is unknown too */
    double actors_per_user;
    struct measure node_count, allocatable_cores, allocatable_ram_gb, worker_pod_count;
    uint64_t requests, failures; /* of all entries together */
};

struct frontiers {
    struct measure actors_per_node, actors_per_vcpu, actors_per_gb_ram; /* 2 decimals */
    struct measure ap_ratio_p50, ap_ratio_p90, ap_ratio_p99;            /* the steady state */
    struct measure actors_per_pod_p50, actors_per_pod_p90, actors_per_pod_p99; /* all the run */
    struct measure aggregate_failure_ratio;
};

/* 0, or -ENOMEM with nothing written. */
MUST_USE int frontiers_compute(const struct frontiers_input *in, struct frontiers *ret);

/* failures / requests; unknown when there were no requests. Not rounded. */
struct measure failure_ratio(uint64_t failures, uint64_t requests);

/* Is users at least nine tenths of reference? 0 users never are. */
bool users_steady(double users, double reference);

/* What users are compared with: the target when a sample comes to nine tenths of it, else the peak.
 * 0 without samples. */
double users_reference(const struct users_sample *samples, size_t count, struct measure target);

/* Nearest rank of ascending values: sorted[min(int(count * q), count - 1)]. Unknown when empty. */
struct measure nearest_rank(const double *sorted, size_t count, double q);

/* Sort ascending, for nearest_rank. */
void sort_doubles(double *values, size_t count);

/* Append a name as measurement keys spell it: "DurDirWrite" -> "dur_dir_write", "GET /a?b" ->
 * "get_a_b"; letters outside ASCII stay. 0, -ERANGE, -ENOMEM. */
MUST_USE int snake_case(struct buf *b, struct str name);

#endif

/* What an entry keeps beside Locust's figures when it is measured: the service time (since a
 * request was really sent, where its response time counts from its scheduled start) and the phases
 * of a request. Memory only for entries that have such samples. Owned by the entry. */
#ifndef CICADA_WORKER_STATS_DETAILS_H
#define CICADA_WORKER_STATS_DETAILS_H

#include "base/err.h"
#include "worker/stats/histogram.h"

#include <stdbool.h>
#include <stdint.h>

/* The parts of a request's service time; on a kept-alive connection it has the last two only. */
enum stats_phase {
    STATS_PHASE_DNS,
    STATS_PHASE_CONNECT,
    STATS_PHASE_TLS,
    STATS_PHASE_FIRST_BYTE, /* from the request's first byte out to the response's first byte in */
    STATS_PHASE_BODY,       /* from there to the last byte */
    STATS_PHASE_COUNT,
};

/* "dns", "connect", "tls", "first_byte", "body" */
const char *stats_phase_name(enum stats_phase phase);

#define STATS_NO_TIME UINT64_MAX /* a part that the request did not have */

struct stats_times {
    uint64_t service_us; /* or STATS_NO_TIME: the same as the response time, not kept */
    const uint64_t
        *phases_us; /* STATS_PHASE_COUNT times or STATS_NO_TIME each; NULL: not measured */
};

struct stats_details {
    struct histogram service_times;
    struct histogram phases[STATS_PHASE_COUNT];
};

/* Each takes the entry's pointer, which is NULL until the first sample. False: without memory the
 * sample is not counted. */
bool stats_details_record(struct stats_details **details, const struct stats_times *times);
/* 0; -ENOMEM: nothing was added. After a reserve of the same two a merge cannot fail. */
MUST_USE int stats_details_reserve(struct stats_details **into, const struct stats_details *from);
MUST_USE int stats_details_merge(struct stats_details **into, const struct stats_details *from);
void stats_details_clear(struct stats_details *d); /* NULL is nothing, as below */
void stats_details_free(struct stats_details *d);

#endif

/* A set of stats as the "stats" message of a worker carries it. Whoever owns the set. */
#ifndef CICADA_WORKER_STATS_WIRE_H
#define CICADA_WORKER_STATS_WIRE_H

#include "proto/locust/message.h"
#include "worker/stats/stats.h"

struct stats_wire {
    struct message_stats message; /* entries, total and errors; the caller fills in the rest */
    void *memory;                 /* of the arrays and keys */
};

/* Entries with requests or failures only; the total always, with what was not measured as unknown;
 * one error for each of Locust's keys. Names and texts are borrowed from s, which must stay as it
 * is until stats_wire_done. 0, -ENOMEM (ret is zeroed). */
MUST_USE int stats_wire_build(const struct stats *s, struct stats_wire *ret);
void stats_wire_done(struct stats_wire *w);

#endif

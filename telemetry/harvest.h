/* Ask a Prometheus server what the target went through during a run, and make the server summary
 * of it. This is telemetry's one door for the report thread: it blocks, bounded by its time-outs,
 * and never fails a run: what cannot be had is null, with a line that says why. */
#ifndef CICADA_TELEMETRY_HARVEST_H
#define CICADA_TELEMETRY_HARVEST_H

#include "telemetry/summary.h"

/* Borrowed for the time of the call. */
struct telemetry_options {
    struct query_access access;    /* access.url NULL: nothing is asked */
    const struct profile *profile; /* loaded */
    struct measure lag_s;          /* unknown: the profile's own */
    const char *test_name, *tag;   /* may be NULL */
    const char *data_timestamp;
    struct window run; /* from the first spawn to the end of the load */
    struct measure worker_pod_count;
    const struct window_sample *samples; /* of all users, each second or so */
    size_t sample_count;
};

struct telemetry_result {
    json_t *document; /* of server_summary.json; summary_write makes its text */
    json_t *flat;     /* of the row "server_summary" */
    size_t queries_ok, queries_failed;
    struct notes failures; /* one line each, and the server's own warnings (an answer in part) */
    struct notes remarks;  /* what else it said beside its answers, for the debug log */
};

/* Probe the server (5 s), wait until the lag has passed since the run's end, ask everything at once
 * (5 s instant, 8 s range). When the probe fails nothing more is done or waited for.
 *   abort_fd  becoming readable (it is not read) ends the waiting and the asking at once; -1: none
 * 0, with all fields of ret made; -ENOMEM, with none. telemetry_result_done it in any case. */
MUST_USE int telemetry_harvest(const struct telemetry_options *options, int abort_fd,
                               struct telemetry_result *ret);
/* How long a harvest takes at most, from the end of the run on. lag_s as in the options. */
double telemetry_longest_s(const struct profile *profile, struct measure lag_s);

void telemetry_result_done(struct telemetry_result *r);

#endif

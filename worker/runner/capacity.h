/* The search for what one worker sustains: measured windows in, the next number of users or the end
 * out. The number doubles (or more, while there is much to spare) until something is over a limit
 * or the throughput grows no longer; in the first case it is then halved in between. What ended the
 * search is told apart: this worker, its machine, the target, failures. Pure, it has no clock; one
 * thread.
 *
 * With wait times the answer is a number of users. Without them a user asks as fast as it can, so
 * that a few users are a full load: then it is a number of requests a second, read off between the
 * last window below the limit of CPU and the first one above it. */
#ifndef CICADA_WORKER_RUNNER_CAPACITY_H
#define CICADA_WORKER_RUNNER_CAPACITY_H

#include "base/measure.h"

#include <stdbool.h>
#include <stdint.h>

#define CAPACITY_CPU_PCT         80.0
#define CAPACITY_LAG_MS          5.0
#define CAPACITY_FAILURE_RATIO   0.05 /* above it figures would be of failures */
#define CAPACITY_GROWTH          0.25 /* of what more users would ask for more, at the least */
#define CAPACITY_STALLS          2    /* windows in a row without growth */
#define CAPACITY_SILENT          3    /* windows in a row without an answer */
#define CAPACITY_LATE            2    /* windows in a row that are late are believed, … */
#define CAPACITY_LATE_IDLE       3    /* … when the worker had half of its CPU to spare */
#define CAPACITY_IDLE_PART       0.5
#define CAPACITY_PRECISION_RATIO 0.05 /* near enough */

/* What ended the search, or why a window is over a limit. */
enum capacity_limit {
    CAPACITY_NONE, /* the search goes on; a window: nothing */
    CAPACITY_CPU,  /* this worker, … */
    CAPACITY_LAG,
    CAPACITY_FILES, /* its machine, … */
    CAPACITY_PORTS,
    CAPACITY_MEMORY,
    CAPACITY_TARGET,   /* throughput grows no longer */
    CAPACITY_FAILURES, /* too many */
    CAPACITY_SILENCE,  /* no request ends */
    CAPACITY_USERS,    /* the most that are allowed */
    CAPACITY_TIME,     /* no more of it */
    CAPACITY_SIGNAL,
    CAPACITY_SCENARIO, /* a step of it stopped the run */
};

/* "cpu", "users_max", …: the words of the JSON. */
const char *capacity_limit_name(enum capacity_limit limit);

struct capacity_window {
    uint32_t users;   /* wished for */
    uint64_t running; /* in the end */
    double seconds;
    uint64_t requests; /* that ended */
    uint64_t failures;
    double cpu_pct;     /* busiest thread, percent of a core, on average */
    double loop_lag_ms; /* worst one of a second, in the best of the seconds */
    uint64_t late_starts;
    uint64_t files_exhausted;
    uint64_t ports_exhausted;
    uint64_t memory_exhausted;
    struct measure p50_ms, p95_ms;
};

/* Requests a second. */
static inline double capacity_rate(const struct capacity_window *w)
{
    return w->seconds > 0 ? (double)w->requests / w->seconds : 0;
}

struct capacity_options {
    uint32_t unit; /* threads: numbers of users are multiples, so that all are as busy; >= 1 */
    uint32_t users_max;
    bool file_limited; /* users_max is what open files allow */
    bool waits;        /* users wait between their tasks */
    double cpu_limit_pct;
    double lag_limit_ms;
};

struct capacity {
    /* to be read by anybody */
    uint32_t users;            /* the next window's */
    enum capacity_limit limit; /* CAPACITY_NONE: not at the end */
    struct capacity_window under, over;
    bool has_under, has_over; /* the highest window within the limits, the lowest one beyond */
    enum capacity_limit over_limit;

    struct capacity_options options;
    struct capacity_window grown; /* the last one that brought more throughput */
    bool has_grown;
    double best_rate; /* of windows within the limits */
    unsigned late;    /* windows in a row of the same users */
    unsigned stalls;
    unsigned silent;
};

void capacity_init(struct capacity *c, const struct capacity_options *options);

/* Which limit this window is over; CAPACITY_NONE: none. */
enum capacity_limit capacity_judge(const struct capacity_options *o,
                                   const struct capacity_window *w);

/* A window with c->users is measured. True: measure c->users next; false: c->limit says why not. */
bool capacity_add(struct capacity *c, const struct capacity_window *w);

/* End it early, for CAPACITY_TIME, _SIGNAL or _SCENARIO. Nothing when it has ended. */
void capacity_stop(struct capacity *c, enum capacity_limit why);

struct capacity_result {
    struct measure users;          /* unknown: no window was within the limits */
    struct measure rate;           /* requests a second */
    bool at_least;                 /* nothing of this worker was at its limit: it could do more */
    bool estimated;                /* the rate is read off between two windows */
    struct capacity_window window; /* that the figures are of, when users is known */
};

struct capacity_result capacity_result(const struct capacity *c);

/* Workers for so much, when one sustains that; unknown when that is unknown or nothing. */
struct measure capacity_workers(double wished, struct measure sustained);

#endif

/* How a scenario wants its load over time: stages of users (Locust's StagesShape), or an arrival
 * rate (an open model: tasks start at a given rate, whoever is still busy). Part of the plan,
 * immutable; a master, which decides for itself, overrules it. Times count from the start of the
 * run, as in Locust. Pure functions, any thread. */
#ifndef CICADA_WORKER_SCENARIO_SHAPE_H
#define CICADA_WORKER_SCENARIO_SHAPE_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define SHAPE_MAX_STAGES     1000
#define SHAPE_MAX_USERS      10000000 /* no machine holds as many */
#define SHAPE_MAX_S          10000000 /* four months */
#define SHAPE_MAX_RATE       1e7      /* of arrivals a second; no machine starts as many */
#define SHAPE_MAX_SPAWN_RATE 1e7
#define SHAPE_DEFAULT_USERS  1000 /* that arrivals may keep busy */

struct shape_stage {
    uint64_t until_us;
    uint32_t users;              /* in all classes */
    const uint32_t *class_users; /* by class; NULL: as their weights and fixed counts say */
    const bool *classes;         /* by class: who may be added; NULL: all */
    double spawn_rate;           /* users a second, up or down */
};

/* The rate grows or shrinks evenly up to until_us. */
struct shape_rate {
    uint64_t until_us;
    double rate; /* then; tasks a second */
};

struct plan_shape {
    const struct shape_stage *stages; /* at least one, unless it is an arrival rate */
    size_t stage_count;

    bool arrival;
    double first_rate;              /* at the start; for ever when there are no rates */
    const struct shape_rate *rates; /* until_us never shrinks; equal ones are a jump */
    size_t rate_count;
    uint32_t max_users;
};

/* When the load ends by itself; UINT64_MAX: never. */
uint64_t shape_end_us(const struct plan_shape *s);

/* The stage at this time, or NULL at the end. */
const struct shape_stage *shape_stage_at(const struct plan_shape *s, uint64_t at_us);

/* The most users of any stage (in an open model, the pool's). */
uint32_t shape_most_users(const struct plan_shape *s);

/* Arrivals: the rate at a time, and the highest of all. */
double shape_rate_at(const struct plan_shape *s, uint64_t at_us);
double shape_highest_rate(const struct plan_shape *s);

/* How many arrivals are due from the start to this time, as a real number. */
double shape_arrivals(const struct plan_shape *s, uint64_t at_us);

/* When that many are due, in microseconds from the start; UINT64_MAX: never. Its inverse. */
uint64_t shape_arrival_us(const struct plan_shape *s, double arrivals);

#endif

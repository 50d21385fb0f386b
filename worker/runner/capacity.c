#include "worker/runner/capacity.h"

#include <math.h>

#define FACTOR        2
#define FACTOR_SPARE  4   /* while the worker has most of its CPU to spare */
#define SPARE_PART    8.0 /* ... an eighth of its limit is used: four times as much is half of it */
#define FAILURES_FEW  1   /* one of few requests is not yet a ratio */
#define ROUNDING_PART 1e-9

const char *capacity_limit_name(enum capacity_limit limit)
{
    switch (limit) {
    case CAPACITY_NONE:
        break;
    case CAPACITY_CPU:
        return "cpu";
    case CAPACITY_LAG:
        return "loop_lag";
    case CAPACITY_FILES:
        return "file_descriptors";
    case CAPACITY_PORTS:
        return "local_ports";
    case CAPACITY_MEMORY:
        return "memory";
    case CAPACITY_TARGET:
        return "target";
    case CAPACITY_FAILURES:
        return "failures";
    case CAPACITY_SILENCE:
        return "silence";
    case CAPACITY_USERS:
        return "users_max";
    case CAPACITY_TIME:
        return "time";
    case CAPACITY_SIGNAL:
        return "signal";
    case CAPACITY_SCENARIO:
        return "scenario";
    }
    return "none";
}

void capacity_init(struct capacity *c, const struct capacity_options *options)
{
    *c = (struct capacity){.options = *options};
    c->users = options->unit < options->users_max ? options->unit : options->users_max;
}

/* What ran out comes first: it makes failures. CPU comes after them, for failures cost CPU. */
enum capacity_limit capacity_judge(const struct capacity_options *o,
                                   const struct capacity_window *w)
{
    if (w->files_exhausted > 0)
        return CAPACITY_FILES;
    if (w->ports_exhausted > 0)
        return CAPACITY_PORTS;
    if (w->memory_exhausted > 0)
        return CAPACITY_MEMORY;
    if (w->failures == w->requests
            ? w->failures > 0
            : w->failures > FAILURES_FEW &&
                  (double)w->failures > CAPACITY_FAILURE_RATIO * (double)w->requests)
        return CAPACITY_FAILURES;
    if (w->cpu_pct > o->cpu_limit_pct)
        return CAPACITY_CPU;
    if (w->loop_lag_ms > o->lag_limit_ms)
        return CAPACITY_LAG;
    return CAPACITY_NONE;
}

static bool end(struct capacity *c, enum capacity_limit limit)
{
    c->limit = limit;
    return false;
}

/* --- between a window within the limits and one beyond ---------------------------------------- */

static bool halve(struct capacity *c)
{
    uint32_t low = c->has_under ? c->under.users : 0, high = c->over.users, unit = c->options.unit;
    double near = CAPACITY_PRECISION_RATIO * low;
    uint32_t middle = low + (high - low) / 2;
    middle -= (middle - low) % unit;
    if (high - low <= near || middle == low)
        return end(c, c->over_limit);
    c->users = middle;
    return true;
}

/* Late with CPU to spare: that is hardly its own fault. */
static bool is_idle(const struct capacity_options *o, const struct capacity_window *w)
{
    return w->cpu_pct <= CAPACITY_IDLE_PART * o->cpu_limit_pct;
}

static bool go_below(struct capacity *c, const struct capacity_window *w, enum capacity_limit limit)
{
    /* another program may have taken the CPU for a moment: look again before it is believed */
    if (limit == CAPACITY_LAG &&
        ++c->late < (is_idle(&c->options, w) ? CAPACITY_LATE_IDLE : CAPACITY_LATE))
        return true;
    c->late = 0;
    c->over = *w;
    c->over_limit = limit;
    c->has_over = true;
    return halve(c);
}

/* --- upwards ---------------------------------------------------------------------------------- */

/* Does a part of the additional users show in the throughput? */
static bool grew(const struct capacity *c, const struct capacity_window *w)
{
    if (!c->has_grown)
        return true;
    double more = (double)w->users / c->grown.users - 1;
    return capacity_rate(w) >= (1 + CAPACITY_GROWTH * more) * capacity_rate(&c->grown);
}

static bool at_most_users(struct capacity *c)
{
    return end(c, c->options.file_limited ? CAPACITY_FILES : CAPACITY_USERS);
}

static bool go_up(struct capacity *c, const struct capacity_window *w)
{
    bool spare = w->cpu_pct <= c->options.cpu_limit_pct / SPARE_PART && c->stalls == 0;
    uint64_t next = (uint64_t)w->users * (spare ? FACTOR_SPARE : FACTOR);
    if (w->users >= c->options.users_max)
        return at_most_users(c);
    c->users = next < c->options.users_max ? (uint32_t)next : c->options.users_max;
    return true;
}

static bool no_answer(struct capacity *c, const struct capacity_window *w)
{
    return ++c->silent == CAPACITY_SILENT ? end(c, CAPACITY_SILENCE) : go_up(c, w);
}

static bool measured(struct capacity *c, const struct capacity_window *w)
{
    c->silent = 0;
    c->late = 0;
    c->under = *w;
    c->has_under = true;
    if (capacity_rate(w) > c->best_rate)
        c->best_rate = capacity_rate(w);
    if (c->has_over)
        return halve(c);
    if (grew(c, w)) {
        c->grown = *w;
        c->has_grown = true;
        c->stalls = 0;
    } else if (++c->stalls == CAPACITY_STALLS) {
        return end(c, CAPACITY_TARGET);
    }
    return go_up(c, w);
}

bool capacity_add(struct capacity *c, const struct capacity_window *w)
{
    enum capacity_limit limit = capacity_judge(&c->options, w);
    switch (limit) {
    case CAPACITY_FAILURES:
        return end(c, limit);
    case CAPACITY_CPU:
    case CAPACITY_LAG:
    case CAPACITY_FILES:
    case CAPACITY_PORTS:
    case CAPACITY_MEMORY:
        return go_below(c, w, limit);
    case CAPACITY_NONE:
    case CAPACITY_TARGET:
    case CAPACITY_SILENCE:
    case CAPACITY_USERS:
    case CAPACITY_TIME:
    case CAPACITY_SIGNAL:
    case CAPACITY_SCENARIO:
        break;
    }
    return w->requests == 0 ? no_answer(c, w) : measured(c, w);
}

void capacity_stop(struct capacity *c, enum capacity_limit why)
{
    if (c->limit == CAPACITY_NONE)
        c->limit = why;
}

/* --- the answer ------------------------------------------------------------------------------- */

/* The rate at the limit of CPU, on the line from the window below (or from nothing at all) to the
 * one above. */
static double rate_at_limit(const struct capacity *c)
{
    double from_pct = c->has_under ? c->under.cpu_pct : 0;
    double from = c->has_under ? capacity_rate(&c->under) : 0;
    double part = (c->options.cpu_limit_pct - from_pct) / (c->over.cpu_pct - from_pct);
    return from + part * (capacity_rate(&c->over) - from);
}

/* Of users that ask as fast as they can. */
static void read_off(const struct capacity *c, struct capacity_result *r)
{
    if (c->best_rate > r->rate.value)
        r->rate = measure_of(c->best_rate);
    if (!c->has_over || c->over_limit != CAPACITY_CPU || c->over.requests == 0)
        return;
    double rate = rate_at_limit(c);
    if (rate <= r->rate.value)
        return;
    r->rate = measure_of(rate);
    r->estimated = true;
}

static bool could_do_more(const struct capacity *c)
{
    if (c->has_over)
        return c->over_limit == CAPACITY_LAG && is_idle(&c->options, &c->over);
    return c->limit != CAPACITY_FILES; /* that many users and no more */
}

struct capacity_result capacity_result(const struct capacity *c)
{
    struct capacity_result r = {0};
    bool stalled = c->options.waits && !c->has_over && c->stalls > 0; /* users were held up */
    if (c->has_under) {
        r.window = stalled ? c->grown : c->under;
        r.users = measure_of(r.window.running < r.window.users ? (double)r.window.running
                                                               : r.window.users);
        r.rate = measure_of(capacity_rate(&r.window));
    }
    if (!c->options.waits)
        read_off(c, &r);
    r.at_least = r.rate.known && could_do_more(c);
    return r;
}

struct measure capacity_workers(double wished, struct measure sustained)
{
    if (!sustained.known || !(sustained.value > 0))
        return MEASURE_UNKNOWN;
    double workers = wished / sustained.value;
    return measure_of(ceil(workers * (1 - ROUNDING_PART)));
}

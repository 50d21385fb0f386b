/* The rate of arrivals is a line from one given point to the next, so the arrivals due are a
 * parabola between them, and when a given one is due is the root of a quadratic equation. */
#include "worker/scenario/shape.h"

#include <math.h>

uint64_t shape_end_us(const struct plan_shape *s)
{
    if (s->stage_count > 0)
        return s->stages[s->stage_count - 1].until_us;
    return s->rate_count > 0 ? s->rates[s->rate_count - 1].until_us : UINT64_MAX;
}

const struct shape_stage *shape_stage_at(const struct plan_shape *s, uint64_t at_us)
{
    for (size_t i = 0; i < s->stage_count; i++) {
        if (at_us < s->stages[i].until_us)
            return &s->stages[i];
    }
    return NULL;
}

uint32_t shape_most_users(const struct plan_shape *s)
{
    uint32_t most = s->arrival ? s->max_users : 0;
    for (size_t i = 0; i < s->stage_count; i++)
        most = s->stages[i].users > most ? s->stages[i].users : most;
    return most;
}

double shape_highest_rate(const struct plan_shape *s)
{
    double highest = s->first_rate;
    for (size_t i = 0; i < s->rate_count; i++)
        highest = fmax(highest, s->rates[i].rate);
    return highest;
}

/* A part of the curve: from one point to the next, in seconds. */
struct part {
    double from_s, length_s;
    double from_rate, to_rate;
};

/* Step through the parts: start with *i 0; false behind the last. */
static bool next_part(const struct plan_shape *s, size_t *i, struct part *ret)
{
    if (*i > 0 && *i >= s->rate_count)
        return false;
    ret->from_s = *i ? (double)s->rates[*i - 1].until_us / 1e6 : 0;
    ret->from_rate = *i ? s->rates[*i - 1].rate : s->first_rate;
    bool ends = *i < s->rate_count;
    ret->length_s = ends ? (double)s->rates[*i].until_us / 1e6 - ret->from_s : HUGE_VAL;
    ret->to_rate = ends ? s->rates[*i].rate : s->first_rate;
    ++*i;
    return true;
}

static double slope(const struct part *p)
{
    return p->from_rate == p->to_rate ? 0 : (p->to_rate - p->from_rate) / p->length_s;
}

static double due_within(const struct part *p, double s)
{
    double per_s2 = slope(p);
    if (s <= 0)
        return 0;
    return per_s2 == 0 ? p->from_rate * s : (p->from_rate + per_s2 * s / 2) * s; /* s: for ever */
}

double shape_rate_at(const struct plan_shape *s, uint64_t at_us)
{
    struct part p;
    double at_s = (double)at_us / 1e6;
    for (size_t i = 0; next_part(s, &i, &p);) {
        if (at_s - p.from_s < p.length_s)
            return p.from_rate + slope(&p) * (at_s - p.from_s);
    }
    return 0;
}

double shape_arrivals(const struct plan_shape *s, uint64_t at_us)
{
    struct part p;
    double at_s = (double)at_us / 1e6, due = 0;
    for (size_t i = 0; next_part(s, &i, &p) && at_s > p.from_s;)
        due += due_within(&p, fmin(at_s - p.from_s, p.length_s));
    return due;
}

/* The s for which due_within is so much; in this form a slope of nearly nothing divides nothing by
 * nearly nothing. */
static double time_within(const struct part *p, double due)
{
    double root = sqrt(fmax(0, p->from_rate * p->from_rate + 2 * slope(p) * due));
    return due > 0 ? 2 * due / (p->from_rate + root) : 0;
}

uint64_t shape_arrival_us(const struct plan_shape *s, double arrivals)
{
    struct part p;
    for (size_t i = 0; next_part(s, &i, &p);) {
        bool some = p.length_s > 0 && (p.from_rate > 0 || p.to_rate > 0);
        double due = some ? due_within(&p, p.length_s) : 0;
        if (some && arrivals < due)
            return (uint64_t)llround((p.from_s + time_within(&p, arrivals)) * 1e6);
        arrivals -= due;
    }
    return UINT64_MAX;
}

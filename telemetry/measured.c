#include "telemetry/measured.h"

#include "base/num.h"

#include <stdlib.h>

/* Sums of floats in another order differ in their last digits: that much below zero is zero. A
 * reset is not seen here but by the query itself. */
#define GROWTH_NOISE 1e-6

static double scaled(const struct profile_measurement *m, double value)
{
    return value * m->multiply_by / m->divide_by;
}

static struct measure finished(const struct profile_measurement *m, struct measure v)
{
    if (!v.known)
        return v;
    return measure_of(num_round(scaled(m, v.value), m->integer ? 0 : DISTRIBUTION_DECIMALS));
}

/* The one number of an instant query; unknown when it failed or found nothing. */
static struct measure single(const struct profile_measurement *m, const struct query_outcome *o,
                             struct notes *notes)
{
    if (o->err.code < 0 || o->answer.count == 0)
        return MEASURE_UNKNOWN;
    if (o->answer.count > 1) {
        notes_add(notes, "server telemetry: %s: %zu series where one was expected, ignoring",
                  m->name, o->answer.count);
        return MEASURE_UNKNOWN;
    }
    const struct query_answer_series *s = &o->answer.series[0];
    return s->count == 1 ? measure_of(s->samples[0].value) : MEASURE_UNKNOWN;
}

static struct measure growth(const struct profile_measurement *m, const struct query_outcome *o,
                             struct notes *notes)
{
    struct measure v = single(m, o, notes);
    if (!v.known || v.value >= 0)
        return v;
    return v.value > -GROWTH_NOISE ? measure_of(0) : MEASURE_UNKNOWN;
}

static struct measure ratio(struct measure over, struct measure under)
{
    if (!over.known || !under.known || under.value <= 0)
        return MEASURE_UNKNOWN;
    return measure_of(over.value / under.value);
}

static int take_range(const struct profile_measurement *m, const struct query_outcome *o,
                      struct measured *ret)
{
    double *values, seen = 0;
    size_t count;
    if (query_answer_pool(&o->answer, &values, &count) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        values[i] = scaled(m, values[i]);
    ret->distribution = distribution_of(values, count);
    free(values);
    for (size_t i = 0; i < o->answer.count; i++)
        seen += o->answer.series[i].count > 0;
    ret->series_count = seen > 0 ? measure_of(seen) : MEASURE_UNKNOWN;
    return 0;
}

static int take_packing(const struct profile_measurement *m, const struct query_outcome *o,
                        struct window steady, struct notes *notes, struct measured *ret)
{
    int rc = packing_of(&o->answer, m->process, m->state, m->busy, steady, &ret->packing);
    if (rc == -ERANGE)
        notes_add(notes, "server telemetry: %s: more than %d processes, ignoring", m->name,
                  PACKING_PROCESSES_MAX);
    ret->distribution = ret->packing.summary;
    return rc == -ERANGE ? 0 : rc;
}

static void take_histogram(const struct profile_measurement *m, const struct query_plan_entry *e,
                           const struct query_outcome *outcomes, struct notes *notes,
                           struct measured *ret)
{
    struct braced names;
    struct str item;
    struct measure mean = MEASURE_UNKNOWN;
    size_t items = braced_parse(str_of(m->name), &names) ? braced_count(&names) : 0;
    if (e->count == items + 2)
        mean = ratio(growth(m, &outcomes[e->parts[items]], notes),
                     growth(m, &outcomes[e->parts[items + 1]], notes));
    for (size_t i = 0; braced_item(&names, i, &item); i++) {
        struct measure v =
            e->parts[i] == PLAN_UNUSED ? mean : single(m, &outcomes[e->parts[i]], notes);
        ret->values[i] = finished(m, v);
    }
}

static struct measure per_second(struct measure v, struct window w)
{
    double seconds = w.end_s - w.start_s;
    return v.known && seconds > 0 ? measure_of(v.value / seconds) : MEASURE_UNKNOWN;
}

int measured_of(const struct profile_measurement *m, const struct query_plan_entry *entry,
                const struct query_outcome *outcomes, struct window steady, double lag_s,
                struct notes *notes, struct measured *ret)
{
    const struct query_outcome *first =
        entry->parts[0] == PLAN_UNUSED ? NULL : &outcomes[entry->parts[0]];
    struct measure v = MEASURE_UNKNOWN;
    *ret = (struct measured){0};
    switch (m->kind) {
    case PROFILE_RANGE_DISTRIBUTION:
        return take_range(m, first, ret);
    case PROFILE_STATE_PACKING:
        return take_packing(m, first, plan_shift(m, steady, lag_s), notes, ret);
    case PROFILE_HISTOGRAM_QUANTILES:
        take_histogram(m, entry, outcomes, notes, ret);
        return 0;
    case PROFILE_VALUE:
        v = single(m, first, notes);
        break;
    case PROFILE_COUNTER_GROWTH:
        v = growth(m, first, notes);
        if (m->per_second)
            v = per_second(v, steady);
        break;
    case PROFILE_GROWTH_RATIO:
        v = ratio(growth(m, first, notes), growth(m, &outcomes[entry->parts[1]], notes));
        break;
    }
    ret->values[0] = finished(m, v);
    return 0;
}

void measured_done(struct measured *m)
{
    packing_done(&m->packing);
    *m = (struct measured){0};
}

#include "worker/stats/details.h"

#include <stdlib.h>

const char *stats_phase_name(enum stats_phase phase)
{
    static const char *const names[STATS_PHASE_COUNT] = {"dns", "connect", "tls", "first_byte",
                                                         "body"};
    return names[phase];
}

static int make(struct stats_details **details)
{
    if (!*details)
        *details = calloc(1, sizeof **details);
    return *details ? 0 : -ENOMEM;
}

bool stats_details_record(struct stats_details **details, const struct stats_times *times)
{
    if (make(details) < 0)
        return false;
    struct stats_details *d = *details;
    int lost = 0;
    if (times->service_us != STATS_NO_TIME)
        lost |= histogram_add(&d->service_times, times->service_us, 1);
    for (int i = 0; times->phases_us && i < STATS_PHASE_COUNT; i++) {
        if (times->phases_us[i] != STATS_NO_TIME)
            lost |= histogram_add(&d->phases[i], times->phases_us[i], 1);
    }
    return lost == 0;
}

int stats_details_reserve(struct stats_details **into, const struct stats_details *from)
{
    if (!from)
        return 0;
    int rc = make(into);
    if (rc == 0)
        rc = histogram_reserve(&(*into)->service_times, &from->service_times);
    for (int i = 0; rc == 0 && i < STATS_PHASE_COUNT; i++)
        rc = histogram_reserve(&(*into)->phases[i], &from->phases[i]);
    return rc;
}

int stats_details_merge(struct stats_details **into, const struct stats_details *from)
{
    int rc = stats_details_reserve(into, from);
    if (rc < 0 || !from)
        return rc;
    rc = histogram_merge(&(*into)->service_times, &from->service_times);
    for (int i = 0; rc == 0 && i < STATS_PHASE_COUNT; i++)
        rc = histogram_merge(&(*into)->phases[i], &from->phases[i]);
    return rc; /* 0: the memory is there */
}

void stats_details_clear(struct stats_details *d)
{
    if (!d)
        return;
    histogram_clear(&d->service_times);
    for (int i = 0; i < STATS_PHASE_COUNT; i++)
        histogram_clear(&d->phases[i]);
}

void stats_details_free(struct stats_details *d)
{
    if (!d)
        return;
    histogram_done(&d->service_times);
    for (int i = 0; i < STATS_PHASE_COUNT; i++)
        histogram_done(&d->phases[i]);
    free(d);
}

/* The steady window: the part of a run that the server-side numbers are taken over. Pure. */
#ifndef CICADA_TELEMETRY_WINDOW_H
#define CICADA_TELEMETRY_WINDOW_H

#include <stddef.h>

#define WINDOW_PEAK_SHARE 0.9 /* of the peak users, from which on a sample is steady */

struct window {
    double start_s, end_s; /* Unix time; end_s >= start_s */
};

struct window_sample {
    double wall_s;
    double users; /* of the whole run, all workers together */
};

/* First and last sample with at least 90 % of the peak users, kept within the run; the whole run
 * when there is no sample or nobody was there. Samples may come in any order; those that are not
 * finite are left out. run.end_s below run.start_s is taken as run.start_s. */
struct window window_steady(struct window run, const struct window_sample *samples, size_t count);

#endif

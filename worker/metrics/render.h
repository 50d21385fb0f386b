/* The worker's own metrics as text for Prometheus. Pure: figures in, text out. The number of series
 * is bounded by the bounds of the stats set (entries, errors). Counters count the present run: a
 * new run begins them anew, which Prometheus takes as a restart. Source:
 * prometheus.io/docs/instrumenting/exposition_formats 0.0.4, OpenMetrics 1.0. */
#ifndef CICADA_WORKER_METRICS_RENDER_H
#define CICADA_WORKER_METRICS_RENDER_H

#include "base/buf.h"
#include "worker/engine/engine.h"
#include "worker/scenario/plan.h"
#include "worker/stats/stats.h"

#define METRICS_MAX_BYTES (64u << 20) /* 1,000 entries take 3 MB */

enum metrics_format { METRICS_TEXT, METRICS_OPENMETRICS };

struct metrics_input {
    const struct plan *plan;
    const struct stats *stats; /* of the run so far */
    const struct engine_status *engine;
    const char *state; /* the runner's: "ready", "spawning", "running", … */
    bool saturated;    /* of the last seconds */
};

/* Append the page. 0, -ERANGE, -ENOMEM. */
MUST_USE int metrics_render(struct buf *out, enum metrics_format format,
                            const struct metrics_input *input);

/* The content type of a format. */
const char *metrics_content_type(enum metrics_format format);

/* The format that an Accept header asks for; "" is text. */
enum metrics_format metrics_accepted(struct str accept);

#endif

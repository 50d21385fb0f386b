/* A plan's stages, arrival rate and thresholds in words, for describe.c. */
#ifndef CICADA_WORKER_SCENARIO_DESCRIBE_SHAPE_H
#define CICADA_WORKER_SCENARIO_DESCRIBE_SHAPE_H

#include "base/buf.h"
#include "worker/scenario/plan.h"

/* Appends. 0, -ERANGE, -ENOMEM. */
MUST_USE int describe_shape(const struct plan *p, struct buf *out);

#endif

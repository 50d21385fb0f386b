/* The part of the walker that reads what a run of its own needs beside the user classes: stages,
 * arrival, thresholds. Used by the loader's own files only. */
#ifndef CICADA_WORKER_SCENARIO_LOAD_SHAPE_H
#define CICADA_WORKER_SCENARIO_LOAD_SHAPE_H

#include "worker/scenario/load.h"

/* The values of the keys, or NULL. */
struct shape_nodes {
    const struct node *stages;
    const struct node *arrival;
    const struct node *thresholds;
};

/* Read them into a plan whose classes are loaded. */
MUST_USE int load_shape(struct loader *l, const struct shape_nodes *nodes, struct plan *p);

#endif

/* Rows of traced requests on their way from the engine to the file. The runner's thread. */
#ifndef CICADA_WORKER_RUNNER_TRACES_H
#define CICADA_WORKER_RUNNER_TRACES_H

#include "worker/engine/engine.h"
#include "worker/output/output.h"

/* Of one run; zeroed when it begins. */
struct traces {
    uint64_t left_out; /* by the engine, before the run */
    bool told;         /* that the file does not have all */
};

void traces_begin(struct traces *t, struct engine *e);

/* After samples were taken. output NULL: there is no file, what there is is dropped. */
void traces_pass(struct traces *t, struct engine *e, struct output *output);

/* The run is over: how many are missing. */
void traces_end(const struct traces *t, struct engine *e);

#endif

/* A scenario as a locustfile: Python user classes that do the same, the scenario itself for C
 * workers, and the master's part of the report. Pure but for the files of the scenario. */
#ifndef CICADA_WORKER_LOCUSTFILE_LOCUSTFILE_H
#define CICADA_WORKER_LOCUSTFILE_LOCUSTFILE_H

#include "worker/scenario/plan.h"

/* Append the locustfile of the plan that was loaded from the file path, the same for the same
 * files. What Python workers do otherwise stands in it as a comment, and is given to warn as one
 * line
 * ("shop.yaml: arrival: …").
 * 0, -ERANGE, -ENOMEM, or what reading the files gave; err tells. */
MUST_USE int locustfile_add(const struct plan *plan, const char *path, plan_fault_fn *warn,
                            void *context, struct buf *out, struct err *err);

#endif

/* A scenario as a locustfile: Python user classes that do the same, the scenario itself for C
 * workers, and the master's part of the report. Pure but for the files of the scenario. */
#ifndef CICADA_WORKER_LOCUSTFILE_LOCUSTFILE_H
#define CICADA_WORKER_LOCUSTFILE_LOCUSTFILE_H

#include "worker/scenario/plan.h"

/* Append the locustfile of the plan that was loaded from the file path. 0, -ERANGE, -ENOMEM, or
 * what reading the file gave, which err tells. */
MUST_USE int locustfile_add(const struct plan *plan, const char *path, struct buf *out,
                            struct err *err);

#endif

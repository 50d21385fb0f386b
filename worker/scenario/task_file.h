/* Tasks in C from a shared object (include/cicada.h). It stays loaded until the process ends: its
 * code may be on some stack, and a crash in it is to have names. */
#ifndef CICADA_WORKER_SCENARIO_TASK_FILE_H
#define CICADA_WORKER_SCENARIO_TASK_FILE_H

#include "worker/scenario/plan.h"

/* A path that names one: it ends in ".so". */
bool task_file_is_one(const char *path);

/* Load it and make its plan. What the object does when it is loaded (constructors) is done now.
 * -EINVAL: the linker's reason, another interface, or as plan_load_native; -ENOMEM. */
MUST_USE int task_file_load(const char *path, const struct plan_tags *tags, struct plan **ret,
                            struct err *err);

#endif

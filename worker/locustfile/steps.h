/* The steps of a task as the body of a Python method. Pure; any thread. */
#ifndef CICADA_WORKER_LOCUSTFILE_STEPS_H
#define CICADA_WORKER_LOCUSTFILE_STEPS_H

#include "worker/locustfile/script.h"

/* The lines of a task, indented; a task without steps gives "pass". */
void steps_write(struct script *s, const struct plan *plan, const struct plan_task *task,
                 unsigned indent);

#endif

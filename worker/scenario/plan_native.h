/* A plan made of user classes in C (include/cicada.h) in place of a scenario file. */
#ifndef CICADA_WORKER_SCENARIO_PLAN_NATIVE_H
#define CICADA_WORKER_SCENARIO_PLAN_NATIVE_H

#include "worker/scenario/plan.h"

/* The test must outlive the plan; source stands for it in messages. -EINVAL with one line in err:
 * "tasks.so: users[0].tasks[1]: has no function to run", or that it was built with a newer header;
 * -ENOMEM. */
MUST_USE int plan_load_native(const struct cicada_test *test, const char *source,
                              const struct plan_tags *tags, struct plan **ret, struct err *err);

#endif

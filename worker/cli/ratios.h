/* What Locust answers without a run: which user classes there are (--list), and which share of the
 * users and of the tasks each class and task has (--show-task-ratio, --show-task-ratio-json). The
 * texts are Locust's, to the byte. Pure. */
#ifndef CICADA_WORKER_CLI_RATIOS_H
#define CICADA_WORKER_CLI_RATIOS_H

#include "worker/output/pen.h"
#include "worker/scenario/plan.h"

#include <stdbool.h>

void ratios_list(struct pen *p, const struct plan *plan);

/* wanted says of each class whether it takes part; NULL: all do. users is --users, 0 when it was
 * not given: fixed counts and rounding make the shares depend on it. */
void ratios_text(struct pen *p, const struct plan *plan, const bool *wanted, uint64_t users);
void ratios_json(struct pen *p, const struct plan *plan, const bool *wanted, uint64_t users);

#endif

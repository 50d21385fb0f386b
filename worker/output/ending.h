/* What is said at the end of a run, below Locust's tables: thresholds, what became of the requests,
 * whether the generator is to be believed, the cluster, where the results are. Pure text. */
#ifndef CICADA_WORKER_OUTPUT_ENDING_H
#define CICADA_WORKER_OUTPUT_ENDING_H

#include "worker/output/pen.h"
#include "worker/report/report.h"

/* folder: of the results, or NULL. */
void ending_text(struct pen *p, const struct report *r, const char *folder);

#endif

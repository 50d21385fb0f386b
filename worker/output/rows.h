/* stats.jsonl: one JSON object a line. A row for each stats entry, then trial_summary,
 * server_summary and generator. Measurements are texts, or null where nothing was measured; zero is
 * a measured zero. Pure; whoever owns the report. */
#ifndef CICADA_WORKER_OUTPUT_ROWS_H
#define CICADA_WORKER_OUTPUT_ROWS_H

#include "base/buf.h"
#include "worker/report/report.h"

/* Append all rows. server_flat is for a report without one; NULL: an empty object.
 * 0, -ERANGE, -ENOMEM. */
MUST_USE int rows_add(struct buf *b, const struct report *r, const json_t *server_flat);

/* Is there a row of an entry? What status.json calls stats_generated. */
bool rows_any(const struct report *r);

#endif

/* The files of a results folder that are written at the end, from one report. Blocking. */
#ifndef CICADA_WORKER_OUTPUT_RESULTS_H
#define CICADA_WORKER_OUTPUT_RESULTS_H

#include "base/buf.h"
#include "telemetry/profile.h"
#include "worker/report/report.h"

/* Could each of them be written? 0, the errno (err names the path). */
MUST_USE int results_try(const char *folder, struct err *err);

/* stats.jsonl, server_summary.json, report.html (page: its text) and histograms.json.gz. profile is
 * for a report without a server document; NULL: no server_summary.json then.
 * 0, or the first error, when all were tried; *failures counts them. */
MUST_USE int results_write(const char *folder, const struct report *r, struct str page,
                           const struct profile *profile, unsigned *failures, struct err *err);

/* status.json: last of all, for it says how the rest went. */
MUST_USE int results_status(const char *folder, const struct report *r, int exit_code,
                            struct err *err);

/* The page, for whoever wants it. 0, -ERANGE, -ENOMEM. */
#define RESULTS_MAX_BYTES (512u << 20) /* of one file */
MUST_USE int results_page(struct buf *b, const struct report *r);

#endif

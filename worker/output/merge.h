/* `cicada merge`: the results of several workers or runs as one folder. Counts and histograms are
 * added, so percentiles of the whole are as exact as those of the parts. The history adds up what
 * was seen in the same second; percentiles of a second cannot be added and are kept only where one
 * part alone saw it. stats_history.csv and the server's part are not made; traces.txt has the rows
 * of all. Blocking. */
#ifndef CICADA_WORKER_OUTPUT_MERGE_H
#define CICADA_WORKER_OUTPUT_MERGE_H

#include "base/err.h"
#include "worker/report/report.h"

#include <stddef.h>

#define MERGE_MAX_FOLDERS 10000 /* far more workers than a test has */

/* Read histograms.json.gz of each folder (or such files themselves) and write the folder out.
 * 0 with the requests of the whole in *ret; -EINVAL (nothing to merge, a folder given twice, out is
 * one of them), -EPROTO (a bad file; err names it), the errno of reading or writing, -ENOMEM.
 * Nothing is written unless all could be read. */
MUST_USE int merge_results(const char *const *folders, size_t count, const char *out,
                           struct report_requests *ret, struct err *err);

#endif

/* histograms.json.gz: everything a run counted, without loss, so that results can be merged and
 * percentiles of the whole be told later. It is JSON, compressed by gzip (whose checksum tells a
 * damaged file); any tool reads it. Times are microseconds in pairs [lowest of the step, count, …],
 * Locust's buckets are milliseconds. Pure; what is read is foreign and checked.
 *
 *   {"format": "cicada-histograms", "version": 1, …, "entries": [{"method": "GET", "name": "/",
 *    "num_requests": 3, …, "response_times_us": [350, 2, 4096, 1], …}], "errors": […], …} */
#ifndef CICADA_WORKER_OUTPUT_KEEP_H
#define CICADA_WORKER_OUTPUT_KEEP_H

#include "base/buf.h"
#include "worker/report/report.h"

#define KEEP_FILE      "histograms.json.gz"
#define KEEP_VERSION   1
#define KEEP_MAX_BYTES (512u << 20) /* of the JSON: ten thousand entries with full histograms */
#define KEEP_MAX_COUNT (INT64_C(1) << 60) /* of anything: sums of a few stay within 64 bits */
#define KEEP_MAX_NAMES 1000000            /* entries, errors, exceptions: whatever was kept */

/* A report made from a file; its pointers lead into the rest. */
struct kept {
    struct report report;
    struct stats *stats;
    struct history history;
    struct stats_csv_exception *exceptions;
    struct str *nodes; /* of all exceptions */
    json_t *root;      /* owns all texts */
};

/* Append the bytes of the file. 0, -ERANGE, -ENOMEM. */
MUST_USE int keep_encode(struct buf *b, const struct report *r);

/* ret is written in any case; kept_done it. 0; -EPROTO (not such a file, damaged, counts that
 * contradict each other, a later version), -ERANGE (too large), -ENOMEM. */
MUST_USE int keep_decode(struct str bytes, struct kept *ret, struct err *err);
/* The same from the JSON inside. */
MUST_USE int keep_decode_json(struct str json, struct kept *ret, struct err *err);
void kept_done(struct kept *k);

#endif

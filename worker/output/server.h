/* What is said of servers that were not asked: the document and the row of a telemetry profile with
 * every value null. Pure. (A header of its own, for telemetry and scenarios each have a plan.) */
#ifndef CICADA_WORKER_OUTPUT_SERVER_H
#define CICADA_WORKER_OUTPUT_SERVER_H

#include "base/buf.h"
#include "base/measure.h"
#include "telemetry/profile.h"

struct server_head {
    const char *test_name, *tag, *timestamp; /* NULL: null */
    double start_s, end_s;                   /* of the run */
    struct measure worker_pod_count;
};

/* New references. 0, -ENOMEM (both untouched). */
MUST_USE int server_nulls(const struct profile *profile, const struct server_head *head,
                          json_t **ret_document, json_t **ret_flat);

/* Append a document as server_summary.json holds it. 0, -ERANGE, -ENOMEM. */
MUST_USE int server_text(struct buf *b, const json_t *document);

#endif

/* server_summary.json and its flat form, from what was measured. Pure. Every name of the profile is
 * there, null where nothing is known. */
#ifndef CICADA_TELEMETRY_SUMMARY_H
#define CICADA_TELEMETRY_SUMMARY_H

#include "telemetry/measured.h"

/* What "metadata" tells. NULL texts are null. */
struct summary_head {
    const char *test_name, *tag, *data_timestamp;
    const char *url; /* as given; shown without user-info */
    struct window run, steady;
    double lag_s;
    struct measure worker_pod_count;
    size_t queries_ok, queries_failed;
};

/* The document; measured holds profile->count. NULL when out of memory. */
json_t *summary_document(const struct summary_head *head, const struct profile *profile,
                         const struct measured *measured);

/* {name: text or null, …} as the row "server_summary" and the master get it. NULL when out of
 * memory. */
json_t *summary_flat(const struct profile *profile, const struct measured *measured);

/* Append the document as a file holds it: strict JSON, indented, ending in a newline. 0, -ERANGE,
 * -ENOMEM. */
MUST_USE int summary_write(struct buf *b, const json_t *document);

#endif

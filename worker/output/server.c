#include "worker/output/server.h"

#include "telemetry/summary.h"

#include <stdlib.h>

int server_nulls(const struct profile *profile, const struct server_head *head,
                 json_t **ret_document, json_t **ret_flat)
{
    const struct summary_head h = {
        .test_name = head->test_name,
        .tag = head->tag,
        .data_timestamp = head->timestamp,
        .run = {head->start_s, head->end_s},
        .steady = {(double)NAN, (double)NAN}, /* null */
        .lag_s = profile->lag_s,
        .worker_pod_count = head->worker_pod_count,
    };
    struct measured *nothing = calloc(profile->count + 1, sizeof *nothing);
    json_t *document = nothing ? summary_document(&h, profile, nothing) : NULL;
    json_t *flat = document ? summary_flat(profile, nothing) : NULL;
    free(nothing); /* it owns nothing */
    if (!flat) {
        json_decref(document);
        return -ENOMEM;
    }
    *ret_document = document;
    *ret_flat = flat;
    return 0;
}

int server_text(struct buf *b, const json_t *document)
{
    return summary_write(b, document);
}

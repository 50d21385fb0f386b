#include "worker/engine/http_kept.h"

#include "worker/engine/http_parser.h"

#include <stdlib.h>

struct http_kept *http_kept_take(struct http_keeper *keeper, const struct http_call *call)
{
    struct http_kept *k = keeper->spare;
    if (k) {
        keeper->spare = k->next;
        keeper->spare_count--;
    } else if (!(k = calloc(1, sizeof *k))) {
        return NULL;
    }
    k->keeper = keeper;
    k->head.max = HTTP_PARSER_MAX_HEAD_BYTES;
    k->body.max = call->wants_body_bytes;
    buf_clear(&k->head);
    buf_clear(&k->body);
    return k;
}

static void free_kept(struct http_kept *k)
{
    buf_done(&k->head);
    buf_done(&k->body);
    free(k);
}

void http_kept_release(struct http_kept *k)
{
    if (!k)
        return;
    struct http_keeper *keeper = k->keeper;
    if (keeper->spare_count == HTTP_KEPT_SPARE ||
        k->head.cap + k->body.cap > HTTP_KEPT_SPARE_BYTES) {
        free_kept(k);
        return;
    }
    k->next = keeper->spare;
    keeper->spare = k;
    keeper->spare_count++;
}

void http_keeper_done(struct http_keeper *keeper)
{
    while (keeper->spare) {
        struct http_kept *k = keeper->spare;
        keeper->spare = k->next;
        free_kept(k);
    }
    keeper->spare_count = 0;
}

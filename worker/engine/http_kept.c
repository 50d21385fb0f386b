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
    k->wants_head = call->wants_head;
    k->wants_body_bytes = call->wants_body_bytes;
    k->cut = false;
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

void http_kept_head(struct http_kept *k, struct str head)
{
    if (k->wants_head && buf_add(&k->head, head) < 0)
        k->cut = true;
}

void http_kept_body(struct http_kept *k, struct str bytes)
{
    size_t room = k->wants_body_bytes - k->body.len;
    if (k->wants_body_bytes == 0 || k->cut)
        return;
    if (bytes.len > room || buf_add(&k->body, bytes) < 0)
        k->cut = true;
}

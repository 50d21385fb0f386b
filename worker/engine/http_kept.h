/* Copies of what is wanted of a response: its head and the beginning of its body. The buffers
 * belong to the shard and go from one response to the next, so that a user that waits has none. The
 * shard's thread only. */
#ifndef CICADA_WORKER_ENGINE_HTTP_KEPT_H
#define CICADA_WORKER_ENGINE_HTTP_KEPT_H

#include "base/buf.h"
#include "worker/engine/http.h"

#define HTTP_KEPT_SPARE       256   /* kept ready by a shard */
#define HTTP_KEPT_SPARE_BYTES 65536 /* of each of them; larger ones are given back */

struct http_keeper {
    struct http_kept *spare;
    size_t spare_count;
};

struct http_kept {
    struct http_kept *next;
    struct http_keeper *keeper;
    struct buf head, body;
};

/* NULL: no memory. */
struct http_kept *http_kept_take(struct http_keeper *keeper, const struct http_call *call);
/* NULL is nothing. */
void http_kept_release(struct http_kept *k);
void http_keeper_done(struct http_keeper *keeper);

#endif

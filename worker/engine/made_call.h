/* Requests that are made when they are sent, because they have variables. One is made by a user for
 * the time of its request and then goes back to the shard with its memory. The shard's thread
 * only. */
#ifndef CICADA_WORKER_ENGINE_MADE_CALL_H
#define CICADA_WORKER_ENGINE_MADE_CALL_H

#include "base/buf.h"
#include "worker/engine/http.h"

struct shard;
struct user;

#define MADE_CALL_MAX_BYTES  ((size_t)PLAN_MAX_FILE_BYTES * 6) /* a body, as a plan's own */
#define MADE_CALL_MAX_SPARE  1024  /* kept by a shard; a busy one has as many under way */
#define MADE_CALL_KEEP_BYTES 65536 /* of one that is kept */

struct made_call {
    struct made_call *next; /* spare */
    struct http_call call;
    struct plan_header *headers;
    size_t header_room;
    struct buf raw, url, values, body;
    struct str name; /* of its stats entry, when the plan has none */
    struct buf name_text;
    const char *error; /* why it could not be made; NULL: it was */
    struct buf error_text;
};

/* Make a request from a plan's; bound is the plan's with the user's host. Its url may be empty.
 * The call is there in any case but -ENOMEM, with a name to count it by.
 * 0; -EINVAL: error says why it cannot be sent; -ENODATA: a feed is at its end; -ENOMEM. */
MUST_USE int made_call_new(struct user *u, const struct plan_request *request,
                           const struct http_call *bound, uint64_t now_us, struct made_call **ret);

/* Back to the shard; NULL is nothing. */
void made_call_release(struct made_call *m, struct shard *s);
void made_call_free_all(struct shard *s);

#endif

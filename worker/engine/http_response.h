/* What an engine keeps of the response it is reading, the same for both: they differ in how bytes
 * come, not in what becomes of them. Belongs to a client; the shard's thread only.
 *
 * What is wanted of a response is not copied as long as it lies in one piece in the engine's
 * buffer, which is so for most: http_response_settle is called before that buffer is used again. */
#ifndef CICADA_WORKER_ENGINE_HTTP_RESPONSE_H
#define CICADA_WORKER_ENGINE_HTTP_RESPONSE_H

#include "worker/engine/content_decoder.h"
#include "worker/engine/http.h"
#include "worker/engine/http_kept.h"
#include "worker/engine/http_parser.h"

#include <stdlib.h>

struct http_response {
    uint64_t body_bytes; /* decoded */
    char *location;      /* of a redirect, or NULL; owned */
    struct content_decoder *decoder;
    enum content_coding coding;
    bool cut;                     /* not all of the body that is wanted is there */
    const struct http_call *call; /* it wants something of it; NULL: nothing */
    struct str head, body;        /* views of that, while they can be */
    struct http_keeper *keeper;
    struct http_kept *kept; /* copies of it; NULL: there are none */
};

static inline void http_response_forget(struct http_response *r)
{
    if (r->location) {
        free(r->location);
        r->location = NULL;
    }
    if (r->kept) {
        http_kept_release(r->kept);
        r->kept = NULL;
    }
}

/* The response to a call begins; a zeroed struct is ready for the first one. */
static inline void http_response_begin(struct http_response *r, const struct http_call *call,
                                       const struct http_engine_setup *setup)
{
    r->body_bytes = 0;
    r->coding = CONTENT_PLAIN;
    http_response_forget(r);
    r->call = NULL;
    if (call->wants_head || call->wants_body_bytes) {
        r->call = call;
        r->keeper = setup->keeper;
        r->head = r->body = (struct str){NULL, 0};
        r->cut = false;
    }
}

/* Copy what is only viewed: the buffer under it is about to change. */
void http_response_copy(struct http_response *r);

static inline void http_response_settle(struct http_response *r)
{
    if (r->call && (r->head.ptr || r->body.ptr))
        http_response_copy(r);
}

/* Give back what is not needed between two responses. */
static inline void http_response_end(struct http_response *r)
{
    if (r->decoder) {
        content_decoder_free(r->decoder);
        r->decoder = NULL;
    }
}

static inline void http_response_done(struct http_response *r)
{
    http_response_forget(r);
    http_response_end(r);
}

/* Put what was kept into the result; the caller releases it when the result is used up. A body that
 * is viewed gets its NUL: the buffer has a byte behind the last one, and nothing of it is needed
 * any more. */
static inline struct http_kept *http_response_take_kept(struct http_response *r,
                                                        struct http_result *result)
{
    struct http_kept *kept = r->kept;
    if (!r->call)
        return NULL;
    result->head = kept && !r->head.ptr ? buf_str(&kept->head) : r->head;
    result->body = kept && !r->body.ptr ? buf_str(&kept->body) : r->body;
    result->body_cut = r->cut;
    if (r->body.ptr)
        *(char *)(uintptr_t)(r->body.ptr + r->body.len) = '\0';
    r->call = NULL;
    r->kept = NULL;
    return kept;
}

/* Take from the head what is wanted of it; after HTTP_EVENT_HEAD. */
void http_response_head(struct http_response *r, const struct http_parser *p,
                        const struct http_engine_setup *setup, void *owner);

/* Count a piece of the body. HTTP_FAILURE_NONE, MALFORMED (its coding is corrupt), MEMORY. */
enum http_failure http_response_decode(struct http_response *r, struct str bytes);

/* Keep what is wanted of a piece of the body that the first one is not alone. */
void http_response_keep_more(struct http_response *r, struct str bytes);

static inline void http_response_keep(struct http_response *r, struct str bytes)
{
    if (!r->body.ptr && !r->kept && bytes.len <= r->call->wants_body_bytes)
        r->body = bytes;
    else
        http_response_keep_more(r, bytes);
}

static inline enum http_failure http_response_body(struct http_response *r, struct str bytes)
{
    if (__builtin_expect(r->coding != CONTENT_PLAIN, 0))
        return http_response_decode(r, bytes);
    r->body_bytes += bytes.len;
    if (r->call)
        http_response_keep(r, bytes);
    return HTTP_FAILURE_NONE;
}

/* Is the body of no use but for its length? */
static inline bool http_response_only_counts(const struct http_response *r)
{
    return r->coding == CONTENT_PLAIN && (!r->call || r->call->wants_body_bytes == 0);
}

/* The framing is complete: is a coded body complete as well? */
static inline bool http_response_whole(const struct http_response *r)
{
    return !r->decoder || content_decoder_ended(r->decoder);
}

#endif

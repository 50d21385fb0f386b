/* What an engine keeps of the response it is reading, the same for both: they differ in how bytes
 * come, not in what becomes of them. Belongs to a client; the shard's thread only. */
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
    struct http_kept *kept; /* what the call wants of it; NULL: nothing */
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

/* The response to a call begins; a zeroed struct is ready for the first one. False: no memory. */
static inline bool http_response_begin(struct http_response *r, const struct http_call *call,
                                       const struct http_engine_setup *setup)
{
    r->body_bytes = 0;
    r->coding = CONTENT_PLAIN;
    http_response_forget(r);
    if (__builtin_expect(call->wants_head || call->wants_body_bytes, 0))
        return (r->kept = http_kept_take(setup->keeper, call)) != NULL;
    return true;
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

/* Put what was kept into the result; the caller releases it when the result is used up. */
static inline struct http_kept *http_response_take_kept(struct http_response *r,
                                                        struct http_result *result)
{
    struct http_kept *kept = r->kept;
    if (kept) {
        result->head = buf_str(&kept->head);
        result->body = buf_str(&kept->body);
        result->body_cut = kept->cut;
        r->kept = NULL;
    }
    return kept;
}

/* Take from the head what is wanted of it; after HTTP_EVENT_HEAD. */
void http_response_head(struct http_response *r, const struct http_parser *p,
                        const struct http_engine_setup *setup, void *owner);

/* Count a piece of the body. HTTP_FAILURE_NONE, MALFORMED (its coding is corrupt), MEMORY. */
enum http_failure http_response_decode(struct http_response *r, struct str bytes);

static inline enum http_failure http_response_body(struct http_response *r, struct str bytes)
{
    if (__builtin_expect(r->coding != CONTENT_PLAIN, 0))
        return http_response_decode(r, bytes);
    r->body_bytes += bytes.len;
    if (r->kept)
        http_kept_body(r->kept, bytes);
    return HTTP_FAILURE_NONE;
}

/* The framing is complete: is a coded body complete as well? */
static inline bool http_response_whole(const struct http_response *r)
{
    return !r->decoder || content_decoder_ended(r->decoder);
}

#endif

/* A request as bytes: what the fast engine sends, made once when a plan is bound to a host. Pure;
 * immutable afterwards and read by all shards. */
#ifndef CICADA_WORKER_ENGINE_HTTP_REQUEST_H
#define CICADA_WORKER_ENGINE_HTTP_REQUEST_H

#include "base/err.h"
#include "worker/engine/http.h"

#define HTTP_REQUEST_MAX_BYTES (256u << 20) /* a plan's bodies are bounded already */

/* Where a request goes. */
struct http_origin {
    bool tls;
    struct str host; /* without brackets; NUL-terminated */
    struct str zone; /* of an IPv6 address; ptr NULL: none */
    unsigned port;
};

struct http_request {
    struct http_origin origin;
    struct str bytes; /* head and body */
    size_t head_len;  /* of the head without its last CRLF, where headers may be added */
    size_t body_at;
    bool idempotent; /* may be sent again when a kept-alive connection turns out to be closed */
    bool no_body;    /* HEAD: the response has none */
    bool close;      /* the user's own "Connection: close" */
    char text[];
};

/* May a request of this method be sent twice (RFC 9110 9.2.2)? */
bool http_method_idempotent(struct str method);

/* Does the user's own "Connection: close" end the connection? */
bool http_call_closes(const struct http_call *call);

/* 0; -EINVAL (the call's URL is none); -ERANGE; -ENOMEM. Free with free(). */
MUST_USE int http_request_new(const struct http_call *call, struct http_request **ret);

#endif

/* Bounded HTTP requests, many at once, each with a deadline: what the cluster facts and the server
 * telemetry ask. It owns connections for the time of one call and keeps nothing between calls. It
 * blocks, so it belongs to the report thread, never to the runner or a shard; any thread may call
 * it as long as curl_global_init was called before. It does not retry, cache or log.
 *
 * Proxies come from the environment as curl reads it (http_proxy, HTTPS_PROXY, NO_PROXY, …). No
 * text made here holds user-info, query strings, tokens or bodies. */
#ifndef CICADA_PROTO_HTTP_HTTP_H
#define CICADA_PROTO_HTTP_HTTP_H

#include "base/buf.h"

#include <stdint.h>

#define HTTP_ERROR_BYTES      256          /* one line about one request */
#define HTTP_TYPE_BYTES       128          /* of a content type; longer ones are cut */
#define HTTP_ERROR_BODY_BYTES (64u * 1024) /* of an answer that is not 2xx; the rest is dropped */
#define HTTP_REDIRECTS_MAX    5            /* when they are followed at all */

/* PEM text by path or by value; data wins when both are there. Zeroed: none. */
struct http_pem {
    const char *file;
    struct str data;
};

/* Zeroed: the system's authorities, no client certificate, the name in the URL. */
struct http_tls {
    struct http_pem ca; /* trusted instead of the system's */
    struct http_pem cert, key;
    const char *server_name; /* asked for and checked instead of the URL's host, or NULL */
    bool insecure;           /* check nothing */
};

/* Takes the next part of a 2xx body, already decoded. A negative errno ends the request with that
 * code. Called on the thread of http_fetch. */
typedef int http_sink(void *arg, struct str bytes);

/* Borrowed for the time of the call. timeout_ms and max_bytes must be set, all else may be zero. */
struct http_query {
    const char *url;            /* absolute, http or https; user-info in it is basic auth */
    const char *method;         /* NULL: POST with a body, else GET */
    struct str body;            /* sent when its ptr is not NULL */
    const char *const *headers; /* "Name: value" */
    size_t header_count;
    const char *bearer_token;        /* either this … */
    const char *username, *password; /* … or these */
    const char *proxy;               /* NULL: from the environment; "": none */
    struct http_tls tls;
    unsigned timeout_ms;   /* from the call to the last byte; > 0 */
    size_t max_bytes;      /* of the decoded body */
    bool follow_redirects; /* else a 3xx is the answer; credentials stay on the host */
    http_sink *sink;       /* NULL: the body goes to the answer */
    void *sink_arg;
};

/* code is 0 when an HTTP answer came in whole, whatever its status. Otherwise: -ETIMEDOUT,
 * -ECONNREFUSED, -EHOSTUNREACH, -ENOENT (name not found), -ECONNRESET (closed or cut short),
 * -EKEYREJECTED (TLS), -EPROTO (not HTTP), -ERANGE (over max_bytes), -EINVAL (a bad URL, header or
 * token), -ENOMEM, -ECANCELED, -EIO (anything else), or what the sink returned.
 * error is "" only for a whole 2xx answer; otherwise one readable line: "timed out after 5 s",
 * "connection refused", "HTTP 403", "HTTP 302, redirect to https://login.example/", … */
struct http_answer {
    int code;
    int status; /* 0 when none came */
    char content_type[HTTP_TYPE_BYTES];
    char error[HTTP_ERROR_BYTES];
    struct buf body;      /* empty when a sink took it; the error's page when not 2xx */
    uint64_t duration_us; /* from the call to the end */
};

static inline bool http_answer_ok(const struct http_answer *a)
{
    return a->code == 0 && a->status >= 200 && a->status < 300;
}

/* Perform all requests at once and return when the last has ended, which no timeout can exceed by
 * more than scheduling. ret_answers holds count answers, storage of the caller, written in any
 * case; http_answer_done each.
 *   abort_fd  a descriptor (an eventfd) whose becoming readable ends all that still run, with
 *             -ECANCELED; it is not read from. -1: none
 * Returns 0 when every request was tried, or -ENOMEM, which each answer then says too. */
MUST_USE int http_fetch(const struct http_query *requests, size_t count, int abort_fd,
                        struct http_answer *ret_answers);
void http_answer_done(struct http_answer *a);

/* Append s percent-encoded: all but A-Z a-z 0-9 - . _ ~. 0, -ERANGE, -ENOMEM. */
MUST_USE int http_escape(struct buf *b, struct str s);

/* Append url without user-info, query and fragment, fit to be shown. 0; -EINVAL (not an absolute
 * http or https URL; nothing is appended); -ERANGE; -ENOMEM. */
MUST_USE int http_url_shown(struct buf *b, const char *url);

#endif

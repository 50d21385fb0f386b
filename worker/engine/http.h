/* The seam between users and the HTTP engines: what a request is, how it ended, and the few
 * operations an engine has. An engine belongs to one shard and works inside the shard's epoll loop;
 * it never blocks. A client is one user's: its connections and cookies are shared with nobody. */
#ifndef CICADA_WORKER_ENGINE_HTTP_H
#define CICADA_WORKER_ENGINE_HTTP_H

#include "base/err.h"
#include "base/str.h"
#include "worker/scenario/plan.h"

#include <stdbool.h>
#include <stdint.h>

struct http_keeper;
struct timers;

/* How a request failed. The texts (http_failure_text) are what Locust's failure tables show: few
 * and fixed, so that a broken server does not make a row of its own for each request. */
enum http_failure {
    HTTP_FAILURE_NONE, /* a whole response came, whatever its status */
    HTTP_FAILURE_NAME,
    HTTP_FAILURE_REFUSED,
    HTTP_FAILURE_CONNECT_TIMEOUT,
    HTTP_FAILURE_UNREACHABLE,
    HTTP_FAILURE_TLS,
    HTTP_FAILURE_CERTIFICATE,
    HTTP_FAILURE_RESET,
    HTTP_FAILURE_CLOSED,
    HTTP_FAILURE_TIMEOUT,
    HTTP_FAILURE_MALFORMED,
    HTTP_FAILURE_HEADERS_TOO_LARGE,
    HTTP_FAILURE_NO_HTTP2,
    HTTP_FAILURE_STREAM,
    HTTP_FAILURE_PROXY,
    HTTP_FAILURE_TOO_MANY_REDIRECTS,
    HTTP_FAILURE_BAD_REDIRECT,
    HTTP_FAILURE_NO_DESCRIPTORS,
    HTTP_FAILURE_NO_PORTS,
    HTTP_FAILURE_MEMORY,
    HTTP_FAILURE_OTHER,
    HTTP_FAILURE_COUNT,
};

struct str http_failure_text(enum http_failure failure);

/* What an errno says when a connection is being made, and on one that stands. */
enum http_failure http_failure_of_errno(int error);
enum http_failure http_transfer_failure(int error);

/* "HTTP status 404"; the text lives for ever. */
struct str http_status_text(unsigned status);

/* One request as an engine sends it. Everything outlives the request. */
struct http_call {
    struct str method;
    struct str url; /* absolute http or https; NUL-terminated */
    const struct plan_header *headers;
    size_t header_count;
    struct str body;  /* ptr NULL: none */
    struct str added; /* a header more, "name: value", NUL-terminated; it may have come after
                       * prepare. ptr NULL: none */
    struct plan_timeouts timeouts;
    size_t wants_body_bytes; /* so much of the response's body is wanted with the result, */
    bool wants_head;         /* and its head */
    bool once;      /* made for one request: the next one at this address may be another one */
    void *prepared; /* the engine's, by http_ops.prepare */
};

struct http_result {
    enum http_failure failure;
    unsigned status; /* 0 when there was no response */
    uint64_t body_bytes;
    struct str location; /* of a 3xx, as the server wrote it; ptr NULL: none. During the callback */
    const uint64_t *phases_us; /* by enum stats_phase; NULL: not measured. During the callback */
    struct str head;           /* for http_parser_header, when it was wanted. During the callback */
    struct str body;           /* decoded, when it was wanted; the same */
    bool body_cut;             /* it is longer than was wanted */
};

struct http_client;

/* Called from the loop when a request ended, never from within begin. It may begin the next request
 * of the same client. owner is what client_new was given. */
typedef void http_done_fn(void *owner, const struct http_result *result, uint64_t now_us);

/* Called for each Set-Cookie header of a response, when its head is complete and so before
 * http_done_fn, also when the rest of it then fails. value is borrowed. Nothing of the client may
 * be begun or freed within. */
typedef void http_set_cookie_fn(void *owner, struct str value);

/* Counted by an engine for the shard. */
struct http_counters {
    uint64_t connections_opened;
    uint64_t connections_failed;
    uint64_t sockets; /* open now */
    uint64_t sockets_peak;
    uint64_t retries; /* requests sent anew on a fresh connection: the kept-alive one was closed */
};

struct http_engine_setup {
    int epoll_fd; /* the shard's; data.ptr of what the engine adds is a struct loop_source */
    struct timers *timers;     /* the shard's */
    bool phases;               /* measure the phases of each request */
    const struct str *sources; /* local addresses to connect from, in turn; NUL-terminated */
    size_t source_count;       /* 0: the kernel chooses */
    bool http2;                /* whatever the classes say; only for the curl engine, as the next */
    struct str proxy;          /* before the classes' own; ptr NULL: theirs. NUL-terminated */
    struct http_counters *counters;
    struct http_keeper *keeper; /* the shard's, for what is wanted of responses */
    http_done_fn *done;
    http_set_cookie_fn *set_cookie;
};

/* What the shard's loop finds in epoll_event.data.ptr. */
struct loop_source {
    void (*ready)(struct loop_source *source, uint32_t events, uint64_t now_us);
};

struct http_engine;

struct http_ops {
    const char *name;
    /* Once for each shard, before its thread starts. 0, -ENOMEM. */
    int (*open)(const struct http_engine_setup *setup, struct http_engine **ret);
    void (*close)(struct http_engine *engine);
    /* Work that is neither a socket's nor a timer's; called at the end of each turn of the loop.
     * True when it wants the next turn at once. */
    bool (*turn)(struct http_engine *engine, uint64_t now_us);
    /* Make the unchanging parts of a call ready (call->prepared); any thread. 0, -ENOMEM. */
    int (*prepare)(struct http_call *call);
    void (*unprepare)(struct http_call *call);
    /* For a user of a class, which says how TLS, HTTP version and proxy are to be; it outlives the
     * client. NULL: no memory. */
    struct http_client *(*client_new)(struct http_engine *engine, void *owner,
                                      const struct plan_class *class);
    /* A request that is under way is cut, without a callback. */
    void (*client_free)(struct http_client *client);
    /* Send a prepared call; one at a time for each client. cookies is the value of a Cookie header
     * to add, NUL-terminated, or empty; borrowed for the call. HTTP_FAILURE_NONE: the callback will
     * come; else nothing was begun and none will. */
    enum http_failure (*begin)(struct http_client *client, const struct http_call *call,
                               struct str cookies, uint64_t now_us);
};

extern const struct http_ops http_fast_ops;
extern const struct http_ops http_curl_ops;

#endif

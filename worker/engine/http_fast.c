/* The fast engine: HTTP/1.1 straight on the shard's epoll loop. A request is bytes that were made
 * beforehand and go out with one send; the response is read into one buffer of the shard and parsed
 * where it lies; a connection stays registered in the epoll set for its whole life. So a request on
 * a kept-alive connection costs a send, a receive, a share of an epoll_wait and one look at the
 * clock, and no memory is taken or given back.
 *
 * A client (one user) has one connection for each origin it talks to, used by one request at a
 * time. */
#include "worker/engine/http_fast.h"

#include "base/clock.h"
#include "worker/engine/http.h"
#include "worker/engine/http_parser.h"
#include "worker/engine/http_request.h"
#include "worker/engine/http_response.h"
#include "worker/engine/resolver.h"
#include "worker/engine/sources.h"
#include "worker/engine/timers.h"
#include "worker/engine/tls.h"
#include "worker/stats/details.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READ_BYTES 65536

/* A body that is only counted is not copied out of the kernel. To find its beginning the head is
 * read with little behind it; that takes a second call, which pays from here on. */
#define LARGE_BODY_BYTES 6144
#define HEAD_READ_BYTES  1024
#define SKIP_BYTES       (1u << 20)

/* Told once of what comes, not again with each turn until it is read: that spares the kernel a look
 * at each socket. A read that gets less than it asked for has got all there was; the end of the
 * connection alone must be told beside. TLS reads record by record and is told again. */
#define READABLE (EPOLLIN | EPOLLRDHUP | EPOLLET)
#define MAX_CONNECTIONS                                                                            \
    8 /* of one client, to different origins; the oldest is closed for a new one */

#define MEMOS 16 /* a power of two */

#define LEAD_BODY_BYTES 16384 /* a body up to this goes out with the head in one send */

enum phase {
    PHASE_CLOSED,
    PHASE_RESOLVING,
    PHASE_CONNECTING,
    PHASE_HANDSHAKE,
    PHASE_IDLE, /* connected, no request under way */
    PHASE_BUSY, /* a request is being sent or its response read */
};

/* Where connections go: an origin, its addresses, its TLS session; for each user class that wants
 * other TLS. Lives as long as the engine. */
struct target {
    struct target *next;
    struct http_origin origin;
    struct tls_terms terms;
    struct resolver_name *name;
    SSL_SESSION *session; /* to resume; NULL: none yet */
    char text[];          /* host, zone */
};

struct connection {
    struct loop_source source;
    struct connection *next; /* of the client, or of the engine's graveyard */
    struct http_client *client;
    struct target *target;
    struct resolver_wait wait;
    SSL *ssl;
    int fd;
    uint32_t interest; /* in the epoll set; 0: not in it */
    uint8_t phase;
    bool large;         /* the last body was, and only counted */
    bool reused;        /* the request under way is not its first */
    bool retried;       /* ... and was sent anew after a kept-alive connection failed */
    bool out_of_step;   /* what the server says belongs to no request */
    bool left;          /* the server is to close it; no request goes that way */
    uint8_t tries_left; /* addresses to try, */
    uint8_t turn;       /* beginning with this one */
    size_t sent;        /* bytes of the request under way */
    struct http_parser parser;
};

/* When the parts of a request ended; 0: it had no such part. */
struct marks {
    uint64_t begun_us;
    uint64_t resolved_us;
    uint64_t connected_us;
    uint64_t secured_us;
    uint64_t sent_us;
    uint64_t first_byte_us;
    uint64_t phases_us[STATS_PHASE_COUNT]; /* made of them at the end */
};

/* What is sent in place of the first bytes of the request: its head with more headers in it. */
struct lead {
    struct buf text; /* empty: nothing is in place of anything */
    size_t replaces;
};

struct http_client {
    struct http_engine *engine;
    void *owner;
    struct tls_terms terms;
    struct connection *connections;
    struct connection *busy; /* with the request under way, or NULL */
    const struct http_request *request;
    const struct plan_timeouts *timeouts; /* NULL: the request has none */
    uint64_t total_by_us;                 /* UINT64_MAX: no limit on the whole */
    struct lead *lead;                    /* NULL: never had one */
    struct http_response response;
    struct timer timeout;
    struct marks *marks; /* NULL: phases are not measured */
};

const size_t http_fast_client_bytes = sizeof(struct http_client);
const size_t http_fast_connection_bytes = sizeof(struct connection);

struct http_engine {
    struct http_engine_setup setup;
    struct resolver *resolver;
    struct tls *tls;
    struct target *targets;
    struct sources sources;
    struct connection *graveyard;         /* an event of this turn may still point to one */
    struct http_parser_memo memos[MEMOS]; /* of the responses' heads, by the request */
    char buffer[READ_BYTES + 1];          /* and a NUL behind a body */
};

/* --- phases --------------------------------------------------------------------------------- */

#define MARK(client, what)                                                                         \
    do {                                                                                           \
        if (__builtin_expect((client)->marks != NULL, 0))                                          \
            (client)->marks->what = clock_mono_us();                                               \
    } while (0)

static uint64_t part(uint64_t from_us, uint64_t to_us)
{
    return from_us && to_us ? to_us - from_us : STATS_NO_TIME;
}

static const uint64_t *phases_of(struct http_client *client, uint64_t now_us)
{
    struct marks *m = client->marks;
    if (!m)
        return NULL;
    m->phases_us[STATS_PHASE_DNS] = part(m->begun_us, m->resolved_us);
    m->phases_us[STATS_PHASE_CONNECT] = part(m->resolved_us, m->connected_us);
    m->phases_us[STATS_PHASE_TLS] = part(m->connected_us, m->secured_us);
    m->phases_us[STATS_PHASE_FIRST_BYTE] = part(m->sent_us, m->first_byte_us);
    m->phases_us[STATS_PHASE_BODY] = part(m->first_byte_us, now_us);
    return m->phases_us;
}

/* --- connections ---------------------------------------------------------------------------- */

static void set_interest(struct connection *c, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = c};
    if (c->interest == events)
        return;
    int op = c->interest ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (epoll_ctl(c->client->engine->setup.epoll_fd, op, c->fd, &event) == 0)
        c->interest = events;
}

/* Closing the descriptor takes it out of the epoll set. */
static void close_connection(struct connection *c)
{
    resolver_forget(&c->wait);
    if (c->ssl) {
        /* no shutdown message: the server is not to wait for us; the session stays resumable */
        SSL_set_quiet_shutdown(c->ssl, 1);
        (void)SSL_shutdown(c->ssl); /* sets a flag only */
        SSL_free(c->ssl);
        c->ssl = NULL;
    }
    if (c->fd >= 0) {
        (void)close(c->fd);
        c->client->engine->setup.counters->sockets--;
    }
    c->fd = -1;
    c->interest = 0;
    c->left = c->out_of_step = false;
    c->phase = PHASE_CLOSED;
}

static void bury(struct connection *c)
{
    struct http_engine *e = c->client->engine;
    close_connection(c);
    http_parser_done(&c->parser);
    c->client = NULL;
    c->next = e->graveyard;
    e->graveyard = c;
}

/* --- the end of a request ------------------------------------------------------------------- */

static ssize_t receive(struct connection *c, size_t size, enum http_failure *ret_failure);

/* Tell the owner. It may begin the next request of this client, or free it: nothing of the client
 * or its connections may be touched afterwards. */
static void finish(struct http_client *client, struct http_result *result, uint64_t now_us)
{
    struct http_engine *e = client->engine;
    timers_cancel(e->setup.timers, &client->timeout);
    client->busy = NULL;
    http_response_end(&client->response);
    struct http_kept *kept = http_response_take_kept(&client->response, result);
    e->setup.done(client->owner, result, now_us);
    if (kept)
        http_kept_release(kept);
}

static void fail(struct connection *c, enum http_failure failure, uint64_t now_us)
{
    struct http_result result = {.failure = failure, .status = c->parser.status};
    struct http_client *client = c->client;
    close_connection(c);
    result.phases_us = phases_of(client, now_us);
    finish(client, &result, now_us);
}

/* A connection that both sides know to be over is the server's to close, for who closes first
 * cannot use the port for a minute. The client's next request does not wait for that. */
static void leave(struct connection *c)
{
    enum http_failure failure;
    http_response_settle(&c->client->response); /* the same buffer */
    c->left = !c->out_of_step && receive(c, READ_BYTES, &failure) == 0;
    if (!c->left)
        close_connection(c);
}

static void succeed(struct connection *c)
{
    struct http_client *client = c->client;
    if (!http_response_whole(&client->response)) {
        fail(c, HTTP_FAILURE_MALFORMED, clock_mono_us());
        return;
    }
    struct http_result result = {
        .status = c->parser.status,
        .body_bytes = client->response.body_bytes,
        .location = str_of(client->response.location),
    };
    c->phase = PHASE_IDLE;
    uint64_t now_us = clock_mono_us();
    if (!c->parser.keep_alive || c->out_of_step || client->request->close)
        leave(c);
    result.phases_us = phases_of(client, now_us);
    finish(client, &result, now_us);
}

/* --- time limits ---------------------------------------------------------------------------- */

/* The next part of the request may take so long (0: no limit), the whole one until total_by_us. */
static void arm(struct http_client *client, uint64_t part_us)
{
    struct timers *timers = client->engine->setup.timers;
    uint64_t by_us = client->total_by_us;
    if (part_us) {
        uint64_t part_by_us = clock_mono_us() + part_us;
        by_us = part_by_us < by_us ? part_by_us : by_us;
    }
    if (by_us == UINT64_MAX)
        timers_cancel(timers, &client->timeout);
    else
        timers_set(timers, &client->timeout, by_us);
}

/* --- opening -------------------------------------------------------------------------------- */

static enum http_failure send_request(struct connection *c);
static void read_response(struct connection *c, enum http_failure sending, bool closing,
                          uint64_t now_us);
static void lost(struct connection *c, enum http_failure failure, uint64_t now_us);

static void count_socket(struct http_counters *counters)
{
    if (++counters->sockets > counters->sockets_peak)
        counters->sockets_peak = counters->sockets;
}

/* A socket on its way to one address. 0, or the errno. */
static int connect_to(struct connection *c, const struct resolver_address *address)
{
    int one = 1;
    c->fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return errno;
    count_socket(c->client->engine->setup.counters);
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* slower without */
    int error = sources_bind(&c->client->engine->sources, c->fd, address->storage.ss_family);
    if (error != 0)
        return error;
    if (connect(c->fd, (const struct sockaddr *)&address->storage, address->length) < 0 &&
        errno != EINPROGRESS)
        return errno;
    c->phase = PHASE_CONNECTING;
    set_interest(c, EPOLLOUT);
    return c->interest ? 0 : ENOMEM;
}

/* Try the name's addresses in turn until a connection is on its way. */
static enum http_failure open_socket(struct connection *c)
{
    enum http_failure failure = HTTP_FAILURE_NAME;
    MARK(c->client, resolved_us);
    while (c->tries_left > 0) {
        const struct resolver_address *address = resolver_at(c->target->name, c->turn++);
        c->tries_left--;
        if (!address)
            return HTTP_FAILURE_NAME;
        int error = connect_to(c, address);
        if (error == 0)
            return HTTP_FAILURE_NONE;
        failure = http_failure_of_errno(error);
        close_connection(c);
        if (failure == HTTP_FAILURE_NO_DESCRIPTORS || failure == HTTP_FAILURE_MEMORY)
            break; /* another address would not help */
    }
    return failure;
}

/* The addresses are known: each may be tried once. */
static enum http_failure open_first_socket(struct connection *c)
{
    c->tries_left = (uint8_t)resolver_count(c->target->name);
    c->turn = (uint8_t)resolver_turn(c->target->name);
    return open_socket(c);
}

static void resolved(struct resolver_wait *wait, uint64_t now_us)
{
    struct connection *c = (struct connection *)((char *)wait - offsetof(struct connection, wait));
    enum http_failure failure = open_first_socket(c);
    if (failure != HTTP_FAILURE_NONE)
        fail(c, failure, now_us);
}

static enum http_failure open_connection(struct connection *c, uint64_t now_us)
{
    struct http_engine *e = c->client->engine;
    c->reused = false;
    if (c->client->timeouts)
        arm(c->client, c->client->timeouts->connect_us);
    int rc = resolver_want(e->resolver, c->target->name, &c->wait, now_us);
    if (rc == -EAGAIN) {
        c->phase = PHASE_RESOLVING;
        return HTTP_FAILURE_NONE;
    }
    if (rc < 0)
        return rc == -ENOMEM ? HTTP_FAILURE_MEMORY : HTTP_FAILURE_NAME;
    return open_first_socket(c);
}

static enum http_failure tls_failure(const struct connection *c)
{
    long verdict = SSL_get_verify_result(c->ssl);
    return verdict != X509_V_OK && !c->client->terms.insecure ? HTTP_FAILURE_CERTIFICATE
                                                              : HTTP_FAILURE_TLS;
}

/* SSL_get_error takes what is left in the thread's queue for the reason, and a task in C may use
 * OpenSSL, too. Clearing goes through the whole queue, so look first. */
static inline void forget_tls_errors(void)
{
    if (ERR_peek_error() != 0)
        ERR_clear_error();
}

/* Drive the handshake on; the request follows when it is done. */
static void handshake(struct connection *c, uint64_t now_us)
{
    forget_tls_errors();
    int rc = SSL_connect(c->ssl);
    if (rc == 1) {
        MARK(c->client, secured_us);
        enum http_failure failure = send_request(c);
        if (failure != HTTP_FAILURE_NONE)
            lost(c, failure, now_us);
        else if (SSL_has_pending(c->ssl)) /* read together with the handshake: epoll is silent */
            read_response(c, HTTP_FAILURE_NONE, false, now_us);
        return;
    }
    switch (SSL_get_error(c->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        set_interest(c, EPOLLIN);
        return;
    case SSL_ERROR_WANT_WRITE:
        set_interest(c, EPOLLOUT);
        return;
    default:
        fail(c, tls_failure(c), now_us);
    }
}

/* The socket became writable, or failed to connect. */
static void connected(struct connection *c, uint64_t now_us)
{
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        error = errno;
    if (error != 0) {
        close_connection(c);
        c->client->engine->setup.counters->connections_failed++;
        enum http_failure failure = http_failure_of_errno(error);
        if (c->tries_left > 0)
            failure = open_socket(c);
        if (failure != HTTP_FAILURE_NONE)
            fail(c, failure, now_us);
        return;
    }
    MARK(c->client, connected_us);
    c->client->engine->setup.counters->connections_opened++;
    if (c->target->origin.tls) {
        c->ssl = tls_connect(c->client->engine->tls, &c->target->origin, &c->target->terms,
                             &c->target->session, c->fd);
        if (!c->ssl) {
            fail(c, HTTP_FAILURE_MEMORY, now_us);
            return;
        }
        c->phase = PHASE_HANDSHAKE;
        handshake(c, now_us);
        return;
    }
    enum http_failure failure = send_request(c);
    if (failure != HTTP_FAILURE_NONE)
        lost(c, failure, now_us);
}

/* --- sending -------------------------------------------------------------------------------- */

/* send and recv of the C library are points where a thread can be cancelled, which costs as much as
 * all else of them; shards are not. */
static inline ssize_t send_bytes(int fd, struct str bytes)
{
    return syscall(SYS_sendto, fd, bytes.ptr, bytes.len, MSG_NOSIGNAL, NULL, 0);
}

static inline ssize_t receive_bytes(int fd, void *buffer, size_t size, int flags)
{
    return syscall(SYS_recvfrom, fd, buffer, size, flags, NULL, NULL);
}

/* Bytes sent, or 0 when the socket takes none now, or -1 with *ret_failure set. */
static ssize_t send_some(struct connection *c, struct str bytes, enum http_failure *ret_failure)
{
    if (!c->ssl) {
        ssize_t n = send_bytes(c->fd, bytes);
        if (n >= 0)
            return n;
        if (errno == EAGAIN || errno == EINTR)
            return 0;
        *ret_failure = http_transfer_failure(errno);
        return -1;
    }
    size_t n = 0;
    forget_tls_errors();
    int rc = SSL_write_ex(c->ssl, bytes.ptr, bytes.len, &n);
    if (rc == 1)
        return (ssize_t)n;
    switch (SSL_get_error(c->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return 0;
    case SSL_ERROR_SYSCALL:
        *ret_failure = errno ? http_transfer_failure(errno) : HTTP_FAILURE_CLOSED;
        return -1;
    default:
        *ret_failure = HTTP_FAILURE_TLS;
        return -1;
    }
}

/* What is to be sent next; empty: all is sent. */
static inline struct str unsent(const struct connection *c)
{
    struct str all = c->client->request->bytes;
    const struct lead *lead = c->client->lead;
    size_t at = c->sent;
    if (lead) {
        if (at < lead->text.len)
            return (struct str){lead->text.ptr + at, lead->text.len - at};
        at = at - lead->text.len + lead->replaces;
    }
    return (struct str){all.ptr + at, all.len - at};
}

/* Send what is left of the request; the rest goes out when the socket is writable. */
static enum http_failure send_request(struct connection *c)
{
    struct str next;
    enum http_failure failure = HTTP_FAILURE_NONE;
    c->phase = PHASE_BUSY;
    if (c->sent == 0)
        MARK(c->client, sent_us);
    while ((next = unsent(c)).len > 0) {
        ssize_t n = send_some(c, next, &failure);
        if (n < 0)
            return failure;
        if (n == 0) {
            set_interest(c, EPOLLIN | EPOLLOUT);
            return HTTP_FAILURE_NONE;
        }
        c->sent += (size_t)n;
    }
    set_interest(c, c->ssl ? EPOLLIN : READABLE);
    if (c->client->timeouts)
        arm(c->client, c->client->timeouts->first_byte_us);
    return c->interest ? HTTP_FAILURE_NONE : HTTP_FAILURE_MEMORY;
}

/* Answers to one request are much alike; those to another are not to drive them out. */
static struct http_parser_memo *memo_of(struct http_engine *e, const struct http_request *request)
{
    return &e->memos[(uintptr_t)request / sizeof *request % MEMOS];
}

static enum http_failure begin_on(struct connection *c, uint64_t now_us)
{
    c->sent = 0;
    http_parser_begin(&c->parser, c->client->request->no_body);
    c->parser.memo = memo_of(c->client->engine, c->client->request);
    if (c->phase != PHASE_IDLE)
        return open_connection(c, now_us);
    c->reused = true;
    return send_request(c);
}

/* May the request be sent anew? The server had closed a kept-alive connection before it saw the
 * request (RFC 9110 9.2.2): not one byte of a response came, and sending twice does no harm. */
static bool may_retry(const struct connection *c)
{
    return c->reused && !c->retried && c->client->request->idempotent &&
           http_parser_untouched(&c->parser);
}

/* The connection is gone in the middle of a request. */
static void lost(struct connection *c, enum http_failure failure, uint64_t now_us)
{
    if (may_retry(c)) {
        close_connection(c);
        c->retried = true;
        c->client->engine->setup.counters->retries++;
        failure = begin_on(c, now_us);
        if (failure == HTTP_FAILURE_NONE)
            return;
    }
    fail(c, failure, now_us);
}

/* --- receiving ------------------------------------------------------------------------------ */

static ssize_t receive_plain(struct connection *c, void *buffer, size_t size, int flags,
                             enum http_failure *ret_failure)
{
    ssize_t n = receive_bytes(c->fd, buffer, size, flags);
    if (n > 0)
        return n;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    *ret_failure = n == 0 ? HTTP_FAILURE_CLOSED : http_transfer_failure(errno);
    return -1;
}

/* Bytes read, of `size` at most; 0 when there are none now; -1 with *ret_failure set (CLOSED: the
 * server closed). */
static ssize_t receive(struct connection *c, size_t size, enum http_failure *ret_failure)
{
    char *buffer = c->client->engine->buffer;
    if (!c->ssl)
        return receive_plain(c, buffer, size, 0, ret_failure);
    size_t n = 0;
    forget_tls_errors();
    int rc = SSL_read_ex(c->ssl, buffer, size, &n);
    if (rc == 1)
        return (ssize_t)n;
    switch (SSL_get_error(c->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        *ret_failure = HTTP_FAILURE_CLOSED;
        return -1;
    case SSL_ERROR_SYSCALL:
        *ret_failure = errno ? http_transfer_failure(errno) : HTTP_FAILURE_CLOSED;
        return -1;
    default:
        *ret_failure = HTTP_FAILURE_TLS;
        return -1;
    }
}

/* Is there more behind the end of a response that epoll does not tell of? It was read together with
 * it, or what was read just filled the buffer. */
static bool speaks_on(struct connection *c, bool full)
{
    enum http_failure failure;
    if (c->ssl ? !SSL_has_pending(c->ssl) : !full)
        return false;
    http_response_settle(&c->client->response); /* the same buffer */
    return receive(c, READ_BYTES, &failure) != 0;
}

/* Parse what was read. True: go on with this connection; false: the request ended, and the
 * connection and its client may be gone. */
static bool parse(struct connection *c, struct str input, bool full, uint64_t now_us)
{
    struct http_client *client = c->client;
    enum http_failure failure;
    for (;;) {
        switch (http_parser_next(&c->parser, &input)) {
        case HTTP_EVENT_HEAD:
            http_response_head(&client->response, &c->parser, &client->engine->setup,
                               client->owner);
            break;
        case HTTP_EVENT_BODY:
            failure = http_response_body(&client->response, c->parser.body);
            if (failure == HTTP_FAILURE_NONE)
                break;
            fail(c, failure, now_us);
            return false;
        case HTTP_EVENT_DONE:
            c->out_of_step |=
                input.len > 0 || unsent(c).len > 0 || (c->parser.keep_alive && speaks_on(c, full));
            c->large = client->response.body_bytes >= LARGE_BODY_BYTES &&
                       http_response_only_counts(&client->response);
            succeed(c);
            return false;
        case HTTP_EVENT_FAILED:
            fail(c, c->parser.failure, now_us);
            return false;
        case HTTP_EVENT_MORE:
            http_response_settle(&client->response);
            return true;
        }
    }
}

/* Read on: into the buffer, or past what is only counted, which leaves *ret_read empty. As receive;
 * *ret_full: there may be more. */
static ssize_t read_on(struct connection *c, struct str *ret_read, bool *ret_full,
                       enum http_failure *ret_failure)
{
    struct http_client *client = c->client;
    uint64_t ahead = c->ssl || !http_response_only_counts(&client->response)
                         ? 0
                         : http_parser_body_ahead(&c->parser);
    size_t size = c->large && http_parser_untouched(&c->parser) ? HEAD_READ_BYTES : READ_BYTES;
    *ret_read = (struct str){client->engine->buffer, 0};
    if (ahead == 0) {
        ssize_t n = receive(c, size, ret_failure);
        ret_read->len = n > 0 ? (size_t)n : 0;
        *ret_full = n == (ssize_t)size;
        return n;
    }
    ssize_t n = receive_plain(c, NULL, SKIP_BYTES, MSG_TRUNC, ret_failure);
    if (n <= 0)
        return n;
    uint64_t body = (uint64_t)n < ahead ? (uint64_t)n : ahead;
    client->response.body_bytes += body;
    http_parser_skip(&c->parser, body);
    if ((uint64_t)n > body)
        c->out_of_step = true;
    *ret_full = n == SKIP_BYTES;
    return n;
}

/* sending: why the rest of the request cannot be sent, or NONE. A server that closes early may have
 * answered before that. closing: it has closed, behind what is there to be read. */
static void read_response(struct connection *c, enum http_failure sending, bool closing,
                          uint64_t now_us)
{
    for (;;) {
        enum http_failure failure = sending;
        struct str input;
        bool full = false;
        ssize_t n = read_on(c, &input, &full, &failure);
        if (n == 0 && sending == HTTP_FAILURE_NONE)
            return;
        if (n < 0 && failure == HTTP_FAILURE_CLOSED && http_parser_close(&c->parser)) {
            succeed(c);
            return;
        }
        if (n <= 0) {
            lost(c, sending != HTTP_FAILURE_NONE ? sending : failure, now_us);
            return;
        }
        if (c->client->marks && c->client->marks->first_byte_us == 0)
            MARK(c->client, first_byte_us);
        if (c->client->timeouts && http_parser_untouched(&c->parser))
            arm(c->client, 0);
        if (!parse(c, input, full || closing, now_us))
            return;
        if (!c->ssl && !full && !closing && sending == HTTP_FAILURE_NONE)
            return; /* all there was; epoll tells of more */
    }
}

/* A connection that nobody uses became readable: the server closed it, or speaks out of turn. TLS
 * may have messages of its own. */
static void idle_readable(struct connection *c)
{
    enum http_failure failure = HTTP_FAILURE_NONE;
    if (receive(c, READ_BYTES, &failure) != 0)
        close_connection(c);
}

static void connection_ready(struct loop_source *source, uint32_t events, uint64_t now_us)
{
    struct connection *c = (struct connection *)source;
    enum http_failure failure = HTTP_FAILURE_NONE;
    if (!c->client || c->fd < 0)
        return; /* closed earlier in this turn */
    switch ((enum phase)c->phase) {
    case PHASE_CONNECTING:
        connected(c, now_us);
        return;
    case PHASE_HANDSHAKE:
        handshake(c, now_us);
        return;
    case PHASE_IDLE:
        idle_readable(c);
        return;
    case PHASE_BUSY:
        if (events & EPOLLOUT)
            failure = send_request(c);
        if (failure != HTTP_FAILURE_NONE || events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            read_response(c, failure, events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR), now_us);
        return;
    case PHASE_CLOSED:
    case PHASE_RESOLVING:
        return;
    }
}

/* --- calls ---------------------------------------------------------------------------------- */

static int prepare(struct http_call *call)
{
    struct http_request *request;
    int rc = call->url.len ? http_request_new(call, &request) : 0;
    if (rc == 0)
        call->prepared = call->url.len ? request : NULL;
    return rc;
}

static void unprepare(struct http_call *call)
{
    free(call->prepared);
    call->prepared = NULL;
}

static bool same_place(const struct http_origin *a, const struct http_origin *b)
{
    return a->port == b->port && a->tls == b->tls && str_eq_nocase(a->host, b->host) &&
           str_eq(a->zone, b->zone);
}

static struct connection *find_connection(struct http_client *client,
                                          const struct http_origin *origin)
{
    struct connection *c = client->connections;
    while (c && !same_place(&c->target->origin, origin))
        c = c->next;
    return c;
}

/* An origin's target, with a copy of its texts: a redirect's request does not live as long. */
static struct target *target_of(struct http_engine *e, const struct http_origin *origin,
                                const struct tls_terms *terms)
{
    struct target *t = e->targets;
    while (t && !(same_place(&t->origin, origin) && tls_terms_equal(&t->terms, terms)))
        t = t->next;
    if (t)
        return t;
    t = calloc(1, sizeof *t + origin->host.len + origin->zone.len + 2);
    if (!t)
        return NULL;
    memcpy(t->text, origin->host.ptr, origin->host.len);
    if (origin->zone.len)
        memcpy(t->text + origin->host.len + 1, origin->zone.ptr, origin->zone.len);
    t->origin = *origin;
    t->terms = *terms;
    t->origin.host.ptr = t->text;
    t->origin.zone.ptr = t->text + origin->host.len + 1;
    t->name = resolver_name(e->resolver, t->origin.host, t->origin.zone, t->origin.port);
    if (!t->name) {
        free(t);
        return NULL;
    }
    t->next = e->targets;
    e->targets = t;
    return t;
}

/* Room for one more: the connection at the end of the list is the oldest. */
static void drop_oldest(struct http_client *client)
{
    unsigned n = 0;
    for (struct connection **at = &client->connections; *at; at = &(*at)->next) {
        if (++n < MAX_CONNECTIONS)
            continue;
        struct connection *oldest = *at;
        *at = NULL;
        bury(oldest);
        return;
    }
}

static struct connection *new_connection(struct http_client *client,
                                         const struct http_origin *origin)
{
    struct target *target = target_of(client->engine, origin, &client->terms);
    struct connection *c = target ? calloc(1, sizeof *c) : NULL;
    if (!c)
        return NULL;
    drop_oldest(client);
    c->source.ready = connection_ready;
    c->wait.ready = resolved;
    c->client = client;
    c->target = target;
    c->fd = -1;
    http_parser_init(&c->parser);
    c->next = client->connections;
    client->connections = c;
    return c;
}

/* Put the cookies and the added header into the head. A connection that fails may want the request
 * anew, so the text is kept until the next one, and its memory for the user's life. */
static int make_lead(struct http_client *client, struct str cookies, struct str added)
{
    const struct http_request *r = client->request;
    struct lead *lead = client->lead;
    if (!lead) {
        lead = client->lead = calloc(1, sizeof *lead);
        if (!lead)
            return -ENOMEM;
        buf_init(&lead->text, HTTP_REQUEST_MAX_BYTES);
    }
    buf_clear(&lead->text);
    lead->replaces = 0;
    if (cookies.len == 0 && added.len == 0)
        return 0;
    size_t end = r->bytes.len - r->body_at <= LEAD_BODY_BYTES ? r->bytes.len : r->body_at;
    const struct str none = {NULL, 0};
    const struct str parts[] = {str_sub(r->bytes, 0, r->head_len),
                                cookies.len ? STR("Cookie: ") : none,
                                cookies,
                                cookies.len ? STR("\r\n") : none,
                                added,
                                added.len ? STR("\r\n") : none,
                                str_sub(r->bytes, r->head_len, end)};
    lead->replaces = end;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof parts / sizeof *parts; i++)
        rc = buf_add(&lead->text, parts[i]);
    return rc;
}

static void timed_out(struct timer *t, void *context, uint64_t now_us)
{
    struct http_client *client =
        (struct http_client *)((char *)t - offsetof(struct http_client, timeout));
    struct connection *c = client->busy;
    (void)context;
    fail(c, c->phase < PHASE_IDLE ? HTTP_FAILURE_CONNECT_TIMEOUT : HTTP_FAILURE_TIMEOUT, now_us);
}

static void set_limits(struct http_client *client, const struct plan_timeouts *t, uint64_t now_us)
{
    client->timeouts = t->connect_us | t->first_byte_us | t->total_us ? t : NULL;
    client->total_by_us = t->total_us ? now_us + t->total_us : UINT64_MAX;
}

static enum http_failure begin(struct http_client *client, const struct http_call *call,
                               struct str cookies, uint64_t now_us)
{
    const struct http_request *request = call->prepared;
    struct connection *c = find_connection(client, &request->origin);
    if (!c)
        c = new_connection(client, &request->origin);
    if (!c)
        return HTTP_FAILURE_MEMORY;
    if (c->left)
        close_connection(c);
    client->request = request;
    set_limits(client, &call->timeouts, now_us);
    http_response_begin(&client->response, call, &client->engine->setup);
    if ((client->lead || cookies.len || call->added.len) &&
        make_lead(client, cookies, call->added) < 0)
        return HTTP_FAILURE_MEMORY;
    client->busy = c;
    if (client->marks)
        *client->marks = (struct marks){.begun_us = now_us};
    c->retried = false;
    enum http_failure failure = begin_on(c, now_us);
    if (failure != HTTP_FAILURE_NONE && may_retry(c)) {
        close_connection(c);
        c->retried = true;
        client->engine->setup.counters->retries++;
        failure = begin_on(c, now_us);
    }
    if (failure != HTTP_FAILURE_NONE) {
        close_connection(c);
        timers_cancel(client->engine->setup.timers, &client->timeout);
        client->busy = NULL;
        return failure;
    }
    return HTTP_FAILURE_NONE;
}

static void client_free(struct http_client *client)
{
    if (!client)
        return;
    timers_cancel(client->engine->setup.timers, &client->timeout);
    while (client->connections) {
        struct connection *c = client->connections;
        client->connections = c->next;
        bury(c);
    }
    http_response_done(&client->response);
    if (client->lead)
        buf_done(&client->lead->text);
    free(client->lead);
    free(client->marks);
    free(client);
}

static struct http_client *client_new(struct http_engine *e, void *owner,
                                      const struct plan_class *class)
{
    struct http_client *client = calloc(1, sizeof *client);
    if (!client)
        return NULL;
    client->engine = e;
    client->owner = owner;
    client->terms = tls_terms_of(class);
    client->timeout.fire = timed_out;
    if (e->setup.phases && !(client->marks = calloc(1, sizeof *client->marks))) {
        free(client);
        return NULL;
    }
    return client;
}

/* --- the engine ----------------------------------------------------------------------------- */

static bool turn(struct http_engine *e, uint64_t now_us)
{
    (void)now_us;
    while (e->graveyard) {
        struct connection *c = e->graveyard;
        e->graveyard = c->next;
        free(c);
    }
    return false;
}

static void engine_close(struct http_engine *e)
{
    if (!e)
        return;
    (void)turn(e, 0); /* frees the graveyard */
    resolver_free(e->resolver);
    while (e->targets) {
        struct target *t = e->targets;
        e->targets = t->next;
        SSL_SESSION_free(t->session);
        free(t);
    }
    tls_free(e->tls);
    sources_done(&e->sources);
    free(e);
}

static int engine_open(const struct http_engine_setup *setup, struct http_engine **ret)
{
    struct http_engine *e = calloc(1, sizeof *e);
    if (!e)
        return -ENOMEM;
    e->setup = *setup;
    e->tls = tls_new();
    int rc = e->tls ? sources_init(&e->sources, setup->sources, setup->source_count) : -ENOMEM;
    if (rc == 0)
        rc = resolver_new(setup->epoll_fd, setup->timers, &e->resolver);
    if (rc < 0) {
        engine_close(e);
        return rc;
    }
    *ret = e;
    return 0;
}

const struct http_ops http_fast_ops = {
    .name = "fast",
    .open = engine_open,
    .close = engine_close,
    .turn = turn,
    .prepare = prepare,
    .unprepare = unprepare,
    .client_new = client_new,
    .client_free = client_free,
    .begin = begin,
};

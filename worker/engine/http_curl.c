/* The libcurl engine: one multi handle a shard, driven by the shard's epoll loop; one easy handle a
 * user, kept for the user's life. Cookies and coded bodies are not curl's business but handled as
 * by the other engine, so that both do the same. More than that: what curl received goes, chunk
 * sizes and all, through the reader that the fast engine has. So both judge a response alike; curl
 * by itself forgives much (two lengths, a size of "5xyz", a head without an end).
 *
 * Each user's handle has a connection cache of its own, by a share object. With the multi handle's
 * common cache users would take each other's connections, and curl would search all of them for
 * each request. (A multi handle a user separates them too, but costs 50 KiB and three descriptors
 * each.)
 *
 * HTTP/2 is the same to us: curl makes of its frames the lines that we read, which differ in their
 * first word only, and each user has its connection and at most one stream on it. A server that
 * does not speak it is not measured over HTTP/1.1 instead: each request is a failure.
 *
 * A socket stays in the epoll set when curl lets go of it between two requests: the next one mostly
 * wants it again, which saves two system calls a request. */
#include "worker/engine/http.h"

#include "base/buf.h"
#include "base/clock.h"
#include "worker/engine/http_parser.h"
#include "worker/engine/http_request.h"
#include "worker/engine/http_response.h"
#include "worker/engine/sources.h"
#include "worker/engine/timers.h"
#include "worker/stats/details.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CURL_MAX_RESENDS      5     /* curl counts them for the life of a handle, then gives up */
#define CURL_MAX_HEADER_BYTES 65536 /* one line of the scenario's own headers */

struct curl_socket {
    struct loop_source source;
    struct http_engine *engine;
    curl_socket_t fd;
    uint32_t wanted;     /* EPOLLIN, EPOLLOUT as curl wants them now; 0: nothing */
    uint32_t registered; /* what the epoll set has; 0: not in it */
    bool counted;        /* as open */
};

struct http_engine {
    struct http_engine_setup setup;
    CURLM *multi;
    struct timer timer;
    bool kick; /* curl wants to be called at once */
    struct sources sources;
    bool heard_h2c;               /* some server spoke HTTP/2 without TLS */
    bool layers_twice;            /* a fault of older libcurls, see version_of */
    struct curl_socket **sockets; /* by descriptor */
    size_t socket_count;
};

struct http_client {
    struct http_engine *engine;
    void *owner;
    CURL *easy;
    CURLSH *share;
    const struct http_call *call; /* whose options are set */
    uint64_t begun_us;
    struct timer first_byte; /* curl has no such limit of its own */
    const struct plan_class *class;
    bool http2;              /* is asked for */
    long version;            /* CURLOPT_HTTP_VERSION */
    bool h2c_begun;          /* there may be a connection for HTTP/2 without TLS */
    bool reuses;             /* the request must go over one that stands, */
    bool anew;               /* and as there is none it is to be begun once more */
    bool has_cookies;        /* CURLOPT_COOKIE is set */
    struct curl_slist added; /* the call's, before its other headers */
    bool busy;
    bool no_body;               /* the call is a HEAD */
    bool closes;                /* the call asks the server to close the connection */
    bool forbids_reuse;         /* so was curl told of the connection of this call */
    bool sent;                  /* curl has begun to send the request */
    unsigned resends;           /* by this handle: requests met by a closed connection */
    enum http_failure not_sent; /* a connection was not opened, for this reason */
    enum http_failure failure;  /* of what is behind the framing */
    struct http_response response;
    struct http_parser parser;
    char error[CURL_ERROR_SIZE];
};

/* --- sockets -------------------------------------------------------------------------------- */

static void drop_from_epoll(struct curl_socket *s)
{
    if (s->registered)
        (void)epoll_ctl(s->engine->setup.epoll_fd, EPOLL_CTL_DEL, s->fd, NULL); /* closed: gone */
    s->registered = 0;
}

static void socket_ready(struct loop_source *source, uint32_t events, uint64_t now_us)
{
    struct curl_socket *s = (struct curl_socket *)source;
    int running, what = 0;
    (void)now_us;
    if (s->wanted == 0) { /* idle, and the server spoke or closed: curl finds out at its next use */
        drop_from_epoll(s);
        return;
    }
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        what |= CURL_CSELECT_IN;
    if (events & EPOLLOUT)
        what |= CURL_CSELECT_OUT;
    if (events & EPOLLERR)
        what |= CURL_CSELECT_ERR;
    (void)curl_multi_socket_action(s->engine->multi, s->fd, what, &running);
}

static struct curl_socket *socket_of(struct http_engine *e, curl_socket_t fd)
{
    size_t i = (size_t)fd;
    if (i >= e->socket_count) {
        size_t n = e->socket_count ? e->socket_count : 64;
        while (n <= i)
            n *= 2;
        struct curl_socket **grown = realloc(e->sockets, n * sizeof *grown);
        if (!grown)
            return NULL;
        memset(grown + e->socket_count, 0, (n - e->socket_count) * sizeof *grown);
        e->sockets = grown;
        e->socket_count = n;
    }
    if (!e->sockets[i]) {
        e->sockets[i] = calloc(1, sizeof *e->sockets[i]);
        if (e->sockets[i])
            *e->sockets[i] =
                (struct curl_socket){.source.ready = socket_ready, .engine = e, .fd = fd};
    }
    return e->sockets[i];
}

static int set_in_epoll(struct curl_socket *s)
{
    int epoll_fd = s->engine->setup.epoll_fd;
    struct epoll_event event = {.events = s->wanted, .data.ptr = s};
    if (s->registered == s->wanted)
        return 0;
    int op = s->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    int rc = epoll_ctl(epoll_fd, op, s->fd, &event);
    if (rc < 0 && (errno == ENOENT || errno == EEXIST))
        rc = epoll_ctl(epoll_fd, errno == ENOENT ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, s->fd, &event);
    s->registered = rc < 0 ? 0 : s->wanted;
    return rc;
}

/* The kernel takes a closed descriptor out of the epoll set by itself; the next socket of that
 * number must be put in anew. */
static void forget_socket(struct curl_socket *s)
{
    s->wanted = s->registered = 0;
    s->engine->setup.counters->sockets -= s->counted;
    s->counted = false;
}

static bool is_connecting(CURL *easy)
{
    char *client = NULL;
    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &client); /* stays NULL: not one of ours */
    return client && !((struct http_client *)client)->sent;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *engine, void *unused)
{
    struct curl_socket *s = socket_of(engine, fd);
    (void)unused;
    if (!s)
        return -1; /* curl ends the transfer as out of memory */
    if (what == CURL_POLL_REMOVE) {
        s->wanted = 0;
        if (is_connecting(easy)) /* and fails: then curl closes it without telling */
            forget_socket(s);
        return 0;
    }
    s->wanted = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    return s->wanted ? set_in_epoll(s) : 0;
}

/* A descriptor, or -1 with errno. */
static int open_socket(struct http_engine *e, const struct curl_sockaddr *to)
{
    struct http_counters *counters = e->setup.counters;
    int fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    if (fd < 0)
        return -1;
    struct curl_socket *s = socket_of(e, fd);
    int error = s ? sources_bind(&e->sources, fd, to->family) : ENOMEM;
    if (error) {
        (void)close(fd);
        errno = error;
        return -1;
    }
    forget_socket(s); /* whatever had the number is gone */
    s->counted = true;
    if (++counters->sockets > counters->sockets_peak)
        counters->sockets_peak = counters->sockets;
    return fd;
}

static int on_close_socket(void *engine, curl_socket_t fd)
{
    struct http_engine *e = engine;
    if ((size_t)fd < e->socket_count && e->sockets[fd])
        forget_socket(e->sockets[fd]);
    return close(fd);
}

static void timer_fired(struct timer *t, void *context, uint64_t now_us)
{
    struct http_engine *e = (struct http_engine *)((char *)t - offsetof(struct http_engine, timer));
    (void)context;
    (void)now_us;
    e->kick = true;
}

static int on_timer(CURLM *multi, long timeout_ms, void *engine)
{
    struct http_engine *e = engine;
    (void)multi;
    if (timeout_ms < 0)
        timers_cancel(e->setup.timers, &e->timer);
    else if (timeout_ms == 0)
        e->kick = true;
    else
        timers_set(e->setup.timers, &e->timer, clock_mono_us() + (uint64_t)timeout_ms * 1000);
    return 0;
}

/* --- the end of a request ------------------------------------------------------------------- */

static enum http_failure connect_failure(CURL *easy)
{
    long os_error = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_error); /* stays 0 when unknown */
    return http_failure_of_errno((int)os_error);
}

/* The request was not sent yet: the time went into the connection, its handshake included. */
static enum http_failure timeout_failure(const struct http_client *c)
{
    return !c->sent ? HTTP_FAILURE_CONNECT_TIMEOUT : HTTP_FAILURE_TIMEOUT;
}

/* A line longer than curl's buffer for one comes back as out of memory. */
static enum http_failure memory_failure(CURL *easy)
{
    curl_off_t first = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_STARTTRANSFER_TIME_T, &first); /* stays 0 when unknown */
    return first > 0 ? HTTP_FAILURE_HEADERS_TOO_LARGE : HTTP_FAILURE_MEMORY;
}

static bool says(struct str text, int error)
{
    return str_find_str(text, str_of(strerrordesc_np(error))) < text.len;
}

/* Sending or receiving failed. Curl's text says how: its errno may be of the closing that followed.
 */
static enum http_failure transfer_failure(const struct http_client *c)
{
    static const int errors[] = {ECONNRESET, EPIPE, ETIMEDOUT};
    struct str text = str_of(c->error);
    if (str_find_str(text, STR("SSL routines")) < text.len)
        return HTTP_FAILURE_TLS;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (says(text, errors[i]))
            return http_transfer_failure(errors[i]);
    }
    return HTTP_FAILURE_RESET;
}

/* Did the proxy answer, and not open the tunnel? */
static bool refused_by_proxy(CURL *easy)
{
    long status = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &status); /* 0: there was no tunnel */
    return status >= 300;
}

/* Curl keeps what a server of HTTP/1.1 said to the beginning of an HTTP/2 connection to itself. A
 * connection that ends then is taken for that, unless HTTP/2 was ever heard in this way. */
static bool hears_no_http2(const struct http_client *c, CURLcode code)
{
    return c->sent && c->version == CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE && !c->engine->heard_h2c &&
           (code == CURLE_GOT_NOTHING || code == CURLE_HTTP2 || code == CURLE_SEND_ERROR ||
            code == CURLE_RECV_ERROR);
}

static enum http_failure failure_of(const struct http_client *c, CURLcode code)
{
    if (!c->sent && refused_by_proxy(c->easy))
        return HTTP_FAILURE_PROXY;
    if (hears_no_http2(c, code))
        return HTTP_FAILURE_NO_HTTP2;
    switch (code) {
    case CURLE_OK: /* for curl; the reader is still waiting for more */
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2: /* a GOAWAY that came across the request, or frames that made no sense */
        return HTTP_FAILURE_CLOSED;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_URL_MALFORMAT: /* a redirect's; its host is no name for curl */
        return HTTP_FAILURE_NAME;
    case CURLE_COULDNT_CONNECT:
        return connect_failure(c->easy);
    case CURLE_OPERATION_TIMEDOUT:
        return timeout_failure(c);
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CIPHER:
        return HTTP_FAILURE_TLS;
    case CURLE_PEER_FAILED_VERIFICATION:
        return HTTP_FAILURE_CERTIFICATE;
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
        return transfer_failure(c);
    case CURLE_PROXY: /* SOCKS */
        return HTTP_FAILURE_PROXY;
    case CURLE_HTTP2_STREAM:
        return HTTP_FAILURE_STREAM;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_BAD_CONTENT_ENCODING:
        return HTTP_FAILURE_MALFORMED;
    case CURLE_OUT_OF_MEMORY:
        return memory_failure(c->easy);
    default:
        return HTTP_FAILURE_OTHER;
    }
}

/* The reader's verdict comes first, whatever curl made of the same bytes. */
static enum http_failure verdict(const struct http_client *c, CURLcode code)
{
    if (c->failure != HTTP_FAILURE_NONE)
        return c->failure;
    if (c->parser.failure != HTTP_FAILURE_NONE)
        return c->parser.failure;
    if (http_parser_complete(&c->parser) || (code == CURLE_OK && http_parser_close(&c->parser)))
        return http_response_whole(&c->response) ? HTTP_FAILURE_NONE : HTTP_FAILURE_MALFORMED;
    return c->not_sent != HTTP_FAILURE_NONE ? c->not_sent : failure_of(c, code);
}

/* Curl's times all count from the start of the transfer, and are 0 for a part it did not have. */
static void read_phases(CURL *easy, uint64_t phases_us[static STATS_PHASE_COUNT])
{
    curl_off_t name = 0, connect = 0, tls = 0, first = 0, total = 0;
    long opened = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &opened); /* all stay 0 when unknown */
    (void)curl_easy_getinfo(easy, CURLINFO_NAMELOOKUP_TIME_T, &name);
    (void)curl_easy_getinfo(easy, CURLINFO_CONNECT_TIME_T, &connect);
    (void)curl_easy_getinfo(easy, CURLINFO_APPCONNECT_TIME_T, &tls);
    (void)curl_easy_getinfo(easy, CURLINFO_STARTTRANSFER_TIME_T, &first);
    (void)curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &total);
    bool connects = opened > 0;
    curl_off_t sent = !connects ? 0 : tls > connect ? tls : connect;
    for (int i = 0; i < STATS_PHASE_COUNT; i++)
        phases_us[i] = STATS_NO_TIME;
    if (connects && name > 0)
        phases_us[STATS_PHASE_DNS] = (uint64_t)name;
    if (connects && connect > name)
        phases_us[STATS_PHASE_CONNECT] = (uint64_t)(connect - name);
    if (connects && tls > connect)
        phases_us[STATS_PHASE_TLS] = (uint64_t)(tls - connect);
    if (first > 0 && first >= sent) {
        phases_us[STATS_PHASE_FIRST_BYTE] = (uint64_t)(first - sent);
        phases_us[STATS_PHASE_BODY] = (uint64_t)(total - first);
    }
}

static CURLcode set_version(struct http_client *c, long version);

/* Was the request sent over a kept connection that was ending, as its GOAWAY or its end show? In
 * HTTP/1.1 curl sends it anew by itself; in HTTP/2 it does not always. */
static bool met_closing(const struct http_client *c, CURLcode code)
{
    long opened = 0;
    if (!c->http2 || !c->sent || !http_parser_untouched(&c->parser) ||
        !http_method_idempotent(c->call->method))
        return false;
    enum http_failure failure = verdict(c, code);
    (void)curl_easy_getinfo(c->easy, CURLINFO_NUM_CONNECTS, &opened); /* stays 0 when unknown */
    return opened == 0 && (failure == HTTP_FAILURE_CLOSED || failure == HTTP_FAILURE_RESET);
}

/* The request found no connection to go over: let it open one. */
static bool begin_anew(struct http_client *c)
{
    bool tls = c->version == CURL_HTTP_VERSION_2TLS;
    (void)curl_multi_remove_handle(c->engine->multi, c->easy); /* it was added: cannot fail */
    c->anew = false;
    c->error[0] = '\0';
    http_parser_begin(&c->parser, c->no_body);
    return set_version(c, tls ? c->version : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE) == CURLE_OK &&
           curl_multi_add_handle(c->engine->multi, c->easy) == CURLM_OK;
}

static void finish(struct http_client *c, CURLcode code, uint64_t now_us)
{
    if ((c->anew && code != CURLE_OPERATION_TIMEDOUT) || met_closing(c, code)) {
        if (begin_anew(c))
            return;
        code = CURLE_OUT_OF_MEMORY;
    }
    long opened = 0;
    struct http_result result = {
        .failure = verdict(c, code),
        .status = c->parser.status,
        .body_bytes = c->response.body_bytes,
        .location = str_of(c->response.location),
    };
    uint64_t phases_us[STATS_PHASE_COUNT];
    (void)curl_easy_getinfo(c->easy, CURLINFO_NUM_CONNECTS, &opened); /* stays 0 when unknown */
    c->engine->setup.counters->connections_opened += (uint64_t)opened;
    c->engine->setup.counters->connections_failed += code == CURLE_COULDNT_CONNECT;
    if (c->engine->setup.phases) {
        read_phases(c->easy, phases_us);
        result.phases_us = phases_us;
    }
    http_response_end(&c->response);
    c->busy = false;
    timers_cancel(c->engine->setup.timers, &c->first_byte);
    (void)curl_multi_remove_handle(c->engine->multi, c->easy); /* it was added: cannot fail */
    struct http_kept *kept = http_response_take_kept(&c->response, &result);
    c->engine->setup.done(c->owner, &result, now_us);
    http_kept_release(kept);
}

/* True when requests ended. */
static bool harvest(struct http_engine *e)
{
    CURLMsg *message;
    int left;
    bool any = false;
    while ((message = curl_multi_info_read(e->multi, &left))) {
        char *client = NULL;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &client); /* set at birth */
        finish((struct http_client *)client, code, clock_mono_us());
        any = true;
    }
    return any;
}

/* Curl's times count from the start of the transfer; the limit counts from the request sent. */
static void first_byte_late(struct timer *t, void *context, uint64_t now_us)
{
    struct http_client *c =
        (struct http_client *)((char *)t - offsetof(struct http_client, first_byte));
    curl_off_t sent = 0, first = 0;
    (void)context;
    (void)curl_easy_getinfo(c->easy, CURLINFO_PRETRANSFER_TIME_T, &sent); /* stay 0: not yet */
    (void)curl_easy_getinfo(c->easy, CURLINFO_STARTTRANSFER_TIME_T, &first);
    uint64_t limit_us = c->call->timeouts.first_byte_us;
    uint64_t by_us = c->begun_us + (uint64_t)sent + limit_us;
    if (first > 0)
        return;
    if (sent == 0 || by_us > now_us)
        timers_set(c->engine->setup.timers, t, sent == 0 ? now_us + limit_us : by_us);
    else
        finish(c, CURLE_OPERATION_TIMEDOUT, now_us);
}

static bool turn(struct http_engine *e, uint64_t now_us)
{
    int running;
    (void)now_us;
    (void)harvest(e);
    if (e->kick) { /* once a turn: a server that answers at once must not keep the loop here */
        e->kick = false;
        (void)curl_multi_socket_action(e->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        (void)harvest(e);
    }
    return e->kick;
}

/* --- calls ---------------------------------------------------------------------------------- */

static bool has_header(const struct http_call *call, struct str name)
{
    for (size_t i = 0; i < call->header_count; i++) {
        if (str_eq_nocase(call->headers[i].name, name))
            return true;
    }
    return false;
}

static int add_line(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (!longer)
        return -ENOMEM;
    *list = longer;
    return 0;
}

static int add_header(struct curl_slist **list, const struct plan_header *header)
{
    struct buf line;
    buf_init(&line, CURL_MAX_HEADER_BYTES);
    /* "Name;" is how curl is told of a header without a value */
    int rc = header->value.len
                 ? buf_printf(&line, "%.*s: %.*s", STR_ARG(header->name), STR_ARG(header->value))
                 : buf_printf(&line, "%.*s;", STR_ARG(header->name));
    if (rc == 0)
        rc = add_line(list, buf_c(&line));
    buf_done(&line);
    return rc;
}

/* Does the method carry a body by custom, so that an absent one is said by "Content-Length: 0"? */
static bool wants_length(struct str method)
{
    return str_eq(method, STR("POST")) || str_eq(method, STR("PUT")) ||
           str_eq(method, STR("PATCH"));
}

static int prepare(struct http_call *call)
{
    struct curl_slist *list = NULL;
    int rc = 0;
    if (!has_header(call, STR("User-Agent")))
        rc = add_line(&list, "User-Agent: cicada/" CICADA_VERSION);
    /* without these curl waits a second for "100 Continue" and calls every body a form */
    if (rc == 0 && call->body.ptr && !has_header(call, STR("Expect")))
        rc = add_line(&list, "Expect:");
    if (rc == 0 && (call->body.ptr || wants_length(call->method)) &&
        !has_header(call, STR("Content-Type")))
        rc = add_line(&list, "Content-Type:");
    for (size_t i = 0; rc == 0 && i < call->header_count; i++)
        rc = add_header(&list, &call->headers[i]);
    if (rc < 0)
        curl_slist_free_all(list);
    else
        call->prepared = list;
    return rc;
}

static void unprepare(struct http_call *call)
{
    curl_slist_free_all(call->prepared);
    call->prepared = NULL;
}

static CURLcode set_method(CURL *easy, const struct http_call *call)
{
    char method[PLAN_MAX_METHOD_BYTES + 1]; /* the scenario's loader allows less */
    size_t n = call->method.len < sizeof method ? call->method.len : sizeof method - 1;
    memcpy(method, call->method.ptr, n);
    method[n] = '\0';
    if (str_eq(call->method, STR("HEAD")) && !call->body.ptr)
        return curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    if (!call->body.ptr && !wants_length(call->method)) {
        if (str_eq(call->method, STR("GET")))
            return CURLE_OK;
        return curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
    }
    CURLcode rc = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body.len ? call->body.ptr : "");
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
    return rc;
}

/* 0 stays 0, which is no limit (for connecting: curl's own, five minutes) */
static long whole_ms(uint64_t us)
{
    return (long)((us + 999) / 1000);
}

/* Without TLS there is no asking: then a server is taken at our word that it speaks HTTP/2. But
 * before 8.0, curl puts a second layer of HTTP/2 on a connection that stands when it is told so
 * again, and the request fails. There CURL_HTTP_VERSION_2_0 is right; on a new connection that
 * would be HTTP/1.1 with an Upgrade, so we let it open none. */
static long version_of(const struct http_client *c, const struct http_call *call)
{
    if (!c->http2)
        return CURL_HTTP_VERSION_1_1;
    if (str_starts_nocase(call->url, STR("https:")))
        return CURL_HTTP_VERSION_2TLS;
    return c->engine->layers_twice && c->h2c_begun ? CURL_HTTP_VERSION_2_0
                                                   : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
}

static CURLcode set_version(struct http_client *c, long version)
{
    c->reuses = version == CURL_HTTP_VERSION_2_0;
    c->h2c_begun |= version == CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
    if (version == c->version)
        return CURLE_OK;
    c->version = version;
    return curl_easy_setopt(c->easy, CURLOPT_HTTP_VERSION, version);
}

static CURLcode set_call(CURL *easy, const struct http_call *call, struct curl_slist *headers)
{
    /* back to a plain GET first */
    CURLcode rc = curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_NOBODY, 0L);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, NULL);
    if (rc == CURLE_OK)
        rc = set_method(easy, call);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_URL, call->url.ptr);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, whole_ms(call->timeouts.total_us));
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, whole_ms(call->timeouts.connect_us));
    return rc;
}

static CURLcode set_cookies(struct http_client *c, struct str cookies)
{
    if (cookies.len == 0 && !c->has_cookies)
        return CURLE_OK;
    c->has_cookies = cookies.len > 0;
    return curl_easy_setopt(c->easy, CURLOPT_COOKIE, cookies.len ? cookies.ptr : NULL);
}

static CURLcode set_client(struct http_client *c);

/* A new handle; the connections are the share's and stay. */
static CURLcode renew_handle(struct http_client *c)
{
    CURL *easy = curl_easy_init();
    if (!easy)
        return CURLE_OUT_OF_MEMORY;
    curl_easy_cleanup(c->easy);
    c->easy = easy;
    c->call = NULL;
    c->has_cookies = c->forbids_reuse = false;
    c->resends = 0;
    return set_client(c);
}

/* A list for one request: the prepared one is shared, and stays as it is. */
static struct curl_slist *headers_of(struct http_client *c, const struct http_call *call)
{
    if (call->added.len == 0)
        return call->prepared;
    c->added = (struct curl_slist){(char *)(uintptr_t)call->added.ptr, call->prepared};
    return &c->added;
}

static CURLcode set_request(struct http_client *c, const struct http_call *call, struct str cookies)
{
    CURLcode rc = c->resends < CURL_MAX_RESENDS ? CURLE_OK : renew_handle(c);
    if (rc == CURLE_OK && (c->call != call || call->once)) {
        c->call = NULL;
        rc = set_call(c->easy, call, headers_of(c, call));
        if (rc != CURLE_OK)
            return rc;
        c->call = call;
        c->no_body = str_eq(call->method, STR("HEAD"));
        c->closes = http_call_closes(call);
    }
    if (rc == CURLE_OK && c->forbids_reuse) {
        c->forbids_reuse = false;
        rc = curl_easy_setopt(c->easy, CURLOPT_FORBID_REUSE, 0L);
    }
    if (rc == CURLE_OK)
        rc = set_version(c, version_of(c, call));
    return rc == CURLE_OK ? set_cookies(c, cookies) : rc;
}

static enum http_failure begin(struct http_client *c, const struct http_call *call,
                               struct str cookies, uint64_t now_us)
{
    if (set_request(c, call, cookies) != CURLE_OK)
        return HTTP_FAILURE_MEMORY;
    c->sent = c->anew = false;
    c->failure = c->not_sent = HTTP_FAILURE_NONE;
    c->error[0] = '\0';
    http_response_begin(&c->response, call, &c->engine->setup);
    http_parser_begin(&c->parser, c->no_body);
    if (curl_multi_add_handle(c->engine->multi, c->easy) != CURLM_OK)
        return HTTP_FAILURE_MEMORY;
    c->busy = true;
    c->begun_us = now_us;
    if (call->timeouts.first_byte_us)
        timers_set(c->engine->setup.timers, &c->first_byte, now_us + call->timeouts.first_byte_us);
    return HTTP_FAILURE_NONE;
}

/* --- clients -------------------------------------------------------------------------------- */

/* Curl is about to send the request. */
static int on_send(void *client, char *to, char *from, int to_port, int from_port)
{
    struct http_client *c = client;
    (void)to;
    (void)from;
    (void)to_port;
    (void)from_port;
    if (c->sent) {
        c->engine->setup.counters->retries++;
        c->resends++;
    }
    c->sent = true;
    http_parser_begin(&c->parser, c->no_body);
    return CURL_PREREQFUNC_OK;
}

/* Curl opens a connection. It does so after the request was sent when a kept-alive connection
 * turned out to be closed, be it a POST or not: a POST is not sent twice. */
static curl_socket_t on_open_socket(void *client, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct http_client *c = client;
    (void)purpose;
    if (c->sent && !http_method_idempotent(c->call->method)) {
        c->resends++;
        c->not_sent = c->error[0] ? transfer_failure(c) : HTTP_FAILURE_CLOSED;
        return CURL_SOCKET_BAD;
    }
    if (c->reuses) {
        c->anew = true;
        return CURL_SOCKET_BAD;
    }
    int fd = open_socket(c->engine, to);
    c->not_sent = fd < 0 ? http_failure_of_errno(errno) : HTTP_FAILURE_NONE;
    return fd;
}

/* Would curl go on, although the response is complete? It sends the rest of a request that was
 * answered early, waits for the body of a HEAD that had one itself, and reads to the close when a
 * transfer coding is named that is not chunked. */
static bool curl_goes_on(const struct http_client *c)
{
    curl_off_t sent = 0;
    if (c->parser.identity)
        return true;
    if (c->call->body.len == 0)
        return false;
    (void)curl_easy_getinfo(c->easy, CURLINFO_SIZE_UPLOAD_T, &sent); /* stays 0 when unknown */
    return c->no_body || (size_t)sent < c->call->body.len;
}

/* The end of the response. False: curl must stop here. */
static bool response_complete(struct http_client *c, bool more)
{
    if ((more || c->closes || !c->parser.keep_alive) && !c->forbids_reuse)
        c->forbids_reuse = curl_easy_setopt(c->easy, CURLOPT_FORBID_REUSE, 1L) == CURLE_OK;
    return !curl_goes_on(c);
}

/* Read what curl received. False: curl must give up. */
static bool take(struct http_client *c, struct str bytes)
{
    for (;;) {
        switch (http_parser_next(&c->parser, &bytes)) {
        case HTTP_EVENT_HEAD:
            http_response_head(&c->response, &c->parser, &c->engine->setup, c->owner);
            break;
        case HTTP_EVENT_BODY:
            c->failure = http_response_body(&c->response, c->parser.body);
            if (c->failure != HTTP_FAILURE_NONE)
                return false;
            break;
        case HTTP_EVENT_DONE:
            return response_complete(c, bytes.len > 0);
        case HTTP_EVENT_FAILED:
            return false;
        case HTTP_EVENT_MORE:
            return true;
        }
    }
}

/* The first word of an HTTP/2 head, which is curl's: "HTTP/2 200 ". The reader knows HTTP/1.1 only;
 * whose head it is when HTTP/2 was asked for shows that the server chose otherwise. */
static bool take_version(struct http_client *c, struct str *bytes)
{
    static const struct str version = {"HTTP/2", 6};
    if (!c->http2 || !http_parser_at_head(&c->parser))
        return true;
    if (!str_starts(*bytes, version)) {
        c->failure = HTTP_FAILURE_NO_HTTP2;
        return false;
    }
    if (c->version != CURL_HTTP_VERSION_2TLS)
        c->engine->heard_h2c = true;
    *bytes = str_sub(*bytes, version.len, bytes->len);
    return take(c, STR("HTTP/1.1"));
}

/* A line of the head, or a piece of the body. A head comes here rather than to a HEADERFUNCTION
 * because that would be called too late: before 8.1, curl joins a folded line to the line before,
 * and for the first one that is a line of the response before, freed long ago. */
static size_t on_bytes(char *bytes, size_t one, size_t n, void *client)
{
    struct http_client *c = client;
    struct str rest = {bytes, one * n};
    bool goes_on = take_version(c, &rest) && take(c, rest);
    http_response_settle(&c->response); /* the bytes are curl's */
    return goes_on ? one * n : 0;
}

static CURLcode set_client(struct http_client *c)
{
    CURL *easy = c->easy;
    CURLcode rc = CURLE_OK;
    struct str proxy = c->engine->setup.proxy;
    if (!proxy.ptr)
        proxy = c->class->proxy;
#define SET(option, value)                                                                         \
    if (rc == CURLE_OK)                                                                            \
    rc = curl_easy_setopt(easy, option, value)
    SET(CURLOPT_PRIVATE, (void *)c);
    SET(CURLOPT_SHARE, c->share);
    SET(CURLOPT_PREREQFUNCTION, on_send);
    SET(CURLOPT_PREREQDATA, (void *)c);
    SET(CURLOPT_WRITEFUNCTION, on_bytes);
    SET(CURLOPT_WRITEDATA, (void *)c);
    SET(CURLOPT_HEADER, 1L);                 /* head and body go one way */
    SET(CURLOPT_HTTP_TRANSFER_DECODING, 0L); /* chunks as they are, for the reader */
    SET(CURLOPT_ERRORBUFFER, c->error);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    SET(CURLOPT_OPENSOCKETDATA, (void *)c);
    SET(CURLOPT_CLOSESOCKETFUNCTION, on_close_socket);
    SET(CURLOPT_CLOSESOCKETDATA, (void *)c->engine);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* else ending a request waits for its look-up, loop and all */
    SET(CURLOPT_PROXY, proxy.ptr ? proxy.ptr : ""); /* as Locust's clients, none of the */
    SET(CURLOPT_NOPROXY, "");                       /* environment's */
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (c->http2) /* a proxy that passes requests on would have them in HTTP/1.1 */
        SET(CURLOPT_HTTPPROXYTUNNEL, 1L);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, c->version = CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_HTTP_CONTENT_DECODING, 0L);
    SET(CURLOPT_MAXAGE_CONN, 3600L);
    SET(CURLOPT_HTTP09_ALLOWED, 0L);
    const char *ca_file = secure_getenv("SSL_CERT_FILE"); /* as OpenSSL does in the fast engine */
    if (ca_file) {
        SET(CURLOPT_CAINFO, ca_file);
        SET(CURLOPT_PROXY_CAINFO, ca_file);
    }
    if (c->class->insecure) {
        SET(CURLOPT_SSL_VERIFYPEER, 0L);
        SET(CURLOPT_SSL_VERIFYHOST, 0L);
        SET(CURLOPT_PROXY_SSL_VERIFYPEER, 0L);
        SET(CURLOPT_PROXY_SSL_VERIFYHOST, 0L);
    }
    const struct str pem = c->class->client_certificate;
    const struct curl_blob blob = {(char *)(uintptr_t)pem.ptr, pem.len, CURL_BLOB_NOCOPY};
    if (pem.ptr) {
        SET(CURLOPT_SSLCERT_BLOB, &blob);
        SET(CURLOPT_SSLKEY_BLOB, &blob);
    }
#undef SET
    return rc;
}

static void client_free(struct http_client *c)
{
    if (!c)
        return;
    timers_cancel(c->engine->setup.timers, &c->first_byte);
    if (c->busy)
        (void)curl_multi_remove_handle(c->engine->multi, c->easy); /* cuts the transfer */
    if (c->easy)
        curl_easy_cleanup(c->easy);
    if (c->share)
        (void)curl_share_cleanup(c->share); /* nobody else uses it: closes the connections */
    http_response_done(&c->response);
    http_parser_done(&c->parser);
    free(c);
}

static struct http_client *client_new(struct http_engine *e, void *owner,
                                      const struct plan_class *class)
{
    struct http_client *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->engine = e;
    c->owner = owner;
    c->class = class;
    c->http2 = e->setup.http2 || class->http2;
    c->first_byte.fire = first_byte_late;
    http_parser_init(&c->parser);
    c->easy = curl_easy_init();
    c->share = curl_share_init();
    if (!c->easy || !c->share ||
        curl_share_setopt(c->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT) != CURLSHE_OK ||
        set_client(c) != CURLE_OK) {
        client_free(c);
        return NULL;
    }
    return c;
}

static void engine_close(struct http_engine *e)
{
    if (!e)
        return;
    timers_cancel(e->setup.timers, &e->timer);
    if (e->multi)
        (void)curl_multi_cleanup(e->multi); /* every client is gone */
    for (size_t i = 0; i < e->socket_count; i++)
        free(e->sockets[i]);
    free(e->sockets);
    sources_done(&e->sources);
    free(e);
}

static int engine_open(const struct http_engine_setup *setup, struct http_engine **ret)
{
    struct http_engine *e = calloc(1, sizeof *e);
    if (!e)
        return -ENOMEM;
    e->setup = *setup;
    e->timer.fire = timer_fired;
    int rc = sources_init(&e->sources, setup->sources, setup->source_count);
    if (rc < 0) {
        engine_close(e);
        return rc;
    }
    e->layers_twice = curl_version_info(CURLVERSION_NOW)->version_num < 0x080000;
    e->multi = curl_multi_init();
    if (!e->multi || curl_multi_setopt(e->multi, CURLMOPT_SOCKETFUNCTION, on_socket) != CURLM_OK ||
        curl_multi_setopt(e->multi, CURLMOPT_SOCKETDATA, e) != CURLM_OK ||
        curl_multi_setopt(e->multi, CURLMOPT_TIMERFUNCTION, on_timer) != CURLM_OK ||
        curl_multi_setopt(e->multi, CURLMOPT_TIMERDATA, e) != CURLM_OK ||
        curl_multi_setopt(e->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) != CURLM_OK) {
        engine_close(e);
        return -ENOMEM;
    }
    *ret = e;
    return 0;
}

const struct http_ops http_curl_ops = {
    .name = "curl",
    .open = engine_open,
    .close = engine_close,
    .turn = turn,
    .prepare = prepare,
    .unprepare = unprepare,
    .client_new = client_new,
    .client_free = client_free,
    .begin = begin,
};

/* One curl multi handle for the time of a call. Names are resolved by curl's own threads, and an
 * expired request leaves its thread behind (CURLOPT_QUICK_EXIT) instead of waiting for a silent
 * name server. HTTP/1.1 only: each request has its connection, so multiplexing gains nothing. */
#include "proto/http/http.h"

#include "base/clock.h"

#include <assert.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#define READ_BYTES   (64L * 1024) /* of one step of a body */
#define POLL_MAX_MS  1000         /* the timeouts wake the loop earlier */
#define X509_EXPIRED 10 /* OpenSSL's verify codes, as CURLINFO_SSL_VERIFYRESULT gives them */

struct transfer {
    const struct http_query *request;
    struct http_answer *answer;
    CURL *easy;
    struct curl_slist *headers, *connect_to;
    char *url;      /* with the TLS name as its host, or NULL */
    int write_code; /* why the body was refused */
    bool page_cut;  /* enough of an error's page was read */
    bool added, finished;
};

static void fail(struct transfer *t, int code, const char *text)
{
    t->answer->code = code;
    (void)snprintf(t->answer->error, sizeof t->answer->error, "%s", text); /* cut is fine */
    t->finished = true;
}

/* --- the request --------------------------------------------------------------------------------
 */

/* A line break would begin a header of its own. */
static bool is_one_line(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' && *text != '\t')
            return false;
    }
    return true;
}

static int add_line(struct curl_slist **list, const char *name, const char *value)
{
    struct buf line;
    buf_init(&line, 1u << 20);
    int rc = buf_printf(&line, "%s%s", name, value);
    struct curl_slist *grown = rc == 0 ? curl_slist_append(*list, buf_c(&line)) : NULL;
    buf_done(&line);
    if (!grown)
        return -ENOMEM;
    *list = grown;
    return 0;
}

static int set_headers(struct transfer *t)
{
    const struct http_query *r = t->request;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->header_count; i++)
        rc = is_one_line(r->headers[i]) ? add_line(&t->headers, "", r->headers[i]) : -EINVAL;
    if (rc == 0 && r->bearer_token)
        rc = is_one_line(r->bearer_token)
                 ? add_line(&t->headers, "Authorization: Bearer ", r->bearer_token)
                 : -EINVAL;
    if (rc == 0 && r->body.ptr) /* no waiting for "100 Continue" */
        rc = add_line(&t->headers, "Expect:", "");
    return rc;
}

/* curl takes the TLS name from the URL, so the URL gets the wanted one, and the connection and the
 * Host header keep the real one. */
static int set_server_name(struct transfer *t)
{
    char *host = NULL, *port = NULL, *own_port = NULL;
    struct buf line;
    buf_init(&line, 4096);
    CURLU *url = curl_url();
    int rc = url ? 0 : -ENOMEM;
    if (rc == 0 && (curl_url_set(url, CURLUPART_URL, t->request->url, 0) ||
                    curl_url_get(url, CURLUPART_HOST, &host, 0) ||
                    curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT)))
        rc = -EINVAL;
    if (rc == 0)
        (void)curl_url_get(url, CURLUPART_PORT, &own_port, 0); /* none is an answer too */
    if (rc == 0 && (curl_url_set(url, CURLUPART_HOST, t->request->tls.server_name, 0) ||
                    curl_url_get(url, CURLUPART_URL, &t->url, 0)))
        rc = -EINVAL;
    if (rc == 0)
        rc = buf_printf(&line, "::%s:%s", host, port);
    if (rc == 0)
        rc = add_line(&t->connect_to, "", buf_c(&line));
    buf_clear(&line);
    if (rc == 0)
        rc = buf_printf(&line, "%s%s%s", host, own_port ? ":" : "", own_port ? own_port : "");
    if (rc == 0)
        rc = add_line(&t->headers, "Host: ", buf_c(&line));
    buf_done(&line);
    curl_free(host);
    curl_free(port);
    curl_free(own_port);
    curl_url_cleanup(url);
    return rc;
}

static CURLcode set_pem(CURL *easy, const struct http_pem *pem, CURLoption file, CURLoption data)
{
    if (pem->data.ptr) {
        union { /* curl copies the bytes but takes a pointer to writable ones */
            const char *ours;
            void *curls;
        } bytes = {pem->data.ptr};
        struct curl_blob blob = {bytes.curls, pem->data.len, CURL_BLOB_COPY};
        return curl_easy_setopt(easy, data, &blob);
    }
    return pem->file ? curl_easy_setopt(easy, file, pem->file) : CURLE_OK;
}

static CURLcode set_tls(CURL *easy, const struct http_tls *tls)
{
    CURLcode rc = CURLE_OK;
    if (tls->ca.file || tls->ca.data.ptr)
        rc = curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* "instead of" */
    if (!rc)
        rc = set_pem(easy, &tls->ca, CURLOPT_CAINFO, CURLOPT_CAINFO_BLOB);
    if (!rc)
        rc = set_pem(easy, &tls->cert, CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB);
    if (!rc)
        rc = set_pem(easy, &tls->key, CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB);
    if (!rc) /* an encrypted key must fail, not ask on the terminal */
        rc = curl_easy_setopt(easy, CURLOPT_KEYPASSWD, "");
    if (!rc && tls->insecure)
        rc = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    if (!rc && tls->insecure)
        rc = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    return rc;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct transfer *t = arg;
    struct http_answer *a = t->answer;
    size_t n = size * count; /* size is always 1 */
    long status = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status); /* known by now */
    bool good = status >= 200 && status < 300;
    if (!good) {
        size_t room = a->body.max > HTTP_ERROR_BODY_BYTES ? HTTP_ERROR_BODY_BYTES : a->body.max;
        size_t take = n < room - a->body.len ? n : room - a->body.len;
        t->write_code = buf_add(&a->body, (struct str){bytes, take});
        t->page_cut = take < n;
        return t->write_code == 0 && !t->page_cut ? n : 0;
    }
    if (!t->request->sink) {
        t->write_code = buf_add(&a->body, (struct str){bytes, n});
    } else {
        curl_off_t before = (curl_off_t)a->body.max; /* what is left of max_bytes */
        if ((curl_off_t)n > before)
            t->write_code = -ERANGE;
        else
            t->write_code = t->request->sink(t->request->sink_arg, (struct str){bytes, n});
        a->body.max -= t->write_code == 0 ? n : 0;
    }
    return t->write_code == 0 ? n : 0;
}

static CURLcode set_body(struct transfer *t)
{
    const struct http_query *r = t->request;
    CURLcode rc = CURLE_OK;
    if (r->body.ptr) {
        rc = curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
        if (!rc)
            rc = curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, r->body.ptr);
    }
    if (!rc && r->method && strcmp(r->method, "HEAD") == 0)
        rc = curl_easy_setopt(t->easy, CURLOPT_NOBODY, 1L);
    else if (!rc && r->method)
        rc = curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, r->method);
    return rc;
}

static CURLcode set_auth(struct transfer *t)
{
    const struct http_query *r = t->request;
    CURLcode rc = CURLE_OK;
    if (r->username)
        rc = curl_easy_setopt(t->easy, CURLOPT_USERNAME, r->username);
    if (!rc && r->password)
        rc = curl_easy_setopt(t->easy, CURLOPT_PASSWORD, r->password);
    if (!rc && r->proxy)
        rc = curl_easy_setopt(t->easy, CURLOPT_PROXY, r->proxy);
    return rc;
}

static CURLcode set_bounds(struct transfer *t)
{
    const struct http_query *r = t->request;
    CURL *e = t->easy;
    CURLcode rc;
    if ((rc = curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L)) ||
        (rc = curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L)) ||
        (rc = curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)r->timeout_ms)) ||
        (rc = curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)r->timeout_ms)) ||
        (rc = curl_easy_setopt(e, CURLOPT_BUFFERSIZE, READ_BYTES)) ||
        (rc = curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1)) ||
        (rc = curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https")) ||
        (rc = curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, "http,https")) ||
        (rc = curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, r->follow_redirects ? 1L : 0L)) ||
        (rc = curl_easy_setopt(e, CURLOPT_MAXREDIRS, (long)HTTP_REDIRECTS_MAX)))
        return rc;
    return CURLE_OK;
}

static CURLcode set_transfer(struct transfer *t)
{
    CURL *e = t->easy;
    CURLcode rc;
    if ((rc = set_bounds(t)) || (rc = set_tls(e, &t->request->tls)) || (rc = set_auth(t)) ||
        (rc = set_body(t)) ||
        (rc = curl_easy_setopt(e, CURLOPT_URL, t->url ? t->url : t->request->url)) ||
        (rc = curl_easy_setopt(e, CURLOPT_USERAGENT, "cicada/" CICADA_VERSION)) ||
        (rc = curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip")) ||
        (rc = curl_easy_setopt(e, CURLOPT_HTTPHEADER, t->headers)) ||
        (rc = curl_easy_setopt(e, CURLOPT_CONNECT_TO, t->connect_to)) ||
        (rc = curl_easy_setopt(e, CURLOPT_PRIVATE, t)) ||
        (rc = curl_easy_setopt(e, CURLOPT_WRITEDATA, t)) ||
        (rc = curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body)))
        return rc;
    return CURLE_OK;
}

/* --- the outcome --------------------------------------------------------------------------------
 */

static const char *tls_text(CURLcode code, long verify)
{
    if (code == CURLE_SSL_CACERT_BADFILE)
        return "TLS: the CA certificates cannot be read";
    if (code == CURLE_SSL_CERTPROBLEM)
        return "TLS: the client certificate or its key cannot be used";
    if (code != CURLE_PEER_FAILED_VERIFICATION)
        return "TLS: handshake failed";
    if (verify <= 1) /* the chain is good, or (the value at first) the name was looked at before */
        return "TLS: certificate is for another name";
    if (verify == X509_EXPIRED)
        return "TLS: certificate has expired";
    return "TLS: certificate is not signed by a trusted authority";
}

/* curl's codes in this module's words; text NULL means that it depends on more. */
static const struct {
    CURLcode curl;
    int code;
    const char *text;
} outcomes[] = {
    {CURLE_COULDNT_RESOLVE_HOST, -ENOENT, "name not found"},
    {CURLE_COULDNT_RESOLVE_PROXY, -ENOENT, "name of the proxy not found"},
    {CURLE_GOT_NOTHING, -ECONNRESET, "connection closed without an answer"},
    {CURLE_PARTIAL_FILE, -ECONNRESET, "answer cut short"},
    {CURLE_RECV_ERROR, -ECONNRESET, "connection broken"},
    {CURLE_SEND_ERROR, -ECONNRESET, "connection broken"},
    {CURLE_SSL_CONNECT_ERROR, -EKEYREJECTED, NULL},
    {CURLE_PEER_FAILED_VERIFICATION, -EKEYREJECTED, NULL},
    {CURLE_SSL_CACERT_BADFILE, -EKEYREJECTED, NULL},
    {CURLE_SSL_CERTPROBLEM, -EKEYREJECTED, NULL},
    {CURLE_WEIRD_SERVER_REPLY, -EPROTO, "not an HTTP answer"},
    {CURLE_UNSUPPORTED_PROTOCOL, -EPROTO, "not an HTTP answer"}, /* the URL's scheme was checked */
    {CURLE_BAD_CONTENT_ENCODING, -EPROTO, "body is not what its content encoding says"},
    {CURLE_TOO_MANY_REDIRECTS, -EPROTO, "too many redirects"},
    {CURLE_URL_MALFORMAT, -EINVAL, "malformed URL"},
    {CURLE_OUT_OF_MEMORY, -ENOMEM, "out of memory"},
};

static void fail_connect(struct transfer *t)
{
    long number = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &number); /* stays 0 when unknown */
    if (number == ECONNREFUSED)
        fail(t, -ECONNREFUSED, "connection refused");
    else if (number == EHOSTUNREACH || number == ENETUNREACH)
        fail(t, -EHOSTUNREACH, "host unreachable");
    else
        fail(t, -EIO, "could not connect");
}

static void fail_timeout(struct transfer *t)
{
    unsigned ms = t->request->timeout_ms;
    char text[64];
    if (ms % 1000 == 0)
        (void)snprintf(text, sizeof text, "timed out after %u s", ms / 1000); /* fits */
    else
        (void)snprintf(text, sizeof text, "timed out after %u ms", ms); /* fits */
    fail(t, -ETIMEDOUT, text);
}

static void fail_write(struct transfer *t)
{
    char text[64];
    (void)snprintf(text, sizeof text, "answer larger than %zu bytes", t->request->max_bytes);
    fail(t, t->write_code,
         t->write_code == -ERANGE   ? text
         : t->write_code == -ENOMEM ? "out of memory"
                                    : "answer refused");
}

static void fail_curl(struct transfer *t, CURLcode curl)
{
    if (curl == CURLE_OPERATION_TIMEDOUT) {
        fail_timeout(t);
        return;
    }
    if (curl == CURLE_COULDNT_CONNECT) {
        fail_connect(t);
        return;
    }
    if (curl == CURLE_WRITE_ERROR && t->write_code != 0) {
        fail_write(t);
        return;
    }
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
        if (outcomes[i].curl != curl)
            continue;
        long verify = 0;
        (void)curl_easy_getinfo(t->easy, CURLINFO_SSL_VERIFYRESULT, &verify); /* stays 0 */
        fail(t, outcomes[i].code, outcomes[i].text ? outcomes[i].text : tls_text(curl, verify));
        return;
    }
    fail(t, -EIO, curl_easy_strerror(curl)); /* fixed texts of the library, nothing foreign */
}

static void take_status(struct transfer *t)
{
    struct http_answer *a = t->answer;
    char *target = NULL;
    (void)curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &target); /* stays NULL */
    if (a->status >= 200 && a->status < 300)
        return;
    struct buf shown;
    buf_init(&shown, HTTP_ERROR_BYTES);
    if (target && http_url_shown(&shown, target) == 0)
        (void)snprintf(a->error, sizeof a->error, "HTTP %d, redirect to %.*s", a->status,
                       STR_ARG(buf_str(&shown))); /* cut is fine */
    else
        (void)snprintf(a->error, sizeof a->error, "HTTP %d", a->status); /* fits */
    buf_done(&shown);
}

static void finish(struct transfer *t, CURLcode curl)
{
    struct http_answer *a = t->answer;
    long status = 0;
    curl_off_t us = 0;
    char *type = NULL;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status); /* these three keep */
    (void)curl_easy_getinfo(t->easy, CURLINFO_TOTAL_TIME_T, &us);      /* their defaults   */
    (void)curl_easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &type);
    a->status = status > 0 && status < 1000 ? (int)status : 0;
    a->duration_us = us > 0 ? (uint64_t)us : 0;
    if (type)
        (void)snprintf(a->content_type, sizeof a->content_type, "%s", type); /* cut is fine */
    if (curl == CURLE_OK || t->page_cut)
        take_status(t);
    else
        fail_curl(t, curl);
    t->finished = true;
}

/* --- the loop -----------------------------------------------------------------------------------
 */

/* http and https only; anything else would reach curl's other protocols or its guesses. */
static int check_url(const char *url)
{
    struct buf shown;
    buf_init(&shown, 1u << 20);
    int rc = http_url_shown(&shown, url);
    buf_done(&shown);
    return rc;
}

static void start(CURLM *multi, struct transfer *t)
{
    int rc = check_url(t->request->url);
    if (rc < 0) {
        fail(t, rc, rc == -ENOMEM ? "out of memory" : "malformed URL");
        return;
    }
    rc = set_headers(t);
    if (rc == 0 && t->request->tls.server_name)
        rc = set_server_name(t);
    if (rc < 0) {
        fail(t, rc, rc == -ENOMEM ? "out of memory" : "a header or a token holds a line break");
        return;
    }
    t->easy = curl_easy_init();
    CURLcode curl = t->easy ? set_transfer(t) : CURLE_OUT_OF_MEMORY;
    if (curl || curl_multi_add_handle(multi, t->easy)) {
        fail(t, -ENOMEM, "out of memory");
        return;
    }
    t->added = true;
}

static void take_finished(CURLM *multi)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(multi, &left))) {
        char *owner = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner); /* always set */
        finish((void *)owner, message->data.result);
    }
}

/* Until all have ended. Returns what ended the loop early, or 0. */
static int run(CURLM *multi, int abort_fd)
{
    struct curl_waitfd extra = {.fd = abort_fd, .events = CURL_WAIT_POLLIN};
    for (;;) {
        int running = 0;
        if (curl_multi_perform(multi, &running))
            return -EIO;
        take_finished(multi);
        if (running == 0)
            return 0;
        if (curl_multi_poll(multi, &extra, abort_fd >= 0, POLL_MAX_MS, NULL))
            return -EIO;
        if (abort_fd >= 0 && extra.revents)
            return -ECANCELED;
        extra.revents = 0;
    }
}

static void transfer_done(struct transfer *t, CURLM *multi)
{
    if (t->added)
        (void)curl_multi_remove_handle(multi, t->easy); /* it was added: cannot fail */
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    curl_slist_free_all(t->connect_to);
    curl_free(t->url);
}

int http_fetch(const struct http_query *requests, size_t count, int abort_fd,
               struct http_answer *ret_answers)
{
    uint64_t begin_us = clock_mono_us();
    struct transfer *transfers = calloc(count ? count : 1, sizeof *transfers);
    CURLM *multi = curl_multi_init();
    int rc = transfers && multi ? 0 : -ENOMEM, ended = 0;
    for (size_t i = 0; i < count; i++) {
        ret_answers[i] = (struct http_answer){.code = rc};
        buf_init(&ret_answers[i].body, requests[i].max_bytes);
        if (rc < 0)
            (void)snprintf(ret_answers[i].error, sizeof ret_answers[i].error, "out of memory");
    }
    if (rc == 0) {
        for (size_t i = 0; i < count; i++) {
            assert(requests[i].timeout_ms > 0);
            transfers[i] = (struct transfer){.request = &requests[i], .answer = &ret_answers[i]};
            start(multi, &transfers[i]);
        }
        ended = run(multi, abort_fd);
        for (size_t i = 0; i < count; i++) {
            if (!transfers[i].finished)
                fail(&transfers[i], ended, ended == -ECANCELED ? "cancelled" : "could not wait");
            if (ret_answers[i].duration_us == 0)
                ret_answers[i].duration_us = clock_mono_us() - begin_us;
            transfer_done(&transfers[i], multi);
        }
    }
    (void)curl_multi_cleanup(multi); /* NULL is nothing; the transfers are gone */
    free(transfers);
    return rc;
}

void http_answer_done(struct http_answer *a)
{
    buf_done(&a->body);
}

/* --- URLs ---------------------------------------------------------------------------------------
 */

int http_escape(struct buf *b, struct str s)
{
    static const char hex[] = "0123456789ABCDEF";
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
            (c != '\0' && strchr("-._~", c)))
            rc = buf_add_byte(b, (char)c);
        else
            rc = buf_add(b, (struct str){(char[]){'%', hex[c >> 4], hex[c & 15]}, 3});
    }
    return rc;
}

int http_url_shown(struct buf *b, const char *text)
{
    char *scheme = NULL, *shown = NULL;
    CURLU *url = curl_url();
    int rc = url ? 0 : -ENOMEM;
    CURLUcode set = url ? curl_url_set(url, CURLUPART_URL, text, 0) : CURLUE_OK;
    if (set == CURLUE_OUT_OF_MEMORY)
        rc = -ENOMEM;
    else if (set || (url && curl_url_get(url, CURLUPART_SCHEME, &scheme, 0)))
        rc = -EINVAL;
    else if (url && strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
        rc = -EINVAL;
    if (rc == 0 && (curl_url_set(url, CURLUPART_USER, NULL, 0) ||
                    curl_url_set(url, CURLUPART_PASSWORD, NULL, 0) ||
                    curl_url_set(url, CURLUPART_OPTIONS, NULL, 0) ||
                    curl_url_set(url, CURLUPART_QUERY, NULL, 0) ||
                    curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0) ||
                    curl_url_get(url, CURLUPART_URL, &shown, 0)))
        rc = -ENOMEM;
    if (rc == 0)
        rc = buf_add(b, str_of(shown));
    curl_free(scheme);
    curl_free(shown);
    curl_url_cleanup(url);
    return rc;
}

/* A table of sets with four places each: the least used of a set makes room for a new one, unless
 * its request is under way. Before it a small table for what consists of a method and a URL: it is
 * found by where the URL lies, and taken when the text is still the same. */
#include "worker/engine/native_call.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "worker/scenario/url.h"

#include <math.h>
#include <stdlib.h>

#define WAYS 4
#define MULT UINT64_C(0x9E3779B97F4A7C15)

struct native_calls {
    const struct http_ops *ops;
    uint64_t uses;
    struct native_call *quick[NATIVE_CALL_QUICK];
    struct native_call *at[NATIVE_CALL_SETS][WAYS];
};

/* What a request asks for, looked at once. */
struct wish {
    uint64_t hash;
    struct str method, host, url, name, body;
    const struct cicada_header *headers;
    size_t header_count;
    size_t body_limit;
    struct plan_timeouts timeouts;
    bool follow;
    size_t bytes;
};

/* --- finding -------------------------------------------------------------------------------- */

static inline uint64_t mix(uint64_t hash, struct str text)
{
    uint64_t word;
    size_t at = 0;
    hash ^= text.len;
    for (; at + sizeof word <= text.len; at += sizeof word) {
        memcpy(&word, text.ptr + at, sizeof word);
        hash = (hash ^ word) * MULT;
        hash ^= hash >> 29;
    }
    word = 0;
    for (unsigned shift = 0; at < text.len; at++, shift += 8)
        word |= (uint64_t)(unsigned char)text.ptr[at] << shift;
    hash = (hash ^ word) * MULT;
    return hash ^ hash >> 29;
}

static uint64_t limit_us(double seconds)
{
    if (!(seconds > 0))
        return 0;
    double us = ceil(fmin(seconds, PLAN_MAX_TIMEOUT_S) * 1e6);
    return us < 1 ? 1 : (uint64_t)us;
}

static struct wish read_wish(const struct cicada_request *r, struct str host)
{
    struct wish w = {.host = host, .url = str_of(r->url), .headers = r->headers};
    w.method = r->method ? str_of(r->method) : r->body ? STR("POST") : STR("GET");
    if (r->name)
        w.name = str_of(r->name);
    if (r->body)
        w.body = (struct str){r->body, r->body_length};
    w.follow = !r->no_redirects;
    w.body_limit = r->body_limit == 0                ? NATIVE_CALL_BODY_BYTES
                   : r->body_limit == CICADA_NO_BODY ? 0
                                                     : r->body_limit;
    w.timeouts.total_us = limit_us(r->timeout_s);
    w.timeouts.connect_us = limit_us(r->connect_timeout_s);
    const uint64_t settings = w.timeouts.total_us ^ w.timeouts.connect_us << 24 ^
                              (uint64_t)w.body_limit << 40 ^ (uint64_t)w.follow << 63;
    w.hash = mix(w.method.len ^ settings * MULT ^ (uint64_t)(uintptr_t)host.ptr, w.url);
    if (w.name.len)
        w.hash = mix(w.hash, w.name);
    if (w.body.len && w.body.len <= NATIVE_CALL_KEPT_BYTES)
        w.hash = mix(w.hash, w.body);
    w.bytes = w.url.len + w.name.len + w.body.len + w.method.len;
    while (w.headers && w.headers[w.header_count].name) {
        const struct cicada_header *h = &w.headers[w.header_count++];
        struct str value = str_of(h->value);
        w.hash = mix(w.hash, value);
        w.bytes += strlen(h->name) + value.len;
    }
    return w;
}

static bool same_headers(const struct native_call *c, const struct wish *w)
{
    if (c->header_count != w->header_count)
        return false;
    for (size_t i = 0; i < c->header_count; i++) {
        if (!str_eq(c->headers[i].name, str_of(w->headers[i].name)) ||
            !str_eq(c->headers[i].value, str_of(w->headers[i].value)))
            return false;
    }
    return true;
}

static bool is_it(const struct native_call *c, const struct wish *w)
{
    return c->hash == w->hash && str_eq(c->url, w->url) && c->host.ptr == w->host.ptr &&
           str_eq(c->method, w->method) && !c->name.ptr == !w->name.ptr &&
           str_eq(c->name, w->name) && !c->body.ptr == !w->body.ptr && str_eq(c->body, w->body) &&
           c->follow == w->follow && c->body_limit == w->body_limit &&
           c->timeouts.total_us == w->timeouts.total_us &&
           c->timeouts.connect_us == w->timeouts.connect_us && same_headers(c, w);
}

/* --- making --------------------------------------------------------------------------------- */

static bool is_value(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7F)
            return false;
    }
    return true;
}

static const char *fault_of(const struct native_call *c)
{
    if (!str_is_token(c->method) || c->method.len > PLAN_MAX_METHOD_BYTES)
        return "request with an invalid method";
    if (c->url.len == 0 || c->url.len > PLAN_MAX_URL_BYTES)
        return "request with an empty or too long URL";
    if (!url_is_absolute(c->url) && url_has_scheme(c->url))
        return "request to an invalid URL";
    for (size_t i = 0; i < c->header_count; i++) {
        struct str name = c->headers[i].name;
        if (!str_is_token(name) || !is_value(c->headers[i].value) ||
            str_eq_nocase(name, STR("Content-Length")) ||
            str_eq_nocase(name, STR("Transfer-Encoding")))
            return "request with an invalid header";
    }
    return url_is_absolute(c->url) || c->host.ptr ? NULL : "request to a path without a host";
}

static char *put(char **at, struct str text, struct str *ret)
{
    char *begin = *at;
    if (text.len)
        memcpy(begin, text.ptr, text.len);
    begin[text.len] = '\0';
    *ret = (struct str){begin, text.len};
    *at += text.len + 1;
    return begin;
}

/* One piece of memory: the headers' table, then all texts. */
static int copy_texts(struct native_call *c, const struct wish *w)
{
    size_t table = w->header_count * sizeof(struct plan_header);
    char *at = malloc(table + w->bytes + 5 + w->header_count * 2);
    if (!at)
        return -ENOMEM;
    c->memory = at;
    struct plan_header *headers = c->memory;
    at += table;
    for (size_t i = 0; i < w->header_count; i++) {
        (void)put(&at, str_of(w->headers[i].name), &headers[i].name);
        (void)put(&at, str_of(w->headers[i].value), &headers[i].value);
    }
    c->headers = headers;
    c->header_count = w->header_count;
    (void)put(&at, w->method, &c->method);
    (void)put(&at, w->url, &c->url);
    if (w->name.ptr)
        (void)put(&at, w->name, &c->name);
    if (w->body.ptr)
        (void)put(&at, w->body, &c->body);
    return 0;
}

/* The URL as it is sent. -EINVAL: it is none. */
static int make_url(struct native_call *c, struct buf *url)
{
    struct buf encoded;
    struct url parts;
    buf_init(&encoded, PLAN_MAX_URL_BYTES * 3 + 1);
    int rc = url_encode(&encoded, c->url);
    if (rc == 0)
        rc = url_is_absolute(buf_str(&encoded)) ? buf_add(url, buf_str(&encoded))
                                                : url_join(url, c->host, buf_str(&encoded));
    buf_done(&encoded);
    return rc < 0 ? rc : url_parse(buf_str(url), &parts, NULL);
}

static int prepare(struct native_calls *calls, struct native_call *c)
{
    struct buf url;
    buf_init(&url, PLAN_MAX_URL_BYTES * 4);
    c->error = fault_of(c);
    int rc = c->error ? 0 : make_url(c, &url);
    if (rc == -EINVAL || rc == -ERANGE) {
        c->error = "request to an invalid URL";
        rc = 0;
    }
    c->call = (struct http_call){
        .method = c->method,
        .url = buf_str(&url),
        .headers = c->headers,
        .header_count = c->header_count,
        .body = c->body,
        .timeouts = c->timeouts,
        .wants_body_bytes = c->body_limit,
        .wants_head = true,
        .once = true, /* another one may come to lie at its address */
    };
    if (rc == 0 && !c->error)
        rc = calls->ops->prepare(&c->call);
    if (rc < 0 || c->error)
        c->call.url = (struct str){NULL, 0};
    else
        (void)buf_take(&url); /* it is the call's */
    buf_done(&url);
    return rc;
}

static struct native_call **quick_place(struct native_calls *calls, struct str host,
                                        const char *method, const char *url)
{
    uint64_t at = ((uintptr_t)url ^ (uintptr_t)method << 20 ^ (uintptr_t)host.ptr << 40) * MULT;
    return &calls->quick[at >> 56];
}

/* No longer found by where its URL lies. */
static void forget_quick(struct native_calls *calls, struct native_call *c)
{
    if (!c->quick_url)
        return;
    *quick_place(calls, c->host, c->quick_method, c->quick_url) = NULL;
    c->quick_url = NULL;
}

static void call_free(struct native_calls *calls, struct native_call *c)
{
    if (!c)
        return;
    forget_quick(calls, c);
    calls->ops->unprepare(&c->call);
    free((char *)(uintptr_t)c->call.url.ptr);
    free(c->memory);
    binding_unref(c->binding);
    free(c);
}

static struct native_call *call_new(struct native_calls *calls, struct binding *binding,
                                    const struct wish *w)
{
    struct native_call *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->hash = w->hash;
    c->binding = binding_ref(binding);
    c->host = w->host;
    c->follow = w->follow;
    c->body_limit = w->body_limit;
    c->timeouts = w->timeouts;
    if (copy_texts(c, w) == 0 && prepare(calls, c) == 0) {
        c->row = utf8_cut(c->name.len ? c->name : c->url, PLAN_MAX_NAME_BYTES);
        return c;
    }
    call_free(calls, c);
    return NULL;
}

/* --- the table ------------------------------------------------------------------------------ */

struct native_calls *native_calls_new(const struct http_ops *ops)
{
    struct native_calls *calls = calloc(1, sizeof *calls);
    if (calls)
        calls->ops = ops;
    return calls;
}

void native_calls_free(struct native_calls *calls)
{
    for (size_t i = 0; calls && i < NATIVE_CALL_SETS; i++) {
        for (size_t j = 0; j < WAYS; j++)
            call_free(calls, calls->at[i][j]);
    }
    free(calls);
}

/* The place to put a new one: an empty one, or the least used that nobody uses now. */
static struct native_call **place_for(struct native_call **set)
{
    struct native_call **place = NULL;
    for (size_t j = 0; j < WAYS; j++) {
        if (!set[j])
            return &set[j];
        if (set[j]->pins == 0 && (!place || set[j]->used < (*place)->used))
            place = &set[j];
    }
    return place;
}

static struct native_call *find_or_make(struct native_calls *calls, struct binding *binding,
                                        const struct wish *w)
{
    struct native_call **set = calls->at[w->hash >> 32 & (NATIVE_CALL_SETS - 1)];
    for (size_t j = 0; j < WAYS; j++) {
        if (set[j] && is_it(set[j], w))
            return set[j];
    }
    struct native_call *c = call_new(calls, binding, w);
    struct native_call **place = c && w->bytes <= NATIVE_CALL_KEPT_BYTES ? place_for(set) : NULL;
    if (place) {
        call_free(calls, *place);
        *place = c;
        c->kept = true;
    }
    return c;
}

static struct native_call *find_plain(struct native_calls *calls, struct binding *binding,
                                      struct str host, const struct native_ask *ask)
{
    struct native_call **quick = quick_place(calls, host, ask->method, ask->url);
    struct native_call *c = *quick;
    if (c && c->quick_url == ask->url && c->quick_method == ask->method &&
        c->host.ptr == host.ptr && strcmp(c->url.ptr, ask->url) == 0)
        return c;
    const struct cicada_request request = {.method = ask->method, .url = ask->url};
    const struct wish w = read_wish(&request, host);
    c = find_or_make(calls, binding, &w);
    if (c && c->kept) {
        if (*quick)
            forget_quick(calls, *quick);
        forget_quick(calls, c); /* it was found elsewhere */
        c->quick_url = ask->url;
        c->quick_method = ask->method;
        *quick = c;
    }
    return c;
}

struct native_call *native_call_get(struct native_calls *calls, struct binding *binding,
                                    struct str host, const struct native_ask *ask)
{
    struct native_call *c;
    if (ask->method) {
        c = find_plain(calls, binding, host, ask);
    } else {
        const struct wish w = read_wish(ask->whole, host);
        c = find_or_make(calls, binding, &w);
    }
    if (c) {
        c->used = ++calls->uses;
        c->pins++;
    }
    return c;
}

void native_call_release(struct native_calls *calls, struct native_call *c)
{
    if (c && --c->pins == 0 && !c->kept)
        call_free(calls, c);
}

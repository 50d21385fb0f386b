#include "worker/engine/http_request.h"

#include "base/buf.h"
#include "worker/scenario/url.h"

#include <openssl/evp.h>
#include <stdlib.h>

#define MAX_USERINFO_BYTES       4096
#define HTTP_REQUEST_USUAL_BYTES 512 /* of a head: more grows */

static const struct plan_header *find_header(const struct http_call *call, struct str name)
{
    for (size_t i = 0; i < call->header_count; i++) {
        if (str_eq_nocase(call->headers[i].name, name))
            return &call->headers[i];
    }
    return NULL;
}

/* Requests with variables are made for each sending: without printf that costs a third. */
static int add_all(struct buf *b, const struct str *parts, size_t count)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = buf_add(b, parts[i]);
    return rc;
}

static int add_header(struct buf *b, struct str name, struct str value)
{
    const struct str parts[] = {name, STR(": "), value, STR("\r\n")};
    return add_all(b, parts, 4);
}

/* Append a header unless the user gave one of that name. */
static int add_default(struct buf *b, const struct http_call *call, struct str name,
                       struct str value)
{
    return find_header(call, name) ? 0 : add_header(b, name, value);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    int lower = c | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static int percent_decode(struct buf *out, struct str text)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < text.len; i++) {
        int high = -1, low = -1;
        if (text.ptr[i] == '%' && i + 2 < text.len) {
            high = hex_value(text.ptr[i + 1]);
            low = hex_value(text.ptr[i + 2]);
        }
        if (high >= 0 && low >= 0) {
            rc = buf_add_byte(out, (char)(high << 4 | low));
            i += 2;
        } else {
            rc = buf_add_byte(out, text.ptr[i]);
        }
    }
    return rc;
}

/* "Basic" credentials out of the URL (RFC 7617). */
static int add_userinfo(struct buf *b, struct str userinfo)
{
    struct buf plain, coded;
    buf_init(&plain, MAX_USERINFO_BYTES);
    buf_init(&coded, MAX_USERINFO_BYTES * 2);
    int rc = percent_decode(&plain, userinfo);
    if (rc == 0 && str_find(userinfo, ':') == userinfo.len)
        rc = buf_add_byte(&plain, ':');
    if (rc == 0)
        rc = buf_reserve(&coded, plain.len * 4 / 3 + 8);
    if (rc == 0) {
        int n = EVP_EncodeBlock((unsigned char *)coded.ptr, (const unsigned char *)buf_c(&plain),
                                (int)plain.len);
        rc = buf_printf(b, "Authorization: Basic %.*s\r\n", n, coded.ptr);
    }
    buf_done(&plain);
    buf_done(&coded);
    return rc;
}

static int add_host(struct buf *b, const struct url *url)
{
    const struct str parts[] = {STR("Host: "), url->ipv6 ? STR("[") : STR(""), url->host,
                                url->ipv6 ? STR("]") : STR("")};
    int rc = add_all(b, parts, 4);
    if (rc == 0 && url->port_given && url->port != (url->tls ? 443u : 80u))
        rc = buf_printf(b, ":%u", url->port);
    return rc < 0 ? rc : buf_add(b, STR("\r\n"));
}

static bool wants_length(const struct http_call *call)
{
    return call->body.ptr || str_eq(call->method, STR("POST")) ||
           str_eq(call->method, STR("PUT")) || str_eq(call->method, STR("PATCH"));
}

static int add_head(struct buf *b, const struct http_call *call, const struct url *url)
{
    struct str path = url->path.len ? url->path : STR("/");
    const struct str line[] = {call->method, STR(" "),
                               path,         url->query.ptr ? STR("?") : STR(""),
                               url->query,   STR(" HTTP/1.1\r\n")};
    int rc = add_all(b, line, 6);
    if (rc == 0 && !find_header(call, STR("Host")))
        rc = add_host(b, url);
    if (rc == 0)
        rc = add_default(b, call, STR("User-Agent"), STR("cicada/" CICADA_VERSION));
    if (rc == 0)
        rc = add_default(b, call, STR("Accept"), STR("*/*"));
    if (rc == 0 && url->userinfo.ptr && !find_header(call, STR("Authorization")))
        rc = add_userinfo(b, url->userinfo);
    for (size_t i = 0; rc == 0 && i < call->header_count; i++)
        rc = add_header(b, call->headers[i].name, call->headers[i].value);
    if (rc == 0 && wants_length(call) && !find_header(call, STR("Content-Length")) &&
        !find_header(call, STR("Transfer-Encoding")))
        rc = buf_printf(b, "Content-Length: %zu\r\n", call->body.len);
    return rc;
}

bool http_method_idempotent(struct str method)
{
    static const char *const names[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (str_eq(method, str_of(names[i])))
            return true;
    }
    return false;
}

bool http_call_closes(const struct http_call *call)
{
    const struct plan_header *connection = find_header(call, STR("Connection"));
    return connection && str_eq_nocase(str_trim(connection->value), STR("close"));
}

/* Lay host, zone and bytes behind the struct, each with a NUL. */
static struct http_request *assemble(const struct buf *b, const struct url *url, size_t head_len,
                                     size_t body_at)
{
    size_t host_at = 0, zone_at = url->host.len + 1, bytes_at = zone_at + url->zone.len + 1;
    struct http_request *r = calloc(1, sizeof *r + bytes_at + b->len + 1);
    if (!r)
        return NULL;
    memcpy(r->text + host_at, url->host.ptr, url->host.len);
    if (url->zone.len)
        memcpy(r->text + zone_at, url->zone.ptr, url->zone.len);
    memcpy(r->text + bytes_at, b->ptr, b->len);
    r->origin = (struct http_origin){
        .tls = url->tls,
        .host = {r->text + host_at, url->host.len},
        .zone = {url->zone.ptr ? r->text + zone_at : NULL, url->zone.len},
        .port = url->port,
    };
    r->bytes = (struct str){r->text + bytes_at, b->len};
    r->head_len = head_len;
    r->body_at = body_at;
    return r;
}

int http_request_new(const struct http_call *call, struct http_request **ret)
{
    struct url url;
    struct buf b;
    int rc = url_parse(call->url, &url, NULL);
    if (rc < 0)
        return rc;
    buf_init(&b, HTTP_REQUEST_MAX_BYTES);
    rc = buf_reserve(&b, HTTP_REQUEST_USUAL_BYTES + call->body.len);
    if (rc == 0)
        rc = add_head(&b, call, &url);
    size_t head_len = b.len;
    if (rc == 0)
        rc = buf_add(&b, STR("\r\n"));
    size_t body_at = b.len;
    if (rc == 0)
        rc = buf_add(&b, call->body);
    struct http_request *r = rc == 0 ? assemble(&b, &url, head_len, body_at) : NULL;
    buf_done(&b);
    if (!r)
        return rc < 0 ? rc : -ENOMEM;
    r->idempotent = http_method_idempotent(call->method);
    r->no_body = str_eq(call->method, STR("HEAD"));
    r->close = http_call_closes(call);
    *ret = r;
    return 0;
}

#include "worker/engine/redirect.h"

#include "worker/scenario/url.h"

#include <ctype.h>

#define MAX_URL_BYTES 65536

/* "mailto:", "ftp:": a scheme of its own comes before any slash, question mark or number sign. */
static bool has_scheme(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c == ':')
            return i > 0;
        if (!isalnum(c) && c != '+' && c != '-' && c != '.')
            return false;
    }
    return false;
}

/* "http://user@host:port" of an absolute URL, as a view. */
static struct str origin_part(struct str base)
{
    size_t at = str_find_str(base, STR("://")) + 3;
    for (; at < base.len; at++) {
        if (base.ptr[at] == '/' || base.ptr[at] == '?' || base.ptr[at] == '#')
            break;
    }
    return str_sub(base, 0, at);
}

/* Join without encoding yet (RFC 3986 5.2.2). */
static int join(struct buf *out, struct str base, struct str location)
{
    struct str origin = origin_part(base), path = str_sub(base, origin.len, base.len);
    path = str_sub(path, 0, str_find(path, '#'));
    struct str without_query = str_sub(path, 0, str_find(path, '?'));
    if (str_starts(location, STR("//"))) {
        int rc = buf_add(out, str_sub(base, 0, str_find(base, ':') + 1));
        return rc < 0 ? rc : buf_add(out, location);
    }
    int rc = buf_add(out, origin);
    if (rc == 0 && str_starts(location, STR("?"))) {
        rc = buf_add(out, without_query.len ? without_query : STR("/"));
    } else if (rc == 0 && location.len == 0) {
        rc = buf_add(out, path);
    } else if (rc == 0 && !str_starts(location, STR("/"))) {
        size_t slash = without_query.len;
        while (slash > 0 && without_query.ptr[slash - 1] != '/')
            slash--;
        rc = buf_add(out, slash ? str_sub(without_query, 0, slash) : STR("/"));
    }
    return rc < 0 ? rc : buf_add(out, location);
}

/* Append url with base's user and password, should it have none of its own and be of one origin. */
static int add_with_userinfo(struct buf *out, struct str url, struct str base)
{
    struct url to, from;
    if (url_parse(url, &to, NULL) < 0 || url_parse(base, &from, NULL) < 0)
        return -EINVAL;
    if (to.userinfo.ptr || !from.userinfo.ptr || !redirect_same_origin(base, url))
        return buf_add(out, url);
    size_t host_at = str_find_str(url, STR("://")) + 3;
    int rc = buf_add(out, str_sub(url, 0, host_at));
    if (rc == 0)
        rc = buf_add(out, from.userinfo);
    if (rc == 0)
        rc = buf_add_byte(out, '@');
    return rc < 0 ? rc : buf_add(out, str_sub(url, host_at, url.len));
}

int redirect_resolve(struct buf *out, struct str base, struct str location)
{
    struct buf joined, encoded;
    location = str_sub(location, 0, str_find(location, '#'));
    if (has_scheme(location) && !url_is_absolute(location))
        return -EINVAL;
    buf_init(&joined, MAX_URL_BYTES);
    buf_init(&encoded, MAX_URL_BYTES);
    int rc = url_is_absolute(location) ? buf_add(&joined, location) : join(&joined, base, location);
    if (rc == 0)
        rc = url_encode(&encoded, buf_str(&joined));
    if (rc == 0)
        rc = add_with_userinfo(out, buf_str(&encoded), base);
    buf_done(&joined);
    buf_done(&encoded);
    return rc;
}

bool redirect_becomes_get(unsigned status, struct str method)
{
    if (status == 303 || status == 302)
        return !str_eq(method, STR("HEAD"));
    return status == 301 && str_eq(method, STR("POST"));
}

bool redirect_same_origin(struct str from, struct str to)
{
    struct url a, b;
    if (url_parse(from, &a, NULL) < 0 || url_parse(to, &b, NULL) < 0)
        return false;
    if (!str_eq_nocase(a.host, b.host))
        return false;
    bool upgraded = !a.tls && b.tls && a.port == 80 && b.port == 443;
    return upgraded || (a.tls == b.tls && a.port == b.port);
}

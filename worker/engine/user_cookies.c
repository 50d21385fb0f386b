#include "worker/engine/user_cookies.h"

#include "worker/engine/cookies.h"

static struct str header_of(const struct http_call *call, struct str name)
{
    for (size_t i = 0; i < call->header_count; i++) {
        if (str_eq_nocase(call->headers[i].name, name))
            return call->headers[i].value;
    }
    return (struct str){NULL, 0};
}

/* "name", "1.2.3.4", "[::1]" with or without a port: the host alone, without brackets. */
static struct str host_part(struct str authority)
{
    if (str_starts(authority, STR("[")))
        return str_sub(authority, 1, str_find(authority, ']'));
    return str_sub(authority, 0, str_find(authority, ':'));
}

static size_t find_end_of_authority(struct str rest)
{
    size_t i = 0;
    while (i < rest.len && rest.ptr[i] != '/' && rest.ptr[i] != '?')
        i++;
    return i;
}

/* A call's URL was checked when it was made: it is only cut here. A scenario that names the host by
 * a header of its own means that host, as Locust's client and curl see it: virtual hosts are tested
 * at an address. */
static struct cookie_place place_of(const struct http_call *call)
{
    size_t scheme = str_find(call->url, ':');
    struct str rest = str_sub(call->url, scheme + STR("://").len, call->url.len);
    size_t end = find_end_of_authority(rest);
    struct str authority = str_sub(rest, 0, end), path = str_sub(rest, end, rest.len);
    struct str host = header_of(call, STR("Host"));
    if (!host.len) {
        host = authority;
        for (size_t at; (at = str_find(host, '@')) < host.len;)
            host = str_sub(host, at + 1, host.len);
    }
    return (struct cookie_place){
        .tls = scheme == sizeof "https" - 1,
        .host = host_part(host),
        .path = str_sub(path, 0, str_find(path, '?')),
    };
}

static double wall_s(const struct user *u, uint64_t now_us)
{
    return (double)now_us / 1e6 + u->shard->wall_offset_s;
}

int user_cookies_for(struct user *u, const struct http_call *call, uint64_t now_us, struct str *ret)
{
    struct buf *header = &u->shard->cookie_header;
    int rc = 0;
    buf_clear(header);
    if (!header_of(call, STR("Cookie")).ptr) {
        struct cookie_place to = place_of(call);
        rc = cookies_header(u->cookies, &to, wall_s(u, now_us), header);
    }
    *ret = buf_str(header);
    return rc;
}

void user_cookies_take(struct user *u, const struct http_call *call, struct str set_cookie)
{
    struct cookie_place from = place_of(call);
    if (cookies_set(&u->cookies, set_cookie, &from, wall_s(u, u->shard->now_us)) < 0)
        return; /* lost */
}

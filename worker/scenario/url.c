#include "worker/scenario/url.h"

#include "base/num.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#define HTTP_PORT  80
#define HTTPS_PORT 443

/* --- taken apart --- */

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Position of the first of the bytes, or s.len. */
static size_t find_any(struct str s, const char *bytes)
{
    size_t i = 0;
    while (i < s.len && (s.ptr[i] == '\0' || !strchr(bytes, s.ptr[i])))
        i++;
    return i;
}

/* Length of "http://" or "https://" at the start, or 0. */
static size_t scheme_length(struct str s)
{
    if (str_starts_nocase(s, STR("http://")))
        return sizeof "http://" - 1;
    return str_starts_nocase(s, STR("https://")) ? sizeof "https://" - 1 : 0;
}

bool url_is_absolute(struct str text)
{
    return scheme_length(text) > 0;
}

bool url_has_scheme(struct str text)
{
    size_t end = find_any(text, ":/?#");
    return end < text.len && text.ptr[end] == ':';
}

static int no_scheme(struct str text, struct err *err)
{
    size_t colon = str_find_str(text, STR("://"));
    if (colon > 0 && colon < text.len && find_any(text, "/?#@") > colon)
        return err_set(err, -EINVAL, "has the scheme '%.*s': only http and https are known",
                       STR_ARG(str_sub(text, 0, colon < 20 ? colon : 20)));
    if (str_starts_nocase(text, STR("http:")) || str_starts_nocase(text, STR("https:")))
        return err_set(err, -EINVAL, "has no '//' behind its scheme");
    return err_set(err, -EINVAL, "has no scheme: write http://… or https://…");
}

static int parse_port(struct str text, struct url *u, struct err *err)
{
    u->port = u->tls ? HTTPS_PORT : HTTP_PORT;
    if (text.len == 0) /* "http://h:/" is valid */
        return 0;
    uint64_t port;
    if (num_parse_u64(text, 65535, &port) < 0 || port == 0)
        return err_set(err, -EINVAL, "has a port that is not a number from 1 to 65535");
    u->port = (unsigned)port;
    u->port_given = true;
    return 0;
}

/* "fe80::1%25eth0", without the brackets. The plain '%' is common, though RFC 6874 wants "%25". */
static int parse_ipv6(struct str text, struct url *u, struct err *err)
{
    size_t percent = str_find(text, '%');
    u->ipv6 = true;
    u->host = str_sub(text, 0, percent);
    char address[INET6_ADDRSTRLEN];
    struct in6_addr binary;
    if (u->host.len >= sizeof address)
        return err_set(err, -EINVAL, "has no valid IPv6 address in its brackets");
    memcpy(address, u->host.ptr, u->host.len);
    address[u->host.len] = '\0';
    if (inet_pton(AF_INET6, address, &binary) != 1)
        return err_set(err, -EINVAL, "has no valid IPv6 address in its brackets");
    if (percent == text.len)
        return 0;
    struct str zone = str_sub(text, percent + 1, text.len);
    if (str_starts(zone, STR("25")) && zone.len > 2)
        zone = str_sub(zone, 2, zone.len);
    for (size_t i = 0; i < zone.len; i++) {
        if (!is_alnum(zone.ptr[i]) && !strchr("-._~", zone.ptr[i]))
            zone.len = 0;
    }
    if (zone.len == 0)
        return err_set(err, -EINVAL, "has no valid zone behind its IPv6 address");
    u->zone = zone;
    return 0;
}

/* Four numbers, one of them above 255: neither an address nor a name, as DNS has no top-level
 * domain of digits. Resolvers only say that it was not found. */
static bool is_wrong_ipv4(struct str name)
{
    unsigned labels = 1, value = 0;
    bool above = false, digits = false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (c == '.' && digits) {
            labels++;
            value = 0;
            digits = false;
        } else if (c >= '0' && c <= '9') {
            value = value > 255 ? value : value * 10 + (unsigned)(c - '0');
            above |= value > 255;
            digits = true;
        } else {
            return false;
        }
    }
    return labels == 4 && digits && above;
}

static int parse_name(struct str name, struct url *u, struct err *err)
{
    if (name.len == 0)
        return err_set(err, -EINVAL, "has no host");
    if (name.len > URL_MAX_HOST_BYTES)
        return err_set(err, -EINVAL, "has a host of more than %d bytes", URL_MAX_HOST_BYTES);
    for (size_t i = 0; i < name.len; i++) {
        if (!is_alnum(name.ptr[i]) && !strchr("-._~", name.ptr[i]))
            return err_set(err, -EINVAL, "has the character '%c' in its host", name.ptr[i]);
    }
    if (is_wrong_ipv4(name))
        return err_set(err, -EINVAL, "has the host '%.*s', which is no IPv4 address",
                       STR_ARG(str_sub(name, 0, name.len < 40 ? name.len : 40)));
    u->host = name;
    return 0;
}

static int parse_authority(struct str text, struct url *u, struct err *err)
{
    for (size_t i = text.len; i-- > 0;) {
        if (text.ptr[i] != '@')
            continue;
        u->userinfo = str_sub(text, 0, i);
        text = str_sub(text, i + 1, text.len);
        break;
    }
    size_t end;
    int rc;
    if (str_starts(text, STR("["))) {
        size_t close = str_find(text, ']');
        if (close == text.len)
            return err_set(err, -EINVAL, "has no ']' behind its IPv6 address");
        rc = parse_ipv6(str_sub(text, 1, close), u, err);
        end = close + 1;
        if (rc == 0 && end < text.len && text.ptr[end] != ':')
            return err_set(err, -EINVAL, "has something other than a port behind ']'");
    } else {
        end = str_find(text, ':');
        if (end < text.len && str_find(str_sub(text, end + 1, text.len), ':') + end + 1 < text.len)
            return err_set(err, -EINVAL,
                           "has two ':' in its host: an IPv6 address needs [brackets]");
        rc = parse_name(str_sub(text, 0, end), u, err);
    }
    return rc < 0 ? rc : parse_port(str_sub(text, end + 1, text.len), u, err);
}

static int check_characters(struct str text, struct err *err)
{
    if (text.len == 0)
        return err_set(err, -EINVAL, "is empty");
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c <= ' ' || c >= 0x7F)
            return err_set(err, -EINVAL, "has %s at position %zu",
                           c == ' '   ? "a space"
                           : c > 0x7F ? "a character outside ASCII"
                                      : "a control character",
                           i + 1);
    }
    return 0;
}

int url_parse(struct str text, struct url *ret, struct err *err)
{
    int rc = check_characters(text, err);
    if (rc < 0)
        return rc;
    size_t scheme = scheme_length(text);
    if (scheme == 0)
        return no_scheme(text, err);
    struct url u = {.tls = scheme == sizeof "https://" - 1};
    struct str rest = str_sub(text, scheme, str_find(text, '#'));
    size_t slash = find_any(rest, "/?");
    rc = parse_authority(str_sub(rest, 0, slash), &u, err);
    if (rc < 0)
        return rc;
    rest = str_sub(rest, slash, rest.len);
    size_t mark = str_find(rest, '?');
    u.path = str_sub(rest, 0, mark);
    if (mark < rest.len)
        u.query = str_sub(rest, mark + 1, rest.len);
    *ret = u;
    return 0;
}

int url_parse_host(struct str text, struct url *ret, struct err *err)
{
    int rc = url_parse(text, ret, err);
    if (rc == 0 && find_any(text, "?#") < text.len)
        return err_set(err, -EINVAL, "has a query or a fragment, which a host cannot have");
    return rc;
}

static bool is_proxy_scheme(struct str scheme)
{
    static const char *const known[] = {"http", "https", "socks4", "socks4a", "socks5", "socks5h"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (str_eq_nocase(scheme, str_of(known[i])))
            return true;
    }
    return false;
}

/* Without a port curl would take 1080, which hardly anyone means. */
int url_parse_proxy(struct str text, struct url *ret, struct err *err)
{
    struct url u = {0};
    int rc = check_characters(text, err);
    if (rc < 0)
        return rc;
    size_t scheme = str_find_str(text, STR("://"));
    if (scheme == text.len || !is_proxy_scheme(str_sub(text, 0, scheme)))
        return err_set(err, -EINVAL,
                       "must begin with http://, https://, socks4://, socks4a://, socks5:// or "
                       "socks5h://");
    struct str rest = str_sub(text, scheme + 3, text.len);
    size_t end = find_any(rest, "/?#");
    rc = parse_authority(str_sub(rest, 0, end), &u, err);
    if (rc < 0)
        return rc;
    if (end < rest.len && !str_eq(str_sub(rest, end, rest.len), STR("/")))
        return err_set(err, -EINVAL,
                       "has a path, a query or a fragment, which a proxy cannot have");
    if (!u.port_given)
        return err_set(err, -EINVAL, "has no port: write %.*s://host:port",
                       STR_ARG(str_sub(text, 0, scheme)));
    *ret = u;
    return 0;
}

/* --- joined --- */

int url_join(struct buf *out, struct str host, struct str path)
{
    if (url_is_absolute(path))
        return buf_add(out, path);
    bool query_only = path.len == 0 || path.ptr[0] == '?';
    if (!query_only && str_ends(host, STR("/")))
        host.len--;
    int rc = buf_add(out, host);
    if (rc == 0 && !query_only && path.ptr[0] != '/')
        rc = buf_add_byte(out, '/');
    return rc ? rc : buf_add(out, path);
}

/* --- encoded ---
 *
 * Two steps of the requests library in one: urllib3's parse_url encodes what is not allowed and
 * treats '%' as encoded already when every '%' of the component is; requests' unquote_unreserved
 * then decodes letters, digits and "-._~". */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte that "%41" at i stands for, or -1. */
static int decode_at(struct str s, size_t i)
{
    if (s.len - i < 3 || s.ptr[i] != '%')
        return -1;
    int high = hex_digit(s.ptr[i + 1]), low = hex_digit(s.ptr[i + 2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static bool is_unreserved(int c)
{
    return c > 0 && c < 0x80 && (is_alnum((char)c) || strchr("-._~", c));
}

/* "%41" at i in its final form. Where '%' itself is encoded, urllib3 still puts what looks like an
 * escape into capitals: "%2f%" becomes "%252F%25". */
static int encode_escape(struct buf *out, int byte, bool encoded)
{
    if (encoded && is_unreserved(byte))
        return buf_add_byte(out, (char)byte);
    return buf_printf(out, encoded ? "%%%02X" : "%%25%02X", (unsigned)byte);
}

static int encode_part(struct buf *out, struct str part, const char *allowed)
{
    bool encoded = true;
    for (size_t i = 0; i < part.len; i++)
        encoded = encoded && (part.ptr[i] != '%' || decode_at(part, i) >= 0);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < part.len; i++) {
        char c = part.ptr[i];
        int byte = decode_at(part, i);
        if (byte >= 0) {
            rc = encode_escape(out, byte, encoded);
            i += 2;
        } else if (is_unreserved((unsigned char)c) || (c && strchr(allowed, c))) {
            rc = buf_add_byte(out, c);
        } else {
            rc = buf_printf(out, "%%%02X", (unsigned)(unsigned char)c);
        }
    }
    return rc;
}

/* A path that begins with '/', as urllib3 resolves it: its "." and ".." segments are gone. Above
 * the root, urllib3 takes the root itself away, and an empty segment then becomes the new one.
 * Works in place; the result is never longer. */
static void resolve_dots(struct buf *out)
{
    char *path = out->ptr;
    size_t used = 0, end;
    bool rooted = true;
    for (size_t at = 0; at < out->len; at = end) { /* each segment with the slash before it */
        end = at + 1;
        while (end < out->len && path[end] != '/')
            end++;
        struct str name = {path + at + 1, end - at - 1};
        bool up = str_eq(name, STR("..")), dots = up || str_eq(name, STR("."));
        if (up && used == 0)
            rooted = false;
        while (up && used > 0 && path[--used] != '/')
            continue;
        if (dots && end == out->len) {
            path[used++] = '/';
        } else if (!dots && used == 0 && !rooted && name.len == 0) {
            rooted = true;
        } else if (!dots) {
            memmove(path + used, path + at, end - at);
            used += end - at;
        }
    }
    if (used == 0)
        path[used++] = '/';
    path[used] = '\0';
    out->len = used;
}

/* Length of scheme and authority. */
static size_t origin_length(struct str text)
{
    size_t scheme = scheme_length(text);
    return scheme ? scheme + find_any(str_sub(text, scheme, text.len), "/?#") : 0;
}

int url_encode(struct buf *out, struct str text)
{
    size_t origin = origin_length(text);
    text = str_sub(text, 0, origin + str_find(str_sub(text, origin, text.len), '#'));
    struct str rest = str_sub(text, origin, text.len);
    size_t mark = str_find(rest, '?');
    struct buf path;
    buf_init(&path, out->max);
    int rc = buf_add(out, str_sub(text, 0, origin));
    if (rc == 0 && !str_starts(rest, STR("/")))
        rc = buf_add_byte(&path, '/');
    if (rc == 0)
        rc = buf_add(&path, str_sub(rest, 0, mark));
    if (rc == 0) {
        resolve_dots(&path); /* before the decoding: "%2e" is no dot yet */
        rc = encode_part(out, buf_str(&path), "!$&'()*+,;=:@/");
    }
    buf_done(&path);
    if (rc == 0 && mark + 1 < rest.len)
        rc = buf_add_byte(out, '?');
    return rc ? rc : encode_part(out, str_sub(rest, mark + 1, rest.len), "!$&'()*+,;=:@/?");
}

struct str url_target(struct str encoded)
{
    return str_sub(encoded, origin_length(encoded), encoded.len);
}

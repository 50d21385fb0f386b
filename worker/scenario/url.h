/* http and https URLs, taken apart and joined. Pure functions, any thread; views into the input. */
#ifndef CICADA_WORKER_SCENARIO_URL_H
#define CICADA_WORKER_SCENARIO_URL_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

#define URL_MAX_HOST_BYTES 255 /* a DNS name's most */

struct url {
    bool tls;            /* https */
    struct str userinfo; /* ptr NULL: none; never logged */
    struct str host;     /* without brackets and zone */
    struct str zone;     /* of an IPv6 address ("eth0"); ptr NULL: none */
    bool ipv6;           /* the host was in brackets */
    unsigned port;       /* given, or 80 / 443 */
    bool port_given;
    struct str path;  /* begins with '/', or is empty */
    struct str query; /* without '?'; ptr NULL: none */
};

/* Take an absolute URL apart; a fragment is left out. Every byte of it must be visible ASCII, so
 * the parts are safe to write into a request; url_encode makes other texts so. -EINVAL with a
 * reason that can be shown after the URL's own text ("has no scheme: write http://…"). */
MUST_USE int url_parse(struct str text, struct url *ret, struct err *err);

/* The same for the host of a scenario, a class or the command line, to which paths are joined: it
 * has no query and no fragment. */
MUST_USE int url_parse_host(struct str text, struct url *ret, struct err *err);

/* A proxy's URL, as curl knows them: http, https, socks4, socks4a, socks5 or socks5h, with a port
 * and nothing behind it. ret->tls is not set. */
MUST_USE int url_parse_proxy(struct str text, struct url *ret, struct err *err);

/* True for a URL with its own scheme and host. */
bool url_is_absolute(struct str text);

/* "mailto:x", "localhost:8080/x": has it a colon before any slash? */
bool url_has_scheme(struct str text);

/* host joined with path as Locust's clients do, without doubling the slash: an absolute URL in path
 * wins, "http://h/api/" and "/x" or "x" give "http://h/api/x". Appends to out. */
MUST_USE int url_join(struct buf *out, struct str host, struct str path);

/* A path with its query, or an absolute URL, as the requests library sends it: what may not stand
 * in a URL is percent-encoded as UTF-8, what needs no encoding is decoded, "." and ".." segments
 * are resolved, the fragment is left out. Scheme and host stay as they are, an empty path becomes
 * "/". A path gets a leading slash. Appends to out. 0, -ERANGE, -ENOMEM. */
MUST_USE int url_encode(struct buf *out, struct str text);

/* The path with its query of what url_encode made; a view. */
struct str url_target(struct str encoded);

#endif

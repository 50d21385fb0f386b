/* http and https URLs, taken apart and joined. Pure functions, any thread; views into the input. */
#ifndef CICADA_WORKER_SCENARIO_URL_H
#define CICADA_WORKER_SCENARIO_URL_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

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

/* Take an absolute URL apart; a fragment is left out. -EINVAL with a reason that can be shown after
 * the URL's own text ("has no scheme: write http://…"). */
MUST_USE int url_parse(struct str text, struct url *ret, struct err *err);

/* True for a URL with its own scheme and host. */
bool url_is_absolute(struct str text);

/* host joined with path as Locust's clients do, without doubling the slash. Appends to out. */
MUST_USE int url_join(struct buf *out, struct str host, struct str path);

#endif

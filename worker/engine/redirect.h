/* Where a redirect leads and what becomes of the request on the way. Pure functions, any thread.
 * Source: RFC 9110 10.2.2 and 15.4, RFC 3986 5; where they leave a choice, the requests library. */
#ifndef CICADA_WORKER_ENGINE_REDIRECT_H
#define CICADA_WORKER_ENGINE_REDIRECT_H

#include "base/buf.h"

/* The statuses that are followed. */
static inline bool redirect_status(unsigned status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* The absolute URL that location names, seen from base (an absolute URL). Appended to out; a space
 * and the like are encoded, the fragment is left out, and base's user and password go along to the
 * same origin. 0; -EINVAL (no http or https URL); -ERANGE;
 * -ENOMEM. */
MUST_USE int redirect_resolve(struct buf *out, struct str base, struct str location);

/* Does the method turn into GET? 303 and 302 do that to all but HEAD, 301 to POST. */
bool redirect_becomes_get(unsigned status, struct str method);

/* Does the body go along? Only 307 and 308 keep it, even where the others keep the method. */
static inline bool redirect_keeps_body(unsigned status)
{
    return status == 307 || status == 308;
}

/* May credentials go along from one absolute URL to another? To the same origin, and from http to
 * https of the same host on the usual ports. */
bool redirect_same_origin(struct str from, struct str to);

#endif

/* A user's cookies: what servers set and which of them a request carries. Pure: the time is a
 * parameter. One thread at a time. A user without cookies has a NULL jar, which every function
 * takes.
 *
 * Source: RFC 6265 5; where browsers have moved on since, what they do (RFC 6265bis): cookies
 * without a name, the prefixes __Secure- and __Host-, cookies of a host and of its domain side by
 * side. Two things differ on purpose. There is no public suffix list: a Domain of one label ("com")
 * is taken for a public suffix, others are not. And a Secure cookie that came over plain http is
 * kept, as the RFC and Locust's client keep it; like every Secure cookie it only goes to https.
 * HttpOnly and SameSite are about scripts and pages, of which there are none: ignored. */
#ifndef CICADA_WORKER_ENGINE_COOKIES_H
#define CICADA_WORKER_ENGINE_COOKIES_H

#include "base/buf.h"

#include <stdbool.h>

#define COOKIES_MAX_BYTES      4096 /* name and value of one; browsers take as much */
#define COOKIES_MAX_PATH_BYTES 1024 /* also of a Domain; browsers take as much */
#define COOKIES_MAX_PER_DOMAIN 50   /* what RFC 6265 6.1 asks for */
#define COOKIES_MAX            300  /* of one jar: a user of a load test visits a few sites */
/* What cookies_header can add at most. */
#define COOKIES_MAX_HEADER_BYTES ((size_t)COOKIES_MAX * (COOKIES_MAX_BYTES + sizeof "=; "))

struct cookies;

/* Where a request goes. */
struct cookie_place {
    bool tls;
    struct str host; /* a name or an address without brackets */
    struct str path; /* without the query; may be empty */
};

/* Take in the value of a Set-Cookie header of a response that came from a place. *jar is made when
 * there is something to keep. 0, also for a cookie that is not taken; -ENOMEM with the jar as it
 * was. */
MUST_USE int cookies_set(struct cookies **jar, struct str set_cookie,
                         const struct cookie_place *from, double now_s);

/* Append the value of the Cookie header for a request to a place: nothing when no cookie is for it.
 * 0; -ERANGE or -ENOMEM with a part appended. */
MUST_USE int cookies_header(struct cookies *jar, const struct cookie_place *to, double now_s,
                            struct buf *out);

/* The value of the cookie of that name that was set or sent last. A view into the jar; false: there
 * is none. */
bool cookies_value(const struct cookies *jar, struct str name, struct str *ret);

/* How many there are, expired ones included. */
size_t cookies_count(const struct cookies *jar);

void cookies_free(struct cookies *jar);

#endif

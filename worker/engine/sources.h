/* The local addresses that connections are made from, in turn (--source-address). Belongs to an
 * HTTP engine; the shard's thread only, but for sources_check. */
#ifndef CICADA_WORKER_ENGINE_SOURCES_H
#define CICADA_WORKER_ENGINE_SOURCES_H

#include "base/err.h"
#include "base/str.h"

struct resolver_address;

struct sources {
    struct resolver_address *items;
    size_t count; /* 0: the kernel chooses */
    size_t next;
};

/* texts are IPv4 or IPv6 addresses, NUL-terminated. 0, -EINVAL, -ENOMEM. */
MUST_USE int sources_init(struct sources *s, const struct str *texts, size_t count);
void sources_done(struct sources *s);

/* Bind a socket of a family to the address of that family that is next in turn; none of that family
 * is no error: the kernel chooses. 0, or the errno: EADDRINUSE when there is no port, ENODEV when
 * the machine has lost the address. */
MUST_USE int sources_bind(struct sources *s, int fd, int family);

/* Are they all addresses of this machine? Before the load starts. 0, -EINVAL, -ENOMEM, -EMFILE. */
MUST_USE int sources_check(const struct str *texts, size_t count, struct err *err);

#endif

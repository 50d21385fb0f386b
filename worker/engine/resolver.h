/* Host names to addresses, by c-ares, inside a shard's loop. One answer serves all users of the
 * shard until its time to live is over; the addresses are used in turn. The shard's thread only. */
#ifndef CICADA_WORKER_ENGINE_RESOLVER_H
#define CICADA_WORKER_ENGINE_RESOLVER_H

#include "base/err.h"
#include "worker/engine/http.h"

#include <sys/socket.h>

#define RESOLVER_MAX_ADDRESSES 16 /* of one name; more are left out */
#define RESOLVER_LONGEST_TTL_S 3600
#define RESOLVER_HOSTS_TTL_S   60      /* of an answer from the hosts file, which tells none */
#define RESOLVER_ZERO_TTL_S    1       /* of an answer with 0: not once a connection */
#define RESOLVER_FAILED_US     1000000 /* a name that failed is asked for again after this */
#define RESOLVER_TIMEOUT_MS    5000    /* the first try; c-ares makes two */

struct resolver;

struct resolver_address {
    socklen_t length;
    struct sockaddr_storage storage;
};

/* A name that is being looked up or known. Lives until resolver_free. */
struct resolver_name;

/* A wish to be told; embedded in what wants the address. */
struct resolver_wait {
    struct resolver_wait *next; /* in the name's list, while waiting */
    struct resolver_wait *prev;
    void (*ready)(struct resolver_wait *wait, uint64_t now_us);
};

/* An IPv4 or IPv6 address in text form (NUL-terminated). False when it is none. */
bool resolver_literal(struct str host, struct str zone, unsigned port,
                      struct resolver_address *ret);

MUST_USE int resolver_new(int epoll_fd, struct timers *timers, struct resolver **ret);
void resolver_free(struct resolver *r);

/* The entry of a host name or an address in text form; zone is that of an IPv6 address or empty.
 * NULL: no memory. */
struct resolver_name *resolver_name(struct resolver *r, struct str host, struct str zone,
                                    unsigned port);

/* Are there addresses now? 0: yes; -EAGAIN: wait->ready will be called, also when it failed;
 * -ENOENT: the name cannot be resolved; -ENOMEM. */
MUST_USE int resolver_want(struct resolver *r, struct resolver_name *name,
                           struct resolver_wait *wait, uint64_t now_us);
void resolver_forget(struct resolver_wait *wait);

/* How many addresses there are after resolver_want gave 0 or ready was called; 0: the name could
 * not be resolved. */
unsigned resolver_count(const struct resolver_name *name);

/* Where the next connection begins among the addresses: each call begins with another one. A
 * connection that tries them all counts on from there by itself, for others begin theirs meanwhile.
 */
unsigned resolver_turn(struct resolver_name *name);

/* The address at a turn, of any size; NULL when there is none. Valid until the next resolver call.
 */
const struct resolver_address *resolver_at(const struct resolver_name *name, unsigned turn);

#endif

/* The worker's link to the master: one ZeroMQ DEALER socket with an identity. It owns the socket
 * and the identity, nothing of what the messages mean. All calls from the one thread that made it
 * (a ZeroMQ socket belongs to its thread). Sends never block.
 *
 * A link that was lost is opened again with a fresh identity (a ROUTER ignores a second connection
 * of a known one) and the name is resolved again, because the master's pod may have moved.
 * Source: locust/rpc/zmqrpc.py. */
#ifndef CICADA_PROTO_LOCUST_LINK_H
#define CICADA_PROTO_LOCUST_LINK_H

#include "base/err.h"
#include "base/str.h"

struct link;

#define LINK_SEND_QUEUE 1000 /* frames ZeroMQ holds for a master that does not read */

/* Make a link and begin to connect. host is a name or an address (IPv6 with or without brackets);
 * nothing is resolved here, so a master that is not there yet is no error.
 * 0; -EINVAL (host empty, port 0); -ENOMEM; other errnos of ZeroMQ. */
MUST_USE int link_new(const char *host, unsigned port, struct link **ret, struct err *err);
void link_free(struct link *l);

/* This worker's identity, "host_" and 32 hex digits; changes with link_reopen. */
struct str link_node_id(const struct link *l);

/* A file descriptor for poll/epoll, level-triggered use only after link_receive said -EAGAIN.
 * Changes with link_reopen. */
int link_fd(const struct link *l);

/* Close at once (linger 0), take a fresh identity unless keep_identity, resolve the name again and
 * connect. Name resolution is done by ZeroMQ's own thread or bounded: never blocks the caller for
 * longer than 1 s. Returns 0 or the errno with the reason in err; the link stays usable and
 * link_reopen may be called again. */
MUST_USE int link_reopen(struct link *l, bool keep_identity, struct err *err);

/* Queue one frame. 0; -EAGAIN (queue full: nothing was taken); other errnos. */
MUST_USE int link_send(struct link *l, struct str frame);

/* The next frame, valid until the next call on the link. 0; -EAGAIN (none now); -EPROTO (a message
 * of several frames or over the size limit: dropped, call again); other errnos. */
MUST_USE int link_receive(struct link *l, struct str *ret_frame);

/* What the transport last said, for a readable line when no master answers: "connected",
 * "connection refused", "name not found", "handshake failed: not a ZeroMQ server", … Never NULL. */
const char *link_status(struct link *l);
/* True while the TCP connection and the ZMTP handshake stand. */
bool link_connected(struct link *l);

/* Wait until all queued frames were handed to the kernel, at most timeout_ms, then close. Used
 * once, before exit. */
void link_drain(struct link *l, int timeout_ms);

#endif

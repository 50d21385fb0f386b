/* The worker's link to the master: one ZeroMQ DEALER socket with an identity. It owns the socket
 * and the identity, nothing of what the messages mean. All calls from the one thread that made it
 * (a ZeroMQ socket belongs to its thread). Only link_new, link_reopen, link_drain and link_free
 * wait at all, each within the bound it names.
 *
 * ZeroMQ connects, and connects again at most a second after each failure, resolving the name each
 * time because the master's pod may have moved. What is handed to link_send belongs to the
 * connection that stands at that moment: nothing is kept for a later one, so a master that was
 * restarted never gets a message meant for its predecessor (an unknown worker's spawning_complete
 * stops its listener). A link whose master is silent is opened again with a fresh identity by
 * link_reopen (a ROUTER ignores a second connection of a known one).
 * Source: locust/rpc/zmqrpc.py. */
#ifndef CICADA_PROTO_LOCUST_LINK_H
#define CICADA_PROTO_LOCUST_LINK_H

#include "base/err.h"
#include "base/str.h"

struct link;

#define LINK_SEND_QUEUE     1000 /* frames ZeroMQ holds for a master that does not read */
#define LINK_MAX_HOST_BYTES 255  /* the longest name that DNS has */

/* Make a link and begin to connect. host is a name or an address (IPv6 with or without brackets);
 * nothing is resolved here, so a master that is not there yet is no error.
 * 0; -EINVAL (host empty or not a host, port 0 or above 65535); -ENOMEM; -EMFILE and other errnos
 * of ZeroMQ. Make it early: ZeroMQ starts its threads here, and ends the process when it cannot. */
MUST_USE int link_new(const char *host, unsigned port, struct link **ret, struct err *err);
/* Close at once; at most 1 s. NULL is nothing. */
void link_free(struct link *l);

/* This worker's identity, "host_" and 32 hex digits, as Locust makes it; valid until link_reopen,
 * which changes it. */
struct str link_node_id(const struct link *l);

/* A file descriptor for poll or epoll: readable while there is anything to do for link_receive, be
 * it a frame, news about the connection, or the time to dial again. Level-triggered, and the same
 * for the life of the link. A loop that calls link_receive until it says -EAGAIN whenever this is
 * readable misses nothing and does not spin; look at link_connected afterwards to see a change. */
int link_fd(const struct link *l);

/* Close at once (linger 0; waits for it at most 1 s), then connect with a fresh identity; or a
 * second later with the same one, which a ROUTER ignores when it returns too soon after (or during)
 * its last connection: keep it only where the master expects it, and take a fresh one when it stays
 * silent. 0 or the errno with the reason in err; the link stays usable: it tries again by itself
 * each second, and link_reopen may be called again. */
MUST_USE int link_reopen(struct link *l, bool keep_identity, struct err *err);

/* Queue one frame for the standing connection. 0; -EAGAIN (not connected, or the queue is full:
 * nothing was taken); other errnos. */
MUST_USE int link_send(struct link *l, struct str frame);

/* The next frame, valid until the next call on the link. 0; -EAGAIN (none now); -EPROTO (a message
 * of several frames: dropped whole, call again); other errnos. A frame over MESSAGE_MAX_BYTES makes
 * ZeroMQ close the connection, and the link dials again. What a peer sends that is no ZeroMQ
 * server is dropped without a word; link_status tells. */
MUST_USE int link_receive(struct link *l, struct str *ret_frame);

/* What the transport last said, for a readable line when no master answers: "connected",
 * "connecting", "connection refused", "connection lost", "no answer", "name not found, or no route
 * to it", "handshake failed: not a ZeroMQ server", … Never NULL; a string literal. */
const char *link_status(struct link *l);
/* True while the TCP connection and the ZMTP handshake stand. */
bool link_connected(struct link *l);

/* Wait until all queued frames were handed to the kernel, at most timeout_ms, then close. Used
 * once, before exit: afterwards the link sends and receives nothing more. */
void link_drain(struct link *l, int timeout_ms);

#endif

/* The worker's own small web server: /metrics, /healthz, /readyz, on libmicrohttpd, in a thread of
 * its own. The page is made by the runner's thread, which owns the figures: a scrape rings at
 * metrics_fd, the runner answers with metrics_publish, and the scrape waits for that a bounded
 * time; then it gets the last page there was. Load never waits for a scrape. */
#ifndef CICADA_WORKER_METRICS_SERVER_H
#define CICADA_WORKER_METRICS_SERVER_H

#include "base/err.h"
#include "worker/metrics/render.h"

struct metrics_server;

#define METRICS_WAIT_MS         1000 /* of a scrape for a fresh page */
#define METRICS_MAX_CONNECTIONS 64
#define METRICS_IDLE_S          10 /* a silent connection is closed */

/* Listen on address ("" or NULL: all, IPv4 and IPv6 where there is) and port. 0; -EADDRINUSE and
 * other errnos, err names the port. */
MUST_USE int metrics_start(const char *address, unsigned port, struct metrics_server **ret,
                           struct err *err);
void metrics_stop(struct metrics_server *s); /* NULL is nothing */

/* The port it listens on, for port 0. */
unsigned metrics_port(const struct metrics_server *s);

/* Readable when a scrape waits for a page; metrics_wanted takes the signal and tells the format. */
int metrics_fd(const struct metrics_server *s);
bool metrics_wanted(struct metrics_server *s, enum metrics_format *ret);

/* The runner's thread: a fresh page in that format; its bytes are taken. */
void metrics_publish(struct metrics_server *s, enum metrics_format format, struct buf *page);

/* Is the worker ready for work (taken by a master, or running)? For /readyz. */
void metrics_set_ready(struct metrics_server *s, bool ready);

#endif

/* SIGINT and SIGTERM through a descriptor, so that they end a run in its own loop. */
#ifndef CICADA_WORKER_RUNNER_SIGNALS_H
#define CICADA_WORKER_RUNNER_SIGNALS_H

#include "base/err.h"

/* A non-blocking signalfd for both, which are blocked from now on; SIGPIPE is ignored. To be called
 * before any thread is made, so that all inherit it. A descriptor, or a negative errno. */
MUST_USE int signals_open(void);

/* The number of the next one that came to that descriptor (-1: none comes); 0: there is none. */
int signals_next(int fd);

#endif

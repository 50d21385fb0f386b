/* The question of a worker that was started without a scenario (-f -): what locustfile does the
 * master have? It is asked before the worker registers, over a connection and under an identity of
 * its own, and the scenario is taken out of the answer. The master does not count who asks. The
 * runner's thread. Source: locust/argument_parser.py download_locustfile_from_master. */
#ifndef CICADA_WORKER_RUNNER_FETCH_H
#define CICADA_WORKER_RUNNER_FETCH_H

#include "base/err.h"
#include "proto/locust/message.h"
#include "worker/scenario/plan.h"

#include <stdbool.h>
#include <stdint.h>

#define FETCH_COMPLAIN_US      1000000u  /* without an answer: the first line */
#define FETCH_COMPLAIN_NEXT_US 30000000u /* and the next ones, as of a worker that registers */
#define FETCH_SILENCE_US                                                                           \
    20000000u /* of a master that is there: masters answer at once, but those before 2.23 never do \
               */

struct fetch_options {
    const char *master_host;
    unsigned master_port;
    double master_timeout_s; /* without an answer for so long: an error; 0: never */
    int signal_fd;           /* a non-blocking signalfd for SIGINT and SIGTERM, or -1 */
};

/* Ask until there is an answer, and load the plan of the scenario that it holds. Messages of the
 * scenario begin "locustfile.py from the master: ".
 * 0; -ECANCELED: a signal came, which was logged; -ETIMEDOUT: no master, or one that does not
 * answer; -EREMOTEIO: it has no file to give; -EPROTO: what it sent is no answer; -EINVAL: its file
 * has no scenario, or a faulty one; -ENOMEM and the errnos of link_new. */
MUST_USE int fetch_plan(const struct fetch_options *options, const struct plan_tags *tags,
                        struct plan **ret, struct err *err);

/* --- its parts, pure ------------------------------------------------------------------------- */

/* When to ask, to tell that nobody answers, and to give up. */
struct fetch_clock {
    bool asked; /* over the connection that stands */
    uint64_t asked_us;
    uint64_t complain_us;
    uint64_t give_up_us; /* 0: never */
};

enum fetch_step { FETCH_WAIT, FETCH_ASK, FETCH_COMPLAIN, FETCH_GIVE_UP };

void fetch_clock_init(struct fetch_clock *c, double master_timeout_s, uint64_t now_us);
/* What is to be done now. Once over each connection it is FETCH_ASK: a master that does not know
 * the question warns of it each time. */
enum fetch_step fetch_clock_step(struct fetch_clock *c, bool connected, uint64_t now_us);

/* The first of the files that holds a scenario, or the only file; *ret is its index. -EREMOTEIO:
 * the answer is an error or empty; -EINVAL: none does, or it is a URL. */
MUST_USE int fetch_choose(const struct message_locustfile *answer, size_t *ret, struct err *err);

#endif

/* The report of a distributed run, from this worker's side: it follows the run, keeps what the
 * leader has to know of it, and makes the "cicada" object that goes out with stats. The runner's
 * thread; what blocks is the background's. A worker that is not the leader only tells of itself. */
#ifndef CICADA_WORKER_RUNNER_REPORTER_H
#define CICADA_WORKER_RUNNER_REPORTER_H

#include "worker/engine/engine.h"
#include "worker/report/settings.h"
#include "worker/runner/machine.h"
#include "worker/stats/stats.h"

struct reporter;

/* The settings are borrowed for as long as the reporter lives. 0, -ENOMEM, -EMFILE. */
MUST_USE int reporter_new(const struct report_settings *settings, struct reporter **ret,
                          struct err *err);
void reporter_free(struct reporter *r);

/* Readable: call reporter_poll. */
int reporter_fd(const struct reporter *r);
void reporter_poll(struct reporter *r);

/* The machine's ACTION_BEGIN_RUN. */
void reporter_begin(struct reporter *r, const struct machine *m);
/* After each event of the machine: has the run ended? */
void reporter_follow(struct reporter *r, const struct machine *m);
/* Often; once a second of a run it takes its samples. */
void reporter_tick(struct reporter *r, const struct machine *m, struct engine *engine);

/* A message of the master. True: it was for the reporter alone. */
bool reporter_message(struct reporter *r, const struct message *message, const struct machine *m);

/* The object for a stats message that is about to be sent; run is the whole run's. NULL: no memory,
 * the message goes without. reporter_sent: the link took it. */
json_t *reporter_object(struct reporter *r, struct engine *engine, const struct stats *run);
void reporter_sent(struct reporter *r);

/* The run is over and its report not whole yet: the last stats of all are better sent later. */
bool reporter_pending(const struct reporter *r);
/* The report is whole, and the master has not been told. */
bool reporter_owes(const struct reporter *r);

/* At the end of the process: wait until the report is whole, but for facts no longer. A signal on
 * signal_fd (a signalfd, or -1) ends that at once. 0, or the signal. */
int reporter_finish(struct reporter *r, int signal_fd);

#endif

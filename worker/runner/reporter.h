/* The report of a distributed run, from this worker's side: it follows the run, keeps what the
 * leader has to know of it, makes the "cicada" object that goes out with stats, and the leader's
 * results folder. The runner's thread; what blocks is the background's, but for writing files.
 * A worker that is not the leader only tells of itself. */
#ifndef CICADA_WORKER_RUNNER_REPORTER_H
#define CICADA_WORKER_RUNNER_REPORTER_H

#include "worker/engine/engine.h"
#include "worker/output/output.h"
#include "worker/report/settings.h"
#include "worker/runner/machine.h"
#include "worker/runner/samples.h"

/* All borrowed for as long as the reporter lives. */
struct reporter_options {
    const struct report_settings *settings;
    const struct output_options *output; /* its results folder is the leader's; NULL: none */
    const struct plan *plan;
    struct engine *engine;
    const struct samples *samples; /* looked at from the first run on */
};

struct reporter;

/* 0; -EINVAL (a folder that cannot be meant; err says why); -ENOMEM, -EMFILE. */
MUST_USE int reporter_new(const struct reporter_options *options, struct reporter **ret,
                          struct err *err);
void reporter_free(struct reporter *r);

/* Readable: call reporter_poll. -1: never. */
int reporter_fd(const struct reporter *r);
void reporter_poll(struct reporter *r);

/* The machine's ACTION_BEGIN_RUN, before the samples of the last run are forgotten. */
void reporter_begin(struct reporter *r, const struct machine *m);
/* After each event of the machine: has the run ended? */
void reporter_follow(struct reporter *r, const struct machine *m);
/* Often; once a second of a run it takes its samples. */
void reporter_tick(struct reporter *r, const struct machine *m);

/* A message of the master. True: it was for the reporter alone. */
bool reporter_message(struct reporter *r, const struct message *message, const struct machine *m);

/* The object for a stats message that is about to be sent, all samples taken. NULL: no memory, the
 * message goes without. reporter_sent: the link took it. */
json_t *reporter_object(struct reporter *r, const struct machine *m);
void reporter_sent(struct reporter *r);

/* The run is over and its report not whole yet: the last stats of all are better sent later. */
bool reporter_pending(const struct reporter *r);
/* There will be a report that takes its time, and the master has not been told so in this run:
 * a short one may be over before the next stats. */
bool reporter_announces(const struct reporter *r);
/* The report is whole, and the master has not been told. */
bool reporter_owes(const struct reporter *r);

/* At the end of the process: wait until the report is whole, but for facts no longer, and write the
 * files. A signal on signal_fd (a signalfd, or -1) ends the waiting at once; hurry: there is none.
 * 0, or the signal. */
int reporter_finish(struct reporter *r, int signal_fd, bool hurry);
/* All files could be written, of all runs. */
bool reporter_wrote_all(const struct reporter *r);

#endif

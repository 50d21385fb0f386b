/* What the report of a run says about cluster and servers: it has them read in the background,
 * keeps the users that ran meanwhile, and puts both into the report. One run at a time: the next
 * one forgets the last. The runner's thread; nothing here blocks, but for survey_close. */
#ifndef CICADA_WORKER_RUNNER_SURVEY_H
#define CICADA_WORKER_RUNNER_SURVEY_H

#include "facts/frontiers.h"
#include "worker/report/leader.h"
#include "worker/report/settings.h"

/* Zeroed: nothing is asked. */
struct survey {
    const struct report_settings *settings;
    struct background *background;
    struct leader leader;
    struct frontiers frontiers; /* the report borrows them */
    bool over;                  /* the load is */
    bool harvested;             /* asked for */
    bool no_memory;             /* said so */
};

/* settings are borrowed; NULL: nothing is asked. 0, -EMFILE, -ENOMEM. */
MUST_USE int survey_open(struct survey *s, const struct report_settings *settings, struct err *err);
void survey_close(struct survey *s);

/* Readable: call survey_poll. -1: nothing is asked. */
int survey_fd(const struct survey *s);
void survey_poll(struct survey *s);

/* A run begins; alone: without a master, all users are this process's. */
void survey_begin(struct survey *s, bool alone, double wall_s);
/* So many users ran, as this source knows. */
void survey_add(struct survey *s, enum users_source source, double wall_s, double users);
/* The load is over. */
void survey_end(struct survey *s, double wall_s);

/* Is anything of it still being read? */
bool survey_pending(const struct survey *s);
/* It is not pending any more so long after the end of the run, at the latest. Unknown: there is
 * nothing worth waiting for. */
struct measure survey_longest_s(const struct survey *s);
/* Do not wait for the facts, which were asked for at the beginning, any longer. */
void survey_drop_facts(struct survey *s);
/* Wait for nothing more. */
void survey_abort(struct survey *s);

/* Put into the report, whose stats are there, what is known; it borrows until the survey changes.
 */
void survey_fill(struct survey *s, struct report *report);

#endif

/* From the options to what makes the load: the plan, who of it runs, the engine. One thread. */
#ifndef CICADA_WORKER_CLI_LOAD_SETUP_H
#define CICADA_WORKER_CLI_LOAD_SETUP_H

#include "worker/cli/options.h"
#include "worker/engine/engine.h"
#include "worker/scenario/plan.h"

/* Which tasks the command line wants. Borrows from the options. */
struct plan_tags load_setup_tags(const struct options *o);

/* The plan of the scenario file, of the URL, of the master's locustfile, or of the program's own
 * test (NULL: none), checked against --set and the names of user classes; so are the source
 * addresses. signal_fd: as of fetch_plan, for a master is waited for; -1: none.
 * 0; -EINVAL and the errno of reading a file: a user's mistake, err says which; -ENOMEM; the errnos
 * of fetch_plan. */
MUST_USE int load_setup_plan(const struct options *o, const struct cicada_test *test, int signal_fd,
                             struct plan **ret, struct err *err);

/* Borrows from the options. */
struct engine_options load_setup_engine(const struct options *o);

/* By class: whether the command line names it. NULL: no memory. free() it. */
bool *load_setup_classes(const struct options *o, const struct plan *plan);

#endif

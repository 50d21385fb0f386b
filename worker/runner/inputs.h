/* Values that a scenario's variables get from outside: --set on the command line, and the custom
 * arguments of the master, which win. They may be secrets: they are never logged. The runner's
 * thread. */
#ifndef CICADA_WORKER_RUNNER_INPUTS_H
#define CICADA_WORKER_RUNNER_INPUTS_H

#include "base/err.h"
#include "worker/engine/engine.h"
#include "worker/scenario/plan.h"

#include <jansson.h>

/* Each of the texts is NAME=VALUE with the name of a declared variable. 0; -EINVAL: err says which
 * is not, without its value. */
MUST_USE int inputs_check(const struct plan *plan, const struct str *sets, size_t set_count,
                          struct err *err);

/* Give the engine what there is for each declared variable (to a test in C, all there is).
 * arguments is the master's parsed_options, or NULL; what is no text, number or boolean in it, and
 * what is the scenario's own value, counts for nothing. 0, -ENOMEM. */
MUST_USE int inputs_apply(struct engine *e, const struct plan *plan, const struct str *sets,
                          size_t set_count, json_t *arguments);

#endif

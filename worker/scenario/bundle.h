/* A scenario inside of a locustfile, with every file that it reads: one file for the whole fleet.
 * The master runs its Python; C workers take the scenario out of its text, and read nothing else.
 * Pure but for bundle_write, which reads the scenario's files; any thread.
 *
 *     # --- cicada scenario begin (…)
 *     CICADA_SCENARIO = r"""
 *     {"version": 1, "scenario": "shop.yaml", "files": {
 *     "shop.yaml": "…",
 *     "users.csv": "…",
 *     "logo.png": {"base64": "…"}
 *     }}
 *     """
 *     # --- cicada scenario end
 *
 * JSON in ASCII, in which three quotes never stand in a row. A file's name is written as the
 * scenario gives it; files that are no UTF-8 are in base64. */
#ifndef CICADA_WORKER_SCENARIO_BUNDLE_H
#define CICADA_WORKER_SCENARIO_BUNDLE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "worker/scenario/plan.h"

#define BUNDLE_MAX_BYTES (16u << 20) /* of the JSON; each worker gets it in one message */

/* A file of this name is taken for a locustfile: it ends in ".py". */
bool bundle_may_hold(struct str name);

/* Append the lines above for the scenario at path, the same for the same files. -EINVAL: a fault of
 * the scenario, as plan_load_file tells it, or a file outside of the scenario's folder, or tasks in
 * C; -ERANGE: larger than BUNDLE_MAX_BYTES, or out's maximum; -ENOMEM. */
MUST_USE int bundle_write(const char *path, struct buf *out, struct err *err);

/* Is there a scenario in this text? One that may be damaged. */
bool bundle_is_in(struct str locustfile);

/* The plan of the scenario in a locustfile's text. source is what messages call the locustfile:
 * "SOURCE: shop.yaml:3: …". -EINVAL: none is in it, or it is damaged, or has faults; -ENOMEM. */
MUST_USE int bundle_load(struct str locustfile, const char *source, const struct plan_tags *tags,
                         struct plan **ret, struct err *err);

#endif

/* Where the results of a run go. Pure text. */
#ifndef CICADA_WORKER_OUTPUT_FOLDER_H
#define CICADA_WORKER_OUTPUT_FOLDER_H

#include "base/err.h"

#define FOLDER_NAME_BYTES 200 /* of --name and --tag: file systems take 255 */

/* DEST/runs/NAME/run_date=YYYY-MM-DD/run_ts=EPOCH/run_tag=TAG, in UTC. The caller frees it.
 * 0; -EINVAL: name or tag is missing, too long, or no name of a folder ("..", "a/b", control
 * characters); -ENOMEM. */
MUST_USE int folder_path(const char *dest, const char *name, const char *tag, double now_s,
                         char **ret, struct err *err);

#endif

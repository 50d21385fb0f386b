/* Where the files that a scenario names come from: the scenario's folder, or whoever has them. */
#ifndef CICADA_WORKER_SCENARIO_FILES_H
#define CICADA_WORKER_SCENARIO_FILES_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct files {
    /* Put the whole file into ret, which is empty. 0; -ENOMEM; else an errno with the reason in
     * err, where the name stands in it. */
    int (*read)(void *context, struct str name, struct buf *ret, struct err *err);
    void *context;
};

/* A regular file by its name as a scenario gives it: from the folder of the scenario (its path), or
 * absolute. As read above; -ERANGE beyond ret's maximum. */
MUST_USE int files_read_beside(const char *scenario, struct str name, struct buf *ret,
                               struct err *err);

#endif

/* The user classes of a plan in Python. Pure; any thread. */
#ifndef CICADA_WORKER_LOCUSTFILE_CLASSES_H
#define CICADA_WORKER_LOCUSTFILE_CLASSES_H

#include "worker/locustfile/script.h"

/* The classes; taken is what identifier_add knows of, and gets the names of the classes. */
void classes_write(struct script *s, const struct plan *plan, struct buf *taken);

#endif

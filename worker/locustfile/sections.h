/* The fixed parts of every locustfile: what the printed tasks call, and what the master does with
 * the workers' reports. They are Python files beside this one. Any thread. */
#ifndef CICADA_WORKER_LOCUSTFILE_SECTIONS_H
#define CICADA_WORKER_LOCUSTFILE_SECTIONS_H

#include "base/str.h"

/* Texts that end in a line end; valid for ever. */
struct str locustfile_runtime(void);
struct str locustfile_listener(void);

#endif

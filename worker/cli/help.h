/* The text of --help, made from the table of flags. */
#ifndef CICADA_WORKER_CLI_HELP_H
#define CICADA_WORKER_CLI_HELP_H

#include "base/buf.h"

/* Append the text, for a terminal of 80 columns. 0, -ERANGE, -ENOMEM. */
MUST_USE int help_add(struct buf *out);

/* The same for 'cicada calibrate --help'. */
MUST_USE int help_add_calibrate(struct buf *out);

#endif

/* From the options to the settings of the report: the telemetry profile is loaded, and what can be
 * wrong with it and the addresses is told before any load is made. One thread. */
#ifndef CICADA_WORKER_CLI_REPORT_SETUP_H
#define CICADA_WORKER_CLI_REPORT_SETUP_H

#include "worker/cli/options.h"
#include "worker/report/settings.h"

struct report_setup {
    struct report_settings settings;
    struct profile profile;
    const char **headers;
    char *auth; /* a copy, taken apart */
};

/* Borrows from the options and the environment. ret is written in any case, and must stay where it
 * is; report_setup_done it. 0; -EINVAL and the errno of reading a file: a user's mistake, err names
 * the flag and no secret; -ENOMEM. */
MUST_USE int report_setup(const struct options *o, struct report_setup *ret, struct err *err);
void report_setup_done(struct report_setup *s);

#endif

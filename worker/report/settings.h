/* How a process is to report: what the command line said, ready to be used. The runner and a run of
 * its own both take it. */
#ifndef CICADA_WORKER_REPORT_SETTINGS_H
#define CICADA_WORKER_REPORT_SETTINGS_H

#include "worker/report/background.h"
#include "worker/report/leader.h"

/* Borrowed for as long as a run lasts. */
struct report_settings {
    enum leader_role role; /* under a master; a run of its own always reports */
    struct background_options background;
    double actors_per_user;
};

#endif

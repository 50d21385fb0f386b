/* How many CPUs this process may use. */
#ifndef CICADA_WORKER_ENGINE_CPUS_H
#define CICADA_WORKER_ENGINE_CPUS_H

#include "base/str.h"

/* The smaller of the affinity mask and the cgroup's CPU quota (rounded up); at least 1. */
unsigned cpus_usable(void);

/* The quota in a cgroup v2 cpu.max ("200000 100000", "max 100000"), rounded up to whole CPUs; 0 for
 * none or an unreadable text. Pure; for cpus_usable and its tests. */
unsigned cpus_of_quota(struct str cpu_max);

#endif

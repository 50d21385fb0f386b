/* What this process uses, for the heartbeat. The thread that asks. */
#ifndef CICADA_WORKER_RUNNER_USAGE_H
#define CICADA_WORKER_RUNNER_USAGE_H

#include "base/measure.h"

#include <stdint.h>

struct usage {
    uint64_t at_us; /* of the last sample; 0: none yet */
    uint64_t cpu_us;
    double cpu_pct;
};

/* CPU of the calling thread since the last call, in percent of one core. Calls less than half a
 * second apart give the same answer. */
double usage_thread_cpu_pct(struct usage *u, uint64_t now_us);

/* Resident memory of the process in bytes; unknown when /proc does not tell. */
struct measure usage_memory_bytes(void);

#endif

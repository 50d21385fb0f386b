#include "worker/runner/usage.h"

#include "base/clock.h"
#include "base/num.h"

#include <fcntl.h>
#include <unistd.h>

#define SHORTEST_US 500000u

double usage_thread_cpu_pct(struct usage *u, uint64_t now_us)
{
    if (u->at_us != 0 && now_us - u->at_us < SHORTEST_US)
        return u->cpu_pct;
    uint64_t cpu_us = clock_thread_cpu_us();
    if (u->at_us != 0)
        u->cpu_pct = 100.0 * (double)(cpu_us - u->cpu_us) / (double)(now_us - u->at_us);
    u->at_us = now_us;
    u->cpu_us = cpu_us;
    return u->cpu_pct;
}

struct measure usage_memory_bytes(void)
{
    char text[128];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return MEASURE_UNKNOWN;
    ssize_t n = read(fd, text, sizeof text);
    (void)close(fd); /* was only read */
    if (n <= 0)
        return MEASURE_UNKNOWN;
    struct str rest = {text, (size_t)n}, size, resident;
    uint64_t pages;
    if (!str_next(&rest, ' ', &size) || !str_next(&rest, ' ', &resident) ||
        num_parse_u64(resident, UINT64_MAX >> 20, &pages) < 0)
        return MEASURE_UNKNOWN;
    return measure_of((double)pages * (double)sysconf(_SC_PAGESIZE));
}

#include "worker/engine/cpus.h"

#include "base/buf.h"
#include "base/num.h"

#include <sched.h>
#include <stdint.h>
#include <unistd.h>

#define CPU_FILE_BYTES 256
#define QUOTA_MAX_US   1000000000000u

static unsigned whole_cpus(uint64_t quota, uint64_t period)
{
    uint64_t n = period ? (quota + period - 1) / period : 0;
    return n < UINT32_MAX ? (unsigned)n : 0;
}

unsigned cpus_of_quota(struct str cpu_max)
{
    struct str rest = str_trim(cpu_max), quota_text, period_text;
    uint64_t quota, period;
    if (!str_next(&rest, ' ', &quota_text) || !str_next(&rest, ' ', &period_text) ||
        num_parse_u64(quota_text, QUOTA_MAX_US, &quota) < 0 ||
        num_parse_u64(period_text, QUOTA_MAX_US, &period) < 0)
        return 0;
    return whole_cpus(quota, period);
}

static bool read_number(const char *path, uint64_t *ret)
{
    struct buf text;
    buf_init(&text, CPU_FILE_BYTES);
    bool ok = buf_read_file(&text, path, NULL) == 0 &&
              num_parse_u64(str_trim(buf_str(&text)), QUOTA_MAX_US, ret) == 0;
    buf_done(&text);
    return ok;
}

/* A container sees its own cgroup at the root of the mount. */
static unsigned cgroup_cpus(void)
{
    struct buf text;
    unsigned n = 0;
    uint64_t quota, period;
    buf_init(&text, CPU_FILE_BYTES);
    if (buf_read_file(&text, "/sys/fs/cgroup/cpu.max", NULL) == 0)
        n = cpus_of_quota(buf_str(&text));
    else if (read_number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", &quota) &&
             read_number("/sys/fs/cgroup/cpu/cpu.cfs_period_us", &period))
        n = whole_cpus(quota, period);
    buf_done(&text);
    return n;
}

unsigned cpus_usable(void)
{
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned n = online > 0 ? (unsigned)online : 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        n = (unsigned)CPU_COUNT(&set);
    unsigned quota = cgroup_cpus();
    return quota > 0 && quota < n ? quota : n;
}

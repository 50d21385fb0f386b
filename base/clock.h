/* The two clocks. mono_us runs evenly and has no meaning outside the process: every deadline and
 * every response time is made of it. wall_s is the Unix time, only for what Locust or a file wants.
 * Any thread. */
#ifndef CICADA_BASE_CLOCK_H
#define CICADA_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_mono_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static inline double clock_wall_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* CPU time of the calling thread, user and system. */
static inline uint64_t clock_thread_cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

#endif

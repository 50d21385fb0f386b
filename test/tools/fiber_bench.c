/* What a fiber costs, for docs/c-tasks.md:
 *   fiber_bench [-n SWITCHES] [-u FIBERS]
 * Prints one JSON object: the time of a switch there and back, and the memory of as many fibers
 * that are parked. Under `valgrind --tool=callgrind`, two runs of different SWITCHES tell
 * instructions. */
#include "base/clock.h"
#include "base/num.h"
#include "base/str.h"
#include "worker/engine/fiber.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct fiber *one;

static void die(const char *text)
{
    (void)fprintf(stderr, "fiber_bench: %s\n", text);
    exit(2);
}

static uint64_t number(const char *text)
{
    uint64_t n;
    if (num_parse_u64(str_of(text), 100000000, &n) < 0)
        die("not a number");
    return n;
}

static void go_round(void *arg)
{
    (void)arg;
    for (;;)
        fiber_park(one);
}

/* A task that waits, some calls deep. */
static void wait_once(void *arg)
{
    volatile char frame[256];
    frame[0] = 1;
    fiber_park(*(struct fiber **)arg);
    frame[1] = frame[0];
}

static double switch_ns(struct fiber_pool *pool, uint64_t switches)
{
    if (fiber_new(pool, go_round, NULL, &one) < 0)
        die("out of memory");
    uint64_t begin_us = clock_mono_us();
    for (uint64_t i = 0; i < switches; i++)
        (void)fiber_resume(one); /* it never ends */
    uint64_t took_us = clock_mono_us() - begin_us;
    fiber_free(pool, one);
    return switches ? (double)took_us * 1e3 / (double)switches : 0;
}

static double resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    char line[128], *end = NULL;
    if (f && fgets(line, sizeof line, f)) {
        (void)strtoul(line, &end, 10); /* the size */
        pages = strtoul(end, NULL, 10);
    }
    if (f)
        (void)fclose(f); /* it was read */
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static double bytes_each(struct fiber_pool *pool, uint64_t count)
{
    struct fiber **fibers = calloc(count + 1, sizeof *fibers);
    if (!fibers)
        die("out of memory");
    for (uint64_t i = 0; i < count; i++)
        fibers[i] = NULL; /* its own page is no fiber's cost */
    double before = resident_bytes();
    for (uint64_t i = 0; i < count; i++) {
        if (fiber_new(pool, wait_once, &fibers[i], &fibers[i]) < 0)
            die("out of memory");
        (void)fiber_resume(fibers[i]); /* it parks */
    }
    double bytes = resident_bytes() - before;
    for (uint64_t i = 0; i < count; i++)
        fiber_free(pool, fibers[i]);
    free(fibers);
    return count ? bytes / (double)count : 0;
}

int main(int argc, char **argv)
{
    uint64_t switches = 1000000, count = 10000;
    struct fiber_pool *pool;
    int c;
    while ((c = getopt(argc, argv, "n:u:")) != -1) {
        if (c == 'n')
            switches = number(optarg);
        else if (c == 'u')
            count = number(optarg);
        else
            die("usage");
    }
    if (fiber_pool_new(FIBER_MAX_GUARDED, &pool) < 0)
        die("out of memory");
    double ns = switch_ns(pool, switches), bytes = bytes_each(pool, count);
    (void)printf("{\"switches\": %" PRIu64 ", \"ns_there_and_back\": %.1f, \"bytes_each\": %.0f}\n",
                 switches, ns, bytes);
    fiber_pool_free(pool);
    return 0;
}

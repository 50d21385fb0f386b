/* What the reference programs share: their options, the end of their run, users who wait, and the
 * line that they print. Each is one thread; CPU time and memory are measured from outside. */
#ifndef CICADA_BENCH_ENGINES_COMMON_H
#define CICADA_BENCH_ENGINES_COMMON_H

#include "worker/stats/histogram.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENTS_A_TURN 1024

struct options {
    uint32_t connections; /* -c */
    uint16_t port;        /* -p, on 127.0.0.1 */
    const char *path;     /* -u */
    double seconds;       /* -t: the run's length */
    uint64_t requests;    /* -n: or so many requests; 0: no such end */
    uint64_t wait_us;     /* -W milliseconds: a user waits so long between requests */
    bool tls;             /* -T: HTTPS, not verified */
};

/* Ends the program on a wrong option. Raises the limit of open files to the hard limit. */
struct options read_options(int argc, char **argv);

/* Print the text and errno's, and end. */
_Noreturn void die(const char *text);

/* A connected, non-blocking socket. */
int open_socket(const struct options *o);

/* A GET of o->path; its length. */
size_t make_request(const struct options *o, char *ret, size_t size);

struct run {
    uint64_t end_us;
    uint64_t end_requests;
    uint64_t requests;
    uint64_t failures;
    struct histogram times;
};

void run_begin(struct run *r, const struct options *o);
static inline bool run_is_over(const struct run *r, uint64_t now_us)
{
    return now_us >= r->end_us || r->requests >= r->end_requests;
}
void run_record(struct run *r, bool ok, uint64_t response_time_us);
/* One JSON object to stdout. */
void run_print(struct run *r);

/* Users who wait all wait equally long, so that the order in which they began is the order in which
 * they end: a ring does for a timer. */
struct waiting {
    struct waiter {
        uint64_t due_us;
        uint32_t user;
    } * ring;
    uint32_t size;
    uint32_t first;
    uint32_t count;
};

/* Everybody waits, first ends spread over one wait. */
void waiting_begin(struct waiting *w, const struct options *o, uint64_t now_us);
void waiting_add(struct waiting *w, uint32_t user, uint64_t due_us);
/* True and the user when one is due. */
bool waiting_take(struct waiting *w, uint64_t now_us, uint32_t *ret_user);
/* For epoll_wait: until the first is due, at most limit_ms. */
int waiting_timeout_ms(const struct waiting *w, uint64_t now_us, int limit_ms);

#endif

/* A shard: one thread with one epoll loop, its timers, its users and their connections, and the set
 * of samples it fills. Nothing of it is touched by anybody else, but for the mailbox through which
 * it and the engine (on the runner's thread) speak: a few fields under a lock, where the newest
 * wish replaces an older one, so that nothing can pile up. The lock is taken a few times a second,
 * never for a request. */
#ifndef CICADA_WORKER_ENGINE_SHARD_H
#define CICADA_WORKER_ENGINE_SHARD_H

#include "worker/engine/binding.h"
#include "worker/engine/http.h"
#include "worker/engine/http_kept.h"
#include "worker/engine/json_tape.h"
#include "worker/engine/timers.h"
#include "worker/scenario/plan.h"
#include "worker/stats/stats.h"

#include "base/buf.h"
#include "base/random.h"

#include <pthread.h>
#include <stdatomic.h>

struct arrivals;
struct engine_options;
struct feeds;
struct made_call;
struct native_shard;
struct pattern_scratch;
struct tracer;
struct user;

/* Users that the shard must run, by class, and how surplus ones end. */
struct shard_order {
    uint64_t number;   /* counts up; 0: none yet */
    uint64_t run;      /* the engine's, counts up */
    uint32_t *targets; /* plan->class_count numbers */
    uint64_t stop_timeout_us;
    struct binding *binding;   /* for users started from now on; a reference */
    struct arrivals *arrivals; /* instead of targets; owned. NULL: none */
    uint64_t trace_rows;       /* of the run */
};

struct shard_counters {
    uint64_t started;
    uint64_t succeeded;
    uint64_t failed;
    uint64_t interrupted;
    uint64_t in_flight;
    uint64_t interrupted_oldest_us;
    uint64_t tasks_started;
    uint64_t tasks_ended; /* done, or cut with their user */
    uint64_t late_starts_1ms;
    uint64_t late_starts_10ms;
    uint64_t arrivals_waited;
    uint64_t arrivals_missed;
    uint64_t by_failure[HTTP_FAILURE_COUNT];
    uint64_t stackless; /* tasks in C that had no memory for a stack, and waited for it */
};

/* What the shard last said. */
struct shard_report {
    uint64_t
        order_done; /* number of the last order that is carried out, with nobody still ending */
    uint64_t stats_done;  /* number of the last request for samples that is answered */
    uint64_t stopped_run; /* the run that a step of the scenario stopped; 0: none */
    struct shard_counters counters;
    struct http_counters http_counters;
    uint64_t traces_left_out;
    double cpu_pct;
    double loop_lag_ms;
};

struct shard_mailbox {
    pthread_mutex_t lock;
    int wake_shard_fd;  /* eventfd, the shard's end */
    int wake_engine_fd; /* eventfd, shared by all shards */
    /* to the shard */
    struct shard_order order;
    bool order_is_new;
    uint64_t stats_wanted; /* counts up */
    struct stats *empty;   /* a set to fill next, or NULL */
    bool quit;
    /* from the shard */
    struct shard_report report;
    uint32_t *running;    /* by class */
    struct stats *filled; /* to be taken, or NULL */
    struct buf traced;    /* the rows that belong with it */
};

/* A list of users by the links inside them. */
struct user_list {
    struct user *first;
    uint32_t count;
};

struct shard {
    const struct plan *plan;
    const struct http_ops *ops;
    struct shard_mailbox mail;
    pthread_t thread;
    bool thread_started;
    unsigned index, count;       /* this one among all shards */
    struct feeds *feeds;         /* of all shards; NULL: the plan has none */
    struct native_shard *native; /* NULL: the plan has no tasks in C */
    atomic_uint turns;           /* of the loop: it stands still when something does not end */

    /* the shard's thread only, from here on */
    int epoll_fd;
    struct loop_source mail_source;
    struct timers timers;
    struct http_engine *http;
    struct rng rng;
    struct stats *stats;     /* being filled */
    uint32_t *slots;         /* of the plan's entries, the same in both sets */
    struct stats *empty;     /* to be filled next; NULL while the engine has it */
    uint64_t now_us;         /* of this turn of the loop */
    double wall_offset_s;    /* wall clock minus monotonic clock */
    struct user_list *users; /* by class: those that run on */
    struct user_list ending; /* those that finish their task */
    struct user_list spare;  /* memory for the next ones */
    uint32_t *to_start;      /* by class */
    uint64_t to_start_total;
    uint32_t *running;         /* by class, ending ones included */
    struct arrivals *arrivals; /* NULL: users go from task to task by themselves */
    atomic_llong *tasks_left;  /* of the whole run, shared; NULL: no limit */
    struct binding *binding;
    struct buf cookie_header; /* of the request that begins */
    uint64_t stop_timeout_us;
    uint64_t order_number; /* being carried out */
    uint64_t run;          /* of that order */
    uint64_t stopped_run;
    uint64_t order_done;
    uint64_t stats_wanted;
    uint64_t stats_done;
    struct timer stop_timer; /* the next deadline of an ending user */
    struct timer second_timer;
    struct shard_counters counters;
    struct http_counters http_counters;
    struct http_keeper keeper;
    struct made_call *made_spare; /* memory for the next ones */
    size_t made_spare_count;
    struct pattern_scratch *patterns; /* NULL: the plan has no regular expressions */
    struct tracer *tracer;            /* NULL: no request is traced */
    struct buf operand;               /* of a check, a default: until the next one */
    struct buf decoded;               /* a string of a JSON body, the same */
    struct json_tape tape;            /* of the body that is being judged */
    uint64_t users_started;
    uint64_t counter;   /* ${counter} */
    uint64_t cpu_us;    /* thread CPU time a second ago */
    uint64_t second_us; /* when that was */
    uint64_t lag_us;    /* worst of this second */
    double cpu_pct;
    double loop_lag_ms;
    bool dirty; /* the engine has not been told of something */
    bool quit;
    bool no_fine_wait; /* the kernel lacks epoll_pwait2 */
};

/* Prepare a shard; the thread is not started. wake_engine_fd is borrowed.
 * 0, -ENOMEM, -EMFILE. A failed shard still wants shard_done. */
MUST_USE int shard_init(struct shard *s, const struct plan *plan, const struct http_ops *ops,
                        int wake_engine_fd, const struct engine_options *options, uint64_t seed);
MUST_USE int shard_start(struct shard *s);
/* Ask it to end, wait for it, free all. */
void shard_done(struct shard *s);

/* Wake the shard to look at its mailbox. */
void shard_wake(struct shard *s);

#endif

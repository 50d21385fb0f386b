/* The engine: it keeps a wished number of users of each class running, on N shards (one thread, one
 * epoll loop each), and counts what they do. It knows nothing of masters. All calls are made by one
 * thread, the runner's; they pass messages to the shards and return at once.
 *
 * Counts are by the plan's class index. "Running" users are those that were started and have not
 * ended, whatever they do now. */
#ifndef CICADA_WORKER_ENGINE_ENGINE_H
#define CICADA_WORKER_ENGINE_ENGINE_H

#include "base/err.h"
#include "base/str.h"
#include "worker/scenario/plan.h"
#include "worker/stats/stats.h"

#include <stdint.h>

#define ENGINE_MAX_SHARDS 1024
#define ENGINE_ON_STOP_S  5 /* for the on_stop steps of a user whose time is up */

struct engine;

/* Which HTTP engine: our own for HTTP/1.1, or libcurl. */
enum engine_http { ENGINE_HTTP_AUTO, ENGINE_HTTP_FAST, ENGINE_HTTP_CURL };

struct engine_options {
    enum engine_http http;      /* auto: fast, unless HTTP/2 or a proxy is asked for */
    bool http2;                 /* for all classes, whatever the plan says */
    struct str proxy;           /* the same, with a NUL behind it; ptr NULL: the plan's. It must
                                 * outlive the engine; it may hold a password */
    unsigned shards;            /* 0: the CPUs that this process may use (affinity, cgroup quota) */
    struct stats_limits limits; /* of each shard's sets */
    uint64_t seed;              /* of all random choices; 0: from the system */
    const struct str *sources;  /* local addresses to connect from, in turn: IPv4 or IPv6 in text
                                 * form with a NUL behind it; must outlive the engine */
    size_t source_count;        /* 0: the kernel chooses */
    uint64_t task_limit;        /* of all users together, then they wait; 0: none */
    bool phases;                /* measure dns, connect, tls, first byte and body of requests */
    double trace_ratio;         /* of the requests, 0 to 1, are sent with a W3C traceparent */
};

/* Start the shards, without users. The plan must outlive the engine.
 * 0, -ENOMEM, -EAGAIN (threads), -EMFILE; -EINVAL: a certificate that cannot be used, or something
 * is asked for that the wanted HTTP engine has not; err says which. */
MUST_USE int engine_new(const struct plan *plan, const struct engine_options *options,
                        struct engine **ret, struct err *err);
/* Cut what is left, end the threads, free. Samples not yet taken are lost: take them first. */
void engine_free(struct engine *e);

/* What tasks in C see of the test, and want of the runner; NULL: the plan has none. Lives as long
 * as the engine. */
struct cicada_run;
struct cicada_run *engine_tasks(struct engine *e);

#define ENGINE_STUCK_US 10000000u /* a task in C that runs so long without waiting is a mistake */

/* Is there a task in C that does not wait? Told once for each time; err names it. To be asked now
 * and then. */
bool engine_stuck(struct engine *e, uint64_t now_us, struct err *ret);

unsigned engine_shard_count(const struct engine *e);

/* Readable (level-triggered) when engine_poll has something to do. */
int engine_fd(const struct engine *e);

/* Take in what the shards said: counts, stats. Call when engine_fd is readable. */
void engine_poll(struct engine *e);

/* The host for requests with a path only; it wins over the plan's and the classes' hosts. ptr NULL
 * goes back to those. Takes effect for users started from now on. Copied.
 * 0; -EINVAL: not a usable http(s) host, err says why, the old one stays; -ENOMEM. */
MUST_USE int engine_set_host(struct engine *e, struct str host, struct err *err);

/* The value of a variable that the scenario declares, for users started from now on; it is never
 * shown. ptr NULL takes it back. 0; -ENOENT: the scenario declares no such variable (tasks in C
 * take any); -ENOMEM. */
MUST_USE int engine_set_variable(struct engine *e, struct str name, struct str value);

/* Has each variable a value that must get one from outside? 0; -EINVAL: err names the first that
 * lacks it. */
MUST_USE int engine_check_inputs(const struct engine *e, struct err *err);

/* The number that the master gave this process, from 0: which rows of shared feeds are its own. For
 * users started from now on. */
void engine_set_worker(struct engine *e, uint32_t index);

/* Has each class that wanted names (NULL: all) a host, if it needs one? 0; -EINVAL: err names the
 * first that lacks it. */
MUST_USE int engine_check_hosts(const struct engine *e, const bool *wanted, struct err *err);

/* Absolute target for each class (plan->class_count numbers). Missing users are started as fast as
 * the shards can; surplus users finish as engine_stop would end them, the rest runs on. A later
 * call replaces the target at once. Users that a step of the scenario ended are missing ones, too;
 * once a step stopped the run there are none until engine_stop was called or a target was none.
 * 0; -EINVAL: a class with a target has paths and no host, or a variable must be given and was not:
 * err says which, no target was changed; -ENOMEM. */
MUST_USE int engine_set_users(struct engine *e, const uint32_t *targets, double stop_timeout_s,
                              struct err *err);

/* Instead of targets: begin the plan's arrivals (plan->shape->arrival) now. wanted tells by class
 * who takes part; NULL: all. engine_stop and engine_set_users end them. 0; -EINVAL: as
 * engine_set_users; -ENOMEM. */
MUST_USE int engine_set_arrivals(struct engine *e, const bool *wanted, struct err *err);

/* Target 0 for every class. Users finish their running task, at most stop_timeout_s; then (at once
 * when it is 0) their requests are cut and counted as interrupted. A second call may shorten it.
 * What a class does on_stop comes after that, and takes at most ENGINE_ON_STOP_S longer. */
MUST_USE int engine_stop(struct engine *e, double stop_timeout_s);

/* Ask every shard for its samples so far; they arrive through engine_poll. Cheap; asking again
 * before all answered is allowed. -ENOMEM, -EPIPE (a shard is gone). */
MUST_USE int engine_request_stats(struct engine *e);
/* True when every shard has answered the last engine_request_stats. Take while waiting for it: a
 * shard whose samples of an earlier request are not taken has no set to go on with. */
bool engine_stats_complete(const struct engine *e);
/* Merge what arrived into `into` and hand the sets back to the shards. 0, -ENOMEM (kept for the
 * next call: nothing is lost). */
MUST_USE int engine_take_stats(struct engine *e, struct stats *into);

/* Rows of traces.txt (worker/stats/trace.h), of requests that ended; they come with samples. Valid
 * until the next engine_take_stats; engine_drop_traces makes room for more. */
struct str engine_traces(const struct engine *e);
void engine_drop_traces(struct engine *e);

/* How many rows runs that begin from now on may have; 0: none of their requests is traced. At first
 * ENGINE_TRACE_ROWS. */
#define ENGINE_TRACE_ROWS 100000 /* 10 to 20 MB */
void engine_set_trace_rows(struct engine *e, uint64_t rows);

struct engine_status {
    const uint32_t *running; /* by class; valid until the next engine call */
    uint64_t running_total;
    bool run_stopped;   /* a step of the scenario stopped the run: the engine ends all users */
    bool reached;       /* running equals the target, and nobody is still ending */
    double cpu_pct;     /* busiest thread of the shards, percent of one core, last second */
    double loop_lag_ms; /* worst event-loop lag of any shard, last second */
    uint64_t started;   /* requests since engine_new; started = the other four summed */
    uint64_t succeeded;
    uint64_t failed;
    uint64_t interrupted; /* cut at the end of a user */
    uint64_t in_flight;
    uint64_t interrupted_oldest_us; /* age of the oldest one that was cut */
    uint64_t connections_opened;
    uint64_t connections_failed;
    uint64_t sockets_peak;     /* open at the same time, all shards' peaks summed */
    uint64_t ports_exhausted;  /* connections not made for want of a local port, … */
    uint64_t files_exhausted;  /* … of a file descriptor, … */
    uint64_t memory_exhausted; /* … of memory */
    uint64_t late_starts_1ms;  /* scheduled task starts that came later than that */
    uint64_t late_starts_10ms;
    uint64_t tasks_started;
    uint64_t tasks_ended;     /* done, or cut with their user */
    uint64_t arrivals_waited; /* began late because all users of the pool were busy */
    uint64_t arrivals_missed; /* were due and had not begun at their end */
    uint64_t traces_left_out; /* beyond the limits */
    uint64_t retries; /* sent anew, because a kept-alive connection turned out to be closed */
};
void engine_status(struct engine *e, struct engine_status *ret);

/* Raise the limit of open files to the hard limit and tell how many users that allows. */
uint64_t engine_raise_file_limit(void);

#endif

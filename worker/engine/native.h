/* What a user of a class in C does: its tasks run on a fiber, and a call that waits parks it until
 * the loop comes round with the answer. Between two tasks a user has no fiber, so that one that
 * waits there costs no stack. The user's life, its wait times and its end are user.c's, as for
 * every user. The shard's thread only. */
#ifndef CICADA_WORKER_ENGINE_NATIVE_H
#define CICADA_WORKER_ENGINE_NATIVE_H

#include "worker/engine/crash.h"
#include "worker/engine/fiber.h"
#include "worker/engine/interpreter.h"
#include "worker/engine/native_call.h"
#include "worker/engine/requests.h"
#include "worker/engine/run.h"

#include <stdatomic.h>

/* Calls that a task may still make after it was told to stop; then it is dropped where it is. */
#define NATIVE_MAX_REFUSALS 100
#define NATIVE_SPARE_USERS  1024 /* kept for reuse */

struct native_shard {
    struct fiber_pool *fibers;
    struct native_calls *calls;
    struct cicada_run *run;
    struct cicada_user *spare;
    uint32_t spare_count;
    uint64_t dropped_us, dropped_skipped; /* for log_due */
    struct crash_thread crash;
    char *crash_stack;
    /* What runs now, for a thread that finds that it does not come to an end. */
    _Atomic(const struct plan_class *) class;
    _Atomic(const struct plan_task *) task; /* NULL: nothing */
};

/* One of `shards`. run is borrowed. NULL: no memory. */
struct native_shard *native_shard_new(const struct http_ops *ops, struct cicada_run *run,
                                      unsigned shards);
void native_shard_free(struct native_shard *s);
void native_shard_trim(struct native_shard *s); /* at the end of a turn of the loop */

/* What runs now: "user class 'A', task 'b'"; false: nothing. Any thread. */
bool native_running_text(const struct native_shard *s, char *ret, size_t size);

/* The user's own part. 0, -ENOMEM. */
MUST_USE int native_new(struct user *u, uint64_t number);
void native_free(struct user *u); /* no task is running */

/* Begin the user's task, or go on with it. */
enum interpreter_end native_run(struct user *u, uint64_t now_us);

/* Its request ended; as requests_answered. */
enum requests_end native_answered(struct user *u, const struct http_result *result,
                                  uint64_t now_us);

/* The request under way. */
const struct http_call *native_http_call(const struct user *u);

/* The time of the task is up: the call it waits in returns CICADA_STOPPED, and so do the next ones.
 * It has ended when this returns. */
void native_cut(struct user *u);

/* --- between native.c and native_api.c ------------------------------------------------------ */

/* What a task wants of the loop when it parks. */
enum native_wish {
    NATIVE_REQUEST, /* request */
    NATIVE_SLEEP,   /* wait_us */
    NATIVE_FD,      /* fd, fd_events; wait_us, 0: for ever */
    NATIVE_DROP,    /* nothing any more: it goes on and on after it was told to stop */
};

/* A text by name; see cicada_variable. */
struct native_variable {
    struct native_variable *next;
    char *value;  /* NULL: there is none */
    bool outside; /* it came from outside */
    char name[];
};

struct cicada_user {
    struct user *user;
    const struct plan_class *class;
    struct cicada_user *next; /* among the spare ones */
    struct fiber *fiber;      /* NULL: no task runs */
    uint64_t number;
    void *data;
    struct native_variable *variables;

    uint8_t wish;
    bool waits;     /* for what it wished */
    bool stopping;  /* it was told to stop */
    bool leaves;    /* the user ends with its task */
    bool uncounted; /* the last response is not in the statistics yet */
    bool scheduled; /* user_has_schedule */
    uint8_t refusals;

    /* the request under way, then its response */
    struct native_ask ask;
    struct native_call *call; /* NULL: none */
    enum http_failure failure;
    struct str head;
    const uint64_t *phases_us;
    const char *judged; /* the text of its failure; NULL: a success */
    uint64_t answered_us;
    struct cicada_response response;

    uint64_t wait_us;
    struct loop_source fd_source;
    int fd, fd_registered; /* -1: none */
    uint32_t fd_events;
    int came; /* what the wait came to */
};

/* The response to a call of a user that was told to stop. */
void native_refuse(struct cicada_user *n);

/* Put the last response into the statistics, if it is not there yet. */
void native_count_response(struct cicada_user *n);

static inline void native_count(struct cicada_user *n)
{
    if (n->uncounted)
        native_count_response(n);
}

/* Count something else. error NULL: a success. */
void native_record(struct cicada_user *n, struct str type, struct str name, double response_time_ms,
                   uint64_t length, const char *error);

#endif

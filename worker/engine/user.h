/* One simulated user of a shard: it picks tasks by weight, does their steps one after the other,
 * waits, and begins anew until it is told to end. The shard's thread only. */
#ifndef CICADA_WORKER_ENGINE_USER_H
#define CICADA_WORKER_ENGINE_USER_H

#include "worker/engine/shard.h"

#include "base/buf.h"

/* Upper bound of sizeof(struct user), pinned by a test: 100,000 users are common. */
#define USER_MAX_BYTES 256

enum user_state {
    USER_WAITING,    /* between two tasks; the timer is set */
    USER_RESUMING,   /* inside a task, to go on with the next turn of the loop; the timer is set */
    USER_REQUESTING, /* the HTTP engine will call back */
};

/* The part of a request that only a redirect needs. */
struct user_redirect {
    unsigned hops;
    struct buf url;
    struct http_call call;
    struct plan_header *headers; /* of the hop; the values belong to the plan */
};

struct user {
    struct timer timer; /* wait time */
    struct user *next;  /* in users[class], ending or spare */
    struct user *prev;
    struct shard *shard;
    struct http_client *client;
    struct cookies *cookies; /* NULL: none yet */
    struct binding *binding;
    struct user_redirect *redirect; /* NULL: not following one */
    uint64_t request_start_us;      /* from which its response time counts */
    uint64_t request_sent_us;       /* when it was really begun */
    uint64_t task_start_us;         /* when the task was to start */
    uint64_t paced_from_us;         /* the next task is to start one period after this */
    uint64_t end_by_us;             /* once ending */
    uint32_t class;
    uint32_t task;
    uint32_t step;
    uint8_t state;
    bool ending;
};

/* Start one user of a class with the shard's present binding and let it begin its first task.
 * 0, -ENOMEM (nothing started). */
MUST_USE int user_start(struct shard *s, uint32_t class);

/* Let it end: at once when it waits or timeout_us is 0, else when its task is done, at most at
 * timeout_us from now. */
void user_end_soon(struct user *u, uint64_t timeout_us);

/* End it now; a request under way is cut and counted as interrupted. */
void user_end_now(struct user *u);

/* The callbacks for the HTTP engine. */
void user_request_done(void *user, const struct http_result *result, uint64_t now_us);
void user_set_cookie(void *user, struct str value);

/* User lists. */
void user_list_add(struct user_list *list, struct user *u);
void user_list_remove(struct user_list *list, struct user *u);

#endif

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
    USER_PAUSING,    /* inside a task, at a pause; the timer is set */
    USER_REQUESTING, /* the HTTP engine will call back */
};

/* What a user's present task is. */
enum user_stage { USER_STARTS, USER_WORKS, USER_STOPS };

/* The part of a request that only a redirect needs. */
struct user_redirect {
    unsigned hops;
    struct buf url;
    struct http_call call;
    struct plan_header *headers; /* of the hop; their texts belong to the first call */
};

struct cicada_user;
struct made_call;
struct trace;
struct variables;

struct user {
    struct timer timer; /* wait time */
    struct user *next;  /* in users[class], ending or spare */
    struct user *prev;
    struct user *next_idle; /* of those that wait for an arrival */
    struct shard *shard;
    struct http_client *client;
    struct cookies *cookies; /* NULL: none yet */
    struct binding *binding;
    struct user_redirect *redirect; /* NULL: not following one */
    struct made_call *made;         /* the request under way, when it was made of variables */
    struct trace *trace;            /* the same, when it is traced */
    struct variables *variables;    /* NULL: the plan has none */
    struct cicada_user *native;     /* NULL: the plan is a scenario */
    const struct plan_task *task;
    const struct http_call *calls; /* of the task's steps */
    uint64_t request_start_us;     /* from which its response time counts */
    uint64_t request_sent_us;      /* when it was really begun */
    uint64_t task_start_us;        /* when the task was to start */
    uint64_t paced_from_us;        /* the next task is to start one period after this */
    uint64_t end_by_us;            /* once ending */
    uint32_t class;
    uint32_t step;
    uint32_t tasks_begun; /* of a class that does them in order */
    uint8_t state;
    uint8_t stage;
    uint8_t stop_next; /* an enum plan_stop: before the next step */
    bool fresh;        /* nothing of the task has taken time yet */
    bool ending;
    bool in_task;
    bool arriving; /* begun for an arrival, not ready for it yet */
};

/* Start one user of a class with the shard's present binding and let it begin its first task.
 * 0, -ENOMEM (nothing started). */
MUST_USE int user_start(struct shard *s, uint32_t class);

/* Let it end: at once when it waits or timeout_us is 0, else when its task is done, at most at
 * timeout_us from now. What its class does on_stop comes after that. */
void user_end_soon(struct user *u, uint64_t timeout_us);

/* It is past its end_by_us. */
void user_time_is_up(struct user *u, uint64_t now_us);

/* What it waited for is there. */
void user_go_on(struct user *u, uint64_t now_us);

/* Let its timer fire: with the next turn of the loop, or after a pause. */
void user_resume_soon(struct user *u, uint64_t now_us);
void user_pause(struct user *u, uint64_t pause_us, uint64_t now_us);

/* Does its class keep a schedule, so that response times count from scheduled starts? */
bool user_has_schedule(const struct user *u);

/* End it now; a request under way is cut and counted as interrupted. */
void user_end_now(struct user *u);

/* Begin a task that was to start at start_us, which its response time counts from. The user has
 * none. */
void user_begin_task(struct user *u, uint64_t start_us, uint64_t now_us);

/* The loop came round so much too late to begin its task in time. */
void user_note_late_start(struct user *u, uint64_t late_us);

/* The callbacks for the HTTP engine. */
void user_request_done(void *user, const struct http_result *result, uint64_t now_us);
void user_set_cookie(void *user, struct str value);

/* User lists. */
void user_list_add(struct user_list *list, struct user *u);
void user_list_remove(struct user_list *list, struct user *u);

#endif

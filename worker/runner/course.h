/* The course of a headless run: when how many users of which class are wished for, and when the
 * load ends by itself. Pure: now in, what to do out. It knows Locust's ramp (a step of users, a
 * wait, the next step), the scenario's stages and arrivals, --run-time and the keys. One thread.
 * Source: locust/main.py, LocalRunner and Runner.shape_worker in locust/runners.py, 2.47.0. */
#ifndef CICADA_WORKER_RUNNER_COURSE_H
#define CICADA_WORKER_RUNNER_COURSE_H

#include "worker/runner/dispatcher.h"
#include "worker/scenario/plan.h"

#define COURSE_KEYS_RATE 100 /* users a second, for the keys */

enum course_state {
    COURSE_WAITING,
    COURSE_SPAWNING,
    COURSE_RUNNING, /* all are there that were wished for */
    COURSE_ENDED,
};

struct course_options {
    uint32_t users;
    double spawn_rate;
    uint64_t run_time_us; /* 0: until it is stopped */
    const bool *classes;  /* by class: who takes part; NULL: all. Borrowed */
};

/* What course_advance asks for, bits. */
enum {
    COURSE_SET_USERS = 1,    /* to course.dispatcher.counts */
    COURSE_SET_ARRIVALS = 2, /* begin the plan's arrivals */
    COURSE_RAMPS = 4,        /* a ramp begins, to course.target at course.rate */
    COURSE_SPAWNED = 8,      /* all users of the ramp are there */
    COURSE_END = 16,         /* the load ends: course.why */
};

struct course {
    /* to be read by anybody */
    enum course_state state;
    struct dispatcher dispatcher;
    uint32_t target; /* of the present ramp */
    double rate;
    const char *why; /* "--run-time limit reached", "Shape test completed" */

    struct course_options options;
    const struct plan_shape *shape;
    const struct shape_stage *stage; /* NULL: none yet */
    uint64_t begin_us;
    uint64_t step_us; /* when the next step of the ramp is due; UINT64_MAX: none */
    bool ramp_is_new; /* to be told */
    bool stepped_all; /* the ramp has no further step */
};

/* 0, -ENOMEM. */
MUST_USE int course_init(struct course *c, const struct plan *plan,
                         const struct course_options *options);
void course_done(struct course *c);

/* The load begins; call course_advance next. 0; -ENOMEM. */
MUST_USE int course_begin(struct course *c, uint64_t now_us);

/* When course_advance is to be called at the latest. */
uint64_t course_next_us(const struct course *c);

/* Call it when that time has come, and when the engine's counts change. reached: all users wished
 * for run and nobody is still ending. 0 with bits in *ret; -ENOMEM: try again. */
MUST_USE int course_advance(struct course *c, uint64_t now_us, bool reached, unsigned *ret);

/* So many users more (less) are wished for. 0; -EAGAIN: not while users are being spawned;
 * -ENOTSUP: not with arrivals; -ERANGE; -ENOMEM. */
MUST_USE int course_change_users(struct course *c, int more, uint64_t now_us);

/* No more of it. */
void course_end(struct course *c);

/* Is the load what was asked for at the most: 90 % of the most users, or of the highest rate? */
bool course_is_steady(const struct course *c, uint64_t now_us, uint64_t running);

#endif

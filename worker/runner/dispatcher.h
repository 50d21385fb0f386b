/* How many users of each class run at each step of a ramp: Locust's UsersDispatcher for its one
 * local worker, step by step the same counts. Pure: it has no clock; whoever owns it asks for a
 * step, makes the users so, and asks for the next one wait_us later.
 *
 * The order of the classes is Locust's: users of classes with a fixed_count first, then by weight,
 * each next user being the one that brings the mix nearest to the weights (by Kullback-Leibler
 * divergence). A ramp down takes away the users that came last.
 * Source: locust/dispatch.py UsersDispatcher, _kl_generator, 2.47.0. */
#ifndef CICADA_WORKER_RUNNER_DISPATCHER_H
#define CICADA_WORKER_RUNNER_DISPATCHER_H

#include "base/err.h"
#include "worker/scenario/plan.h"
#include "worker/scenario/shape.h"

#include <stdbool.h>
#include <stdint.h>

#define DISPATCHER_MAX_USERS SHAPE_MAX_USERS

/* One class in the line to be chosen from. */
struct dispatcher_choice {
    double divergence; /* what one more user of it takes from it; the least value goes next */
    double next;       /* users of it so far, and its weight, and one */
    double weight;
    uint32_t class;
};

/* A heap of choices: the next class is at its top. */
struct dispatcher_order {
    struct dispatcher_choice *heap;
    size_t count;
};

struct dispatcher {
    const struct plan *plan;
    bool *chosen;     /* by class: takes part */
    uint32_t *wished; /* by class: where a ramp to given numbers leads */
    bool by_class;    /* it is such a one */
    uint32_t *counts; /* by class: users wished for now */
    uint32_t *active; /* class of each of them, the last one on top */
    size_t active_count;
    size_t active_cap;
    struct dispatcher_order weighted;
    struct dispatcher_order fixed;
    uint64_t fixed_left; /* of the fixed order that is being followed */
    bool try_fixed;      /* look whether users of fixed classes are missing */

    uint32_t target;
    uint32_t at_once; /* users of one step */
    uint64_t wait_us; /* between two steps */
};

/* wanted tells by class who takes part (NULL: all; at least one). 0, -ENOMEM. */
MUST_USE int dispatcher_init(struct dispatcher *d, const struct plan *plan, const bool *wanted);
void dispatcher_done(struct dispatcher *d);

/* Begin a ramp from the counts of now to target users; rate > 0, finite, in users a second.
 * chosen tells by class whose users are added from now on (NULL: the same as before).
 * 0; -ERANGE (more than DISPATCHER_MAX_USERS); -ENOMEM: nothing changed. */
MUST_USE int dispatcher_ramp(struct dispatcher *d, uint32_t target, double rate,
                             const bool *chosen);

/* The same to given numbers of users of each class, whatever their weights and fixed counts are.
 * (Not Locust's; the users who are missing come in the order of its fixed ones.) */
MUST_USE int dispatcher_ramp_to(struct dispatcher *d, const uint32_t *class_users, double rate);

/* Take a step: counts are new. True when another one is due wait_us after this one; false when this
 * was the last. */
bool dispatcher_step(struct dispatcher *d);

/* Users wished for now, all classes. */
static inline uint32_t dispatcher_total(const struct dispatcher *d)
{
    return (uint32_t)d->active_count;
}

#endif

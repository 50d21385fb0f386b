#include "worker/runner/course.h"

#define STEADY_RATIO 0.9

int course_init(struct course *c, const struct plan *plan, const struct course_options *options)
{
    *c = (struct course){.options = *options, .shape = plan->shape, .step_us = UINT64_MAX};
    return dispatcher_init(&c->dispatcher, plan, options->classes);
}

void course_done(struct course *c)
{
    dispatcher_done(&c->dispatcher);
}

static bool has_stages(const struct course *c)
{
    return c->shape && c->shape->stage_count > 0;
}

static bool has_arrivals(const struct course *c)
{
    return c->shape && c->shape->arrival;
}

/* --- ramps ---------------------------------------------------------------------------------- */

static void begin_ramp(struct course *c, uint32_t target, double rate, uint64_t now_us)
{
    c->target = target;
    c->rate = rate;
    c->step_us = now_us;
    c->ramp_is_new = true;
    c->stepped_all = false;
    c->state = COURSE_SPAWNING;
}

static int ramp(struct course *c, uint32_t target, double rate, uint64_t now_us)
{
    int rc = dispatcher_ramp(&c->dispatcher, target, rate, NULL);
    if (rc == 0)
        begin_ramp(c, target, rate, now_us);
    return rc;
}

static int ramp_to_stage(struct course *c, const struct shape_stage *stage, uint64_t now_us)
{
    struct dispatcher *d = &c->dispatcher;
    int rc = stage->class_users
                 ? dispatcher_ramp_to(d, stage->class_users, stage->spawn_rate)
                 : dispatcher_ramp(d, stage->users, stage->spawn_rate,
                                   stage->classes ? stage->classes : c->options.classes);
    if (rc == 0)
        begin_ramp(c, stage->users, stage->spawn_rate, now_us);
    return rc;
}

/* Locust begins no new ramp when two stages want the same. */
static bool same_stage(const struct shape_stage *a, const struct shape_stage *b)
{
    return a->users == b->users && a->spawn_rate == b->spawn_rate &&
           a->class_users == b->class_users && a->classes == b->classes;
}

static int follow_stages(struct course *c, uint64_t now_us)
{
    const struct shape_stage *stage = shape_stage_at(c->shape, now_us - c->begin_us);
    if (!stage || stage == c->stage)
        return 0;
    int rc = c->stage && same_stage(c->stage, stage) ? 0 : ramp_to_stage(c, stage, now_us);
    if (rc == 0)
        c->stage = stage;
    return rc;
}

int course_begin(struct course *c, uint64_t now_us)
{
    c->begin_us = now_us;
    if (has_arrivals(c)) {
        c->state = COURSE_SPAWNING;
        c->ramp_is_new = true;
        return 0;
    }
    return has_stages(c) ? follow_stages(c, now_us)
                         : ramp(c, c->options.users, c->options.spawn_rate, now_us);
}

/* A ramp does not make up for steps that came late: as Locust, which sleeps between them. */
static unsigned take_step(struct course *c, uint64_t now_us)
{
    bool more = dispatcher_step(&c->dispatcher);
    uint64_t wait_us = c->dispatcher.wait_us;
    c->stepped_all = !more;
    if (!more)
        c->step_us = UINT64_MAX;
    else
        c->step_us = now_us - c->step_us < wait_us ? c->step_us + wait_us : now_us + wait_us;
    return COURSE_SET_USERS;
}

/* --- the whole ------------------------------------------------------------------------------ */

/* When the load ends by itself; UINT64_MAX: never. Stages overrule --run-time, as in Locust. */
static uint64_t end_us(const struct course *c)
{
    uint64_t shape_us = c->shape ? shape_end_us(c->shape) : UINT64_MAX;
    if (shape_us != UINT64_MAX)
        return c->begin_us + shape_us;
    return c->options.run_time_us ? c->begin_us + c->options.run_time_us : UINT64_MAX;
}

uint64_t course_next_us(const struct course *c)
{
    if (c->state == COURSE_WAITING || c->state == COURSE_ENDED)
        return UINT64_MAX;
    uint64_t next_us = end_us(c);
    if (has_stages(c) && c->stage && c->begin_us + c->stage->until_us < next_us)
        next_us = c->begin_us + c->stage->until_us;
    return c->step_us < next_us ? c->step_us : next_us;
}

static unsigned end_by_itself(struct course *c)
{
    bool by_shape = c->shape && shape_end_us(c->shape) != UINT64_MAX;
    c->why = by_shape ? "Shape test completed" : "--run-time limit reached";
    course_end(c);
    return COURSE_END;
}

static unsigned begin_arrivals(struct course *c)
{
    c->ramp_is_new = false;
    c->state = COURSE_RUNNING;
    return COURSE_SET_ARRIVALS | COURSE_SPAWNED;
}

int course_advance(struct course *c, uint64_t now_us, bool reached, unsigned *ret)
{
    unsigned wishes = 0;
    *ret = 0;
    if (c->state == COURSE_WAITING || c->state == COURSE_ENDED)
        return 0;
    if (now_us >= end_us(c)) {
        *ret = end_by_itself(c);
        return 0;
    }
    int rc = has_stages(c) ? follow_stages(c, now_us) : 0;
    if (rc < 0)
        return rc;
    if (has_arrivals(c) && c->ramp_is_new) {
        *ret = begin_arrivals(c);
        return 0;
    }
    if (c->ramp_is_new)
        wishes |= COURSE_RAMPS;
    c->ramp_is_new = false;
    if (c->step_us <= now_us) {
        wishes |= take_step(c, now_us);
    } else if (c->state == COURSE_SPAWNING && c->stepped_all && reached) {
        c->state = COURSE_RUNNING;
        wishes |= COURSE_SPAWNED;
    }
    *ret = wishes;
    return 0;
}

int course_change_users(struct course *c, int more, uint64_t now_us)
{
    int64_t users = (int64_t)dispatcher_total(&c->dispatcher) + more;
    if (has_arrivals(c))
        return -ENOTSUP;
    if (c->state != COURSE_RUNNING)
        return -EAGAIN;
    return ramp(c, users > 0 ? (uint32_t)users : 0, COURSE_KEYS_RATE, now_us);
}

void course_end(struct course *c)
{
    c->state = COURSE_ENDED;
    c->step_us = UINT64_MAX;
}

bool course_is_steady(const struct course *c, uint64_t now_us, uint64_t running)
{
    if (has_arrivals(c))
        return c->state == COURSE_RUNNING && shape_rate_at(c->shape, now_us - c->begin_us) >=
                                                 STEADY_RATIO * shape_highest_rate(c->shape);
    uint32_t most = has_stages(c) ? shape_most_users(c->shape) : c->options.users;
    if (c->target > most)
        most = c->target;
    return most > 0 && (double)running >= STEADY_RATIO * most;
}

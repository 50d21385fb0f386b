#include "worker/engine/interpreter.h"

#include "base/log.h"
#include "base/num.h"
#include "worker/engine/checks.h"
#include "worker/engine/requests.h"
#include "worker/engine/variables.h"

#define LOG_STEP_BYTES 1024 /* of a line that a step writes */

/* What comes after a step that was done. */
enum next { NEXT_STEP, NEXT_WAITS, NEXT_LEAVES };

enum interpreter_end interpreter_stop(struct user *u, enum plan_stop what)
{
    switch (what) {
    case PLAN_STOP_NOTHING:
        break;
    case PLAN_STOP_TASK:
        u->step = (uint32_t)u->task->step_count;
        return INTERPRETER_DONE;
    case PLAN_STOP_RUN:
        u->shard->stopped_run = u->shard->run;
        u->shard->dirty = true;
        return INTERPRETER_LEAVES;
    case PLAN_STOP_USER:
        return INTERPRETER_LEAVES;
    }
    return INTERPRETER_WAITS;
}

/* --- numbers of variables --------------------------------------------------------------------- */

/* A text of variables as a number; what is none, or is negative, counts as 0. */
static int render_number(struct user *u, const struct plan_text *text, uint64_t now_us, double *ret)
{
    struct buf *operand = &u->shard->operand;
    struct rendered rendered;
    buf_clear(operand);
    int rc = render(u, text, now_us, operand, &rendered);
    *ret = 0;
    if (rc == 0 && num_parse_double(str_trim(buf_str(operand)), ret) == 0 && *ret < 0)
        *ret = 0;
    return rc == -ENODATA ? rc : 0;
}

/* --- the kinds of steps ----------------------------------------------------------------------- */

static enum next pause_for(struct user *u, const struct plan_pause *pause, uint64_t now_us)
{
    uint64_t us = pause->min_us;
    if (pause->seconds.piece_count > 0) {
        double seconds;
        if (render_number(u, &pause->seconds, now_us, &seconds) < 0)
            return NEXT_LEAVES;
        us = (uint64_t)((seconds < PLAN_MAX_WAIT_S ? seconds : PLAN_MAX_WAIT_S) * 1e6);
    } else if (pause->max_us > pause->min_us) {
        us += rng_below(&u->shard->rng, pause->max_us - pause->min_us + 1);
    }
    u->step++;
    if (us == 0)
        return NEXT_STEP;
    if (u->variables)
        u->variables->paused_us += us;
    user_pause(u, us, now_us);
    return NEXT_WAITS;
}

static const struct plan_step *step_at(const struct user *u, uint32_t step)
{
    return &u->task->steps[step];
}

/* Come to the head of a loop: another round, or what is behind it. */
static enum next loop_round(struct user *u, const struct plan_step *step, uint64_t now_us)
{
    struct loop_mark *mark = &u->variables->loops[step->loop.slot];
    const struct plan_test *first;
    bool again = mark->rounds < mark->times;
    if (again && step->kind == PLAN_STEP_WHILE) {
        int rc = checks_hold(u, step->tests, step->test_count, NULL, now_us, &first);
        if (rc == -ENODATA)
            return NEXT_LEAVES;
        again = rc == 1;
    }
    mark->rounds += again;
    u->step = again ? u->step + 1 : step->other + 1;
    return NEXT_STEP;
}

/* How many rounds there are is decided once, whatever becomes of the variables in them. */
static enum next enter_loop(struct user *u, const struct plan_step *step, uint64_t now_us)
{
    double times = step->loop.times;
    if (step->loop.count.piece_count > 0 && render_number(u, &step->loop.count, now_us, &times) < 0)
        return NEXT_LEAVES;
    u->variables->loops[step->loop.slot] = (struct loop_mark){
        .times = (uint32_t)(times < PLAN_MAX_REPEATS ? times : PLAN_MAX_REPEATS)};
    return loop_round(u, step, now_us);
}

static enum next choose(struct user *u, const struct plan_step *step, uint64_t now_us)
{
    const struct plan_test *first;
    int rc = checks_hold(u, step->tests, step->test_count, NULL, now_us, &first);
    if (rc == -ENODATA)
        return NEXT_LEAVES;
    u->step = rc == 1 ? u->step + 1 : step->other + 1;
    return NEXT_STEP;
}

static enum next enter_group(struct user *u, const struct plan_step *step, uint64_t now_us)
{
    const struct variables *v = u->variables;
    u->variables->groups[step->group.slot] = (struct group_mark){now_us, v->paused_us, v->failures};
    u->step++;
    return NEXT_STEP;
}

static void leave_group(struct user *u, const struct plan_group *group, uint64_t now_us)
{
    const struct variables *v = u->variables;
    const struct group_mark *mark = &v->groups[group->slot];
    uint64_t took_us = now_us - mark->start_us, paused_us = v->paused_us - mark->paused_us;
    requests_record_group(u, group->entry, took_us > paused_us ? took_us - paused_us : 0,
                          v->failures > mark->failures, now_us);
}

static enum next end_block(struct user *u, const struct plan_step *end, uint64_t now_us)
{
    const struct plan_step *begin = step_at(u, end->other);
    uint32_t at = u->step;
    switch (begin->kind) {
    case PLAN_STEP_REPEAT:
    case PLAN_STEP_WHILE:
        u->step = end->other;
        return loop_round(u, begin, now_us);
    case PLAN_STEP_GROUP:
        leave_group(u, &begin->group, now_us);
        break;
    default:
        break;
    }
    u->step = at + 1;
    return NEXT_STEP;
}

static enum next assign(struct user *u, const struct plan_step *step, uint64_t now_us)
{
    struct buf *operand = &u->shard->operand;
    for (size_t i = 0; i < step->set.count; i++) {
        const struct plan_assignment *item = &step->set.items[i];
        struct rendered rendered;
        buf_clear(operand);
        int rc = render(u, &item->value, now_us, operand, &rendered);
        if (rc == 0)
            rc = variables_set(u->variables, item->variable, buf_str(operand),
                               item->json || rendered.json, rendered.hidden);
        if (rc == -ENODATA) /* any other fault leaves the variable as it is */
            return NEXT_LEAVES;
    }
    u->step++;
    return NEXT_STEP;
}

static enum next write_log(struct user *u, const struct plan_step *step, uint64_t now_us)
{
    struct buf *line = &u->shard->operand;
    buf_clear(line);
    if (render_shown(u, &step->log, now_us, line) == 0)
        log_info("%.*s", STR_ARG(str_sub(buf_str(line), 0, LOG_STEP_BYTES)));
    u->step++;
    return NEXT_STEP;
}

static enum next begin_request(struct user *u, uint64_t now_us)
{
    switch (requests_begin(u, now_us)) {
    case REQUESTS_UNDER_WAY:
        return NEXT_WAITS;
    case REQUESTS_FAILED:
        u->step++;
        user_resume_soon(u, now_us);
        return NEXT_WAITS;
    case REQUESTS_END_OF_FEED:
        break;
    }
    return NEXT_LEAVES;
}

/* --- the loop --------------------------------------------------------------------------------- */

static enum next do_step(struct user *u, const struct plan_step *step, uint64_t now_us)
{
    switch (step->kind) {
    case PLAN_STEP_REQUEST:
        return begin_request(u, now_us);
    case PLAN_STEP_PAUSE:
        return pause_for(u, &step->pause, now_us);
    case PLAN_STEP_REPEAT:
    case PLAN_STEP_WHILE:
        return enter_loop(u, step, now_us);
    case PLAN_STEP_IF:
        return choose(u, step, now_us);
    case PLAN_STEP_ELSE: /* the part before it was done */
        u->step = step->other;
        return NEXT_STEP;
    case PLAN_STEP_GROUP:
        return enter_group(u, step, now_us);
    case PLAN_STEP_END:
        return end_block(u, step, now_us);
    case PLAN_STEP_SET:
        return assign(u, step, now_us);
    case PLAN_STEP_LOG:
        return write_log(u, step, now_us);
    case PLAN_STEP_STOP:
        return interpreter_stop(u, step->stop) == INTERPRETER_LEAVES ? NEXT_LEAVES : NEXT_STEP;
    }
    return NEXT_LEAVES;
}

enum interpreter_end interpreter_run(struct user *u, uint64_t now_us)
{
    for (unsigned n = 0; u->step < u->task->step_count; n++) {
        if (n == INTERPRETER_STEPS_A_TURN) {
            user_resume_soon(u, now_us);
            return INTERPRETER_WAITS;
        }
        switch (do_step(u, step_at(u, u->step), now_us)) {
        case NEXT_STEP:
            break;
        case NEXT_WAITS:
            return INTERPRETER_WAITS;
        case NEXT_LEAVES:
            return INTERPRETER_LEAVES;
        }
    }
    return INTERPRETER_DONE;
}

#include "worker/runner/pace.h"

static double mean_s(uint64_t min_us, uint64_t max_us)
{
    return ((double)min_us + (double)max_us) / 2e6;
}

static double wait_s(const struct plan_wait *wait)
{
    switch (wait->kind) {
    case PLAN_WAIT_NONE:
        return 0;
    case PLAN_WAIT_BETWEEN:
        return mean_s(wait->min_us, wait->max_us);
    case PLAN_WAIT_CONSTANT:
    case PLAN_WAIT_PACING:
    case PLAN_WAIT_THROUGHPUT:
        break;
    }
    return (double)wait->min_us / 1e6;
}

static double pauses_s(const struct plan_task *task)
{
    double sum_s = 0;
    for (size_t i = 0; i < task->step_count; i++) {
        const struct plan_step *step = &task->steps[i];
        if (step->kind == PLAN_STEP_PAUSE && step->pause.seconds.piece_count == 0)
            sum_s += mean_s(step->pause.min_us, step->pause.max_us);
    }
    return sum_s;
}

static double class_s(const struct plan_class *class)
{
    double sum_s = 0, weights = 0;
    for (size_t i = 0; i < class->task_count; i++) {
        double weight = class->sequential ? 1 : class->tasks[i].weight;
        sum_s += weight * pauses_s(&class->tasks[i]);
        weights += weight;
    }
    return wait_s(&class->wait) + (weights > 0 ? sum_s / weights : 0);
}

double pace_longest_s(const struct plan *plan, const bool *wanted)
{
    double longest_s = 0;
    for (size_t c = 0; c < plan->class_count; c++) {
        double s = !wanted || wanted[c] ? class_s(&plan->classes[c]) : 0;
        longest_s = s > longest_s ? s : longest_s;
    }
    return longest_s;
}

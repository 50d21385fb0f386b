/* The requests of a scenario on standard input, one a line: URL, name, body, with tabs between. */
#include "worker/scenario/plan.h"

#include <stdio.h>

static void print_task(const struct plan_task *task)
{
    for (size_t s = 0; s < task->step_count; s++) {
        const struct plan_request *r = &task->steps[s].request;
        printf("%.*s\t%.*s\t%.*s\n", STR_ARG(r->url), STR_ARG(r->name), STR_ARG(r->body));
    }
}

int main(void)
{
    struct plan *plan = NULL;
    struct err err = {0};
    if (plan_load_file("/dev/stdin", NULL, &plan, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (size_t c = 0; c < plan->class_count; c++) {
        for (size_t t = 0; t < plan->classes[c].task_count; t++)
            print_task(&plan->classes[c].tasks[t]);
    }
    plan_free(plan);
    return 0;
}

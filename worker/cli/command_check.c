/* cicada check: a scenario's plan, or all that is wrong with it, without a request. */
#include "worker/cli/commands.h"
#include "worker/cli/load_setup.h"
#include "worker/runner/inputs.h"
#include "worker/scenario/describe.h"

#include <stdio.h>

#define PLAN_TEXT_BYTES (256u << 20)

static void print_fault(void *context, const char *line)
{
    (void)context;
    (void)fprintf(stderr, "%s\n", line); /* nowhere else to tell it */
}

static int print_plan(const struct plan *plan)
{
    struct buf text;
    buf_init(&text, PLAN_TEXT_BYTES);
    bool shown =
        plan_describe(plan, &text) == 0 && fputs(buf_c(&text), stdout) >= 0 && fflush(stdout) == 0;
    buf_done(&text);
    return shown ? EXIT_DONE : EXIT_FAILED;
}

static int check(const struct options *o)
{
    const struct plan_tags tags = load_setup_tags(o);
    struct plan *plan = NULL;
    struct err err = {0};
    int rc = plan_check_file(o->operands.items[0].ptr, &tags, print_fault, NULL, &plan, &err);
    if (rc < 0)
        return rc == -ENOMEM ? EXIT_FAILED : EXIT_MISTAKE;
    rc = inputs_check(plan, o->sets.items, o->sets.count, &err);
    int status = rc < 0 ? command_fail(&err) : print_plan(plan);
    plan_free(plan);
    return status;
}

int command_check(char *const argv[], char *const envp[])
{
    struct options options;
    int status = command_begin(argv, envp, 1, "one scenario file", &options);
    if (status >= 0)
        return status;
    status = check(&options);
    options_done(&options);
    log_close();
    return status;
}

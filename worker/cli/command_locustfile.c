/* cicada locustfile: a scenario as a file for Locust's master and its Python workers. */
#include "worker/cli/commands.h"
#include "worker/locustfile/locustfile.h"

#include <stdio.h>

#define LOCUSTFILE_BYTES (1u << 30) /* the largest scenario, escaped, and its tasks */

/* Of a fault, and of what falls short. */
static void print_line(void *context, const char *line)
{
    (void)context;
    (void)fprintf(stderr, "%s\n", line); /* nowhere else to tell it */
}

static int print_locustfile(const struct plan *plan, const char *path)
{
    struct err err = {0};
    struct buf text;
    buf_init(&text, LOCUSTFILE_BYTES);
    int status = EXIT_DONE;
    if (locustfile_add(plan, path, print_line, NULL, &text, &err) < 0)
        status = command_fail(&err);
    else if (fwrite(text.ptr, 1, text.len, stdout) != text.len || fflush(stdout) != 0)
        status = EXIT_FAILED;
    buf_done(&text);
    return status;
}

int command_locustfile(char *const argv[], char *const envp[])
{
    struct options options;
    int status = command_begin(argv, envp, 1, "one scenario file", &options);
    if (status >= 0)
        return status;
    const char *path = options.operands.items[0].ptr;
    struct plan *plan = NULL;
    struct err err = {0};
    int rc = plan_check_file(path, NULL, print_line, NULL, &plan, &err);
    if (rc < 0)
        status = rc == -ENOMEM ? EXIT_FAILED : EXIT_MISTAKE;
    else
        status = print_locustfile(plan, path);
    plan_free(plan);
    options_done(&options);
    log_close();
    return status;
}

/* cicada locustfile: a scenario as a file for Locust's master and its Python workers. */
#include "base/log.h"
#include "worker/cli/commands.h"
#include "worker/locustfile/locustfile.h"
#include "worker/scenario/task_file.h"
#include "worker/scenario/url.h"

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

/* What -f of a run takes beside scenarios. */
static int refuse_others(const char *path, struct err *err)
{
    if (strcmp(path, "-") == 0)
        return err_set(err, -EINVAL,
                       "locustfile: the scenario has to be a file, for it may name others "
                       "beside it");
    if (url_is_absolute(str_of(path)))
        return err_set(err, -EINVAL,
                       "locustfile: a URL alone has no file: write a scenario, such as "
                       "{\"host\": \"http://…\", \"tasks\": [\"/\"]}");
    if (task_file_is_one(path))
        return err_set(err, -EINVAL,
                       "locustfile: %s: tasks in C run in C workers only, a locustfile is made "
                       "of a scenario",
                       path);
    return 0;
}

static int make(const char *path)
{
    struct plan *plan = NULL;
    struct err err = {0};
    if (refuse_others(path, &err) < 0)
        return command_fail(&err);
    int rc = plan_check_file(path, NULL, print_line, NULL, &plan, &err);
    if (rc < 0)
        return rc == -ENOMEM ? EXIT_FAILED : EXIT_MISTAKE;
    int status = print_locustfile(plan, path);
    plan_free(plan);
    return status;
}

int command_locustfile(char *const argv[], char *const envp[])
{
    struct options options;
    int status = command_begin(argv, envp, 1, "one scenario file", &options);
    if (status >= 0)
        return status;
    if (options.sets.count || options.tags.count || options.exclude_tags.count)
        log_warning(
            "a locustfile has all tasks and no values: --set, --tags and --exclude-tags are "
            "for its run, ignoring");
    status = make(options.operands.items[0].ptr);
    options_done(&options);
    log_close();
    return status;
}

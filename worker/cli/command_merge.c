/* cicada merge DIR... --out DIR: several results as one. It takes no flag of a run, so it reads its
 * few arguments itself. */
#include "base/log.h"
#include "worker/cli/commands.h"
#include "worker/output/merge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char help[] =
    "usage: cicada merge DIR... --out DIR\n"
    "\n"
    "Add up what runs left in their --results-dir (of several workers of one test, or\n"
    "of several runs) and write it into a folder of the same kind. Counts are added;\n"
    "percentiles are those of all requests together, not means of the parts'.\n";

struct merge_arguments {
    const char **folders;
    size_t count;
    const char *out;
    bool help;
};

/* The value of "--out DIR" or "--out=DIR" at *at, which is stepped on; NULL: it is another. */
static const char *out_of(char *const **at)
{
    const char *argument = **at;
    if (strncmp(argument, "--out=", 6) == 0)
        return argument + 6;
    if (strcmp(argument, "--out") != 0)
        return NULL;
    if (!(*at)[1])
        return "";
    return *++*at;
}

static int parse(char *const argv[], struct merge_arguments *ret, struct err *err)
{
    char quoted[LOG_QUOTED_BYTES];
    for (char *const *at = argv + 1; *at; at++) {
        const char *out = out_of(&at);
        if (out)
            ret->out = out;
        else if (strcmp(*at, "--help") == 0 || strcmp(*at, "-h") == 0)
            ret->help = true;
        else if ((*at)[0] == '-')
            return err_set(err, -EINVAL, "cicada merge: unknown flag %s",
                           log_quote(str_of(*at), quoted));
        else
            ret->folders[ret->count++] = *at;
    }
    if (!ret->help && (!ret->out || !*ret->out))
        return err_set(err, -EINVAL, "cicada merge: --out names the folder for the whole");
    return 0;
}

static int merge(const struct merge_arguments *a, bool *ret_shown, struct err *err)
{
    struct report_requests n;
    int rc = merge_results(a->folders, a->count, a->out, &n, err);
    if (rc == 0)
        *ret_shown = printf("%s: %zu result%s with %" PRIu64 " requests: %" PRIu64
                            " succeeded, %" PRIu64 " failed, %" PRIu64 " interrupted\n",
                            a->out, a->count, a->count == 1 ? "" : "s", n.started, n.succeeded,
                            n.failed, n.interrupted) > 0;
    return rc;
}

int command_merge(char *const argv[], char *const envp[])
{
    (void)envp;
    struct err err = {0};
    struct merge_arguments arguments = {0};
    size_t most = 0;
    while (argv[most])
        most++;
    arguments.folders = calloc(most, sizeof *arguments.folders);
    int rc =
        arguments.folders ? parse(argv, &arguments, &err) : err_set(&err, -ENOMEM, "out of memory");
    bool shown = true;
    if (rc == 0 && arguments.help)
        shown = fputs(help, stdout) >= 0;
    else if (rc == 0)
        rc = merge(&arguments, &shown, &err);
    free(arguments.folders);
    if (rc < 0)
        return command_fail(&err);
    return shown && fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
}

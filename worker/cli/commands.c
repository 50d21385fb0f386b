#include "worker/cli/commands.h"

#include "worker/cli/help.h"

#include <stdio.h>

#define HELP_MAX_BYTES (1u << 16)

const struct command command_table[] = {
    {"calibrate", "URL|SCENARIO [--target-users N] [--target-rps RATE] [...]",
     "Find what one worker sustains, and how many workers a wished load needs.", command_calibrate},
    {"check", "SCENARIO [--set NAME=VALUE ...] [--tags TAG ...]",
     "Print what a scenario does, or all that is wrong with it.", command_check},
    {"facts", "[--strict] [FLAG ...]",
     "Print what the cluster has, as a run would read it, as one JSON object.", command_facts},
    {"harvest", "RESULTS_DIR --prometheus-url URL [FLAG ...]",
     "Ask Prometheus again for the run of a results folder, and put the answers there.",
     command_harvest},
    {"listener", "> cicada_listener.py",
     "Print what a master of one's own locustfile does with the workers' reports.",
     command_listener},
    {"locustfile", "SCENARIO > locustfile.py",
     "Print a scenario as a file for Locust's master, with its classes in Python.",
     command_locustfile},
    {"merge", "DIR... --out DIR", "Add up results folders of several workers or runs without loss.",
     command_merge},
};

const size_t command_count = sizeof command_table / sizeof *command_table;

const struct command *command_find(const char *word)
{
    for (size_t i = 0; word && i < command_count; i++) {
        if (strcmp(word, command_table[i].name) == 0)
            return &command_table[i];
    }
    return NULL;
}

int command_fail(const struct err *err)
{
    (void)fprintf(stderr, "cicada: %s\n", err->text); /* nowhere else to tell it */
    return err->code == -ENOMEM ? EXIT_FAILED : EXIT_MISTAKE;
}

int command_show_help(int (*add)(struct buf *out))
{
    struct buf text;
    buf_init(&text, HELP_MAX_BYTES);
    bool shown = add(&text) == 0 && fputs(buf_c(&text), stdout) >= 0 && fflush(stdout) == 0;
    buf_done(&text);
    return shown ? EXIT_DONE : EXIT_FAILED;
}

int command_begin(char *const argv[], char *const envp[], size_t operand_count,
                  const char *operands, struct options *ret)
{
    struct err err = {0};
    int status = -1;
    if (options_read_command(argv, envp, ret, &err) < 0)
        return command_fail(&err);
    if (ret->help) {
        status = command_show_help(help_add);
    } else if (ret->version) {
        status = printf("cicada %s\n", CICADA_VERSION) > 0 ? EXIT_DONE : EXIT_FAILED;
    } else if (ret->operands.count != operand_count) {
        (void)err_set(&err, -EINVAL, "cicada %s takes %s", argv[0], operands); /* told below */
        status = command_fail(&err);
    } else if (log_open(ret->log_level, ret->log_file, &err) < 0) {
        status = command_fail(&err);
    }
    if (status >= 0)
        options_done(ret);
    return status;
}

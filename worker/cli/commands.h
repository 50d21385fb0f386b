/* What the program can do besides a run: "cicada facts", "cicada harvest DIR". A new command is a
 * row in the table and a file command_NAME.c. Each parses its own arguments and says its own
 * faults; it is called once, from main, with libcurl initialised and the default signals. */
#ifndef CICADA_WORKER_CLI_COMMANDS_H
#define CICADA_WORKER_CLI_COMMANDS_H

#include "base/buf.h"
#include "base/err.h"
#include "worker/cli/options.h"

/* Exit statuses. A run's own may be others: 128 and a signal's number, as shells have it. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_MISTAKE = 2 };

/* argv begins with the command's name and ends with NULL. Returns the exit status. */
typedef int command_run(char *const argv[], char *const envp[]);

struct command {
    const char *name;
    const char *arguments; /* of the help: "RESULTS_DIR --prometheus-url URL" */
    const char *text;
    command_run *run;
};

extern const struct command command_table[];
extern const size_t command_count;

/* NULL: no command is called so. */
const struct command *command_find(const char *word);

/* --- for commands ---------------------------------------------------------------------------- */

/* One line on stderr; returns EXIT_FAILED for -ENOMEM, else EXIT_MISTAKE. */
int command_fail(const struct err *err);

/* Print a text of help.h; returns EXIT_DONE or EXIT_FAILED. */
int command_show_help(int (*add)(struct buf *out));

/* Options of a command that takes operand_count operands (their name for the message), with the log
 * opened. -1: go on, with *ret to be options_done and the log to be closed; else the exit status:
 * help was shown, or a mistake told. */
int command_begin(char *const argv[], char *const envp[], size_t operand_count,
                  const char *operands, struct options *ret);

command_run command_calibrate;
command_run command_check;
command_run command_facts;
command_run command_harvest;
command_run command_listener;
command_run command_locustfile;
command_run command_merge;

#endif

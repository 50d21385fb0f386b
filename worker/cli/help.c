#include "worker/cli/help.h"

#include "worker/cli/commands.h"
#include "worker/cli/flags.h"

#include <stdio.h>

#define COLUMNS     80
#define TEXT_COLUMN 26

static const char *const titles[FLAG_GROUPS] = {"What is run",
                                                "Headless run",
                                                "Files and console",
                                                "Of cicada calibrate",
                                                "Worker",
                                                "Metrics",
                                                "Report",
                                                "Tags",
                                                "Log",
                                                "Other"};

static const char before[] =
    "Usage: cicada --headless -u USERS -t TIME http://HOST/PATH [FLAG ...]\n"
    "       cicada --headless -f SCENARIO [FLAG ...]\n"
    "       cicada --worker --master-host HOST -f SCENARIO [FLAG ...]\n"
    "\n"
    "A load generator with Locust's flags, environment variables and configuration\n"
    "files: on its own as 'locust --headless', or for a master as 'locust --worker'.\n";

static const char after[] =
    "\n"
    "A flag wins over its environment variable [in brackets], which wins over the\n"
    "configuration files (lines of 'name = value').\n"
    "\n"
    "Exit status: 0 done; 1 the run failed, or a headless run had failures (see\n"
    "--exit-code-on-error); 2 wrong usage; 98 saturated (--fail-if-saturated);\n"
    "99 a threshold was not met.\n";

static const char calibrate_before[] =
    "Usage: cicada calibrate http://HOST/PATH [FLAG ...]\n"
    "       cicada calibrate SCENARIO [FLAG ...] [CLASS ...]\n"
    "\n"
    "Find what one worker sustains against this target, and how many workers a\n"
    "wished load needs:\n"
    "\n"
    "  cicada calibrate shop.json --target-users 50000\n"
    "  cicada calibrate http://127.0.0.1:8080/ --target-rps 200000\n"
    "\n"
    "The number of users grows step by step, until a thread or its event loop is\n"
    "over a limit, or the target answers no faster. Ask only a target that may be\n"
    "loaded to its limit.\n";

static const char calibrate_after[] =
    "\n"
    "  --json                  Print the answer and all steps as JSON on stdout.\n"
    "\n"
    "Exit status: 0 measured; 1 nothing could be measured, as where requests fail;\n"
    "2 wrong usage; 130 after CTRL+C, with what was known.\n";

/* Append the words of text between the columns from and COLUMNS; *column is where the last line
 * ended. */
static int add_words(struct buf *out, struct str text, size_t from, size_t *column)
{
    struct str word;
    int rc = 0;
    while (rc == 0 && str_next(&text, ' ', &word)) {
        bool breaks = *column + 1 + word.len > COLUMNS;
        size_t blanks = breaks || *column < from ? from - (breaks ? 0 : *column) : 1;
        if (*column == from && !breaks)
            blanks = 0;
        rc = buf_printf(out, "%s%*s%.*s", breaks ? "\n" : "", (int)blanks, "", STR_ARG(word));
        *column = (breaks ? 0 : *column) + blanks + word.len;
    }
    return rc;
}

static int add_flag(struct buf *out, const struct flag *f)
{
    size_t start = out->len;
    int rc = buf_printf(out, "  %s%s%s%s%s", f->letter ? f->letter : "", f->letter ? ", " : "",
                        f->name, f->placeholder ? " " : "", f->placeholder ? f->placeholder : "");
    size_t column = out->len - start;
    if (rc == 0 && column + 2 > TEXT_COLUMN) {
        rc = buf_add_byte(out, '\n');
        column = 0;
    }
    if (rc == 0)
        rc = add_words(out, str_of(f->text), TEXT_COLUMN, &column);
    char env[64];
    (void)snprintf(env, sizeof env, "[%s]", f->env ? f->env : ""); /* the table's own, short */
    if (rc == 0 && f->env)
        rc = add_words(out, str_of(env), TEXT_COLUMN, &column);
    return rc == 0 ? buf_add_byte(out, '\n') : rc;
}

static int add_group(struct buf *out, enum flag_group group, unsigned runs)
{
    int rc = buf_printf(out, "\n%s:\n", titles[group]);
    for (size_t i = 0; rc == 0 && i < flag_count; i++) {
        const struct flag *f = &flag_table[i];
        bool of_runs = f->run == FLAG_RUN_ANY || (f->run & runs);
        if (f->use == FLAG_USED && f->text && f->group == group && of_runs)
            rc = add_flag(out, f);
    }
    return rc;
}

static int add_commands(struct buf *out)
{
    int rc = buf_add(out, STR("\nCommands:\n"));
    for (size_t i = 0; rc == 0 && i < command_count; i++) {
        const struct command *c = &command_table[i];
        size_t column = 0;
        rc = buf_printf(out, "  cicada %s %s\n", c->name, c->arguments);
        if (rc == 0)
            rc = add_words(out, str_of(c->text), TEXT_COLUMN, &column);
        if (rc == 0)
            rc = buf_add_byte(out, '\n');
    }
    return rc;
}

static int add_ignored(struct buf *out)
{
    size_t column = 0;
    int rc =
        buf_add(out, STR("\nLocust's flags that have no meaning here are accepted and ignored:\n"));
    for (size_t i = 0; rc == 0 && i < flag_count; i++) {
        if (flag_table[i].use == FLAG_IGNORED)
            rc = add_words(out, str_of(flag_table[i].name), 2, &column);
    }
    return rc == 0 ? buf_add_byte(out, '\n') : rc;
}

int help_add(struct buf *out)
{
    int rc = buf_add(out, str_of(before));
    for (unsigned g = 0; rc == 0 && g < FLAG_GROUPS; g++)
        rc = add_group(out, (enum flag_group)g, ~0u);
    if (rc == 0)
        rc = add_commands(out);
    if (rc == 0)
        rc = add_ignored(out);
    return rc == 0 ? buf_add(out, str_of(after)) : rc;
}

int help_add_calibrate(struct buf *out)
{
    static const enum flag_group groups[] = {FLAG_GROUP_CALIBRATE, FLAG_GROUP_LOAD, FLAG_GROUP_TAGS,
                                             FLAG_GROUP_LOG};
    int rc = buf_add(out, str_of(calibrate_before));
    for (size_t i = 0; rc == 0 && i < sizeof groups / sizeof *groups; i++)
        rc = add_group(out, groups[i], FLAG_RUN_CALIBRATE);
    return rc == 0 ? buf_add(out, str_of(calibrate_after)) : rc;
}

/* What a command line, the environment and the configuration files of the working folder say, one
 * option a line; exits 2 with the reason on stderr when they are refused. Without arguments: the
 * table of flags. */
#include "worker/cli/flags.h"
#include "worker/cli/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static void print_list(const char *name, const struct options_list *list)
{
    printf("%s", name);
    for (size_t i = 0; i < list->count; i++)
        printf("\t%s", list->items[i].ptr);
    printf("\n");
}

static void print_text(const char *name, const char *text)
{
    printf("%s\t%s\n", name, text ? text : "");
}

static void print_number(const char *name, int64_t number)
{
    printf("%s\t%" PRId64 "\n", name, number);
}

static void print_table(void)
{
    for (size_t i = 0; i < flag_count; i++) {
        const struct flag *f = &flag_table[i];
        printf("%s\t%s\t%s\t%s\n", f->name, f->letter ? f->letter : "", f->env ? f->env : "",
               f->kind == FLAG_SWITCH ? "0"
               : f->kind == FLAG_LIST ? "*"
                                      : "1");
    }
}

int main(int argc, char *argv[])
{
    if (argc < 2) {
        print_table();
        return 0;
    }
    struct options o;
    struct err err = {0};
    if (options_read(argv, environ, &o, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text); /* nowhere else to tell it */
        return 2;
    }
    print_number("worker", o.worker);
    print_number("headless", o.headless);
    print_number("reset_stats", o.reset_stats);
    print_text("master_host", o.master_host);
    print_number("master_port", o.master_port);
    print_text("locustfile", o.scenario_file);
    print_text("host", o.host);
    print_text("logfile", o.log_file);
    print_number("loglevel", o.log_level);
    print_number("stop_timeout", (int64_t)o.stop_timeout_s);
    print_number("processes", o.processes);
    print_number("num_users", o.users);
    print_number("run_time", (int64_t)o.run_time_s);
    print_number("exit_code_on_error", o.exit_code_on_error);
    print_number("stats_history_enabled", o.csv_full_history);
    print_number("print_stats", o.print_stats);
    print_number("only_summary", o.only_summary);
    print_number("json", o.json);
    print_text("csv_prefix", o.csv_prefix);
    print_text("html_file", o.html_file);
    print_text("json_file", o.json_file);
    printf("spawn_rate\t%g\n", o.spawn_rate);
    print_list("tags", &o.tags);
    print_list("exclude_tags", &o.exclude_tags);
    print_list("user_classes", &o.user_classes);
    options_done(&o);
    return 0;
}

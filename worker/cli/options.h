/* What the process was asked to do: Locust's command line, its environment variables and its
 * configuration files, as one struct. Precedence as Locust's: command line, environment, files
 * (--config, pyproject.toml, locust.conf, ~/.locust.conf), default. Nothing is logged and nothing
 * but the configuration files is read; a fault is one line in err. One thread.
 *
 * The flags themselves are a table in flags.c: a new flag is a row there and a field here.
 * Source: locust/argument_parser.py, 2.12.1 to 2.47.0, and ConfigArgParse 1.7. */
#ifndef CICADA_WORKER_CLI_OPTIONS_H
#define CICADA_WORKER_CLI_OPTIONS_H

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define OPTIONS_MAX_FILE_BYTES (1u << 20) /* of one configuration file */
#define OPTIONS_MAX_READY_S    86400      /* of waiting between two runs: a day is a mistake */
#define OPTIONS_MAX_THREADS    1024       /* the engine's limit of shards */
#define OPTIONS_OWN_LAG        UINT64_MAX
#define OPTIONS_MAX_USERS      10000000 /* no machine holds as many */

/* Texts end in NUL as well, and live until options_done. */
struct options_list {
    struct str *items;
    size_t count;
};

struct options {
    bool help; /* print what is asked and leave; nothing else was checked */
    bool version;
    bool list; /* answer this from the scenario and leave, as the next two */
    bool show_task_ratio;
    bool show_task_ratio_json;

    bool worker;
    bool headless;
    bool calibrate;            /* of options_read_calibrate */
    const char *master_host;   /* never empty */
    int64_t master_port;       /* 1 to 65535 */
    uint64_t master_timeout_s; /* without a master; 0: for ever */

    const char *scenario_file; /* -f, or NULL; then url is set */
    bool from_master;          /* -f -: the scenario is in the master's locustfile */
    const char *url;
    const char *host;         /* NULL: the scenario's, or the master's */
    struct options_list sets; /* "name=value" each; may hold secrets */
    struct options_list tags;
    struct options_list exclude_tags;
    struct options_list user_classes; /* empty: all of the scenario's */
    uint64_t stop_timeout_s;
    uint64_t ready_wait_s; /* between two runs, for slow networks; only from the environment */
    bool reset_stats;
    int64_t threads;   /* 0: the CPUs that this process may use */
    int64_t processes; /* as given; threads has its meaning already */

    struct options_list source_addresses; /* local ones to connect from; empty: any */
    bool phases;
    double trace_ratio; /* 0: no request is traced */

    int64_t users;       /* of a headless run; -1: not given, as the next two are 0 */
    double spawn_rate;   /* a second */
    uint64_t run_time_s; /* 0: until it is stopped */
    int64_t iterations;  /* tasks; 0: no limit */
    int64_t exit_code_on_error;
    struct options_list thresholds;
    bool fail_if_saturated;

    int64_t target_users; /* 0: not given, as the next ones */
    double target_rps;
    double cpu_limit_pct;
    double lag_limit_ms;
    int64_t users_max;
    uint64_t step_time_s;
    uint64_t max_time_s;

    const char *csv_prefix; /* NULL: none, as the next ones */
    bool csv_full_history;
    const char *html_file;
    bool json;
    const char *json_file;
    const char *results_dir;
    const char *dest;
    const char *test_name;
    const char *tag;
    bool print_stats;
    bool only_summary;

    int64_t metrics_port;         /* -1: no metrics are served; 0: any free port */
    const char *metrics_address;  /* NULL: all */
    const char *metrics_push_url; /* NULL: nothing is pushed */
    const char *engine;           /* "auto", "fast" or "curl" */
    bool http2;
    const char *proxy; /* NULL: the scenario's; may hold a password */

    const char *report; /* "auto", "always" or "never" */
    bool cluster_facts; /* asked for; neither: where there are credentials */
    bool no_cluster_facts;
    const char *worker_pod_namespace; /* NULL: the default, as the next two */
    const char *worker_pod_selector;
    const char *machine_type_label;
    double actors_per_user;
    const char *actors_metrics_url; /* NULL: none, as the next ones */
    const char *master_web_url;
    const char *master_web_auth;
    const char *prometheus_url;
    struct options_list prometheus_headers;
    const char *prometheus_token_file;
    const char *prometheus_auth;
    const char *prometheus_ca;
    const char *prometheus_users_query;
    const char *telemetry_profile; /* never NULL */
    struct options_list telemetry_vars;
    uint64_t telemetry_lag_s; /* OPTIONS_OWN_LAG: the profile's */
    bool strict;

    enum log_level log_level;
    const char *log_file; /* NULL: stderr */
    const char *config_file;

    struct options_list operands; /* of a command: what is no flag */
    struct options_list notices;  /* a line for the log for each flag that was ignored */
    void *memory;                 /* for options_done */
};

/* Was a question asked in place of a run? */
static inline bool options_ask(const struct options *o)
{
    return o->list || o->show_task_ratio || o->show_task_ratio_json;
}

/* A configuration file's text and what messages call it. */
struct options_file {
    const char *name; /* NAME.toml is read as TOML: its [tool.locust] section */
    struct str text;
};

/* Pure: argv (its first element is the program, NULL at its end), envp ("NAME=value", NULL at its
 * end) and the files' texts, the weightiest file last. 0, -EINVAL (a user's mistake), -ENOMEM;
 * then *ret is empty. */
MUST_USE int options_parse(char *const argv[], char *const envp[], const struct options_file *files,
                           size_t file_count, struct options *ret, struct err *err);

/* The same with the configuration files that Locust would read; also their errno. */
MUST_USE int options_read(char *const argv[], char *const envp[], struct options *ret,
                          struct err *err);

/* The same for a command (argv begins with its name): nothing to run is needed, and what is no flag
 * is an operand. */
MUST_USE int options_read_command(char *const argv[], char *const envp[], struct options *ret,
                                  struct err *err);

/* The same for 'cicada calibrate': flags as of a run; unless -f names the scenario, the first
 * operand does or is the URL; the others are user classes. */
MUST_USE int options_read_calibrate(char *const argv[], char *const envp[], struct options *ret,
                                    struct err *err);

void options_done(struct options *o);

#endif

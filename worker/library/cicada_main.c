/* The wiring: command line, log, libraries, signals, the plan, and the run. The only file that
 * knows everything. */
#include "base/log.h"
#include "include/cicada.h"
#include "worker/cli/commands.h"
#include "worker/cli/help.h"
#include "worker/cli/load_setup.h"
#include "worker/cli/options.h"
#include "worker/cli/ratios.h"
#include "worker/cli/report_setup.h"
#include "worker/engine/engine.h"
#include "worker/runner/headless.h"
#include "worker/runner/signals.h"
#include "worker/runner/worker.h"
#include "worker/scenario/plan.h"

#include <ares.h>
#include <curl/curl.h>
#include <jansson.h>
#include <msgpack.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <zmq.h>

#define ANSWER_MAX_BYTES (256u << 20)

/* One line for whoever started the process, and in the log's file if there is one. */
static int fail(const struct err *err, const char *log_file, int exit_code)
{
    if (log_file)
        log_error("%s", err->text);
    (void)fprintf(stderr, "cicada: %s\n", err->text); /* nowhere else to tell it */
    return exit_code;
}

static int fault(int rc)
{
    return rc == -ENOMEM ? EXIT_FAILED : EXIT_MISTAKE;
}

/* The libraries that are loaded, not those that it was built with. */
static int show_version(void)
{
    int zmq_major, zmq_minor, zmq_patch;
    zmq_version(&zmq_major, &zmq_minor, &zmq_patch);
    int n = printf("cicada %s (libzmq %d.%d.%d, libcurl %s, %s, c-ares %s, jansson %s, "
                   "msgpack-c %s)\n",
                   CICADA_VERSION, zmq_major, zmq_minor, zmq_patch,
                   curl_version_info(CURLVERSION_NOW)->version, OpenSSL_version(OPENSSL_VERSION),
                   ares_version(NULL), jansson_version_str(), msgpack_version());
    return n > 0 && fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
}

static struct scrape_options metrics_of(const struct options *o)
{
    return (struct scrape_options){
        .push_url = o->metrics_push_url,
        .on = o->metrics_port >= 0,
        .address = o->metrics_address,
        .port = (unsigned)(o->metrics_port > 0 ? o->metrics_port : 0),
    };
}

static struct output_options output_of(const struct options *o)
{
    return (struct output_options){
        .csv_prefix = o->csv_prefix,
        .csv_full_history = o->csv_full_history,
        .html_file = o->html_file,
        .json = o->json,
        .json_file = o->json_file,
        .results_dir = o->results_dir,
        .dest = o->dest,
        .test_name = o->test_name,
        .tag = o->tag,
        .traces = o->trace_ratio > 0,
        .console = o->only_summary  ? OUTPUT_CONSOLE_SUMMARY
                   : o->print_stats ? OUTPUT_CONSOLE_TABLES
                                    : OUTPUT_CONSOLE_AUTO,
    };
}

static int run_worker(const struct options *o, const struct plan *plan,
                      const struct report_settings *report, int signal_fd, struct scrape *scrape)
{
    struct err err = {0};
    int exit_code = EXIT_FAILED;
    const struct worker_options options = {
        .master_host = o->master_host,
        .master_port = (unsigned)o->master_port,
        .host = o->host,
        .sets = o->sets.items,
        .set_count = o->sets.count,
        .stop_timeout_s = (double)o->stop_timeout_s,
        .master_timeout_s = (double)o->master_timeout_s,
        .ready_wait_s = (double)o->ready_wait_s,
        .reset_stats = o->reset_stats,
        .fetched = o->from_master,
        .signal_fd = signal_fd,
        .report = report,
        .output = output_of(o),
        .file_users = engine_raise_file_limit(),
        .engine = load_setup_engine(o),
        .metrics = metrics_of(o),
        .scrape = scrape,
    };
    int rc = worker_run(&options, plan, &exit_code, &err);
    if (rc < 0)
        return fail(&err, o->log_file, rc == -EINVAL ? EXIT_MISTAKE : EXIT_FAILED);
    return exit_code;
}

static int run_headless(const struct options *o, const struct plan *plan,
                        const struct report_settings *report, int signal_fd)
{
    struct err err = {0};
    int exit_code = EXIT_FAILED;
    bool *chosen = load_setup_classes(o, plan);
    struct headless_options options = {
        .host = o->host,
        .sets = o->sets.items,
        .set_count = o->sets.count,
        .classes = o->user_classes.count > 0 ? chosen : NULL,
        .users_given = o->users >= 0,
        .spawn_rate_given = o->spawn_rate > 0,
        .users = o->users >= 0 ? (uint32_t)o->users : 1,
        .spawn_rate = o->spawn_rate > 0 ? o->spawn_rate : 1,
        .run_time_s = o->run_time_s,
        .stop_timeout_s = (double)o->stop_timeout_s,
        .reset_stats = o->reset_stats,
        .exit_code_on_error = (int)o->exit_code_on_error,
        .fail_if_saturated = o->fail_if_saturated,
        .thresholds = o->thresholds.items,
        .threshold_count = o->thresholds.count,
        .signal_fd = signal_fd,
        .engine = load_setup_engine(o),
        .output = output_of(o),
        .report = report,
        .metrics = metrics_of(o),
    };
    options.engine.task_limit = (uint64_t)o->iterations;
    log_debug("files may be open for %llu users", (unsigned long long)engine_raise_file_limit());
    int rc = chosen ? headless_run(&options, plan, &exit_code, &err)
                    : err_set(&err, -ENOMEM, "out of memory");
    free(chosen);
    return rc < 0 ? fail(&err, o->log_file, fault(rc)) : exit_code;
}

/* The metrics are served already while a master is asked for its locustfile: who watches the
 * process sees it alive. */
static int load(const struct options *o, const struct cicada_test *test, int signal_fd,
                struct scrape *scrape, struct plan **ret, struct err *err)
{
    const struct scrape_options metrics = metrics_of(o);
    int rc = o->from_master ? scrape_open(scrape, &metrics, err) : 0;
    return rc < 0 ? rc : load_setup_plan(o, test, signal_fd, ret, err);
}

/* Nothing was begun, and why is told. With a file, errnos are of reading what the user named; with
 * a master, they are of the network. */
static int refuse(const struct options *o, const struct err *err, int rc)
{
    if (rc == -ECANCELED) /* a signal, while the master was waited for */
        return EXIT_DONE;
    return fail(err, o->log_file, o->from_master && rc != -EINVAL ? EXIT_FAILED : fault(rc));
}

static int run(const struct options *o, const struct cicada_test *test)
{
    struct err err = {0};
    struct plan *plan = NULL;
    struct report_setup setup = {0};
    struct scrape scrape = {0};
    int rc = log_open(o->log_level, o->log_file, &err);
    if (rc < 0)
        return fail(&err, NULL, EXIT_MISTAKE);
    for (size_t i = 0; i < o->notices.count; i++)
        log_warning("%s", o->notices.items[i].ptr);
    int exit_code;
    int signal_fd = signals_open();
    if (signal_fd < 0) {
        (void)err_set(&err, signal_fd, "signals: %s", strerror(-signal_fd)); /* told below */
        exit_code = fail(&err, o->log_file, EXIT_FAILED);
    } else if ((rc = load(o, test, signal_fd, &scrape, &plan, &err)) < 0 ||
               (rc = report_setup(o, &setup, &err)) < 0) {
        exit_code = refuse(o, &err, rc);
    } else {
        setup.settings.background.test_name = o->test_name;
        setup.settings.background.tag = o->tag;
        exit_code = o->worker ? run_worker(o, plan, &setup.settings, signal_fd, &scrape)
                              : run_headless(o, plan, &setup.settings, signal_fd);
    }
    scrape_done(&scrape);
    report_setup_done(&setup);
    plan_free(plan);
    if (signal_fd >= 0)
        (void)close(signal_fd); /* the process ends */
    return exit_code;
}

/* What Locust tells of a test without running it. */
static int answer(const struct options *o, const struct cicada_test *test)
{
    struct err err = {0};
    struct plan *plan = NULL;
    struct buf text;
    struct pen pen = {&text, 0};
    buf_init(&text, ANSWER_MAX_BYTES);
    int rc = load_setup_plan(o, test, -1, &plan, &err);
    bool *chosen = rc == 0 ? load_setup_classes(o, plan) : NULL;
    const bool *wanted = o->user_classes.count > 0 ? chosen : NULL;
    uint64_t users = o->users > 0 ? (uint64_t)o->users : 0;
    if (rc == 0 && !chosen)
        rc = err_set(&err, -ENOMEM, "out of memory");
    if (rc == 0 && o->list)
        ratios_list(&pen, plan);
    else if (rc == 0 && o->show_task_ratio)
        ratios_text(&pen, plan, wanted, users);
    else if (rc == 0)
        ratios_json(&pen, plan, wanted, users);
    if (rc == 0 && pen.rc < 0)
        rc = err_set(&err, pen.rc, "%s", strerror(-pen.rc));
    bool shown = rc == 0 && fputs(buf_c(&text), stdout) >= 0 && fflush(stdout) == 0;
    free(chosen);
    plan_free(plan);
    buf_done(&text);
    return rc < 0 ? fail(&err, NULL, fault(rc)) : shown ? EXIT_DONE : EXIT_FAILED;
}

static bool open_libraries(void)
{
    struct err err = {0};
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        return true;
    (void)err_set(&err, -EIO, "libcurl cannot be initialised"); /* told below */
    (void)fail(&err, NULL, EXIT_FAILED);                        /* as everywhere where it is so */
    return false;
}

static int run_command(const struct command *c, char *argv[])
{
    if (!open_libraries())
        return EXIT_FAILED;
    int exit_code = c->run(argv, environ);
    curl_global_cleanup();
    return exit_code;
}

/* A program with its own test is what it runs: the command line as if it named it, first, so that
 * another -f shows. NULL: no memory. */
static char **name_own_test(int argc, char **argv, char *name)
{
    static char flag[] = "-f";
    char **args = calloc((size_t)argc + 3, sizeof *args);
    if (!args)
        return NULL;
    args[0] = name;
    args[1] = flag;
    args[2] = name;
    for (int i = 1; i < argc; i++)
        args[i + 2] = argv[i];
    return args;
}

static int read_options(char **args, const struct cicada_test *test, struct options *ret,
                        struct err *err)
{
    int rc = options_read(args, environ, ret, err);
    if (rc < 0 || !test || ret->help || ret->version)
        return rc;
    if (strcmp(ret->scenario_file, args[0]) == 0)
        return 0;
    options_done(ret);
    return err_set(err, -EINVAL, "-f: the user classes of this program are its own");
}

static int run_with_options(char **args, const struct cicada_test *test)
{
    struct err err = {0};
    struct options options;
    int rc = read_options(args, test, &options, &err);
    if (rc < 0)
        return fail(&err, NULL, fault(rc));
    int exit_code = EXIT_FAILED;
    if (options.help) {
        exit_code = command_show_help(help_add);
    } else if (options.version) {
        exit_code = show_version();
    } else if (options_ask(&options)) {
        exit_code = answer(&options, test);
    } else if (open_libraries()) {
        exit_code = run(&options, test);
        curl_global_cleanup();
    }
    options_done(&options);
    log_close();
    return exit_code;
}

int cicada_main(int argc, char **argv, const struct cicada_test *test)
{
    static char nameless[] = "cicada";
    const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;
    if (command)
        return run_command(command, argv + 1);
    if (!test)
        return run_with_options(argv, NULL);
    struct err err = {0};
    char **args = name_own_test(argc, argv, argc > 0 ? argv[0] : nameless);
    if (!args)
        return fail(&err, NULL, fault(err_set(&err, -ENOMEM, "out of memory")));
    int exit_code = run_with_options(args, test);
    free(args);
    return exit_code;
}

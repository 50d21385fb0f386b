/* The wiring: command line, log, signals, libraries, the plan, and the run. The only file that
 * knows everything, and the only one that ends the process. Exit status: 0 done, 1 it failed on the
 * way, 2 the user's mistake. */
#include "base/buf.h"
#include "base/log.h"
#include "base/num.h"
#include "worker/cli/help.h"
#include "worker/cli/options.h"
#include "worker/runner/worker.h"
#include "worker/scenario/plan.h"

#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_MISTAKE = 2 };

#define HELP_MAX_BYTES (1u << 20)
#define MAX_WAIT_S     86400u /* of an environment variable */

/* One line on stderr before there is a log; in it afterwards. */
static int refuse(const struct err *err, int exit_code)
{
    log_error("%s", err->text);
    return exit_code;
}

static int show_help(void)
{
    struct buf text;
    buf_init(&text, HELP_MAX_BYTES);
    int rc = help_add(&text);
    if (rc == 0)
        (void)fputs(buf_c(&text), stdout); /* checked by fflush */
    buf_done(&text);
    return rc == 0 && fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
}

static int show_version(void)
{
    (void)puts("cicada " CICADA_VERSION); /* checked by fflush */
    return fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
}

/* Before any thread is started, so that all inherit it. */
static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int load_plan(const struct options *o, struct plan **ret, struct err *err)
{
    const struct plan_tags tags = {
        .include = o->tags.items,
        .include_count = o->tags.count,
        .exclude = o->exclude_tags.items,
        .exclude_count = o->exclude_tags.count,
    };
    if (!o->scenario_file)
        return plan_from_url(str_of(o->url), ret, err);
    return plan_load_file(o->scenario_file, &tags, ret, err);
}

/* Which classes run, and how many of each, is what the master says; a name that nobody has is a
 * mistake all the same. */
static int check_classes(const struct options *o, const struct plan *plan, struct err *err)
{
    for (size_t i = 0; i < o->user_classes.count; i++) {
        struct str name = o->user_classes.items[i];
        char quoted[LOG_QUOTED_BYTES];
        if (plan_class_index(plan, name) == plan->class_count)
            return err_set(err, -EINVAL, "the scenario has no user class %s",
                           log_quote(name, quoted));
    }
    if (o->user_classes.count > 0)
        log_info(
            "the master decides which user classes run: those on the command line are ignored");
    return 0;
}

/* Locust's variable for slow networks: seconds between client_stopped and client_ready. */
static double ready_wait_s(void)
{
    uint64_t seconds;
    const char *text = getenv("LOCUST_WORKER_ADDITIONAL_WAIT_BEFORE_READY_AFTER_STOP");
    if (!text || num_parse_u64(str_of(text), MAX_WAIT_S, &seconds) < 0)
        return 0;
    return (double)seconds;
}

static int run_worker(const struct options *o, const struct plan *plan, int signal_fd)
{
    struct err err = {0};
    int exit_code = EXIT_FAILED;
    log_debug("files may be open for %llu users", (unsigned long long)engine_raise_file_limit());
    const struct worker_options options = {
        .master_host = o->master_host,
        .master_port = (unsigned)o->master_port,
        .host = o->host,
        .stop_timeout_s = (double)o->stop_timeout_s,
        .master_timeout_s = (double)o->master_timeout_s,
        .ready_wait_s = ready_wait_s(),
        .reset_stats = o->reset_stats,
        .signal_fd = signal_fd,
        .engine = {.shards = (unsigned)o->threads},
    };
    int rc = worker_run(&options, plan, &exit_code, &err);
    if (rc < 0)
        return refuse(&err, rc == -EINVAL ? EXIT_MISTAKE : EXIT_FAILED);
    return exit_code;
}

static int run(const struct options *o)
{
    struct err err = {0};
    struct plan *plan = NULL;
    int rc = log_open(o->log_level, o->log_file, &err);
    if (rc < 0)
        return refuse(&err, EXIT_MISTAKE);
    for (size_t i = 0; i < o->notices.count; i++)
        log_info("%.*s", STR_ARG(o->notices.items[i]));
    rc = load_plan(o, &plan, &err);
    if (rc == 0)
        rc = check_classes(o, plan, &err);
    if (rc < 0) {
        plan_free(plan);
        return refuse(&err, rc == -ENOMEM ? EXIT_FAILED : EXIT_MISTAKE);
    }
    int signal_fd = open_signals();
    if (signal_fd < 0 || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        (void)err_set(&err, -EIO, "cannot set up signals or libcurl");
        plan_free(plan);
        return refuse(&err, EXIT_FAILED);
    }
    int exit_code = run_worker(o, plan, signal_fd);
    plan_free(plan);
    curl_global_cleanup();
    (void)close(signal_fd);
    return exit_code;
}

int main(int argc, char **argv)
{
    (void)argc;
    struct err err = {0};
    struct options options;
    int rc = options_read(argv, environ, &options, &err);
    if (rc < 0)
        return refuse(&err, rc == -ENOMEM ? EXIT_FAILED : EXIT_MISTAKE);
    int exit_code = options.help ? show_help() : options.version ? show_version() : run(&options);
    options_done(&options);
    log_close();
    return exit_code;
}

/* cicada calibrate URL|SCENARIO: what one worker sustains, and how many of them a wished load
 * needs. Steps are told on stderr while they go, the answer on stdout. */
#include "base/log.h"
#include "worker/cli/calibrate_text.h"
#include "worker/cli/commands.h"
#include "worker/cli/help.h"
#include "worker/cli/load_setup.h"
#include "worker/runner/pace.h"
#include "worker/runner/signals.h"
#include "worker/scenario/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEXT_MAX_BYTES (1u << 16)
#define JSON_DIGITS    12  /* numbers are rounded already; their text is to be short */
#define SIGNAL_STATUS  128 /* and the signal's number, as shells have it */

/* --- what is told ----------------------------------------------------------------------------- */

static void tell_row(void *context, const struct capacity_window *w, enum capacity_limit over)
{
    bool *begun = context;
    struct buf line;
    buf_init(&line, TEXT_MAX_BYTES);
    int rc = *begun ? 0 : calibrate_text_head(&line);
    *begun = true;
    if (rc == 0 && calibrate_text_row(w, over, &line) == 0)
        (void)fputs(buf_c(&line), stderr); /* nowhere else to tell it */
    buf_done(&line);
}

static bool show_text(const struct calibration *c, const struct calibrate_wish *wish)
{
    struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    bool shown = calibrate_text_answer(c, wish, &text) == 0 && fputs(buf_c(&text), stdout) >= 0 &&
                 fflush(stdout) == 0;
    buf_done(&text);
    return shown;
}

static bool show_json(const struct calibration *c, const struct calibrate_wish *wish)
{
    json_t *all = calibrate_json(c, wish);
    bool shown = all &&
                 json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(JSON_DIGITS)) == 0 &&
                 puts("") >= 0 && fflush(stdout) == 0;
    json_decref(all);
    return shown;
}

static int show(const struct options *o, const struct calibration *c)
{
    const struct calibrate_wish wish = {
        .users = o->target_users > 0 ? measure_of((double)o->target_users) : MEASURE_UNKNOWN,
        .rate = o->target_rps > 0 ? measure_of(o->target_rps) : MEASURE_UNKNOWN,
    };
    bool shown = o->json ? show_json(c, &wish) : show_text(c, &wish);
    if (!shown)
        log_error("the answer could not be written");
    if (c->signal != 0)
        return SIGNAL_STATUS + c->signal;
    return shown && capacity_result(&c->search).rate.known ? EXIT_DONE : EXIT_FAILED;
}

/* --- the run ---------------------------------------------------------------------------------- */

static int check_times(const struct options *o, uint64_t step_s, uint64_t max_s, struct err *err)
{
    if (o->step_time_s > 0 && o->step_time_s < CALIBRATE_SHORTEST_S)
        return err_set(err, -EINVAL, "--step-time: must be at least %d s", CALIBRATE_SHORTEST_S);
    if (max_s < step_s)
        return err_set(err, -EINVAL,
                       "--max-time: %" PRIu64 " s are less than one step of %" PRIu64 " s", max_s,
                       step_s);
    return 0;
}

static void tell_beginning(const struct options *o, const struct plan *plan, const bool *classes,
                           uint64_t step_s, uint64_t max_s)
{
    double pace_s = pace_longest_s(plan, classes);
    if (plan->shape)
        log_warning("the scenario's %s not followed: users are added step by step, continuing",
                    plan->shape->arrival ? "arrival rate is" : "stages are");
    if ((double)step_s < pace_s)
        log_warning("users wait for %g s on average, longer than a step of %" PRIu64
                    " s: not all of them will be seen at work, continuing",
                    pace_s, step_s);
    log_info("Trying numbers of users for %" PRIu64 " s each, at most %" PRIu64
             " s in all; CTRL+C shows what is known by then",
             step_s, max_s);
    if (o->target_users > 0 && pace_s <= 0)
        log_warning("users that do not wait ask as fast as they can: a wished load is better given "
                    "as --target-rps, continuing");
}

static struct capacity_options search_of(const struct options *o)
{
    uint64_t asked = o->users_max > 0 ? (uint64_t)o->users_max : CALIBRATE_USERS_MAX;
    uint64_t files = engine_raise_file_limit();
    return (struct capacity_options){
        .users_max = (uint32_t)(files < asked ? files : asked),
        .file_limited = (files < asked),
        .cpu_limit_pct = (o->cpu_limit_pct > 0) ? o->cpu_limit_pct : CAPACITY_CPU_PCT,
        .lag_limit_ms = o->lag_limit_ms > 0 ? o->lag_limit_ms : CAPACITY_LAG_MS,
    };
}

static int measure(const struct options *o, const struct plan *plan, const bool *classes,
                   int signal_fd)
{
    struct err err = {0};
    struct calibration c = {0};
    bool begun = false;
    struct calibrate_options options = {
        .host = o->host,
        .sets = o->sets.items,
        .set_count = o->sets.count,
        .classes = classes,
        .signal_fd = signal_fd,
        .engine = load_setup_engine(o),
        .search = search_of(o),
        .step_s = o->step_time_s,
        .max_s = o->max_time_s,
        .tell = tell_row,
        .context = &begun,
    };
    calibrate_times(plan, classes, &options.step_s, &options.max_s);
    if (options.search.users_max == 0) {
        (void)err_set(&err, -EMFILE,
                      "open files (ulimit -Hn) do not allow a single user"); /* told below */
        return command_fail(&err);
    }
    if (check_times(o, options.step_s, options.max_s, &err) < 0)
        return command_fail(&err);
    tell_beginning(o, plan, classes, options.step_s, options.max_s);
    if (calibrate_run(&options, plan, &c, &err) < 0)
        return err.code == -EINVAL ? command_fail(&err) : (command_fail(&err), EXIT_FAILED);
    int status = show(o, &c);
    calibration_done(&c);
    return status;
}

static int calibrate(const struct options *o)
{
    struct err err = {0};
    struct plan *plan = NULL;
    int signal_fd = signals_open();
    if (signal_fd < 0) {
        (void)err_set(&err, signal_fd, "signals: %s", strerror(-signal_fd)); /* told below */
        (void)command_fail(&err);
        return EXIT_FAILED;
    }
    int status;
    if (load_setup_plan(o, NULL, -1, &plan, &err) < 0) {
        status = command_fail(&err);
    } else {
        bool *chosen = load_setup_classes(o, plan);
        (void)(chosen ? 0 : err_set(&err, -ENOMEM, "out of memory")); /* told below */
        status = chosen ? measure(o, plan, o->user_classes.count > 0 ? chosen : NULL, signal_fd)
                        : command_fail(&err);
        free(chosen);
    }
    plan_free(plan);
    (void)close(signal_fd); /* the process ends */
    return status;
}

int command_calibrate(char *const argv[], char *const envp[])
{
    struct options options;
    struct err err = {0};
    if (options_read_calibrate(argv, envp, &options, &err) < 0)
        return command_fail(&err);
    int status;
    if (options.help) {
        status = command_show_help(help_add_calibrate);
    } else if (log_open(options.log_level, options.log_file, &err) < 0) {
        status = command_fail(&err);
    } else {
        for (size_t i = 0; i < options.notices.count; i++)
            log_warning("%s", options.notices.items[i].ptr);
        status = calibrate(&options);
    }
    options_done(&options);
    log_close();
    return status;
}

/* cicada harvest RESULTS_DIR --prometheus-url URL: what the servers went through, asked later: for
 * late metrics, and clusters that could not be reached during the run. */
#include "base/log.h"
#include "telemetry/harvest.h"
#include "worker/cli/commands.h"
#include "worker/cli/report_setup.h"
#include "worker/output/reharvest.h"

#include <stdlib.h>
#include <time.h>

#define DATE_BYTES 32

static void tell(const struct telemetry_result *r)
{
    for (size_t i = 0; i < r->failures.count; i++)
        log_warning("%s", r->failures.lines[i]);
    for (size_t i = 0; i < r->remarks.count; i++)
        log_debug("%s", r->remarks.lines[i]);
    log_info("server telemetry: %zu queries answered, %zu failed", r->queries_ok,
             r->queries_failed);
}

static struct window_sample *window_samples(const struct reharvest *run)
{
    struct window_sample *samples = calloc(run->sample_count + 1, sizeof *samples);
    for (size_t i = 0; samples && i < run->sample_count; i++)
        samples[i] = (struct window_sample){run->samples[i].wall_s, run->samples[i].users};
    return samples;
}

static int ask(const struct report_setup *setup, const struct reharvest *run,
               struct telemetry_result *ret, struct err *err)
{
    const struct background_options *o = &setup->settings.background;
    struct query_access access;
    struct buf token;
    char date[DATE_BYTES] = "";
    struct tm utc;
    time_t end = (time_t)run->end_s;
    if (gmtime_r(&end, &utc) && strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        date[0] = '\0';
    struct window_sample *samples = window_samples(run);
    int rc = prometheus_open(&o->prometheus, &token, &access, err);
    const struct telemetry_options options = {
        .access = access,
        .profile = o->profile,
        .lag_s = o->telemetry_lag_s,
        .test_name = run->test_name,
        .tag = run->tag,
        .data_timestamp = date,
        .run = {run->start_s, run->end_s},
        .worker_pod_count = run->worker_pod_count,
        .samples = samples,
        .sample_count = run->sample_count,
    };
    if (rc == 0 && !samples)
        rc = -ENOMEM;
    if (rc == 0)
        rc = telemetry_harvest(&options, -1, ret);
    buf_done(&token);
    free(samples);
    return rc < 0 ? err_set(err, rc, "%s", strerror(-rc)) : 0;
}

/* When nothing answered, what was there before is worth more than nulls. */
static int harvest(const struct report_setup *setup, const struct reharvest *run,
                   const char *folder)
{
    struct telemetry_result result = {0};
    struct err err = {0};
    int status = EXIT_FAILED;
    if (ask(setup, run, &result, &err) < 0) {
        status = command_fail(&err);
    } else {
        tell(&result);
        if (result.queries_ok == 0)
            log_error("nothing was answered: %s is as it was", folder);
        else if (reharvest_write(folder, result.document, result.flat, &err) < 0)
            log_error("%s", err.text);
        else
            status = EXIT_DONE;
    }
    telemetry_result_done(&result);
    return status;
}

static int run(const struct options *o)
{
    struct report_setup setup = {0};
    struct reharvest run = {0};
    struct err err = {0};
    const char *folder = o->operands.items[0].ptr;
    int status;
    if (!o->prometheus_url) {
        (void)err_set(&err, -EINVAL, "cicada harvest needs --prometheus-url"); /* told below */
        return command_fail(&err);
    }
    if (report_setup(o, &setup, &err) < 0 || reharvest_read(folder, &run, &err) < 0)
        status = command_fail(&err);
    else
        status = harvest(&setup, &run, folder);
    reharvest_done(&run);
    report_setup_done(&setup);
    return status;
}

int command_harvest(char *const argv[], char *const envp[])
{
    struct options options;
    int status = command_begin(argv, envp, 1, "one results folder", &options);
    if (status >= 0)
        return status;
    status = run(&options);
    options_done(&options);
    log_close();
    return status;
}

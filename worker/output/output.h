/* What a run leaves behind: files and the console. Whoever runs the load opens it before the first
 * user starts, tells it each second how things stand, and closes it with the final report. It owns
 * the files and, while it is open, the terminal's lower lines; it decides nothing about the run.
 * The runner's thread only; every call does blocking file I/O, bounded by what is written.
 *
 * Files are written under a temporary name and renamed, so that a reader never sees half a one;
 * only stats_history.csv, actors_history.csv, traces.txt and logs.txt grow line by line. A path
 * that names something else than a regular file (a pipe, /dev/stdout) is written to directly.
 *
 *   output_open  -> exit code 2 and no load when it fails
 *   output_tick  -> never fails; the first error of writing is logged and told by output_close
 *   output_close -> exit code 1 when it fails: what could be written is there */
#ifndef CICADA_WORKER_OUTPUT_OUTPUT_H
#define CICADA_WORKER_OUTPUT_OUTPUT_H

#include "base/err.h"
#include "base/measure.h"
#include "telemetry/profile.h"
#include "worker/report/report.h"

#include <stdbool.h>

struct output;

/* How the run is shown on the way and at the end; on stderr, as Locust does. */
enum output_console {
    OUTPUT_CONSOLE_AUTO,    /* a live view on a terminal, else tables every two seconds */
    OUTPUT_CONSOLE_TABLES,  /* tables every two seconds (--print-stats) */
    OUTPUT_CONSOLE_SUMMARY, /* the summary at the end (--only-summary) */
    OUTPUT_CONSOLE_NONE,    /* nothing, for a worker under a master */
};

#define OUTPUT_TRACES_NEED_FOLDER                                                                  \
    "--trace-ratio lists requests in a results folder: give --results-dir, or --dest"

/* Texts are copied. */
struct output_options {
    const char *csv_prefix; /* --csv PREFIX: PREFIX_stats.csv and the other three of Locust */
    bool csv_full_history;  /* a row each second for every entry */
    const char *html_file;  /* --html FILE; {u}, {r}, {t} in it become the three numbers below */
    bool json;              /* --json: to stdout at the end */
    const char *json_file;  /* --json-file NAME: NAME.json, as Locust names it */

    const char *results_dir; /* --results-dir DIR; or … */
    const char *dest; /* … --dest DEST: DEST/runs/NAME/run_date=…/run_ts=…/run_tag=TAG/ */
    const char *test_name; /* --name NAME: needed with dest */
    const char *tag;       /* --tag TAG: needed with dest */

    bool traces; /* traces.txt: needs one of the two folders */

    struct measure users; /* -u, -r, -t in seconds */
    struct measure spawn_rate;
    struct measure run_time_s;

    enum output_console console;
    const struct profile *profile; /* of an all-null server_summary.json; must outlive the output;
                                    * NULL: there is none then, unless the report brings one */
    double now_s;                  /* Unix time: the folder's run_date and run_ts */
};

/* Check that every wished file can be written, make the folders, and start logs.txt.
 * 0; -EINVAL (options that contradict each other), the system's errno (err names the path),
 * -ENOMEM. */
MUST_USE int output_open(const struct output_options *options, struct output **ret,
                         struct err *err);

/* The results folder, without a slash at the end; NULL: none. Valid until output_close. */
const char *output_folder(const struct output *o);

/* Once a second while the run goes on: a row of history, the other CSV files every five seconds,
 * the console. `now` is a report of the run so far; only test_name, tag, start_s, now_s, phase,
 * run_time_s, requests, stats, history, exceptions and actors_history are looked at. */
void output_tick(struct output *o, const struct report *now);

/* Rows for traces.txt, if it was wished for; never fails, as output_tick. */
void output_traces(struct output *o, struct str rows);

/* Everything whole, the summary printed, the memory freed; *o_p is NULL afterwards. status.json is
 * written last: its exit code is final->exit_code, or 1 when that is 0 and a file could not be
 * written. 0; the first error, when all else was still tried. */
MUST_USE int output_close(struct output **o_p, const struct report *final, struct err *err);

/* Leave without a report: what was written so far stays as it is. NULL is nothing. */
void output_free(struct output *o);

#endif

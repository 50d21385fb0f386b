#include "worker/output/output.h"

#include "base/log.h"
#include "worker/output/csv_files.h"
#include "worker/output/ending.h"
#include "worker/output/files.h"
#include "worker/output/folder.h"
#include "worker/output/html.h"
#include "worker/output/live.h"
#include "worker/output/results.h"
#include "worker/output/stats_json.h"
#include "worker/output/tables.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The shell around the text makers: it owns paths, descriptors and the terminal. Errors of writing
 * never stop the other files: the first is kept, the rest counted. */

#define TABLES_EVERY_S   2            /* CONSOLE_STATS_INTERVAL_SEC */
#define CONSOLE_BYTES    (16u << 20)  /* of one printing: a thousand names of 4 KiB, twice */
#define JSON_BYTES       (512u << 20) /* of --json: as of any other file */
#define ACTORS_ROW_BYTES 4096         /* labels are short */

struct output {
    struct csv_files csv;
    char *folder; /* NULL: none */
    char *html_file;
    char *json_file;
    bool json;
    enum output_console console;
    bool live;
    const struct profile *profile;
    bool logging; /* logs.txt is open */
    int actors_fd;
    size_t actors_written;
    int traces_fd;
    double tables_at_s; /* of the last ones; 0: none yet */
    struct err first;   /* error of writing */
    bool told;          /* of it */
    unsigned failures;
};

static void note(struct output *o, int rc, const struct err *err)
{
    if (rc < 0)
        (void)err_set(&o->first, rc, "%s", err->code ? err->text : strerror(-rc));
    o->failures += rc < 0;
}

static int no_memory(struct err *err)
{
    return err_set(err, -ENOMEM, "out of memory");
}

/* --- opening -------------------------------------------------------------------------------- */

static int choose_folder(struct output *o, const struct output_options *options, struct err *err)
{
    if (options->results_dir && options->dest)
        return err_set(err, -EINVAL, "--results-dir and --dest name two folders: give one");
    if (options->dest)
        return folder_path(options->dest, options->test_name, options->tag, options->now_s,
                           &o->folder, err);
    if (!options->results_dir)
        return 0;
    struct str dir = str_of(options->results_dir);
    while (dir.len > 1 && dir.ptr[dir.len - 1] == '/')
        dir.len--;
    o->folder = strndup(dir.ptr, dir.len);
    return o->folder ? 0 : no_memory(err);
}

static int open_folder(struct output *o, struct err *err)
{
    char *prefix, *log;
    if (asprintf(&prefix, "%s/", o->folder) < 0)
        return no_memory(err);
    int rc = files_make_folder(o->folder, err);
    if (rc == 0)
        rc = results_try(o->folder, err);
    if (rc == 0)
        rc = csv_files_add(&o->csv, prefix, true, err);
    free(prefix);
    if (rc < 0)
        return rc;
    if (asprintf(&log, "%s/logs.txt", o->folder) < 0)
        return no_memory(err);
    rc = log_tee_open(log, err);
    o->logging = rc == 0;
    free(log);
    return rc;
}

static int open_traces(struct output *o, struct err *err)
{
    char *path;
    if (!o->folder)
        return err_set(err, -EINVAL, OUTPUT_TRACES_NEED_FOLDER);
    if (asprintf(&path, "%s/traces.txt", o->folder) < 0)
        return no_memory(err);
    o->traces_fd = files_open_growing(path, err);
    free(path);
    return o->traces_fd < 0 ? o->traces_fd : 0;
}

static int open_csv(struct output *o, const char *prefix, struct err *err)
{
    char *whole;
    if (asprintf(&whole, "%s_", prefix) < 0)
        return no_memory(err);
    int rc = csv_files_add(&o->csv, whole, true, err);
    free(whole);
    return rc;
}

static int choose_html(struct output *o, const struct output_options *options, struct err *err)
{
    struct buf name;
    buf_init(&name, PATH_MAX);
    struct pen pen = {&name, 0};
    html_file_name(&pen, options->html_file, options->users, options->spawn_rate,
                   options->run_time_s);
    o->html_file = buf_take(&name);
    buf_done(&name);
    if (pen.rc < 0 || !o->html_file)
        return err_set(err, pen.rc < 0 ? pen.rc : -ENOMEM, "--html: %s",
                       strerror(pen.rc < 0 ? -pen.rc : ENOMEM));
    return files_try(o->html_file, err);
}

static int choose_json(struct output *o, const char *name, struct err *err)
{
    if (asprintf(&o->json_file, "%s.json", name) < 0) {
        o->json_file = NULL;
        return no_memory(err);
    }
    return files_try(o->json_file, err);
}

static bool is_live(enum output_console console)
{
    const char *term = getenv("TERM");
    return console == OUTPUT_CONSOLE_AUTO && isatty(STDERR_FILENO) && term &&
           strcmp(term, "dumb") != 0;
}

static int open_all(struct output *o, const struct output_options *options, struct err *err)
{
    o->csv.full_history = options->csv_full_history;
    int rc = choose_folder(o, options, err);
    if (rc == 0 && o->folder)
        rc = open_folder(o, err);
    if (rc == 0 && options->traces)
        rc = open_traces(o, err);
    if (rc == 0 && options->csv_prefix)
        rc = open_csv(o, options->csv_prefix, err);
    if (rc == 0 && options->html_file)
        rc = choose_html(o, options, err);
    if (rc == 0 && options->json_file)
        rc = choose_json(o, options->json_file, err);
    return rc;
}

int output_open(const struct output_options *options, struct output **ret, struct err *err)
{
    struct output *o = calloc(1, sizeof *o);
    if (!o)
        return no_memory(err);
    o->actors_fd = o->traces_fd = -1;
    o->json = options->json;
    o->console = options->console;
    o->live = is_live(options->console);
    o->profile = options->profile;
    int rc = open_all(o, options, err);
    if (rc < 0) {
        output_free(o);
        return rc;
    }
    *ret = o;
    return 0;
}

const char *output_folder(const struct output *o)
{
    return o->folder;
}

/* --- actors_history.csv --------------------------------------------------------------------- */

static int open_actors(struct output *o, struct err *err)
{
    char *path;
    if (asprintf(&path, "%s/actors_history.csv", o->folder) < 0)
        return no_memory(err);
    o->actors_fd = files_open_growing(path, err);
    free(path);
    if (o->actors_fd < 0)
        return o->actors_fd;
    return files_put(o->actors_fd, STR("Timestamp,User Class,State,Count\r\n"));
}

static int actors_row(struct buf *b, const struct report_actors *a)
{
    char second[32], count[32];
    (void)snprintf(second, sizeof second, "%" PRIu64, (uint64_t)a->wall_s); /* fits */
    (void)snprintf(count, sizeof count, "%.15g", a->count);
    const struct str fields[] = {str_of(second), a->user_class, a->state, str_of(count)};
    return stats_csv_line(b, fields, sizeof fields / sizeof *fields);
}

/* Those that came since the last time. */
static void write_actors(struct output *o, const struct report *r)
{
    struct err err = {0};
    struct buf b;
    if (!o->folder || r->actors_history_count <= o->actors_written)
        return;
    int rc = o->actors_fd < 0 ? open_actors(o, &err) : 0;
    buf_init(&b, ACTORS_ROW_BYTES * (r->actors_history_count - o->actors_written));
    for (; rc == 0 && o->actors_written < r->actors_history_count; o->actors_written++)
        rc = actors_row(&b, &r->actors_history[o->actors_written]);
    if (rc == 0)
        rc = files_put(o->actors_fd, buf_str(&b));
    if (rc < 0)
        (void)err_set(&err, rc, "actors_history.csv: %s", strerror(-rc));
    note(o, rc, &err);
    buf_done(&b);
}

/* --- the console ---------------------------------------------------------------------------- */

static struct winsize size_of(int fd)
{
    struct winsize size = {0};
    if (ioctl(fd, TIOCGWINSZ, &size) < 0)
        size = (struct winsize){0};
    return size;
}

/* Locust asks the terminal of stdout, whatever it writes to. */
static unsigned name_width(void)
{
    return tables_name_width(isatty(STDOUT_FILENO) ? size_of(STDOUT_FILENO).ws_col : 0);
}

/* A console that went away, or is full, must not fail a run. */
static void show(struct buf *b)
{
    if (files_put(STDERR_FILENO, buf_str(b)) < 0)
        log_debug("stderr takes nothing any more");
}

static void show_live(const struct report *now)
{
    struct winsize size = size_of(STDERR_FILENO);
    struct buf b;
    buf_init(&b, CONSOLE_BYTES);
    struct pen pen = {&b, 0};
    live_text(&pen, now,
              (struct live_screen){size.ws_row ? size.ws_row : 24, size.ws_col ? size.ws_col : 80,
                                   !getenv("NO_COLOR")});
    if (pen.rc == 0)
        log_footer(buf_str(&b));
    buf_done(&b);
}

static void show_tables(const struct report *now)
{
    struct buf b;
    buf_init(&b, CONSOLE_BYTES);
    struct pen pen = {&b, 0};
    tables_requests(&pen, now->stats, name_width(), true);
    if (pen.rc == 0)
        show(&b);
    buf_done(&b);
}

static void show_ending(const struct output *o, const struct report *final)
{
    struct buf b;
    buf_init(&b, CONSOLE_BYTES);
    struct pen pen = {&b, 0};
    if (!o->json_file) { /* as Locust */
        tables_requests(&pen, final->stats, name_width(), false);
        tables_percentiles(&pen, final->stats, name_width());
        tables_errors(&pen, final->stats, name_width());
    }
    ending_text(&pen, final, o->folder);
    show(&b);
    buf_done(&b);
}

/* --- traces.txt ------------------------------------------------------------------------------ */

void output_traces(struct output *o, struct str rows)
{
    struct err err = {0};
    if (o->traces_fd < 0)
        return;
    int rc = files_put(o->traces_fd, rows);
    if (rc < 0)
        (void)err_set(&err, rc, "traces.txt: %s", strerror(-rc)); /* told by output_tick */
    note(o, rc, &err);
}

/* --- the moments ---------------------------------------------------------------------------- */

void output_tick(struct output *o, const struct report *now)
{
    struct err err = {0};
    bool sound = !o->told;
    note(o, csv_files_tick(&o->csv, now, &err), &err);
    write_actors(o, now);
    if (sound && o->failures > 0)
        log_warning("%s, continuing", o->first.text);
    o->told = o->failures > 0;
    if (o->live) {
        show_live(now);
    } else if (o->console == OUTPUT_CONSOLE_AUTO || o->console == OUTPUT_CONSOLE_TABLES) {
        if (now->now_s < o->tables_at_s || now->now_s - o->tables_at_s >= TABLES_EVERY_S - 0.5) {
            show_tables(now);
            o->tables_at_s = now->now_s;
        }
    }
}

/* To stdout with the newline that print() adds, or to a file without. */
static int write_json(const struct output *o, const struct report *final, struct err *err)
{
    struct buf b;
    if (!o->json && !o->json_file)
        return 0;
    buf_init(&b, JSON_BYTES);
    struct pen pen = {&b, 0};
    stats_json(&pen, final->stats);
    int rc = pen.rc;
    if (rc == 0 && o->json_file)
        rc = files_write(o->json_file, buf_str(&b), err);
    if (rc == 0 && o->json)
        rc = buf_add_byte(&b, '\n');
    if (rc == 0 && o->json)
        rc = files_put(STDOUT_FILENO, buf_str(&b));
    buf_done(&b);
    return rc < 0 ? err_set(err, rc, "--json: %s", strerror(-rc)) : 0;
}

static void write_page(struct output *o, const struct report *final)
{
    struct err err = {0};
    struct buf page;
    if (!o->html_file && !o->folder)
        return;
    buf_init(&page, RESULTS_MAX_BYTES);
    int rc = results_page(&page, final);
    if (rc < 0)
        (void)err_set(&err, rc, "report.html: %s", strerror(-rc));
    else if (o->html_file)
        rc = files_write(o->html_file, buf_str(&page), &err);
    note(o, rc, &err);
    if (o->folder) {
        struct err other = {0};
        unsigned failures = 0;
        rc = results_write(o->folder, final, buf_str(&page), o->profile, &failures, &other);
        note(o, rc, &other);
        o->failures += failures > 1 ? failures - 1 : 0;
    }
    buf_done(&page);
}

static void write_files(struct output *o, const struct report *final)
{
    struct err err = {0}, json = {0};
    note(o, csv_files_finish(&o->csv, final, &err), &err);
    write_actors(o, final);
    write_page(o, final);
    note(o, write_json(o, final, &json), &json);
}

static void close_one(struct output *o, int *fd, const char *name)
{
    struct err err = {0};
    int rc = *fd >= 0 && close(*fd) < 0 ? -errno : 0;
    *fd = -1;
    if (rc < 0)
        (void)err_set(&err, rc, "%s: %s", name, strerror(-rc));
    note(o, rc, &err);
}

/* The log's file ends here, so that status.json knows of its troubles. */
static void close_growing(struct output *o)
{
    close_one(o, &o->actors_fd, "actors_history.csv");
    close_one(o, &o->traces_fd, "traces.txt");
    int rc = o->logging ? log_tee_close() : 0;
    o->logging = false;
    struct err log = {0};
    if (rc < 0)
        (void)err_set(&log, rc, "logs.txt: %s", strerror(-rc));
    note(o, rc, &log);
}

int output_close(struct output **o_p, const struct report *final, struct err *err)
{
    struct output *o = *o_p;
    struct err status = {0};
    if (o->live)
        log_footer((struct str){NULL, 0});
    write_files(o, final);
    if (o->console != OUTPUT_CONSOLE_NONE)
        show_ending(o, final);
    close_growing(o);
    int exit_code = final->exit_code == 0 && o->failures > 0 ? 1 : final->exit_code;
    if (o->folder)
        note(o, results_status(o->folder, final, exit_code, &status), &status);
    int rc = o->first.code;
    if (rc < 0 && o->failures > 1)
        (void)err_set(err, rc, "%s (and %u more)", o->first.text, o->failures - 1);
    else if (rc < 0)
        (void)err_set(err, rc, "%s", o->first.text);
    output_free(o);
    *o_p = NULL;
    return rc;
}

void output_free(struct output *o)
{
    if (!o)
        return;
    if (o->live)
        log_footer((struct str){NULL, 0});
    if (o->logging)
        (void)log_tee_close(); /* left without a report: nobody asks */
    if (o->actors_fd >= 0)
        (void)close(o->actors_fd); /* the same */
    if (o->traces_fd >= 0)
        (void)close(o->traces_fd);
    csv_files_done(&o->csv);
    free(o->json_file);
    free(o->html_file);
    free(o->folder);
    free(o);
}

/* Plays a script of samples through worker/output as a run would, for tests of its files and its
 * console. Arguments are options: csv=PREFIX full html=FILE json json-file=NAME dir=DIR dest=DIR
 * name=NAME tag=TAG now=WALL users=N console=tables|summary|none profile=substrate; or
 * merge=OUT FOLDER….
 * Texts of the script are hexadecimal, "-" when empty. Lines of stdin:
 *
 *   start WALL                    first line
 *   slot METHOD NAME              make the next slot
 *   request SLOT US BYTES WALL
 *   times SLOT SERVICE FIRST_BYTE further times of a request, in microseconds
 *   error SLOT TEXT WALL
 *   exception COUNT MESSAGE TRACEBACK NODE
 *   threshold TEXT MEASURED MET   MEASURED may be "none"
 *   actors WALL CLASS STATE COUNT
 *   interrupted COUNT OLDEST_US
 *   saturated REASONS
 *   facts                         some of a cluster, and of its servers
 *   phase NAME RUN_TIME           for the live view: spawning, running, stopping
 *   sleep MS                      likewise
 *   log TEXT
 *   point WALL USERS RPS P50 P95 P99
 *   tick WALL USERS
 *   close WALL EXIT_CODE          last line
 *
 * Exit status as cicada's: 2 when it could not begin, 1 when a file could not be written. */
#include "base/log.h"
#include "base/num.h"
#include "worker/output/merge.h"
#include "worker/output/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_BYTES  (64u << 20)
#define MAX_FIELDS 8
#define MAX_THINGS 100000

struct script {
    struct str fields[MAX_FIELDS];
    size_t field_count;
    struct output *output;
    struct stats *stats;
    struct history history;
    struct report report;
    struct stats_csv_exception exceptions[100];
    struct str nodes[100];
    struct report_threshold thresholds[100];
    struct report_actors *actors;
    struct cluster_facts facts;
    struct frontiers frontiers;
    json_t *server_flat, *server_document;
    uint64_t requests, failures;
    char kept[1u << 20]; /* texts that last until the end */
    size_t kept_bytes;
};

/* A script of ours is wrong, or there is no memory: both end the test. */
static void must(bool ok, const char *what)
{
    if (ok)
        return;
    (void)fprintf(stderr, "output_script: %s\n", what);
    exit(3);
}

static uint64_t integer(const struct script *s, size_t i)
{
    uint64_t n = 0;
    must(i < s->field_count && num_parse_u64(s->fields[i], UINT64_MAX, &n) == 0, "integer");
    return n;
}

static double number(const struct script *s, size_t i)
{
    double n = 0;
    must(i < s->field_count && num_parse_double(s->fields[i], &n) == 0, "number");
    return n;
}

static struct measure measure(const struct script *s, size_t i)
{
    must(i < s->field_count, "measure");
    return str_eq(s->fields[i], STR("none")) ? MEASURE_UNKNOWN : measure_of(number(s, i));
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static struct str text(struct script *s, size_t i)
{
    must(i < s->field_count, "text");
    struct str hex = s->fields[i], made = {s->kept + s->kept_bytes, 0};
    for (size_t at = 0; at + 1 < hex.len; at += 2) {
        must(s->kept_bytes + 2 < sizeof s->kept, "text");
        s->kept[s->kept_bytes++] = (char)(digit(hex.ptr[at]) << 4 | digit(hex.ptr[at + 1]));
        made.len++;
    }
    s->kept[s->kept_bytes++] = '\0';
    return made;
}

/* --- options -------------------------------------------------------------------------------- */

static struct profile the_profile;

static const char *value_of(char **argv, const char *key)
{
    size_t len = strlen(key);
    for (char **a = argv + 1; *a; a++) {
        if (strncmp(*a, key, len) == 0 && ((*a)[len] == '=' || (*a)[len] == '\0'))
            return (*a)[len] == '=' ? *a + len + 1 : "";
    }
    return NULL;
}

static double number_option(char **argv, const char *key)
{
    double n = 0;
    const char *value = value_of(argv, key);
    must(!value || num_parse_double(str_of(value), &n) == 0, key);
    return n;
}

static int begin(struct script *s, char **argv, struct err *err)
{
    const char *console = value_of(argv, "console"), *profile = value_of(argv, "profile");
    if (profile)
        must(profile_load(profile, &the_profile, NULL) == 0, "profile");
    struct output_options o = {
        .csv_prefix = value_of(argv, "csv"),
        .csv_full_history = value_of(argv, "full"),
        .html_file = value_of(argv, "html"),
        .json = value_of(argv, "json"),
        .json_file = value_of(argv, "json-file"),
        .results_dir = value_of(argv, "dir"),
        .dest = value_of(argv, "dest"),
        .test_name = value_of(argv, "name"),
        .tag = value_of(argv, "tag"),
        .now_s = number_option(argv, "now"),
        .profile = profile ? &the_profile : NULL,
        .console = !console                          ? OUTPUT_CONSOLE_AUTO
                   : strcmp(console, "tables") == 0  ? OUTPUT_CONSOLE_TABLES
                   : strcmp(console, "summary") == 0 ? OUTPUT_CONSOLE_SUMMARY
                                                     : OUTPUT_CONSOLE_NONE,
    };
    if (value_of(argv, "users"))
        o.users = measure_of(number_option(argv, "users"));
    s->report.test_name = o.test_name;
    s->report.tag = o.tag;
    return output_open(&o, &s->output, err);
}

/* --- the script ----------------------------------------------------------------------------- */

static void add_point(struct script *s, const struct history_point *p)
{
    must(s->history.count < MAX_THINGS, "point");
    s->history.points[s->history.count++] = *p;
}

static void sample(struct script *s)
{
    struct stats_sample one = {integer(s, 2), integer(s, 3), number(s, 4)};
    stats_record(s->stats, (uint32_t)integer(s, 1), &one);
    s->requests++;
}

static void further_times(struct script *s)
{
    uint64_t phases[STATS_PHASE_COUNT] = {STATS_NO_TIME, STATS_NO_TIME, STATS_NO_TIME,
                                          integer(s, 3), 100};
    struct stats_times times = {integer(s, 2), phases};
    stats_record_times(s->stats, (uint32_t)integer(s, 1), &times);
}

static void add_facts(struct script *s)
{
    s->facts = (struct cluster_facts){
        .node_count = measure_of(2),
        .allocatable_cores = measure_of(7.84),
        .allocatable_ram_gb = measure_of(25.92),
        .worker_pod_count = measure_of(5),
        .machine_type = strdup("n2-standard-4"),
        .capacity_scope = FACTS_SCOPE_WORKER_NODES,
    };
    s->frontiers.actors_per_node = measure_of(5);
    s->frontiers.actors_per_vcpu = measure_of(2.55);
    s->frontiers.ap_ratio_p50 = measure_of(40);
    s->report.facts = &s->facts;
    s->report.frontiers = &s->frontiers;
    s->report.users_source = USERS_SOURCE_LOCAL;
    s->report.actors_per_user = 1;
    s->server_flat = json_pack("{s:s,s:n,s:s}", "cluster_packing_p50", "0.75",
                               "cluster_packing_p90", "restore_p50_s", "0.0312");
    s->server_document = json_pack("{s:{s:s}}", "metadata", "profile", "substrate");
    s->report.server_flat = s->server_flat;
    s->report.server_document = s->server_document;
}

static void phase(struct script *s)
{
    struct str name = s->fields[1];
    s->report.phase = str_eq(name, STR("spawning"))  ? REPORT_SPAWNING
                      : str_eq(name, STR("running")) ? REPORT_RUNNING
                                                     : REPORT_STOPPING;
    s->report.run_time_s = measure(s, 2);
}

static void play_more(struct script *s)
{
    struct report *r = &s->report;
    struct str verb = s->fields[0];
    if (str_eq(verb, STR("exception"))) {
        must(r->exception_count < 100, "exception");
        size_t i = r->exception_count++;
        struct str message = text(s, 2), traceback = text(s, 3);
        s->nodes[i] = text(s, 4);
        s->exceptions[i] =
            (struct stats_csv_exception){integer(s, 1), message, traceback, &s->nodes[i], 1};
    } else if (str_eq(verb, STR("threshold"))) {
        must(r->threshold_count < 100, "threshold");
        s->thresholds[r->threshold_count++] = (struct report_threshold){
            .text = text(s, 1), .measured = measure(s, 2), .met = integer(s, 3) != 0};
    } else if (str_eq(verb, STR("actors"))) {
        must(r->actors_history_count < MAX_THINGS, "actors");
        struct str user_class = text(s, 2), state = text(s, 3);
        s->actors[r->actors_history_count++] =
            (struct report_actors){number(s, 1), user_class, state, number(s, 4)};
    } else if (str_eq(verb, STR("interrupted"))) {
        r->requests.interrupted = integer(s, 1);
        r->requests.interrupted_oldest_us = integer(s, 2);
    } else if (str_eq(verb, STR("saturated"))) {
        r->generator.saturated = true;
        (void)snprintf(r->generator.reasons, sizeof r->generator.reasons, "%s", text(s, 1).ptr);
    } else if (str_eq(verb, STR("facts"))) {
        add_facts(s);
    } else if (str_eq(verb, STR("phase"))) {
        phase(s);
    } else if (str_eq(verb, STR("sleep"))) {
        struct timespec t = {(time_t)(integer(s, 1) / 1000),
                             (long)(integer(s, 1) % 1000) * 1000000};
        (void)nanosleep(&t, NULL);
    } else if (str_eq(verb, STR("log"))) {
        log_info("%s", text(s, 1).ptr);
    } else {
        must(false, "verb");
    }
}

static int finish(struct script *s, struct err *err)
{
    struct report *r = &s->report;
    r->end_s = r->now_s = number(s, 1);
    r->exit_code = (int)integer(s, 2);
    r->phase = REPORT_DONE;
    r->requests.succeeded = s->requests - s->failures;
    r->requests.failed = s->failures;
    r->requests.started = s->requests + r->requests.interrupted;
    r->generator.cpu_p50 = measure_of(12.5);
    r->generator.cpu_p90 = measure_of(20);
    r->generator.cpu_max = measure_of(31.25);
    r->generator.loop_lag_p99_ms = measure_of(0.125);
    return output_close(&s->output, r, err);
}

static void play(struct script *s)
{
    struct str verb = s->fields[0];
    if (str_eq(verb, STR("start"))) {
        must(stats_new((struct stats_limits){0, 0}, number(s, 1), &s->stats) == 0, "start");
        s->report.start_s = number(s, 1);
        s->report.stats = s->stats;
    } else if (str_eq(verb, STR("slot"))) {
        uint32_t slot;
        struct str method = text(s, 1), name = text(s, 2);
        must(stats_slot(s->stats, method, name, &slot) == 0, "slot");
    } else if (str_eq(verb, STR("request"))) {
        sample(s);
    } else if (str_eq(verb, STR("times"))) {
        further_times(s);
    } else if (str_eq(verb, STR("error"))) {
        stats_record_error(s->stats, (uint32_t)integer(s, 1), text(s, 2), number(s, 3));
        s->failures++;
    } else if (str_eq(verb, STR("point"))) {
        struct history_point p = {
            .wall_s = number(s, 1),
            .user_count = (uint32_t)integer(s, 2),
            .target = 100,
            .requests = s->requests,
            .failures = s->failures,
            .rps = measure(s, 3),
            .fail_per_s = measure_of(1),
            .p50_ms = measure(s, 4),
            .p95_ms = measure(s, 5),
            .p99_ms = measure(s, 6),
        };
        add_point(s, &p);
    } else if (str_eq(verb, STR("tick"))) {
        s->report.now_s = number(s, 1);
        if (s->history.count == 0 || s->history.points[s->history.count - 1].wall_s < number(s, 1))
            add_point(s, &(struct history_point){.wall_s = number(s, 1),
                                                 .user_count = (uint32_t)integer(s, 2)});
        output_tick(s->output, &s->report);
    } else {
        play_more(s);
    }
}

static int read_fields(struct script *s, char *line, size_t len)
{
    struct str rest = str_trim((struct str){line, len}), field;
    s->field_count = 0;
    while (s->field_count < MAX_FIELDS && str_next(&rest, ' ', &field))
        s->fields[s->field_count++] = field;
    return s->fields[0].len > 0;
}

static int told(const struct err *err, int exit_code)
{
    log_error("%s", err->text);
    return exit_code;
}

static int run(struct script *s, char **argv)
{
    struct err err = {0};
    char *line = NULL;
    size_t cap = 0;
    int exit_code = 0;
    if (begin(s, argv, &err) < 0)
        return told(&err, 2);
    for (ssize_t n; s->output && (n = getline(&line, &cap, stdin)) > 0;) {
        if (!read_fields(s, line, (size_t)n))
            continue;
        if (!str_eq(s->fields[0], STR("close")))
            play(s);
        else if (finish(s, &err) < 0)
            exit_code = told(&err, 1);
    }
    free(line);
    output_free(s->output); /* a script without an end */
    return exit_code ? exit_code : s->report.exit_code;
}

static int merge(char **argv)
{
    struct err err = {0};
    const char *folders[100];
    size_t count = 0;
    struct report_requests requests;
    for (char **a = argv + 2; *a && count < 100; a++)
        folders[count++] = *a;
    if (merge_results(folders, count, argv[1] + strlen("merge="), &requests, &err) < 0)
        return told(&err, err.code == -EINVAL ? 2 : 1);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strncmp(argv[1], "merge=", 6) == 0)
        return merge(argv);
    struct script *s = calloc(1, sizeof *s);
    must(s && log_open(LOG_INFO, NULL, NULL) == 0, "memory");
    s->history.points = calloc(MAX_THINGS, sizeof *s->history.points);
    s->actors = calloc(MAX_THINGS, sizeof *s->actors);
    must(s->history.points && s->actors, "memory");
    s->report.history = &s->history;
    s->report.exceptions = s->exceptions;
    s->report.thresholds = s->thresholds;
    s->report.actors_history = s->actors;
    int exit_code = run(s, argv);
    stats_free(s->stats);
    cluster_facts_done(&s->facts);
    json_decref(s->server_flat);
    json_decref(s->server_document);
    profile_done(&the_profile);
    free(s->history.points);
    free(s->actors);
    free(s);
    log_close();
    return exit_code;
}

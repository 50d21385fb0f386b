#include "worker/output/live.h"

#include "worker/output/sorted.h"
#include "worker/output/tables.h"
#include "worker/stats/keyed_errors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define HEAD_LINES   4  /* state, users and rates, percentiles, a blank */
#define BAR_WIDTH    24 /* of the run's progress */
#define SPARK_POINTS 40
#define ERROR_LINES  5
#define ENTRY_LINES  12
#define RATES_WIDTH  62 /* of the table without its names */
#define NAME_MIN     16

#define BOLD  "\033[1m"
#define DIM   "\033[2m"
#define RED   "\033[31m"
#define GREEN "\033[32m"
#define PLAIN "\033[0m"

struct view {
    struct pen *p;
    struct live_screen screen;
    unsigned lines_left;
    bool any; /* a line is above */
};

static void colour(struct view *v, const char *code)
{
    if (v->screen.colour)
        pen_text(v->p, code);
}

/* Begin a line; false when there is no room for one. */
static bool line(struct view *v)
{
    if (v->lines_left == 0)
        return false;
    v->lines_left--;
    pen_text(v->p, v->any ? "\n" : "");
    v->any = true;
    return true;
}

/* --- the head ------------------------------------------------------------------------------- */

static const char *phase_name(enum report_phase phase)
{
    switch (phase) {
    case REPORT_WAITING:
        return "Waiting";
    case REPORT_SPAWNING:
        return "Spawning";
    case REPORT_RUNNING:
        return "Running";
    case REPORT_STOPPING:
        return "Stopping";
    case REPORT_HARVESTING:
        return "Asking the servers";
    case REPORT_DONE:
        return "Done";
    }
    return "";
}

static void clock_text(struct pen *p, double seconds)
{
    uint64_t s = seconds > 0 ? (uint64_t)seconds : 0;
    if (s >= 3600)
        pen_printf(p, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600, s / 60 % 60, s % 60);
    else
        pen_printf(p, "%02" PRIu64 ":%02" PRIu64, s / 60, s % 60);
}

static void state_line(struct view *v, const struct report *r)
{
    double elapsed = r->start_s > 0 && r->now_s > r->start_s ? r->now_s - r->start_s : 0;
    if (!line(v))
        return;
    colour(v, BOLD);
    pen_text(v->p, phase_name(r->phase));
    colour(v, PLAIN);
    pen_text(v->p, "  ");
    clock_text(v->p, elapsed);
    if (!r->run_time_s.known || r->run_time_s.value <= 0)
        return;
    double part = elapsed < r->run_time_s.value ? elapsed / r->run_time_s.value : 1;
    pen_text(v->p, " of ");
    clock_text(v->p, r->run_time_s.value);
    pen_text(v->p, "  ");
    colour(v, GREEN);
    for (unsigned i = 0; i < BAR_WIDTH; i++)
        pen_text(v->p, i < (unsigned)(part * BAR_WIDTH + 0.5) ? "█" : "░");
    colour(v, PLAIN);
    pen_text(v->p, "  ");
    clock_text(v->p, ceil(r->run_time_s.value - elapsed));
    pen_text(v->p, " left");
}

static const struct history_point *last_point(const struct report *r)
{
    return r->history && r->history->count ? &r->history->points[r->history->count - 1] : NULL;
}

static void rates_line(struct view *v, const struct report *r, const struct stats_entry *total)
{
    const struct history_point *at = last_point(r);
    if (!line(v))
        return;
    pen_text(v->p, "Users ");
    pen_count(v->p, at ? at->user_count : 0);
    if (at && at->target) {
        pen_text(v->p, " of ");
        pen_count(v->p, at->target);
    }
    pen_text(v->p, "   Requests ");
    pen_count(v->p, total->num_requests);
    if (at && at->rps.known) {
        pen_text(v->p, "  ");
        pen_fixed(v->p, at->rps.value, 1);
        pen_text(v->p, "/s");
    }
    pen_text(v->p, "   ");
    if (total->num_failures > 0)
        colour(v, RED);
    pen_text(v->p, "Failures ");
    pen_count(v->p, total->num_failures);
    pen_text(v->p, "  ");
    pen_fixed(v->p, stats_entry_fail_ratio(total) * 100, 2);
    pen_text(v->p, " %");
    colour(v, PLAIN);
}

static void measure(struct view *v, const char *name, struct measure m, const char *unit)
{
    pen_text(v->p, name);
    if (m.known) {
        pen_fixed(v->p, m.value, m.value < 10 ? 2 : m.value < 100 ? 1 : 0);
        pen_text(v->p, unit);
    } else {
        pen_text(v->p, "–");
    }
}

/* The rate of the last seconds as little bars. */
static void spark(struct view *v, const struct history *h)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    size_t first = h->count > SPARK_POINTS ? h->count - SPARK_POINTS : 0;
    double most = 0;
    for (size_t i = first; i < h->count; i++)
        most =
            h->points[i].rps.known && h->points[i].rps.value > most ? h->points[i].rps.value : most;
    for (size_t i = first; i < h->count && most > 0; i++) {
        double part = h->points[i].rps.known ? h->points[i].rps.value / most : 0;
        pen_text(v->p, bars[(size_t)(part * 7.49)]);
    }
}

static void times_line(struct view *v, const struct report *r)
{
    const struct history_point *at = last_point(r);
    if (!at || !line(v))
        return;
    measure(v, "Last second  p50 ", at->p50_ms, " ms");
    measure(v, "  p95 ", at->p95_ms, " ms");
    measure(v, "  p99 ", at->p99_ms, " ms");
    measure(v, "   CPU ", measure_of(at->cpu_pct), " %   ");
    colour(v, GREEN);
    spark(v, r->history);
    colour(v, PLAIN);
}

/* --- entries and errors --------------------------------------------------------------------- */

static int by_requests(const void *a, const void *b)
{
    const struct stats_entry *const *x = a, *const *y = b;
    return ((*x)->num_requests < (*y)->num_requests) - ((*x)->num_requests > (*y)->num_requests);
}

/* The beginning of a text, as many characters wide as asked for. */
static void cut_or_padded(struct pen *p, struct str s, size_t width)
{
    struct buf b;
    buf_init(&b, s.len * 4 + width + 1);
    struct pen whole = {&b, 0};
    (void)pen_shown(&whole, s, width);
    struct str shown = buf_str(&b);
    size_t bytes = 0;
    for (size_t i = 0; i < width && bytes < shown.len; i++) {
        do
            bytes++;
        while (bytes < shown.len && ((unsigned char)shown.ptr[bytes] & 0xC0) == 0x80);
    }
    if (whole.rc < 0 && p->rc == 0)
        p->rc = whole.rc;
    pen_str(p, str_sub(shown, 0, bytes));
    buf_done(&b);
}

static void quantile(struct pen *p, const struct histogram *h, double q)
{
    uint64_t us;
    char text[32];
    double ms = histogram_percentile(h, q, &us) ? (double)us / 1000 : -1;
    if (ms < 0)
        pen_text(p, "       –");
    else {
        (void)snprintf(text, sizeof text, "%.*f", ms < 100 ? 1 : 0, ms); /* fits */
        pen_printf(p, "%8s", text);
    }
}

static void entry_line(struct view *v, const struct stats_entry *e, const struct stats_entry *total,
                       size_t name_width)
{
    if (!line(v))
        return;
    cut_or_padded(v->p, e->method, 7);
    pen_text(v->p, " ");
    cut_or_padded(v->p, e->name, name_width);
    pen_printf(v->p, " %10" PRIu64 " ", e->num_requests);
    if (e->num_failures > 0)
        colour(v, RED);
    pen_printf(v->p, "%8" PRIu64, e->num_failures);
    colour(v, PLAIN);
    quantile(v->p, &e->response_times, 0.5);
    quantile(v->p, &e->response_times, 0.95);
    quantile(v->p, &e->response_times, 0.99);
    char text[32];
    (void)snprintf(text, sizeof text, "%.1f", stats_entry_current_rps(e, total)); /* fits */
    pen_printf(v->p, "%9s", text);
}

static void entry_lines(struct view *v, const struct sorted *sorted, unsigned most)
{
    size_t name_width =
        v->screen.columns > RATES_WIDTH + NAME_MIN ? v->screen.columns - RATES_WIDTH : NAME_MIN;
    if (sorted->count == 0 || most == 0 || !line(v))
        return;
    colour(v, DIM);
    pen_text(v->p, "Type    ");
    cut_or_padded(v->p, STR("Name"), name_width);
    pen_printf(v->p, " %10s %8s%8s%8s%8s%9s", "# reqs", "# fails", "p50", "p95", "p99", "req/s");
    colour(v, PLAIN);
    qsort(sorted->entries, sorted->count, sizeof *sorted->entries, by_requests);
    size_t shown = sorted->count <= most ? sorted->count : most;
    for (size_t i = 0; i < shown; i++)
        entry_line(v, sorted->entries[i], sorted->total, name_width);
    if (shown < sorted->count && line(v))
        pen_printf(v->p, "… and %zu more", sorted->count - shown);
}

static int by_occurrences(const void *a, const void *b)
{
    const struct keyed_error *x = a, *y = b;
    return (x->shown.occurrences < y->shown.occurrences) -
           (x->shown.occurrences > y->shown.occurrences);
}

static void error_lines(struct view *v, const struct stats *s, unsigned most)
{
    struct keyed_error *errors;
    size_t count;
    if (stats_error_count(s) == 0 || most == 0)
        return;
    if (keyed_errors_new(s, &errors, &count) < 0) {
        v->p->rc = v->p->rc == 0 ? -ENOMEM : v->p->rc;
        return;
    }
    qsort(errors, count, sizeof *errors, by_occurrences);
    for (size_t i = 0; i < count && i < most && line(v); i++) {
        colour(v, RED);
        pen_printf(v->p, "%8" PRIu64 " ", errors[i].shown.occurrences);
        colour(v, PLAIN);
        tables_error_name(v->p, &errors[i].shown, 0);
    }
    free(errors);
}

void live_text(struct pen *p, const struct report *now, struct live_screen screen)
{
    struct sorted sorted;
    struct view v = {.p = p, .screen = screen};
    v.lines_left = screen.rows > 1 ? screen.rows - 1 : 0;
    unsigned spare = v.lines_left > HEAD_LINES + 2 ? v.lines_left - HEAD_LINES - 2 : 0;
    unsigned errors =
        stats_error_count(now->stats) < ERROR_LINES ? stats_error_count(now->stats) : ERROR_LINES;
    errors = errors < spare / 2 ? errors : spare / 2;
    unsigned entries = spare - errors < ENTRY_LINES ? spare - errors : ENTRY_LINES;
    int rc = sorted_make(now->stats, &sorted);
    if (rc == 0) {
        (void)line(&v); /* a blank one parts it from the log */
        state_line(&v, now);
        rates_line(&v, now, sorted.total);
        times_line(&v, now);
        entry_lines(&v, &sorted, entries);
        error_lines(&v, now->stats, errors);
    } else if (p->rc == 0) {
        p->rc = rc;
    }
    sorted_done(&sorted);
}

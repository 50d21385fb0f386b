#include "worker/output/tables.h"

#include "base/num.h"
#include "worker/output/sorted.h"
#include "worker/stats/keyed_errors.h"
#include "worker/stats/percentile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TYPE_WIDTH 8 /* STATS_TYPE_WIDTH */

unsigned tables_name_width(unsigned columns)
{
    if (columns == 0)
        return TABLES_NAME_WIDTH;
    unsigned left = columns > 80 ? columns - 80 : 0;
    return left < TABLES_NAME_WIDTH ? left : TABLES_NAME_WIDTH;
}

/* Of the name in the requests' table: four less than in the others. Below four, which is on
 * terminals of 80 columns, Locust's "%--4s" pads all the same. */
static size_t wide_name(unsigned name_width)
{
    return name_width >= 4 ? name_width - 4 : 4 - name_width;
}

static size_t wide_rule(unsigned name_width)
{
    return name_width >= 4 ? name_width - 4 : 0;
}

static void dashes(struct pen *p, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pen_text(p, "-");
}

/* A rule with a bar behind each column but the last. */
static void rule(struct pen *p, const size_t *widths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        dashes(p, widths[i]);
        pen_text(p, i + 1 < count ? "|" : "\n");
    }
}

/* %*s of a text that is no wider than it may be or stands out */
static void right(struct pen *p, int width, const char *text)
{
    pen_printf(p, "%*s", width, text);
}

static void right_fixed(struct pen *p, int width, double value, int decimals)
{
    char text[NUM_FIXED_BYTES];
    num_format_fixed(value, decimals, text);
    right(p, width, text);
}

/* --- requests ------------------------------------------------------------------------------- */

static void requests_rule(struct pen *p, unsigned name_width)
{
    const size_t widths[] = {TYPE_WIDTH, wide_rule(name_width), 7, 13, 7, 7, 7, 7, 8, 11};
    rule(p, widths, sizeof widths / sizeof *widths);
}

/* int(): Python's %d cuts off what is behind the point */
static uint64_t whole(double ms)
{
    return ms > 0 ? (uint64_t)ms : 0;
}

static void requests_row(struct pen *p, const struct stats_entry *e,
                         const struct stats_entry *total, unsigned name_width, bool current)
{
    bool timed = e->min_response_time_us != UINT64_MAX;
    char failures[NUM_FIXED_BYTES + NUM_TEXT_BYTES], ratio[NUM_FIXED_BYTES];
    num_format_fixed(stats_entry_fail_ratio(e) * 100, 2, ratio);
    (void)snprintf(failures, sizeof failures, "%" PRIu64 "(%s%%)", e->num_failures,
                   ratio); /* fits */
    size_t used = pen_shown(p, e->method, 0);
    pen_blanks(p, used < TYPE_WIDTH ? TYPE_WIDTH + 1 - used : 2);
    (void)pen_shown(p, e->name, wide_name(name_width));
    pen_printf(p, " %7" PRIu64 " ", e->num_requests);
    right(p, 12, failures);
    pen_printf(p, " |%7" PRIu64 " %7" PRIu64 " %7" PRIu64 "%7" PRIu64 " | ",
               whole(stats_entry_average_ms(e)), timed ? e->min_response_time_us / 1000 : 0,
               e->max_response_time_us / 1000, whole(stats_entry_median_ms(e)));
    right_fixed(p, 7, current ? stats_entry_current_rps(e, total) : stats_entry_total_rps(e, total),
                2);
    pen_text(p, " ");
    right_fixed(p, 11,
                current ? stats_entry_current_fail_per_sec(e, total)
                        : stats_entry_total_fail_per_sec(e, total),
                2);
    pen_text(p, "\n");
}

void tables_requests(struct pen *p, const struct stats *s, unsigned name_width, bool current)
{
    struct sorted sorted;
    int rc = sorted_make(s, &sorted);
    if (rc == 0) {
        (void)pen_shown(p, STR("Type"), TYPE_WIDTH + 1);
        (void)pen_shown(p, STR("Name"), wide_name(name_width));
        pen_printf(p, " %7s %12s |%7s %7s %7s%7s | %7s %11s\n", "# reqs", "# fails", "Avg", "Min",
                   "Max", "Med", "req/s", "failures/s");
        requests_rule(p, name_width);
        for (size_t i = 0; i < sorted.count; i++)
            requests_row(p, sorted.entries[i], sorted.total, name_width, current);
        requests_rule(p, name_width);
        requests_row(p, sorted.total, sorted.total, name_width, current);
        pen_text(p, "\n");
    } else if (p->rc == 0) {
        p->rc = rc;
    }
    sorted_done(&sorted);
}

/* --- percentiles ---------------------------------------------------------------------------- */

static void percentiles_rule(struct pen *p, unsigned name_width)
{
    size_t widths[3 + STATS_PERCENTILE_COUNT] = {TYPE_WIDTH, name_width, 8};
    for (size_t i = 3; i < sizeof widths / sizeof *widths; i++)
        widths[i] = 6;
    rule(p, widths, sizeof widths / sizeof *widths);
}

static void percentiles_row(struct pen *p, const struct stats_entry *e, unsigned name_width)
{
    (void)pen_shown(p, e->method, TYPE_WIDTH);
    pen_text(p, " ");
    (void)pen_shown(p, e->name, name_width);
    pen_text(p, " ");
    for (unsigned i = 0; i < STATS_PERCENTILE_COUNT; i++)
        pen_printf(p, i ? "%6" PRIu64 " " : "%8" PRIu64 " ",
                   stats_entry_percentile_ms(e, stats_percentiles[i]));
    pen_printf(p, "%6" PRIu64 "\n", e->num_requests);
}

static bool has_times(const struct stats_entry *e)
{
    return e->num_requests > e->num_none_requests;
}

void tables_percentiles(struct pen *p, const struct stats *s, unsigned name_width)
{
    struct sorted sorted;
    int rc = sorted_make(s, &sorted);
    if (rc == 0) {
        pen_text(p, "Response time percentiles (approximated)\n");
        (void)pen_shown(p, STR("Type"), TYPE_WIDTH + 1);
        (void)pen_shown(p, STR("Name"), name_width);
        for (unsigned i = 0; i < STATS_PERCENTILE_COUNT; i++)
            pen_printf(p, i ? " %6s" : " %8s", stats_percentile_names[i]);
        pen_printf(p, " %6s\n", "# reqs");
        percentiles_rule(p, name_width);
        for (size_t i = 0; i < sorted.count; i++) {
            if (has_times(sorted.entries[i]))
                percentiles_row(p, sorted.entries[i], name_width);
        }
        percentiles_rule(p, name_width);
        if (has_times(sorted.total))
            percentiles_row(p, sorted.total, name_width);
        pen_text(p, "\n");
    } else if (p->rc == 0) {
        p->rc = rc;
    }
    sorted_done(&sorted);
}

/* --- errors --------------------------------------------------------------------------------- */

void tables_error_name(struct pen *p, const struct stats_error *e, size_t width)
{
    static const char wrapper[] = "CatchResponseError(";
    struct str text = e->error, name;
    if (str_starts(text, str_of(wrapper)))
        text = str_sub(text, strlen(wrapper), text.len - 1);
    struct buf b;
    buf_init(&b, p->b->max);
    struct pen whole_name = {&b, 0};
    pen_str(&whole_name, e->method);
    pen_text(&whole_name, " ");
    pen_str(&whole_name, e->name);
    pen_text(&whole_name, ": ");
    pen_str(&whole_name, text);
    name = buf_str(&b);
    if (whole_name.rc == 0)
        (void)pen_shown(p, name, width);
    else if (p->rc == 0)
        p->rc = whole_name.rc;
    buf_done(&b);
}

void tables_errors(struct pen *p, const struct stats *s, unsigned name_width)
{
    struct keyed_error *errors;
    size_t count;
    int rc = keyed_errors_new(s, &errors, &count);
    if (rc < 0) {
        p->rc = p->rc == 0 ? rc : p->rc;
        return;
    }
    const size_t widths[] = {18, 80 + (size_t)name_width - 19};
    if (count > 0) {
        pen_text(p, "Error report\n");
        pen_printf(p, "%-18s %-100s\n", "# occurrences", "Error");
        rule(p, widths, 2);
    }
    for (size_t i = 0; i < count; i++) {
        pen_printf(p, "%-18" PRIu64 " ", errors[i].shown.occurrences);
        tables_error_name(p, &errors[i].shown, 100);
        pen_text(p, "\n");
    }
    if (count > 0) {
        rule(p, widths, 2);
        pen_text(p, "\n");
    }
    free(errors);
}

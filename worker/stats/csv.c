#include "worker/stats/csv.h"

#include "base/num.h"
#include "worker/stats/keyed_errors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Python prints integers and floats differently (5, 5.0), so each value is written as the type that
 * Locust has at that place: counts and buckets are integers, times in ms are floats, and what was
 * never measured is the integer 0. */

enum column {
    TYPE,
    NAME,
    REQUEST_COUNT,
    FAILURE_COUNT,
    MEDIAN,
    AVERAGE,
    MIN,
    MAX,
    CONTENT_SIZE,
    REQUESTS_PER_S,
    FAILURES_PER_S,
    FIRST_PERCENTILE,
};

static const char *const column_names[FIRST_PERCENTILE] = {
    "Type",
    "Name",
    "Request Count",
    "Failure Count",
    "Median Response Time",
    "Average Response Time",
    "Min Response Time",
    "Max Response Time",
    "Average Content Size",
    "Requests/s",
    "Failures/s",
};

/* Take back what a function wrote before it failed. */
static int undo(struct buf *b, size_t before, int rc)
{
    if (rc < 0 && b->ptr) {
        b->len = before;
        b->ptr[before] = '\0';
    }
    return rc;
}

/* --- text ----------------------------------------------------------------------------------- */

static bool needs_quotes(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == ',' || s.ptr[i] == '"' || s.ptr[i] == '\r' || s.ptr[i] == '\n')
            return true;
    }
    return false;
}

static int add_field(struct buf *b, struct str s)
{
    if (!needs_quotes(s))
        return buf_add(b, s);
    int rc = buf_add_byte(b, '"');
    while (rc == 0 && s.len > 0) {
        size_t upto = str_find(s, '"');
        rc = buf_add(b, str_sub(s, 0, upto));
        if (rc == 0 && upto < s.len)
            rc = buf_add(b, STR("\"\""));
        s = str_sub(s, upto + 1, s.len);
    }
    return rc == 0 ? buf_add_byte(b, '"') : rc;
}

static int add_comma_field(struct buf *b, struct str s)
{
    int rc = buf_add_byte(b, ',');
    return rc == 0 ? add_field(b, s) : rc;
}

static int end_line(struct buf *b, size_t before, int rc)
{
    if (rc == 0)
        rc = buf_add(b, STR("\r\n"));
    return undo(b, before, rc);
}

int stats_csv_line(struct buf *b, const struct str *fields, size_t count)
{
    size_t before = b->len;
    /* an empty line would be no field at all */
    int rc = count == 1 && fields[0].len == 0 ? buf_add(b, STR("\"\"")) : 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = i ? add_comma_field(b, fields[i]) : add_field(b, fields[i]);
    return end_line(b, before, rc);
}

static int add_header(struct buf *b, const char *const *names, size_t count)
{
    struct str fields[16];
    if (count > sizeof fields / sizeof *fields)
        return -ERANGE;
    for (size_t i = 0; i < count; i++)
        fields[i] = str_of(names[i]);
    return stats_csv_line(b, fields, count);
}

/* --- numbers -------------------------------------------------------------------------------- */

static int add_count(struct buf *b, uint64_t n)
{
    return buf_printf(b, "%" PRIu64, n);
}

static int add_float(struct buf *b, double value)
{
    char text[NUM_TEXT_BYTES];
    num_format_repr(value, text);
    return buf_add(b, str_of(text));
}

/* A minimum or maximum: Locust's 0 is an integer, also where it was measured */
static int add_extreme(struct buf *b, const struct stats_entry *e, uint64_t us)
{
    if (e->min_response_time_us == UINT64_MAX || us == 0)
        return add_count(b, 0);
    return add_float(b, (double)us / 1000.0);
}

/* A bucket's key is an integer; a minimum or maximum that stands in for it is a float. */
static int add_median(struct buf *b, const struct stats_entry *e)
{
    double median = stats_entry_median_ms(e);
    uint64_t bucket = stats_entry_percentile_ms(e, 0.5);
    return median == (double)bucket ? add_count(b, bucket) : add_float(b, median);
}

static int add_content_size(struct buf *b, const struct stats_entry *e)
{
    return e->num_requests ? add_float(b, stats_entry_average_content_bytes(e)) : add_count(b, 0);
}

static int add_percentile(struct buf *b, unsigned i, const struct stats_entry *e,
                          const struct stats_entry *window)
{
    if (e->num_requests == 0)
        return buf_add(b, STR("N/A"));
    return add_count(b, stats_entry_percentile_ms(window ? window : e, stats_percentiles[i]));
}

/* --- requests ------------------------------------------------------------------------------- */

const char *stats_csv_column(unsigned column)
{
    return column < FIRST_PERCENTILE ? column_names[column]
                                     : stats_percentile_names[column - FIRST_PERCENTILE];
}

int stats_csv_value(struct buf *b, unsigned column, const struct stats_entry *e,
                    const struct stats_entry *total)
{
    switch (column) {
    case TYPE:
        return buf_add(b, e->method);
    case NAME:
        return buf_add(b, e->name);
    case REQUEST_COUNT:
        return add_count(b, e->num_requests);
    case FAILURE_COUNT:
        return add_count(b, e->num_failures);
    case MEDIAN:
        return add_median(b, e);
    case AVERAGE:
        return add_float(b, stats_entry_average_ms(e));
    case MIN:
        return add_extreme(b, e, e->min_response_time_us);
    case MAX:
        return add_extreme(b, e, e->max_response_time_us);
    case CONTENT_SIZE:
        return add_content_size(b, e);
    case REQUESTS_PER_S:
        return add_float(b, stats_entry_total_rps(e, total));
    case FAILURES_PER_S:
        return add_float(b, stats_entry_total_fail_per_sec(e, total));
    default:
        return add_percentile(b, column - FIRST_PERCENTILE, e, NULL);
    }
}

int stats_csv_requests_header(struct buf *b)
{
    size_t before = b->len;
    int rc = 0;
    for (unsigned c = 0; rc == 0 && c < STATS_CSV_COLUMN_COUNT; c++)
        rc = buf_printf(b, "%s%s", c ? "," : "", stats_csv_column(c));
    return end_line(b, before, rc);
}

/* The values of so many columns, each after a comma; no number needs quotes. */
static int add_values(struct buf *b, unsigned first, unsigned end, const struct stats_entry *e,
                      const struct stats_entry *total)
{
    int rc = 0;
    for (unsigned c = first; rc == 0 && c < end; c++) {
        rc = buf_add_byte(b, ',');
        if (rc == 0)
            rc = stats_csv_value(b, c, e, total);
    }
    return rc;
}

int stats_csv_requests_row(struct buf *b, const struct stats_entry *e,
                           const struct stats_entry *total)
{
    size_t before = b->len;
    int rc = add_field(b, e->method);
    if (rc == 0)
        rc = add_comma_field(b, e->name);
    if (rc == 0)
        rc = add_values(b, REQUEST_COUNT, STATS_CSV_COLUMN_COUNT, e, total);
    return end_line(b, before, rc);
}

static int by_name(const void *a, const void *b)
{
    const struct stats_entry *const *x = a, *const *y = b;
    int order = str_cmp((*x)->name, (*y)->name);
    return order ? order : str_cmp((*x)->method, (*y)->method);
}

int stats_csv_requests_rows(struct buf *b, const struct stats *s)
{
    size_t before = b->len, count = 0;
    struct stats_entry *total = NULL;
    const struct stats_entry **sorted = calloc((size_t)stats_entry_count(s) + 1, sizeof *sorted);
    int rc = sorted ? stats_total(s, &total) : -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < stats_entry_count(s); i++) {
        if (stats_entry_used(stats_entry_at(s, i)))
            sorted[count++] = stats_entry_at(s, i);
    }
    if (count > 0)
        qsort(sorted, count, sizeof *sorted, by_name);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = stats_csv_requests_row(b, sorted[i], total);
    if (rc == 0)
        rc = stats_csv_requests_row(b, total, total);
    stats_entry_free(total);
    free(sorted);
    return undo(b, before, rc);
}

/* --- failures ------------------------------------------------------------------------------- */

int stats_csv_failures_header(struct buf *b)
{
    static const char *const names[] = {"Method",      "Name",       "Error",
                                        "Occurrences", "First Seen", "Last Seen"};
    return add_header(b, names, sizeof names / sizeof *names);
}

/* locust/util/date.py format_utc_timestamp, after a comma */
static int add_comma_time(struct buf *b, double wall_s)
{
    time_t seconds = (time_t)wall_s;
    struct tm t;
    if (!gmtime_r(&seconds, &t))
        return -ERANGE;
    return buf_printf(b, ",%04d-%02d-%02dT%02d:%02d:%02dZ", t.tm_year + 1900, t.tm_mon + 1,
                      t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec);
}

static int add_failure(struct buf *b, const struct stats_error *e)
{
    size_t before = b->len;
    int rc = add_field(b, e->method);
    if (rc == 0)
        rc = add_comma_field(b, e->name);
    if (rc == 0)
        rc = add_comma_field(b, e->error);
    if (rc == 0)
        rc = buf_printf(b, ",%" PRIu64, e->occurrences);
    if (rc == 0)
        rc = add_comma_time(b, e->first_seen_s);
    if (rc == 0)
        rc = add_comma_time(b, e->last_seen_s);
    return end_line(b, before, rc);
}

int stats_csv_failures_rows(struct buf *b, const struct stats *s)
{
    struct keyed_error *errors;
    size_t before = b->len, count;
    int rc = keyed_errors_new(s, &errors, &count);
    if (rc < 0)
        return rc;
    keyed_errors_sort(errors, count);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = add_failure(b, &errors[i].shown);
    free(errors);
    return undo(b, before, rc);
}

/* --- exceptions ----------------------------------------------------------------------------- */

int stats_csv_exceptions_header(struct buf *b)
{
    static const char *const names[] = {"Count", "Message", "Traceback", "Nodes"};
    return add_header(b, names, sizeof names / sizeof *names);
}

int stats_csv_exceptions_row(struct buf *b, const struct stats_csv_exception *e)
{
    struct buf nodes;
    buf_init(&nodes, b->max);
    size_t before = b->len;
    int rc = add_count(b, e->count);
    for (size_t i = 0; rc == 0 && i < e->node_count; i++) {
        rc = i ? buf_add(&nodes, STR(", ")) : 0;
        if (rc == 0)
            rc = buf_add(&nodes, e->nodes[i]);
    }
    if (rc == 0)
        rc = add_comma_field(b, e->message);
    if (rc == 0)
        rc = add_comma_field(b, e->traceback);
    if (rc == 0)
        rc = add_comma_field(b, buf_str(&nodes));
    buf_done(&nodes);
    return end_line(b, before, rc);
}

/* --- history -------------------------------------------------------------------------------- */

int stats_csv_history_header(struct buf *b)
{
    size_t before = b->len;
    int rc = buf_add(b, STR("Timestamp,User Count,Type,Name,Requests/s,Failures/s"));
    for (unsigned i = 0; rc == 0 && i < STATS_PERCENTILE_COUNT; i++)
        rc = buf_printf(b, ",%s", stats_percentile_names[i]);
    for (unsigned c = REQUEST_COUNT; rc == 0 && c <= CONTENT_SIZE; c++)
        rc = buf_printf(b, ",Total %s", stats_csv_column(c));
    return end_line(b, before, rc);
}

/* f"{value:2f}", free of the locale. The value is a count over 1 to 10 seconds: no tie lies between
 * two millionths, so rounding the product is rounding the value. */
static int add_comma_rate(struct buf *b, double value)
{
    uint64_t millionths = (uint64_t)num_round(value * 1e6, 0);
    return buf_printf(b, ",%" PRIu64 ".%06" PRIu64, millionths / 1000000, millionths % 1000000);
}

int stats_csv_history_row(struct buf *b, struct stats_csv_moment now, const struct stats_entry *e,
                          const struct stats_entry *total, const struct stats_entry *window)
{
    size_t before = b->len;
    int rc = buf_printf(b, "%" PRIu64 ",%" PRIu64, now.second, now.user_count);
    if (rc == 0)
        rc = add_comma_field(b, e->method);
    if (rc == 0)
        rc = add_comma_field(b, e->name);
    if (rc == 0)
        rc = add_comma_rate(b, stats_entry_current_rps(e, total));
    if (rc == 0)
        rc = add_comma_rate(b, stats_entry_current_fail_per_sec(e, total));
    for (unsigned i = 0; rc == 0 && i < STATS_PERCENTILE_COUNT; i++) {
        rc = buf_add_byte(b, ',');
        if (rc == 0)
            rc = add_percentile(b, i, e, window);
    }
    if (rc == 0)
        rc = add_values(b, REQUEST_COUNT, CONTENT_SIZE + 1, e, total);
    return end_line(b, before, rc);
}

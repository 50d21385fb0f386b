/* A line at a time, each split by a small cursor. A page with one bad line is refused whole, as
 * Prometheus does it: half a page would be a wrong count. */
#include "facts/actors.h"

#include "base/num.h"
#include "base/utf8.h"
#include "facts/frontiers.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#define FIRST_ROWS    16
#define FIRST_SAMPLES 256

/* --- one line -----------------------------------------------------------------------------------
 */

static void skip_blanks(struct str *s)
{
    while (s->len > 0 && (s->ptr[0] == ' ' || s->ptr[0] == '\t'))
        *s = str_sub(*s, 1, s->len);
}

static bool take_char(struct str *s, char c)
{
    if (s->len == 0 || s->ptr[0] != c)
        return false;
    *s = str_sub(*s, 1, s->len);
    return true;
}

/* A metric name (with colons) or a label name. */
static bool take_name(struct str *s, bool colons, struct str *ret)
{
    size_t n = 0;
    while (n < s->len) {
        char c = s->ptr[n];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        bool digit = c >= '0' && c <= '9' && n > 0;
        if (!letter && !digit && !(colons && c == ':'))
            break;
        n++;
    }
    *ret = str_sub(*s, 0, n);
    *s = str_sub(*s, n, s->len);
    return n > 0;
}

/* "value" with \\, \" and \n. ret NULL: only passed over. Too long a value to keep fails. */
static bool take_value(struct str *s, char *ret)
{
    size_t n = 0;
    if (!take_char(s, '"'))
        return false;
    while (s->len > 0 && s->ptr[0] != '"') {
        char c = s->ptr[0];
        *s = str_sub(*s, 1, s->len);
        if (c == '\\') {
            if (s->len == 0 || !strchr("\\\"n", s->ptr[0]) || s->ptr[0] == '\0')
                return false;
            c = s->ptr[0] == 'n' ? '\n' : s->ptr[0];
            *s = str_sub(*s, 1, s->len);
        }
        if (!ret)
            continue;
        if (n + 1 == ACTORS_LABEL_BYTES || c == '\0')
            return false;
        ret[n++] = c;
    }
    if (ret)
        ret[n] = '\0';
    return take_char(s, '"') && (!ret || utf8_valid((struct str){ret, n}));
}

/* {name="value",…} with an optional comma at its end; user_class and state are kept in row. */
static bool take_labels(struct str *s, struct actors_row *row)
{
    skip_blanks(s);
    if (!take_char(s, '{'))
        return true;
    for (;;) {
        struct str name;
        skip_blanks(s);
        if (take_char(s, '}'))
            return true;
        if (!take_name(s, false, &name))
            return false;
        skip_blanks(s);
        if (!take_char(s, '='))
            return false;
        skip_blanks(s);
        char *keep = !row                              ? NULL
                     : str_eq(name, STR("user_class")) ? row->user_class
                     : str_eq(name, STR("state"))      ? row->state
                                                       : NULL;
        if (!take_value(s, keep))
            return false;
        skip_blanks(s);
        if (!take_char(s, ',') && !(s->len > 0 && s->ptr[0] == '}'))
            return false;
    }
}

static struct str take_word(struct str *s)
{
    size_t n = 0;
    skip_blanks(s);
    while (n < s->len && s->ptr[n] != ' ' && s->ptr[n] != '\t')
        n++;
    struct str word = str_sub(*s, 0, n);
    *s = str_sub(*s, n, s->len);
    return word;
}

static bool read_number(struct str word, double *ret)
{
    struct str bare = word;
    bool negative = take_char(&bare, '-');
    if (!negative)
        (void)take_char(&bare, '+'); /* optional */
    if (str_eq_nocase(bare, STR("nan"))) {
        *ret = (double)NAN;
        return true;
    }
    if (str_eq_nocase(bare, STR("inf")) || str_eq_nocase(bare, STR("infinity"))) {
        *ret = negative ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    return num_parse_double(word, ret) == 0;
}

/* One line that is no comment. *ret_is_actors tells whether row was filled. */
static bool read_line(struct str line, struct actors_row *row, bool *ret_is_actors)
{
    struct str name;
    int64_t when_ms;
    if (!take_name(&line, true, &name))
        return false;
    *ret_is_actors = str_eq(name, STR(ACTORS_METRIC));
    if (!take_labels(&line, *ret_is_actors ? row : NULL) ||
        !read_number(take_word(&line), &row->count))
        return false;
    struct str timestamp = take_word(&line);
    if (timestamp.len > 0 && num_parse_i64(timestamp, INT64_MIN, INT64_MAX, &when_ms) < 0)
        return false;
    skip_blanks(&line);
    return line.len == 0;
}

/* --- a page -------------------------------------------------------------------------------------
 */

static int add_row(struct actors_scrape *s, const struct actors_row *row)
{
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->rows[i].user_class, row->user_class) == 0 &&
            strcmp(s->rows[i].state, row->state) == 0) {
            s->rows[i].count += row->count;
            return 0;
        }
    }
    if (s->count == ACTORS_ROWS_MAX)
        return -ERANGE;
    if (s->count == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : FIRST_ROWS;
        struct actors_row *grown = realloc(s->rows, cap * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        s->rows = grown;
        s->cap = cap;
    }
    s->rows[s->count++] = *row;
    return 0;
}

static int add_line(struct str line, unsigned long number, struct actors_scrape *ret,
                    struct err *err)
{
    struct actors_row row = {0};
    bool is_actors;
    if (!read_line(line, &row, &is_actors))
        return err_set(err, -EPROTO, "line %lu is not in the Prometheus text format", number);
    if (!is_actors)
        return 0;
    if (!isfinite(row.count) || row.count < 0)
        return err_set(err, -EPROTO, "line %lu: %s is no count", number, ACTORS_METRIC);
    int rc = add_row(ret, &row);
    return rc < 0 ? err_set(err, rc, rc == -ERANGE ? "more than %d series" : "out of memory",
                            ACTORS_ROWS_MAX)
                  : 0;
}

int actors_parse(struct str page, struct actors_scrape *ret, struct err *err)
{
    struct str rest = page, line;
    int rc = 0;
    ret->count = 0;
    for (unsigned long number = 1; rc == 0 && page.len > 0 && str_next(&rest, '\n', &line);
         number++) {
        skip_blanks(&line);
        if (line.len > 0 && line.ptr[line.len - 1] == '\r')
            line.len--;
        if (line.len == 0 || line.ptr[0] == '#')
            continue;
        rc = add_line(line, number, ret, err);
    }
    if (rc == 0 && ret->count == 0)
        rc = err_set(err, -ENOENT, "no %s on the page", ACTORS_METRIC);
    if (rc < 0)
        ret->count = 0;
    return rc;
}

void actors_scrape_done(struct actors_scrape *s)
{
    free(s->rows);
    *s = (struct actors_scrape){0};
}

/* --- a run --------------------------------------------------------------------------------------
 */

int actors_series_add(struct actors_series *s, const struct actors_scrape *scrape)
{
    struct actors_sample sum = {0};
    for (size_t i = 0; i < scrape->count; i++) {
        const struct actors_row *row = &scrape->rows[i];
        sum.live += row->count;
        if (strcmp(row->state, "running") == 0)
            sum.running += row->count;
        else if (strcmp(row->state, "hibernate_pending") == 0)
            sum.hibernate_pending += row->count;
        else if (strcmp(row->state, "crashed") == 0)
            sum.crashed += row->count;
    }
    if (s->count == ACTORS_SAMPLES_MAX)
        return -ERANGE;
    if (s->count == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : FIRST_SAMPLES;
        struct actors_sample *grown = realloc(s->samples, cap * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        s->samples = grown;
        s->cap = cap;
    }
    s->samples[s->count++] = sum;
    return 0;
}

void actors_series_done(struct actors_series *s)
{
    free(s->samples);
    *s = (struct actors_series){0};
}

int actors_summarize(const struct actors_series *s, struct actors_summary *ret)
{
    struct actors_summary a = {0};
    double *running = calloc(s->count + 1, sizeof *running), live = 0, pending = 0;
    if (!running)
        return -ENOMEM;
    for (size_t i = 0; i < s->count; i++) {
        running[i] = s->samples[i].running;
        live = fmax(live, s->samples[i].live);
        pending = fmax(pending, s->samples[i].hibernate_pending);
    }
    sort_doubles(running, s->count);
    if (s->count > 0) {
        a.running_peak = measure_of(running[s->count - 1]);
        a.live_peak = measure_of(live);
        a.hibernate_pending_peak = measure_of(pending);
        a.crashed_final = measure_of(s->samples[s->count - 1].crashed);
    }
    a.running_p50 = nearest_rank(running, s->count, 0.50);
    a.running_p90 = nearest_rank(running, s->count, 0.90);
    free(running);
    *ret = a;
    return 0;
}

/* The texts of our PromQL queries. Pure.
 *
 * Growth of a counter over a window is the last value seen by the window's end minus the last seen
 * by its start, summed over the series, both in one query:
 *   - a series that begins inside the window counts from zero;
 *   - a scrape missed at an edge is bridged by the nearest sample before it (PROMQL_LOOKBACK_S);
 *   - a series that ends inside the window (its pod is gone) counts up to its last sample;
 *   - a reset anywhere in the window makes it unknown, also one after which the counter has grown
 *     past its value at the start, which the two edges alone cannot tell;
 *   - a metric of which nothing is left at the end (PROMQL_ALIVE_S) is unknown.
 * Unknown is an empty answer. */
#ifndef CICADA_TELEMETRY_PROMQL_H
#define CICADA_TELEMETRY_PROMQL_H

#include "base/buf.h"
#include "telemetry/window.h"

#include <jansson.h>

#define PROMQL_TEXT_BYTES (64u * 1024) /* of one query */
#define PROMQL_LOOKBACK_S 300          /* as far back as Prometheus itself takes a sample for now */
#define PROMQL_ALIVE_S    60           /* some scrapes missed, and no more, before the end */

/* What placeholders stand for: ${start} ${end} ${window} (the steady window, shifted for what is
 * read late), ${run_start} ${run_end} ${range} (the whole run, likewise), ${step}, and the
 * profile's variables. */
struct promql_scope {
    struct window steady, run;
    double step_s;
    const json_t *variables; /* an object of strings */
};

/* One instant-vector selector: name{labels}. */
struct promql_selector {
    struct str name, labels; /* labels with their braces, or empty */
};

/* 0, or -EINVAL with the reason: an expression, an offset, a range, unmatched quotes or braces. */
MUST_USE int promql_selector_parse(struct str text, struct promql_selector *ret, struct err *err);

/* Check that each ${…} of the text is known. 0, -EINVAL. */
MUST_USE int promql_check(struct str text, const json_t *variables, struct err *err);

/* Append the text with its placeholders replaced; values of variables are escaped to stand within
 * double quotes. 0, -EINVAL, -ERANGE, -ENOMEM. */
MUST_USE int promql_expand(struct buf *b, struct str text, const struct promql_scope *scope);

/* Append the query for the growth of selector over scope->steady, to be asked at its end. suffix is
 * put behind the metric's name ("", "_sum", "_count"). */
MUST_USE int promql_growth(struct buf *b, struct promql_selector selector, const char *suffix,
                           const struct promql_scope *scope);

/* The same for the q-quantile of what a histogram counted in the window. */
MUST_USE int promql_quantile(struct buf *b, double q, struct promql_selector histogram,
                             const struct promql_scope *scope);

/* Seconds as Prometheus takes a time ("1700000000", "1700000000.5") and a duration ("90s",
 * "1500ms", at least 1 ms). */
MUST_USE int promql_add_time(struct buf *b, double wall_s);
MUST_USE int promql_add_duration(struct buf *b, double seconds);

#endif

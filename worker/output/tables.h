/* Locust's console tables, to the byte. Pure text; whoever owns the set. The one difference: a
 * control character of a name or an error is shown as \n or \x1b, where Locust lets it command the
 * terminal. Source: locust/stats.py get_stats_summary, get_percentile_stats_summary,
 * get_error_report_summary, 2.47. */
#ifndef CICADA_WORKER_OUTPUT_TABLES_H
#define CICADA_WORKER_OUTPUT_TABLES_H

#include "worker/output/pen.h"
#include "worker/stats/stats.h"

#define TABLES_NAME_WIDTH 80 /* STATS_NAME_WIDTH where there is no terminal */

/* STATS_NAME_WIDTH on a terminal with so many columns; 0 columns: no terminal. */
unsigned tables_name_width(unsigned columns);

/* Each ends with an empty line. current: the rates of the last ten seconds, not of the run. */
void tables_requests(struct pen *p, const struct stats *s, unsigned name_width, bool current);
void tables_percentiles(struct pen *p, const struct stats *s, unsigned name_width);
/* Nothing when there are none. */
void tables_errors(struct pen *p, const struct stats *s, unsigned name_width);

/* "POST /x: HTTP 500", as StatsError.to_name puts it. */
void tables_error_name(struct pen *p, const struct stats_error *e, size_t width);

#endif

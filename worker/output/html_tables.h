/* The tables of report.html, each a section that is left out when it has nothing to show. Pure
 * text. */
#ifndef CICADA_WORKER_OUTPUT_HTML_TABLES_H
#define CICADA_WORKER_OUTPUT_HTML_TABLES_H

#include "worker/output/pen.h"
#include "worker/output/sorted.h"
#include "worker/report/report.h"

/* Microseconds as milliseconds, with three digits or as many as stand before the point. */
void html_ms(struct pen *p, uint64_t us);

void html_thresholds(struct pen *p, const struct report *r);
void html_requests(struct pen *p, const struct sorted *sorted);
/* The exact ones; of an entry with a schedule both times. */
void html_percentiles(struct pen *p, const struct sorted *sorted);
void html_phases(struct pen *p, const struct sorted *sorted);
void html_failures(struct pen *p, const struct stats *s);
void html_exceptions(struct pen *p, const struct report *r);
/* What became of the requests, and whether the generator is to be believed. */
void html_generator(struct pen *p, const struct report *r);
void html_cluster(struct pen *p, const struct report *r);
void html_server(struct pen *p, const struct report *r);

#endif

/* report.html: one page that needs nothing else, no script and no network, for screens of any
 * width, light and dark, and for paper. Everything foreign in it is escaped. Pure text; whoever
 * owns the report. */
#ifndef CICADA_WORKER_OUTPUT_HTML_H
#define CICADA_WORKER_OUTPUT_HTML_H

#include "worker/output/pen.h"
#include "worker/report/report.h"

void html_page(struct pen *p, const struct report *r);

/* --html's {u}, {r} and {t} replaced, as Locust does with those that were given. */
void html_file_name(struct pen *p, const char *pattern, struct measure users,
                    struct measure spawn_rate, struct measure run_time_s);

#endif

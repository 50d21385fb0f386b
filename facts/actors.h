/* The actor gauge of the load side: locust_actors{user_class,state} scraped from a /metrics page in
 * the Prometheus text format, and what its samples amount to over a run. Pure; the scrape itself is
 * proto/http's. One thread at a time.
 * Source of the format: prometheus.io/docs/instrumenting/exposition_formats, version 0.0.4. */
#ifndef CICADA_FACTS_ACTORS_H
#define CICADA_FACTS_ACTORS_H

#include "base/buf.h"
#include "base/measure.h"

#define ACTORS_METRIC      "locust_actors"
#define ACTORS_PAGE_BYTES  (8u << 20) /* of one scrape */
#define ACTORS_LABEL_BYTES 200        /* of a user class or a state */
#define ACTORS_ROWS_MAX    1000       /* user classes × states */
#define ACTORS_SAMPLES_MAX 1000000    /* eleven days of one a second */

struct actors_row {
    char user_class[ACTORS_LABEL_BYTES], state[ACTORS_LABEL_BYTES]; /* UTF-8 */
    double count;
};

/* One scrape, in the page's order; series of the same class and state are summed. Zeroed at first.
 */
struct actors_scrape {
    struct actors_row *rows;
    size_t count, cap;
};

/* Read a whole page, comments and other metrics included; *ret is emptied first.
 * 0; -EPROTO (a malformed line, or a count that is negative or not finite); -ENOENT (the gauge is
 * not there: not measured); -ERANGE (too many rows); -ENOMEM. On error *ret is empty. */
MUST_USE int actors_parse(struct str page, struct actors_scrape *ret, struct err *err);
void actors_scrape_done(struct actors_scrape *s);

/* The sums of one scrape. */
struct actors_sample {
    double running, hibernate_pending, crashed, live; /* live: all states */
};

/* Those of a run. Zeroed at first. A failed scrape is not added: a gap, not a zero. */
struct actors_series {
    struct actors_sample *samples;
    size_t count, cap;
};

/* 0, -ERANGE (ACTORS_SAMPLES_MAX), -ENOMEM; the series is unchanged then. */
MUST_USE int actors_series_add(struct actors_series *s, const struct actors_scrape *scrape);
void actors_series_done(struct actors_series *s);

/* All unknown without samples. */
struct actors_summary {
    struct measure running_peak, running_p50, running_p90;
    struct measure live_peak, hibernate_pending_peak, crashed_final;
};

/* 0, or -ENOMEM with nothing written. */
MUST_USE int actors_summarize(const struct actors_series *s, struct actors_summary *ret);

#endif

/* Line charts as SVG inside HTML, without scripts. The lines stretch to any width; the labels are
 * HTML beside them, so that they stay readable on a phone and on paper. Pure text. */
#ifndef CICADA_WORKER_OUTPUT_CHART_H
#define CICADA_WORKER_OUTPUT_CHART_H

#include "worker/output/pen.h"

#define CHART_LINES_MAX 3
#define CHART_POINTS    300 /* drawn; more would be finer than any screen shows them */

struct chart_line {
    const char *name;
    const char *css; /* class of its colour */
};

/* One line's value in the point i. */
typedef struct measure chart_value(const void *data, size_t i, unsigned line);

struct chart {
    const char *title;
    const char *unit; /* behind the largest tick: "ms", "/s", "" */
    struct chart_line lines[CHART_LINES_MAX];
    unsigned line_count;
    bool peaks;   /* points that fall together show the largest of them, not the mean */
    size_t count; /* points, ascending in time */
    double (*time_s)(const void *data, size_t i);
    chart_value *value;
    const void *data;
};

void chart_html(struct pen *p, const struct chart *c);

/* The style of what chart_html writes. */
extern const char chart_css[];

#endif

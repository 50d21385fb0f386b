#include "worker/output/html.h"

#include "base/num.h"
#include "worker/output/chart.h"
#include "worker/output/html_style.h"
#include "worker/output/html_tables.h"

#include <inttypes.h>

/* The page from top to bottom; its tables are in html_tables.c, its style in html_style.c. */

/* No script, no network, whatever a name holds: the browser is told so too. */
static const char head[] = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                           "<meta http-equiv=\"Content-Security-Policy\" "
                           "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
                           "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                           "<meta name=\"color-scheme\" content=\"light dark\">";

/* --- the top -------------------------------------------------------------------------------- */

static struct str title_of(const struct report *r)
{
    return str_of(r->test_name ? r->test_name : r->host ? r->host : "Load test");
}

static void badge(struct pen *p, bool good, const char *good_text, const char *bad_text)
{
    pen_printf(p, "<span class=\"badge %s\">%s</span>", good ? "good" : "bad",
               good ? good_text : bad_text);
}

static size_t thresholds_missed(const struct report *r)
{
    size_t missed = 0;
    for (size_t i = 0; i < r->threshold_count; i++)
        missed += !r->thresholds[i].met;
    return missed;
}

static void badges(struct pen *p, const struct report *r)
{
    pen_text(p, "<p class=\"badges\">");
    if (r->threshold_count > 0)
        badge(p, thresholds_missed(r) == 0, "thresholds met", "thresholds not met");
    if (r->generator.saturated || !r->generator.too_short)
        badge(p, !r->generator.saturated, "generator sound", "generator saturated");
    pen_printf(p, "<span class=\"badge%s\">exit code %d</span></p>", r->exit_code ? " bad" : "",
               r->exit_code);
}

static void facts_line(struct pen *p, const struct report *r)
{
    double seconds = r->end_s > r->start_s ? r->end_s - r->start_s : 0;
    pen_text(p, "<p class=\"sub\">");
    if (r->host && r->test_name) {
        pen_html(p, str_of(r->host));
        pen_text(p, " · ");
    }
    pen_time(p, r->start_s);
    pen_text(p, " to ");
    pen_time(p, r->end_s);
    pen_text(p, " · ");
    pen_fixed(p, seconds, 1);
    pen_text(p, " s");
    if (r->tag) {
        pen_text(p, " · tag ");
        pen_html(p, str_of(r->tag));
    }
    pen_text(p, "</p>");
}

static void tile(struct pen *p, const char *name)
{
    pen_printf(p, "</b></div><div><span>%s</span><b>", name);
}

static void percentile_tile(struct pen *p, const struct stats_entry *total, const char *name,
                            double q)
{
    uint64_t us;
    tile(p, name);
    if (histogram_percentile(&total->response_times, q, &us)) {
        html_ms(p, us);
        pen_text(p, " <small>ms</small>");
    } else {
        pen_text(p, "–");
    }
}

static void tiles(struct pen *p, const struct report *r, const struct stats_entry *total)
{
    uint32_t users_peak = 0;
    for (size_t i = 0; r->history && i < r->history->count; i++) {
        if (r->history->points[i].user_count > users_peak)
            users_peak = r->history->points[i].user_count;
    }
    pen_text(p, "<div class=\"tiles\"><div><span>Requests</span><b>");
    pen_count(p, total->num_requests);
    tile(p, "Failures");
    pen_count(p, total->num_failures);
    if (total->num_requests > 0) {
        pen_text(p, " <small>");
        pen_fixed(p, stats_entry_fail_ratio(total) * 100, 2);
        pen_text(p, " %</small>");
    }
    tile(p, "Rate");
    pen_fixed(p, stats_entry_total_rps(total, total), 1);
    pen_text(p, " <small>/s</small>");
    percentile_tile(p, total, "p50", 0.5);
    percentile_tile(p, total, "p95", 0.95);
    percentile_tile(p, total, "p99", 0.99);
    tile(p, "Users, most");
    if (r->history && r->history->count)
        pen_count(p, users_peak);
    else
        pen_text(p, "–");
    pen_text(p, "</b></div></div>\n");
}

/* --- charts --------------------------------------------------------------------------------- */

static double point_time(const void *data, size_t i)
{
    return ((const struct history *)data)->points[i].wall_s;
}

static struct measure rate_at(const void *data, size_t i, unsigned line)
{
    const struct history_point *at = &((const struct history *)data)->points[i];
    return line == 0 ? at->rps : at->fail_per_s;
}

static struct measure time_at(const void *data, size_t i, unsigned line)
{
    const struct history_point *at = &((const struct history *)data)->points[i];
    return line == 0 ? at->p50_ms : line == 1 ? at->p95_ms : at->p99_ms;
}

static struct measure users_at(const void *data, size_t i, unsigned line)
{
    const struct history_point *at = &((const struct history *)data)->points[i];
    if (line == 0)
        return measure_of(at->user_count);
    return at->target ? measure_of(at->target) : MEASURE_UNKNOWN;
}

static void charts(struct pen *p, const struct history *h)
{
    struct chart c = {
        .count = h->count, .time_s = point_time, .data = h, .unit = "/s", .line_count = 2};
    c.title = "Requests each second";
    c.lines[0] = (struct chart_line){"requests", "c1"};
    c.lines[1] = (struct chart_line){"failures", "c3"};
    c.value = rate_at;
    pen_text(p, "<section><h2>Over time</h2>");
    chart_html(p, &c);
    c.title = "Response time of each second";
    c.unit = "ms";
    c.line_count = 3;
    c.peaks = true;
    c.lines[0] = (struct chart_line){"p50", "c1"};
    c.lines[1] = (struct chart_line){"p95", "c2"};
    c.lines[2] = (struct chart_line){"p99", "c3"};
    c.value = time_at;
    chart_html(p, &c);
    c.title = "Users";
    c.unit = "";
    c.line_count = 2;
    c.lines[0] = (struct chart_line){"running", "c1"};
    c.lines[1] = (struct chart_line){"wished for", "c2"};
    c.value = users_at;
    chart_html(p, &c);
    pen_text(p, "</section>\n");
}

/* --- the page ------------------------------------------------------------------------------- */

void html_page(struct pen *p, const struct report *r)
{
    struct sorted sorted;
    int rc = sorted_make(r->stats, &sorted);
    if (rc < 0) {
        p->rc = p->rc == 0 ? rc : p->rc;
        sorted_done(&sorted);
        return;
    }
    pen_text(p, head);
    pen_text(p, "<title>");
    pen_html(p, title_of(r));
    pen_text(p, "</title><style>");
    pen_text(p, html_css);
    pen_text(p, chart_css);
    pen_text(p, "</style></head><body><header><h1>");
    pen_html(p, title_of(r));
    pen_text(p, "</h1>");
    facts_line(p, r);
    badges(p, r);
    pen_text(p, "</header><main>\n");
    tiles(p, r, sorted.total);
    html_thresholds(p, r);
    if (r->history && r->history->count > 0)
        charts(p, r->history);
    html_requests(p, &sorted);
    html_percentiles(p, &sorted);
    html_phases(p, &sorted);
    html_failures(p, r->stats);
    html_exceptions(p, r);
    html_generator(p, r);
    html_cluster(p, r);
    html_server(p, r);
    pen_text(p, "</main><footer>cicada " CICADA_VERSION "</footer></body></html>\n");
    sorted_done(&sorted);
}

static void pen_plain_number(struct pen *p, double value)
{
    char text[NUM_TEXT_BYTES];
    num_format_repr(value, text);
    if (value == floor(value) && fabs(value) < 1e15)
        pen_fixed(p, value, 0);
    else
        pen_text(p, text);
}

void html_file_name(struct pen *p, const char *pattern, struct measure users,
                    struct measure spawn_rate, struct measure run_time_s)
{
    for (const char *c = pattern; *c; c++) {
        const struct measure *m = strncmp(c, "{u}", 3) == 0   ? &users
                                  : strncmp(c, "{r}", 3) == 0 ? &spawn_rate
                                  : strncmp(c, "{t}", 3) == 0 ? &run_time_s
                                                              : NULL;
        if (m && m->known) {
            pen_plain_number(p, m->value);
            c += 2;
        } else {
            pen_str(p, (struct str){c, 1});
        }
    }
}

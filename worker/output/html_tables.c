#include "worker/output/html_tables.h"

#include "base/num.h"
#include "worker/stats/keyed_errors.h"
#include "worker/stats/percentile.h"

#include <stdlib.h>

#define UNKNOWN "–"

static const struct {
    const char *name;
    double q;
} quantiles[] = {{"p50", 0.5},  {"p75", 0.75},    {"p90", 0.9},      {"p95", 0.95},
                 {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}};
#define QUANTILE_COUNT (sizeof quantiles / sizeof *quantiles)

/* --- cells ---------------------------------------------------------------------------------- */

static void open_table(struct pen *p, const char *title, const char *css)
{
    pen_printf(p, "<section><h2>%s</h2><div class=\"scroll\"><table class=\"%s\">", title, css);
}

static void close_table(struct pen *p)
{
    pen_text(p, "</table></div></section>\n");
}

/* A heading's cells, each with its class ("t": text) before it. */
static void heading(struct pen *p, const char *const *cells, size_t count)
{
    pen_text(p, "<thead><tr>");
    for (size_t i = 0; i + 1 < count; i += 2)
        pen_printf(p, "<th class=\"%s\">%s</th>", cells[i], cells[i + 1]);
    pen_text(p, "</tr></thead>");
}

static void text_cell(struct pen *p, const char *css, struct str s)
{
    pen_printf(p, "<td class=\"%s\">", css);
    pen_html(p, s);
    pen_text(p, "</td>");
}

static void count_cell(struct pen *p, uint64_t n)
{
    pen_text(p, "<td>");
    pen_count(p, n);
    pen_text(p, "</td>");
}

static void fixed_cell(struct pen *p, double value, int decimals)
{
    pen_text(p, "<td>");
    pen_fixed(p, value, decimals);
    pen_text(p, "</td>");
}

void html_ms(struct pen *p, uint64_t us)
{
    if (us >= 100000)
        pen_count(p, num_div_half_even(us, 1000));
    else
        pen_fixed(p, (double)us / 1000.0, us >= 10000 ? 1 : 2);
}

static void ms_cell(struct pen *p, bool known, uint64_t us)
{
    pen_text(p, "<td>");
    if (known)
        html_ms(p, us);
    else
        pen_text(p, UNKNOWN);
    pen_text(p, "</td>");
}

static void names(struct pen *p, const struct stats_entry *e, bool is_sum)
{
    pen_text(p, is_sum ? "<tr class=\"sum\">" : "<tr>");
    text_cell(p, "t", e->method);
    text_cell(p, "long", e->name);
}

static void fact(struct pen *p, const char *name, struct str value)
{
    pen_printf(p, "<tr><td>%s</td>", name);
    text_cell(p, "long", value);
    pen_text(p, "</tr>");
}

static void count_fact(struct pen *p, const char *name, uint64_t n)
{
    pen_printf(p, "<tr><td>%s</td><td class=\"t\">", name);
    pen_count(p, n);
    pen_text(p, "</td></tr>");
}

static void plain_number(struct pen *p, double value)
{
    char text[NUM_TEXT_BYTES];
    if (value >= 0 && value < 1e15 && value == floor(value)) {
        pen_count(p, (uint64_t)value);
        return;
    }
    num_format_repr(num_round(value, 4), text);
    pen_text(p, text);
}

static void measure_fact(struct pen *p, const char *name, struct measure m, const char *unit)
{
    pen_printf(p, "<tr><td>%s</td><td class=\"t\">", name);
    if (m.known) {
        plain_number(p, m.value);
        pen_text(p, unit);
    } else {
        pen_text(p, UNKNOWN);
    }
    pen_text(p, "</td></tr>");
}

/* --- thresholds ----------------------------------------------------------------------------- */

void html_thresholds(struct pen *p, const struct report *r)
{
    static const char *const cells[] = {"t", "Threshold", "", "Measured", "t", "Met"};
    if (r->threshold_count == 0)
        return;
    open_table(p, "Thresholds", "");
    heading(p, cells, sizeof cells / sizeof *cells);
    for (size_t i = 0; i < r->threshold_count; i++) {
        const struct report_threshold *t = &r->thresholds[i];
        pen_text(p, "<tr>");
        text_cell(p, "long", t->text);
        pen_text(p, "<td>");
        if (t->measured.known)
            plain_number(p, t->measured.value);
        else
            pen_text(p, report_threshold_unmeasured(t));
        pen_text(p, t->measured.known && t->unit ? t->unit : "");
        pen_printf(p, "</td><td class=\"t\"><span class=\"badge %s\">%s</span></td></tr>",
                   t->met ? "good" : "bad", t->met ? "met" : "not met");
    }
    close_table(p);
}

/* --- requests ------------------------------------------------------------------------------- */

static void request_row(struct pen *p, const struct stats_entry *e, const struct stats_entry *total)
{
    bool timed = e->min_response_time_us != UINT64_MAX;
    names(p, e, e == total);
    count_cell(p, e->num_requests);
    pen_text(p, e->num_failures ? "<td class=\"fail\">" : "<td>");
    pen_count(p, e->num_failures);
    pen_text(p, " <small>");
    pen_fixed(p, stats_entry_fail_ratio(e) * 100, 2);
    pen_text(p, " %</small></td>");
    ms_cell(p, timed, (uint64_t)(stats_entry_average_ms(e) * 1000));
    ms_cell(p, timed, e->min_response_time_us);
    ms_cell(p, timed, e->max_response_time_us);
    fixed_cell(p, stats_entry_average_content_bytes(e), 0);
    fixed_cell(p, stats_entry_total_rps(e, total), 2);
    fixed_cell(p, stats_entry_total_fail_per_sec(e, total), 2);
    pen_text(p, "</tr>");
}

void html_requests(struct pen *p, const struct sorted *sorted)
{
    static const char *const cells[] = {
        "t", "Type",    "t", "Name",    "", "Requests",    "", "Failures",   "", "Average, ms",
        "",  "Min, ms", "",  "Max, ms", "", "Size, bytes", "", "Requests/s", "", "Failures/s"};
    open_table(p, "Requests", "");
    heading(p, cells, sizeof cells / sizeof *cells);
    for (size_t i = 0; i < sorted->count; i++)
        request_row(p, sorted->entries[i], sorted->total);
    request_row(p, sorted->total, sorted->total);
    close_table(p);
}

/* --- percentiles ---------------------------------------------------------------------------- */

static void quantile_cells(struct pen *p, const struct histogram *h)
{
    for (size_t i = 0; i < QUANTILE_COUNT; i++) {
        uint64_t us = 0;
        bool known = histogram_percentile(h, quantiles[i].q, &us);
        ms_cell(p, known, us);
    }
}

static void quantile_heading(struct pen *p, const char *const *cells, size_t count)
{
    pen_text(p, "<thead><tr>");
    for (size_t i = 0; i < count; i++)
        pen_printf(p, "<th class=\"t\">%s</th>", cells[i]);
    for (size_t i = 0; i < QUANTILE_COUNT; i++)
        pen_printf(p, "<th>%s</th>", quantiles[i].name);
}

static void percentile_rows(struct pen *p, const struct stats_entry *e, bool is_sum, bool both)
{
    names(p, e, is_sum);
    if (both)
        pen_text(p, "<td class=\"t\">response</td>");
    quantile_cells(p, &e->response_times);
    ms_cell(p, e->min_response_time_us != UINT64_MAX, e->max_response_time_us);
    pen_text(p, "</tr>");
    if (!e->details || e->details->service_times.count == 0)
        return;
    pen_text(p, is_sum ? "<tr class=\"sum\"><td></td><td></td>" : "<tr><td></td><td></td>");
    pen_text(p, "<td class=\"t\">service</td>");
    quantile_cells(p, &e->details->service_times);
    uint64_t most = 0;
    bool known = histogram_percentile(&e->details->service_times, 1, &most);
    ms_cell(p, known, most);
    pen_text(p, "</tr>");
}

void html_percentiles(struct pen *p, const struct sorted *sorted)
{
    static const char *const cells[] = {"Type", "Name", "Time"};
    const struct stats_details *all = sorted->total->details;
    bool both = all && all->service_times.count > 0;
    open_table(p, "Percentiles, ms", "");
    quantile_heading(p, cells, both ? 3 : 2);
    pen_text(p, "<th>max</th></tr></thead>");
    for (size_t i = 0; i < sorted->count; i++)
        percentile_rows(p, sorted->entries[i], false, both);
    percentile_rows(p, sorted->total, true, both);
    pen_text(p, "</table></div><p class=\"note\">From exact histograms of microseconds, three "
                "digits.");
    if (both)
        pen_text(p, " Response time counts from the scheduled start of a request, service time "
                    "from when it was sent: where the first is much larger, the target or the "
                    "generator fell behind the schedule.");
    pen_text(p, "</p></section>\n");
}

/* --- phases --------------------------------------------------------------------------------- */

static bool has_phases(const struct stats_entry *e)
{
    for (int i = 0; e->details && i < STATS_PHASE_COUNT; i++) {
        if (e->details->phases[i].count > 0)
            return true;
    }
    return false;
}

static void phase_rows(struct pen *p, const struct stats_entry *e, bool is_sum)
{
    static const char *const shown[STATS_PHASE_COUNT] = {"name look-up", "connect", "TLS",
                                                         "first byte", "body"};
    bool first = true;
    for (int i = 0; has_phases(e) && i < STATS_PHASE_COUNT; i++) {
        const struct histogram *h = &e->details->phases[i];
        if (h->count == 0)
            continue;
        if (first)
            names(p, e, is_sum);
        else
            pen_text(p, is_sum ? "<tr class=\"sum\"><td></td><td></td>" : "<tr><td></td><td></td>");
        first = false;
        pen_printf(p, "<td class=\"t\">%s</td>", shown[i]);
        quantile_cells(p, h);
        count_cell(p, h->count);
        pen_text(p, "</tr>");
    }
}

void html_phases(struct pen *p, const struct sorted *sorted)
{
    static const char *const cells[] = {"Type", "Name", "Phase"};
    if (!has_phases(sorted->total))
        return;
    open_table(p, "Phases of a request, ms", "");
    quantile_heading(p, cells, 3);
    pen_text(p, "<th>Requests</th></tr></thead>");
    for (size_t i = 0; i < sorted->count; i++)
        phase_rows(p, sorted->entries[i], false);
    phase_rows(p, sorted->total, true);
    close_table(p);
}

/* --- failures, exceptions ------------------------------------------------------------------- */

static int by_occurrences(const void *a, const void *b)
{
    const struct keyed_error *x = a, *y = b;
    return (x->shown.occurrences < y->shown.occurrences) -
           (x->shown.occurrences > y->shown.occurrences);
}

static void failure_row(struct pen *p, const struct stats_error *e)
{
    pen_text(p, "<tr>");
    count_cell(p, e->occurrences);
    text_cell(p, "t", e->method);
    text_cell(p, "long", e->name);
    text_cell(p, "long", e->error);
    pen_text(p, "<td>");
    pen_time(p, e->first_seen_s);
    pen_text(p, "</td><td>");
    pen_time(p, e->last_seen_s);
    pen_text(p, "</td></tr>");
}

void html_failures(struct pen *p, const struct stats *s)
{
    static const char *const cells[] = {"",  "Count", "t", "Type",       "t", "Name",
                                        "t", "Error", "",  "First seen", "",  "Last seen"};
    struct keyed_error *errors;
    size_t count;
    if (stats_error_count(s) == 0)
        return;
    int rc = keyed_errors_new(s, &errors, &count);
    if (rc < 0) {
        p->rc = p->rc == 0 ? rc : p->rc;
        return;
    }
    qsort(errors, count, sizeof *errors, by_occurrences);
    open_table(p, "Failures", "");
    heading(p, cells, sizeof cells / sizeof *cells);
    for (size_t i = 0; i < count; i++)
        failure_row(p, &errors[i].shown);
    close_table(p);
    free(errors);
}

void html_exceptions(struct pen *p, const struct report *r)
{
    static const char *const cells[] = {"", "Count", "t", "Message", "t", "Traceback"};
    if (r->exception_count == 0)
        return;
    open_table(p, "Exceptions", "");
    heading(p, cells, sizeof cells / sizeof *cells);
    for (size_t i = 0; i < r->exception_count; i++) {
        pen_text(p, "<tr>");
        count_cell(p, r->exceptions[i].count);
        text_cell(p, "long", r->exceptions[i].message);
        text_cell(p, "long", r->exceptions[i].traceback);
        pen_text(p, "</tr>");
    }
    close_table(p);
}

/* --- the generator -------------------------------------------------------------------------- */

static void request_facts(struct pen *p, const struct report_requests *n)
{
    count_fact(p, "Requests started", n->started);
    count_fact(p, "… succeeded", n->succeeded);
    count_fact(p, "… failed", n->failed);
    count_fact(p, "… interrupted at the end", n->interrupted);
    if (n->interrupted > 0)
        measure_fact(p, "Oldest interrupted request",
                     measure_of((double)n->interrupted_oldest_us / 1e6), " s");
}

void html_generator(struct pen *p, const struct report *r)
{
    const struct generator_verdict *g = &r->generator;
    open_table(p, "The generator", "facts");
    pen_printf(p,
               "<tr><td>Verdict</td><td class=\"t\"><span class=\"badge %s\">%s</span></td></tr>",
               g->saturated   ? "bad"
               : g->too_short ? ""
                              : "good",
               g->saturated   ? "saturated: it was the bottleneck"
               : g->too_short ? "none: the full load was shorter than 5 s"
                              : "not the bottleneck");
    if (g->reasons[0])
        fact(p, "Reasons", str_of(g->reasons));
    request_facts(p, &r->requests);
    measure_fact(p, "CPU of the busiest thread, p50", g->cpu_p50, " %");
    measure_fact(p, "CPU of the busiest thread, most", g->cpu_max, " %");
    measure_fact(p, "Event loop lag, p99", g->loop_lag_p99_ms, " ms");
    count_fact(p, "Starts over 1 ms late", g->missed_starts_1ms);
    count_fact(p, "Starts over 10 ms late", g->missed_starts_10ms);
    count_fact(p, "Connections failed", g->connect_errors);
    count_fact(p, "Requests sent anew", g->retries);
    count_fact(p, "Sockets open at once, most", g->sockets_peak);
    if (stats_folded_names(r->stats) > 0)
        count_fact(p, "Names folded into (other)", stats_folded_names(r->stats));
    if (stats_lost_samples(r->stats) > 0)
        count_fact(p, "Samples not kept in full", stats_lost_samples(r->stats));
    close_table(p);
}

/* --- cluster and server --------------------------------------------------------------------- */

static void frontier_facts(struct pen *p, const struct frontiers *f)
{
    measure_fact(p, "Actors per node", f->actors_per_node, "");
    measure_fact(p, "Actors per vCPU", f->actors_per_vcpu, "");
    measure_fact(p, "Actors per GiB", f->actors_per_gb_ram, "");
    measure_fact(p, "Actors per worker pod, p50", f->ap_ratio_p50, "");
    measure_fact(p, "Actors per worker pod, p90", f->ap_ratio_p90, "");
    measure_fact(p, "Actors per worker pod, p99", f->ap_ratio_p99, "");
}

void html_cluster(struct pen *p, const struct report *r)
{
    const char *source = users_source_name(r->users_source);
    if (!r->facts && !r->frontiers)
        return;
    open_table(p, "The cluster", "facts");
    if (r->facts) {
        fact(p, "Machine type", str_of(r->facts->machine_type ? r->facts->machine_type : UNKNOWN));
        measure_fact(p, "Nodes", r->facts->node_count, "");
        measure_fact(p, "Allocatable cores", r->facts->allocatable_cores, "");
        measure_fact(p, "Allocatable memory", r->facts->allocatable_ram_gb, " GiB");
        measure_fact(p, "Worker pods", r->facts->worker_pod_count, "");
    }
    if (r->frontiers)
        frontier_facts(p, r->frontiers);
    fact(p, "Users counted by", str_of(source ? source : UNKNOWN));
    close_table(p);
}

/* Scalars of the flat summary; what is null was not measured. */
void html_server(struct pen *p, const struct report *r)
{
    const char *key;
    json_t *value, *flat = json_deep_copy(r->server_flat); /* to walk it: jansson's wants it so */
    size_t known = 0;
    json_object_foreach(flat, key, value) known += json_is_string(value);
    if (known > 0)
        open_table(p, "The servers", "facts");
    json_object_foreach(flat, key, value)
    {
        if (!json_is_string(value))
            continue;
        pen_text(p, "<tr>");
        text_cell(p, "t", str_of(key));
        text_cell(p, "t", (struct str){json_string_value(value), json_string_length(value)});
        pen_text(p, "</tr>");
    }
    if (known > 0)
        close_table(p);
    json_decref(flat);
}

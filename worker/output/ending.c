#include "worker/output/ending.h"

#include "base/num.h"

#include <inttypes.h>

static void measure(struct pen *p, struct measure m, int decimals, const char *unit)
{
    if (m.known) {
        pen_fixed(p, m.value, decimals);
        pen_text(p, unit);
    } else {
        pen_text(p, "not measured");
    }
}

static void threshold_value(struct pen *p, const struct report_threshold *t)
{
    char digits[NUM_TEXT_BYTES];
    if (!t->measured.known) {
        pen_text(p, report_threshold_unmeasured(t));
        return;
    }
    num_format_repr(num_round(t->measured.value, 4), digits);
    struct str s = str_of(digits);
    pen_str(p, str_ends(s, STR(".0")) ? str_sub(s, 0, s.len - 2) : s);
    pen_text(p, t->unit ? t->unit : "");
}

static void thresholds(struct pen *p, const struct report *r)
{
    if (r->threshold_count == 0)
        return;
    pen_text(p, "Thresholds\n");
    for (size_t i = 0; i < r->threshold_count; i++) {
        const struct report_threshold *t = &r->thresholds[i];
        pen_text(p, t->met ? "  met      " : "  NOT MET  ");
        (void)pen_shown(p, t->text, 40);
        pen_text(p, " ");
        threshold_value(p, t);
        pen_text(p, "\n");
    }
    pen_text(p, "\n");
}

static void requests(struct pen *p, const struct report_requests *n)
{
    pen_printf(p,
               "Requests: %" PRIu64 " started = %" PRIu64 " succeeded + %" PRIu64
               " failed + %" PRIu64 " interrupted",
               n->started, n->succeeded, n->failed, n->interrupted);
    if (n->interrupted > 0) {
        pen_text(p, " (the oldest after ");
        pen_fixed(p, (double)n->interrupted_oldest_us / 1e6, 3);
        pen_text(p, " s)");
    }
    pen_text(p, "\n");
}

static void service_percentile(struct pen *p, const char *name, const struct histogram *h, double q)
{
    uint64_t us;
    pen_printf(p, "  %s ", name);
    if (histogram_percentile(h, q, &us))
        pen_fixed(p, (double)us / 1000, 2);
    else
        pen_text(p, "-");
}

static void one_time(struct pen *p, const char *name, const struct histogram *h)
{
    (void)pen_shown(p, str_of(name), 34);
    service_percentile(p, "p50", h, 0.5);
    service_percentile(p, "p90", h, 0.9);
    service_percentile(p, "p99", h, 0.99);
    service_percentile(p, "p99.9", h, 0.999);
    service_percentile(p, "max", h, 1);
    pen_text(p, " ms\n");
}

/* Only where requests had a schedule: else both times are the same. */
static void both_times(struct pen *p, const struct report *r)
{
    struct stats_entry *total;
    int rc = stats_total(r->stats, &total);
    if (rc < 0) {
        p->rc = p->rc == 0 ? rc : p->rc;
        return;
    }
    if (total->details && total->details->service_times.count > 0) {
        one_time(p, "Response time, since the schedule:", &total->response_times);
        one_time(p, "Service time, since it was sent:", &total->details->service_times);
    }
    stats_entry_free(total);
}

static void generator(struct pen *p, const struct generator_verdict *g)
{
    pen_printf(p, "Generator: %s%s; CPU of the busiest thread p50 ",
               g->saturated   ? "SATURATED, it was the bottleneck: "
               : g->too_short ? "no verdict, its full load was shorter than 5 s"
                              : "not the bottleneck",
               g->saturated ? g->reasons : "");
    measure(p, g->cpu_p50, 1, " %");
    pen_text(p, ", most ");
    measure(p, g->cpu_max, 1, " %");
    pen_text(p, "; loop lag p99 ");
    measure(p, g->loop_lag_p99_ms, 2, " ms");
    pen_printf(p, "; %" PRIu64 " starts over 1 ms late, %" PRIu64 " over 10 ms\n",
               g->missed_starts_1ms, g->missed_starts_10ms);
}

static void cluster(struct pen *p, const struct report *r)
{
    struct buf line;
    if (!r->facts)
        return;
    buf_init(&line, ERR_TEXT_BYTES);
    if (cluster_facts_describe(r->facts, &line) == 0) { /* a line that is too long is none */
        pen_text(p, "Cluster: ");
        (void)pen_shown(p, buf_str(&line), 0);
        pen_text(p, "\n");
    }
    buf_done(&line);
}

void ending_text(struct pen *p, const struct report *r, const char *folder)
{
    thresholds(p, r);
    requests(p, &r->requests);
    both_times(p, r);
    generator(p, &r->generator);
    cluster(p, r);
    if (folder) {
        pen_text(p, "Results: ");
        (void)pen_shown(p, str_of(folder), 0);
        pen_text(p, "\n");
    }
}

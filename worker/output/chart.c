#include "worker/output/chart.h"

#include <stdio.h>

#define WIDTH  1000 /* units of the drawing, stretched to the page's width */
#define HEIGHT 100

const char chart_css[] =
    ".chart{margin:0 0 2.2rem}"
    ".chart figcaption{display:flex;flex-wrap:wrap;gap:.25rem 1rem;align-items:baseline}"
    ".chart figcaption b{font-weight:600}"
    ".key{color:var(--muted);white-space:nowrap}"
    ".key i{display:inline-block;width:.9rem;height:.2rem;margin-right:.35rem;"
    "vertical-align:middle;border-radius:.1rem;background:currentColor}"
    ".plot{position:relative;height:10rem;margin:.6rem 0 1.6rem 3.6rem;"
    "border-bottom:1px solid var(--muted)}"
    ".plot svg{position:absolute;inset:0;width:100%;height:100%;overflow:visible}"
    ".plot path{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round;"
    "stroke-linecap:round;vector-effect:non-scaling-stroke}"
    ".plot line{stroke:var(--line);stroke-width:1;vector-effect:non-scaling-stroke}"
    ".plot span{position:absolute;font-size:.75rem;color:var(--muted);white-space:nowrap;"
    "font-variant-numeric:tabular-nums}"
    ".plot .y{right:100%;margin-right:.4rem;transform:translateY(50%)}"
    ".plot .x{top:100%;margin-top:.25rem;transform:translateX(-50%)}"
    ".c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}";

/* Several points of the report that fall on one place of the drawing. */
struct place {
    double sum, most;
    unsigned known;
};

struct scale {
    double start_s, span_s;
    double top; /* of the y axis */
    double tick;
};

/* The smallest of 1, 2, 5 × 10^n that needs at most so many steps. */
static double nice_step(double span, double steps)
{
    static const double factors[] = {1, 2, 5, 10};
    if (!(span > 0))
        return 1;
    double unit = pow(10, floor(log10(span / steps)));
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        if (factors[i] * unit * steps >= span * (1 - 1e-9))
            return factors[i] * unit;
    }
    return 10 * unit;
}

/* The same for clock times. */
static double nice_seconds(double span)
{
    static const double steps[] = {1,   2,   5,    10,   15,   30,    60,    120,   300,
                                   600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (steps[i] * 6 >= span)
            return steps[i];
    }
    return 86400 * ceil(span / 86400 / 6);
}

static size_t place_of(const struct chart *c, const struct scale *s, size_t i)
{
    double at = (c->time_s(c->data, i) - s->start_s) / s->span_s * (CHART_POINTS - 1);
    return at <= 0 ? 0 : at >= CHART_POINTS - 1 ? CHART_POINTS - 1 : (size_t)(at + 0.5);
}

static void gather(const struct chart *c, const struct scale *s, unsigned line,
                   struct place places[static CHART_POINTS])
{
    memset(places, 0, CHART_POINTS * sizeof *places);
    for (size_t i = 0; i < c->count; i++) {
        struct measure v = c->value(c->data, i, line);
        struct place *at = &places[place_of(c, s, i)];
        if (!v.known)
            continue;
        at->sum += v.value;
        at->most = at->known == 0 || v.value > at->most ? v.value : at->most;
        at->known++;
    }
}

static double height_of(const struct chart *c, const struct place *at)
{
    return c->peaks ? at->most : at->sum / at->known;
}

static struct scale scale_of(const struct chart *c)
{
    struct scale s = {0, 1, 0, 1};
    struct place places[CHART_POINTS];
    if (c->count > 0)
        s.start_s = c->time_s(c->data, 0);
    if (c->count > 1 && c->time_s(c->data, c->count - 1) > s.start_s)
        s.span_s = c->time_s(c->data, c->count - 1) - s.start_s;
    for (unsigned line = 0; line < c->line_count; line++) {
        gather(c, &s, line, places);
        for (size_t i = 0; i < CHART_POINTS; i++) {
            if (places[i].known > 0 && height_of(c, &places[i]) > s.top)
                s.top = height_of(c, &places[i]);
        }
    }
    s.tick = nice_step(s.top, 4);
    s.top = s.top > 0 ? ceil(s.top / s.tick - 1e-9) * s.tick : s.tick;
    return s;
}

/* --- the drawing ---------------------------------------------------------------------------- */

/* A gap where nothing was measured: the line begins anew behind it. Places that no point falls on
 * are no gap, when there are fewer points than places. */
static void line_path(struct pen *p, const struct chart *c, const struct scale *s, unsigned line)
{
    struct place places[CHART_POINTS];
    unsigned char unknown[CHART_POINTS] = {0};
    bool drawing = false;
    gather(c, s, line, places);
    for (size_t i = 0; i < c->count; i++)
        unknown[place_of(c, s, i)] |= !c->value(c->data, i, line).known;
    pen_printf(p, "<path class=\"%s\" d=\"", c->lines[line].css);
    for (size_t i = 0; i < CHART_POINTS; i++) {
        if (places[i].known == 0) {
            drawing &= !unknown[i];
            continue;
        }
        double x = (double)i * WIDTH / (CHART_POINTS - 1);
        double y = HEIGHT - height_of(c, &places[i]) / s->top * HEIGHT;
        pen_text(p, drawing ? "L" : "M");
        pen_fixed(p, x, 1);
        pen_text(p, " ");
        pen_fixed(p, y, 2);
        pen_text(p, drawing ? "" : "h0"); /* a dot when it stays alone */
        drawing = true;
    }
    pen_text(p, "\"/>");
}

/* "1,200", "0.05": as many decimals as the steps need */
static void tick_label(struct pen *p, double value, double tick)
{
    int decimals = tick >= 1 ? 0 : (int)ceil(-log10(tick) - 1e-9);
    if (decimals == 0 && value >= 0 && value < 1e15)
        pen_count(p, (uint64_t)(value + 0.5));
    else
        pen_fixed(p, value, decimals);
}

static void y_axis(struct pen *p, const struct chart *c, const struct scale *s)
{
    unsigned steps = (unsigned)(s->top / s->tick + 0.5);
    for (unsigned i = 0; i <= steps; i++) {
        pen_text(p, "<span class=\"y\" style=\"bottom:");
        pen_fixed(p, 100.0 * i / steps, 2);
        pen_text(p, "%\">");
        tick_label(p, s->tick * i, s->tick);
        pen_printf(p, "%s%s</span>", i == steps && *c->unit ? " " : "", i == steps ? c->unit : "");
    }
}

/* Since the start: "0:30", "1:02:00" */
static void x_axis(struct pen *p, const struct scale *s)
{
    double step = nice_seconds(s->span_s);
    for (double t = 0; t <= s->span_s * (1 + 1e-9); t += step) {
        unsigned long seconds = (unsigned long)(t + 0.5);
        pen_text(p, "<span class=\"x\" style=\"left:");
        pen_fixed(p, 100 * t / s->span_s, 2);
        if (seconds >= 3600)
            pen_printf(p, "%%\">%lu:%02lu:%02lu</span>", seconds / 3600, seconds / 60 % 60,
                       seconds % 60);
        else
            pen_printf(p, "%%\">%lu:%02lu</span>", seconds / 60, seconds % 60);
    }
}

static void grid(struct pen *p, const struct scale *s)
{
    unsigned steps = (unsigned)(s->top / s->tick + 0.5);
    for (unsigned i = 1; i <= steps; i++) {
        pen_text(p, "<line x1=\"0\" x2=\"1000\" y1=\"");
        pen_fixed(p, HEIGHT - (double)HEIGHT * i / steps, 2);
        pen_text(p, "\" y2=\"");
        pen_fixed(p, HEIGHT - (double)HEIGHT * i / steps, 2);
        pen_text(p, "\"/>");
    }
}

void chart_html(struct pen *p, const struct chart *c)
{
    struct scale s = scale_of(c);
    pen_printf(p, "<figure class=\"chart\"><figcaption><b>%s</b>", c->title);
    for (unsigned i = 0; i < c->line_count; i++)
        pen_printf(p, "<span class=\"key\"><i class=\"%s\"></i>%s</span>", c->lines[i].css,
                   c->lines[i].name);
    pen_printf(p,
               "</figcaption><div class=\"plot\"><svg viewBox=\"0 0 %d %d\" "
               "preserveAspectRatio=\"none\" role=\"img\"><title>%s over time</title>",
               WIDTH, HEIGHT, c->title);
    grid(p, &s);
    for (unsigned i = c->line_count; i > 0; i--) /* the first line on top */
        line_path(p, c, &s, i - 1);
    pen_text(p, "</svg>");
    y_axis(p, c, &s);
    x_axis(p, &s);
    pen_text(p, "</div></figure>\n");
}

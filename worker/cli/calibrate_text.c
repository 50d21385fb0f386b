#include "worker/cli/calibrate_text.h"

#include "base/num.h"

#include <inttypes.h>
#include <stdio.h>

#define WHOLE_FROM     100.0 /* numbers from here on have no decimals */
#define TEXT_BYTES     64
#define WHY_BYTES      1024
#define SECOND_FROM_MS 1000.0

/* --- numbers ---------------------------------------------------------------------------------- */

/* "12,800", "3.5". */
static const char *count_text(double value, char ret[static TEXT_BYTES])
{
    char digits[NUM_FIXED_BYTES];
    size_t used = 0;
    num_format_fixed(value, value < WHOLE_FROM && value != (double)(int)value ? 1 : 0, digits);
    size_t whole = strcspn(digits, ".");
    for (size_t i = 0; digits[i] && used + 2 < TEXT_BYTES; i++) {
        if (i > 0 && i < whole && (whole - i) % 3 == 0)
            ret[used++] = ',';
        ret[used++] = digits[i];
    }
    ret[used] = '\0';
    return ret;
}

static const char *time_text(struct measure ms, char ret[static TEXT_BYTES])
{
    if (!ms.known)
        (void)snprintf(ret, TEXT_BYTES, "-"); /* all of these fit */
    else if (ms.value >= SECOND_FROM_MS)
        (void)snprintf(ret, TEXT_BYTES, "%.1f s", ms.value / 1000);
    else
        (void)snprintf(ret, TEXT_BYTES, "%.*f ms", ms.value < 1 ? 2 : 1, ms.value);
    return ret;
}

static const char *plural(double n)
{
    return n == 1 ? "" : "s";
}

/* "84 %", "3.2 %". */
static const char *pct_text(double pct, char ret[static TEXT_BYTES])
{
    (void)snprintf(ret, TEXT_BYTES, "%.*f %%", pct < 10 ? 1 : 0, pct); /* fits */
    return ret;
}

static double failed_pct(const struct capacity_window *w)
{
    return w->requests > 0 ? 100.0 * (double)w->failures / (double)w->requests : 0;
}

/* --- rows ------------------------------------------------------------------------------------- */

int calibrate_text_head(struct buf *out)
{
    return buf_printf(out, "%10s %12s %8s %9s %10s %10s %8s\n", "users", "requests/s", "CPU", "lag",
                      "median", "p95", "failed");
}

static const char *over_text(enum capacity_limit over)
{
    switch (over) {
    case CAPACITY_CPU:
        return "  too much CPU";
    case CAPACITY_LAG:
        return "  too late";
    case CAPACITY_FILES:
        return "  no file descriptors";
    case CAPACITY_PORTS:
        return "  no local ports";
    case CAPACITY_MEMORY:
        return "  no memory";
    case CAPACITY_FAILURES:
        return "  too many failures";
    case CAPACITY_NONE:
    case CAPACITY_TARGET:
    case CAPACITY_SILENCE:
    case CAPACITY_USERS:
    case CAPACITY_TIME:
    case CAPACITY_SIGNAL:
    case CAPACITY_SCENARIO:
        break;
    }
    return "";
}

int calibrate_text_row(const struct capacity_window *w, enum capacity_limit over, struct buf *out)
{
    char users[TEXT_BYTES], rate[TEXT_BYTES], p50[TEXT_BYTES], p95[TEXT_BYTES], lag[TEXT_BYTES];
    char cpu[TEXT_BYTES], failed[TEXT_BYTES] = "-";
    if (w->requests > 0)
        (void)snprintf(failed, sizeof failed, "%.0f %%", failed_pct(w)); /* fits */
    return buf_printf(out, "%10s %12s %8s %9s %10s %10s %8s%s\n", count_text(w->users, users),
                      count_text(capacity_rate(w), rate), pct_text(w->cpu_pct, cpu),
                      time_text(measure_of(w->loop_lag_ms), lag), time_text(w->p50_ms, p50),
                      time_text(w->p95_ms, p95), failed, over_text(over));
}

/* --- why -------------------------------------------------------------------------------------- */

static int why_lag(const struct capacity *s, struct buf *out)
{
    char users[TEXT_BYTES], lag[TEXT_BYTES], cpu[TEXT_BYTES];
    const struct capacity_window *w = &s->over;
    int rc = buf_printf(out, "this worker: its event loop is %s late with %s users",
                        time_text(measure_of(w->loop_lag_ms), lag), count_text(w->users, users));
    if (rc == 0 && w->cpu_pct <= s->options.cpu_limit_pct)
        rc = buf_printf(out,
                        ", though it uses %s of a core: other programs may take the CPU, and "
                        "a quiet machine may do more",
                        pct_text(w->cpu_pct, cpu));
    return rc;
}

static int why_files(const struct capacity *s, struct buf *out)
{
    char users[TEXT_BYTES];
    return s->has_over ? buf_printf(out,
                                    "this machine: file descriptors ran out with %s users "
                                    "(ulimit -Hn)",
                                    count_text(s->over.users, users))
                       : buf_printf(out, "this machine: open files allow %s users (ulimit -Hn)",
                                    count_text(s->options.users_max, users));
}

static int why_target(const struct calibration *c, struct buf *out)
{
    const struct capacity_window *from = &c->search.grown;
    const struct capacity_window *to = &c->windows[c->window_count - 1];
    char t[7][TEXT_BYTES];
    return buf_printf(out,
                      "the target: with %s users instead of %s it answers %s requests a second "
                      "instead of %s, in %s instead of %s, while this worker uses %s of a core",
                      count_text(to->users, t[0]), count_text(from->users, t[1]),
                      count_text(capacity_rate(to), t[2]), count_text(capacity_rate(from), t[3]),
                      time_text(to->p50_ms, t[4]), time_text(from->p50_ms, t[5]),
                      pct_text(to->cpu_pct, t[6]));
}

static int why_failures(const struct calibration *c, struct buf *out)
{
    char users[TEXT_BYTES];
    const struct capacity_window *w = &c->windows[c->window_count - 1];
    return buf_printf(out, "the target: %.0f %% of the requests failed with %s user%s (%s)",
                      failed_pct(w), count_text(w->users, users), plural(w->users), c->failure);
}

int calibrate_text_why(const struct calibration *c, struct buf *out)
{
    const struct capacity *s = &c->search;
    char users[TEXT_BYTES], cpu[TEXT_BYTES];
    switch (s->limit) {
    case CAPACITY_NONE:
        return 0;
    case CAPACITY_CPU:
        return buf_printf(out, "this worker: its busiest thread uses %s of a core with %s user%s",
                          pct_text(s->over.cpu_pct, cpu), count_text(s->over.users, users),
                          plural(s->over.users));
    case CAPACITY_LAG:
        return why_lag(s, out);
    case CAPACITY_FILES:
        return why_files(s, out);
    case CAPACITY_PORTS:
        return buf_printf(out,
                          "this machine: local ports ran out with %s users; more addresses "
                          "(--source-address) or targets help",
                          count_text(s->over.users, users));
    case CAPACITY_MEMORY:
        return buf_printf(out, "this machine: memory ran out with %s users",
                          count_text(s->over.users, users));
    case CAPACITY_TARGET:
        return why_target(c, out);
    case CAPACITY_FAILURES:
        return why_failures(c, out);
    case CAPACITY_SILENCE:
        return buf_printf(out,
                          "the target: no request ended within %" PRIu64
                          " s; a slow one needs a longer --step-time",
                          CAPACITY_SILENT * c->step_s);
    case CAPACITY_USERS:
        return buf_printf(out, "--users-max: %s users are all that were allowed",
                          count_text(s->options.users_max, users));
    case CAPACITY_TIME:
        return buf_printf(out, "--max-time: after %" PRIu64 " s the search was not at its end",
                          c->max_s);
    case CAPACITY_SIGNAL:
        return buf_add(out, STR("interrupted"));
    case CAPACITY_SCENARIO:
        return buf_add(out, STR("a step of the scenario stopped the run"));
    }
    return 0;
}

/* --- the answer ------------------------------------------------------------------------------- */

static int add_sustained(const struct calibration *c, const struct capacity_result *r,
                         struct buf *out)
{
    const struct capacity_options *o = &c->search.options;
    char users[TEXT_BYTES], rate[TEXT_BYTES];
    count_text(r->users.value, users);
    count_text(r->rate.value, rate);
    int rc = buf_printf(out, "One worker of %u thread%s ", c->threads, plural(c->threads));
    if (rc < 0)
        return rc;
    if (!r->rate.known)
        return buf_add(out, STR("was not measured within its limits.\n"));
    rc = buf_printf(out, "sustains %s%s", r->at_least ? "at least " : "",
                    r->estimated && !o->waits ? "about " : "");
    if (rc == 0 && o->waits)
        rc = buf_printf(out, "%s user%s (%s requests a second)", users, plural(r->users.value),
                        rate);
    else if (rc == 0)
        rc = buf_printf(out, "%s requests a second", rate);
    return rc < 0 ? rc
                  : buf_printf(out, " with at most %g %% CPU and %g ms lag.\n", o->cpu_limit_pct,
                               o->lag_limit_ms);
}

/* More than one tells how many threads that are: as many cores must be there. */
static int add_wish(const struct calibration *c, struct measure wished, const char *of,
                    struct measure sustained, bool at_most, struct buf *out)
{
    char load[TEXT_BYTES], workers[TEXT_BYTES], cores[TEXT_BYTES];
    struct measure n = capacity_workers(wished.value, sustained);
    if (!wished.known)
        return 0;
    int rc = buf_printf(out, "For %s %s: ", count_text(wished.value, load), of);
    if (rc < 0)
        return rc;
    if (!n.known)
        return buf_add(out, STR("not known.\n"));
    return buf_printf(out, "%s%s worker%s of %u thread%s (%s core%s).\n",
                      at_most && n.value > 1 ? "at most " : "", count_text(n.value, workers),
                      plural(n.value), c->threads, plural(c->threads),
                      count_text(n.value * c->threads, cores), plural(n.value * c->threads));
}

int calibrate_text_answer(const struct calibration *c, const struct calibrate_wish *wish,
                          struct buf *out)
{
    struct capacity_result r = capacity_result(&c->search);
    int rc = add_sustained(c, &r, out);
    if (rc == 0)
        rc = buf_add(out, STR("Limit: "));
    if (rc == 0)
        rc = calibrate_text_why(c, out);
    if (rc == 0)
        rc = buf_add(out, r.at_least && !c->search.has_over ? STR(". The worker could do more.\n")
                                                            : STR(".\n"));
    if (rc == 0)
        rc = add_wish(c, wish->users, "users", r.users, r.at_least, out);
    if (rc == 0)
        rc = add_wish(c, wish->rate, "requests a second", r.rate, r.at_least, out);
    return rc;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *number(struct measure m)
{
    if (!m.known)
        return json_null();
    bool whole = m.value == (double)(int64_t)m.value;
    return whole ? json_integer((json_int_t)m.value) : json_real(num_round(m.value, 3));
}

static json_t *window_json(const struct capacity *s, const struct capacity_window *w)
{
    enum capacity_limit over = capacity_judge(&s->options, w);
    struct measure failed = w->requests > 0 ? measure_of(failed_pct(w) / 100) : MEASURE_UNKNOWN;
    return json_pack("{s:I, s:I, s:o, s:o, s:I, s:o, s:o, s:o, s:I, s:o, s:o, s:o}", "users",
                     (json_int_t)w->users, "users_running", (json_int_t)w->running, "seconds",
                     number(measure_of(w->seconds)), "requests_per_s",
                     number(measure_of(capacity_rate(w))), "requests", (json_int_t)w->requests,
                     "failure_ratio", number(failed), "cpu_pct", number(measure_of(w->cpu_pct)),
                     "loop_lag_ms", number(measure_of(w->loop_lag_ms)), "late_starts",
                     (json_int_t)w->late_starts, "response_time_p50_ms", number(w->p50_ms),
                     "response_time_p95_ms", number(w->p95_ms), "over_limit",
                     over == CAPACITY_NONE ? json_null() : json_string(capacity_limit_name(over)));
}

static json_t *windows_json(const struct calibration *c)
{
    json_t *all = json_array();
    for (size_t i = 0; all && i < c->window_count; i++) {
        if (json_array_append_new(all, window_json(&c->search, &c->windows[i])) < 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

static json_t *why_json(const struct calibration *c)
{
    struct buf text;
    buf_init(&text, WHY_BYTES);
    json_t *why = calibrate_text_why(c, &text) == 0 ? json_string(buf_c(&text)) : NULL;
    buf_done(&text);
    return why;
}

static json_t *wish_json(const struct calibration *c, struct measure wished,
                         struct measure sustained)
{
    if (!wished.known)
        return json_null();
    struct measure workers = capacity_workers(wished.value, sustained);
    struct measure threads =
        workers.known ? measure_of(workers.value * c->threads) : MEASURE_UNKNOWN;
    return json_pack("{s:o, s:o, s:o}", "wished", number(wished), "workers", number(workers),
                     "threads", number(threads));
}

json_t *calibrate_json(const struct calibration *c, const struct calibrate_wish *wish)
{
    const struct capacity_options *o = &c->search.options;
    struct capacity_result r = capacity_result(&c->search);
    return json_pack(
        "{s:s, s:i, s:b, s:{s:o, s:o, s:I, s:I, s:I}, s:s, s:o, s:{s:o, s:o, s:b, s:b}, s:o, s:o, "
        "s:o}",
        "cicada", CICADA_VERSION, "threads", (int)c->threads, "waits", o->waits, "limits",
        "cpu_pct", number(measure_of(o->cpu_limit_pct)), "loop_lag_ms",
        number(measure_of(o->lag_limit_ms)), "users", (json_int_t)o->users_max, "step_time_s",
        (json_int_t)c->step_s, "max_time_s", (json_int_t)c->max_s, "limited_by",
        capacity_limit_name(c->search.limit), "why", why_json(c), "sustained", "users",
        number(r.users), "requests_per_s", number(r.rate), "at_least", r.at_least, "estimated",
        r.estimated, "for_users", wish_json(c, wish->users, r.users), "for_requests_per_s",
        wish_json(c, wish->rate, r.rate), "steps", windows_json(c));
}

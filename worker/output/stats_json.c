#include "worker/output/stats_json.h"

#include "base/num.h"
#include "worker/stats/seconds.h"

#include <inttypes.h>

/* --- pieces of JSON as Python writes them --------------------------------------------------- */

static void key(struct pen *p, const char *name, bool first)
{
    pen_printf(p, "%s\n        \"%s\": ", first ? "" : ",", name);
}

static void integer(struct pen *p, const char *name, uint64_t n)
{
    key(p, name, false);
    pen_printf(p, "%" PRIu64, n);
}

static void real(struct pen *p, double value)
{
    char digits[NUM_TEXT_BYTES];
    num_format_repr(value, digits);
    pen_text(p, digits);
}

/* One member of a {number: number} object. */
static void pair(struct pen *p, bool first, uint64_t k, uint64_t n)
{
    pen_printf(p, "%s\n            \"%" PRIu64 "\": %" PRIu64, first ? "" : ",", k, n);
}

static void seconds(struct pen *p, const char *name, const struct stats_seconds *s)
{
    key(p, name, false);
    pen_text(p, "{");
    for (uint32_t i = 0; i < s->count; i++)
        pair(p, i == 0, s->at[i].second, s->at[i].count);
    pen_text(p, s->count ? "\n        }" : "}");
}

static void buckets(struct pen *p, const struct stats_entry *e)
{
    uint32_t at = 0;
    uint64_t ms, count;
    bool first = true;
    key(p, "response_times", false);
    pen_text(p, "{");
    for (; stats_entry_next_bucket(e, &at, &ms, &count); first = false)
        pair(p, first, ms, count);
    pen_text(p, first ? "}" : "\n        }");
}

/* --- an entry ------------------------------------------------------------------------------- */

/* What Python adds up from floats is one; the 0 it began with, and max(0, 0.0), are integers. */
static void times(struct pen *p, const struct stats_entry *e)
{
    bool timed = e->min_response_time_us != UINT64_MAX;
    key(p, "total_response_time", false);
    if (timed)
        real(p, (double)e->total_response_time_us / 1000.0);
    else
        pen_text(p, "0");
    key(p, "max_response_time", false);
    if (e->max_response_time_us > 0)
        real(p, (double)e->max_response_time_us / 1000.0);
    else
        pen_text(p, "0");
    key(p, "min_response_time", false);
    if (timed)
        real(p, (double)e->min_response_time_us / 1000.0);
    else
        pen_text(p, "null");
}

static void entry(struct pen *p, const struct stats_entry *e)
{
    pen_text(p, "    {");
    key(p, "name", true);
    pen_json(p, e->name);
    key(p, "method", false);
    pen_json(p, e->method);
    key(p, "last_request_timestamp", false);
    if (e->last_request_s > 0)
        real(p, e->last_request_s);
    else
        pen_text(p, "null");
    key(p, "start_time", false);
    real(p, e->start_time_s);
    integer(p, "num_requests", e->num_requests);
    integer(p, "num_none_requests", e->num_none_requests);
    integer(p, "num_failures", e->num_failures);
    times(p, e);
    integer(p, "total_content_length", e->total_content_length_bytes);
    buckets(p, e);
    seconds(p, "num_reqs_per_sec", &e->num_reqs_per_sec);
    seconds(p, "num_fail_per_sec", &e->num_fail_per_sec);
    pen_text(p, "\n    }");
}

void stats_json(struct pen *p, const struct stats *s)
{
    bool first = true;
    pen_text(p, "[");
    for (uint32_t i = 0; i < stats_entry_count(s); i++) {
        if (!stats_entry_used(stats_entry_at(s, i)))
            continue;
        pen_text(p, first ? "\n" : ",\n");
        entry(p, stats_entry_at(s, i));
        first = false;
    }
    pen_text(p, first ? "]" : "\n]");
}

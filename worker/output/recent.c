#include "worker/output/recent.h"

#include "worker/stats/seconds.h"

#include <stdlib.h>
#include <string.h>

/* Locust keeps the state at the end of a second when the first request of a later one comes, under
 * the second before that request. At the tick of a second it is not known yet whether one will
 * come, so the state is put aside and kept at the next tick if one did. */

static void moment_done(struct recent_moment *m)
{
    free(m->buckets);
    *m = (struct recent_moment){0};
}

static int moment_of(const struct stats_entry *e, uint64_t second, struct recent_moment *ret)
{
    struct recent_moment m = {.second = second, .requests = e->num_requests};
    uint32_t at = 0;
    uint64_t ms, count;
    size_t n = 0;
    while (stats_entry_next_bucket(e, &at, &ms, &count))
        n++;
    m.buckets = calloc(n + 1, sizeof *m.buckets);
    if (!m.buckets)
        return -ENOMEM;
    for (at = 0; stats_entry_next_bucket(e, &at, &ms, &count);)
        m.buckets[m.count++] = (struct recent_bucket){ms, count};
    *ret = m;
    return 0;
}

/* Put a moment behind the kept ones, or in the place of the last when it is of the same second. */
static void keep(struct recent *w, struct recent_moment *m)
{
    struct recent_moment *last = w->kept_count ? &w->kept[w->kept_count - 1] : NULL;
    if (last && last->second >= m->second) {
        moment_done(last);
    } else if (w->kept_count == RECENT_KEPT) {
        moment_done(&w->kept[0]);
        memmove(w->kept, w->kept + 1, (RECENT_KEPT - 1) * sizeof *w->kept);
    } else {
        w->kept_count++;
    }
    w->kept[w->kept_count - 1] = *m;
    *m = (struct recent_moment){0};
}

/* An entry begins with nothing, in the second of its first request. */
static void begin(struct recent *w, const struct stats_entry *e)
{
    uint64_t first = e->num_reqs_per_sec.count ? e->num_reqs_per_sec.at[0].second : 0;
    struct recent_moment nothing = {.second = first};
    keep(w, &nothing);
}

int recent_note(struct recent *w, const struct stats_entry *e, uint64_t second)
{
    if (w->kept_count && e->num_requests < w->kept[w->kept_count - 1].requests)
        recent_done(w); /* the stats were reset */
    if (e->num_requests == 0 || second == 0)
        return 0;
    if (w->kept_count == 0)
        begin(w, e);
    if (w->has_next && stats_seconds_get(&e->num_reqs_per_sec, w->next.second + 1) > 0)
        keep(w, &w->next);
    else
        moment_done(&w->next);
    w->has_next = moment_of(e, second - 1, &w->next) == 0;
    return w->has_next ? 0 : -ENOMEM;
}

static const struct recent_moment *moment_at(const struct recent *w, uint64_t second)
{
    for (unsigned i = 0; i < w->kept_count; i++) {
        if (w->kept[i].second == second)
            return &w->kept[i];
    }
    return NULL;
}

/* Ten seconds ago, else the second nearest to it, the earlier of two first. */
static const struct recent_moment *moment_before(const struct recent *w, uint64_t second)
{
    if (second < 2 * RECENT_S)
        return NULL; /* no clock of today */
    const struct recent_moment *found = moment_at(w, second - RECENT_S);
    for (unsigned i = 1; !found && i < RECENT_S - 1; i++) {
        found = moment_at(w, second - RECENT_S - i);
        if (!found)
            found = moment_at(w, second - RECENT_S + i);
    }
    return found;
}

static uint64_t count_at(const struct recent_moment *m, uint64_t ms)
{
    for (size_t i = 0; i < m->count; i++) {
        if (m->buckets[i].ms == ms)
            return m->buckets[i].count;
    }
    return 0;
}

int recent_entry(const struct recent *w, const struct stats_entry *e, uint64_t second,
                 struct stats_entry **ret)
{
    struct stats_entry *recent;
    const struct recent_moment *then = moment_before(w, second);
    int rc = stats_entry_new(e->method, e->name, e->start_time_s, &recent);
    if (rc < 0)
        return rc;
    uint32_t at = 0;
    uint64_t ms, count;
    while (then && rc == 0 && stats_entry_next_bucket(e, &at, &ms, &count)) {
        uint64_t before = count_at(then, ms);
        if (count > before)
            rc = stats_entry_add_bucket(recent, ms, count - before);
    }
    if (rc < 0) {
        stats_entry_free(recent);
        return rc;
    }
    recent->num_requests = then ? e->num_requests - then->requests : 0;
    *ret = recent;
    return 0;
}

void recent_done(struct recent *w)
{
    for (unsigned i = 0; i < w->kept_count; i++)
        moment_done(&w->kept[i]);
    moment_done(&w->next);
    *w = (struct recent){0};
}

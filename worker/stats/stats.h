/* What Locust counts: entries by method and name, errors, per-second counts, response times in
 * Locust's buckets and beside them in exact histograms. One struct stats is one set of samples: a
 * shard fills one, hands it over and fills the other; the runner merges what it gets into the set
 * for the master and the set for the whole run. A set belongs to one thread at a time; handing it
 * over is done by passing the pointer. There is no total on the hot path: it is the sum of the
 * entries, made when it is asked for.
 * Source: locust/stats.py RequestStats, StatsEntry, StatsError, 2.47. */
#ifndef CICADA_WORKER_STATS_STATS_H
#define CICADA_WORKER_STATS_STATS_H

#include "base/err.h"
#include "base/str.h"
#include "worker/stats/entry.h"

#include <stdbool.h>
#include <stdint.h>

#define STATS_MAX_ENTRIES_DEFAULT 1000 /* further names are counted in "(other)" */
#define STATS_MAX_ERRORS_DEFAULT  1000 /* further texts are counted in "(other)" of their entry */
#define STATS_MAX_OTHERS          16 /* methods with an "(other)" of their own, beyond max_entries */

struct stats;

struct stats_limits {
    uint32_t max_entries; /* 0: the default */
    uint32_t max_errors;  /* 0: the default */
};

/* wall_s is the start_time of the entries made until the next clear. 0, -ENOMEM. */
MUST_USE int stats_new(struct stats_limits limits, double wall_s, struct stats **ret);
void stats_free(struct stats *s);

/* The slot of an entry, made when it is new. Slots count from 0 in the order of making and stay
 * valid until stats_free (a clear keeps them), so two sets that got the same names in the same
 * order have the same slots. method and name are copied, UTF-8 repaired. A new name beyond
 * max_entries gives the slot of (method, "(other)") and counts the folding; methods beyond
 * STATS_MAX_OTHERS share ("", "(other)"). A known name costs a hash look-up and no allocation.
 * 0, -ENOMEM (nothing changed). */
MUST_USE int stats_slot(struct stats *s, struct str method, struct str name, uint32_t *ret_slot);

/* Record one finished request. Never fails and, once a slot has seen such times before, never
 * allocates; when memory for a histogram cannot be had the sample still counts in everything else
 * and stats_lost_samples tells. */
void stats_record(struct stats *s, uint32_t slot, const struct stats_sample *sample);

/* Record the further times of a request that was recorded by stats_record; where they are measured.
 */
void stats_record_times(struct stats *s, uint32_t slot, const struct stats_times *times);

/* Record the failure of a request that was (or will be) recorded by stats_record too, as Locust
 * does: num_failures, num_fail_per_sec and the error's row. The text is copied when new. */
void stats_record_error(struct stats *s, uint32_t slot, struct str error, double wall_s);

/* Add everything of from to into; entries are matched by method and name, and the limits of into
 * hold. A set without samples changes nothing, its start_time included. from is unchanged.
 * 0; -ENOMEM: nothing was added. */
MUST_USE int stats_merge(struct stats *into, const struct stats *from);

/* Add an entry that stands alone, and an error that was counted in its entry before: for a set that
 * is put together from what was kept of another. The names are those of entries, UTF-8 repaired.
 * 0; -ENOMEM: nothing was added. */
MUST_USE int stats_add_entry(struct stats *s, const struct stats_entry *e);
MUST_USE int stats_add_error(struct stats *s, const struct stats_error *e);

/* Forget the samples, errors and counts of what was folded or lost; keep the slots and the memory.
 * wall_s is the new start_time: clear a set when it goes into use, not when it leaves it. */
void stats_clear(struct stats *s, double wall_s);

/* Reading, by whoever owns the set. */
uint32_t stats_entry_count(const struct stats *s);
const struct stats_entry *stats_entry_at(const struct stats *s, uint32_t slot);
uint32_t stats_error_count(const struct stats *s);
const struct stats_error *stats_error_at(const struct stats *s, uint32_t i);
bool stats_is_empty(const struct stats *s); /* no request and no failure since the clear */
/* How often a name or an error was folded into "(other)" (by a look-up, a failure, or for each row
 * of a merge); samples that could not be kept in full. */
uint64_t stats_folded_names(const struct stats *s);
uint64_t stats_folded_errors(const struct stats *s);
uint64_t stats_lost_samples(const struct stats *s);

/* The sum of all entries, named "Aggregated" with an empty method, as Locust's stats.total. The
 * caller owns it: stats_entry_free. start_time is that of the set. 0, -ENOMEM. */
MUST_USE int stats_total(const struct stats *s, struct stats_entry **ret);

#endif

#include "worker/stats/stats.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "worker/stats/error_key.h"
#include "worker/stats/row_index.h"

#include <stdlib.h>

/* Entries are reached by slot, an array index, on the hot path and by hash otherwise. They never go
 * away, so an entry's pointer and its names are good until stats_free; error rows borrow the names.
 * Errors are found by (slot, text) and go away with a clear, as in Locust: what a long run brings
 * forth piece by piece must not fill the table of a shard for good. */

#define OTHER STR("(other)")

struct error_row {
    struct stats_error shown; /* borrows the entry's names and the text below */
    char *text;
    uint32_t slot;
};

struct stats {
    struct stats_limits limits;
    double start_time_s;
    struct stats_entry **entries;
    uint32_t entry_count;
    uint32_t entry_cap;
    uint32_t other_count; /* of the entries: those made beyond max_entries */
    struct row_index entry_index;
    struct error_row *errors;
    uint32_t error_count;
    uint32_t error_cap;
    uint32_t error_other_count; /* of the errors: those made beyond max_errors */
    struct row_index error_index;
    uint64_t folded_names;
    uint64_t folded_errors;
    uint64_t lost_samples;
};

int stats_new(struct stats_limits limits, double wall_s, struct stats **ret)
{
    struct stats *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->limits.max_entries = limits.max_entries ? limits.max_entries : STATS_MAX_ENTRIES_DEFAULT;
    s->limits.max_errors = limits.max_errors ? limits.max_errors : STATS_MAX_ERRORS_DEFAULT;
    s->start_time_s = wall_s;
    *ret = s;
    return 0;
}

static void free_errors_from(struct stats *s, uint32_t first)
{
    for (uint32_t i = first; i < s->error_count; i++)
        free(s->errors[i].text);
    s->error_count = first;
}

void stats_free(struct stats *s)
{
    if (!s)
        return;
    row_index_done(&s->error_index);
    free_errors_from(s, 0);
    free(s->errors);
    row_index_done(&s->entry_index);
    for (uint32_t i = 0; i < s->entry_count; i++)
        stats_entry_free(s->entries[i]);
    free(s->entries);
    free(s);
}

/* Room for one element more in an array that doubles. */
static int grow(void **array, uint32_t count, uint32_t *cap, size_t size)
{
    if (count < *cap)
        return 0;
    uint32_t want = *cap ? *cap * 2 : 16;
    if (want <= *cap)
        return -ENOMEM;
    void *grown = realloc(*array, want * size);
    if (!grown)
        return -ENOMEM;
    *array = grown;
    *cap = want;
    return 0;
}

/* --- entries -------------------------------------------------------------------------------- */

static size_t entry_hash(struct str method, struct str name)
{
    return str_hash(name) * 31 + str_hash(method);
}

static bool find_entry(const struct stats *s, struct str method, struct str name,
                       uint32_t *ret_slot)
{
    size_t hash = entry_hash(method, name);
    uint32_t probe = 0, slot;
    while (row_index_next(&s->entry_index, hash, &probe, &slot)) {
        const struct stats_entry *e = s->entries[slot];
        if (str_eq(e->name, name) && str_eq(e->method, method)) {
            *ret_slot = slot;
            return true;
        }
    }
    return false;
}

static int make_entry(struct stats *s, struct str method, struct str name, uint32_t *ret_slot)
{
    void *entries = s->entries;
    int rc = grow(&entries, s->entry_count, &s->entry_cap, sizeof *s->entries);
    s->entries = entries;
    if (rc == 0)
        rc = row_index_reserve(&s->entry_index);
    if (rc == 0)
        rc = stats_entry_new(method, name, s->start_time_s, &s->entries[s->entry_count]);
    if (rc < 0)
        return rc;
    row_index_put(&s->entry_index, entry_hash(method, name), s->entry_count);
    *ret_slot = s->entry_count++;
    return 0;
}

/* The entry that stands for all names of this method that found no room. */
static int other_entry(struct stats *s, struct str method, uint32_t *ret_slot)
{
    if (find_entry(s, method, OTHER, ret_slot))
        return 0;
    if (s->other_count >= STATS_MAX_OTHERS) {
        method = STR("");
        if (find_entry(s, method, OTHER, ret_slot))
            return 0;
    }
    int rc = make_entry(s, method, OTHER, ret_slot);
    if (rc == 0)
        s->other_count++;
    return rc;
}

/* method and name are valid UTF-8. */
static int find_or_make_entry(struct stats *s, struct str method, struct str name,
                              uint32_t *ret_slot)
{
    if (find_entry(s, method, name, ret_slot))
        return 0;
    if (s->entry_count - s->other_count < s->limits.max_entries)
        return make_entry(s, method, name, ret_slot);
    int rc = other_entry(s, method, ret_slot);
    if (rc == 0 && !str_eq(name, OTHER)) /* one that was folded before was counted before */
        s->folded_names++;
    return rc;
}

int stats_slot(struct stats *s, struct str method, struct str name, uint32_t *ret_slot)
{
    if (find_entry(s, method, name, ret_slot))
        return 0;
    if (utf8_valid(method) && utf8_valid(name))
        return find_or_make_entry(s, method, name, ret_slot);
    struct buf b;
    buf_init(&b, SIZE_MAX - 1);
    int rc = utf8_add_repaired(&b, method);
    size_t method_len = b.len;
    if (rc == 0)
        rc = utf8_add_repaired(&b, name);
    if (rc == 0)
        rc = find_or_make_entry(s, str_sub(buf_str(&b), 0, method_len),
                                str_sub(buf_str(&b), method_len, b.len), ret_slot);
    buf_done(&b);
    return rc == -ERANGE ? -ENOMEM : rc;
}

void stats_record(struct stats *s, uint32_t slot, const struct stats_sample *sample)
{
    if (__builtin_expect(!stats_entry_record(s->entries[slot], sample), 0))
        s->lost_samples++;
}

void stats_record_times(struct stats *s, uint32_t slot, const struct stats_times *times)
{
    if (!stats_details_record(&s->entries[slot]->details, times))
        s->lost_samples++;
}

/* --- errors --------------------------------------------------------------------------------- */

static size_t error_hash(uint32_t slot, struct str text)
{
    return str_hash(text) + slot * UINT32_C(0x9e3779b9);
}

static bool find_error(const struct stats *s, uint32_t slot, struct str text, uint32_t *ret_row)
{
    uint32_t probe = 0, row;
    while (row_index_next(&s->error_index, error_hash(slot, text), &probe, &row)) {
        if (s->errors[row].slot == slot && str_eq(s->errors[row].shown.error, text)) {
            *ret_row = row;
            return true;
        }
    }
    return false;
}

static int make_error(struct stats *s, uint32_t slot, struct str text, uint32_t *ret_row)
{
    void *errors = s->errors;
    int rc = grow(&errors, s->error_count, &s->error_cap, sizeof *s->errors);
    s->errors = errors;
    if (rc == 0)
        rc = row_index_reserve(&s->error_index);
    if (rc < 0)
        return rc;
    char *copy = malloc(text.len + 1);
    if (!copy)
        return -ENOMEM;
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    const struct stats_entry *e = s->entries[slot];
    s->errors[s->error_count] = (struct error_row){
        .shown = {.method = e->method, .name = e->name, .error = {copy, text.len}},
        .text = copy,
        .slot = slot,
    };
    row_index_put(&s->error_index, error_hash(slot, text), s->error_count);
    *ret_row = s->error_count++;
    return 0;
}

/* text is valid UTF-8 and folded. */
static int find_or_make_error(struct stats *s, uint32_t slot, struct str text, uint32_t *ret_row)
{
    if (find_error(s, slot, text, ret_row))
        return 0;
    if (s->error_count - s->error_other_count < s->limits.max_errors)
        return make_error(s, slot, text, ret_row);
    int rc = 0;
    if (!find_error(s, slot, OTHER, ret_row)) {
        rc = make_error(s, slot, OTHER, ret_row);
        s->error_other_count += rc == 0;
    }
    if (rc == 0 && !str_eq(text, OTHER))
        s->folded_errors++;
    return rc;
}

static int error_row_of(struct stats *s, uint32_t slot, struct str text, uint32_t *ret_row)
{
    /* what is in the table is repaired and folded, so a text found as it is needs neither */
    if (find_error(s, slot, text, ret_row))
        return 0;
    struct buf repaired, folded;
    buf_init(&repaired, SIZE_MAX - 1);
    buf_init(&folded, SIZE_MAX - 1);
    int rc = utf8_add_repaired(&repaired, text);
    if (rc == 0)
        rc = error_text_add(&folded, buf_str(&repaired));
    if (rc == 0)
        rc = find_or_make_error(s, slot, buf_str(&folded), ret_row);
    buf_done(&folded);
    buf_done(&repaired);
    return rc;
}

static void count_error(struct stats_error *e, uint64_t occurrences, double first_s, double last_s)
{
    if (e->occurrences == 0 || first_s < e->first_seen_s)
        e->first_seen_s = first_s;
    if (e->occurrences == 0 || last_s > e->last_seen_s)
        e->last_seen_s = last_s;
    e->occurrences += occurrences;
}

void stats_record_error(struct stats *s, uint32_t slot, struct str error, double wall_s)
{
    bool kept = stats_entry_record_failure(s->entries[slot], wall_s);
    uint32_t row;
    if (error_row_of(s, slot, error, &row) == 0)
        count_error(&s->errors[row].shown, 1, wall_s, wall_s);
    else
        kept = false;
    if (!kept)
        s->lost_samples++;
}

/* --- merging -------------------------------------------------------------------------------- */

/* Where the rows of one set go in another. */
struct merge {
    uint32_t *slots;           /* by from's slot; only those of used entries are set */
    uint32_t *errors;          /* by from's error */
    struct stats_entry *total; /* of from; NULL until something has to be folded */
};

static int merge_init(struct merge *m, const struct stats *from)
{
    m->slots = malloc((from->entry_count + 1) * sizeof *m->slots);
    m->errors = malloc((from->error_count + 1) * sizeof *m->errors);
    return m->slots && m->errors ? 0 : -ENOMEM;
}

static void merge_done(struct merge *m)
{
    stats_entry_free(m->total);
    free(m->errors);
    free(m->slots);
}

/* Room for e. Several rows may end in one "(other)"; all of them together need no more than the
 * total of the set. */
static int merge_reserve(struct merge *m, struct stats_entry *into, const struct stats *from,
                         const struct stats_entry *e)
{
    if (!str_eq(into->name, OTHER))
        return stats_entry_reserve(into, e);
    int rc = m->total ? 0 : stats_total(from, &m->total);
    return rc < 0 ? rc : stats_entry_reserve(into, m->total);
}

/* Make the rows that into lacks, and room in all of them: everything that can fail. */
static int merge_prepare(struct merge *m, struct stats *into, const struct stats *from)
{
    for (uint32_t i = 0; i < from->entry_count; i++) {
        const struct stats_entry *e = from->entries[i];
        if (!stats_entry_used(e))
            continue;
        int rc = find_or_make_entry(into, e->method, e->name, &m->slots[i]);
        if (rc == 0)
            rc = merge_reserve(m, into->entries[m->slots[i]], from, e);
        if (rc < 0)
            return rc;
    }
    for (uint32_t i = 0; i < from->error_count; i++) {
        const struct error_row *row = &from->errors[i];
        int rc = find_or_make_error(into, m->slots[row->slot], row->shown.error, &m->errors[i]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Take away the rows that a failed merge made, so that nothing of it can be seen. */
static void merge_undo(struct stats *into, const struct stats *before)
{
    free_errors_from(into, before->error_count);
    row_index_clear(&into->error_index);
    for (uint32_t i = 0; i < into->error_count; i++) {
        const struct error_row *row = &into->errors[i];
        row_index_put(&into->error_index, error_hash(row->slot, row->shown.error), i);
    }
    while (into->entry_count > before->entry_count)
        stats_entry_free(into->entries[--into->entry_count]);
    row_index_clear(&into->entry_index);
    for (uint32_t i = 0; i < into->entry_count; i++)
        row_index_put(&into->entry_index,
                      entry_hash(into->entries[i]->method, into->entries[i]->name), i);
    into->other_count = before->other_count;
    into->error_other_count = before->error_other_count;
    into->folded_names = before->folded_names;
    into->folded_errors = before->folded_errors;
}

int stats_merge(struct stats *into, const struct stats *from)
{
    if (stats_is_empty(from))
        return 0;
    const struct stats before = *into;
    struct merge m = {0};
    int rc = merge_init(&m, from);
    if (rc == 0) {
        rc = merge_prepare(&m, into, from);
        if (rc < 0)
            merge_undo(into, &before);
    }
    for (uint32_t i = 0; rc == 0 && i < from->entry_count; i++) {
        if (stats_entry_used(from->entries[i]))
            rc = stats_entry_merge(into->entries[m.slots[i]], from->entries[i]);
    }
    if (rc == 0) {
        for (uint32_t i = 0; i < from->error_count; i++) {
            const struct stats_error *e = &from->errors[i].shown;
            count_error(&into->errors[m.errors[i]].shown, e->occurrences, e->first_seen_s,
                        e->last_seen_s);
        }
        if (from->start_time_s < into->start_time_s)
            into->start_time_s = from->start_time_s;
        into->folded_names += from->folded_names;
        into->folded_errors += from->folded_errors;
        into->lost_samples += from->lost_samples;
    }
    merge_done(&m);
    return rc;
}

int stats_add_entry(struct stats *s, const struct stats_entry *e)
{
    uint32_t slot;
    int rc = stats_slot(s, e->method, e->name, &slot);
    return rc < 0 ? rc : stats_entry_merge(s->entries[slot], e);
}

int stats_add_error(struct stats *s, const struct stats_error *e)
{
    uint32_t slot, row;
    int rc = stats_slot(s, e->method, e->name, &slot);
    if (rc == 0)
        rc = error_row_of(s, slot, e->error, &row);
    if (rc == 0)
        count_error(&s->errors[row].shown, e->occurrences, e->first_seen_s, e->last_seen_s);
    return rc == -ERANGE ? -ENOMEM : rc;
}

void stats_clear(struct stats *s, double wall_s)
{
    s->start_time_s = wall_s;
    for (uint32_t i = 0; i < s->entry_count; i++)
        stats_entry_clear(s->entries[i], wall_s);
    free_errors_from(s, 0);
    row_index_clear(&s->error_index);
    s->error_other_count = 0;
    s->folded_names = 0;
    s->folded_errors = 0;
    s->lost_samples = 0;
}

/* --- reading -------------------------------------------------------------------------------- */

uint32_t stats_entry_count(const struct stats *s)
{
    return s->entry_count;
}

const struct stats_entry *stats_entry_at(const struct stats *s, uint32_t slot)
{
    return s->entries[slot];
}

uint32_t stats_error_count(const struct stats *s)
{
    return s->error_count;
}

const struct stats_error *stats_error_at(const struct stats *s, uint32_t i)
{
    return &s->errors[i].shown;
}

bool stats_is_empty(const struct stats *s)
{
    for (uint32_t i = 0; i < s->entry_count; i++) {
        if (stats_entry_used(s->entries[i]))
            return false;
    }
    return true;
}

uint64_t stats_folded_names(const struct stats *s)
{
    return s->folded_names;
}

uint64_t stats_folded_errors(const struct stats *s)
{
    return s->folded_errors;
}

uint64_t stats_lost_samples(const struct stats *s)
{
    return s->lost_samples;
}

int stats_total(const struct stats *s, struct stats_entry **ret)
{
    struct stats_entry *total;
    int rc = stats_entry_new(STR(""), STR("Aggregated"), s->start_time_s, &total);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; rc == 0 && i < s->entry_count; i++) {
        if (stats_entry_used(s->entries[i]))
            rc = stats_entry_merge(total, s->entries[i]);
    }
    if (rc < 0) {
        stats_entry_free(total);
        return rc;
    }
    total->start_time_s = s->start_time_s;
    *ret = total;
    return 0;
}

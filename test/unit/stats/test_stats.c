#include "worker/stats/stats.h"

#include "base/random.h"
#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define NO_LIMITS ((struct stats_limits){0, 0})

static struct stats *set(struct stats_limits limits)
{
    struct stats *s;
    assert_int_equal(stats_new(limits, 1000, &s), 0);
    return s;
}

static uint32_t slot(struct stats *s, const char *method, const char *name)
{
    uint32_t ret;
    assert_int_equal(stats_slot(s, str_of(method), str_of(name), &ret), 0);
    return ret;
}

static void record(struct stats *s, uint32_t at, uint64_t us, double wall_s)
{
    stats_record(s, at, &(struct stats_sample){us, us % 1000, wall_s});
}

/* --- two sets hold the same samples ---------------------------------------------------------- */

static void assert_same_seconds(const struct stats_seconds *a, const struct stats_seconds *b)
{
    assert_int_equal(a->count, b->count);
    if (a->count)
        assert_memory_equal(a->at, b->at, a->count * sizeof *a->at);
}

static void assert_same_entry(const struct stats_entry *a, const struct stats_entry *b)
{
    assert_true(a->num_requests == b->num_requests);
    assert_true(a->num_failures == b->num_failures);
    assert_true(a->total_response_time_us == b->total_response_time_us);
    assert_true(a->min_response_time_us == b->min_response_time_us);
    assert_true(a->max_response_time_us == b->max_response_time_us);
    assert_true(a->total_content_length_bytes == b->total_content_length_bytes);
    assert_true(a->start_time_s == b->start_time_s);
    assert_true(a->last_request_s == b->last_request_s);
    assert_same_seconds(&a->num_reqs_per_sec, &b->num_reqs_per_sec);
    assert_same_seconds(&a->num_fail_per_sec, &b->num_fail_per_sec);
    uint32_t at_a = 0, at_b = 0;
    uint64_t key_a = 0, key_b = 0, count_a = 0, count_b = 0;
    while (stats_entry_next_bucket(a, &at_a, &key_a, &count_a)) {
        assert_true(stats_entry_next_bucket(b, &at_b, &key_b, &count_b));
        assert_true(key_a == key_b && count_a == count_b);
    }
    assert_false(stats_entry_next_bucket(b, &at_b, &key_b, &count_b));
    at_a = at_b = 0;
    while (histogram_next(&a->response_times, &at_a, &key_a, &count_a)) {
        assert_true(histogram_next(&b->response_times, &at_b, &key_b, &count_b));
        assert_true(key_a == key_b && count_a == count_b);
    }
    assert_false(histogram_next(&b->response_times, &at_b, &key_b, &count_b));
    assert_true(a->response_times.count == b->response_times.count);
}

static const struct stats_entry *entry_named(const struct stats *s, const struct stats_entry *like)
{
    for (uint32_t i = 0; i < stats_entry_count(s); i++) {
        const struct stats_entry *e = stats_entry_at(s, i);
        if (str_eq(e->method, like->method) && str_eq(e->name, like->name))
            return e;
    }
    fail_msg("no entry '%.*s'", STR_ARG(like->name));
    return NULL;
}

static const struct stats_error *error_like(const struct stats *s, const struct stats_error *like)
{
    for (uint32_t i = 0; i < stats_error_count(s); i++) {
        const struct stats_error *e = stats_error_at(s, i);
        if (str_eq(e->method, like->method) && str_eq(e->name, like->name) &&
            str_eq(e->error, like->error))
            return e;
    }
    fail_msg("no error '%.*s'", STR_ARG(like->error));
    return NULL;
}

static void assert_same(const struct stats *a, const struct stats *b)
{
    assert_int_equal(stats_entry_count(a), stats_entry_count(b));
    for (uint32_t i = 0; i < stats_entry_count(a); i++)
        assert_same_entry(stats_entry_at(a, i), entry_named(b, stats_entry_at(a, i)));
    assert_int_equal(stats_error_count(a), stats_error_count(b));
    for (uint32_t i = 0; i < stats_error_count(a); i++) {
        const struct stats_error *x = stats_error_at(a, i), *y = error_like(b, x);
        assert_true(x->occurrences == y->occurrences);
        assert_true(x->first_seen_s == y->first_seen_s);
        assert_true(x->last_seen_s == y->last_seen_s);
    }
    struct stats_entry *total_a, *total_b;
    assert_int_equal(stats_total(a, &total_a), 0);
    assert_int_equal(stats_total(b, &total_b), 0);
    assert_same_entry(total_a, total_b);
    stats_entry_free(total_a);
    stats_entry_free(total_b);
    assert_true(stats_folded_names(a) == stats_folded_names(b));
    assert_true(stats_folded_errors(a) == stats_folded_errors(b));
    assert_true(stats_lost_samples(a) == stats_lost_samples(b));
}

/* --- tests ----------------------------------------------------------------------------------- */

static void test_slots_count_from_zero_and_stay(void **state)
{
    (void)state;
    struct stats *s = set(NO_LIMITS);
    assert_int_equal(slot(s, "GET", "/a"), 0);
    assert_int_equal(slot(s, "POST", "/a"), 1);
    assert_int_equal(slot(s, "", ""), 2);
    /* the same bytes, cut elsewhere */
    assert_int_equal(slot(s, "GET/", "a"), 3);
    char name[32];
    for (unsigned i = 0; i < 500; i++) {
        (void)snprintf(name, sizeof name, "/%u", i); /* fits */
        assert_int_equal(slot(s, "GET", name), 4 + i);
    }
    const struct stats_entry *first = stats_entry_at(s, 0);
    stats_clear(s, 1001);
    assert_int_equal(slot(s, "GET", "/a"), 0);
    assert_int_equal(slot(s, "GET", "/499"), 503);
    assert_ptr_equal(stats_entry_at(s, 0), first);
    assert_true(first->start_time_s == 1001);
    stats_free(s);
    stats_free(NULL);
}

static void test_known_names_are_found_without_allocation(void **state)
{
    (void)state;
    struct stats *s = set((struct stats_limits){2, 0});
    (void)slot(s, "GET", "/a");
    (void)slot(s, "GET", "/b");
    (void)slot(s, "GET", "/c");
    alloc_fail_at(0);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(slot(s, "GET", "/b"), 1);
        assert_int_equal(slot(s, "GET", "/unknown"), 2);
    }
    assert_int_equal(alloc_count(), 0);
    stats_free(s);
}

static void test_invalid_utf8_is_repaired_once(void **state)
{
    (void)state;
    struct stats *s = set(NO_LIMITS);
    uint32_t a = slot(s, "GE\xFFT", "/caf\xC3");
    assert_int_equal(slot(s, "GE\xFFT", "/caf\xC3"), a);
    assert_int_equal(slot(s, "GE\xEF\xBF\xBDT", "/caf\xEF\xBF\xBD"), a);
    assert_int_equal(stats_entry_count(s), 1);
    assert_true(str_eq(stats_entry_at(s, a)->name, STR("/caf\xEF\xBF\xBD")));
    stats_record_error(s, a, STR("bad \xC3("), 1001);
    stats_record_error(s, a, STR("bad \xEF\xBF\xBD("), 1002);
    assert_int_equal(stats_error_count(s), 1);
    assert_true(stats_error_at(s, 0)->occurrences == 2);
    /* a NUL is a character like others */
    uint32_t nul;
    assert_int_equal(stats_slot(s, STR("GET"), STR("/\0x"), &nul), 0);
    assert_int_equal(stats_entry_at(s, nul)->name.len, 3);
    stats_free(s);
}

static void test_errors_are_rows_by_entry_and_text(void **state)
{
    (void)state;
    struct stats *s = set(NO_LIMITS);
    uint32_t a = slot(s, "GET", "/a"), b = slot(s, "GET", "/b");
    stats_record_error(s, a, STR("HTTP 500"), 1001.5);
    stats_record_error(s, b, STR("HTTP 500"), 1002);
    stats_record_error(s, a, STR("HTTP 500"), 1000.5);
    stats_record_error(s, a, STR("<x.Y object at 0x7f01> and 0x7f01"), 1003);
    stats_record_error(s, a, STR("<x.Y object at 0x7f02> and 0x7f02"), 1004);
    stats_record_error(s, a, STR(""), 1005);
    assert_int_equal(stats_error_count(s), 4);
    const struct stats_error *e = stats_error_at(s, 0);
    assert_true(e->occurrences == 2 && e->first_seen_s == 1000.5 && e->last_seen_s == 1001.5);
    assert_true(str_eq(e->name, STR("/a")));
    e = stats_error_at(s, 2);
    assert_true(str_eq(e->error, STR("<x.Y object at 0x....> and 0x....")));
    assert_true(e->occurrences == 2);
    assert_true(stats_entry_at(s, a)->num_failures == 5);
    stats_clear(s, 1010);
    assert_int_equal(stats_error_count(s), 0);
    stats_record_error(s, b, STR("HTTP 500"), 1011);
    assert_true(stats_error_at(s, 0)->occurrences == 1);
    stats_free(s);
}

static void test_names_beyond_the_limit_are_folded(void **state)
{
    (void)state;
    struct stats *s = set((struct stats_limits){3, 0});
    char name[32];
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "/%u", i); /* fits */
        record(s, slot(s, i % 2 ? "GET" : "POST", name), 1000, 1001);
    }
    assert_int_equal(stats_entry_count(s), 5);
    assert_int_equal(stats_folded_names(s), 997);
    const struct stats_entry *other = stats_entry_at(s, slot(s, "GET", "/new"));
    assert_true(str_eq(other->name, STR("(other)")) && str_eq(other->method, STR("GET")));
    assert_true(other->num_requests == 499);
    stats_clear(s, 1002);
    assert_int_equal(stats_folded_names(s), 0);
    /* methods are bounded too: as many as may have an "(other)", and one for the rest */
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "M%u", i); /* fits */
        (void)slot(s, name, "/");
    }
    assert_int_equal(stats_entry_count(s), 3 + STATS_MAX_OTHERS + 1);
    stats_free(s);
}

static void test_errors_beyond_the_limit_are_folded(void **state)
{
    (void)state;
    struct stats *s = set((struct stats_limits){0, 3});
    uint32_t a = slot(s, "GET", "/a"), b = slot(s, "GET", "/b");
    char text[32];
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(text, sizeof text, "error %u", i); /* fits */
        stats_record_error(s, i % 2 ? a : b, str_of(text), 1001);
    }
    assert_int_equal(stats_error_count(s), 5);
    assert_int_equal(stats_folded_errors(s), 997);
    uint64_t occurrences = 0;
    for (uint32_t i = 0; i < stats_error_count(s); i++)
        occurrences += stats_error_at(s, i)->occurrences;
    assert_int_equal(occurrences, 1000);
    assert_true(stats_entry_at(s, a)->num_failures == 500);
    stats_free(s);
}

static void test_total_is_the_sum_of_the_entries(void **state)
{
    (void)state;
    struct stats *s = set(NO_LIMITS);
    struct stats_entry *total;
    assert_true(stats_is_empty(s));
    (void)slot(s, "GET", "/unused");
    assert_int_equal(stats_total(s, &total), 0);
    assert_true(str_eq(total->name, STR("Aggregated")));
    assert_int_equal(total->method.len, 0);
    assert_non_null(total->method.ptr);
    assert_true(total->min_response_time_us == UINT64_MAX);
    assert_true(total->last_request_s == 0);
    assert_true(total->start_time_s == 1000);
    stats_entry_free(total);
    record(s, slot(s, "GET", "/a"), 5000, 1003);
    record(s, slot(s, "GET", "/b"), 3000, 1002);
    stats_record_error(s, 2, STR("x"), 1002);
    assert_false(stats_is_empty(s));
    assert_int_equal(stats_total(s, &total), 0);
    assert_true(total->num_requests == 2);
    assert_true(total->num_failures == 1);
    assert_true(total->min_response_time_us == 3000);
    assert_true(total->last_request_s == 1003);
    assert_int_equal(total->num_reqs_per_sec.count, 2);
    stats_entry_free(total);
    stats_free(s);
}

static void test_an_empty_set_merges_without_a_trace(void **state)
{
    (void)state;
    struct stats *into = set(NO_LIMITS), *from = set(NO_LIMITS);
    (void)slot(from, "GET", "/a");
    stats_clear(from, 5);
    assert_int_equal(stats_merge(into, from), 0);
    assert_int_equal(stats_entry_count(into), 0);
    struct stats_entry *total;
    assert_int_equal(stats_total(into, &total), 0);
    assert_true(total->start_time_s == 1000);
    stats_entry_free(total);
    stats_free(from);
    stats_free(into);
}

static void test_folded_rows_merge_into_folded_rows(void **state)
{
    (void)state;
    struct stats *into = set((struct stats_limits){2, 1});
    struct stats *from = set(NO_LIMITS);
    char name[32];
    for (unsigned i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof name, "/%u", i); /* fits */
        uint32_t at = slot(from, "GET", name);
        record(from, at, 1000 * i, 1000 + i);
        stats_record_error(from, at, str_of(name), 1000 + i);
    }
    assert_int_equal(stats_merge(into, from), 0);
    assert_int_equal(stats_entry_count(into), 3);
    assert_int_equal(stats_folded_names(into), 18);
    const struct stats_entry *other = stats_entry_at(into, 2);
    assert_true(other->num_requests == 18);
    assert_int_equal(other->num_reqs_per_sec.count, 18);
    assert_int_equal(stats_error_count(into), 3);
    assert_int_equal(stats_folded_errors(into), 19);
    /* what is folded already is not folded again */
    struct stats *again = set((struct stats_limits){2, 1});
    assert_int_equal(stats_merge(again, into), 0);
    assert_same(again, into);
    stats_free(again);
    stats_free(from);
    stats_free(into);
}

/* Samples go to two shards' sets, whose deltas are merged at any time; in the end the sum is what
 * one set would hold that had got them all. */
static void test_deltas_lose_and_double_nothing(void **state)
{
    (void)state;
    uint64_t seed = rng_seed_from_system();
    print_message("seed %llu\n", (unsigned long long)seed);
    struct rng r;
    rng_init(&r, seed);
    for (unsigned run = 0; run < 20; run++) {
        struct stats *all = set(NO_LIMITS), *sum = set(NO_LIMITS);
        struct stats *shards[2] = {set(NO_LIMITS), set(NO_LIMITS)};
        double wall_s = 1000;
        char name[32], text[32];
        for (unsigned i = 0; i < 5000; i++) {
            struct stats *shard = shards[rng_below(&r, 2)];
            wall_s += rng_unit(&r) * 0.1 - (rng_below(&r, 200) == 0 ? 2 : 0);
            if (wall_s < 1000)
                wall_s = 1000;
            (void)snprintf(name, sizeof name, "/%u", (unsigned)rng_below(&r, 12)); /* fits */
            (void)snprintf(text, sizeof text, "%u", (unsigned)rng_below(&r, 5));   /* fits */
            switch (rng_below(&r, 50)) {
            case 0:
                assert_int_equal(stats_merge(sum, shard), 0);
                stats_clear(shard, wall_s);
                break;
            case 1:
            case 2:
            case 3:
                stats_record_error(shard, slot(shard, "GET", name), str_of(text), wall_s);
                stats_record_error(all, slot(all, "GET", name), str_of(text), wall_s);
                break;
            default: {
                uint64_t us = rng_u64(&r) >> (24 + rng_below(&r, 40));
                record(shard, slot(shard, "GET", name), us, wall_s);
                record(all, slot(all, "GET", name), us, wall_s);
            }
            }
        }
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(stats_merge(sum, shards[i]), 0);
            stats_free(shards[i]);
        }
        assert_same(sum, all);
        stats_free(sum);
        stats_free(all);
    }
}

static struct stats *sample_set(struct stats_limits limits, unsigned first, unsigned end)
{
    struct stats *s = set(limits);
    char name[32];
    for (unsigned i = first; i < end; i++) {
        (void)snprintf(name, sizeof name, "/%u", i); /* fits */
        uint32_t at = slot(s, "GET", name);
        for (uint64_t us = 1; us < 100000000; us *= 5)
            record(s, at, us, 1000 + i);
        stats_record_error(s, at, str_of(name), 1000 + i);
    }
    return s;
}

static void test_a_failed_merge_adds_nothing(void **state)
{
    (void)state;
    static const struct stats_limits limits[] = {{0, 0}, {8, 4}};
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        struct stats *from = sample_set(NO_LIMITS, 3, 40);
        struct stats *want = sample_set(limits[l], 0, 6);
        assert_int_equal(stats_merge(want, from), 0);
        for (unsigned long n = 1;; n++) {
            struct stats *into = sample_set(limits[l], 0, 6);
            struct stats *before = sample_set(limits[l], 0, 6);
            alloc_fail_at(n);
            int rc = stats_merge(into, from);
            bool failed = alloc_failed();
            alloc_fail_at(0);
            assert_int_equal(rc, failed ? -ENOMEM : 0);
            assert_same(into, failed ? before : want);
            if (failed) { /* and it can be tried again */
                assert_int_equal(stats_merge(into, from), 0);
                assert_same(into, want);
            }
            stats_free(before);
            stats_free(into);
            if (!failed)
                break;
        }
        stats_free(want);
        stats_free(from);
    }
}

static void test_without_memory_slots_fail_and_samples_are_told_lost(void **state)
{
    (void)state;
    for (unsigned long n = 1;; n++) {
        alloc_fail_at(n);
        struct stats *s = NULL;
        uint32_t at = 0;
        int rc = stats_new(NO_LIMITS, 1000, &s);
        if (rc == 0)
            rc = stats_slot(s, STR("GET"), STR("/\xFF"), &at);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        if (s && failed)
            assert_int_equal(stats_entry_count(s), 0);
        stats_free(s);
        if (!failed)
            break;
    }
    for (unsigned long n = 1;; n++) {
        struct stats *s = set(NO_LIMITS);
        uint32_t at = slot(s, "GET", "/");
        alloc_fail_at(n);
        record(s, at, 1000, 1001);
        stats_record_error(s, at, STR("<a object at 0x1> \xFF"), 1001);
        struct stats_entry *total = NULL;
        int rc = stats_total(s, &total);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_true(stats_entry_at(s, at)->num_requests == 1);
        assert_true(stats_entry_at(s, at)->num_failures == 1);
        assert_true((stats_lost_samples(s) > 0 || rc == -ENOMEM) == failed);
        stats_entry_free(total);
        stats_free(s);
        if (!failed)
            break;
    }
}

static void test_a_set_is_put_together_again(void **state)
{
    (void)state;
    struct stats *s = sample_set((struct stats_limits){0, 0}, 0, 500), *copy;
    assert_int_equal(stats_new((struct stats_limits){0, 0}, 1000, &copy), 0);
    for (uint32_t i = 0; i < stats_entry_count(s); i++)
        assert_int_equal(stats_add_entry(copy, stats_entry_at(s, i)), 0);
    for (uint32_t i = 0; i < stats_error_count(s); i++)
        assert_int_equal(stats_add_error(copy, stats_error_at(s, i)), 0);
    assert_same(s, copy);
    stats_free(copy);
    stats_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_count_from_zero_and_stay),
        cmocka_unit_test(test_known_names_are_found_without_allocation),
        cmocka_unit_test(test_invalid_utf8_is_repaired_once),
        cmocka_unit_test(test_errors_are_rows_by_entry_and_text),
        cmocka_unit_test(test_names_beyond_the_limit_are_folded),
        cmocka_unit_test(test_errors_beyond_the_limit_are_folded),
        cmocka_unit_test(test_total_is_the_sum_of_the_entries),
        cmocka_unit_test(test_an_empty_set_merges_without_a_trace),
        cmocka_unit_test(test_folded_rows_merge_into_folded_rows),
        cmocka_unit_test(test_deltas_lose_and_double_nothing),
        cmocka_unit_test(test_a_failed_merge_adds_nothing),
        cmocka_unit_test(test_a_set_is_put_together_again),
        cmocka_unit_test(test_without_memory_slots_fail_and_samples_are_told_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "facts/frontiers.h"

#include "base/num.h"

#include <stdlib.h>

#define FRONTIER_DIGITS 2
#define RATIO_DIGITS    4 /* of each sample's ratio, before the percentile is taken */

struct measure failure_ratio(uint64_t failures, uint64_t requests)
{
    return requests ? measure_of((double)failures / (double)requests) : MEASURE_UNKNOWN;
}

bool users_steady(double users, double reference)
{
    /* in tenths on both sides: 0.9 * reference would round */
    return users > 0 && users * 10 >= reference * FRONTIERS_STEADY_TENTHS;
}

static double peak_users(const struct users_sample *samples, size_t count)
{
    double peak = 0;
    for (size_t i = 0; i < count; i++)
        peak = samples[i].users > peak ? samples[i].users : peak;
    return peak;
}

double users_reference(const struct users_sample *samples, size_t count, struct measure target)
{
    double peak = peak_users(samples, count);
    bool reached = target.known && target.value > 0 && users_steady(peak, target.value);
    return reached ? target.value : peak;
}

struct measure nearest_rank(const double *sorted, size_t count, double q)
{
    if (count == 0)
        return MEASURE_UNKNOWN;
    size_t rank = (size_t)((double)count * q);
    return measure_of(sorted[rank < count ? rank : count - 1]);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sort_doubles(double *values, size_t count)
{
    if (count > 1)
        qsort(values, count, sizeof *values, ascending);
}

static struct measure over(struct measure amount, struct measure capacity)
{
    if (!amount.known || !capacity.known || capacity.value <= 0)
        return MEASURE_UNKNOWN;
    return measure_of(num_round(amount.value / capacity.value, FRONTIER_DIGITS));
}

static struct measure rounded(struct measure m)
{
    return m.known ? measure_of(num_round(m.value, FRONTIER_DIGITS)) : m;
}

/* Percentiles of actors per pod: over all samples, or those that are steady against reference. */
static void ratios(const struct frontiers_input *in, bool steady_only, double reference,
                   double *scratch, struct measure *ret_p50, struct measure *ret_p90,
                   struct measure *ret_p99)
{
    size_t n = 0;
    double pods = in->worker_pod_count.value;
    if (!in->worker_pod_count.known || pods <= 0)
        return;
    for (size_t i = 0; i < in->sample_count; i++) {
        double users = in->samples[i].users;
        if (!steady_only || users_steady(users, reference))
            scratch[n++] = num_round(users * in->actors_per_user / pods, RATIO_DIGITS);
    }
    sort_doubles(scratch, n);
    *ret_p50 = rounded(nearest_rank(scratch, n, 0.50));
    *ret_p90 = rounded(nearest_rank(scratch, n, 0.90));
    *ret_p99 = rounded(nearest_rank(scratch, n, 0.99));
}

int frontiers_compute(const struct frontiers_input *in, struct frontiers *ret)
{
    struct frontiers f = {0};
    struct measure peak = MEASURE_UNKNOWN;
    double *scratch = calloc(in->sample_count + 1, sizeof *scratch);
    if (!scratch)
        return -ENOMEM;
    if (in->sample_count > 0)
        peak = measure_of(peak_users(in->samples, in->sample_count) * in->actors_per_user);
    f.actors_per_node = over(peak, in->node_count);
    f.actors_per_vcpu = over(peak, in->allocatable_cores);
    f.actors_per_gb_ram = over(peak, in->allocatable_ram_gb);
    ratios(in, true, users_reference(in->samples, in->sample_count, in->target_users), scratch,
           &f.ap_ratio_p50, &f.ap_ratio_p90, &f.ap_ratio_p99);
    ratios(in, false, 0, scratch, &f.actors_per_pod_p50, &f.actors_per_pod_p90,
           &f.actors_per_pod_p99);
    f.aggregate_failure_ratio = failure_ratio(in->failures, in->requests);
    free(scratch);
    *ret = f;
    return 0;
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_word(char c)
{
    return is_upper(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c & 0x80);
}

int snake_case(struct buf *b, struct str name)
{
    int rc = 0;
    size_t begin = b->len;
    bool gap = false; /* between two words */
    for (size_t i = 0; rc == 0 && i < name.len; i++) {
        char c = name.ptr[i];
        if (!is_word(c)) {
            gap = true;
            continue;
        }
        /* a capital begins a word after a small letter, and before one: fooBar, HTTPServer */
        if (is_upper(c) && i > 0 && is_word(name.ptr[i - 1]))
            gap |= !is_upper(name.ptr[i - 1]) ||
                   (i + 1 < name.len && name.ptr[i + 1] >= 'a' && name.ptr[i + 1] <= 'z');
        if (gap && b->len > begin)
            rc = buf_add_byte(b, '_');
        gap = false;
        if (rc == 0)
            rc = buf_add_byte(b, is_upper(c) ? (char)(c | 0x20) : c);
    }
    return rc;
}

#include "telemetry/distribution.h"

#include "base/num.h"
#include "base/rank.h"

static const char *const names[DISTRIBUTION_STATS] = {"min", "p50", "p90", "p95",
                                                      "p99", "max", "avg"};

const char *distribution_stat_name(enum distribution_stat stat)
{
    return names[stat];
}

bool distribution_stat_parse(struct str name, enum distribution_stat *ret)
{
    for (size_t i = 0; i < DISTRIBUTION_STATS; i++) {
        if (str_eq(name, str_of(names[i]))) {
            *ret = (enum distribution_stat)i;
            return true;
        }
    }
    return false;
}

/* The running mean stays in range where the sum of large values would not. */
static double mean(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    if (isfinite(sum))
        return sum / (double)count;
    double m = 0;
    for (size_t i = 0; i < count; i++)
        m += values[i] / (double)count;
    return m;
}

struct distribution distribution_of(double *values, size_t count)
{
    struct distribution d = {0};
    if (count == 0)
        return d;
    rank_sort(values, count);
    const double raw[DISTRIBUTION_STATS] = {
        values[0],
        rank_of(values, count, 0.50),
        rank_of(values, count, 0.90),
        rank_of(values, count, 0.95),
        rank_of(values, count, 0.99),
        values[count - 1],
        mean(values, count),
    };
    for (size_t i = 0; i < DISTRIBUTION_STATS; i++)
        d.stat[i] = measure_of(num_round(raw[i], DISTRIBUTION_DECIMALS));
    return d;
}

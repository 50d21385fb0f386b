/* What is told of many samples: least, percentiles by nearest rank, greatest and mean, each to 4
 * decimals. Pure; it sorts in place and allocates nothing. */
#ifndef CICADA_TELEMETRY_DISTRIBUTION_H
#define CICADA_TELEMETRY_DISTRIBUTION_H

#include "base/measure.h"
#include "base/str.h"

#define DISTRIBUTION_DECIMALS 4

/* The members in the order of the files. */
enum distribution_stat {
    DISTRIBUTION_MIN,
    DISTRIBUTION_P50,
    DISTRIBUTION_P90,
    DISTRIBUTION_P95,
    DISTRIBUTION_P99,
    DISTRIBUTION_MAX,
    DISTRIBUTION_AVG,
};
#define DISTRIBUTION_STATS 7

struct distribution {
    struct measure stat[DISTRIBUTION_STATS]; /* zeroed: all unknown */
};

const char *distribution_stat_name(enum distribution_stat stat);
bool distribution_stat_parse(struct str name, enum distribution_stat *ret);

/* Of count finite values, which come back sorted; none: all unknown. */
struct distribution distribution_of(double *values, size_t count);

#endif

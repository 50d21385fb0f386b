/* The input is one threshold, as --threshold takes it. */
#include "worker/scenario/threshold.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds)
{
    if (!holds)
        abort();
}

static bool is_inside(struct str part, struct str whole)
{
    return !part.ptr || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct plan_threshold t;
    struct err err = {0};
    if (threshold_parse(text, &t, &err) < 0) {
        demand(err.code == -EINVAL && err.text[0]);
        return 0;
    }
    demand(is_inside(t.text, text) && is_inside(t.method, text) && is_inside(t.name, text));
    demand(!t.name.ptr == !t.method.ptr && (!t.name.ptr || t.name.len > 0));
    demand(isfinite(t.limit) && t.limit >= 0);
    demand(t.metric != THRESHOLD_PERCENTILE ||
           (t.percent > 0 && t.percent <= THRESHOLD_MAX_PERCENT));
    demand(t.metric != THRESHOLD_FAILURE_RATIO || t.limit <= 1);
    return 0;
}

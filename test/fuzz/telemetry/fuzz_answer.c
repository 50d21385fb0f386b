/* Answers to instant and range queries, and all that is made of their samples. */
#include "telemetry/distribution.h"
#include "telemetry/packing.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void use(const struct query_answer *a)
{
    double *values;
    size_t count;
    if (query_answer_pool(a, &values, &count) < 0)
        return;
    struct distribution d = distribution_of(values, count);
    require(d.stat[DISTRIBUTION_MIN].known == (count > 0));
    for (size_t i = 0; i < count; i++)
        require(isfinite(values[i]));
    free(values);
    json_auto_t *labels = json_pack("[s, s]", "exported_instance", "instance");
    json_auto_t *busy = json_pack("[s]", "partial");
    struct packing p;
    if (packing_of(a, labels, "state", busy, (struct window){0, 2e9}, &p) == 0)
        require(p.count <= count);
    packing_done(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str body = {(const char *)data, size};
    struct query_answer a;
    struct err err = {0};
    if (query_answer_parse(body, &a, &err) == 0)
        use(&a);
    else
        require(err.text[0] != '\0');
    query_answer_done(&a);
    struct buf said;
    buf_init(&said, ERR_TEXT_BYTES);
    (void)query_answer_add_error(&said, body); /* anything but a crash */
    buf_done(&said);
    return 0;
}

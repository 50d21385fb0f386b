#include "facts/quantity.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct quantity q, sum = {0};
    if (quantity_parse((struct str){(const char *)data, size}, &q) < 0)
        return 0;
    if (quantity_add(&sum, q) < 0 || sum.nano != q.nano)
        abort();
    /* a double carries 53 bits: the value in units must come back to within that */
    long double back = (long double)quantity_units(q) * 1000000000, nano = (long double)q.nano;
    long double off = back > nano ? back - nano : nano - back;
    long double bound = (nano < 0 ? -nano : nano) / (1ll << 52);
    if (off > bound || quantity_gib(q) * 1073741824.0 != quantity_units(q))
        abort();
    return 0;
}

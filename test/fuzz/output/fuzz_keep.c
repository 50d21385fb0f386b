/* Bytes as the JSON of histograms.json.gz, and as the file itself. What is accepted must be written
 * again and read back. */
#include "worker/output/keep.h"

#include <stdlib.h>

#define MAX_BYTES (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void again(const struct report *r)
{
    struct buf b;
    struct kept k;
    buf_init(&b, MAX_BYTES);
    if (keep_encode(&b, r) == 0 && keep_decode(buf_str(&b), &k, NULL) == 0)
        kept_done(&k);
    else
        __builtin_trap();
    buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = {(const char *)data, size};
    struct kept k;
    struct err err = {0};
    if (keep_decode_json(bytes, &k, &err) == 0)
        again(&k.report);
    kept_done(&k);
    if (keep_decode(bytes, &k, &err) == 0)
        again(&k.report);
    kept_done(&k);
    return 0;
}

/* Coded bodies: the first byte chooses the coding, the second where the rest is cut; the result
 * must be the same whether it is cut or not. */
#include "worker/engine/content_decoder.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    int rc;
    bool ended;
    uint64_t count;
};

static struct outcome run(enum content_coding coding, struct str bytes, size_t cut)
{
    struct outcome out = {0};
    struct content_decoder *d = content_decoder_new(coding);
    if (!d)
        abort();
    out.rc = content_decoder_add(d, str_sub(bytes, 0, cut), &out.count);
    if (out.rc == 0)
        out.rc = content_decoder_add(d, str_sub(bytes, cut, bytes.len), &out.count);
    out.ended = content_decoder_ended(d);
    content_decoder_free(d);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct str bytes = {(const char *)data + 2, size - 2};
    enum content_coding coding = data[0] & 1 ? CONTENT_GZIP : CONTENT_DEFLATE;
    struct outcome whole = run(coding, bytes, bytes.len);
    struct outcome cut = run(coding, bytes, bytes.len * data[1] / 255);
    if (whole.rc != cut.rc ||
        (whole.rc == 0 && (whole.ended != cut.ended || whole.count != cut.count)))
        abort();
    return 0;
}

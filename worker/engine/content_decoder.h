/* Decodes a coded body (gzip, deflate) as it comes in, to count what it decodes to and to give it
 * to whoever wants it: nothing is kept, so that a body of a few kilobytes that stands for gigabytes
 * costs their decoding and no memory. Both engines use it, so that they agree. One thread at a
 * time.
 *
 * A body is decoded whether its coding was asked for or not, as Locust's clients do. Not decoded,
 * and counted as it comes, is what they do not decode or what would let a server multiply the work:
 * other codings (br, zstd), and several codings one inside the other.
 * Source: RFC 9110 8.4.1, RFC 1950 to 1952; where servers do otherwise, urllib3 and curl. */
#ifndef CICADA_WORKER_ENGINE_CONTENT_DECODER_H
#define CICADA_WORKER_ENGINE_CONTENT_DECODER_H

#include "base/err.h"
#include "base/str.h"
#include "worker/engine/http.h"

#include <stdint.h>

enum content_coding {
    CONTENT_PLAIN, /* none, "identity", or one that is not decoded */
    CONTENT_GZIP,
    CONTENT_DEFLATE, /* with zlib's wrapping, as it should be, or without, as it often is */
};

/* What a Content-Encoding header says. */
enum content_coding content_coding_of(struct str value);

struct content_decoder;

/* NULL: no memory. coding is not CONTENT_PLAIN. */
struct content_decoder *content_decoder_new(enum content_coding coding);
void content_decoder_free(struct content_decoder *d);

/* Decode the next bytes; adds the number of bytes they stand for to *count.
 * 0, -EPROTO (corrupt), -ENOMEM. */
MUST_USE int content_decoder_add(struct content_decoder *d, struct str bytes, uint64_t *count);

/* The same for an engine: the decoder is made when the first byte comes, and freed by the caller.
 */
enum http_failure content_decoder_count(struct content_decoder **d, enum content_coding coding,
                                        struct str bytes, uint64_t *count);

/* Give decoded bytes to a function from now on, piece by piece; they are borrowed. */
typedef void content_decoder_fn(void *context, struct str bytes);
void content_decoder_give(struct content_decoder *d, content_decoder_fn *fn, void *context);

/* Was that the whole of it? A body without a byte is whole, too. */
bool content_decoder_ended(const struct content_decoder *d);

#endif

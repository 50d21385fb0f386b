#include "worker/engine/content_decoder.h"

#include <stdlib.h>
#define ZLIB_CONST
#include <zlib.h>

#define OUTPUT_BYTES 16384 /* decoded into, again and again */

#define GZIP_BITS (MAX_WBITS + 16)
#define ZLIB_BITS MAX_WBITS
#define RAW_BITS  (-MAX_WBITS)

enum decoder_state {
    STATE_BEGIN, /* not enough bytes yet to tell how it is wrapped */
    STATE_INSIDE,
    STATE_ENDED,  /* whole; what may follow is another gzip member */
    STATE_IGNORE, /* whole, and rubbish behind it */
};

struct content_decoder {
    z_stream z;
    enum content_coding coding;
    content_decoder_fn *give; /* NULL: they are only counted */
    void *context;
    enum decoder_state state;
    uint8_t first; /* in STATE_BEGIN, when have_first */
    bool have_first;
    bool open;  /* z is initialised */
    bool whole; /* a gzip member ended: an error behind it is rubbish */
};

/* zlib's own would do, but not fail when a test wants it to. */
static void *take_memory(void *unused, unsigned count, unsigned size)
{
    (void)unused;
    return malloc((size_t)count * size);
}

static void give_memory(void *unused, void *memory)
{
    (void)unused;
    free(memory);
}

enum content_coding content_coding_of(struct str value)
{
    enum content_coding coding = CONTENT_PLAIN;
    struct str rest = value, part;
    while (str_next(&rest, ',', &part)) {
        part = str_trim(part);
        if (part.len == 0 || str_eq_nocase(part, STR("identity")))
            continue;
        if (coding != CONTENT_PLAIN)
            return CONTENT_PLAIN; /* one inside the other */
        if (str_eq_nocase(part, STR("gzip")) || str_eq_nocase(part, STR("x-gzip")))
            coding = CONTENT_GZIP;
        else if (str_eq_nocase(part, STR("deflate")))
            coding = CONTENT_DEFLATE;
        else
            return CONTENT_PLAIN;
    }
    return coding;
}

struct content_decoder *content_decoder_new(enum content_coding coding)
{
    struct content_decoder *d = calloc(1, sizeof *d);
    if (d) {
        d->coding = coding;
        d->z.zalloc = take_memory;
        d->z.zfree = give_memory;
    }
    return d;
}

void content_decoder_free(struct content_decoder *d)
{
    if (d && d->open)
        (void)inflateEnd(&d->z); /* it is open: cannot fail */
    free(d);
}

static int open_stream(struct content_decoder *d, int window_bits)
{
    int rc = d->open ? inflateReset2(&d->z, window_bits) : inflateInit2(&d->z, window_bits);
    if (rc != Z_OK)
        return -ENOMEM;
    d->open = true;
    d->state = STATE_INSIDE;
    return 0;
}

/* Decode what z has as input, up to its end or the stream's. */
static int inflate_some(struct content_decoder *d, uint64_t *count)
{
    unsigned char output[OUTPUT_BYTES];
    int rc = Z_OK;
    while (rc == Z_OK) {
        d->z.next_out = output;
        d->z.avail_out = sizeof output;
        rc = inflate(&d->z, Z_NO_FLUSH);
        *count += sizeof output - d->z.avail_out;
        if (d->give && d->z.avail_out < sizeof output)
            d->give(d->context, (struct str){(char *)output, sizeof output - d->z.avail_out});
    }
    switch (rc) {
    case Z_STREAM_END:
        d->state = d->coding == CONTENT_GZIP ? STATE_ENDED : STATE_IGNORE;
        d->whole = true;
        return 0;
    case Z_BUF_ERROR: /* no more input */
        return 0;
    case Z_MEM_ERROR:
        return -ENOMEM;
    default:
        if (!d->whole)
            return -EPROTO;
        d->state = STATE_IGNORE;
        return 0;
    }
}

/* Feed a stream; *bytes is stepped over what it took. */
static int feed(struct content_decoder *d, struct str *bytes, uint64_t *count)
{
    size_t n = bytes->len < UINT32_MAX ? bytes->len : UINT32_MAX;
    d->z.next_in = (const unsigned char *)bytes->ptr;
    d->z.avail_in = (unsigned)n;
    int rc = inflate_some(d, count);
    *bytes = str_sub(*bytes, n - d->z.avail_in, bytes->len);
    return rc;
}

/* The two bytes of a zlib header are told by their check (RFC 1950 2.2). */
static bool is_zlib(uint8_t first, uint8_t second)
{
    return (first & 0x0F) == Z_DEFLATED && (first << 8 | second) % 31 == 0;
}

static int begin_deflate(struct content_decoder *d, struct str *bytes, uint64_t *count)
{
    if (!d->have_first) {
        d->first = (uint8_t)bytes->ptr[0];
        d->have_first = true;
        *bytes = str_sub(*bytes, 1, bytes->len);
        return 0;
    }
    bool zlib = is_zlib(d->first, (uint8_t)bytes->ptr[0]);
    int rc = open_stream(d, zlib ? ZLIB_BITS : RAW_BITS);
    struct str first = {(const char *)&d->first, 1};
    return rc < 0 ? rc : feed(d, &first, count);
}

/* Another member begins like the first; anything else behind a whole one is let be. */
static int after_end(struct content_decoder *d, struct str *bytes)
{
    if ((uint8_t)bytes->ptr[0] == 0x1F)
        return open_stream(d, GZIP_BITS);
    d->state = STATE_IGNORE;
    return 0;
}

int content_decoder_add(struct content_decoder *d, struct str bytes, uint64_t *count)
{
    int rc = 0;
    while (rc == 0 && bytes.len > 0) {
        switch (d->state) {
        case STATE_BEGIN:
            rc = d->coding == CONTENT_GZIP ? open_stream(d, GZIP_BITS)
                                           : begin_deflate(d, &bytes, count);
            break;
        case STATE_INSIDE:
            rc = feed(d, &bytes, count);
            break;
        case STATE_ENDED:
            rc = after_end(d, &bytes);
            break;
        case STATE_IGNORE:
            return 0;
        }
    }
    return rc;
}

void content_decoder_give(struct content_decoder *d, content_decoder_fn *fn, void *context)
{
    d->give = fn;
    d->context = context;
}

enum http_failure content_decoder_count(struct content_decoder **d, enum content_coding coding,
                                        struct str bytes, uint64_t *count)
{
    if (!*d)
        *d = content_decoder_new(coding);
    int rc = *d ? content_decoder_add(*d, bytes, count) : -ENOMEM;
    if (rc == 0)
        return HTTP_FAILURE_NONE;
    return rc == -ENOMEM ? HTTP_FAILURE_MEMORY : HTTP_FAILURE_MALFORMED;
}

bool content_decoder_ended(const struct content_decoder *d)
{
    return d->state == STATE_BEGIN ? !d->have_first : d->state != STATE_INSIDE;
}

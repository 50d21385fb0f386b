#include "worker/output/gzip.h"

#define ZLIB_CONST /* the input is only read */
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* zlib's largest window, with gzip's header and checksum */
#define CHUNK_BYTES 65536u
#define INPUT_BYTES (1u << 30) /* zlib counts in unsigned int */

/* Take the next part of the input. */
static void feed(z_stream *z, struct str *rest)
{
    uInt n = rest->len < INPUT_BYTES ? (uInt)rest->len : INPUT_BYTES;
    z->next_in = (const Bytef *)rest->ptr;
    z->avail_in = n;
    *rest = str_sub(*rest, n, rest->len);
}

/* Run deflate or inflate into the buffer until it ends or needs input. */
static int step(z_stream *z, struct buf *b, int (*run)(z_stream *, int), int flush, int *ret_z)
{
    int rc = buf_reserve(b, 1);
    if (rc < 0)
        return rc;
    size_t room = b->max - b->len < CHUNK_BYTES ? b->max - b->len : CHUNK_BYTES;
    rc = buf_reserve(b, room);
    if (rc < 0)
        return rc;
    z->next_out = (Bytef *)b->ptr + b->len;
    z->avail_out = (uInt)room;
    *ret_z = run(z, flush);
    b->len += room - z->avail_out;
    b->ptr[b->len] = '\0';
    return 0;
}

int gzip_pack(struct buf *b, struct str bytes)
{
    z_stream z = {0};
    size_t before = b->len;
    int state = Z_OK, rc = 0;
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return -ENOMEM;
    while (rc == 0 && state != Z_STREAM_END) {
        if (z.avail_in == 0)
            feed(&z, &bytes);
        rc = step(&z, b, deflate, bytes.len ? Z_NO_FLUSH : Z_FINISH, &state);
    }
    (void)deflateEnd(&z); /* it tells of a stream cut short, which rc knows */
    if (rc < 0)
        b->len = before;
    return rc;
}

int gzip_unpack(struct buf *b, struct str bytes)
{
    z_stream z = {0};
    size_t before = b->len;
    int state = Z_OK, rc = 0;
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return -ENOMEM;
    while (rc == 0 && state == Z_OK) {
        if (z.avail_in == 0)
            feed(&z, &bytes);
        rc = step(&z, b, inflate, Z_NO_FLUSH, &state);
    }
    if (rc == 0 && state == Z_MEM_ERROR)
        rc = -ENOMEM;
    if (rc == 0 && (state != Z_STREAM_END || z.avail_in > 0 || bytes.len > 0))
        rc = -EPROTO;
    (void)inflateEnd(&z); /* nothing it could tell */
    if (rc < 0)
        b->len = before;
    return rc;
}

#include "proto/locust/scan.h"

#include "proto/locust/message.h"

#include <stdint.h>

/* What one head byte says about its value. Lengths and counts that do not fit in the head byte
 * follow it, big-endian. */
struct head {
    unsigned char length_bytes; /* of a length or count behind the head: 0, 1, 2 or 4 */
    unsigned char children;     /* values for each unit of the count: 0, or 1 array, 2 map */
    uint32_t fixed;             /* payload bytes, or the count when length_bytes is 0 */
    bool valid;
};

static struct head payload(uint32_t bytes)
{
    return (struct head){.fixed = bytes, .valid = true};
}

/* Length behind the head, and so many bytes more (the type of an ext). */
static struct head sized(unsigned length_bytes, uint32_t extra)
{
    return (struct head){
        .length_bytes = (unsigned char)length_bytes, .fixed = extra, .valid = true};
}

static struct head container(unsigned length_bytes, unsigned children, uint32_t count)
{
    return (struct head){(unsigned char)length_bytes, (unsigned char)children, count, true};
}

/* The format's table of first bytes. */
static struct head head_of(unsigned char c)
{
    if (c <= 0x7f || c >= 0xe0)
        return payload(0); /* fixint */
    if (c <= 0x8f)
        return container(0, 2, c & 0x0fu);
    if (c <= 0x9f)
        return container(0, 1, c & 0x0fu);
    if (c <= 0xbf)
        return payload(c & 0x1fu); /* fixstr */
    if (c <= 0xc3)
        return c == 0xc1 ? (struct head){0} : payload(0); /* nil, never used, false, true */
    if (c <= 0xc6)
        return sized(1u << (c - 0xc4), 0); /* bin */
    if (c <= 0xc9)
        return sized(1u << (c - 0xc7), 1); /* ext */
    if (c <= 0xcb)
        return payload(c == 0xca ? 4 : 8); /* float */
    if (c <= 0xd3)
        return payload(1u << ((c - 0xcc) & 3)); /* uint, int */
    if (c <= 0xd8)
        return payload((1u << (c - 0xd4)) + 1); /* fixext */
    if (c <= 0xdb)
        return sized(1u << (c - 0xd9), 0); /* str */
    return container(c & 1 ? 4 : 2, c <= 0xdd ? 1 : 2, 0);
}

struct scan {
    const unsigned char *at;
    const unsigned char *end;
    uint64_t values; /* met so far */
    uint64_t owed;   /* values that the open containers still want */
    unsigned depth;
    uint64_t left[MESSAGE_MAX_DEPTH]; /* of them, by container */
};

static size_t bytes_left(const struct scan *s)
{
    return (size_t)(s->end - s->at);
}

static uint64_t read_length(struct scan *s, unsigned bytes)
{
    uint64_t n = 0;
    for (; bytes > 0; bytes--)
        n = n << 8 | *s->at++;
    return n;
}

static int truncated(struct err *err)
{
    return err_set(err, -EPROTO, "message: cut off, or claims more than it holds");
}

/* A value of the innermost container is complete, and with it perhaps the container. */
static void close_value(struct scan *s)
{
    while (s->depth > 0 && --s->left[s->depth - 1] == 0)
        s->depth--;
}

static int open_container(struct scan *s, uint64_t count, struct err *err)
{
    if (s->depth == MESSAGE_MAX_DEPTH)
        return err_set(err, -ERANGE, "message: nested deeper than %d", MESSAGE_MAX_DEPTH);
    if (count == 0) {
        close_value(s);
        return 0;
    }
    s->owed += count;
    if (s->owed > bytes_left(s)) /* a value takes a byte at least */
        return truncated(err);
    s->left[s->depth++] = count;
    return 0;
}

static int scan_value(struct scan *s, struct err *err)
{
    if (bytes_left(s) == 0)
        return truncated(err);
    if (s->values++ == MESSAGE_MAX_VALUES)
        return err_set(err, -ERANGE, "message: more than %u values", MESSAGE_MAX_VALUES);
    s->owed--;
    struct head head = head_of(*s->at++);
    if (!head.valid)
        return err_set(err, -EPROTO, "message: not msgpack");
    if (head.length_bytes > bytes_left(s))
        return truncated(err);
    uint64_t n = read_length(s, head.length_bytes) + head.fixed;
    if (head.children)
        return open_container(s, n * head.children, err);
    if (n > bytes_left(s))
        return truncated(err);
    s->at += n;
    close_value(s);
    return 0;
}

int scan_frame(struct str frame, struct err *err)
{
    if (frame.len > MESSAGE_MAX_BYTES)
        return err_set(err, -ERANGE, "message: larger than %u bytes", MESSAGE_MAX_BYTES);
    if (frame.len == 0)
        return err_set(err, -EPROTO, "message: empty");
    const unsigned char *bytes = (const unsigned char *)frame.ptr;
    struct scan s = {.at = bytes, .end = bytes + frame.len, .owed = 1};
    while (s.owed > 0) {
        int rc = scan_value(&s, err);
        if (rc < 0)
            return rc;
    }
    if (bytes_left(&s) > 0)
        return err_set(err, -EPROTO, "message: %zu bytes behind its end", bytes_left(&s));
    return 0;
}

/* Growing byte buffers with a ceiling. Caller's storage; one thread at a time. A buffer that would
 * grow past its maximum fails with -ERANGE and keeps what it had; so does one out of memory, with
 * -ENOMEM. There is always room for a NUL behind the bytes, and it is kept there. */
#ifndef CICADA_BASE_BUF_H
#define CICADA_BASE_BUF_H

#include "base/err.h"
#include "base/str.h"

struct buf {
    char *ptr; /* NULL until the first byte; NUL-terminated after it */
    size_t len;
    size_t cap; /* without the NUL */
    size_t max;
};

/* An empty buffer that holds at most max_bytes. A zeroed struct buf holds nothing. */
void buf_init(struct buf *b, size_t max_bytes);
void buf_done(struct buf *b);

/* Forget the bytes, keep the memory. */
static inline void buf_clear(struct buf *b)
{
    b->len = 0;
    if (b->ptr)
        b->ptr[0] = '\0';
}

/* Make room for more bytes beyond len. 0, -ERANGE, -ENOMEM. */
MUST_USE int buf_reserve(struct buf *b, size_t more);
MUST_USE int buf_add(struct buf *b, struct str s);
MUST_USE int buf_add_byte(struct buf *b, char c);
MUST_USE int buf_printf(struct buf *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Drop the first n bytes (n <= len) and move the rest to the front. */
void buf_drop(struct buf *b, size_t n);

/* The bytes; valid until the buffer changes. */
static inline struct str buf_str(const struct buf *b)
{
    return (struct str){b->ptr, b->len};
}

/* The bytes as a C string, "" when empty; valid until the buffer changes. */
static inline const char *buf_c(const struct buf *b)
{
    return b->ptr ? b->ptr : "";
}

/* Hand the memory to the caller, who frees it with free(); NUL-terminated. NULL when the buffer
 * never held a byte. The buffer is empty afterwards. */
char *buf_take(struct buf *b);

/* Read a whole file, at most b->max bytes. 0, -ERANGE (larger), or the system's errno; err names
 * the file. */
MUST_USE int buf_read_file(struct buf *b, const char *path, struct err *err);

#endif

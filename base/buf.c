#include "base/buf.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BUF_FIRST_BYTES 64
#define READ_STEP_BYTES 65536

void buf_init(struct buf *b, size_t max_bytes)
{
    *b = (struct buf){.max = max_bytes};
}

void buf_done(struct buf *b)
{
    free(b->ptr);
    *b = (struct buf){.max = b->max};
}

int buf_reserve(struct buf *b, size_t more)
{
    size_t want;
    if (__builtin_add_overflow(b->len, more, &want) || want > b->max)
        return -ERANGE;
    if (b->ptr && want <= b->cap)
        return 0;
    size_t cap = b->cap > b->max / 2 ? b->max : b->cap * 2;
    if (cap < BUF_FIRST_BYTES)
        cap = BUF_FIRST_BYTES < b->max ? BUF_FIRST_BYTES : b->max;
    if (cap < want)
        cap = want;
    size_t bytes;
    if (__builtin_add_overflow(cap, (size_t)1, &bytes))
        return -ERANGE;
    char *grown = realloc(b->ptr, bytes);
    if (!grown)
        return -ENOMEM;
    grown[b->len] = '\0';
    b->ptr = grown;
    b->cap = cap;
    return 0;
}

int buf_add(struct buf *b, struct str s)
{
    if (s.len == 0)
        return 0;
    int rc = buf_reserve(b, s.len);
    if (rc < 0)
        return rc;
    memcpy(b->ptr + b->len, s.ptr, s.len);
    b->len += s.len;
    b->ptr[b->len] = '\0';
    return 0;
}

int buf_add_byte(struct buf *b, char c)
{
    return buf_add(b, (struct str){&c, 1});
}

int buf_printf(struct buf *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    int rc = n < 0 ? -EINVAL : buf_reserve(b, (size_t)n);
    if (rc == 0 && n > 0) {
        (void)vsnprintf(b->ptr + b->len, (size_t)n + 1, format, again); /* measured above */
        b->len += (size_t)n;
    }
    va_end(again);
    va_end(args);
    return rc;
}

void buf_drop(struct buf *b, size_t n)
{
    if (n == 0)
        return;
    memmove(b->ptr, b->ptr + n, b->len - n);
    b->len -= n;
    b->ptr[b->len] = '\0';
}

char *buf_take(struct buf *b)
{
    char *taken = b->ptr;
    *b = (struct buf){.max = b->max};
    return taken;
}

int buf_read_file(struct buf *b, const char *path, struct err *err)
{
    int rc = 0;
    /* without O_NONBLOCK a pipe that nobody writes to would hold us at the open */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fcntl(fd, F_SETFL, 0) < 0) {
        int error = errno;
        (void)close(fd); /* only opened */
        fd = -1;
        errno = error;
    }
    if (fd < 0) {
        rc = -errno;
        return err_set(err, rc, "%s: %s", path, strerror(-rc));
    }
    buf_clear(b);
    for (;;) {
        /* one byte more than the maximum tells a full buffer from a file that is too large */
        char step[READ_STEP_BYTES];
        ssize_t n = read(fd, step, sizeof step);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            rc = -errno;
            err_set(err, rc, "%s: %s", path, strerror(-rc));
            break;
        }
        if (n == 0)
            break;
        rc = buf_add(b, (struct str){step, (size_t)n});
        if (rc == -ERANGE)
            err_set(err, rc, "%s: larger than %zu bytes", path, b->max);
        else if (rc < 0)
            err_set(err, rc, "%s: out of memory", path);
        if (rc < 0)
            break;
    }
    (void)close(fd); /* only read from */
    return rc;
}

/* Bytes of test data from hexadecimal text. */
#ifndef CICADA_TEST_HEX_H
#define CICADA_TEST_HEX_H

#include "base/buf.h"

static inline unsigned hex_digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Append the bytes that text names, two lower-case digits each. 0, or buf_add's error. */
static inline int hex_add(struct buf *b, const char *text)
{
    for (size_t i = 0; text[i]; i += 2) {
        int rc = buf_add_byte(b, (char)(hex_digit(text[i]) << 4 | hex_digit(text[i + 1])));
        if (rc < 0)
            return rc;
    }
    return 0;
}

#endif

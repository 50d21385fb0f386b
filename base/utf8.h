/* UTF-8 as Python's strict decoder sees it: no overlong forms, no surrogates, nothing above
 * U+10FFFF. Pure functions, any thread. */
#ifndef CICADA_BASE_UTF8_H
#define CICADA_BASE_UTF8_H

#include "base/buf.h"

#include <stdint.h>

/* The code point at the start of s and its length in bytes (1 to 4), or a length of 0 when the
 * first byte begins no valid sequence (or s is empty). */
size_t utf8_decode(struct str s, uint32_t *ret_point);

bool utf8_valid(struct str s);

/* Append s with each invalid part replaced by U+FFFD, as bytes.decode("utf-8", "replace") does.
 * 0, -ERANGE, -ENOMEM. */
MUST_USE int utf8_add_repaired(struct buf *b, struct str s);

/* Append one code point. 0, -EINVAL (a surrogate, too large), -ERANGE, -ENOMEM. */
MUST_USE int utf8_add_point(struct buf *b, uint32_t point);

/* The longest beginning of s of at most max_bytes bytes that does not cut a sequence. */
struct str utf8_cut(struct str s, size_t max_bytes);

#endif

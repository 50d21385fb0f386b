/* Base64 (RFC 4648, standard letters, padded; line breaks are skipped).
 * Pure functions, any thread. */
#ifndef CICADA_BASE_BASE64_H
#define CICADA_BASE_BASE64_H

#include "base/buf.h"

/* Append the bytes. 0; -EINVAL (not base64); -ERANGE; -ENOMEM. */
MUST_USE int base64_decode(struct buf *b, struct str text);

/* Append the text, in one line. 0; -ERANGE; -ENOMEM. */
MUST_USE int base64_encode(struct buf *b, struct str bytes);

#endif

/* How Locust names an error row. Pure, any thread.
 * Source: locust/stats.py StatsError.parse_error and create_key, 2.47. */
#ifndef CICADA_WORKER_STATS_ERROR_KEY_H
#define CICADA_WORKER_STATS_ERROR_KEY_H

#include "base/buf.h"

#define ERROR_KEY_BYTES 65 /* sha256 in hexadecimal, and its NUL */

/* Append the text with the address of its first "object at 0x…>" replaced by "0x....", wherever
 * that address stands. Doing it again changes nothing. 0, -ERANGE, -ENOMEM; b unchanged on failure.
 */
MUST_USE int error_text_add(struct buf *b, struct str text);

/* The key under which a master adds up the rows of all workers: sha256 over "method.name.repr", the
 * last being Python's repr() of the folded text. The text is what a Python worker would report:
 * for an exception its repr (CatchResponseError('…')), which is quoted once more here, as there.
 * 0, -ENOMEM. */
MUST_USE int error_key(struct str method, struct str name, struct str text,
                       char ret[static ERROR_KEY_BYTES]);

#endif

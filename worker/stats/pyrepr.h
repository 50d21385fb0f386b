/* Python's repr() of a str, byte for byte, as Locust's error keys are made from it. Pure, any
 * thread. Which code points are printable is Unicode 14's answer, that of Python 3.11; printable.py
 * makes the table. Source: Python's documentation of repr() and str.isprintable(). */
#ifndef CICADA_WORKER_STATS_PYREPR_H
#define CICADA_WORKER_STATS_PYREPR_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* chr(point).isprintable() */
bool pyrepr_printable(uint32_t point);

/* Append repr(text): quotes chosen, quotes and backslashes escaped, what is not printable as \n,
 * \x1b, \u200b, \U000e0001. A byte that is not UTF-8 counts as U+FFFD.
 * 0, -ERANGE, -ENOMEM; b is unchanged on failure. */
MUST_USE int pyrepr_add(struct buf *b, struct str text);

#endif

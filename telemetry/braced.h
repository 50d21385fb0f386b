/* Names with one list in braces, as shells and our documents write them: "size_{p50,p90}_mb" stands
 * for size_p50_mb and size_p90_mb. Views into the text; nothing is allocated. */
#ifndef CICADA_TELEMETRY_BRACED_H
#define CICADA_TELEMETRY_BRACED_H

#include "base/buf.h"

struct braced {
    struct str before, items, after;
    bool has_items; /* false: the whole text is before */
};

/* False when the braces do not match, there are two groups or an item is empty. */
bool braced_parse(struct str text, struct braced *ret);

/* The item at the index, or false behind the last. */
bool braced_item(const struct braced *b, size_t index, struct str *ret);
size_t braced_count(const struct braced *b);

/* Append the text with item in the place of the braces. 0, -ERANGE, -ENOMEM. */
MUST_USE int braced_add(struct buf *out, const struct braced *b, struct str item);

#endif

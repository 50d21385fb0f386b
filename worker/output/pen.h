/* A pen writes into a buffer and remembers the first failure, so that a long text needs no check
 * behind each of its pieces: look at rc once, at the end. After a failure nothing more is written.
 * Whoever owns the buffer. */
#ifndef CICADA_WORKER_OUTPUT_PEN_H
#define CICADA_WORKER_OUTPUT_PEN_H

#include "base/buf.h"
#include "base/measure.h"

#include <stdint.h>

struct pen {
    struct buf *b;
    int rc; /* 0, -ERANGE, -ENOMEM */
};

void pen_str(struct pen *p, struct str s);
void pen_text(struct pen *p, const char *c_string);
void pen_printf(struct pen *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Foreign text on a terminal: control characters (C0, DEL, C1) and what is not UTF-8 are escaped as
 * \n, \x1b; then blanks up to so many characters, as Python's %-10s counts them. Returns how many
 * there are in all. */
size_t pen_shown(struct pen *p, struct str s, size_t width);
void pen_blanks(struct pen *p, size_t count);

/* Foreign text inside HTML, in an element or a quoted attribute; what is not UTF-8, and control
 * characters that HTML forbids, become U+FFFD. */
void pen_html(struct pen *p, struct str s);

/* A JSON string as Python's json.dumps writes it: all but ASCII is escaped. What is not UTF-8
 * becomes U+FFFD. */
void pen_json(struct pen *p, struct str s);

/* A number with so many decimals, free of the locale. */
void pen_fixed(struct pen *p, double value, int decimals);
void pen_count(struct pen *p, uint64_t n); /* 1,234,567 */

/* "2025-01-31T12:00:00Z" */
void pen_time(struct pen *p, double wall_s);

#endif

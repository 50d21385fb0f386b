/* Errors that a person will read: a negative errno and one line of text. Caller-owned storage, any
 * thread. The first error wins; callers may put context before it. */
#ifndef CICADA_BASE_ERR_H
#define CICADA_BASE_ERR_H

#include <errno.h>

#define ERR_TEXT_BYTES 512 /* one log line; longer texts are cut */

#define MUST_USE __attribute__((warn_unused_result))

struct err {
    int code; /* 0, or a negative errno */
    char text[ERR_TEXT_BYTES];
};

/* Set err unless it is NULL or holds an error already. Returns code in any case. */
int err_set(struct err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put context before the text: "scenario.json" + ": " + text. Nothing when err is NULL or empty.
 * Returns err->code, or 0. */
int err_prefix(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

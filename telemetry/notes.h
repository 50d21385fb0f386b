/* Lines for the log, collected where nothing is logged. Caller's storage; bounded: what comes after
 * NOTES_MAX lines is counted only. */
#ifndef CICADA_TELEMETRY_NOTES_H
#define CICADA_TELEMETRY_NOTES_H

#include "base/err.h"

#include <stddef.h>

#define NOTES_MAX 64

struct notes {
    char *lines[NOTES_MAX];
    size_t count;
    size_t dropped; /* too many, or out of memory */
};

void notes_add(struct notes *n, const char *format, ...) __attribute__((format(printf, 2, 3)));
void notes_done(struct notes *n);

#endif

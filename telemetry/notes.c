#include "telemetry/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void notes_add(struct notes *n, const char *format, ...)
{
    char line[2 * ERR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    char *copy = length >= 0 && n->count < NOTES_MAX ? strdup(line) : NULL; /* cut is fine */
    if (copy)
        n->lines[n->count++] = copy;
    else
        n->dropped++;
}

void notes_done(struct notes *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->lines[i]);
    *n = (struct notes){0};
}

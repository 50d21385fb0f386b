#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int code, const char *format, ...)
{
    if (err && err->code == 0) {
        va_list args;
        va_start(args, format);
        err->code = code;
        (void)vsnprintf(err->text, sizeof err->text, format, args); /* a cut text is still told */
        va_end(args);
    }
    return code;
}

int err_prefix(struct err *err, const char *format, ...)
{
    if (!err || err->code == 0)
        return 0;
    char text[ERR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0)
        return err->code;
    size_t used = strnlen(text, sizeof text), rest = strlen(err->text);
    if (used + 2 < sizeof text) { /* what does not fit is cut */
        memcpy(text + used, ": ", 2);
        used += 2;
        size_t room = sizeof text - used - 1;
        memcpy(text + used, err->text, rest < room ? rest : room);
        text[used + (rest < room ? rest : room)] = '\0';
    }
    memcpy(err->text, text, sizeof text);
    return err->code;
}

#include "worker/runner/lines.h"

#include "base/log.h"

#include <stdlib.h>

void lines_done(struct lines *l)
{
    for (size_t i = 0; i < LINES_KEPT; i++)
        free(l->at[i]);
    *l = (struct lines){0};
}

void lines_take(struct lines *l)
{
    char text[LOG_LINE_BYTES];
    while (log_tap_take(text)) {
        char *copy = strdup(text);
        if (!copy)
            continue;
        if (l->count == LINES_KEPT) {
            free(l->at[l->first]);
            l->at[l->first] = NULL;
            l->first = (l->first + 1) % LINES_KEPT;
            l->count--;
        }
        l->at[(l->first + l->count++) % LINES_KEPT] = copy;
        l->news = true;
    }
}

size_t lines_views(const struct lines *l, struct str ret[static LINES_KEPT])
{
    for (size_t i = 0; i < l->count; i++)
        ret[i] = str_of(l->at[(l->first + i) % LINES_KEPT]);
    return l->count;
}

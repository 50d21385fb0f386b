#include "worker/report/history.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_POINTS 256

/* The run was longer than there is room: half the points still show its course. */
static void thin_out(struct history *h)
{
    size_t kept = 0;
    for (size_t i = 1; i < h->count; i += 2) /* of each two the later one, so the newest stays */
        h->points[kept++] = h->points[i];
    h->count = kept;
}

static int grow(struct history *h)
{
    size_t cap = h->cap ? h->cap * 2 : FIRST_POINTS;
    if (cap > HISTORY_MAX_POINTS)
        cap = HISTORY_MAX_POINTS;
    struct history_point *grown = realloc(h->points, cap * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    h->points = grown;
    h->cap = cap;
    return 0;
}

int history_add(struct history *h, const struct history_point *point)
{
    if (h->count == HISTORY_MAX_POINTS)
        thin_out(h);
    int rc = h->count == h->cap ? grow(h) : 0;
    if (rc == 0)
        h->points[h->count++] = *point;
    return rc;
}

void history_clear(struct history *h)
{
    h->count = 0;
}

void history_done(struct history *h)
{
    free(h->points);
    *h = (struct history){0};
}

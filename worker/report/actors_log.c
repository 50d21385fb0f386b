#include "worker/report/actors_log.h"

#include <stdlib.h>

#define FIRST_ROWS 256

/* The one copy of a name; empty with a NULL ptr when there is no room. */
static struct str intern(struct actors_log *l, const char *name)
{
    for (size_t i = 0; i < l->name_count; i++) {
        if (strcmp(l->names[i], name) == 0)
            return str_of(l->names[i]);
    }
    if (l->name_count == ACTORS_LOG_NAMES_MAX)
        return (struct str){NULL, 0};
    char *copy = strdup(name);
    char **grown = copy ? realloc(l->names, (l->name_count + 1) * sizeof *grown) : NULL;
    if (!grown) {
        free(copy);
        return (struct str){NULL, 0};
    }
    l->names = grown;
    l->names[l->name_count++] = copy;
    return str_of(copy);
}

static int make_room(struct actors_log *l, size_t more)
{
    if (l->count + more > ACTORS_LOG_ROWS_MAX)
        return -ERANGE;
    if (l->count + more <= l->cap)
        return 0;
    size_t cap = l->cap ? l->cap * 2 : FIRST_ROWS;
    if (cap < l->count + more)
        cap = l->count + more;
    struct report_actors *grown = realloc(l->rows, cap * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    l->rows = grown;
    l->cap = cap;
    return 0;
}

int actors_log_add(struct actors_log *l, const struct actors_scrape *scrape, double wall_s)
{
    int rc = actors_series_add(&l->series, scrape);
    if (rc == 0)
        rc = make_room(l, scrape->count);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < scrape->count; i++) {
        const struct actors_row *row = &scrape->rows[i];
        struct report_actors *r = &l->rows[l->count + i];
        *r = (struct report_actors){.wall_s = wall_s,
                                    .user_class = intern(l, row->user_class),
                                    .state = intern(l, row->state),
                                    .count = row->count};
        if (!r->user_class.ptr || !r->state.ptr)
            return -ENOMEM;
    }
    l->count += scrape->count;
    return 0;
}

void actors_log_clear(struct actors_log *l)
{
    l->series.count = 0;
    l->count = 0;
}

void actors_log_done(struct actors_log *l)
{
    actors_series_done(&l->series);
    free(l->rows);
    for (size_t i = 0; i < l->name_count; i++)
        free(l->names[i]);
    free(l->names);
    *l = (struct actors_log){0};
}

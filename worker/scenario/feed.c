/* "feeds": rows of CSV files whose columns are variables. */
#include "worker/scenario/csv_table.h"
#include "worker/scenario/load.h"

#include "base/log.h"
#include "base/utf8.h"

#define MAX_WORKERS 100000

struct feed_draft {
    struct plan_feed feed;
    const struct node *file, *columns, *each, *end;
    size_t order, each_word, end_word;
};

static int read_file(struct loader *l, const struct node *n, void *target)
{
    struct feed_draft *d = target;
    d->file = n;
    return load_name(l, n, &d->feed.file);
}

static int read_order(struct loader *l, const struct node *n, void *target)
{
    static const char *const words[] = {"sequential", "random", "unique"};
    return load_word(l, n, words, 3, &((struct feed_draft *)target)->order);
}

static int read_each(struct loader *l, const struct node *n, void *target)
{
    static const char *const words[] = {"task", "user"};
    struct feed_draft *d = target;
    d->each = n;
    return load_word(l, n, words, 2, &d->each_word);
}

static int read_end(struct loader *l, const struct node *n, void *target)
{
    static const char *const words[] = {"recycle", "stop"};
    struct feed_draft *d = target;
    d->end = n;
    return load_word(l, n, words, 2, &d->end_word);
}

static int read_workers(struct loader *l, const struct node *n, void *target)
{
    return load_whole(l, n, 1, MAX_WORKERS, &((struct feed_draft *)target)->feed.workers);
}

static int read_separator(struct loader *l, const struct node *n, void *target)
{
    if (n->kind != NODE_STRING || n->text.len != 1 || strchr("\"\r\n", n->text.ptr[0]))
        return load_fail(l, n, "must be one character, such as \";\" or \"\\t\"");
    ((struct feed_draft *)target)->feed.separator = n->text.ptr[0];
    return 0;
}

static int read_columns(struct loader *l, const struct node *n, void *target)
{
    struct feed_draft *d = target;
    d->columns = n;
    int rc = load_list(l, n, PLAN_MAX_FEED_COLUMNS, "columns");
    if (rc < 0)
        return rc;
    struct str *names = ARENA_ARRAY(l->memory, struct str, n->child_count);
    if (!names)
        return -ENOMEM;
    for (const struct node *one = n->first; rc == 0 && one; one = one->next)
        rc = load_name(l, one, &names[one->index]);
    d->feed.columns = names;
    d->feed.names_given = true;
    d->feed.column_count = n->child_count;
    return rc;
}

static const struct load_key feed_keys[] = {
    {.name = "file", .read = read_file, .required = true, .also = "csv path filename"},
    {.name = "order", .read = read_order, .also = "mode strategy"},
    {.name = "each", .read = read_each, .also = "per scope"},
    {.name = "at_end", .read = read_end, .also = "end eof recycle"},
    {.name = "columns", .read = read_columns, .also = "names header"},
    {.name = "separator", .read = read_separator, .also = "delimiter"},
    {.name = "workers", .read = read_workers, .also = "stride shards"},
};

/* The header's names, unless the scenario gives them; the rows behind it. */
static int take_table(struct loader *l, const struct csv_table *table, struct feed_draft *d)
{
    struct plan_feed *f = &d->feed;
    uint32_t skip = d->columns ? 0 : 1;
    if (table->rows <= skip)
        return load_fail(l, d->file, "%.*s has no rows", STR_ARG(f->file));
    if (d->columns && f->column_count != table->columns)
        return load_fail(l, d->columns, "are %u, but %.*s has %u", f->column_count,
                         STR_ARG(f->file), table->columns);
    if (!d->columns)
        f->columns = table->cells;
    f->column_count = table->columns;
    f->cells = table->cells + (size_t)skip * table->columns;
    f->row_count = table->rows - skip;
    if (f->row_count < f->workers)
        return load_fail(l, d->file, "%.*s has %u rows, too few for %u workers", STR_ARG(f->file),
                         f->row_count, f->workers);
    return 0;
}

/* What the words mean together. */
static int finish_use(struct loader *l, struct feed_draft *d)
{
    struct plan_feed *f = &d->feed;
    f->order = (enum plan_feed_order)d->order;
    bool unique = f->order == PLAN_FEED_UNIQUE;
    f->each_user = d->each ? d->each_word == 1 : unique;
    f->stop_at_end = unique || d->end_word == 1;
    if (unique && !f->each_user)
        return load_fail(l, d->each, "a unique row is kept by its user: \"user\"");
    if (unique && d->end && d->end_word == 0)
        return load_fail(l, d->end, "a unique row is never given twice: \"stop\"");
    if (f->order == PLAN_FEED_RANDOM && d->end)
        return load_fail(l, d->end, "random rows have no end");
    return 0;
}

int load_feed(struct loader *l, const struct node *n, struct plan_feed *ret)
{
    struct feed_draft d = {.feed = {.workers = 1, .separator = ','}};
    struct str bytes = {NULL, 0};
    struct csv_table table = {0};
    struct err why = {0};
    int rc = load_object(l, n, "a feed", KEYS(feed_keys), &d);
    if (rc == 0)
        rc = load_file(l, d.file, &bytes);
    if (rc < 0)
        return rc;
    if (!utf8_valid(bytes))
        return load_fail(l, d.file, "%.*s is not UTF-8", STR_ARG(d.feed.file));
    char *text = ARENA_ARRAY(l->memory, char, bytes.len + 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, bytes.ptr, bytes.len);
    rc = csv_table_read(text, bytes.len, d.feed.separator, l->memory, &table, &why);
    if (rc == -EINVAL)
        return load_fail(l, d.file, "%.*s:%s", STR_ARG(d.feed.file), why.text);
    if (rc < 0)
        return rc;
    rc = finish_use(l, &d);
    if (rc < 0)
        return rc;
    rc = take_table(l, &table, &d);
    *ret = d.feed;
    return rc;
}

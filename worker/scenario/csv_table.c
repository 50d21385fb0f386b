#include "worker/scenario/csv_table.h"

struct reader {
    char *at, *end;
    char separator;
    uint32_t line;
    struct arena *arena;
    struct csv_table table;
    size_t room;
    struct err *err;
};

static int add_cell(struct reader *r, struct str cell)
{
    struct csv_table *t = &r->table;
    if (t->cell_count == CSV_TABLE_MAX_CELLS)
        return err_set(r->err, -EINVAL, "%u: more than %d cells", r->line, CSV_TABLE_MAX_CELLS);
    if (t->cell_count == r->room) {
        size_t room = r->room ? r->room * 2 : 64;
        struct str *cells = ARENA_ARRAY(r->arena, struct str, room);
        if (!cells)
            return err_set(r->err, -ENOMEM, "out of memory");
        if (r->room)
            memcpy(cells, t->cells, r->room * sizeof *cells);
        t->cells = cells;
        r->room = room;
    }
    t->cells[t->cell_count++] = cell;
    return 0;
}

static bool at_line_end(const struct reader *r)
{
    return r->at == r->end || *r->at == '\n' ||
           (*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n');
}

static void skip_line_end(struct reader *r)
{
    if (r->at < r->end && *r->at == '\r')
        r->at++;
    if (r->at < r->end) {
        r->at++;
        r->line++;
    }
}

/* The cell's text moves to the front over the quotes that are taken out. */
static int read_quoted(struct reader *r, struct str *ret)
{
    char *begin = ++r->at, *to = begin;
    uint32_t line = r->line;
    while (r->at < r->end) {
        if (*r->at == '"') {
            r->at++;
            if (r->at == r->end || *r->at != '"') {
                *ret = (struct str){begin, (size_t)(to - begin)};
                return 0;
            }
        }
        r->line += *r->at == '\n';
        *to++ = *r->at++;
    }
    return err_set(r->err, -EINVAL, "%u: the quote '\"' is not closed", line);
}

static int read_cell(struct reader *r)
{
    struct str cell = {NULL, 0};
    int rc = 0;
    if (r->at < r->end && *r->at == '"') {
        rc = read_quoted(r, &cell);
        if (rc == 0 && !at_line_end(r) && *r->at != r->separator)
            return err_set(r->err, -EINVAL, "%u: has text behind a closing quote", r->line);
    } else {
        char *begin = r->at;
        while (!at_line_end(r) && *r->at != r->separator) {
            if (*r->at == '"')
                return err_set(r->err, -EINVAL,
                               "%u: has a quote inside a field: quote the whole field, and double "
                               "the quotes in it",
                               r->line);
            r->at++;
        }
        cell = (struct str){begin, (size_t)(r->at - begin)};
    }
    return rc ? rc : add_cell(r, cell);
}

static int read_row(struct reader *r)
{
    struct csv_table *t = &r->table;
    size_t before = t->cell_count;
    uint32_t line = r->line;
    for (;;) {
        int rc = read_cell(r);
        if (rc < 0)
            return rc;
        if (at_line_end(r))
            break;
        r->at++; /* the separator */
    }
    size_t n = t->cell_count - before;
    skip_line_end(r);
    if (n > CSV_TABLE_MAX_COLUMNS)
        return err_set(r->err, -EINVAL, "%u: more than %d fields", line, CSV_TABLE_MAX_COLUMNS);
    if (t->rows == 0)
        t->columns = (uint32_t)n;
    if (n != t->columns)
        return err_set(r->err, -EINVAL, "%u: has %zu field%s, and line 1 has %u", line, n,
                       n == 1 ? "" : "s", t->columns);
    t->rows++;
    return 0;
}

int csv_table_read(char *text, size_t len, char separator, struct arena *arena,
                   struct csv_table *ret, struct err *err)
{
    struct reader r = {.at = text,
                       .end = text + len,
                       .separator = separator,
                       .line = 1,
                       .arena = arena,
                       .err = err};
    if (str_starts((struct str){text, len}, STR("\xEF\xBB\xBF")))
        r.at += 3;
    while (r.at < r.end) {
        if (at_line_end(&r)) {
            skip_line_end(&r);
            continue;
        }
        int rc = read_row(&r);
        if (rc < 0)
            return rc;
    }
    *ret = r.table;
    return 0;
}

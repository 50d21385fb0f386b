#include "worker/scenario/node.h"

#include "base/log.h"
#include "worker/scenario/encode.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SOURCE_SHOWN_BYTES 160 /* of a file's name in a message, its end */
#define ELLIPSIS           "\xE2\x80\xA6"

const char *node_kind_name(enum node_kind kind)
{
    static const char *const names[] = {"null",     "a boolean", "a number",
                                        "a string", "a list",    "an object"};
    return names[kind];
}

void node_append(struct node *parent, struct node *child)
{
    child->parent = parent;
    child->index = parent->child_count++;
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
}

/* --- duplicates --- */

static int by_key_then_place(const void *a, const void *b)
{
    const struct node *x = *(const struct node *const *)a, *y = *(const struct node *const *)b;
    int order = str_cmp(x->key, y->key);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

int node_refuse_duplicates(const struct node *object, struct arena *scratch, const char *source,
                           struct err *err)
{
    size_t n = object->child_count;
    if (n < 2)
        return 0;
    const struct node **sorted = ARENA_ARRAY(scratch, const struct node *, n);
    if (!sorted)
        return -ENOMEM;
    const struct node *child = object->first;
    for (size_t i = 0; i < n; i++, child = child->next)
        sorted[i] = child;
    qsort(sorted, n, sizeof *sorted, by_key_then_place);
    for (size_t i = 1; i < n; i++) {
        if (str_eq(sorted[i - 1]->key, sorted[i]->key))
            return node_fail(sorted[i], source, err, "the key is given twice, first on line %u",
                             sorted[i - 1]->key_line);
    }
    return 0;
}

/* --- messages --- */

static bool is_plain_key(struct str key)
{
    for (size_t i = 0; i < key.len; i++) {
        char c = key.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '_' || c == '-' || c == '$';
        if (!plain)
            return false;
    }
    return key.len > 0 && key.len <= 64;
}

/* The end of the text, with an ellipsis before it when that is not the whole. */
static void copy_end(const char *text, size_t len, char *ret, size_t size)
{
    if (len < size) {
        memcpy(ret, text, len + 1);
        return;
    }
    size_t begin = len - (size - sizeof ELLIPSIS);
    while (begin < len && ((unsigned char)text[begin] & 0xC0) == 0x80)
        begin++; /* a cut UTF-8 sequence is left out */
    memcpy(ret, ELLIPSIS, sizeof ELLIPSIS - 1);
    memcpy(ret + sizeof ELLIPSIS - 1, text + begin, len - begin + 1);
}

const char *node_path(const struct node *n, char ret[static NODE_PATH_BYTES])
{
    const struct node *chain[NODE_MAX_DEPTH + 1];
    size_t depth = 0;
    for (; n->parent && depth < NODE_MAX_DEPTH + 1; n = n->parent)
        chain[depth++] = n;
    struct buf path;
    buf_init(&path, (NODE_MAX_DEPTH + 1) * (LOG_QUOTED_BYTES + 1));
    int rc = 0;
    while (rc == 0 && depth-- > 0) {
        const struct node *step = chain[depth];
        char quoted[LOG_QUOTED_BYTES];
        struct str key = step->key;
        if (key.ptr && !is_plain_key(key))
            key = str_of(log_quote(key, quoted));
        if (key.ptr)
            rc = buf_printf(&path, "%s%.*s", path.len ? "." : "", STR_ARG(key));
        else
            rc = buf_printf(&path, "[%u]", step->index);
    }
    copy_end(buf_c(&path), path.len, ret, NODE_PATH_BYTES); /* out of memory: what there is */
    buf_done(&path);
    return ret;
}

int node_fail(const struct node *n, const char *source, struct err *err, const char *format, ...)
{
    char path[NODE_PATH_BYTES], shown[SOURCE_SHOWN_BYTES], text[ERR_TEXT_BYTES];
    node_path(n, path);
    copy_end(source, strlen(source), shown, sizeof shown);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args); /* a cut text is still told */
    va_end(args);
    return err_set(err, -EINVAL, "%s:%u: %s%s%s", shown, n->key_line, path, path[0] ? ": " : "",
                   text);
}

/* --- JSON --- */

static int write_string(struct str text, struct buf *out)
{
    int rc = buf_add_byte(out, '"');
    if (rc == 0)
        rc = encode_json(out, text);
    return rc ? rc : buf_add_byte(out, '"');
}

static int write_children(const struct node *n, struct buf *out)
{
    int rc = buf_add_byte(out, n->kind == NODE_LIST ? '[' : '{');
    for (const struct node *child = n->first; rc == 0 && child; child = child->next) {
        if (child->index > 0)
            rc = buf_add(out, STR(", "));
        if (rc == 0 && n->kind == NODE_OBJECT)
            rc = write_string(child->key, out);
        if (rc == 0 && n->kind == NODE_OBJECT)
            rc = buf_add(out, STR(": "));
        if (rc == 0)
            rc = node_write_json(child, out);
    }
    return rc ? rc : buf_add_byte(out, n->kind == NODE_LIST ? ']' : '}');
}

int node_write_json(const struct node *n, struct buf *out)
{
    switch (n->kind) {
    case NODE_NULL:
        return buf_add(out, STR("null"));
    case NODE_BOOL:
        return buf_add(out, n->truth ? STR("true") : STR("false"));
    case NODE_NUMBER:
        return buf_add(out, n->text);
    case NODE_STRING:
        return write_string(n->text, out);
    case NODE_LIST:
    case NODE_OBJECT:
        return write_children(n, out);
    }
    return -EINVAL;
}

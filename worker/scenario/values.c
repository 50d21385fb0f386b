#include "worker/scenario/load.h"
#include "worker/scenario/url.h"

#include "base/log.h"
#include "base/num.h"

#include <math.h>

#define SHOWN_BYTES 40 /* of a refused value */

/* How a refused value is shown: a number as it is written, else its kind. */
static struct str shown(const struct node *n)
{
    if (n->kind != NODE_NUMBER)
        return str_of(node_kind_name(n->kind));
    return str_sub(n->text, 0, SHOWN_BYTES); /* digits: nothing is cut apart */
}

static int copy(struct loader *l, struct str text, struct str *ret)
{
    *ret = arena_copy(l->memory, text);
    return ret->ptr ? 0 : -ENOMEM;
}

int load_tolerate(struct loader *l, int rc)
{
    if (rc != -EINVAL || !l->fault || !l->err)
        return rc;
    l->fault(l->fault_context, l->err->text);
    *l->err = (struct err){0};
    l->faulty = true;
    return 0;
}

int load_bool(struct loader *l, const struct node *n, bool *ret)
{
    if (n->kind != NODE_BOOL)
        return load_fail(l, n, "must be true or false, not %.*s", STR_ARG(shown(n)));
    *ret = n->truth;
    return 0;
}

int load_whole(struct loader *l, const struct node *n, uint32_t min, uint32_t max, uint32_t *ret)
{
    int64_t value;
    if (n->kind != NODE_NUMBER || num_parse_i64(n->text, min, max, &value) < 0)
        return load_fail(l, n, "must be a whole number from %u to %u, not %.*s", min, max,
                         STR_ARG(shown(n)));
    *ret = (uint32_t)value;
    return 0;
}

int load_number(struct loader *l, const struct node *n, double min, double max, double *ret)
{
    double value = 0;
    bool fits = n->kind == NODE_NUMBER && num_parse_double(n->text, &value) == 0 && value >= min &&
                value <= max;
    if (!fits)
        return load_fail(l, n, "must be a number from %.10g to %.10g, not %.*s", min, max,
                         STR_ARG(shown(n)));
    *ret = value;
    return 0;
}

int load_seconds(struct loader *l, const struct node *n, double min_s, double max_s,
                 uint64_t *ret_us)
{
    double seconds;
    int rc = load_number(l, n, min_s, max_s, &seconds);
    if (rc == 0)
        *ret_us = (uint64_t)llround(seconds * 1e6);
    return rc;
}

static int need_string(struct loader *l, const struct node *n)
{
    if (n->kind != NODE_STRING)
        return load_fail(l, n, "must be a string, not %.*s", STR_ARG(shown(n)));
    return 0;
}

int load_text(struct loader *l, const struct node *n, struct str *ret)
{
    int rc = need_string(l, n);
    return rc ? rc : copy(l, n->text, ret);
}

int load_name(struct loader *l, const struct node *n, struct str *ret)
{
    int rc = need_string(l, n);
    if (rc < 0)
        return rc;
    if (n->text.len == 0)
        return load_fail(l, n, "must not be empty");
    if (n->text.len > PLAN_MAX_NAME_BYTES)
        return load_fail(l, n, "must not be longer than %d bytes", PLAN_MAX_NAME_BYTES);
    for (size_t i = 0; i < n->text.len; i++) {
        if ((unsigned char)n->text.ptr[i] < 0x20 || n->text.ptr[i] == 0x7F)
            return load_fail(l, n, "must not have control characters");
    }
    return copy(l, n->text, ret);
}

int load_list(struct loader *l, const struct node *n, size_t max, const char *what)
{
    if (n->kind != NODE_LIST)
        return load_fail(l, n, "must be a list of %s, not %.*s", what, STR_ARG(shown(n)));
    if (n->child_count == 0)
        return load_fail(l, n, "must not be empty");
    if (n->child_count > max)
        return load_fail(l, n, "must not have more than %zu %s, has %u", max, what, n->child_count);
    return 0;
}

int load_word(struct loader *l, const struct node *n, const char *const *words, size_t count,
              size_t *ret)
{
    struct buf known;
    buf_init(&known, ERR_TEXT_BYTES);
    int rc = 0;
    for (size_t i = 0; i < count; i++) {
        if (n->kind == NODE_STRING && str_eq(n->text, str_of(words[i]))) {
            *ret = i;
            return 0;
        }
    }
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = buf_printf(&known, "%s\"%s\"", i == 0 ? "" : i + 1 == count ? " or " : ", ", words[i]);
    if (rc == 0)
        rc = load_fail(l, n, "must be %s", buf_c(&known));
    buf_done(&known);
    return rc;
}

int load_host(struct loader *l, const struct node *n, struct str *ret, struct plan_text *ret_text)
{
    int rc = need_string(l, n);
    if (rc < 0)
        return rc;
    if (text_has_variables(n->text)) {
        *ret = (struct str){NULL, 0};
        return load_template(l, n, PLAN_INSERT_PLAIN, ret_text);
    }
    struct url parts;
    struct err why = {0};
    char quoted[LOG_QUOTED_BYTES];
    if (url_parse_host(n->text, &parts, &why) < 0) {
        struct str host = n->text;
        size_t at = str_find(host, '@'); /* user and password are not shown */
        bool hidden = at < host.len;
        return load_fail(l, n, "%s %s", hidden ? "the host" : log_quote(host, quoted), why.text);
    }
    return copy(l, n->text, ret);
}

int load_proxy(struct loader *l, const struct node *n, struct str *ret)
{
    struct url parts;
    struct err why = {0};
    int rc = need_string(l, n);
    if (rc == 0 && url_parse_proxy(n->text, &parts, &why) < 0)
        return load_fail(l, n, "the proxy %s", why.text);
    return rc < 0 ? rc : copy(l, n->text, ret);
}

/* --- files --- */

static int read_file(struct loader *l, struct str name, struct buf *ret, struct err *err)
{
    if (l->files)
        return l->files->read(l->files->context, name, ret, err);
    return files_read_beside(l->source, name, ret, err);
}

int load_file(struct loader *l, const struct node *n, struct str *ret)
{
    struct buf bytes;
    struct err why = {0};
    struct str name;
    int rc = load_name(l, n, &name);
    if (rc < 0)
        return rc;
    buf_init(&bytes, PLAN_MAX_FILE_BYTES);
    rc = read_file(l, name, &bytes, &why);
    if (rc < 0 && rc != -ENOMEM)
        rc = load_fail(l, n, "%s", why.text);
    else if (rc == 0 && !(*ret = arena_copy(l->memory, buf_str(&bytes))).ptr)
        rc = -ENOMEM;
    buf_done(&bytes);
    return rc;
}

/* The bodies that a request can have. Each is one text, with or without variables. */
#include "worker/scenario/encode.h"
#include "worker/scenario/load.h"

/* --- text, file --- */

int load_body_text(struct loader *l, const struct node *n, struct load_body *ret)
{
    if (n->kind != NODE_STRING)
        return load_fail(l, n, "must be a string, not %s; for a JSON value write 'json'",
                         node_kind_name(n->kind));
    return load_template(l, n, PLAN_INSERT_PLAIN, &ret->text);
}

/* The bytes of a file are sent as they are: variables are the scenario's. */
int load_body_file(struct loader *l, const struct node *n, struct load_body *ret)
{
    int rc = load_file(l, n, &ret->text.text);
    return rc ? rc : load_name(l, n, &ret->file);
}

/* --- JSON --- */

static int add_json(struct text_builder *b, const struct node *n);

/* A string that is one variable and nothing else is that variable's value: a number stays one. */
static bool is_one_variable(struct str text)
{
    return str_starts(text, STR("${")) && str_find(text, '}') == text.len - 1;
}

static int add_json_string(struct text_builder *b, const struct node *n, struct str text)
{
    if (is_one_variable(text))
        return text_add_template(b, n, text, PLAN_INSERT_JSON_VALUE);
    int rc = text_add(b, STR("\""));
    if (rc == 0)
        rc = text_add_template(b, n, text, PLAN_INSERT_JSON_TEXT);
    return rc ? rc : text_add(b, STR("\""));
}

static int add_json_children(struct text_builder *b, const struct node *n)
{
    bool list = n->kind == NODE_LIST;
    int rc = text_add(b, list ? STR("[") : STR("{"));
    for (const struct node *child = n->first; rc == 0 && child; child = child->next) {
        if (child->index > 0)
            rc = text_add(b, STR(", "));
        if (rc == 0 && !list)
            rc = text_add(b, STR("\""));
        if (rc == 0 && !list)
            rc = text_add_template(b, child, child->key, PLAN_INSERT_JSON_TEXT);
        if (rc == 0 && !list)
            rc = text_add(b, STR("\": "));
        if (rc == 0)
            rc = add_json(b, child);
    }
    return rc ? rc : text_add(b, list ? STR("]") : STR("}"));
}

static int add_json(struct text_builder *b, const struct node *n)
{
    switch (n->kind) {
    case NODE_NULL:
        return text_add(b, STR("null"));
    case NODE_BOOL:
        return text_add(b, n->truth ? STR("true") : STR("false"));
    case NODE_NUMBER:
        return text_add(b, n->text);
    case NODE_STRING:
        return add_json_string(b, n, n->text);
    case NODE_LIST:
    case NODE_OBJECT:
        return add_json_children(b, n);
    }
    return -EINVAL;
}

static int end_body(struct text_builder *b, int rc, struct load_body *ret)
{
    if (rc == 0)
        return text_end(b, &ret->text);
    text_abort(b);
    return rc;
}

int load_body_json(struct loader *l, const struct node *n, struct load_body *ret)
{
    struct text_builder b;
    text_begin(&b, l);
    ret->content_type = STR("application/json");
    return end_body(&b, add_json(&b, n), ret);
}

/* --- forms and queries --- */

static int add_field(struct text_builder *b, const struct node *name, const struct node *value,
                     bool first)
{
    if (value->kind != NODE_STRING && value->kind != NODE_NUMBER && value->kind != NODE_BOOL)
        return load_fail(b->l, value,
                         "must be a string, a number, a boolean or a list of them, not %s",
                         node_kind_name(value->kind));
    int rc = first ? 0 : text_add(b, STR("&"));
    if (rc == 0)
        rc = text_add_template(b, name, name->key, PLAN_INSERT_FORM);
    if (rc == 0)
        rc = text_add(b, STR("="));
    return rc ? rc : text_add_template(b, value, value->text, PLAN_INSERT_FORM);
}

int load_fields(struct text_builder *b, const struct node *n)
{
    int rc = 0;
    bool first = true;
    if (n->kind != NODE_OBJECT)
        return load_fail(b->l, n, "must be an object of names and values, not %s",
                         node_kind_name(n->kind));
    if (n->child_count > PLAN_MAX_FIELDS)
        return load_fail(b->l, n, "must not have more than %d fields", PLAN_MAX_FIELDS);
    for (const struct node *field = n->first; rc == 0 && field; field = field->next) {
        bool list = field->kind == NODE_LIST;
        for (const struct node *one = list ? field->first : field; rc == 0 && one;
             one = list ? one->next : NULL) {
            rc = add_field(b, field, one, first);
            first = false;
        }
    }
    return rc;
}

int load_body_form(struct loader *l, const struct node *n, struct load_body *ret)
{
    struct text_builder b;
    text_begin(&b, l);
    ret->content_type = STR("application/x-www-form-urlencoded");
    return end_body(&b, load_fields(&b, n), ret);
}

/* --- multipart ---
 *
 * RFC 7578. The boundary is the same on every run, so that bodies can be compared; it is made of
 * what the parts hold, so that it is in none of them by chance. */

struct part_draft {
    const struct node *file, *text, *filename;
    struct str content_type;
};

static int read_part_file(struct loader *l, const struct node *n, void *target)
{
    struct str name;
    ((struct part_draft *)target)->file = n;
    return load_name(l, n, &name);
}

static int read_part_text(struct loader *l, const struct node *n, void *target)
{
    ((struct part_draft *)target)->text = n;
    return n->kind == NODE_STRING
               ? 0
               : load_fail(l, n, "must be a string, not %s", node_kind_name(n->kind));
}

static int read_part_filename(struct loader *l, const struct node *n, void *target)
{
    struct str name;
    ((struct part_draft *)target)->filename = n;
    return load_name(l, n, &name);
}

static int read_part_type(struct loader *l, const struct node *n, void *target)
{
    int rc = load_name(l, n, &((struct part_draft *)target)->content_type);
    if (rc == 0 && text_has_variables(n->text))
        return load_fail(l, n, "must not have variables");
    return rc;
}

static const struct load_key part_keys[] = {
    {.name = "file", .read = read_part_file, .also = "path"},
    {.name = "text", .read = read_part_text, .also = "value body content"},
    {.name = "filename", .read = read_part_filename, .also = "name"},
    {.name = "content_type", .read = read_part_type, .also = "type mime"},
};

static struct str file_name_of(struct str path)
{
    size_t at = path.len;
    while (at > 0 && path.ptr[at - 1] != '/')
        at--;
    return str_sub(path, at, path.len);
}

static int add_quoted(struct text_builder *b, struct str text)
{
    struct buf quoted;
    buf_init(&quoted, PLAN_MAX_NAME_BYTES * 3);
    int rc = encode_quoted(&quoted, text);
    if (rc == 0)
        rc = text_add(b, buf_str(&quoted));
    buf_done(&quoted);
    return rc;
}

static int add_filename(struct text_builder *b, const struct part_draft *d)
{
    int rc = d->filename || d->file ? text_add(b, STR("\"; filename=\"")) : 0;
    if (rc == 0 && d->filename)
        return text_add_template(b, d->filename, d->filename->text, PLAN_INSERT_QUOTED);
    if (rc == 0 && d->file)
        return add_quoted(b, file_name_of(d->file->text));
    return rc;
}

static int add_disposition(struct text_builder *b, const struct node *n, const struct part_draft *d)
{
    int rc = text_add(b, STR("Content-Disposition: form-data; name=\""));
    if (rc == 0)
        rc = text_add_template(b, n, n->key, PLAN_INSERT_QUOTED);
    if (rc == 0)
        rc = add_filename(b, d);
    if (rc == 0)
        rc = text_add(b, STR("\"\r\n"));
    struct str type = d->content_type;
    if (!type.ptr && d->file)
        type = STR("application/octet-stream");
    if (rc == 0 && type.ptr)
        rc = text_add(b, STR("Content-Type: "));
    if (rc == 0 && type.ptr)
        rc = text_add(b, type);
    if (rc == 0 && type.ptr)
        rc = text_add(b, STR("\r\n"));
    return rc ? rc : text_add(b, STR("\r\n"));
}

static int add_part(struct text_builder *b, const struct node *n)
{
    struct part_draft d = {.text = n};
    struct str bytes;
    int rc = 0;
    if (n->kind == NODE_OBJECT) {
        d.text = NULL;
        rc = load_object(b->l, n, "a part", KEYS(part_keys), &d);
        if (rc == 0 && !d.file == !d.text)
            rc = load_fail(b->l, n, "a part needs one of 'file' and 'text'");
    } else if (n->kind != NODE_STRING && n->kind != NODE_NUMBER && n->kind != NODE_BOOL) {
        rc = load_fail(b->l, n, "must be a string, a number, a boolean or an object, not %s",
                       node_kind_name(n->kind));
    }
    if (rc == 0)
        rc = add_disposition(b, n, &d);
    if (rc == 0 && d.file)
        rc = load_file(b->l, d.file, &bytes);
    if (rc < 0)
        return rc;
    return d.file ? text_add(b, bytes)
                  : text_add_template(b, d.text, d.text->text, PLAN_INSERT_PLAIN);
}

static int make_boundary(struct loader *l, const struct node *n, struct str *ret)
{
    struct buf seed;
    buf_init(&seed, (size_t)PLAN_MAX_FILE_BYTES * 6);
    int rc = node_write_json(n, &seed);
    size_t first = str_hash(buf_str(&seed)), second;
    if (rc == 0)
        rc = buf_add(&seed, STR("cicada"));
    second = str_hash(buf_str(&seed));
    buf_clear(&seed);
    if (rc == 0)
        rc = buf_printf(&seed, "cicada%016zx%016zx", first, second);
    if (rc == 0)
        *ret = arena_copy(l->memory, buf_str(&seed));
    buf_done(&seed);
    return rc == 0 && !ret->ptr ? -ENOMEM : rc;
}

static int add_parts(struct text_builder *b, const struct node *n, struct str boundary)
{
    int rc = 0;
    for (const struct node *one = n->first; rc == 0 && one; one = one->next) {
        rc = text_add(b, STR("--"));
        if (rc == 0)
            rc = text_add(b, boundary);
        if (rc == 0)
            rc = text_add(b, STR("\r\n"));
        if (rc == 0)
            rc = add_part(b, one);
        if (rc == 0)
            rc = text_add(b, STR("\r\n"));
    }
    if (rc == 0)
        rc = text_add(b, STR("--"));
    if (rc == 0)
        rc = text_add(b, boundary);
    return rc ? rc : text_add(b, STR("--\r\n"));
}

int load_body_multipart(struct loader *l, const struct node *n, struct load_body *ret)
{
    struct text_builder b;
    struct str boundary = {NULL, 0};
    if (n->kind != NODE_OBJECT)
        return load_fail(l, n, "must be an object of names and parts, not %s",
                         node_kind_name(n->kind));
    if (!n->first)
        return load_fail(l, n, "must not be empty");
    if (n->child_count > PLAN_MAX_FIELDS)
        return load_fail(l, n, "must not have more than %d parts", PLAN_MAX_FIELDS);
    int rc = make_boundary(l, n, &boundary);
    if (rc < 0)
        return rc;
    text_begin(&b, l);
    rc = end_body(&b, add_parts(&b, n, boundary), ret);
    struct buf type;
    buf_init(&type, 256);
    if (rc == 0)
        rc = buf_printf(&type, "multipart/form-data; boundary=%.*s", STR_ARG(boundary));
    if (rc == 0)
        ret->content_type = arena_copy(l->memory, buf_str(&type));
    buf_done(&type);
    return rc == 0 && !ret->content_type.ptr ? -ENOMEM : rc;
}

/* Writing and reading are two views of the same seam: the loader asks for files by name, and while
 * a bundle is written they come from the disk and are noted; while it is read they come from it. So
 * whatever a scenario can read is in its bundle, without a list of such places. A private folder
 * for the files of a bundle was not taken: it would have to be cleaned up after a crash. */
#include "worker/scenario/bundle.h"

#include "base/base64.h"
#include "base/utf8.h"
#include "worker/scenario/encode.h"
#include "worker/scenario/load.h"
#include "worker/scenario/node_json.h"
#include "worker/scenario/task_file.h"

#define BEGIN   "# --- cicada scenario begin"
#define ADVICE  " (made by cicada locustfile; run it again rather than edit this)\n"
#define OPENING "CICADA_SCENARIO = r\"\"\""
#define CLOSING "\"\"\""
#define END     "# --- cicada scenario end\n"
#define VERSION "1"

bool bundle_may_hold(struct str name)
{
    return str_ends(name, STR(".py"));
}

/* Of a file in the scenario's folder or below it. Who unpacks a bundle can trust its names. */
static bool is_inside(struct str name)
{
    struct str rest = name, part;
    bool inside = name.len > 0 && name.len <= PLAN_MAX_NAME_BYTES && name.ptr[0] != '/';
    for (size_t i = 0; inside && i < name.len; i++)
        inside = (unsigned char)name.ptr[i] >= 0x20 && name.ptr[i] != 0x7F;
    while (inside && str_next(&rest, '/', &part))
        inside = !str_eq(part, STR(".."));
    return inside;
}

/* --- writing --- */

struct written_file {
    struct str name, bytes;
    struct written_file *next;
};

struct writer {
    const char *path; /* of the scenario */
    struct arena memory;
    struct written_file *first, **last;
    size_t bytes;
};

static int too_large(const struct writer *w, struct err *err)
{
    return err_set(err, -ERANGE, "%s: with its files larger than the %u MiB that fit a locustfile",
                   w->path, BUNDLE_MAX_BYTES >> 20);
}

static int note_file(struct writer *w, struct str name, struct str bytes, struct err *err)
{
    w->bytes += bytes.len;
    if (w->bytes > BUNDLE_MAX_BYTES)
        return too_large(w, err);
    struct written_file *f = ARENA_NEW(&w->memory, struct written_file);
    if (!f)
        return -ENOMEM;
    f->name = arena_copy(&w->memory, name);
    f->bytes = arena_copy(&w->memory, bytes);
    if (!f->name.ptr || !f->bytes.ptr)
        return -ENOMEM;
    *w->last = f;
    w->last = &f->next;
    return 0;
}

static const struct written_file *find_written(const struct writer *w, struct str name)
{
    const struct written_file *f = w->first;
    while (f && !str_eq(f->name, name))
        f = f->next;
    return f;
}

static int read_and_note(void *context, struct str name, struct buf *ret, struct err *err)
{
    struct writer *w = context;
    const struct written_file *known = find_written(w, name);
    if (known)
        return buf_add(ret, known->bytes);
    if (!is_inside(name))
        return err_set(err, -EINVAL,
                       "%.*s: is outside of the scenario's folder, so it cannot go into a "
                       "locustfile",
                       STR_ARG(name));
    int rc = files_read_beside(w->path, name, ret, err);
    return rc ? rc : note_file(w, name, buf_str(ret), err);
}

static struct str base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return str_of(slash ? slash + 1 : path);
}

/* Load the scenario for the sake of what it reads. */
static int read_all(struct writer *w, struct err *err)
{
    struct str name = base_name(w->path);
    struct buf text;
    struct plan *plan = NULL;
    const struct files files = {read_and_note, w};
    const struct load_order order = {
        .source = w->path, .yaml = load_is_yaml(name), .files = &files};
    if (!is_inside(name))
        return err_set(err, -EINVAL, "%s: its name cannot go into a locustfile", w->path);
    buf_init(&text, BUNDLE_MAX_BYTES);
    int rc = buf_read_file(&text, w->path, err);
    if (rc == 0)
        rc = note_file(w, name, buf_str(&text), err);
    if (rc == 0)
        rc = load_plan(buf_str(&text), &order, &plan, err);
    plan_free(plan);
    buf_done(&text);
    return rc;
}

static int add_quoted(struct buf *out, struct str text)
{
    int rc = buf_add_byte(out, '"');
    if (rc == 0)
        rc = encode_json(out, text);
    return rc ? rc : buf_add_byte(out, '"');
}

static int add_base64(struct buf *out, struct str bytes)
{
    int rc = buf_add(out, STR("{\"base64\": \""));
    if (rc == 0)
        rc = base64_encode(out, bytes);
    return rc ? rc : buf_add(out, STR("\"}"));
}

static int add_file(struct buf *out, const struct written_file *f)
{
    int rc = add_quoted(out, f->name);
    if (rc == 0)
        rc = buf_add(out, STR(": "));
    if (rc == 0)
        rc = (utf8_valid(f->bytes) ? add_quoted : add_base64)(out, f->bytes);
    return rc ? rc : buf_add(out, f->next ? STR(",\n") : STR("\n"));
}

static int add_json(struct buf *out, const struct writer *w)
{
    int rc = buf_add(out, STR("{\"version\": " VERSION ", \"scenario\": "));
    if (rc == 0)
        rc = add_quoted(out, w->first->name);
    if (rc == 0)
        rc = buf_add(out, STR(", \"files\": {\n"));
    for (const struct written_file *f = w->first; rc == 0 && f; f = f->next)
        rc = add_file(out, f);
    return rc ? rc : buf_add(out, STR("}}"));
}

static int add_lines(struct buf *out, struct str json)
{
    int rc = buf_add(out, STR(BEGIN ADVICE OPENING "\n"));
    if (rc == 0)
        rc = buf_add(out, json);
    return rc ? rc : buf_add(out, STR("\n" CLOSING "\n" END));
}

int bundle_write(const char *path, struct buf *out, struct err *err)
{
    struct writer w = {.path = path};
    struct buf json;
    if (task_file_is_one(path))
        return err_set(err, -EINVAL, "%s: tasks in C cannot go into a locustfile", path);
    if (bundle_may_hold(str_of(path)))
        return err_set(err, -EINVAL, "%s: is a locustfile, not a scenario", path);
    w.last = &w.first;
    buf_init(&json, BUNDLE_MAX_BYTES);
    int rc = read_all(&w, err);
    if (rc == 0)
        rc = add_json(&json, &w);
    if (rc == 0)
        rc = add_lines(out, buf_str(&json));
    if (rc == -ERANGE)
        rc = too_large(&w, err);
    else if (rc < 0)
        rc = err_set(err, rc, "%s: %s", path, strerror(-rc));
    buf_done(&json);
    arena_done(&w.memory);
    return rc;
}

/* --- finding --- */

/* The line with the mark is passed; *ret is what follows. */
static bool find_begin(struct str locustfile, struct str *ret)
{
    struct str line;
    *ret = locustfile;
    while (str_next(ret, '\n', &line)) {
        if (str_starts(line, STR(BEGIN)))
            return true;
    }
    return false;
}

bool bundle_is_in(struct str locustfile)
{
    struct str rest;
    return find_begin(locustfile, &rest);
}

static int damaged(const char *source, const char *what, struct err *err)
{
    return err_set(err, -EINVAL,
                   "%s: the scenario in it is damaged, make it again with 'cicada locustfile': %s",
                   source, what);
}

static int find_json(struct str locustfile, const char *source, struct str *ret, struct err *err)
{
    struct str rest, line;
    if (!find_begin(locustfile, &rest))
        return err_set(err, -EINVAL,
                       "%s: holds no scenario: make one that does with 'cicada locustfile "
                       "SCENARIO', or name the scenario itself",
                       source);
    if (!str_next(&rest, '\n', &line) || !str_eq(str_trim(line), STR(OPENING)))
        return damaged(source, "it does not begin with '" OPENING "'", err);
    size_t end = str_find_str(rest, STR(CLOSING));
    if (end == rest.len)
        return damaged(source, "it has no end", err);
    if (end > BUNDLE_MAX_BYTES)
        return damaged(source, "it is too large", err);
    *ret = str_sub(rest, 0, end);
    return 0;
}

/* --- reading --- */

struct bundle {
    struct str scenario;      /* the name */
    const struct node *files; /* an object; each child a string, or an object with "base64" */
};

static const struct node *child_of(const struct node *object, struct str key)
{
    const struct node *n = object && object->kind == NODE_OBJECT ? object->first : NULL;
    while (n && !str_eq(n->key, key))
        n = n->next;
    return n;
}

static bool is_string(const struct node *n)
{
    return n && n->kind == NODE_STRING;
}

/* NULL, or what is wrong. */
static const char *take_parts(const struct node *root, struct bundle *ret)
{
    const struct node *version = child_of(root, STR("version")),
                      *scenario = child_of(root, STR("scenario"));
    ret->files = child_of(root, STR("files"));
    if (!version || version->kind != NODE_NUMBER)
        return "'version' is missing";
    if (!str_eq(version->text, STR(VERSION)))
        return "it is of a version that this cicada does not know";
    if (!ret->files || ret->files->kind != NODE_OBJECT)
        return "'files' is missing";
    for (const struct node *f = ret->files->first; f; f = f->next) {
        if (!is_string(f) && !is_string(child_of(f, STR("base64"))))
            return "a file is neither text nor base64";
        if (!is_inside(f->key))
            return "the name of a file leads out of it";
    }
    if (!is_string(scenario) || !is_string(child_of(ret->files, scenario->text)))
        return "'scenario' is not the name of a text in it";
    ret->scenario = scenario->text;
    return NULL;
}

static int read_inside(void *context, struct str name, struct buf *ret, struct err *err)
{
    const struct bundle *b = context;
    const struct node *f = child_of(b->files, name);
    if (!f)
        return err_set(err, -ENOENT, "%.*s: is not in the locustfile", STR_ARG(name));
    if (is_string(f))
        return buf_add(ret, f->text);
    int rc = base64_decode(ret, child_of(f, STR("base64"))->text);
    return rc == -EINVAL ? err_set(err, rc, "%.*s: is not base64", STR_ARG(name)) : rc;
}

static int load_inside(const struct bundle *b, const struct load_order *order, struct plan **ret,
                       struct err *err)
{
    struct bundle own = *b;
    const struct files files = {read_inside, &own};
    struct load_order inner = *order;
    struct buf source;
    buf_init(&source, strlen(order->source) + b->scenario.len + sizeof ": ");
    int rc = buf_printf(&source, "%s: %.*s", order->source, STR_ARG(b->scenario));
    inner.source = buf_c(&source);
    inner.yaml = load_is_yaml(b->scenario);
    inner.files = &files;
    if (rc == 0)
        rc = load_plan(child_of(b->files, b->scenario)->text, &inner, ret, err);
    buf_done(&source);
    return rc;
}

static int read_json(struct str json, const char *source, struct arena *memory, struct bundle *ret,
                     struct err *err)
{
    struct err why = {0};
    const struct node *root;
    int rc = node_from_json(json, "CICADA_SCENARIO", memory, &root, &why);
    if (rc == -ENOMEM)
        return rc;
    const char *fault = rc < 0 ? why.text : take_parts(root, ret);
    return fault ? damaged(source, fault, err) : 0;
}

int load_bundle(struct str locustfile, const struct load_order *order, struct plan **ret,
                struct err *err)
{
    struct arena memory = {0};
    struct bundle bundle;
    struct str json;
    int rc = find_json(locustfile, order->source, &json, err);
    if (rc == 0)
        rc = read_json(json, order->source, &memory, &bundle, err);
    if (rc == 0)
        rc = load_inside(&bundle, order, ret, err);
    arena_done(&memory);
    return rc == -ENOMEM ? err_set(err, rc, "%s: out of memory", order->source) : rc;
}

int bundle_load(struct str locustfile, const char *source, const struct plan_tags *tags,
                struct plan **ret, struct err *err)
{
    return load_bundle(locustfile, &(struct load_order){.source = source, .tags = tags}, ret, err);
}

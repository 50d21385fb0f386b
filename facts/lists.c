/* A place is a position in the list's tree that means something; one table says how keys lead from
 * place to place. Everything else, at any depth, is PLACE_OTHER and costs nothing. */
#include "facts/lists.h"

#include "base/log.h"
#include "base/utf8.h"

#include <jansson.h>
#include <stdio.h>

enum {
    PLACE_OTHER,
    PLACE_LIST,
    PLACE_KIND,
    PLACE_LIST_META,
    PLACE_CONTINUE,
    PLACE_ITEMS,
    PLACE_ITEM, /* any element of items */
    PLACE_META,
    PLACE_LABELS,
    PLACE_SPEC,
    PLACE_STATUS,
    PLACE_ALLOCATABLE,
    PLACE_FIELD, /* + enum list_field */
};

static const struct {
    int parent;
    struct str key;
    int place;
} ways[] = {
    {PLACE_LIST, {"kind", 4}, PLACE_KIND},
    {PLACE_LIST, {"metadata", 8}, PLACE_LIST_META},
    {PLACE_LIST, {"items", 5}, PLACE_ITEMS},
    {PLACE_LIST_META, {"continue", 8}, PLACE_CONTINUE},
    {PLACE_ITEM, {"metadata", 8}, PLACE_META},
    {PLACE_ITEM, {"spec", 4}, PLACE_SPEC},
    {PLACE_ITEM, {"status", 6}, PLACE_STATUS},
    {PLACE_META, {"name", 4}, PLACE_FIELD + LIST_NAME},
    {PLACE_META, {"labels", 6}, PLACE_LABELS},
    {PLACE_SPEC, {"nodeName", 8}, PLACE_FIELD + LIST_NODE_NAME},
    {PLACE_STATUS, {"phase", 5}, PLACE_FIELD + LIST_PHASE},
    {PLACE_STATUS, {"allocatable", 11}, PLACE_ALLOCATABLE},
    {PLACE_ALLOCATABLE, {"cpu", 3}, PLACE_FIELD + LIST_CPU},
    {PLACE_ALLOCATABLE, {"memory", 6}, PLACE_FIELD + LIST_MEMORY},
};

static const struct {
    const char *plural;
    struct str kind;
} kinds[] = {
    [LIST_NODES] = {"nodes", {"NodeList", 8}},
    [LIST_PODS] = {"pods", {"PodList", 7}},
};

static int place_of(const struct list_reader *r, int parent, struct str key)
{
    if (parent == PLACE_LABELS)
        return str_eq(key, str_of(r->label)) ? PLACE_FIELD + LIST_MACHINE_TYPE : PLACE_OTHER;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (ways[i].parent == parent && str_eq(ways[i].key, key))
            return ways[i].place;
    }
    return PLACE_OTHER;
}

static int refuse(struct list_reader *r, const char *what)
{
    return err_set(&r->err, -EPROTO, "not a list of %s: %s", kinds[r->kind].plural, what);
}

static void begin_item(struct list_reader *r)
{
    memset(r->has, 0, sizeof r->has);
    r->count++;
}

static int end_item(struct list_reader *r)
{
    struct list_item item = {0};
    for (int f = 0; f < LIST_FIELDS; f++) {
        if (r->has[f])
            item.field[f] = (struct str){r->text[f], r->len[f]};
    }
    return r->fn(r->arg, &item, &r->err);
}

static int keep_field(struct list_reader *r, int field, struct str text, bool cut)
{
    if (cut || text.len > LIST_TEXT_BYTES)
        return err_set(&r->err, -EPROTO, "item %lu of the %s: a name or value is too long",
                       r->count, kinds[r->kind].plural);
    if (!utf8_valid(text))
        return err_set(&r->err, -EPROTO, "item %lu of the %s: a name or value is not UTF-8",
                       r->count, kinds[r->kind].plural);
    memcpy(r->text[field], text.ptr, text.len);
    r->len[field] = text.len;
    r->has[field] = true;
    return 0;
}

static int take_scalar(struct list_reader *r, int place, enum json_event event, struct str text,
                       bool cut)
{
    bool is_text = event == JSON_EVENT_TEXT;
    if (event == JSON_EVENT_NULL || place == PLACE_OTHER) {
        if (place == PLACE_LIST || place == PLACE_ITEM)
            return refuse(r, "an object is null");
        r->saw_items |= place == PLACE_ITEMS; /* Go writes an empty list so */
        return 0;
    }
    if (place >= PLACE_FIELD) {
        int field = place - PLACE_FIELD;
        bool number = event == JSON_EVENT_NUMBER && (field == LIST_CPU || field == LIST_MEMORY);
        if (!is_text && !number)
            return err_set(&r->err, -EPROTO, "item %lu of the %s: a value is not a text", r->count,
                           kinds[r->kind].plural);
        return keep_field(r, field, text, cut);
    }
    if (place == PLACE_KIND && is_text) {
        r->wrong_kind = cut || !str_eq(text, kinds[r->kind].kind);
        r->is_status = str_eq(text, STR("Status"));
        return 0;
    }
    if (place == PLACE_CONTINUE && is_text) {
        r->continues = text.len > 0;
        return 0;
    }
    return refuse(r, "a value stands where an object or a list belongs");
}

static int open_place(struct list_reader *r, int place, bool object)
{
    bool leaf = place >= PLACE_FIELD || place == PLACE_KIND || place == PLACE_CONTINUE;
    if (leaf || (place != PLACE_OTHER && object != (place != PLACE_ITEMS)))
        return refuse(r, "an object or a list stands where another value belongs");
    r->saw_items |= place == PLACE_ITEMS;
    if (place == PLACE_ITEM)
        begin_item(r);
    return 0;
}

static int on_event(void *arg, enum json_event event, struct str text, bool cut)
{
    struct list_reader *r = arg;
    /* depth counts a bracket from its beginning to before its end is told */
    unsigned depth = r->scan.depth;
    bool begins = event == JSON_EVENT_OBJECT || event == JSON_EVENT_ARRAY;
    if (event == JSON_EVENT_OBJECT_END || event == JSON_EVENT_ARRAY_END)
        return depth + 1 <= LIST_PATH_DEPTH && r->place[depth] == PLACE_ITEM ? end_item(r) : 0;
    unsigned outer = begins ? depth - 1 : depth; /* brackets around this value */
    if (outer >= LIST_PATH_DEPTH)
        return 0;
    int parent = outer ? r->place[outer - 1] : PLACE_OTHER;
    if (event == JSON_EVENT_KEY) {
        r->next = parent == PLACE_OTHER || cut ? PLACE_OTHER : place_of(r, parent, text);
        return 0;
    }
    int place = outer == 0 ? PLACE_LIST : parent == PLACE_ITEMS ? PLACE_ITEM : PLACE_OTHER;
    if (parent != PLACE_OTHER && parent != PLACE_ITEMS)
        place = r->next;
    if (!begins)
        return take_scalar(r, place, event, text, cut);
    r->place[outer] = place;
    return open_place(r, place, event == JSON_EVENT_OBJECT);
}

void list_reader_init(struct list_reader *r, enum list_kind kind, const char *label,
                      list_item_fn *fn, void *arg)
{
    *r = (struct list_reader){.kind = kind, .label = label, .fn = fn, .arg = arg};
    json_scan_init(&r->scan, on_event, r);
}

int list_reader_feed(struct list_reader *r, struct str bytes)
{
    int rc = json_scan_feed(&r->scan, bytes);
    if (rc == -EPROTO)
        err_set(&r->err, rc, "not a list of %s: bad JSON at byte %llu", kinds[r->kind].plural,
                (unsigned long long)r->scan.offset);
    return rc;
}

int list_reader_end(struct list_reader *r)
{
    if (json_scan_end(&r->scan) < 0)
        return refuse(r, "the JSON ends too early");
    if (r->is_status)
        return refuse(r, "it is a Status");
    if (r->wrong_kind)
        return refuse(r, "it is of another kind");
    if (!r->saw_items)
        return refuse(r, "it has no items");
    if (r->continues)
        return err_set(&r->err, -EPROTO, "the list of %s is not complete", kinds[r->kind].plural);
    return 0;
}

bool list_status_message(struct str body, char *ret, size_t ret_bytes)
{
    json_error_t error;
    json_auto_t *root = json_loadb(body.len ? body.ptr : "", body.len, 0, &error);
    const char *kind = json_string_value(json_object_get(root, "kind"));
    const char *message = json_string_value(json_object_get(root, "message"));
    if (!kind || strcmp(kind, "Status") != 0 || !message || !*message)
        return false;
    char quoted[LOG_QUOTED_BYTES];
    (void)snprintf(ret, ret_bytes, "%s", log_quote(str_of(message), quoted)); /* cut is fine */
    return true;
}

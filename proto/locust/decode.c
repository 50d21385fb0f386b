/* A frame is scanned, unpacked by msgpack-c into a tree that points into the frame, and copied from
 * there into the message; tree and frame are done with when message_decode returns. The copies hang
 * in one list of blocks. A map that names a key twice counts the last one, as a Python dict does.
 */
#include "proto/locust/message.h"

#include "base/log.h"
#include "base/utf8.h"
#include "proto/locust/scan.h"
#include "proto/locust/value.h"

#include <math.h>
#include <msgpack.h>
#include <stdlib.h>

struct block {
    struct block *next;
    max_align_t bytes[];
};

/* --- memory of the message ---------------------------------------------------------------------
 */

static void *keep(struct message *m, size_t bytes)
{
    struct block *b = calloc(1, sizeof *b + bytes);
    if (!b)
        return NULL;
    b->next = m->memory;
    m->memory = b;
    return b->bytes;
}

static int out_of_memory(struct err *err)
{
    return err_set(err, -ENOMEM, "message: out of memory");
}

/* Text of a str or bin, repaired; never a NULL ptr. */
static int keep_text(struct message *m, const msgpack_object *o, struct str *ret, struct err *err)
{
    struct buf scratch;
    struct str text;
    buf_init(&scratch, (size_t)MESSAGE_MAX_BYTES * 3);
    int rc = value_text(o, &scratch, &text);
    if (rc == 0) {
        char *copy = keep(m, text.len + 1);
        if (copy && text.len)
            memcpy(copy, text.ptr, text.len);
        *ret = (struct str){copy, text.len};
        if (!copy)
            rc = -ENOMEM;
    }
    buf_done(&scratch);
    return rc == -EPROTO ? rc : rc < 0 ? out_of_memory(err) : 0;
}

void message_done(struct message *m)
{
    switch (m->type) {
    case MESSAGE_SPAWN:
        json_decref(m->spawn.parsed_options);
        break;
    case MESSAGE_UPDATE_USER_CLASS:
        json_decref(m->update_user_class.attributes);
        break;
    case MESSAGE_CUSTOM:
        json_decref(m->custom.data);
        break;
    case MESSAGE_CLIENT_READY:
    case MESSAGE_SPAWNING:
    case MESSAGE_STATS:
    case MESSAGE_CLIENT_STOPPED:
    case MESSAGE_EXCEPTION:
    case MESSAGE_LOGS:
    case MESSAGE_HEARTBEAT:
    case MESSAGE_SPAWNING_COMPLETE:
    case MESSAGE_QUIT:
    case MESSAGE_LOCUSTFILE:
    case MESSAGE_ACK:
    case MESSAGE_STOP:
    case MESSAGE_RECONNECT:
        break;
    }
    for (struct block *b = m->memory; b;) {
        struct block *next = b->next;
        free(b);
        b = next;
    }
    *m = (struct message){0};
}

/* --- looking into the tree ---------------------------------------------------------------------
 */

static const msgpack_object nil = {.type = MSGPACK_OBJECT_NIL};

static bool key_is(const msgpack_object *key, const char *name)
{
    struct str want = str_of(name);
    if (key->type == MSGPACK_OBJECT_STR)
        return str_eq((struct str){key->via.str.ptr, key->via.str.size}, want);
    if (key->type == MSGPACK_OBJECT_BIN)
        return str_eq((struct str){key->via.bin.ptr, key->via.bin.size}, want);
    return false;
}

/* The value of a key; nil when it is absent or data is no map. */
static const msgpack_object *member(const msgpack_object *data, const char *name)
{
    if (data->type != MSGPACK_OBJECT_MAP)
        return &nil;
    for (uint32_t i = data->via.map.size; i-- > 0;)
        if (key_is(&data->via.map.ptr[i].key, name))
            return &data->via.map.ptr[i].val;
    return &nil;
}

static bool is_nil(const msgpack_object *o)
{
    return o->type == MSGPACK_OBJECT_NIL;
}

/* Any finite number. */
static bool as_number(const msgpack_object *o, double *ret)
{
    switch (o->type) {
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        *ret = (double)o->via.u64;
        return true;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        *ret = (double)o->via.i64;
        return true;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        *ret = o->via.f64;
        return isfinite(*ret);
    default:
        return false;
    }
}

/* A count, also as a float with a whole value. 0, -EPROTO, -ERANGE (over max). */
static int as_count(const msgpack_object *o, uint64_t max, uint64_t *ret)
{
    double number = 0;
    if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER) {
        *ret = o->via.u64;
    } else {
        if (!as_number(o, &number) || number < 0 || number != floor(number))
            return -EPROTO;
        if (number >= 0x1p63)
            return -ERANGE;
        *ret = (uint64_t)number;
    }
    return *ret > max ? -ERANGE : 0;
}

static int wrong(struct err *err, const char *what, const char *wanted)
{
    return err_set(err, -EPROTO, "%s is not %s", what, wanted);
}

static int count_failed(struct err *err, int rc, const char *what)
{
    return err_set(err, rc, "%s is %s", what, rc == -ERANGE ? "too large" : "not a whole number");
}

static int to_json(const msgpack_object *o, const char *what, json_t **ret, struct err *err)
{
    int rc = value_to_json(o, ret);
    if (rc == -EPROTO)
        return err_set(err, rc, "%s has a container as a key", what);
    return rc < 0 ? out_of_memory(err) : 0;
}

/* --- ack, spawn, spawning_complete --------------------------------------------------------------
 */

static int decode_nothing(struct message *m, const msgpack_object *data, struct err *err)
{
    (void)m, (void)data, (void)err;
    return 0;
}

static int decode_ack(struct message *m, const msgpack_object *data, struct err *err)
{
    const msgpack_object *index = member(data, "index");
    if (!is_nil(data) && data->type != MSGPACK_OBJECT_MAP)
        return wrong(err, "ack", "a map");
    m->ack.has_index = !is_nil(index);
    int rc = m->ack.has_index ? as_count(index, UINT64_MAX, &m->ack.index) : 0;
    return rc < 0 ? count_failed(err, rc, "ack: 'index'") : 0;
}

static int compare_names(const void *a, const void *b)
{
    const struct class_count *x = a, *y = b;
    return str_cmp(x->name, y->name);
}

/* A dict has no key twice; a map that does would make the counts ambiguous. */
static int check_distinct(const struct class_count *classes, size_t count, struct err *err)
{
    int rc = 0;
    struct class_count *sorted = calloc(count + 1, sizeof *sorted);
    if (!sorted)
        return out_of_memory(err);
    if (count)
        memcpy(sorted, classes, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t i = 1; rc == 0 && i < count; i++)
        if (str_eq(sorted[i].name, sorted[i - 1].name))
            rc = err_set(err, -EPROTO, "spawn: 'user_classes_count' names a class twice");
    free(sorted);
    return rc;
}

static int decode_class(struct message *m, const msgpack_object_kv *kv, struct class_count *ret,
                        struct err *err)
{
    uint64_t count;
    int rc = keep_text(m, &kv->key, &ret->name, err);
    if (rc == -EPROTO)
        return wrong(err, "spawn: a class name", "text");
    if (rc < 0)
        return rc;
    rc = as_count(&kv->val, UINT32_MAX, &count);
    if (rc < 0)
        return count_failed(err, rc, "spawn: a count of 'user_classes_count'");
    ret->count = (uint32_t)count;
    return 0;
}

static int decode_classes(struct message *m, const msgpack_object *classes, struct err *err)
{
    struct message_spawn *s = &m->spawn;
    if (classes->type != MSGPACK_OBJECT_MAP)
        return wrong(err, "spawn: 'user_classes_count'", "a map");
    size_t count = classes->via.map.size;
    if (count > MESSAGE_MAX_CLASSES)
        return err_set(err, -ERANGE, "spawn: more than %d user classes", MESSAGE_MAX_CLASSES);
    s->classes = keep(m, count * sizeof *s->classes);
    if (!s->classes)
        return out_of_memory(err);
    for (; s->class_count < count; s->class_count++) {
        const msgpack_object_kv *kv = &classes->via.map.ptr[s->class_count];
        int rc = decode_class(m, kv, &s->classes[s->class_count], err);
        if (rc < 0)
            return rc;
    }
    return check_distinct(s->classes, count, err);
}

/* An empty host is none: Python's worker falls back to its own for both. */
static int decode_host(struct message *m, const msgpack_object *host, struct err *err)
{
    int rc = is_nil(host) ? 0 : keep_text(m, host, &m->spawn.host, err);
    if (rc == -EPROTO)
        return wrong(err, "spawn: 'host'", "text");
    if (rc == 0 && m->spawn.host.len == 0)
        m->spawn.host.ptr = NULL;
    return rc;
}

static int decode_options(struct message *m, const msgpack_object *options, struct err *err)
{
    if (is_nil(options)) { /* masters before 2.2 */
        m->spawn.parsed_options = json_object();
        return m->spawn.parsed_options ? 0 : out_of_memory(err);
    }
    if (options->type != MSGPACK_OBJECT_MAP)
        return wrong(err, "spawn: 'parsed_options'", "a map");
    return to_json(options, "spawn: 'parsed_options'", &m->spawn.parsed_options, err);
}

static int decode_spawn(struct message *m, const msgpack_object *data, struct err *err)
{
    struct message_spawn *s = &m->spawn;
    const msgpack_object *stop_timeout = member(data, "stop_timeout");
    if (data->type != MSGPACK_OBJECT_MAP)
        return wrong(err, "spawn", "a map");
    if (!as_number(member(data, "timestamp"), &s->timestamp))
        return wrong(err, "spawn: 'timestamp'", "a number");
    if (!is_nil(stop_timeout) && !as_number(stop_timeout, &s->stop_timeout_s))
        return wrong(err, "spawn: 'stop_timeout'", "a number");
    s->stop_timeout_s = fmin(fmax(s->stop_timeout_s, 0), MESSAGE_MAX_STOP_TIMEOUT_S);
    int rc = decode_classes(m, member(data, "user_classes_count"), err);
    if (rc == 0)
        rc = decode_host(m, member(data, "host"), err);
    if (rc == 0)
        rc = decode_options(m, member(data, "parsed_options"), err);
    return rc;
}

static int decode_total(struct message *m, const msgpack_object *data, struct err *err)
{
    const msgpack_object *count = member(data, "user_count");
    m->spawning_complete.known = !is_nil(count);
    int rc = is_nil(count) ? 0 : as_count(count, UINT64_MAX, &m->spawning_complete.user_count);
    return rc < 0 ? count_failed(err, rc, "spawning_complete: 'user_count'") : 0;
}

/* --- update_user_class, locustfile, custom ------------------------------------------------------
 */

static int decode_update(struct message *m, const msgpack_object *data, struct err *err)
{
    struct message_update_user_class *u = &m->update_user_class;
    if (data->type != MSGPACK_OBJECT_MAP)
        return wrong(err, "update_user_class", "a map");
    int rc = keep_text(m, member(data, "user_class_name"), &u->user_class_name, err);
    if (rc == -EPROTO)
        return wrong(err, "update_user_class: 'user_class_name'", "text");
    return rc < 0 ? rc : to_json(data, "update_user_class", &u->attributes, err);
}

/* A file, {filename, contents}; or the URL of one, which is a text in masters' lists. */
static int decode_source(struct message *m, const msgpack_object *o, struct err *err)
{
    struct message_locustfile_source *source = &m->locustfile.sources[m->locustfile.source_count];
    bool is_url = o->type != MSGPACK_OBJECT_MAP;
    const msgpack_object *filename = member(o, "filename");
    int rc = keep_text(m, is_url ? o : member(o, "contents"), &source->contents, err);
    if (rc == 0 && !is_nil(filename))
        rc = keep_text(m, filename, &source->filename, err);
    if (rc == 0)
        m->locustfile.source_count++;
    return rc == -EPROTO ? wrong(err, "locustfile: a file", "a name and its text, or a URL") : rc;
}

static int decode_locustfile(struct message *m, const msgpack_object *data, struct err *err)
{
    struct message_locustfile *l = &m->locustfile;
    const msgpack_object *list = member(data, "locustfiles"), *error = member(data, "error");
    if (data->type != MSGPACK_OBJECT_MAP)
        return wrong(err, "locustfile", "a map");
    if (!is_nil(error)) {
        int rc = keep_text(m, error, &l->error, err);
        return rc == -EPROTO ? wrong(err, "locustfile: 'error'", "text") : rc;
    }
    if (!is_nil(list) && list->type != MSGPACK_OBJECT_ARRAY)
        return wrong(err, "locustfile: 'locustfiles'", "a list");
    /* before 2.31 the data was the one file itself */
    size_t count = is_nil(list) ? 1 : list->via.array.size;
    l->sources = keep(m, count * sizeof *l->sources);
    if (!l->sources)
        return out_of_memory(err);
    for (size_t i = 0; i < count; i++) {
        int rc = decode_source(m, is_nil(list) ? data : &list->via.array.ptr[i], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int decode_custom(struct message *m, const msgpack_object *type, const msgpack_object *data,
                         struct err *err)
{
    char quoted[LOG_QUOTED_BYTES];
    m->type = MESSAGE_CUSTOM;
    int rc = keep_text(m, type, &m->custom.type, err);
    if (rc == 0 && !is_nil(data))
        rc = to_json(data, log_quote(m->custom.type, quoted), &m->custom.data, err);
    return rc;
}

/* --- the frame ----------------------------------------------------------------------------------
 */

/* What only a worker sends is not here: from a master it is a custom message like any other. */
static const struct {
    enum message_type type;
    int (*decode)(struct message *m, const msgpack_object *data, struct err *err);
} known[] = {
    {MESSAGE_ACK, decode_ack},
    {MESSAGE_SPAWN, decode_spawn},
    {MESSAGE_SPAWNING_COMPLETE, decode_total},
    {MESSAGE_HEARTBEAT, decode_nothing},
    {MESSAGE_STOP, decode_nothing},
    {MESSAGE_QUIT, decode_nothing},
    {MESSAGE_RECONNECT, decode_nothing},
    {MESSAGE_UPDATE_USER_CLASS, decode_update},
    {MESSAGE_LOCUSTFILE, decode_locustfile},
};

static int decode_data(struct message *m, const msgpack_object *type, const msgpack_object *data,
                       struct err *err)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (key_is(type, message_type_name(known[i].type))) {
            m->type = known[i].type;
            return known[i].decode(m, data, err);
        }
    }
    return decode_custom(m, type, data, err);
}

static int decode_parts(struct message *m, const msgpack_object *frame, struct err *err)
{
    if (frame->type != MSGPACK_OBJECT_ARRAY || frame->via.array.size != 3)
        return wrong(err, "message", "an array of 3");
    const msgpack_object *part = frame->via.array.ptr;
    if (part[0].type != MSGPACK_OBJECT_STR && part[0].type != MSGPACK_OBJECT_BIN)
        return wrong(err, "message: the type", "text");
    int rc = keep_text(m, &part[2], &m->node_id, err);
    if (rc == -EPROTO)
        return wrong(err, "message: the node id", "text");
    return rc < 0 ? rc : decode_data(m, &part[0], &part[1], err);
}

static int unpack(struct str frame, msgpack_unpacked *ret, struct err *err)
{
    switch (msgpack_unpack_next(ret, frame.ptr, frame.len, NULL)) {
    case MSGPACK_UNPACK_SUCCESS:
        return 0;
    case MSGPACK_UNPACK_NOMEM_ERROR:
        return out_of_memory(err);
    default: /* scan_frame lets nothing through that comes here */
        return wrong(err, "message", "msgpack");
    }
}

int message_decode(struct str frame, struct message *ret, struct err *err)
{
    msgpack_unpacked tree;
    *ret = (struct message){0};
    int rc = scan_frame(frame, err);
    if (rc < 0)
        return rc;
    msgpack_unpacked_init(&tree);
    rc = unpack(frame, &tree, err);
    if (rc == 0)
        rc = decode_parts(ret, &tree.data, err);
    msgpack_unpacked_destroy(&tree);
    if (rc < 0)
        message_done(ret);
    return rc;
}

#include "proto/locust/value.h"

#include "base/num.h"
#include "base/utf8.h"
#include "proto/locust/message.h"

#include <inttypes.h>
#include <math.h>

static bool raw_text(const msgpack_object *value, struct str *ret)
{
    if (value->type == MSGPACK_OBJECT_STR)
        *ret = (struct str){value->via.str.ptr, value->via.str.size};
    else if (value->type == MSGPACK_OBJECT_BIN)
        *ret = (struct str){value->via.bin.ptr, value->via.bin.size};
    else
        return false;
    return true;
}

int value_text(const msgpack_object *value, struct buf *scratch, struct str *ret)
{
    struct str raw;
    if (!raw_text(value, &raw))
        return -EPROTO;
    if (!utf8_valid(raw)) {
        buf_clear(scratch);
        int rc = utf8_add_repaired(scratch, raw);
        if (rc < 0)
            return rc;
        raw = buf_str(scratch);
    }
    *ret = raw;
    return 0;
}

/* A repaired text is at most three times as long as what came. */
static void scratch_init(struct buf *scratch)
{
    buf_init(scratch, (size_t)MESSAGE_MAX_BYTES * 3);
}

/* --- msgpack to JSON -------------------------------------------------------------------------- */

static int float_key(struct buf *scratch, double value)
{
    char text[NUM_TEXT_BYTES];
    num_format_repr(value, text);
    return buf_add(scratch, str_of(text));
}

static int key_text(const msgpack_object *key, struct buf *scratch, struct str *ret)
{
    int rc = 0;
    if (key->type == MSGPACK_OBJECT_STR || key->type == MSGPACK_OBJECT_BIN)
        return value_text(key, scratch, ret);
    buf_clear(scratch);
    switch (key->type) {
    case MSGPACK_OBJECT_NIL:
        rc = buf_add(scratch, STR("null"));
        break;
    case MSGPACK_OBJECT_BOOLEAN:
        rc = buf_add(scratch, key->via.boolean ? STR("true") : STR("false"));
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        rc = buf_printf(scratch, "%" PRIu64, key->via.u64);
        break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        rc = buf_printf(scratch, "%" PRId64, key->via.i64);
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        rc = float_key(scratch, key->via.f64);
        break;
    default:
        return -EPROTO;
    }
    *ret = buf_str(scratch);
    return rc;
}

static int text_to_json(const msgpack_object *value, json_t **ret)
{
    struct buf scratch;
    struct str text;
    scratch_init(&scratch);
    int rc = value_text(value, &scratch, &text);
    if (rc == 0 && !(*ret = json_stringn_nocheck(text.len ? text.ptr : "", text.len)))
        rc = -ENOMEM;
    buf_done(&scratch);
    return rc;
}

static int array_to_json(const msgpack_object_array *array, json_t **ret)
{
    json_t *made = json_array();
    int rc = made ? 0 : -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < array->size; i++) {
        json_t *item;
        rc = value_to_json(&array->ptr[i], &item);
        if (rc == 0 && json_array_append_new(made, item) < 0)
            rc = -ENOMEM;
    }
    if (rc < 0)
        json_decref(made);
    else
        *ret = made;
    return rc;
}

static int member_to_json(json_t *object, const msgpack_object_kv *kv)
{
    struct buf scratch;
    struct str key;
    json_t *value = NULL;
    scratch_init(&scratch);
    int rc = key_text(&kv->key, &scratch, &key);
    if (rc == 0)
        rc = value_to_json(&kv->val, &value);
    if (rc == 0 && json_object_setn_new_nocheck(object, key.len ? key.ptr : "", key.len, value) < 0)
        rc = -ENOMEM;
    buf_done(&scratch);
    return rc;
}

static int map_to_json(const msgpack_object_map *map, json_t **ret)
{
    json_t *made = json_object();
    int rc = made ? 0 : -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < map->size; i++)
        rc = member_to_json(made, &map->ptr[i]);
    if (rc < 0)
        json_decref(made);
    else
        *ret = made;
    return rc;
}

static json_t *number_to_json(const msgpack_object *value)
{
    if (value->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
        return json_integer(value->via.i64);
    if (value->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
        return value->via.u64 <= INT64_MAX ? json_integer((json_int_t)value->via.u64)
                                           : json_real((double)value->via.u64);
    return isfinite(value->via.f64) ? json_real(value->via.f64) : json_null();
}

/* Recursion is bounded by scan_frame: no more than MESSAGE_MAX_DEPTH. */
int value_to_json(const msgpack_object *value, json_t **ret)
{
    switch (value->type) {
    case MSGPACK_OBJECT_BOOLEAN:
        *ret = json_boolean(value->via.boolean);
        return 0;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        *ret = number_to_json(value);
        return *ret ? 0 : -ENOMEM;
    case MSGPACK_OBJECT_STR:
    case MSGPACK_OBJECT_BIN:
        return text_to_json(value, ret);
    case MSGPACK_OBJECT_ARRAY:
        return array_to_json(&value->via.array, ret);
    case MSGPACK_OBJECT_MAP:
        return map_to_json(&value->via.map, ret);
    case MSGPACK_OBJECT_NIL:
    case MSGPACK_OBJECT_EXT:
        break;
    }
    *ret = json_null();
    return 0;
}

/* --- JSON to msgpack -------------------------------------------------------------------------- */

static void pack_object(struct pack *p, json_t *object, unsigned max_depth)
{
    pack_map(p, json_object_size(object));
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        pack_key(p, (struct str){json_object_iter_key(at), json_object_iter_key_len(at)});
        value_pack(p, json_object_iter_value(at), max_depth - 1);
    }
}

static void pack_items(struct pack *p, const json_t *array, unsigned max_depth)
{
    pack_array(p, json_array_size(array));
    for (size_t i = 0; i < json_array_size(array); i++)
        value_pack(p, json_array_get(array, i), max_depth - 1);
}

void value_pack(struct pack *p, const json_t *json, unsigned max_depth)
{
    if (!json) {
        pack_nil(p);
        return;
    }
    if (max_depth == 0 && (json_is_object(json) || json_is_array(json))) {
        pack_fail(p, -ERANGE);
        return;
    }
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        /* jansson's iterators are not const, but only read */
        pack_object(p, (json_t *)(uintptr_t)json, max_depth);
        break;
    case JSON_ARRAY:
        pack_items(p, json, max_depth);
        break;
    case JSON_STRING:
        pack_text(p, (struct str){json_string_value(json), json_string_length(json)});
        break;
    case JSON_INTEGER:
        pack_int(p, json_integer_value(json));
        break;
    case JSON_REAL:
        pack_double(p, json_real_value(json));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        pack_bool(p, json_is_true(json));
        break;
    case JSON_NULL:
        pack_nil(p);
        break;
    }
}

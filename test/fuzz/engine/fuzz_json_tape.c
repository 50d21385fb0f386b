/* jansson is the measure: the same texts are taken, and every value is found with its pointer and
 * reads the same. Only what jansson cannot hold (numbers beyond its types, extreme depth, NUL in a
 * key) it may refuse alone. */
#include "base/num.h"
#include "base/utf8.h"
#include "worker/engine/json_tape.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_DEPTH 40

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds)
{
    if (!holds)
        abort();
}

struct walk {
    const struct json_tape *tape;
    struct str parts[MAX_DEPTH];
    size_t depth;
    struct buf scratch;
};

static void compare(struct walk *w, json_t *value);

static void compare_child(struct walk *w, struct str part, json_t *value)
{
    if (w->depth == MAX_DEPTH)
        return;
    w->parts[w->depth++] = part;
    compare(w, value);
    w->depth--;
}

static void compare_children(struct walk *w, json_t *value)
{
    const char *key;
    size_t len, i;
    json_t *child;
    json_object_keylen_foreach(value, key, len, child)
    {
        compare_child(w, (struct str){key, len}, child);
    }
    json_array_foreach(value, i, child)
    {
        char index[24];
        (void)snprintf(index, sizeof index, "%zu", i);
        compare_child(w, str_of(index), child);
    }
}

static enum plan_type type_of(const json_t *value)
{
    static const enum plan_type types[] = {
        [JSON_OBJECT] = PLAN_TYPE_OBJECT, [JSON_ARRAY] = PLAN_TYPE_ARRAY,
        [JSON_STRING] = PLAN_TYPE_STRING, [JSON_INTEGER] = PLAN_TYPE_NUMBER,
        [JSON_REAL] = PLAN_TYPE_NUMBER,   [JSON_TRUE] = PLAN_TYPE_BOOLEAN,
        [JSON_FALSE] = PLAN_TYPE_BOOLEAN, [JSON_NULL] = PLAN_TYPE_NULL,
    };
    return types[json_typeof(value)];
}

static void compare(struct walk *w, json_t *value)
{
    const struct plan_pointer pointer = {.parts = w->parts, .part_count = w->depth};
    uint32_t at = json_tape_find(w->tape, &pointer);
    struct str text;
    demand(at != JSON_TAPE_NONE && w->tape->values[at].type == type_of(value));
    demand(json_tape_text(w->tape, at, &w->scratch, &text) == 0);
    if (json_is_string(value))
        demand(str_eq(text, (struct str){json_string_value(value), json_string_length(value)}));
    if (json_is_boolean(value))
        demand(w->tape->values[at].truth == json_is_true(value));
    if (json_is_number(value)) {
        double number;
        demand(num_parse_double(text, &number) == 0 && number == json_number_value(value));
    }
    if (json_is_array(value))
        demand(json_tape_length(w->tape, at) == json_array_size(value));
    compare_children(w, value);
}

static bool only_jansson(const json_error_t *error)
{
    enum json_error_code code = json_error_code(error);
    return code == json_error_numeric_overflow || code == json_error_stack_overflow ||
           code == json_error_null_byte_in_key;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_tape tape = {0};
    struct str text = {(const char *)data, size};
    struct walk w = {.tape = &tape};
    json_error_t error;
    if (memchr(data, 0, size)) /* jansson takes it for the end of the text */
        return 0;
    json_t *value = json_loadb(text.ptr, size,
                               JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    int rc = json_tape_read(&tape, text);
    demand(rc == 0 || rc == -EINVAL);
    if (value)
        demand(rc == 0);
    else
        demand(rc < 0 || only_jansson(&error));
    buf_init(&w.scratch, size + 1);
    if (value)
        compare(&w, value);
    buf_done(&w.scratch);
    json_decref(value);
    json_tape_clear(&tape);
    json_tape_done(&tape);
    return 0;
}

/* A JSON text as a flat list of its values, to look a few of them up: one pass, no tree, and no
 * memory once the list has grown. Views into the text, which must outlive its use. One thread at a
 * time. */
#ifndef CICADA_WORKER_ENGINE_JSON_TAPE_H
#define CICADA_WORKER_ENGINE_JSON_TAPE_H

#include "base/buf.h"
#include "worker/scenario/plan.h"

#define JSON_TAPE_NONE     UINT32_MAX
#define JSON_TAPE_KEEP     4096 /* values, 64 KiB: room for more is given back */
#define JSON_TAPE_MAX_TEXT (UINT32_MAX - 1)

struct json_value {
    uint32_t at, len; /* in the text: a string without its quotes */
    uint32_t next;    /* behind it and all that is in it; of a key: its value */
    uint8_t type;     /* an enum plan_type; a key is a string */
    bool escaped;     /* a string that is not what it stands for */
    bool truth;
};

struct json_tape {
    struct str text;
    struct json_value
        *values; /* the first is the whole; an object's are key, value, key, value, … */
    uint32_t count, room;
};

void json_tape_done(struct json_tape *t);

/* Strict RFC 8259, at any depth. 0; -EINVAL: the text is not JSON; -ENOMEM. */
MUST_USE int json_tape_read(struct json_tape *t, struct str text);
/* Forget the text; keep a usual amount of memory. */
void json_tape_clear(struct json_tape *t);

/* The value that a JSON Pointer names, or JSON_TAPE_NONE. Of equal keys the last one counts, as
 * with Python's json. */
uint32_t json_tape_find(const struct json_tape *t, const struct plan_pointer *pointer);

/* Values in a list or an object. */
uint32_t json_tape_length(const struct json_tape *t, uint32_t index);

/* A string decoded, into scratch when that is needed; any other value as it is written.
 * 0, -ENOMEM, -ERANGE. */
MUST_USE int json_tape_text(const struct json_tape *t, uint32_t index, struct buf *scratch,
                            struct str *ret);

#endif

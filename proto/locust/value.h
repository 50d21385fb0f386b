/* msgpack values as JSON values and back, for the parts of a message whose shape nobody fixed: the
 * master's options, custom messages, our own report. Pure. */
#ifndef CICADA_PROTO_LOCUST_VALUE_H
#define CICADA_PROTO_LOCUST_VALUE_H

#include "base/buf.h"
#include "base/err.h"
#include "proto/locust/pack.h"

#include <jansson.h>
#include <msgpack.h>

/* Repaired text of a str or, from masters that packed with the old format, a bin; a view into the
 * value when it was valid, otherwise into scratch (cleared here). -EPROTO (not text), -ERANGE,
 * -ENOMEM. */
MUST_USE int value_text(const msgpack_object *value, struct buf *scratch, struct str *ret);

/* Text is repaired; a key that is no text becomes text as in Python's json.dumps ("5", "0.35",
 * "true", "null"); bin becomes text; NaN, infinities and ext become null; an integer beyond 64 bits
 * signed becomes a real. Of equal keys the last one counts. -EPROTO (a container as a key, which
 * Python cannot read either), -ENOMEM. */
MUST_USE int value_to_json(const msgpack_object *value, json_t **ret);

/* Appends json (NULL is nil) with at most max_depth containers inside one another; deeper fails the
 * pack with -ERANGE. */
void value_pack(struct pack *p, const json_t *json, unsigned max_depth);

#endif

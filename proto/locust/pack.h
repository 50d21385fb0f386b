/* Writing msgpack that a Locust master can always read: text is str and valid UTF-8, numbers are
 * finite, and no map has a key that Locust's decoder takes for an object of its own. Errors are
 * kept until pack_end, so callers write straight on. One message at a time. */
#ifndef CICADA_PROTO_LOCUST_PACK_H
#define CICADA_PROTO_LOCUST_PACK_H

#include "base/buf.h"
#include "base/measure.h"
#include "base/str.h"

#include <msgpack.h>
#include <stdint.h>

struct pack {
    msgpack_packer msgpack;
    struct buf *out;
    size_t start; /* where the frame begins in out */
    int rc;       /* the first error */
};

void pack_begin(struct pack *p, struct buf *out);
/* 0, or the first error of what was packed; out is then as it was at pack_begin. */
MUST_USE int pack_end(struct pack *p);
void pack_fail(struct pack *p, int rc);

void pack_array(struct pack *p, size_t count);
void pack_map(struct pack *p, size_t count);
void pack_nil(struct pack *p);
void pack_bool(struct pack *p, bool value);
void pack_uint(struct pack *p, uint64_t value);
void pack_int(struct pack *p, int64_t value);
void pack_double(struct pack *p, double value); /* not finite: nil */

/* Invalid UTF-8 becomes U+FFFD; an absent text is "". */
void pack_text(struct pack *p, struct str text);

/* A map's key: as pack_text, but "__datetime__" and "__ObjectId__" get one more underscore in
 * front. Source: locust/rpc/protocol.py decode. */
void pack_key(struct pack *p, struct str key);

/* A time in seconds or an amount that the master adds up: a float, 0.0 when not finite. */
void pack_amount(struct pack *p, double value);

/* A number of milliseconds as Locust's own entries hold it: the integer 0 until something was
 * measured, a float afterwards. Not finite: 0. */
void pack_ms(struct pack *p, double ms);

/* nil when unknown. */
void pack_measure(struct pack *p, struct measure m);

#endif

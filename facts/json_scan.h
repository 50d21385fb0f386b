/* A JSON reader that is pushed chunks of any size and calls back for every key, value, begin and
 * end. It owns a few kilobytes and never grows, whatever the text: made for answers of hundreds of
 * megabytes of which a few words matter (jansson builds a tree of the whole). Strict (RFC 8259),
 * except that bytes over 0x7f in strings are passed on unchecked. One thread at a time. */
#ifndef CICADA_FACTS_JSON_SCAN_H
#define CICADA_FACTS_JSON_SCAN_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

#define JSON_SCAN_DEPTH_MAX  128  /* Kubernetes' own objects stay below 30 */
#define JSON_SCAN_TEXT_BYTES 1024 /* of one key, text or number; names and quantities are < 254 */

enum json_event {
    JSON_EVENT_OBJECT,     /* { */
    JSON_EVENT_OBJECT_END, /* } */
    JSON_EVENT_ARRAY,      /* [ */
    JSON_EVENT_ARRAY_END,  /* ] */
    JSON_EVENT_KEY,
    JSON_EVENT_TEXT,
    JSON_EVENT_NUMBER, /* as it is written */
    JSON_EVENT_TRUE,
    JSON_EVENT_FALSE,
    JSON_EVENT_NULL,
};

/* text: of a key, text or number, valid during the call; cut tells that it was longer. A negative
 * errno ends the reading. */
typedef int json_scan_fn(void *arg, enum json_event event, struct str text, bool cut);

struct json_scan {
    json_scan_fn *fn;
    void *arg;
    int state;                                    /* what may come next; json_scan.c's */
    unsigned depth;                               /* open objects and arrays */
    uint64_t is_object[JSON_SCAN_DEPTH_MAX / 64]; /* a bit for each of them */
    bool is_key;                                  /* of the text being read */
    const char *word;                             /* what is left of true, false, null */
    uint32_t unit, high;                          /* of a \u escape: the digits so far, and the
                                                     first half of a pair */
    unsigned unit_digits;
    size_t len;
    bool cut;
    uint64_t offset; /* bytes read, for messages */
    char text[JSON_SCAN_TEXT_BYTES];
};

void json_scan_init(struct json_scan *s, json_scan_fn *fn, void *arg);

/* The next bytes. 0; -EPROTO (not JSON, too deep), with s->offset at the place; what fn returned.
 * After an error it must not be called again. */
MUST_USE int json_scan_feed(struct json_scan *s, struct str bytes);

/* No more bytes will come. 0; -EPROTO (the text is not complete). */
MUST_USE int json_scan_end(struct json_scan *s);

#endif

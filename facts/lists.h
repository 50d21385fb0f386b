/* Kubernetes node and pod lists as they arrive: chunks of JSON in, one call for each item out, with
 * the few fields that matter. Memory does not grow with the list. It judges the form of the answer,
 * not what the values mean. One thread at a time; no I/O. */
#ifndef CICADA_FACTS_LISTS_H
#define CICADA_FACTS_LISTS_H

#include "facts/json_scan.h"

#define LIST_TEXT_BYTES 256 /* of a name or label: Kubernetes allows 253 */
#define LIST_PATH_DEPTH 6   /* list, items, item, status, allocatable, cpu */

enum list_kind { LIST_NODES, LIST_PODS };

/* The fields kept; each is a text of the item, or absent. */
enum list_field {
    LIST_NAME,         /* metadata.name */
    LIST_MACHINE_TYPE, /* metadata.labels[the wanted label] */
    LIST_NODE_NAME,    /* spec.nodeName */
    LIST_PHASE,        /* status.phase */
    LIST_CPU,          /* status.allocatable.cpu */
    LIST_MEMORY,       /* status.allocatable.memory */
    LIST_FIELDS
};

/* ptr NULL: absent. Texts are valid during the call. */
struct list_item {
    struct str field[LIST_FIELDS];
};

/* A negative errno ends the reading with that code; err may be set with a reason. */
typedef int list_item_fn(void *arg, const struct list_item *item, struct err *err);

struct list_reader {
    enum list_kind kind;
    const char *label; /* borrowed: which label is the machine type */
    list_item_fn *fn;
    void *arg;
    struct json_scan scan;
    int place[LIST_PATH_DEPTH]; /* what is open at each depth; lists.c's */
    int next;                   /* what the value after the last key is */
    bool saw_items, wrong_kind, is_status, continues;
    unsigned long count;
    size_t len[LIST_FIELDS];
    bool has[LIST_FIELDS];
    char text[LIST_FIELDS][LIST_TEXT_BYTES];
    struct err err;
};

void list_reader_init(struct list_reader *r, enum list_kind kind, const char *label,
                      list_item_fn *fn, void *arg);

/* The next bytes of the answer. 0; -EPROTO (not such a list), or what fn returned, with the reason
 * in r->err. Nothing more may be fed then. */
MUST_USE int list_reader_feed(struct list_reader *r, struct str bytes);

/* The answer is complete. The same. */
MUST_USE int list_reader_end(struct list_reader *r);

/* The message of a Status object, as the server answers what it refuses ("nodes is forbidden: …"),
 * fit for a log line. False when the body is none. */
bool list_status_message(struct str body, char *ret, size_t ret_bytes);

#endif

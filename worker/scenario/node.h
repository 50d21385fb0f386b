/* A scenario file as a tree that knows where each value stands. The file's form (JSON today) is the
 * matter of whoever builds the tree (node_json.h); the walker in load.c sees only nodes. Nodes
 * are never changed once built, and live as long as their arena. */
#ifndef CICADA_WORKER_SCENARIO_NODE_H
#define CICADA_WORKER_SCENARIO_NODE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "worker/scenario/arena.h"

#include <stdbool.h>
#include <stdint.h>

#define NODE_MAX_DEPTH 100     /* values inside values; the walkers are recursive */
#define NODE_MAX_COUNT 2000000 /* a node is about 100 bytes: 64 MiB of "[0,0,…" would be 3 GB */

enum node_kind { NODE_NULL, NODE_BOOL, NODE_NUMBER, NODE_STRING, NODE_LIST, NODE_OBJECT };

struct node {
    enum node_kind kind;
    bool truth;               /* of a NODE_BOOL */
    uint32_t line;            /* where the value begins, from 1 */
    uint32_t key_line;        /* where its key begins; in a list, the same as line */
    uint32_t index;           /* position in the parent */
    uint32_t child_count;     /* of a list or an object */
    struct str key;           /* its key in an object; in a list and for the root ptr is NULL */
    struct str text;          /* a string's value; a number as it is written */
    struct node *parent;      /* NULL for the root */
    struct node *first;       /* child, in the order of the file */
    struct node *last, *next; /* the parent's last child; the next sibling */
};

/* What a value of this kind is called in messages: "a number", "null". */
const char *node_kind_name(enum node_kind kind);

/* Put child behind parent's other children. */
void node_append(struct node *parent, struct node *child);

/* A key given twice in one object is an error. 0, -EINVAL with err set, -ENOMEM. */
MUST_USE int node_refuse_duplicates(const struct node *object, struct arena *scratch,
                                    const char *source, struct err *err);

/* Where the value stands: "users[0].tasks[1].weight", "" for the root, strange keys in quotes.
 * A long path loses its beginning. */
#define NODE_PATH_BYTES 256
const char *node_path(const struct node *n, char ret[static NODE_PATH_BYTES]);

/* Set err to "SOURCE:LINE: PATH: TEXT" and return -EINVAL. The line is the key's. */
int node_fail(const struct node *n, const char *source, struct err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The value as JSON text, the bytes that Python's json.dumps writes (so the bodies of C workers and
 * Python workers are equal), numbers as the file has them. Appends. 0, -ERANGE, -ENOMEM. */
MUST_USE int node_write_json(const struct node *n, struct buf *out);

#endif

/* The walker's insides: what its files share. A scenario is read by tables: each kind of object has
 * one table of the keys it may have, and each key a function that checks the value and puts it into
 * a target. A new key is a row and its function. Used by the loader's own files only. */
#ifndef CICADA_WORKER_SCENARIO_LOAD_H
#define CICADA_WORKER_SCENARIO_LOAD_H

#include "worker/scenario/names.h"
#include "worker/scenario/node.h"
#include "worker/scenario/plan.h"

struct loader {
    const char *source;
    struct err *err;
    const struct plan_tags *tags; /* may be NULL */
    struct arena *memory;         /* the plan's */
    struct arena scratch;         /* nodes, drafts; gone after loading */
    struct names entries;
};

/* Give up at a node, in the form of node_fail. Returns -EINVAL. */
#define load_fail(l, node, ...) node_fail(node, (l)->source, (l)->err, __VA_ARGS__)

/* --- keys.c --- */

struct load_key {
    const char *name;
    int (*read)(struct loader *l, const struct node *value, void *target);
    bool required;
    const char *also; /* other tools' words for it, for the suggestion only: "verify sleep" */
};

/* A table of keys as the two arguments of load_object. */
#define KEYS(table) (table), sizeof(table) / sizeof *(table)

/* Read each key of an object by the table, in the order of the file. Not an object, an unknown key
 * or a missing one is an error; what says what the object is: "a task". */
MUST_USE int load_object(struct loader *l, const struct node *n, const char *what,
                         const struct load_key *keys, size_t key_count, void *target);

/* --- values.c: each checks the kind and the range of one value --- */

MUST_USE int load_bool(struct loader *l, const struct node *n, bool *ret);
MUST_USE int load_whole(struct loader *l, const struct node *n, uint32_t min, uint32_t max,
                        uint32_t *ret);
/* Finite, from min to max. */
MUST_USE int load_number(struct loader *l, const struct node *n, double min, double max,
                         double *ret);
MUST_USE int load_seconds(struct loader *l, const struct node *n, double min_s, double max_s,
                          uint64_t *ret_us);
/* A string of any content, copied into the plan. */
MUST_USE int load_text(struct loader *l, const struct node *n, struct str *ret);
/* A string that is not empty, short enough for a name and without control characters, copied. */
MUST_USE int load_name(struct loader *l, const struct node *n, struct str *ret);
/* A list with 1 to max values of what ("tasks"). */
MUST_USE int load_list(struct loader *l, const struct node *n, size_t max, const char *what);
/* A host for paths to be joined to, copied. */
MUST_USE int load_host(struct loader *l, const struct node *n, struct str *ret);

/* --- step.c --- */

/* One step; its entry is put into the plan unless count_entry is false (its task is left out). */
MUST_USE int load_step(struct loader *l, const struct node *n, bool count_entry,
                       struct plan_step *ret);

#endif

/* What a user knows: the values of its variables, its rows of the feeds, the counters of its loops.
 * Only users of a plan that has any of these have one. And texts made of them. The shard's thread
 * only. */
#ifndef CICADA_WORKER_ENGINE_VARIABLES_H
#define CICADA_WORKER_ENGINE_VARIABLES_H

#include "base/buf.h"
#include "worker/scenario/plan.h"

struct user;
struct shard;

struct value {
    char *bytes; /* kept when the value is forgotten */
    uint32_t len, room;
    bool set;
    bool json;   /* a number, a boolean, a list, an object: JSON as it stands */
    bool hidden; /* made of something from outside: never shown */
};

/* A group that the user is in. */
struct group_mark {
    uint64_t start_us;
    uint64_t paused_us; /* of pauses until then */
    uint64_t failures;  /* of requests until then */
};

/* A loop that the user is in. */
struct loop_mark {
    uint32_t rounds; /* begun */
    uint32_t times;  /* at most */
};

struct variables {
    uint64_t number;         /* of the user */
    uint64_t paused_us;      /* in all pauses so far */
    uint64_t failures;       /* of all requests so far */
    uint32_t *rows;          /* by feed */
    struct loop_mark *loops; /* by slot */
    struct group_mark *groups;
    struct value values[];
};

/* NULL: no memory. */
struct variables *variables_new(const struct plan *plan, uint64_t number);
/* Gives unique rows back to the shard's feeds. NULL is nothing. */
void variables_free(struct variables *v, struct shard *s);

/* A task begins: it gets rows of its own. */
void variables_begin_task(struct variables *v, const struct plan *plan);

/* 0, -ERANGE (longer than PLAN_MAX_VARIABLE_BYTES), -ENOMEM. The text may be the variable's own. */
MUST_USE int variables_set(struct variables *v, uint32_t variable, struct str text, bool json,
                           bool hidden);

/* A value to look at: until the next one of the same user is looked at or set. */
struct value_view {
    struct str text;
    bool json;
    bool hidden;
    char made[40]; /* of a generator: text is in it */
};

/* 0; -ENOENT: it has no value; -ENODATA: its feed is at its end. */
MUST_USE int value_of(struct user *u, const struct plan_source *source, uint64_t now_us,
                      struct value_view *ret);

/* What became of a text. */
struct rendered {
    const struct plan_source *missing; /* the source of -ENOENT */
    bool hidden;                       /* something hidden is in it */
    bool json;                         /* it is one variable alone, whose value is JSON */
};

/* Append the text with its values. 0, those of value_of, -ERANGE, -ENOMEM. */
MUST_USE int render(struct user *u, const struct plan_text *text, uint64_t now_us, struct buf *out,
                    struct rendered *ret);
/* The same to be shown: a hidden value is ":name", and so is a missing one. */
MUST_USE int render_shown(struct user *u, const struct plan_text *text, uint64_t now_us,
                          struct buf *out);

#endif

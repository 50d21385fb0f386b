/* The walker's insides: what its files share. A scenario is read by tables: each kind of object has
 * one table of the keys it may have, and each key a function that checks the value and puts it into
 * a target. A new key is a row and its function. Used by the loader's own files only. */
#ifndef CICADA_WORKER_SCENARIO_LOAD_H
#define CICADA_WORKER_SCENARIO_LOAD_H

#include "base/buf.h"
#include "worker/scenario/files.h"
#include "worker/scenario/names.h"
#include "worker/scenario/node.h"
#include "worker/scenario/plan.h"

/* A compiled pattern of the plan, to be freed with it. */
struct load_pattern {
    struct load_pattern *next;
    struct pattern *pattern;
};

/* What "${name}" can mean, gathered while loading: a variable may be used before the step that sets
 * it is read. */
struct load_scope {
    struct names names;      /* of variables and columns alike */
    struct load_name *known; /* by index of names */
    size_t known_room;
    size_t variable_count;
    struct plan_feed *feeds;
    size_t feed_count;
    bool feed_lost; /* one could not be read, nor could its columns */
};

struct load_name {
    bool is_column;
    bool mentioned; /* a faulty file says somewhere that it is set or extracted */
    uint32_t index; /* of the variable or the feed */
    uint32_t column;
    const struct node *used;    /* where first; NULL: nowhere */
    const struct node *defined; /* the same; for a column its feed */
    struct plan_variable variable;
};

/* How to load. */
struct load_order {
    const char *source; /* for messages, and the path unless there are files */
    bool yaml;
    const struct plan_tags *tags;
    const struct files *files; /* NULL: from the folder of source */
    plan_fault_fn *fault;      /* may be NULL */
    void *fault_context;
};

struct loader {
    const char *source;
    const struct files *files;
    struct err *err;
    const struct plan_tags *tags; /* may be NULL */
    struct arena *memory;         /* the plan's */
    struct arena scratch;         /* nodes, drafts; gone after loading */
    struct names entries;
    struct load_scope scope;
    struct load_pattern **patterns; /* the plan's list */
    uint32_t loop_slots, group_slots;
    bool has_values;
    plan_fault_fn *fault; /* NULL: the first fault ends the loading */
    void *fault_context;
    bool faulty; /* faults were told, the plan is none */
};

/* Give up at a node, in the form of node_fail. Returns -EINVAL. */
#define load_fail(l, node, ...) node_fail(node, (l)->source, (l)->err, __VA_ARGS__)

/* After one item of a list was loaded: when the loader is to tell all faults, tell this one and go
 * on with the next item. Returns 0 then, else rc. */
int load_tolerate(struct loader *l, int rc);

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

/* The one of the words that the given one most likely stands for; NULL: none is near. */
const char *load_nearest(struct str given, const struct load_key *words, size_t count);

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
/* A string that is one of the words; *ret is its index. */
MUST_USE int load_word(struct loader *l, const struct node *n, const char *const *words,
                       size_t count, size_t *ret);
/* A host for paths to be joined to, copied; with variables it cannot be checked. ret_text has
 * pieces then, and *ret is NULL. */
MUST_USE int load_host(struct loader *l, const struct node *n, struct str *ret,
                       struct plan_text *ret_text);
/* A proxy's URL; it is never shown, as it may hold a password. */
MUST_USE int load_proxy(struct loader *l, const struct node *n, struct str *ret);
/* A file beside the scenario, whole, in the plan's memory. */
MUST_USE int load_file(struct loader *l, const struct node *n, struct str *ret);

/* --- scope.c: names of variables --- */

/* The top's "variables" and "feeds", before anything else is loaded. */
MUST_USE int load_variables(struct loader *l, const struct node *n);
MUST_USE int load_feeds(struct loader *l, const struct node *n);
/* A variable that a step sets or extracts; n's key is its name. */
MUST_USE int load_target(struct loader *l, const struct node *n, uint32_t *ret_variable);
bool load_is_name(struct str name); /* of a variable */
/* What stands between "${" and "}"; n is where. */
MUST_USE int load_source(struct loader *l, const struct node *n, struct str expression,
                         const struct plan_source **ret);
/* Every name that was used is defined somewhere; then the plan gets its variables. root: the file.
 */
MUST_USE int load_scope_end(struct loader *l, const struct node *root, struct plan *p);

/* --- feed.c --- */

MUST_USE int load_feed(struct loader *l, const struct node *n, struct plan_feed *ret);

/* --- template.c: texts with variables --- */

/* Builds a text of several parts, literal ones and ones with variables. */
struct text_builder {
    struct loader *l;
    struct buf literal; /* of all pieces, one after the other */
    struct text_part *parts;
    size_t count, room;
};
void text_begin(struct text_builder *b, struct loader *l);
void text_abort(struct text_builder *b);
/* Bytes as they are. */
MUST_USE int text_add(struct text_builder *b, struct str bytes);
/* A text in which "${…}" are variables, encoded as insert says. */
MUST_USE int text_add_template(struct text_builder *b, const struct node *n, struct str text,
                               enum plan_insert insert);
/* The builder is done in any case. */
MUST_USE int text_end(struct text_builder *b, struct plan_text *ret);

bool text_has_variables(struct str text);
/* A string node. */
MUST_USE int load_template(struct loader *l, const struct node *n, enum plan_insert insert,
                           struct plan_text *ret);
/* A string, a number or a boolean; what is not a string is json. */
MUST_USE int load_scalar(struct loader *l, const struct node *n, enum plan_insert insert,
                         struct plan_text *ret, bool *ret_json);
/* The same without control characters, and a name's length. */
MUST_USE int load_name_template(struct loader *l, const struct node *n, struct plan_text *ret);

/* --- tests.c: checks and conditions --- */

struct test_list {
    struct plan_test *items; /* in scratch memory; test_list_keep copies it into the plan */
    size_t count, room;
};
/* An object of comparisons, or a value to be equal to. like: subject, key, pointer, source. */
MUST_USE int load_tests(struct loader *l, const struct node *n, const struct plan_test *like,
                        struct test_list *list);
/* The value of "check". *ret_statuses: the node of a plain status or a list of them, or NULL. */
MUST_USE int load_checks(struct loader *l, const struct node *n, struct test_list *list,
                         const struct node **ret_statuses);
/* The value of "if" and "while". */
MUST_USE int load_condition(struct loader *l, const struct node *n, struct test_list *list);
MUST_USE int test_list_keep(struct loader *l, const struct test_list *list,
                            const struct plan_test **ret, size_t *ret_count);
MUST_USE int load_pointer(struct loader *l, const struct node *n, struct str text,
                          struct plan_pointer *ret);
MUST_USE int load_pattern(struct loader *l, const struct node *n, const struct pattern **ret);

/* --- extract.c --- */

/* The value of "extract". */
MUST_USE int load_extracts(struct loader *l, const struct node *n, const struct plan_extract **ret,
                           size_t *ret_count);

/* --- body.c: the kinds of bodies; each sets the body and what it is --- */

struct load_body {
    const struct node *given; /* the key that gave it */
    struct plan_text text;
    bool present;
    struct str content_type; /* unless the scenario gives one; ptr NULL: none */
    struct str file;         /* the name of the file that it is; ptr NULL: none */
};
MUST_USE int load_body_text(struct loader *l, const struct node *n, struct load_body *ret);
MUST_USE int load_body_json(struct loader *l, const struct node *n, struct load_body *ret);
MUST_USE int load_body_form(struct loader *l, const struct node *n, struct load_body *ret);
MUST_USE int load_body_multipart(struct loader *l, const struct node *n, struct load_body *ret);
MUST_USE int load_body_file(struct loader *l, const struct node *n, struct load_body *ret);
/* An object of names and values (or lists of them), encoded as a form, into a text. */
MUST_USE int load_fields(struct text_builder *b, const struct node *n);

/* --- request.c --- */

/* A request; its entry is put into the plan unless count_entry is false (its task is left out). */
MUST_USE int load_request(struct loader *l, const struct node *n, bool count_entry,
                          struct plan_request *ret);

/* --- step.c --- */

/* Steps in the making, with those inside blocks. */
struct step_list {
    struct plan_step *items; /* in scratch memory */
    size_t count, room;
    bool count_entries;
    uint32_t depth, loops, groups; /* of the blocks around */
};
MUST_USE int load_steps(struct loader *l, const struct node *n, struct step_list *list);

/* --- load.c --- */

/* A name that means YAML. */
bool load_is_yaml(struct str name);
/* The whole way from a scenario's text to its plan. As plan_load_file. */
MUST_USE int load_plan(struct str text, const struct load_order *order, struct plan **ret,
                       struct err *err);
/* Do the tags keep a task? tags may be NULL. */
bool load_is_wanted(const struct plan_task *task, const struct plan_tags *tags);
/* A plan to be filled by another source than a scenario; plan_free. *ret_memory is the memory that
 * is freed with it. NULL: no memory. */
struct plan *load_empty_plan(struct arena **ret_memory);

/* --- bundle.c --- */

/* The scenario that a locustfile holds; the order's source is what messages call the locustfile. */
MUST_USE int load_bundle(struct str locustfile, const struct load_order *order, struct plan **ret,
                         struct err *err);

#endif

/* The plan: a scenario, loaded and checked. It is immutable after loading and read by every shard
 * without a lock; the runner thread frees it when no shard runs any more. All text is valid UTF-8
 * with a NUL behind it, and owned by the plan. Hosts are not in the prepared parts: the master may
 * set one later. */
#ifndef CICADA_WORKER_SCENARIO_PLAN_H
#define CICADA_WORKER_SCENARIO_PLAN_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct cicada_test; /* include/cicada.h */
struct cicada_user;
struct pattern;

#define PLAN_MAX_FILE_BYTES (64u << 20) /* a scenario with its bodies inside */
#define PLAN_MAX_CLASSES    1000
#define PLAN_MAX_TASKS      10000  /* in one class */
#define PLAN_MAX_STEPS      100000 /* in one task */
#define PLAN_MAX_NAME_BYTES 4096   /* class, task, entry names, methods */
#define PLAN_MAX_WEIGHT     1000000

#define PLAN_MAX_FIXED_COUNT       1000000
#define PLAN_MAX_TAGS              1000    /* of one task */
#define PLAN_MAX_METHOD_BYTES      32      /* the registered ones have at most 17 */
#define PLAN_MAX_URL_BYTES         65536   /* servers refuse far shorter ones, which is a test */
#define PLAN_MAX_HEADERS           1000    /* of one request */
#define PLAN_MAX_HEADER_NAME_BYTES 256     /* no known name is near it */
#define PLAN_MAX_STATUSES          500     /* every status that can be expected */
#define PLAN_MAX_WAIT_S            1000000 /* eleven days: no run is as long */
#define PLAN_MAX_THROUGHPUT        1000000 /* tasks per second of one user: the clock's step */
#define PLAN_MIN_TIMEOUT_S         0.001   /* finer than any timer of the engines */
#define PLAN_MAX_TIMEOUT_S         86400   /* a day */

#define PLAN_MAX_VARIABLES      1000
#define PLAN_MAX_VARIABLE_BYTES (1u << 20) /* of one value: a body's default limit */
#define PLAN_MAX_FEEDS          100
#define PLAN_MAX_FEED_COLUMNS   1000
#define PLAN_MAX_BLOCK_DEPTH    20           /* groups, loops and conditions inside each other */
#define PLAN_MAX_REPEATS        1000000      /* of one loop */
#define PLAN_WHILE_REPEATS      1000         /* of a while loop that gives no limit */
#define PLAN_MAX_TESTS          1000         /* of one check or condition */
#define PLAN_MAX_FIELDS         10000        /* of one form, query or multipart body */
#define PLAN_BODY_BYTES         (1u << 20)   /* of a response, that checks can see */
#define PLAN_MAX_BODY_BYTES     (256u << 20) /* ... when the scenario asks for more */
#define PLAN_NO_ENTRY           UINT32_MAX

/* --- texts with variables ---
 *
 * "${name}" in a text stands for a value that is known when the text is used. */

enum plan_source_kind {
    PLAN_SOURCE_VARIABLE,     /* given, set or extracted; index is the variable's */
    PLAN_SOURCE_COLUMN,       /* of the row that the user has of a feed */
    PLAN_SOURCE_UUID,         /* a new random UUID */
    PLAN_SOURCE_RANDOM,       /* a whole number from min to max */
    PLAN_SOURCE_TIMESTAMP,    /* Unix time in whole seconds */
    PLAN_SOURCE_TIMESTAMP_MS, /* ... in milliseconds */
    PLAN_SOURCE_COUNTER,      /* 1, 2, 3, …: never the same twice in this process */
    PLAN_SOURCE_USER,   /* a number of the user, from 1, no other user of this process has it */
    PLAN_SOURCE_WORKER, /* the number that the master gave this process, from 0 */
};

struct plan_source {
    enum plan_source_kind kind;
    uint32_t index;  /* of the variable or the feed */
    uint32_t column; /* of the feed */
    int64_t min, max;
    struct str name; /* as it stands between the braces, without arguments */
};

/* How a value is put into a text. */
enum plan_insert {
    PLAN_INSERT_PLAIN,
    PLAN_INSERT_JSON_TEXT,  /* inside a JSON string */
    PLAN_INSERT_JSON_VALUE, /* in the place of a JSON value: numbers stay numbers */
    PLAN_INSERT_FORM,       /* as application/x-www-form-urlencoded */
    PLAN_INSERT_QUOTED,     /* inside the quotes of a part's header in multipart/form-data */
};

struct plan_piece {
    struct str before;               /* literal text */
    const struct plan_source *value; /* behind it; NULL: the last piece has none */
    enum plan_insert insert;
};

struct plan_text {
    struct str text; /* without variables the text itself; else as it is written, to be shown */
    const struct plan_piece *pieces;
    size_t piece_count; /* 0: without variables */
};

/* A value that the steps of a user may set, or that comes from outside: the command line, the
 * master's custom arguments. What comes from outside is never shown. */
struct plan_variable {
    struct str name;
    struct str initial; /* ptr NULL: none */
    bool initial_json;  /* a number or a boolean rather than a string */
    bool outside;       /* it is declared, so it may be given from outside */
    bool required;      /* ... and must be */
};

enum plan_feed_order {
    PLAN_FEED_SEQUENTIAL,
    PLAN_FEED_RANDOM,
    PLAN_FEED_UNIQUE, /* a row belongs to one user for its life */
};

/* Rows of a CSV file. */
struct plan_feed {
    struct str file; /* for messages */
    enum plan_feed_order order;
    bool each_user;   /* a user keeps its row; else it takes one for each task */
    bool stop_at_end; /* a user that finds no row any more ends; else the rows begin anew */
    uint32_t workers; /* the rows are dealt out to so many workers; 1: each has all */
    char separator;
    bool names_given; /* the columns are the scenario's; else the file's first line has them */
    const struct str *columns;
    uint32_t column_count;
    const struct str *cells; /* row_count times column_count */
    uint32_t row_count;
};

/* --- what is asked of responses and variables --- */

enum plan_subject {
    PLAN_SUBJECT_STATUS,
    PLAN_SUBJECT_HEADER, /* key: its name */
    PLAN_SUBJECT_BODY,
    PLAN_SUBJECT_JSON,  /* pointer */
    PLAN_SUBJECT_SIZE,  /* of the body in bytes */
    PLAN_SUBJECT_TIME,  /* the response time in seconds */
    PLAN_SUBJECT_VALUE, /* source; of a condition */
};

enum plan_operator {
    PLAN_EQUAL,
    PLAN_NOT_EQUAL,
    PLAN_LESS,
    PLAN_AT_MOST,
    PLAN_MORE,
    PLAN_AT_LEAST,
    PLAN_EXISTS, /* truth: or not */
    PLAN_TYPE,   /* type */
    PLAN_CONTAINS,
    PLAN_MATCHES, /* pattern */
};

enum plan_type {
    PLAN_TYPE_NULL,
    PLAN_TYPE_BOOLEAN,
    PLAN_TYPE_NUMBER,
    PLAN_TYPE_STRING,
    PLAN_TYPE_ARRAY,
    PLAN_TYPE_OBJECT,
};

/* A JSON Pointer (RFC 6901) in parts. */
struct plan_pointer {
    struct str text;
    const struct str *parts; /* decoded, with a NUL behind each */
    size_t part_count;
};

struct plan_test {
    enum plan_subject subject;
    enum plan_operator op;
    bool of_length; /* the length of the value is compared */
    bool truth;
    enum plan_type type; /* of PLAN_TYPE; of the operand when that is compared */
    double number;       /* the operand when it is a number */
    struct str key;      /* a header's name */
    struct plan_pointer pointer;
    const struct plan_source *source;
    struct plan_text operand; /* a string, an expression; any other kind as it is written */
    const struct pattern *pattern;
    struct str failure; /* "check failed: json /ok == true" */
};

enum plan_extract_kind {
    PLAN_EXTRACT_JSON,
    PLAN_EXTRACT_REGEX, /* in the body */
    PLAN_EXTRACT_HEADER,
    PLAN_EXTRACT_COOKIE,
};

struct plan_extract {
    enum plan_extract_kind kind;
    uint32_t variable;
    struct plan_pointer pointer;
    const struct pattern *pattern;
    struct str pattern_text;
    uint32_t group;
    struct str key; /* of a header or a cookie */
    bool has_default;
    struct plan_text fallback; /* the default */
    bool fallback_json;
    struct str failure; /* "extraction failed: token" */
};

/* What ends, beyond the step itself. */
enum plan_stop { PLAN_STOP_NOTHING, PLAN_STOP_TASK, PLAN_STOP_USER, PLAN_STOP_RUN };

/* --- tasks --- */

/* Locust's wait_time functions. */
enum plan_wait_kind {
    PLAN_WAIT_NONE,       /* no wait_time given: the next task starts at once, as in Locust */
    PLAN_WAIT_CONSTANT,   /* min_us after the task's end */
    PLAN_WAIT_BETWEEN,    /* uniform in min_us..max_us after the task's end */
    PLAN_WAIT_PACING,     /* constant_pacing: tasks start every min_us, or at once when late */
    PLAN_WAIT_THROUGHPUT, /* constant_throughput: pacing of 1/x seconds, in min_us */
};

struct plan_wait {
    enum plan_wait_kind kind;
    uint64_t min_us;
    uint64_t max_us;
};

struct plan_header {
    struct str name;
    struct str value;
};

/* How long the parts of a request may take, in microseconds; 0: no limit. */
struct plan_timeouts {
    uint64_t connect_us;    /* name look-up, connection and TLS handshake */
    uint64_t first_byte_us; /* from the request sent to the response's first byte */
    uint64_t total_us;      /* redirects included */
};

/* Where the name of a request's stats entry comes from. */
enum plan_naming {
    PLAN_NAME_FIXED,  /* name */
    PLAN_NAME_TEXT,   /* name_text, when the request is made */
    PLAN_NAME_FOLDED, /* the path that the request turns out to have, ids in it as ":id" */
};

struct plan_request {
    struct str method; /* as on the wire: GET, POST, … */
    struct str url;    /* begins with '/', to be joined to the host, or an absolute http(s) URL;
                        * percent-encoded, without a fragment: visible ASCII only. With variables in
                        * it, as it is written */
    struct str name;   /* the stats entry's name: given, or the path with its query */
    uint32_t entry;    /* index into plan.entries; PLAN_NO_ENTRY: known when the request is made */
    enum plan_naming naming;
    const struct plan_header *headers; /* a value with variables as it is written */
    size_t header_count;
    struct str body;                 /* ptr NULL: none; with variables as it is written */
    struct str body_file;            /* the name of the file that the body is; ptr NULL: none */
    const uint16_t *expected_status; /* empty: below 400 is a success, as in Locust */
    size_t expected_status_count;
    bool any_status;       /* the status is left to the checks */
    bool follow_redirects; /* default true, as Locust's client; at most 30 hops */
    struct plan_timeouts timeouts;

    bool has_variables; /* in the URL, host, name, a header or the body: it is made when sent */
    struct plan_text url_text;            /* with its query; pieces only when it has variables */
    struct plan_text host;                /* of its own; text.ptr NULL: none */
    struct plan_text body_text;           /* pieces only when it has variables */
    const struct plan_text *header_texts; /* one for each header; NULL: none has variables */
    struct plan_text name_text;

    const struct plan_test *checks;
    size_t check_count;
    const struct plan_extract *extracts;
    size_t extract_count;
    bool wants_head;         /* checks or extraction look at headers */
    size_t wants_body_bytes; /* ... at so much of the body; 0: they do not */
    enum plan_stop on_failure;
};

/* Steps are a list in which blocks hold the steps behind them up to their PLAN_STEP_END. */
enum plan_step_kind {
    PLAN_STEP_REQUEST,
    PLAN_STEP_PAUSE,
    PLAN_STEP_REPEAT, /* begins a block */
    PLAN_STEP_WHILE,  /* the same */
    PLAN_STEP_IF,     /* the same */
    PLAN_STEP_ELSE,   /* begins the other part of an IF's block */
    PLAN_STEP_GROUP,  /* begins a block */
    PLAN_STEP_END,
    PLAN_STEP_SET,
    PLAN_STEP_LOG,
    PLAN_STEP_STOP,
};

struct plan_pause {
    uint64_t min_us, max_us;
    struct plan_text seconds; /* pieces only when it has variables; they decide then */
};

struct plan_loop {
    uint32_t slot;  /* of the user's counters: loops inside each other have different ones */
    uint32_t times; /* at most, for a while loop */
    struct plan_text count; /* pieces only when it has variables; they decide then */
};

struct plan_group {
    struct str name;
    uint32_t entry; /* of its own row, of the method GROUP */
    uint32_t slot;  /* of the user's groups: as of loops */
};

struct plan_assignment {
    uint32_t variable;
    struct plan_text value;
    bool json; /* a number or a boolean */
};

struct plan_step {
    enum plan_step_kind kind;
    uint32_t depth; /* of blocks around it */
    uint32_t other; /* of IF: its ELSE or its END; of ELSE, of a loop and of a group: the END; of
                     * END: the step that begins the block */
    union {
        struct plan_request request;
        struct plan_pause pause;
        struct plan_loop loop;
        struct plan_group group;
        struct {
            const struct plan_assignment *items;
            size_t count;
        } set;
        struct plan_text log;
        enum plan_stop stop;
    };
    const struct plan_test *tests; /* of IF and WHILE: all must hold */
    size_t test_count;
};

struct plan_task {
    struct str name;
    uint32_t weight; /* >= 1 */
    const struct str *tags;
    size_t tag_count;
    const struct plan_step *steps;
    size_t step_count;
    void (*native)(struct cicada_user *user); /* a task in C, in place of steps */
};

struct plan_class {
    struct str name;
    uint32_t weight;      /* default 1 */
    uint32_t fixed_count; /* 0: by weight */
    struct str host;      /* ptr NULL: none */
    struct plan_wait wait;
    bool insecure;                 /* TLS certificates are not verified */
    struct str client_certificate; /* PEM, its private key too; ptr NULL: none */
    bool http2;                    /* by ALPN, or at once where there is no TLS */
    struct str proxy;              /* a URL, maybe with a password; ptr NULL: none */
    struct plan_text host_text;    /* pieces only when the host has variables; host is NULL then */
    const struct plan_task *tasks; /* at least one task, unless --tags left none of this class */
    size_t task_count;             /* 0: its users exist and do nothing, as in Locust */
    uint64_t task_weight_sum;
    bool sequential;           /* the tasks are done in order, whatever their weights */
    struct plan_task on_start; /* step_count 0: none */
    struct plan_task on_stop;
};

struct plan_shape;
struct plan_threshold;

/* Is there nothing to do? Of an on_start or an on_stop. */
static inline bool plan_task_is_empty(const struct plan_task *task)
{
    return task->step_count == 0 && !task->native;
}

/* A stats entry that is known before the run. */
struct plan_entry {
    struct str method;
    struct str name;
};

/* The HTTP engine that a scenario asks for. */
enum plan_engine { PLAN_ENGINE_AUTO, PLAN_ENGINE_FAST, PLAN_ENGINE_CURL };

struct plan {
    struct str source;                /* file name or URL, for messages */
    enum plan_engine engine;          /* unless the command line names another one */
    struct str host;                  /* the scenario's host, checked; ptr NULL: none */
    struct plan_text host_text;       /* pieces only when the host has variables */
    const struct plan_class *classes; /* at least one */
    size_t class_count;
    const struct plan_entry *entries;
    size_t entry_count;
    const struct plan_shape *shape; /* NULL: the command line or the master says how many users */
    const struct plan_threshold *thresholds;
    size_t threshold_count;
    const struct plan_variable *variables;
    size_t variable_count;
    const struct plan_feed *feeds;
    size_t feed_count;
    uint32_t loop_slots; /* loops that are inside each other at most */
    uint32_t group_slots;
    bool has_patterns;
    bool has_values;                  /* some text has variables: users need memory for them */
    const struct cicada_test *native; /* a test in C, whose tasks are all native; or NULL */
    void *memory;                     /* for plan_free */
};

/* Which tasks to keep, as Locust's --tags and --exclude-tags. */
struct plan_tags {
    const struct str *include;
    size_t include_count; /* 0: all */
    const struct str *exclude;
    size_t exclude_count;
};

/* Load a scenario file: YAML when its name ends in .yaml or .yml, a locustfile with a scenario
 * inside (bundle.h) when it ends in .py, tasks in C when in .so, else JSON. Files that it names
 * are relative to it. A fault gives -EINVAL (or the errno of reading) and one line in err:
 * "FILE:LINE: users[0].tasks[1].weight: must be a whole number from 1 to 1000000, not 0". */
MUST_USE int plan_load_file(const char *path, const struct plan_tags *tags, struct plan **ret,
                            struct err *err);
/* The same from text; source stands for the file name in messages. */
MUST_USE int plan_load_json(struct str text, const char *source, const struct plan_tags *tags,
                            struct plan **ret, struct err *err);
MUST_USE int plan_load_yaml(struct str text, const char *source, const struct plan_tags *tags,
                            struct plan **ret, struct err *err);
/* Load to find faults: each is given to fault as one line, more than one where that is possible.
 * Returns as plan_load_file does; *ret is the plan when there is no fault. */
typedef void plan_fault_fn(void *context, const char *line);
MUST_USE int plan_check_file(const char *path, const struct plan_tags *tags, plan_fault_fn *fault,
                             void *context, struct plan **ret, struct err *err);
/* The shortest scenario: one user class "User" with one task that GETs the URL's path. */
MUST_USE int plan_from_url(struct str url, struct plan **ret, struct err *err);
void plan_free(struct plan *p);

/* Index of a class by name, or plan->class_count. */
size_t plan_class_index(const struct plan *p, struct str name);

/* Index of a variable by name, or plan->variable_count. */
size_t plan_variable_index(const struct plan *p, struct str name);

#endif

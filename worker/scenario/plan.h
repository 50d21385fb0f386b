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

struct plan_request {
    struct str method; /* as on the wire: GET, POST, … */
    struct str url;    /* begins with '/', to be joined to the host, or an absolute http(s) URL;
                        * percent-encoded, without a fragment: visible ASCII only */
    struct str name;   /* the stats entry's name: given, or the path with its query */
    uint32_t entry;    /* index into plan.entries */
    const struct plan_header *headers;
    size_t header_count;
    struct str body;                 /* ptr NULL: none */
    const uint16_t *expected_status; /* empty: below 400 is a success, as in Locust */
    size_t expected_status_count;
    bool follow_redirects; /* default true, as Locust's client; at most 30 hops */
    struct plan_timeouts timeouts;
};

enum plan_step_kind { PLAN_STEP_REQUEST };

struct plan_step {
    enum plan_step_kind kind;
    struct plan_request request;
};

struct plan_task {
    struct str name;
    uint32_t weight; /* >= 1 */
    const struct str *tags;
    size_t tag_count;
    const struct plan_step *steps;
    size_t step_count;
};

struct plan_class {
    struct str name;
    uint32_t weight;      /* default 1 */
    uint32_t fixed_count; /* 0: by weight */
    struct str host;      /* ptr NULL: none */
    struct plan_wait wait;
    bool insecure;                 /* TLS certificates are not verified */
    const struct plan_task *tasks; /* at least one task, unless --tags left none of this class */
    size_t task_count;             /* 0: its users exist and do nothing, as in Locust */
    uint64_t task_weight_sum;
};

struct plan_shape;
struct plan_threshold;

/* A stats entry that is known before the run. */
struct plan_entry {
    struct str method;
    struct str name;
};

struct plan {
    struct str source;                /* file name or URL, for messages */
    struct str host;                  /* the scenario's host, checked; ptr NULL: none */
    const struct plan_class *classes; /* at least one */
    size_t class_count;
    const struct plan_entry *entries;
    size_t entry_count;
    const struct plan_shape *shape; /* NULL: the command line or the master says how many users */
    const struct plan_threshold *thresholds;
    size_t threshold_count;
    void *memory; /* for plan_free */
};

/* Which tasks to keep, as Locust's --tags and --exclude-tags. */
struct plan_tags {
    const struct str *include;
    size_t include_count; /* 0: all */
    const struct str *exclude;
    size_t exclude_count;
};

/* Load a JSON scenario file. A fault gives -EINVAL (or the errno of reading) and one line in err:
 * "FILE:LINE: users[0].tasks[1].weight: must be a whole number from 1 to 1000000, not 0". */
MUST_USE int plan_load_file(const char *path, const struct plan_tags *tags, struct plan **ret,
                            struct err *err);
/* The same from text; source stands for the file name in messages. */
MUST_USE int plan_load_json(struct str text, const char *source, const struct plan_tags *tags,
                            struct plan **ret, struct err *err);
/* The shortest scenario: one user class "User" with one task that GETs the URL's path. */
MUST_USE int plan_from_url(struct str url, struct plan **ret, struct err *err);
void plan_free(struct plan *p);

/* Index of a class by name, or plan->class_count. */
size_t plan_class_index(const struct plan *p, struct str name);

#endif

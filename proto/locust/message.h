/* The messages between a Locust master and its workers, as structs, and their pure codec: bytes in,
 * struct out, and back. No sockets, no clocks; any thread, one message at a time.
 *
 * On the wire a message is one ZeroMQ frame holding a msgpack array of exactly three: [type, data,
 * node id]. A frame from outside is bounded (MESSAGE_MAX_BYTES), its claimed container sizes are
 * checked against the bytes that are left before anything is allocated, unknown keys are ignored,
 * and an unknown type is MESSAGE_CUSTOM. What is encoded is always valid for a master: UTF-8
 * repaired, numeric keys, finite numbers, nil where nothing was measured. Source:
 * locust/rpc/protocol.py, locust/runners.py, locust/stats.py, 2.0 to 2.47. */
#ifndef CICADA_PROTO_LOCUST_MESSAGE_H
#define CICADA_PROTO_LOCUST_MESSAGE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/measure.h"
#include "base/str.h"

#include <jansson.h>
#include <stdint.h>

#define MESSAGE_MAX_BYTES          (64u << 20) /* a locustfile, or long options */
#define MESSAGE_MAX_DEPTH          32 /* nesting of containers; msgpack-c refuses more itself */
#define MESSAGE_MAX_VALUES         (1u << 20) /* in a message; up to 48 bytes each, unpacked */
#define MESSAGE_MAX_CLASSES        10000      /* user classes in one spawn */
#define MESSAGE_MAX_STOP_TIMEOUT_S 31536000   /* a year; longer ones are cut to it */
#define MESSAGE_NODE_ID_BYTES      192        /* host part + '_' + 32 hex digits + NUL */

enum message_type {
    /* worker -> master */
    MESSAGE_CLIENT_READY,
    MESSAGE_SPAWNING,
    MESSAGE_STATS,
    MESSAGE_CLIENT_STOPPED,
    MESSAGE_EXCEPTION,
    MESSAGE_LOGS,
    /* both ways */
    MESSAGE_HEARTBEAT,
    MESSAGE_SPAWNING_COMPLETE,
    MESSAGE_QUIT,
    MESSAGE_LOCUSTFILE,
    /* master -> worker */
    MESSAGE_ACK,
    MESSAGE_SPAWN,
    MESSAGE_STOP,
    MESSAGE_RECONNECT,
    MESSAGE_UPDATE_USER_CLASS,
    /* anything else, both ways; also what only a worker sends when it comes from a master */
    MESSAGE_CUSTOM,
};

/* The name on the wire; "custom" for MESSAGE_CUSTOM. */
const char *message_type_name(enum message_type type);

struct class_count {
    struct str name;
    uint32_t count;
};

struct message_ack {
    bool has_index; /* false: a master older than 2.11 */
    uint64_t index;
};

struct message_spawn {
    double timestamp;            /* the master's wall clock */
    struct class_count *classes; /* absolute target counts of this worker; names are distinct */
    size_t class_count;
    struct str host;        /* ptr NULL: none given, or empty */
    double stop_timeout_s;  /* 0 when the master gives none, or a negative one */
    json_t *parsed_options; /* an object, empty from masters before 2.2; may hold secrets */
};

/* From the master: the total target over all workers. */
struct message_total {
    bool known; /* false: the message had no count */
    uint64_t user_count;
};

struct message_update_user_class {
    struct str user_class_name;
    json_t *attributes; /* the whole object */
};

/* The name is the master's word: take its last part only, if it is to be a file's name. */
struct message_locustfile_source {
    struct str filename; /* ptr NULL: contents holds a URL */
    struct str contents;
};

struct message_locustfile {
    struct str error; /* ptr NULL: none */
    struct message_locustfile_source *sources;
    size_t source_count;
};

/* A message of an unknown type, or one to send. */
struct message_custom {
    struct str type;
    json_t *data; /* NULL is nil */
};

/* One received message. Views point into memory that the message owns; texts are valid UTF-8,
 * repaired where they were not. JSON values follow the rules of value.h: keys became text, NaN and
 * ext null. Types without a member here carry nothing. */
struct message {
    enum message_type type;
    struct str node_id;
    union {
        struct message_ack ack;
        struct message_spawn spawn;
        struct message_total spawning_complete;
        struct message_update_user_class update_user_class;
        struct message_locustfile locustfile;
        struct message_custom custom;
    };
    void *memory; /* for message_done */
};

/* Decode one frame from the master. What is kept is copied; the frame may be freed afterwards.
 * Text may also come as bin, counts as floats with a whole value, a locustfile in its form before
 * 2.31; unknown keys are ignored.
 * 0; -EPROTO (not one whole array of 3, or a known type whose data has a wrong type: err says which
 * field); -ERANGE (over a limit); -ENOMEM. On failure ret is left zeroed. */
MUST_USE int message_decode(struct str frame, struct message *ret, struct err *err);
/* Safe on a zeroed message, and twice. */
void message_done(struct message *m);

/* --- what a worker sends ------------------------------------------------------------------- */

struct wire_bucket {
    double
        key; /* milliseconds, each once; a whole number goes out as an integer, as Locust's own */
    uint64_t count;
};

struct wire_second {
    uint64_t second; /* Unix time */
    uint64_t count;
};

/* locust.stats.StatsEntryDict. Times in milliseconds: they go out as floats, a zero as the integer
 * that Locust's entries begin with. */
struct wire_entry {
    struct str name;
    struct str method;
    struct measure last_request_timestamp; /* unknown: nil */
    double start_time;
    uint64_t num_requests;
    uint64_t num_none_requests;
    uint64_t num_failures;
    double total_response_time;
    double max_response_time;
    struct measure min_response_time; /* unknown: nil */
    uint64_t total_content_length;
    const struct wire_bucket *response_times;
    size_t response_time_count;
    const struct wire_second *num_reqs_per_sec;
    size_t num_reqs_per_sec_count;
    const struct wire_second *num_fail_per_sec;
    size_t num_fail_per_sec_count;
};

struct wire_error {
    struct str key; /* sha256 hex as Locust computes it; see worker/stats */
    struct str method;
    struct str name;
    struct str error;
    uint64_t occurrences;
    double first_seen;
    double last_seen;
};

struct message_stats {
    const struct wire_entry *entries; /* those with requests or failures only */
    size_t entry_count;
    struct wire_entry total;
    const struct wire_error *errors;
    size_t error_count;
    const struct class_count *classes; /* users running now, every known class */
    size_t class_count;
    uint64_t user_count;
    json_t *cicada; /* borrowed; NULL: leave the key out. At most MESSAGE_MAX_DEPTH - 2 deep */
};

struct message_heartbeat {
    const char *state;                   /* "ready", "spawning" or "running", nothing else */
    double current_cpu_usage;            /* percent of one core */
    struct measure current_memory_usage; /* bytes; unknown: key left out */
};

/* Each appends one whole frame to out (which is usually empty) and leaves out unchanged on failure:
 * 0, -ERANGE (out's maximum, or data nested too deep), -ENOMEM, and where it says so -EINVAL.
 * node_id is this worker's identity. Whatever the caller hands over, the master can read it: text
 * is repaired, a number that is not finite becomes nil, or 0 where the master calculates with it,
 * and a key that Locust's decoder takes for an object of its own ("__datetime__", "__ObjectId__")
 * gets one more underscore. */

/* An empty version goes out as -1, which a master takes without comparing. */
MUST_USE int message_encode_client_ready(struct buf *out, struct str node_id, struct str version);
/* A type without data: spawning, client_stopped, quit. -EINVAL: another type. */
MUST_USE int message_encode_plain(struct buf *out, struct str node_id, enum message_type type);
/* -EINVAL: another state than the three; the master would no longer count this worker. */
MUST_USE int message_encode_heartbeat(struct buf *out, struct str node_id,
                                      const struct message_heartbeat *h);
MUST_USE int message_encode_spawning_complete(struct buf *out, struct str node_id,
                                              const struct class_count *classes, size_t class_count,
                                              uint64_t user_count);
/* -EINVAL: a key of response_times is negative or not finite. */
MUST_USE int message_encode_stats(struct buf *out, struct str node_id,
                                  const struct message_stats *stats);
MUST_USE int message_encode_exception(struct buf *out, struct str node_id, struct str msg,
                                      struct str traceback);
MUST_USE int message_encode_logs(struct buf *out, struct str node_id, const struct str *lines,
                                 size_t line_count);
MUST_USE int message_encode_locustfile(struct buf *out, struct str node_id, struct str version);
/* Any type and data: a custom message, or what a test needs to play the master. */
MUST_USE int message_encode_custom(struct buf *out, struct str node_id, struct str type,
                                   const json_t *data);

#endif

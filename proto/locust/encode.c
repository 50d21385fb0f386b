/* Keys stand in the order in which Locust writes them, so that a message of the same content is the
 * same bytes. */
#include "proto/locust/message.h"
#include "proto/locust/pack.h"
#include "proto/locust/value.h"

#include <math.h>

#define WHOLE_MAX 9007199254740992.0 /* 2^53: above it doubles skip integers */

static const char *const type_names[] = {
    [MESSAGE_CLIENT_READY] = "client_ready",
    [MESSAGE_SPAWNING] = "spawning",
    [MESSAGE_STATS] = "stats",
    [MESSAGE_CLIENT_STOPPED] = "client_stopped",
    [MESSAGE_EXCEPTION] = "exception",
    [MESSAGE_LOGS] = "logs",
    [MESSAGE_HEARTBEAT] = "heartbeat",
    [MESSAGE_SPAWNING_COMPLETE] = "spawning_complete",
    [MESSAGE_QUIT] = "quit",
    [MESSAGE_LOCUSTFILE] = "locustfile",
    [MESSAGE_ACK] = "ack",
    [MESSAGE_SPAWN] = "spawn",
    [MESSAGE_STOP] = "stop",
    [MESSAGE_RECONNECT] = "reconnect",
    [MESSAGE_UPDATE_USER_CLASS] = "update_user_class",
    [MESSAGE_CUSTOM] = "custom",
};

const char *message_type_name(enum message_type type)
{
    return type_names[type];
}

/* --- the frame: [type, data, node id] ----------------------------------------------------------
 */

static void begin(struct pack *p, struct buf *out, struct str type)
{
    pack_begin(p, out);
    pack_array(p, 3);
    pack_text(p, type);
}

static void begin_type(struct pack *p, struct buf *out, enum message_type type)
{
    begin(p, out, str_of(message_type_name(type)));
}

static int end(struct pack *p, struct str node_id)
{
    pack_text(p, node_id);
    return pack_end(p);
}

/* --- parts ------------------------------------------------------------------------------------ */

static void pack_named_text(struct pack *p, const char *name, struct str text)
{
    pack_text(p, str_of(name));
    pack_text(p, text);
}

static void pack_named_uint(struct pack *p, const char *name, uint64_t value)
{
    pack_text(p, str_of(name));
    pack_uint(p, value);
}

static void pack_named_amount(struct pack *p, const char *name, double value)
{
    pack_text(p, str_of(name));
    pack_amount(p, value);
}

static void pack_classes(struct pack *p, const struct class_count *classes, size_t count)
{
    pack_text(p, STR("user_classes_count"));
    pack_map(p, count);
    for (size_t i = 0; i < count; i++) {
        pack_key(p, classes[i].name);
        pack_uint(p, classes[i].count);
    }
}

/* A key that is no time would poison the master's percentiles for good. */
static void pack_bucket_key(struct pack *p, double key)
{
    if (!isfinite(key) || key < 0)
        pack_fail(p, -EINVAL);
    else if (key <= WHOLE_MAX && key == floor(key))
        pack_uint(p, (uint64_t)key);
    else
        pack_double(p, key);
}

static void pack_buckets(struct pack *p, const struct wire_entry *e)
{
    pack_text(p, STR("response_times"));
    pack_map(p, e->response_time_count);
    for (size_t i = 0; i < e->response_time_count; i++) {
        pack_bucket_key(p, e->response_times[i].key);
        pack_uint(p, e->response_times[i].count);
    }
}

static void pack_seconds(struct pack *p, const char *name, const struct wire_second *seconds,
                         size_t count)
{
    pack_text(p, str_of(name));
    pack_map(p, count);
    for (size_t i = 0; i < count; i++) {
        pack_uint(p, seconds[i].second);
        pack_uint(p, seconds[i].count);
    }
}

/* An unknown minimum must be nil: the master would keep a 0 as the minimum of all. */
static void pack_minimum(struct pack *p, struct measure ms)
{
    pack_text(p, STR("min_response_time"));
    if (ms.known && isfinite(ms.value))
        pack_ms(p, ms.value);
    else
        pack_nil(p);
}

static void pack_entry(struct pack *p, const struct wire_entry *e)
{
    pack_map(p, 14);
    pack_named_text(p, "name", e->name);
    pack_named_text(p, "method", e->method);
    pack_text(p, STR("last_request_timestamp"));
    pack_measure(p, e->last_request_timestamp);
    pack_named_amount(p, "start_time", e->start_time);
    pack_named_uint(p, "num_requests", e->num_requests);
    pack_named_uint(p, "num_none_requests", e->num_none_requests);
    pack_named_uint(p, "num_failures", e->num_failures);
    pack_text(p, STR("total_response_time"));
    pack_ms(p, e->total_response_time);
    pack_text(p, STR("max_response_time"));
    pack_ms(p, e->max_response_time);
    pack_minimum(p, e->min_response_time);
    pack_named_uint(p, "total_content_length", e->total_content_length);
    pack_buckets(p, e);
    pack_seconds(p, "num_reqs_per_sec", e->num_reqs_per_sec, e->num_reqs_per_sec_count);
    pack_seconds(p, "num_fail_per_sec", e->num_fail_per_sec, e->num_fail_per_sec_count);
}

static void pack_error(struct pack *p, const struct wire_error *e)
{
    pack_key(p, e->key);
    pack_map(p, 6);
    pack_named_text(p, "name", e->name);
    pack_named_text(p, "method", e->method);
    pack_named_text(p, "error", e->error);
    pack_named_uint(p, "occurrences", e->occurrences);
    pack_named_amount(p, "first_seen", e->first_seen);
    pack_named_amount(p, "last_seen", e->last_seen);
}

/* --- messages --------------------------------------------------------------------------------- */

int message_encode_client_ready(struct buf *out, struct str node_id, struct str version)
{
    struct pack p;
    begin_type(&p, out, MESSAGE_CLIENT_READY);
    if (version.len)
        pack_text(&p, version);
    else
        pack_int(&p, -1);
    return end(&p, node_id);
}

int message_encode_plain(struct buf *out, struct str node_id, enum message_type type)
{
    struct pack p;
    if (type != MESSAGE_SPAWNING && type != MESSAGE_CLIENT_STOPPED && type != MESSAGE_QUIT)
        return -EINVAL;
    begin_type(&p, out, type);
    pack_nil(&p);
    return end(&p, node_id);
}

static bool is_heartbeat_state(struct str state)
{
    return str_eq(state, STR("ready")) || str_eq(state, STR("spawning")) ||
           str_eq(state, STR("running"));
}

int message_encode_heartbeat(struct buf *out, struct str node_id, const struct message_heartbeat *h)
{
    struct pack p;
    double memory = h->current_memory_usage.value;
    bool memory_known = h->current_memory_usage.known && memory >= 0 && memory <= WHOLE_MAX;
    if (!is_heartbeat_state(str_of(h->state)))
        return -EINVAL;
    begin_type(&p, out, MESSAGE_HEARTBEAT);
    pack_map(&p, memory_known ? 3 : 2);
    pack_named_text(&p, "state", str_of(h->state));
    pack_named_amount(&p, "current_cpu_usage", h->current_cpu_usage);
    if (memory_known)
        pack_named_uint(&p, "current_memory_usage", (uint64_t)memory);
    return end(&p, node_id);
}

int message_encode_spawning_complete(struct buf *out, struct str node_id,
                                     const struct class_count *classes, size_t class_count,
                                     uint64_t user_count)
{
    struct pack p;
    begin_type(&p, out, MESSAGE_SPAWNING_COMPLETE);
    pack_map(&p, 2);
    pack_classes(&p, classes, class_count);
    pack_named_uint(&p, "user_count", user_count);
    return end(&p, node_id);
}

int message_encode_stats(struct buf *out, struct str node_id, const struct message_stats *stats)
{
    struct pack p;
    begin_type(&p, out, MESSAGE_STATS);
    pack_map(&p, stats->cicada ? 6 : 5);
    pack_text(&p, STR("stats"));
    pack_array(&p, stats->entry_count);
    for (size_t i = 0; i < stats->entry_count; i++)
        pack_entry(&p, &stats->entries[i]);
    pack_text(&p, STR("stats_total"));
    pack_entry(&p, &stats->total);
    pack_text(&p, STR("errors"));
    pack_map(&p, stats->error_count);
    for (size_t i = 0; i < stats->error_count; i++)
        pack_error(&p, &stats->errors[i]);
    pack_classes(&p, stats->classes, stats->class_count);
    pack_named_uint(&p, "user_count", stats->user_count);
    if (stats->cicada) {
        pack_text(&p, STR("cicada"));
        value_pack(&p, stats->cicada, MESSAGE_MAX_DEPTH - 2);
    }
    return end(&p, node_id);
}

int message_encode_exception(struct buf *out, struct str node_id, struct str msg,
                             struct str traceback)
{
    struct pack p;
    begin_type(&p, out, MESSAGE_EXCEPTION);
    pack_map(&p, 2);
    pack_named_text(&p, "msg", msg);
    pack_named_text(&p, "traceback", traceback);
    return end(&p, node_id);
}

int message_encode_logs(struct buf *out, struct str node_id, const struct str *lines,
                        size_t line_count)
{
    struct pack p;
    begin_type(&p, out, MESSAGE_LOGS);
    pack_map(&p, 2);
    pack_named_text(&p, "worker_id", node_id);
    pack_text(&p, STR("logs"));
    pack_array(&p, line_count);
    for (size_t i = 0; i < line_count; i++)
        pack_text(&p, lines[i]);
    return end(&p, node_id);
}

int message_encode_locustfile(struct buf *out, struct str node_id, struct str version)
{
    struct pack p;
    begin_type(&p, out, MESSAGE_LOCUSTFILE);
    pack_map(&p, 1);
    pack_named_text(&p, "version", version);
    return end(&p, node_id);
}

int message_encode_custom(struct buf *out, struct str node_id, struct str type, const json_t *data)
{
    struct pack p;
    begin(&p, out, type);
    value_pack(&p, data, MESSAGE_MAX_DEPTH - 1);
    return end(&p, node_id);
}

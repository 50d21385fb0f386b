/* The codec behind a pipe, for tests that compare it with Locust's own. One request a line, one
 * answer a line:
 *   decode HEX    -> the message as JSON, or {"code": N, "error": TEXT}
 *   encode JSON   -> the frame in hexadecimal digits, or "error N"
 * In what is encoded, texts that may be broken stand in hexadecimal digits too; the field names are
 * those of message.h. */
#include "base/num.h"
#include "proto/locust/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 65536
#define LINE_BYTES (256u << 20)

/* Memory of one request, freed with it. */
struct scrap {
    struct scrap *next;
    max_align_t bytes[];
};
static struct scrap *scraps;

static void *scrap_new(size_t bytes)
{
    struct scrap *s = calloc(1, sizeof *s + bytes);
    if (!s)
        exit(3);
    s->next = scraps;
    scraps = s;
    return s->bytes;
}

static void scraps_free(void)
{
    while (scraps) {
        struct scrap *next = scraps->next;
        free(scraps);
        scraps = next;
    }
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static struct str from_hex(struct str hex)
{
    char *bytes = scrap_new(hex.len / 2 + 1);
    for (size_t i = 0; i < hex.len / 2; i++)
        bytes[i] = (char)(digit(hex.ptr[2 * i]) << 4 | digit(hex.ptr[2 * i + 1]));
    return (struct str){bytes, hex.len / 2};
}

/* --- encode -------------------------------------------------------------------------------------
 */

static struct str text_at(const json_t *o, const char *key)
{
    return from_hex(str_of(json_string_value(json_object_get(o, key))));
}

static uint64_t uint_at(const json_t *o, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(o, key));
}

static double double_at(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static struct measure measure_at(const json_t *o, const char *key)
{
    json_t *value = json_object_get(o, key);
    return json_is_number(value) ? (struct measure){true, json_number_value(value)}
                                 : MEASURE_UNKNOWN;
}

/* Lists of [key, count]. */
static const struct wire_second *seconds_at(const json_t *o, const char *key, size_t *ret_count)
{
    json_t *list = json_object_get(o, key), *item;
    struct wire_second *made = scrap_new(json_array_size(list) * sizeof *made);
    size_t i;
    json_array_foreach(list, i, item) made[i] =
        (struct wire_second){(uint64_t)json_integer_value(json_array_get(item, 0)),
                             (uint64_t)json_integer_value(json_array_get(item, 1))};
    *ret_count = json_array_size(list);
    return made;
}

static const struct wire_bucket *buckets_at(const json_t *o, const char *key, size_t *ret_count)
{
    json_t *list = json_object_get(o, key), *item;
    struct wire_bucket *made = scrap_new(json_array_size(list) * sizeof *made);
    size_t i;
    json_array_foreach(list, i, item) made[i] =
        (struct wire_bucket){json_number_value(json_array_get(item, 0)),
                             (uint64_t)json_integer_value(json_array_get(item, 1))};
    *ret_count = json_array_size(list);
    return made;
}

static const struct class_count *classes_at(const json_t *o, size_t *ret_count)
{
    json_t *list = json_object_get(o, "classes"), *item;
    struct class_count *made = scrap_new(json_array_size(list) * sizeof *made);
    size_t i;
    json_array_foreach(list, i, item) made[i] =
        (struct class_count){from_hex(str_of(json_string_value(json_array_get(item, 0)))),
                             (uint32_t)json_integer_value(json_array_get(item, 1))};
    *ret_count = json_array_size(list);
    return made;
}

static struct wire_entry entry_of(const json_t *o)
{
    struct wire_entry e = {
        .name = text_at(o, "name"),
        .method = text_at(o, "method"),
        .last_request_timestamp = measure_at(o, "last_request_timestamp"),
        .start_time = double_at(o, "start_time"),
        .num_requests = uint_at(o, "num_requests"),
        .num_none_requests = uint_at(o, "num_none_requests"),
        .num_failures = uint_at(o, "num_failures"),
        .total_response_time = double_at(o, "total_response_time"),
        .max_response_time = double_at(o, "max_response_time"),
        .min_response_time = measure_at(o, "min_response_time"),
        .total_content_length = uint_at(o, "total_content_length"),
    };
    e.response_times = buckets_at(o, "response_times", &e.response_time_count);
    e.num_reqs_per_sec = seconds_at(o, "num_reqs_per_sec", &e.num_reqs_per_sec_count);
    e.num_fail_per_sec = seconds_at(o, "num_fail_per_sec", &e.num_fail_per_sec_count);
    return e;
}

static int encode_stats(struct buf *out, struct str id, const json_t *o)
{
    json_t *entries = json_object_get(o, "entries"), *errors = json_object_get(o, "errors"), *item;
    struct wire_entry *made = scrap_new(json_array_size(entries) * sizeof *made);
    struct wire_error *error = scrap_new(json_array_size(errors) * sizeof *error);
    size_t i;
    json_array_foreach(entries, i, item) made[i] = entry_of(item);
    json_array_foreach(errors, i, item) error[i] = (struct wire_error){
        .key = text_at(item, "key"),
        .method = text_at(item, "method"),
        .name = text_at(item, "name"),
        .error = text_at(item, "error"),
        .occurrences = uint_at(item, "occurrences"),
        .first_seen = double_at(item, "first_seen"),
        .last_seen = double_at(item, "last_seen"),
    };
    struct message_stats stats = {
        .entries = made,
        .entry_count = json_array_size(entries),
        .total = entry_of(json_object_get(o, "total")),
        .errors = error,
        .error_count = json_array_size(errors),
        .user_count = uint_at(o, "user_count"),
        .cicada = json_object_get(o, "cicada"),
    };
    stats.classes = classes_at(o, &stats.class_count);
    return message_encode_stats(out, id, &stats);
}

static int encode_spawning_complete(struct buf *out, struct str id, const json_t *o)
{
    size_t count;
    const struct class_count *classes = classes_at(o, &count);
    return message_encode_spawning_complete(out, id, classes, count, uint_at(o, "user_count"));
}

static int encode_heartbeat(struct buf *out, struct str id, const json_t *o)
{
    struct message_heartbeat h = {
        .state = json_string_value(json_object_get(o, "state")),
        .current_cpu_usage = double_at(o, "current_cpu_usage"),
        .current_memory_usage = measure_at(o, "current_memory_usage"),
    };
    return message_encode_heartbeat(out, id, &h);
}

static int encode_logs(struct buf *out, struct str id, const json_t *o)
{
    json_t *list = json_object_get(o, "logs"), *item;
    struct str *lines = scrap_new(json_array_size(list) * sizeof *lines);
    size_t i;
    json_array_foreach(list, i, item) lines[i] = from_hex(str_of(json_string_value(item)));
    return message_encode_logs(out, id, lines, json_array_size(list));
}

static int encode(struct buf *out, const json_t *o)
{
    const char *given = json_string_value(json_object_get(o, "type"));
    struct str type = str_of(given), id = text_at(o, "node_id");
    if (str_eq(type, STR("stats")))
        return encode_stats(out, id, o);
    if (str_eq(type, STR("spawning_complete")))
        return encode_spawning_complete(out, id, o);
    if (str_eq(type, STR("heartbeat")))
        return encode_heartbeat(out, id, o);
    if (str_eq(type, STR("logs")))
        return encode_logs(out, id, o);
    if (str_eq(type, STR("exception")))
        return message_encode_exception(out, id, text_at(o, "msg"), text_at(o, "traceback"));
    if (str_eq(type, STR("client_ready")))
        return message_encode_client_ready(out, id, text_at(o, "version"));
    if (str_eq(type, STR("locustfile")))
        return message_encode_locustfile(out, id, text_at(o, "version"));
    for (int t = MESSAGE_CLIENT_READY; t < MESSAGE_CUSTOM; t++)
        if (str_eq(type, str_of(message_type_name((enum message_type)t))))
            return message_encode_plain(out, id, (enum message_type)t);
    return message_encode_custom(out, id, type, json_object_get(o, "data"));
}

static void answer_encode(struct str text)
{
    struct buf out;
    json_t *o = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL, NULL);
    buf_init(&out, MESSAGE_MAX_BYTES);
    int rc = o ? encode(&out, o) : -EINVAL;
    if (rc < 0)
        printf("error %d", rc);
    for (size_t i = 0; i < out.len; i++)
        printf("%02x", (unsigned char)out.ptr[i]);
    printf("\n");
    json_decref(o);
    buf_done(&out);
}

/* --- decode -------------------------------------------------------------------------------------
 */

static json_t *text_json(struct str s)
{
    return s.ptr ? json_stringn(s.ptr, s.len) : json_null();
}

static json_t *spawn_json(const struct message_spawn *s)
{
    json_t *classes = json_array();
    for (size_t i = 0; i < s->class_count; i++)
        json_array_append_new(classes, json_pack("[o, I]", text_json(s->classes[i].name),
                                                 (json_int_t)s->classes[i].count));
    return json_pack("{s:f, s:o, s:o, s:f, s:O}", "timestamp", s->timestamp, "classes", classes,
                     "host", text_json(s->host), "stop_timeout", s->stop_timeout_s,
                     "parsed_options", s->parsed_options);
}

static json_t *locustfile_json(const struct message_locustfile *l)
{
    json_t *sources = json_array();
    for (size_t i = 0; i < l->source_count; i++)
        json_array_append_new(sources, json_pack("[o, o]", text_json(l->sources[i].filename),
                                                 text_json(l->sources[i].contents)));
    return json_pack("{s:o, s:o}", "error", text_json(l->error), "sources", sources);
}

static json_t *data_json(const struct message *m)
{
    switch (m->type) {
    case MESSAGE_ACK:
        return m->ack.has_index ? json_integer((json_int_t)m->ack.index) : json_null();
    case MESSAGE_SPAWN:
        return spawn_json(&m->spawn);
    case MESSAGE_SPAWNING_COMPLETE:
        return m->spawning_complete.known
                   ? json_integer((json_int_t)m->spawning_complete.user_count)
                   : json_null();
    case MESSAGE_UPDATE_USER_CLASS:
        return json_pack("[o, O]", text_json(m->update_user_class.user_class_name),
                         m->update_user_class.attributes);
    case MESSAGE_LOCUSTFILE:
        return locustfile_json(&m->locustfile);
    case MESSAGE_CUSTOM:
        return json_pack("[o, O?]", text_json(m->custom.type), m->custom.data);
    default:
        return json_null();
    }
}

static void answer_decode(struct str hex)
{
    struct message m;
    struct err err = {0};
    json_t *answer;
    int rc = message_decode(from_hex(hex), &m, &err);
    if (rc < 0)
        answer = json_pack("{s:i, s:s}", "code", rc, "error", err.text);
    else
        answer = json_pack("{s:s, s:o, s:o}", "type", message_type_name(m.type), "node_id",
                           text_json(m.node_id), "data", data_json(&m));
    if (json_dumpf(answer, stdout, JSON_COMPACT | JSON_ENSURE_ASCII) < 0)
        exit(3);
    printf("\n");
    json_decref(answer);
    message_done(&m);
}

/* --- lines --------------------------------------------------------------------------------------
 */

static bool answer(struct str line)
{
    if (str_starts(line, STR("decode ")))
        answer_decode(str_sub(line, 7, line.len));
    else if (str_starts(line, STR("encode ")))
        answer_encode(str_sub(line, 7, line.len));
    else
        return false;
    fflush(stdout);
    scraps_free();
    return true;
}

int main(void)
{
    struct buf input;
    bool ok = true;
    buf_init(&input, LINE_BYTES);
    while (ok) {
        char part[READ_BYTES];
        ssize_t n = read(STDIN_FILENO, part, sizeof part);
        if (n <= 0)
            break;
        ok = buf_add(&input, (struct str){part, (size_t)n}) == 0;
        for (size_t end; ok && (end = str_find(buf_str(&input), '\n')) < input.len;) {
            ok = answer(str_sub(buf_str(&input), 0, end));
            buf_drop(&input, end + 1);
        }
    }
    buf_done(&input);
    return ok ? 0 : 2;
}

#include "proto/locust/message.h"

#include "test/unit/alloc.h"
#include "test/unit/proto/locust/hex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* The frames named "locust" were made by locust.rpc.Message.serialize of Locust 2.47.0 with
 * msgpack 1.2.4. */
#define NODE_HEX                                                                                   \
    "d927686f73742d615f3031323334353637383961626364656630313233343536373839616263646566"
#define NODE STR("host-a_0123456789abcdef0123456789abcdef")

#define NOT_A_NUMBER ((double)NAN)
#define INFINITE     ((double)INFINITY)

/* Memory of jansson counts in allocation-failure tests too. */
static void *json_malloc(size_t n)
{
    return malloc(n);
}

static void json_free(void *p)
{
    free(p);
}

static int set_up(void **state)
{
    (void)state;
    json_set_alloc_funcs(json_malloc, json_free);
    return 0;
}

static void assert_text(struct str s, const char *want)
{
    assert_int_equal(s.len, strlen(want));
    assert_memory_equal(s.ptr, want, s.len);
}

/* --- encoding ----------------------------------------------------------------------------------
 */

static const struct class_count some_classes[] = {{STR("A"), 3}, {STR("B\xC3\xA9"), 0}};

static int encode_client_ready(struct buf *out)
{
    return message_encode_client_ready(out, NODE, STR("2.47.0"));
}

static int encode_client_ready_without_version(struct buf *out)
{
    return message_encode_client_ready(out, NODE, (struct str){NULL, 0});
}

static int encode_spawning(struct buf *out)
{
    return message_encode_plain(out, NODE, MESSAGE_SPAWNING);
}

static int encode_heartbeat(struct buf *out)
{
    struct message_heartbeat h = {"running", 12.5, {true, 73400320}};
    return message_encode_heartbeat(out, NODE, &h);
}

static int encode_spawning_complete(struct buf *out)
{
    return message_encode_spawning_complete(out, NODE, some_classes, 2, 3);
}

static int encode_exception(struct buf *out)
{
    return message_encode_exception(out, NODE, STR("boom"), STR("Traceback\n"));
}

static int encode_logs(struct buf *out)
{
    const struct str lines[] = {STR("one"), STR("two")};
    return message_encode_logs(out, NODE, lines, 2);
}

static int encode_locustfile(struct buf *out)
{
    return message_encode_locustfile(out, NODE, STR("2.47.0"));
}

static const struct wire_bucket buckets[] = {{0, 1}, {12, 1}, {100, 1}};
static const struct wire_second reqs[] = {{1700000000, 1}, {1700000001, 2}};
static const struct wire_second fails[] = {{1700000001, 1}};

static struct wire_entry some_entry(void)
{
    return (struct wire_entry){
        .name = STR("/a"),
        .method = STR("GET"),
        .last_request_timestamp = {true, 1700000001.5},
        .start_time = 1700000000.25,
        .num_requests = 3,
        .num_failures = 1,
        .total_response_time = 112.5,
        .max_response_time = 100.25,
        .min_response_time = {true, 0.25},
        .total_content_length = 300,
        .response_times = buckets,
        .response_time_count = 3,
        .num_reqs_per_sec = reqs,
        .num_reqs_per_sec_count = 2,
        .num_fail_per_sec = fails,
        .num_fail_per_sec_count = 1,
    };
}

static int encode_stats(struct buf *out)
{
    struct wire_entry entry = some_entry();
    struct wire_error error = {.key = STR("kkkk"),
                               .method = STR("GET"),
                               .name = STR("/a"),
                               .error = STR("404"),
                               .occurrences = 2,
                               .first_seen = 1700000000.5,
                               .last_seen = 1700000001.5};
    struct message_stats stats = {
        .entries = &entry,
        .entry_count = 1,
        .total = {.name = STR("Aggregated"), .start_time = 1700000000.25},
        .errors = &error,
        .error_count = 1,
        .classes = some_classes,
        .class_count = 1,
        .user_count = 3,
    };
    return message_encode_stats(out, NODE, &stats);
}

static const struct {
    const char *label;
    int (*encode)(struct buf *out);
    const char *locust;
} encodings[] = {
    {"client_ready", encode_client_ready, "93ac636c69656e745f7265616479a6322e34372e30" NODE_HEX},
    {"client_ready without a version", encode_client_ready_without_version,
     "93ac636c69656e745f7265616479ff" NODE_HEX},
    {"spawning", encode_spawning, "93a8737061776e696e67c0" NODE_HEX},
    {"heartbeat", encode_heartbeat,
     "93a968656172746265617483a57374617465a772756e6e696e67b163757272656e745f6370755f7573616765cb402"
     "9"
     "000000000000b463757272656e745f6d656d6f72795f7573616765ce04600000" NODE_HEX},
    {"spawning_complete", encode_spawning_complete,
     "93b1737061776e696e675f636f6d706c65746582b2757365725f636c61737365735f636f756e7482a14103a342c3a"
     "9"
     "00aa757365725f636f756e7403" NODE_HEX},
    {"exception", encode_exception,
     "93a9657863657074696f6e82a36d7367a4626f6f6da974726163656261636baa54726163656261636b0"
     "a" NODE_HEX},
    {"logs", encode_logs,
     "93a46c6f677382a9776f726b65725f6964" NODE_HEX "a46c6f677392a36f6e65a374776f" NODE_HEX},
    {"locustfile", encode_locustfile,
     "93aa6c6f6375737466696c6581a776657273696f6ea6322e34372e30" NODE_HEX},
    {"stats", encode_stats,
     "93a5737461747385a57374617473918ea46e616d65a22f61a66d6574686f64a3474554b66c6173745f72657175657"
     "3"
     "745f74696d657374616d70cb41d954fc40600000aa73746172745f74696d65cb41d954fc40100000ac6e756d5f726"
     "5"
     "71756573747303b16e756d5f6e6f6e655f726571756573747300ac6e756d5f6661696c7572657301b3746f74616c5"
     "f"
     "726573706f6e73655f74696d65cb405c200000000000b16d61785f726573706f6e73655f74696d65cb40591000000"
     "0"
     "0000b16d696e5f726573706f6e73655f74696d65cb3fd0000000000000b4746f74616c5f636f6e74656e745f6c656"
     "e"
     "677468cd012cae726573706f6e73655f74696d65738300010c016401b06e756d5f726571735f7065725f73656382c"
     "e"
     "6553f10001ce6553f10102b06e756d5f6661696c5f7065725f73656381ce6553f10101ab73746174735f746f74616"
     "c"
     "8ea46e616d65aa41676772656761746564a66d6574686f64a0b66c6173745f726571756573745f74696d657374616"
     "d"
     "70c0aa73746172745f74696d65cb41d954fc40100000ac6e756d5f726571756573747300b16e756d5f6e6f6e655f7"
     "2"
     "6571756573747300ac6e756d5f6661696c7572657300b3746f74616c5f726573706f6e73655f74696d6500b16d617"
     "8"
     "5f726573706f6e73655f74696d6500b16d696e5f726573706f6e73655f74696d65c0b4746f74616c5f636f6e74656"
     "e"
     "745f6c656e67746800ae726573706f6e73655f74696d657380b06e756d5f726571735f7065725f73656380b06e756"
     "d"
     "5f6661696c5f7065725f73656380a66572726f727381a46b6b6b6b86a46e616d65a22f61a66d6574686f64a347455"
     "4"
     "a56572726f72a3343034ab6f6363757272656e63657302aa66697273745f7365656ecb41d954fc40200000a96c617"
     "3"
     "745f7365656ecb41d954fc40600000b2757365725f636c61737365735f636f756e7481a14103aa757365725f636f7"
     "5"
     "6e7403" NODE_HEX},
};

static void test_encoded_bytes_are_locusts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
        struct buf out, want;
        buf_init(&out, 10000);
        buf_init(&want, 10000);
        print_message("%s\n", encodings[i].label);
        assert_int_equal(encodings[i].encode(&out), 0);
        assert_int_equal(hex_add(&want, encodings[i].locust), 0);
        assert_int_equal(out.len, want.len);
        assert_memory_equal(out.ptr, want.ptr, want.len);
        buf_done(&out);
        buf_done(&want);
    }
}

static void test_a_failed_encoding_leaves_the_buffer_as_it_was(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
        struct buf out;
        size_t max = 0;
        int rc;
        do {
            buf_init(&out, 3 + max++);
            assert_int_equal(buf_add(&out, STR("abc")), 0);
            rc = encodings[i].encode(&out);
            if (rc < 0) {
                assert_int_equal(rc, -ERANGE);
                assert_string_equal(buf_c(&out), "abc");
            }
            buf_done(&out);
        } while (rc < 0);
        assert_int_equal(max - 1, strlen(encodings[i].locust) / 2);
    }
}

static void test_encoding_survives_each_failing_allocation(void **state)
{
    (void)state;
    for (unsigned long n = 1;; n++) {
        struct buf out;
        buf_init(&out, 10000);
        alloc_fail_at(n);
        int rc = message_encode_exception(&out, NODE, STR("bad \xFF text"), STR("\xC3"));
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        assert_int_equal(out.len > 0, !failed);
        buf_done(&out);
        if (!failed)
            break;
    }
}

/* What came out, read back as a custom message: types that only a worker sends are that. */
static json_t *encoded_data(struct buf *out, const char *type)
{
    struct message m;
    struct err err = {0};
    if (message_decode(buf_str(out), &m, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(m.type, MESSAGE_CUSTOM);
    assert_text(m.custom.type, type);
    json_t *data = json_incref(m.custom.data);
    message_done(&m);
    buf_done(out);
    return data;
}

static void test_text_is_repaired_everywhere(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 10000);
    struct wire_entry entry = {.name = STR("/\xFF"), .method = STR("G\x80")};
    struct wire_error error = {.key = STR("\xFE"), .error = STR("\xED\xA0\x80")};
    struct class_count class = {STR("C\xC0"), 1};
    json_t *extra = json_pack("{s:o}", "t", json_stringn_nocheck("\xF5!", 2));
    struct message_stats stats = {
        .entries = &entry,
        .entry_count = 1,
        .errors = &error,
        .error_count = 1,
        .classes = &class,
        .class_count = 1,
        .cicada = extra,
    };
    assert_int_equal(message_encode_stats(&out, STR("n\xFFo"), &stats), 0);
    json_decref(extra);
    json_t *data = encoded_data(&out, "stats");
    json_t *e = json_array_get(json_object_get(data, "stats"), 0);
    assert_string_equal(json_string_value(json_object_get(e, "name")), "/\xEF\xBF\xBD");
    assert_string_equal(json_string_value(json_object_get(e, "method")), "G\xEF\xBF\xBD");
    json_t *errors = json_object_get(data, "errors");
    json_t *r = json_object_get(errors, "\xEF\xBF\xBD");
    assert_string_equal(json_string_value(json_object_get(r, "error")),
                        "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    assert_string_equal(json_string_value(json_object_get(r, "method")), "");
    assert_non_null(json_object_get(json_object_get(data, "user_classes_count"), "C\xEF\xBF\xBD"));
    assert_string_equal(json_string_value(json_object_get(json_object_get(data, "cicada"), "t")),
                        "\xEF\xBF\xBD!");
    json_decref(data);
}

static void test_numbers_that_are_not_finite_never_go_out(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 10000);
    struct wire_entry entry = {
        .start_time = NOT_A_NUMBER,
        .last_request_timestamp = {true, INFINITE},
        .total_response_time = -INFINITE,
        .max_response_time = NOT_A_NUMBER,
        .min_response_time = {true, NOT_A_NUMBER},
    };
    struct wire_error error = {.first_seen = NOT_A_NUMBER, .last_seen = INFINITE};
    struct message_stats stats = {
        .entries = &entry, .entry_count = 1, .errors = &error, .error_count = 1};
    assert_int_equal(message_encode_stats(&out, NODE, &stats), 0);
    json_t *data = encoded_data(&out, "stats");
    json_t *e = json_array_get(json_object_get(data, "stats"), 0);
    assert_true(json_is_null(json_object_get(e, "last_request_timestamp")));
    assert_true(json_is_null(json_object_get(e, "min_response_time")));
    assert_true(json_is_real(json_object_get(e, "start_time")));
    assert_true(json_real_value(json_object_get(e, "start_time")) == 0.0);
    assert_true(json_is_integer(json_object_get(e, "total_response_time")));
    assert_int_equal(json_integer_value(json_object_get(e, "max_response_time")), 0);
    json_t *r = json_object_get(json_object_get(data, "errors"), "");
    assert_true(json_real_value(json_object_get(r, "first_seen")) == 0.0);
    json_decref(data);

    struct message_heartbeat h = {"ready", NOT_A_NUMBER, {true, NOT_A_NUMBER}};
    assert_int_equal(message_encode_heartbeat(&out, NODE, &h), 0);
    assert_null(memmem(out.ptr, out.len, "current_memory_usage", 20));
    buf_done(&out);
}

static void test_keys_of_response_times_are_numbers_of_their_own_kind(void **state)
{
    (void)state;
    struct buf out, want;
    buf_init(&out, 10000);
    buf_init(&want, 100);
    static const struct wire_bucket keys[] = {{0.35, 1}, {5, 2}, {1e300, 3}};
    struct message_stats stats = {.total = {.response_times = keys, .response_time_count = 3}};
    assert_int_equal(message_encode_stats(&out, NODE, &stats), 0);
    assert_int_equal(hex_add(&want, "83cb3fd6666666666666010502cb7e37e43c8800759c03"), 0);
    assert_non_null(memmem(out.ptr, out.len, want.ptr, want.len));
    static const double bad[] = {-1, -0.5, NOT_A_NUMBER, INFINITE, -INFINITE};
    buf_clear(&out);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wire_bucket key = {bad[i], 1};
        stats.total.response_times = &key;
        stats.total.response_time_count = 1;
        assert_int_equal(message_encode_stats(&out, NODE, &stats), -EINVAL);
        assert_int_equal(out.len, 0);
    }
    buf_done(&out);
    buf_done(&want);
}

static void test_what_a_master_would_choke_on_is_refused(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 10000);
    static const char *const states[] = {"stopped", "missing", "cleanup", "", "Ready", NULL};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct message_heartbeat h = {states[i], 1, MEASURE_UNKNOWN};
        assert_int_equal(message_encode_heartbeat(&out, NODE, &h), -EINVAL);
    }
    for (int type = MESSAGE_CLIENT_READY; type <= MESSAGE_CUSTOM; type++) {
        bool plain =
            type == MESSAGE_SPAWNING || type == MESSAGE_CLIENT_STOPPED || type == MESSAGE_QUIT;
        assert_int_equal(message_encode_plain(&out, NODE, (enum message_type)type),
                         plain ? 0 : -EINVAL);
        buf_clear(&out);
    }
    buf_done(&out);
}

/* Locust's decoder looks for "as_str" in a map with such a key, and its listener dies without. */
static void test_keys_that_locust_takes_for_objects_are_renamed(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 10000);
    struct class_count class = {STR("__datetime__"), 1};
    assert_int_equal(message_encode_spawning_complete(&out, NODE, &class, 1, 1), 0);
    assert_non_null(memmem(out.ptr, out.len, "\xAD___datetime__", 14));
    buf_clear(&out);
    json_t *data = json_pack("{s:i}", "__ObjectId__", 1);
    assert_int_equal(message_encode_custom(&out, NODE, STR("x"), data), 0);
    assert_non_null(memmem(out.ptr, out.len, "\xAD___ObjectId__", 14));
    json_decref(data);
    buf_done(&out);
}

static json_t *nested(unsigned depth)
{
    json_t *json = json_integer(1);
    for (; depth > 0; depth--)
        json = json_pack("[o]", json);
    return json;
}

static void test_custom_data_may_be_as_deep_as_a_message_may(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 10000);
    json_t *deep = nested(MESSAGE_MAX_DEPTH - 1), *deeper = nested(MESSAGE_MAX_DEPTH);
    assert_int_equal(message_encode_custom(&out, NODE, STR("x"), deeper), -ERANGE);
    assert_int_equal(out.len, 0);
    assert_int_equal(message_encode_custom(&out, NODE, STR("x"), deep), 0);
    json_t *again = encoded_data(&out, "x");
    assert_true(json_equal(again, deep));
    struct message_stats stats = {.cicada = deep};
    assert_int_equal(message_encode_stats(&out, NODE, &stats), -ERANGE);
    stats.cicada = json_array_get(deep, 0);
    assert_int_equal(message_encode_stats(&out, NODE, &stats), 0);
    json_decref(encoded_data(&out, "stats"));
    json_decref(again);
    json_decref(deep);
    json_decref(deeper);
}

/* --- decoding ----------------------------------------------------------------------------------
 */

/* The message that a frame in hexadecimal digits holds; message_done it. */
static int decode_hex(const char *hex, struct message *ret, struct err *err)
{
    struct buf frame;
    buf_init(&frame, 10000);
    int rc = hex_add(&frame, hex);
    if (rc == 0)
        rc = message_decode(buf_str(&frame), ret, err);
    buf_done(&frame);
    return rc;
}

static struct message decoded(const char *hex)
{
    struct message m;
    struct err err = {0};
    if (decode_hex(hex, &m, &err) < 0)
        fail_msg("%s", err.text);
    return m;
}

/* A custom message's data, written in Python's terms: ["x", DATA, ""]. */
static json_t *custom(const char *data_hex)
{
    char hex[4096];
    (void)snprintf(hex, sizeof hex, "93a178%sa0", data_hex);
    struct message m = decoded(hex);
    json_t *data = json_incref(m.custom.data);
    assert_int_equal(m.type, MESSAGE_CUSTOM);
    message_done(&m);
    return data;
}

static void test_ack_with_and_without_an_index(void **state)
{
    (void)state;
    struct message m = decoded("93a361636b81a5696e64657802" NODE_HEX); /* locust */
    assert_int_equal(m.type, MESSAGE_ACK);
    assert_text(m.node_id, "host-a_0123456789abcdef0123456789abcdef");
    assert_true(m.ack.has_index);
    assert_int_equal(m.ack.index, 2);
    message_done(&m);
    m = decoded("93a361636bc0" NODE_HEX); /* locust */
    assert_int_equal(m.type, MESSAGE_ACK);
    assert_false(m.ack.has_index);
    message_done(&m);
    message_done(&m);
}

static const char spawn_of_locust[] =
    "93a5737061776e85a974696d657374616d70cb41d954fc40300000b2757365725f636c61737365735f636f756e7482"
    "a14105a14200a4686f7374ad687474703a2f2f683a38303830ac73746f705f74696d656f7574cb0000000000000000"
    "ae7061727365645f6f7074696f6e7384a96e756d5f757365727304a474616773c0aa737061776e5f72617465cb4000"
    "000000000000a575736572739201a178" NODE_HEX;

static void test_spawn_of_locust(void **state)
{
    (void)state;
    struct message m = decoded(spawn_of_locust);
    assert_int_equal(m.type, MESSAGE_SPAWN);
    assert_true(m.spawn.timestamp == 1700000000.75);
    assert_int_equal(m.spawn.class_count, 2);
    assert_text(m.spawn.classes[0].name, "A");
    assert_int_equal(m.spawn.classes[0].count, 5);
    assert_text(m.spawn.classes[1].name, "B");
    assert_int_equal(m.spawn.classes[1].count, 0);
    assert_text(m.spawn.host, "http://h:8080");
    assert_true(m.spawn.stop_timeout_s == 0.0);
    json_t *want = json_pack("{s:i, s:n, s:f, s:[i, s]}", "num_users", 4, "tags", "spawn_rate", 2.0,
                             "users", 1, "x");
    assert_true(json_equal(m.spawn.parsed_options, want));
    json_decref(want);
    message_done(&m);
}

/* {"timestamp": 1, "user_classes_count": {b"A": 2.0}, "host": None or "", "stop_timeout": None},
 * bin where a str is expected, and a key that nobody knows. */
static void test_spawn_of_old_and_odd_masters(void **state)
{
    (void)state;
    static const char *const frames[] = {
        "93c405737061776e84a974696d657374616d7001b2757365725f636c61737365735f636f756e7481c40141cb40"
        "0000"
        "0000000000a4686f7374c0ac73746f705f74696d656f7574c0a0",
        "93a5737061776e85a974696d657374616d7001b2757365725f636c61737365735f636f756e7481a14102a4686f"
        "7374"
        "a0ac73746f705f74696d656f7574cbc008000000000000a46e6577739101a0",
    };
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        struct message m = decoded(frames[i]);
        assert_int_equal(m.type, MESSAGE_SPAWN);
        assert_int_equal(m.spawn.class_count, 1);
        assert_text(m.spawn.classes[0].name, "A");
        assert_int_equal(m.spawn.classes[0].count, 2);
        assert_null(m.spawn.host.ptr);
        assert_true(m.spawn.stop_timeout_s == 0.0);
        assert_true(json_is_object(m.spawn.parsed_options));
        assert_int_equal(json_object_size(m.spawn.parsed_options), 0);
        message_done(&m);
    }
}

static void test_other_messages_of_locust(void **state)
{
    (void)state;
    struct message m =
        decoded("93b1737061776e696e675f636f6d706c65746581aa757365725f636f756e741e" NODE_HEX);
    assert_int_equal(m.type, MESSAGE_SPAWNING_COMPLETE);
    assert_true(m.spawning_complete.known);
    assert_int_equal(m.spawning_complete.user_count, 30);
    message_done(&m);

    static const struct {
        const char *frame;
        enum message_type type;
    } plain[] = {
        {"93a9686561727462656174c0a0", MESSAGE_HEARTBEAT},
        {"93a473746f70c0a0", MESSAGE_STOP},
        {"93a471756974c0a0", MESSAGE_QUIT},
        {"93a97265636f6e6e656374c0a0", MESSAGE_RECONNECT},
    };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        m = decoded(plain[i].frame);
        assert_int_equal(m.type, plain[i].type);
        message_done(&m);
    }

    m = decoded(
        "93b17570646174655f757365725f636c61737383af757365725f636c6173735f6e616d65a141a677656967"
        "687402a57461736b7391a174" NODE_HEX);
    assert_int_equal(m.type, MESSAGE_UPDATE_USER_CLASS);
    assert_text(m.update_user_class.user_class_name, "A");
    assert_int_equal(json_integer_value(json_object_get(m.update_user_class.attributes, "weight")),
                     2);
    message_done(&m);
}

static void test_locustfile_in_its_three_forms(void **state)
{
    (void)state;
    struct message m = decoded("93aa6c6f6375737466696c6581ab6c6f6375737466696c65739282a866696c656e6"
                               "16d65a4612e7079a8636f6e7465"
                               "6e7473a4783d310aad687474703a2f2f682f622e7079" NODE_HEX);
    assert_int_equal(m.type, MESSAGE_LOCUSTFILE);
    assert_null(m.locustfile.error.ptr);
    assert_int_equal(m.locustfile.source_count, 2);
    assert_text(m.locustfile.sources[0].filename, "a.py");
    assert_text(m.locustfile.sources[0].contents, "x=1\n");
    assert_null(m.locustfile.sources[1].filename.ptr);
    assert_text(m.locustfile.sources[1].contents, "http://h/b.py");
    message_done(&m);

    m = decoded("93aa6c6f6375737466696c6582a866696c656e616d65a4612e7079a8636f6e74656e7473a4783d310"
                "a" NODE_HEX);
    assert_int_equal(m.locustfile.source_count, 1);
    assert_text(m.locustfile.sources[0].filename, "a.py");
    message_done(&m);

    m = decoded("93aa6c6f6375737466696c6581a56572726f72a26e6f" NODE_HEX);
    assert_text(m.locustfile.error, "no");
    assert_int_equal(m.locustfile.source_count, 0);
    message_done(&m);
}

/* {5: "five", 0.35: 1, None: 2, True: 3, "b": b"\xff", "n": nan, "big": 2**63, "neg": -7,
 *  "d": datetime(2024, 1, 2)} */
static void test_custom_of_locust(void **state)
{
    (void)state;
    struct message m = decoded("93a470696e678905a466697665cb3fd666666666666601c002c303a162c401ffa16"
                               "ecb7ff8000000000000a3626967"
                               "cf8000000000000000a36e6567f9a16482ac5f5f6461746574696d655f5fc3a6617"
                               "35f737472b83230323430313032"
                               "5430303a30303a30302e303030303030" NODE_HEX);
    assert_text(m.custom.type, "ping");
    json_t *want =
        json_pack("{s:s, s:i, s:i, s:i, s:s, s:n, s:f, s:i, s:{s:b, s:s}}", "5", "five", "0.35", 1,
                  "null", 2, "true", 3, "b", "\xEF\xBF\xBD", "n", "big", 9223372036854775808.0,
                  "neg", -7, "d", "__datetime__", 1, "as_str", "20240102T00:00:00.000000");
    assert_true(json_equal(m.custom.data, want));
    json_decref(want);
    message_done(&m);
}

static void test_custom_values(void **state)
{
    (void)state;
    static const struct {
        const char *hex, *json;
    } cases[] = {
        {"d6ff00000001", "null"},                      /* ext */
        {"ca3f000000", "0.5"},                         /* float 32 */
        {"cf7fffffffffffffff", "9223372036854775807"}, /* still an integer */
        {"d38000000000000000", "-9223372036854775808"},
        {"93c2c3c0", "[false, true, null]"},
        {"a3610062", "\"a\\u0000b\""},
        {"82a16101a16102", "{\"a\": 2}"}, /* the last one counts */
        {"81fe01", "{\"-2\": 1}"},
        {"80", "{}"},
        {"dc0000", "[]"},
        {"81cb7ff800000000000001", "{\"nan\": 1}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *data = custom(cases[i].hex);
        json_t *want = json_loads(cases[i].json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        print_message("%s\n", cases[i].hex);
        assert_non_null(want);
        assert_true(json_equal(data, want));
        json_decref(want);
        json_decref(data);
    }
    assert_null(custom("c0"));
}

static void test_what_is_no_message_is_refused_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *hex;
        int code;
        const char *text;
    } cases[] = {
        {"", -EPROTO, "message: empty"},
        {"c1", -EPROTO, "message: not msgpack"},
        {"c0", -EPROTO, "message is not an array of 3"},
        {"92a178c0", -EPROTO, "message is not an array of 3"},
        {"94a178c0a0c0", -EPROTO, "message is not an array of 3"},
        {"83a178c0a0c0c0c0", -EPROTO, "message is not an array of 3"},
        {"93a178c0", -EPROTO, "message: cut off, or claims more than it holds"},
        {"93a178c0a0c0", -EPROTO, "message: 1 bytes behind its end"},
        {"93a178ddffffffffa0", -EPROTO, "message: cut off, or claims more than it holds"},
        {"93a178dfffffffffa0", -EPROTO, "message: cut off, or claims more than it holds"},
        {"93a178c6ffffffffa0", -EPROTO, "message: cut off, or claims more than it holds"},
        {"93a178dbffffffffa0", -EPROTO, "message: cut off, or claims more than it holds"},
        {"93a178c9ffffffff01a0", -EPROTO, "message: cut off, or claims more than it holds"},
        {"9301c0a0", -EPROTO, "message: the type is not text"},
        {"93a178c0c0", -EPROTO, "message: the node id is not text"},
        {"93a361636b01a0", -EPROTO, "ack is not a map"},
        {"93a361636b81a5696e646578ffa0", -EPROTO, "ack: 'index' is not a whole number"},
        {"93a5737061776ec0a0", -EPROTO, "spawn is not a map"},
        {"93a5737061776e80a0", -EPROTO, "spawn: 'timestamp' is not a number"},
        {"93a5737061776e81a974696d657374616d70cb7ff8000000000000a0", -EPROTO,
         "spawn: 'timestamp' is not a number"},
        {"93a5737061776e81a974696d657374616d7001a0", -EPROTO,
         "spawn: 'user_classes_count' is not a map"},
        {"93a5737061776e82a974696d657374616d7001b2757365725f636c61737365735f636f756e7481a141ffa0",
         -EPROTO, "spawn: a count of 'user_classes_count' is not a whole number"},
        {"93a5737061776e82a974696d657374616d7001b2757365725f636c61737365735f636f756e7481a141cb3ff80"
         "000"
         "00000000a0",
         -EPROTO, "spawn: a count of 'user_classes_count' is not a whole number"},
        {"93a5737061776e82a974696d657374616d7001b2757365725f636c61737365735f636f756e7481a141cf00000"
         "001"
         "00000000a0",
         -ERANGE, "spawn: a count of 'user_classes_count' is too large"},
        {"93a5737061776e82a974696d657374616d7001b2757365725f636c61737365735f636f756e748105"
         "01a0",
         -EPROTO, "spawn: a class name is not text"},
        {"93a5737061776e82a974696d657374616d7001b2757365725f636c61737365735f636f756e7482a14101a1410"
         "2a0",
         -EPROTO, "spawn: 'user_classes_count' names a class twice"},
        {"93a5737061776e83a974696d657374616d7001b2757365725f636c61737365735f636f756e7480a4686f73740"
         "1a0",
         -EPROTO, "spawn: 'host' is not text"},
        {"93aa6c6f6375737466696c65c0a0", -EPROTO, "locustfile is not a map"},
        {"93aa6c6f6375737466696c6580a0", -EPROTO,
         "locustfile: a file is not a name and its text, or a URL"},
        {"93a1788190c0a0", -EPROTO, "'x' has a container as a key"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct message m;
        struct err err = {0};
        print_message("%s\n", cases[i].hex);
        assert_int_equal(decode_hex(cases[i].hex, &m, &err), cases[i].code);
        assert_string_equal(err.text, cases[i].text);
        assert_null(m.memory);
    }
}

/* ["x", DATA, ""] with so many containers in all, the outer one included. */
static int decode_depth(unsigned depth)
{
    char hex[512] = "93a178";
    for (unsigned i = 1; i < depth; i++)
        (void)strncat(hex, "91", 3);
    (void)strncat(hex, "c0a0", 5);
    struct message m;
    int rc = decode_hex(hex, &m, NULL);
    if (rc == 0)
        message_done(&m);
    return rc;
}

static void test_nesting_is_bounded(void **state)
{
    (void)state;
    assert_int_equal(decode_depth(MESSAGE_MAX_DEPTH), 0);
    assert_int_equal(decode_depth(MESSAGE_MAX_DEPTH + 1), -ERANGE);
}

static void test_the_number_of_values_is_bounded(void **state)
{
    (void)state;
    struct buf frame;
    struct message m;
    struct err err = {0};
    buf_init(&frame, 4000000);
    /* the outer array, the type, the inner array, the node id: four besides the filling */
    uint32_t n = MESSAGE_MAX_VALUES - 4;
    for (int over = 0; over < 2; over++, n++) {
        char head[] = {'\x93',          '\xa1',         'x',    '\xdd', (char)(n >> 24),
                       (char)(n >> 16), (char)(n >> 8), (char)n};
        buf_clear(&frame);
        assert_int_equal(buf_add(&frame, (struct str){head, sizeof head}), 0);
        assert_int_equal(buf_reserve(&frame, n + 1), 0);
        memset(frame.ptr + frame.len, '\xc0', n);
        frame.len += n;
        assert_int_equal(buf_add_byte(&frame, '\xa0'), 0);
        assert_int_equal(message_decode(buf_str(&frame), &m, &err), over ? -ERANGE : 0);
        message_done(&m);
    }
    assert_string_equal(err.text, "message: more than 1048576 values");
    buf_done(&frame);
}

static void test_the_length_and_the_number_of_classes_are_bounded(void **state)
{
    (void)state;
    struct message m;
    struct err err = {0};
    assert_int_equal(message_decode((struct str){"", MESSAGE_MAX_BYTES + 1u}, &m, &err), -ERANGE);
    assert_string_equal(err.text, "message: larger than 67108864 bytes");

    for (unsigned n = MESSAGE_MAX_CLASSES; n <= MESSAGE_MAX_CLASSES + 1; n++) {
        struct buf frame;
        buf_init(&frame, 1000000);
        /* ["spawn", {"timestamp": 1, "user_classes_count": {"00000": 0, "00001": 0, …}}, ""] */
        assert_int_equal(hex_add(&frame,
                                 "93a5737061776e82a974696d657374616d7001b2757365725f636c6173736"
                                 "5735f636f756e74de"),
                         0);
        assert_int_equal(buf_add_byte(&frame, (char)(n >> 8)), 0);
        assert_int_equal(buf_add_byte(&frame, (char)n), 0);
        for (unsigned i = 0; i < n; i++) {
            assert_int_equal(buf_printf(&frame, "\xA5%05u", i), 0);
            assert_int_equal(buf_add_byte(&frame, 0), 0);
        }
        assert_int_equal(buf_add_byte(&frame, '\xA0'), 0);
        int rc = message_decode(buf_str(&frame), &m, NULL);
        assert_int_equal(rc, n > MESSAGE_MAX_CLASSES ? -ERANGE : 0);
        assert_int_equal(m.spawn.class_count, rc < 0 ? 0 : n);
        message_done(&m);
        buf_done(&frame);
    }
}

static void test_decoding_survives_each_failing_allocation(void **state)
{
    (void)state;
    static const char *const frames[] = {
        spawn_of_locust,
        "93aa6c6f6375737466696c6581ab6c6f6375737466696c65739282a866696c656e616d65a4612e7079a8636f6e"
        "7465"
        "6e7473a4783d310aad687474703a2f2f682f622e7079" NODE_HEX,
        "93a470696e678905a466697665cb3fd666666666666601c002c303a162c401ffa16ecb7ff8000000000000a362"
        "6967"
        "cf8000000000000000a36e6567f9a16482ac5f5f6461746574696d655f5fc3a661735f737472b8323032343031"
        "3032"
        "5430303a30303a30302e303030303030" NODE_HEX,
    };
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        struct buf frame;
        buf_init(&frame, 10000);
        assert_int_equal(hex_add(&frame, frames[i]), 0);
        for (unsigned long n = 1;; n++) {
            struct message m;
            alloc_fail_at(n);
            int rc = message_decode(buf_str(&frame), &m, NULL);
            bool failed = alloc_failed();
            alloc_fail_at(0);
            assert_int_equal(rc, failed ? -ENOMEM : 0);
            message_done(&m);
            if (!failed)
                break;
        }
        buf_done(&frame);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encoded_bytes_are_locusts),
        cmocka_unit_test(test_a_failed_encoding_leaves_the_buffer_as_it_was),
        cmocka_unit_test(test_encoding_survives_each_failing_allocation),
        cmocka_unit_test(test_text_is_repaired_everywhere),
        cmocka_unit_test(test_numbers_that_are_not_finite_never_go_out),
        cmocka_unit_test(test_keys_of_response_times_are_numbers_of_their_own_kind),
        cmocka_unit_test(test_what_a_master_would_choke_on_is_refused),
        cmocka_unit_test(test_keys_that_locust_takes_for_objects_are_renamed),
        cmocka_unit_test(test_custom_data_may_be_as_deep_as_a_message_may),
        cmocka_unit_test(test_ack_with_and_without_an_index),
        cmocka_unit_test(test_spawn_of_locust),
        cmocka_unit_test(test_spawn_of_old_and_odd_masters),
        cmocka_unit_test(test_other_messages_of_locust),
        cmocka_unit_test(test_locustfile_in_its_three_forms),
        cmocka_unit_test(test_custom_of_locust),
        cmocka_unit_test(test_custom_values),
        cmocka_unit_test(test_what_is_no_message_is_refused_with_a_reason),
        cmocka_unit_test(test_nesting_is_bounded),
        cmocka_unit_test(test_the_number_of_values_is_bounded),
        cmocka_unit_test(test_the_length_and_the_number_of_classes_are_bounded),
        cmocka_unit_test(test_decoding_survives_each_failing_allocation),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}

#include "facts/facts.h"

#include "base/num.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* Each item as a line of its fields. */
static int write_fields(void *arg, const struct list_item *item, struct err *err)
{
    (void)err;
    struct buf *b = arg;
    int rc = 0;
    for (int f = 0; rc == 0 && f < LIST_FIELDS; f++)
        rc = buf_printf(b, "%s%.*s", f ? "|" : "",
                        STR_ARG(item->field[f].ptr ? item->field[f] : STR("-")));
    return rc == 0 ? buf_add_byte(b, '\n') : rc;
}

static int read_list(enum list_kind kind, struct str text, size_t step, struct buf *ret,
                     struct err *err)
{
    static struct list_reader r;
    int rc = 0;
    buf_clear(ret);
    list_reader_init(&r, kind, "node.kubernetes.io/instance-type", write_fields, ret);
    for (size_t at = 0; rc == 0 && at < text.len; at += step)
        rc = list_reader_feed(&r, str_sub(text, at, at + step));
    rc = rc == 0 ? list_reader_end(&r) : rc;
    *err = r.err;
    return rc;
}

static const char nodes_text[] =
    "{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"1\"},\n"
    " \"items\":[\n"
    "  {\"metadata\":{\"name\":\"n1\",\"managedFields\":[{\"fieldsV1\":{\"f:status\":{\"f:"
    "allocatable\":{\"f:cpu\":{}}}}}],"
    "\"labels\":{\"a\":\"b\",\"node.kubernetes.io\\/instance-type\":\"n2-standard-4\"}},"
    "\"status\":{\"capacity\":{\"cpu\":\"4\"},\"allocatable\":{\"cpu\":\"3920m\",\"memory\":"
    "\"13591700Ki\"},\"phase\":\"x\"},\"spec\":{\"name\":\"not\",\"taints\":[]}},\n"
    "  {\"status\":{\"allocatable\":{\"memory\":1024,\"cpu\":2}},\"metadata\":{\"name\":\"n2\","
    "\"labels\":null}},\n"
    "  {}\n"
    " ]}";

static void test_nodes_in_any_chunks(void **state)
{
    (void)state;
    struct buf lines;
    struct err err;
    buf_init(&lines, 10000);
    for (size_t step = 1; step < sizeof nodes_text; step++) {
        assert_int_equal(read_list(LIST_NODES, str_of(nodes_text), step, &lines, &err), 0);
        assert_string_equal(buf_c(&lines), "n1|n2-standard-4|-|x|3920m|13591700Ki\n"
                                           "n2|-|-|-|2|1024\n"
                                           "-|-|-|-|-|-\n");
    }
    buf_done(&lines);
}

static void test_pods(void **state)
{
    (void)state;
    struct buf lines;
    struct err err;
    buf_init(&lines, 10000);
    /* items before kind, an indented text, and fields of the same name elsewhere */
    struct str text =
        STR("{\n  \"items\": [\n    {\n      \"spec\": {\n        \"nodeName\": \"n1\","
            "\"containers\":[{\"name\":\"c\",\"nodeName\":\"no\"}]\n      },\n"
            "      \"status\": {\"phase\": \"Running\",\"conditions\":[{\"phase\":1}]},"
            "\n      \"metadata\": {\"name\": \"p1\",\"ownerReferences\":[{\"name\":"
            "\"o\"}]}\n    },{\"metadata\":{\"name\":\"p2\"},\"status\":{\"phase\":"
            "\"Pending\"}}\n  ],\n  \"kind\": \"PodList\"\n}\n");
    assert_int_equal(read_list(LIST_PODS, text, 5, &lines, &err), 0);
    assert_string_equal(buf_c(&lines), "p1|-|n1|Running|-|-\np2|-|-|Pending|-|-\n");
    buf_done(&lines);
}

static void test_empty_lists(void **state)
{
    (void)state;
    struct buf lines;
    struct err err;
    buf_init(&lines, 100);
    assert_int_equal(
        read_list(LIST_PODS, STR("{\"kind\":\"PodList\",\"items\":[]}"), 3, &lines, &err), 0);
    assert_int_equal(
        read_list(LIST_PODS, STR("{\"kind\":\"PodList\",\"items\":null}"), 3, &lines, &err), 0);
    assert_int_equal(lines.len, 0);
    buf_done(&lines);
}

static void test_what_is_no_list_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "not a list of pods: the JSON ends too early"},
        {"<html>sign in</html>", "not a list of pods: bad JSON at byte 0"},
        {"{\"kind\":\"PodList\",\"items\":[{\"metadata\":{",
         "not a list of pods: the JSON ends too early"},
        {"{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"x\"}",
         "not a list of pods: it is a Status"},
        {"{\"kind\":\"NodeList\",\"items\":[]}", "not a list of pods: it is of another kind"},
        {"{\"kind\":\"PodList\"}", "not a list of pods: it has no items"},
        {"{}", "not a list of pods: it has no items"},
        {"[]", "not a list of pods: an object or a list stands where another value belongs"},
        {"null", "not a list of pods: an object is null"},
        {"1", "not a list of pods: a value stands where an object or a list belongs"},
        {"{\"items\":{}}",
         "not a list of pods: an object or a list stands where another value belongs"},
        {"{\"items\":[1]}", "not a list of pods: a value stands where an object or a list belongs"},
        {"{\"items\":[null]}", "not a list of pods: an object is null"},
        {"{\"items\":[[]]}",
         "not a list of pods: an object or a list stands where another value belongs"},
        {"{\"items\":[{\"metadata\":1}]}",
         "not a list of pods: a value stands where an object or a list belongs"},
        {"{\"items\":[{\"status\":{\"phase\":1}}]}", "item 1 of the pods: a value is not a text"},
        {"{\"items\":[{},{\"metadata\":{\"name\":\"\xff\"}}]}",
         "item 2 of the pods: a name or value is not UTF-8"},
        {"{\"items\":[{\"metadata\":{\"name\":{}}}]}",
         "not a list of pods: an object or a list stands where another value belongs"},
        {"{\"items\":[],\"metadata\":{\"continue\":\"abc\"}}", "the list of pods is not complete"},
    };
    struct buf lines;
    buf_init(&lines, 10000);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err;
        assert_int_equal(read_list(LIST_PODS, str_of(cases[i].text), 4, &lines, &err), -EPROTO);
        assert_string_equal(err.text, cases[i].error);
    }
    buf_done(&lines);
}

static void test_long_names_are_refused(void **state)
{
    (void)state;
    for (int over = 0; over < 2; over++) {
        struct buf text, lines;
        struct err err;
        buf_init(&text, 10000);
        buf_init(&lines, 10000);
        assert_int_equal(buf_add(&text, STR("{\"items\":[{\"metadata\":{\"name\":\"")), 0);
        for (int i = 0; i < LIST_TEXT_BYTES + over; i++)
            assert_int_equal(buf_add_byte(&text, 'x'), 0);
        assert_int_equal(buf_add(&text, STR("\"}}]}")), 0);
        int rc = read_list(LIST_PODS, buf_str(&text), 50, &lines, &err);
        assert_int_equal(rc, over ? -EPROTO : 0);
        buf_done(&text);
        buf_done(&lines);
    }
}

static void test_status_message(void **state)
{
    (void)state;
    char text[300];
    assert_true(list_status_message(
        STR("{\"kind\":\"Status\",\"message\":\"nodes is forbidden:\\n no\",\"code\":403}"), text,
        sizeof text));
    assert_string_equal(text, "'nodes is forbidden:\\n no'");
    assert_false(list_status_message(STR("<html>"), text, sizeof text));
    assert_false(
        list_status_message(STR("{\"kind\":\"Status\",\"message\":1}"), text, sizeof text));
    assert_false(list_status_message(STR(""), text, sizeof text));
}

static long resident_kb(void)
{
    struct buf text;
    uint64_t pages;
    buf_init(&text, 4096);
    assert_int_equal(buf_read_file(&text, "/proc/self/statm", NULL), 0);
    struct str rest = buf_str(&text), part; /* size, resident, … */
    assert_true(str_next(&rest, ' ', &part) && str_next(&rest, ' ', &part));
    assert_int_equal(num_parse_u64(part, UINT32_MAX, &pages), 0);
    buf_done(&text);
    return (long)pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* An item of about 2.3 KB, as the API server writes them, with its managedFields. */
static void add_bulk(struct buf *b, const char *head, const char *tail)
{
    buf_clear(b);
    assert_int_equal(buf_add(b, str_of(head)), 0);
    assert_int_equal(buf_add(b, STR("\"managedFields\":[")), 0);
    while (b->len < 2200)
        assert_int_equal(
            buf_add(b, STR("{\"manager\":\"kubelet\",\"fieldsV1\":{\"f:status\":{\"f:x\":{}}}},")),
            0);
    assert_int_equal(buf_add(b, STR("{}]}")), 0);
    assert_int_equal(buf_add(b, str_of(tail)), 0);
}

static void feed_bulk(enum list_kind kind, int count, list_item_fn *fn, struct inventory *inventory)
{
    static struct list_reader r;
    struct buf item;
    char head[200], tail[200];
    buf_init(&item, 10000);
    list_reader_init(&r, kind, "type", fn, inventory);
    assert_int_equal(list_reader_feed(&r, STR("{\"items\":[")), 0);
    for (int i = 0; i < count; i++) {
        (void)snprintf(head, sizeof head, "%s{\"metadata\":{\"name\":\"%s-%06d\",%s", i ? "," : "",
                       kind == LIST_NODES ? "node" : "pod", i,
                       kind == LIST_NODES ? "\"labels\":{\"type\":\"m\"}," : "");
        if (kind == LIST_NODES)
            (void)snprintf(tail, sizeof tail,
                           ",\"status\":{\"allocatable\":{\"cpu\":\"3920m\",\"memory\":"
                           "\"13591700Ki\"}}}");
        else
            (void)snprintf(tail, sizeof tail,
                           ",\"spec\":{\"nodeName\":\"node-%06d\"},\"status\":{\"phase\":"
                           "\"Running\"}}",
                           i % 5000);
        add_bulk(&item, head, tail);
        assert_int_equal(list_reader_feed(&r, buf_str(&item)), 0);
    }
    assert_int_equal(list_reader_feed(&r, STR("]}")), 0);
    assert_int_equal(list_reader_end(&r), 0);
    buf_done(&item);
}

/* 5,000 nodes and 100,000 pods, 240 MB of JSON, within 64 MiB. */
static void test_a_large_cluster_in_bounded_memory(void **state)
{
    (void)state;
    struct inventory inventory = {0};
    struct cluster_facts facts = {0};
    long before_kb = resident_kb();
    feed_bulk(LIST_NODES, 5000, inventory_add_node, &inventory);
    feed_bulk(LIST_PODS, 100000, inventory_add_pod, &inventory);
    assert_int_equal(inventory_facts(&inventory, &facts), 0);
    assert_true(resident_kb() - before_kb < 64 * 1024);
    assert_true(facts.node_count.value == 5000);
    assert_true(facts.worker_pod_count.value == 100000);
    assert_true(facts.allocatable_cores.value == 19600);
    assert_true(facts.allocatable_ram_gb.value == 64810.28); /* 5000 * 13591700 / 1048576 */
    assert_string_equal(facts.machine_type, "m");
    cluster_facts_done(&facts);
    inventory_done(&inventory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_in_any_chunks),
        cmocka_unit_test(test_pods),
        cmocka_unit_test(test_empty_lists),
        cmocka_unit_test(test_what_is_no_list_is_refused),
        cmocka_unit_test(test_long_names_are_refused),
        cmocka_unit_test(test_status_message),
        cmocka_unit_test(test_a_large_cluster_in_bounded_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

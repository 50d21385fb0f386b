#include "facts/facts.h"

#include "facts/json.h"
#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* One item; NULL is an absent field. */
static struct list_item node(const char *name, const char *type, const char *cpu,
                             const char *memory)
{
    struct list_item item = {0};
    item.field[LIST_NAME] = str_of(name);
    item.field[LIST_MACHINE_TYPE] = str_of(type);
    item.field[LIST_CPU] = str_of(cpu);
    item.field[LIST_MEMORY] = str_of(memory);
    return item;
}

static struct list_item pod(const char *phase, const char *host)
{
    struct list_item item = {0};
    item.field[LIST_PHASE] = str_of(phase);
    item.field[LIST_NODE_NAME] = str_of(host);
    return item;
}

static void add_node(struct inventory *i, const char *name, const char *type, const char *cpu,
                     const char *memory)
{
    struct list_item item = node(name, type, cpu, memory);
    assert_int_equal(inventory_add_node(i, &item, NULL), 0);
}

static void add_pod(struct inventory *i, const char *phase, const char *host)
{
    struct list_item item = pod(phase, host);
    assert_int_equal(inventory_add_pod(i, &item, NULL), 0);
}

/* The facts as raw_configuration writes them, and the reasons behind it. */
static void expect(struct inventory *i, struct cluster_facts f, const char *want)
{
    struct buf text;
    buf_init(&text, 10000);
    assert_int_equal(inventory_facts(i, &f), 0);
    json_t *object = facts_raw_configuration(&f, NULL, MEASURE_UNKNOWN);
    (void)json_object_del(object, "users_source");
    (void)json_object_del(object, "actors_per_user");
    char *dump = json_dumps(object, JSON_COMPACT | FACTS_DUMP_FLAGS);
    assert_int_equal(buf_add(&text, str_of(dump)), 0);
    for (int part = 0; part < FACTS_PARTS; part++) {
        if (f.why[part][0])
            assert_int_equal(
                buf_printf(&text, "\n%s: %s", facts_part_name((enum facts_part)part), f.why[part]),
                0);
    }
    assert_string_equal(buf_c(&text), want);
    free(dump);
    json_decref(object);
    buf_done(&text);
    cluster_facts_done(&f);
}

static void test_nodes_that_host_live_pods_count(void **state)
{
    (void)state;
    struct inventory i = {0};
    add_node(&i, "n1", "n2-standard-4", "3920m", "13591700Ki");
    add_node(&i, "n2", "c3-standard-4", "3920m", "13591700Ki");
    add_node(&i, "n3", "n2-standard-4", "3920m", "13591700Ki");
    add_pod(&i, "Running", "n1");
    add_pod(&i, "Running", "n1");
    add_pod(&i, "Running", "n2");
    add_pod(&i, "Pending", NULL);
    add_pod(&i, "Succeeded", "n3");
    add_pod(&i, "Failed", "n3");
    add_pod(&i, NULL, "n3");
    expect(&i, (struct cluster_facts){0},
           "{\"machine_type\":\"c3-standard-4,n2-standard-4\",\"node_count\":2,"
           "\"allocatable_cores\":7.84,\"allocatable_ram_gb\":25.92,\"worker_pod_count\":4,"
           "\"capacity_scope\":\"worker_nodes\"}");
    inventory_done(&i);
}

static void test_without_hosts_all_nodes_count(void **state)
{
    (void)state;
    struct inventory i = {0};
    add_node(&i, "n1", "a", "1", "1Gi");
    add_node(&i, "n2", "a", "500m", "512Mi");
    add_pod(&i, "Pending", NULL);
    expect(&i, (struct cluster_facts){0},
           "{\"machine_type\":\"a\",\"node_count\":2,\"allocatable_cores\":1.5,"
           "\"allocatable_ram_gb\":1.5,\"worker_pod_count\":1,\"capacity_scope\":\"all_nodes\"}");
    inventory_done(&i);
}

static void test_no_live_pod_is_null(void **state)
{
    (void)state;
    struct inventory i = {0};
    add_node(&i, "n1", "a", "1", "1Gi");
    add_pod(&i, "Succeeded", "n1");
    expect(&i, (struct cluster_facts){0},
           "{\"machine_type\":\"a\",\"node_count\":1,\"allocatable_cores\":1.0,"
           "\"allocatable_ram_gb\":1.0,\"worker_pod_count\":null,\"capacity_scope\":\"all_nodes\"}"
           "\npods: no pod of the selector is Running or Pending");
    inventory_done(&i);
}

static void test_an_unreadable_part_is_null_alone(void **state)
{
    (void)state;
    struct inventory i = {0};
    add_node(&i, "n1", NULL, "1e", "1Gi");
    add_node(&i, "n2", NULL, "2", NULL);
    add_pod(&i, "Running", "n1");
    expect(&i, (struct cluster_facts){0},
           "{\"machine_type\":null,\"node_count\":1,\"allocatable_cores\":null,"
           "\"allocatable_ram_gb\":1.0,\"worker_pod_count\":1,\"capacity_scope\":\"worker_nodes\"}"
           "\nallocatable_cores: node n1: cpu '1e' is not a quantity"
           "\nmachine_type: no node has the label");

    struct cluster_facts f = {0};
    (void)snprintf(f.why[FACTS_PODS], FACTS_WHY_BYTES, "HTTP 403");
    expect(&i, f,
           "{\"machine_type\":null,\"node_count\":2,\"allocatable_cores\":null,"
           "\"allocatable_ram_gb\":null,\"worker_pod_count\":null,\"capacity_scope\":\"all_nodes\"}"
           "\npods: HTTP 403\nallocatable_cores: node n1: cpu '1e' is not a quantity"
           "\nallocatable_ram_gb: node n2: no allocatable memory"
           "\nmachine_type: no node has the label");

    inventory_clear_nodes(&i);
    f = (struct cluster_facts){0};
    (void)snprintf(f.why[FACTS_NODES], FACTS_WHY_BYTES, "timed out after 5 s");
    expect(&i, f,
           "{\"machine_type\":null,\"node_count\":null,\"allocatable_cores\":null,"
           "\"allocatable_ram_gb\":null,\"worker_pod_count\":1,\"capacity_scope\":null}"
           "\nnodes: timed out after 5 s");
    inventory_done(&i);
}

static void test_hosts_that_are_no_longer_nodes(void **state)
{
    (void)state;
    struct inventory i = {0};
    add_node(&i, "n1", "a", "1", "1Gi");
    add_pod(&i, "Running", "gone");
    expect(&i, (struct cluster_facts){0},
           "{\"machine_type\":null,\"node_count\":null,\"allocatable_cores\":null,"
           "\"allocatable_ram_gb\":null,\"worker_pod_count\":1,\"capacity_scope\":null}"
           "\nnodes: none of the nodes that host worker pods is in the list of nodes");
    add_pod(&i, "Running", "n1");
    expect(&i, (struct cluster_facts){0},
           "{\"machine_type\":\"a\",\"node_count\":1,\"allocatable_cores\":1.0,"
           "\"allocatable_ram_gb\":1.0,\"worker_pod_count\":2,"
           "\"capacity_scope\":\"worker_nodes\"}");
    inventory_done(&i);
}

static void test_an_empty_cluster(void **state)
{
    (void)state;
    struct inventory i = {0};
    expect(&i, (struct cluster_facts){0},
           "{\"machine_type\":null,\"node_count\":null,\"allocatable_cores\":null,"
           "\"allocatable_ram_gb\":null,\"worker_pod_count\":null,\"capacity_scope\":null}"
           "\nnodes: the list of nodes is empty"
           "\npods: no pod of the selector is Running or Pending");
    inventory_done(&i);
}

static void test_the_line_for_people(void **state)
{
    (void)state;
    struct cluster_facts f = {.node_count = measure_of(2),
                              .allocatable_cores = measure_of(7.84),
                              .allocatable_ram_gb = measure_of(25.0),
                              .capacity_scope = FACTS_SCOPE_WORKER_NODES};
    struct buf line;
    buf_init(&line, 1000);
    assert_int_equal(cluster_facts_describe(&f, &line), 0);
    assert_string_equal(buf_c(&line), "2 worker nodes (unknown type), 7.84 cores, 25 GiB, "
                                      "unknown worker pods");
    buf_done(&line);
}

static int build(struct inventory *i, struct cluster_facts *f)
{
    struct list_item nodes[] = {node("n1", "b", "1", "1Gi"), node("n2", "a", "1", "1Gi")};
    struct list_item pods[] = {pod("Running", "n1"), pod("Running", "n2")};
    int rc = 0;
    for (int k = 0; rc == 0 && k < 2; k++)
        rc = inventory_add_node(i, &nodes[k], NULL);
    for (int k = 0; rc == 0 && k < 2; k++)
        rc = inventory_add_pod(i, &pods[k], NULL);
    return rc == 0 ? inventory_facts(i, f) : rc;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    bool failed = true;
    for (unsigned long n = 1; failed; n++) {
        struct inventory i = {0};
        struct cluster_facts f = {0};
        alloc_fail_at(n);
        int rc = build(&i, &f);
        failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        if (!failed)
            assert_string_equal(f.machine_type, "a,b");
        cluster_facts_done(&f);
        inventory_done(&i);
    }
}

static void test_without_credentials_nothing_is_asked(void **state)
{
    (void)state;
    struct facts_options o = {.credentials = {.kubeconfig = "/nonexistent/config"}, .abort_fd = -1};
    struct cluster_facts f;
    assert_int_equal(facts_read(&o, &f), 0);
    assert_false(f.node_count.known);
    assert_false(f.worker_pod_count.known);
    assert_string_equal(f.why[FACTS_ACCESS], "no service account, and no kubeconfig file at "
                                             "KUBECONFIG=/nonexistent/config");
    cluster_facts_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_that_host_live_pods_count),
        cmocka_unit_test(test_without_hosts_all_nodes_count),
        cmocka_unit_test(test_no_live_pod_is_null),
        cmocka_unit_test(test_an_unreadable_part_is_null_alone),
        cmocka_unit_test(test_hosts_that_are_no_longer_nodes),
        cmocka_unit_test(test_an_empty_cluster),
        cmocka_unit_test(test_the_line_for_people),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_without_credentials_nothing_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

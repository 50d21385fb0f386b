#include "worker/scenario/plan_native.h"

#include "include/cicada.h"
#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void nothing(struct cicada_user *user)
{
    (void)user;
}

static const char *const read_tags[] = {"read", "cheap", NULL};
static const char *const write_tags[] = {"write", NULL};

static const struct cicada_task shop_tasks[] = {
    {.name = "look", .run = nothing, .weight = 3, .tags = read_tags},
    {.name = "buy", .run = nothing, .tags = write_tags},
    {.name = NULL},
};

static const struct cicada_user_class shop_users[] = {
    {.name = "Visitor",
     .weight = 4,
     .wait_time = {CICADA_WAIT_BETWEEN, 0.5, 2},
     .host = "https://a.example",
     .insecure = true,
     .on_start = nothing,
     .tasks = shop_tasks},
    {.name = "Buyer",
     .fixed_count = 2,
     .wait_time = {CICADA_WAIT_CONSTANT_THROUGHPUT, 4, 0},
     .tasks = shop_tasks},
    {.name = NULL},
};

static const struct cicada_test shop = {
    CICADA_TEST_HEAD,
    .host = "http://shop.example/api",
    .users = shop_users,
};

static void test_a_table_becomes_a_plan(void **state)
{
    (void)state;
    struct plan *p;
    struct err err = {0};
    assert_int_equal(plan_load_native(&shop, "shop.so", NULL, &p, &err), 0);
    assert_string_equal(p->source.ptr, "shop.so");
    assert_string_equal(p->host.ptr, "http://shop.example/api");
    assert_ptr_equal(p->native, &shop);
    assert_int_equal(p->class_count, 2);
    const struct plan_class *visitor = &p->classes[0], *buyer = &p->classes[1];
    assert_string_equal(visitor->name.ptr, "Visitor");
    assert_int_equal(visitor->weight, 4);
    assert_string_equal(visitor->host.ptr, "https://a.example");
    assert_true(visitor->insecure);
    assert_int_equal(visitor->wait.kind, PLAN_WAIT_BETWEEN);
    assert_int_equal(visitor->wait.min_us, 500000);
    assert_int_equal(visitor->wait.max_us, 2000000);
    assert_false(plan_task_is_empty(&visitor->on_start));
    assert_true(plan_task_is_empty(&visitor->on_stop));
    assert_int_equal(visitor->task_count, 2);
    assert_int_equal(visitor->task_weight_sum, 4);
    assert_string_equal(visitor->tasks[1].name.ptr, "buy");
    assert_int_equal(visitor->tasks[0].tag_count, 2);
    assert_int_equal(buyer->weight, 1);
    assert_int_equal(buyer->fixed_count, 2);
    assert_int_equal(buyer->wait.kind, PLAN_WAIT_THROUGHPUT);
    assert_int_equal(buyer->wait.min_us, 250000);
    assert_null(buyer->host.ptr);
    plan_free(p);
}

static void test_tags_choose_tasks(void **state)
{
    (void)state;
    struct plan *p;
    const struct str write[] = {STR("write")}, cheap[] = {STR("cheap")};
    const struct plan_tags only = {.include = write, .include_count = 1};
    const struct plan_tags without = {.exclude = cheap, .exclude_count = 1};
    assert_int_equal(plan_load_native(&shop, "x", &only, &p, NULL), 0);
    assert_int_equal(p->classes[0].task_count, 1);
    assert_string_equal(p->classes[0].tasks[0].name.ptr, "buy");
    plan_free(p);
    assert_int_equal(plan_load_native(&shop, "x", &without, &p, NULL), 0);
    assert_int_equal(p->classes[1].task_count, 1);
    assert_int_equal(p->classes[1].task_weight_sum, 1);
    plan_free(p);
}

#define CLASS(...)                                                                                 \
    (const struct cicada_user_class[])                                                             \
    {                                                                                              \
        {__VA_ARGS__},                                                                             \
        {                                                                                          \
            .name = NULL                                                                           \
        }                                                                                          \
    }
#define TASK(...)                                                                                  \
    (const struct cicada_task[])                                                                   \
    {                                                                                              \
        {__VA_ARGS__},                                                                             \
        {                                                                                          \
            .name = NULL                                                                           \
        }                                                                                          \
    }

static void test_faults_are_told_with_their_place(void **state)
{
    (void)state;
    const struct cicada_task *good = shop_tasks;
    const struct {
        const char *label;
        struct cicada_test test;
        const char *error;
    } cases[] = {
        {"newer",
         {.abi = CICADA_ABI + 1, .size = 8},
         "t: built with a newer cicada.h (interface 2, this cicada has 1): build it with this "
         "version's header, or run it with a newer cicada"},
        {"no head",
         {.users = shop_users},
         "t: its 'struct cicada_test' does not begin with CICADA_TEST_HEAD"},
        {"size",
         {.abi = 1, .size = 8},
         "t: its 'struct cicada_test' does not begin with CICADA_TEST_HEAD"},
        {"no users", {CICADA_TEST_HEAD, .host = NULL}, "t: users: must be 1 to 1000 user classes"},
        {"host",
         {CICADA_TEST_HEAD, .host = "shop", .users = shop_users},
         "t: host: the host has no scheme: write http://… or https://…"},
        {"class host",
         {CICADA_TEST_HEAD, .users = CLASS(.name = "A", .host = "x", .tasks = good)},
         "t: users[0].host: the host has no scheme: write http://… or https://…"},
        {"empty name",
         {CICADA_TEST_HEAD, .users = CLASS(.name = "", .tasks = good)},
         "t: users[0].name: must be UTF-8 of 1 to 4096 bytes without control characters"},
        {"control name",
         {CICADA_TEST_HEAD, .users = CLASS(.name = "a\nb", .tasks = good)},
         "t: users[0].name: must be UTF-8 of 1 to 4096 bytes without control characters"},
        {"bytes of no UTF-8",
         {CICADA_TEST_HEAD, .users = CLASS(.name = "a\xff", .tasks = good)},
         "t: users[0].name: must be UTF-8 of 1 to 4096 bytes without control characters"},
        {"both counts",
         {CICADA_TEST_HEAD,
          .users = CLASS(.name = "A", .weight = 1, .fixed_count = 1, .tasks = good)},
         "t: users[0]: weight and fixed_count exclude each other"},
        {"weight",
         {CICADA_TEST_HEAD, .users = CLASS(.name = "A", .weight = 1000001, .tasks = good)},
         "t: users[0]: a weight must not be larger than 1000000"},
        {"fixed",
         {CICADA_TEST_HEAD, .users = CLASS(.name = "A", .fixed_count = 1000001, .tasks = good)},
         "t: users[0].fixed_count: must not be larger than 1000000"},
        {"kind",
         {CICADA_TEST_HEAD,
          .users =
              CLASS(.name = "A", .wait_time = {(enum cicada_wait_kind)9, 0, 0}, .tasks = good)},
         "t: users[0].wait_time: an unknown kind"},
        {"order",
         {CICADA_TEST_HEAD,
          .users = CLASS(.name = "A", .wait_time = {CICADA_WAIT_BETWEEN, 2, 1}, .tasks = good)},
         "t: users[0].wait_time: must be 0 to 1000000 s, the smaller number first"},
        {"negative",
         {CICADA_TEST_HEAD,
          .users = CLASS(.name = "A", .wait_time = {CICADA_WAIT_CONSTANT, -1, 0}, .tasks = good)},
         "t: users[0].wait_time: must be 0 to 1000000 s, the smaller number first"},
        {"throughput",
         {CICADA_TEST_HEAD,
          .users = CLASS(.name = "A", .wait_time = {CICADA_WAIT_CONSTANT_THROUGHPUT, 0, 0},
                         .tasks = good)},
         "t: users[0].wait_time: a throughput must be more than 0, and at most 1000000"},
        {"no tasks",
         {CICADA_TEST_HEAD, .users = CLASS(.name = "A")},
         "t: users[0].tasks: must be 1 to 10000 tasks"},
        {"no function",
         {CICADA_TEST_HEAD, .users = CLASS(.name = "A", .tasks = TASK(.name = "t"))},
         "t: users[0].tasks[0]: has no function to run"},
        {"task name",
         {CICADA_TEST_HEAD, .users = CLASS(.name = "A", .tasks = TASK(.name = "", .run = nothing))},
         "t: users[0].tasks[0].name: must be UTF-8 of 1 to 4096 bytes without control characters"},
        {"twice",
         {CICADA_TEST_HEAD,
          .users = (const struct cicada_user_class[]){{.name = "A", .tasks = good},
                                                      {.name = "A", .tasks = good},
                                                      {.name = NULL}}},
         "t: users[1].name: another class has the same name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan *p;
        struct err err = {0};
        int rc = plan_load_native(&cases[i].test, "t", NULL, &p, &err);
        if (rc != -EINVAL || strcmp(err.text, cases[i].error) != 0)
            fail_msg("%s: %d '%s'", cases[i].label, rc, err.text);
    }
}

static void test_loading_survives_a_failing_allocation(void **state)
{
    (void)state;
    struct plan *p;
    int rc = -ENOMEM;
    for (unsigned n = 1; rc == -ENOMEM; n++) {
        alloc_fail_at(n);
        rc = plan_load_native(&shop, "shop.so", NULL, &p, NULL);
        alloc_fail_at(0);
    }
    assert_int_equal(rc, 0);
    plan_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_table_becomes_a_plan),
        cmocka_unit_test(test_tags_choose_tasks),
        cmocka_unit_test(test_faults_are_told_with_their_place),
        cmocka_unit_test(test_loading_survives_a_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

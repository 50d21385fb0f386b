/* What Locust prints for the same classes; test_options.py asks the real one. */
#include "worker/cli/ratios.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define TEXT_BYTES 4096

static const struct plan_task tasks[] = {{.name = STR("a"), .weight = 2},
                                         {.name = STR("b"), .weight = 1}};
static const struct plan_class classes[] = {
    {.name = STR("Alpha"), .weight = 3, .tasks = tasks, .task_count = 2, .task_weight_sum = 3},
    {.name = STR("In order"),
     .weight = 1,
     .tasks = tasks,
     .task_count = 2,
     .task_weight_sum = 3,
     .sequential = true},
    {.name = STR("\xC3\xA9"), .weight = 1, .fixed_count = 2},
};

static const struct plan plan = {.classes = classes, .class_count = 3};

typedef void print(struct pen *p, const struct plan *plan, const bool *wanted, uint64_t users);

static void check(print *of, const struct plan *p, const bool *wanted, uint64_t users,
                  const char *text)
{
    struct buf b;
    buf_init(&b, TEXT_BYTES);
    struct pen pen = {&b, 0};
    of(&pen, p, wanted, users);
    assert_int_equal(pen.rc, 0);
    assert_string_equal(buf_c(&b), text);
    buf_done(&b);
}

static void list(struct pen *p, const struct plan *of, const bool *wanted, uint64_t users)
{
    (void)wanted;
    (void)users;
    ratios_list(p, of);
}

static void test_list(void **state)
{
    (void)state;
    check(list, &plan, NULL, 0, "Available Users:\n    Alpha\n    In order\n    \xC3\xA9\n");
}

#define RULE                                                                                       \
    "--------------------------------------------------------------------------------"             \
    "\n"
#define SPACE_40 "                                        "

/* Of 12 users 10 fall by weight: 7.5 and 2.5, both rounded to the even number. */
static void test_text(void **state)
{
    (void)state;
    check(ratios_text, &plan, NULL, 12,
          "\n Task ratio per User class\n" RULE  /* 8, 2 and 2 of 12 */
          " 66.7       Alpha     " SPACE_40 "\n" /* 50 wide */
          "   66.7       a       " SPACE_40 "\n" /* as wide, indented */
          "   33.3       b       " SPACE_40 "\n"
          " 16.7       In order  " SPACE_40 "\n"
          "   50.0       a       " SPACE_40 "\n"
          "   50.0       b       " SPACE_40 "\n"
          " 16.7       \xC3\xA9         " SPACE_40 "\n"
          "\n Total task ratio\n" RULE " 66.7       Alpha     " SPACE_40 "\n"
          "   44.4       a       " SPACE_40 "\n"
          "   22.2       b       " SPACE_40 "\n"
          " 16.7       In order  " SPACE_40 "\n"
          "   8.3        a       " SPACE_40 "\n"
          "   8.3        b       " SPACE_40 "\n"
          " 16.7       \xC3\xA9         " SPACE_40 "\n");
}

static void test_json(void **state)
{
    (void)state;
    static const bool wanted[] = {true, false, false};
    static const struct plan empty = {.classes = classes + 2, .class_count = 1};
    check(ratios_json, &plan, wanted, 0,
          "{\n    \"per_class\": {\n        \"Alpha\": {\n            \"ratio\": 1.0,\n"
          "            \"tasks\": {\n                \"a\": {\n"
          "                    \"ratio\": 0.6666666666666666\n                },\n"
          "                \"b\": {\n                    \"ratio\": 0.3333333333333333\n"
          "                }\n            }\n        }\n    },\n"
          "    \"total\": {\n        \"Alpha\": {\n            \"ratio\": 1.0,\n"
          "            \"tasks\": {\n                \"a\": {\n"
          "                    \"ratio\": 0.6666666666666666\n                },\n"
          "                \"b\": {\n                    \"ratio\": 0.3333333333333333\n"
          "                }\n            }\n        }\n    }\n}\n");
    check(ratios_json, &empty, NULL, 0,
          "{\n    \"per_class\": {\n        \"\\u00e9\": {\n            \"ratio\": 1.0,\n"
          "            \"tasks\": {}\n        }\n    },\n"
          "    \"total\": {\n        \"\\u00e9\": {\n            \"ratio\": 1.0,\n"
          "            \"tasks\": {}\n        }\n    }\n}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

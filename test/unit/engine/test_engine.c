/* The engine as the runner uses it, against a server in this process; each test with both HTTP
 * engines. What is timed has a deadline and is waited for, not measured. */
#include "worker/engine/engine.h"

#include "base/clock.h"
#include "test/unit/engine/small_server.h"

#include <curl/curl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define DEADLINE_US  30000000
#define MAX_CLASSES  3
#define LONG_STOP_S  20
#define SHORT_STOP_S 0.05

struct run {
    struct small_server server;
    struct plan *plan;
    struct engine *engine;
    struct stats *stats; /* all that was taken */
    struct engine_status status;
    uint32_t targets[MAX_CLASSES];
};

/* --- a run ---------------------------------------------------------------------------------- */

static const enum engine_http engines[] = {ENGINE_HTTP_FAST, ENGINE_HTTP_CURL};

/* The scenario is a format whose %s is the server's URL. */
static void run_begin(struct run *r, enum engine_http http, unsigned shards, const char *scenario,
                      const struct plan_tags *tags)
{
    char text[2048];
    struct err err = {0};
    struct engine_options options = {.http = http, .shards = shards, .seed = 1};
    assert_true(server_start(&r->server));
    const char *at = strstr(scenario, "%s");
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at ? at - scenario : 0), scenario,
                   at ? r->server.url : "", at ? at + 2 : scenario); /* shorter than that */
    if (plan_load_json(str_of(text), "test", tags, &r->plan, &err) < 0 ||
        engine_new(r->plan, &options, &r->engine, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(stats_new(options.limits, clock_wall_s(), &r->stats), 0);
    memset(r->targets, 0, sizeof r->targets);
}

static void run_end(struct run *r)
{
    engine_free(r->engine);
    stats_free(r->stats);
    plan_free(r->plan);
    server_stop(&r->server);
}

/* Started requests are done, cut or under way, whenever one looks. */
static void look(struct run *r)
{
    struct engine_status *s = &r->status;
    engine_status(r->engine, s);
    assert_int_equal(s->started, s->succeeded + s->failed + s->interrupted + s->in_flight);
}

/* Samples are asked for because the shards then tell their counts, too, and not at leisure. */
static void turn(struct run *r)
{
    struct pollfd p = {.fd = engine_fd(r->engine), .events = POLLIN};
    assert_int_equal(engine_request_stats(r->engine), 0);
    if (poll(&p, 1, 10) > 0)
        engine_poll(r->engine);
    assert_int_equal(engine_take_stats(r->engine, r->stats), 0);
    look(r);
}

#define WAIT_FOR(r, condition)                                                                     \
    do {                                                                                           \
        uint64_t end_us = clock_mono_us() + DEADLINE_US;                                           \
        look(r);                                                                                   \
        while (!(condition)) {                                                                     \
            if (clock_mono_us() > end_us)                                                          \
                fail_msg("waited in vain for: %s", #condition);                                    \
            turn(r);                                                                               \
        }                                                                                          \
    } while (0)

static void set_users(struct run *r, double stop_timeout_s)
{
    struct err err = {0};
    if (engine_set_users(r->engine, r->targets, stop_timeout_s, &err) < 0)
        fail_msg("%s", err.text);
}

/* Everything up to now. */
static void take_all(struct run *r)
{
    struct pollfd p = {.fd = engine_fd(r->engine), .events = POLLIN};
    assert_int_equal(engine_request_stats(r->engine), 0);
    while (!engine_stats_complete(r->engine)) {
        assert_int_equal(poll(&p, 1, DEADLINE_US / 1000), 1);
        engine_poll(r->engine);
        assert_int_equal(engine_take_stats(r->engine, r->stats), 0);
    }
    look(r);
}

static uint64_t samples(const struct run *r)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < stats_entry_count(r->stats); i++)
        n += stats_entry_at(r->stats, i)->num_requests;
    return n;
}

static uint64_t samples_of(const struct run *r, const char *name)
{
    for (uint32_t i = 0; i < stats_entry_count(r->stats); i++) {
        if (str_eq(stats_entry_at(r->stats, i)->name, str_of(name)))
            return stats_entry_at(r->stats, i)->num_requests;
    }
    return 0;
}

/* --- users ---------------------------------------------------------------------------------- */

static const char waiting[] =
    "{\"host\": \"%s\", \"wait_time\": {\"constant\": 1000}, \"users\": ["
    "{\"name\": \"A\", \"tasks\": [\"/ok\"]}, {\"name\": \"B\", \"tasks\": [\"/missing\"]}]}";

static void test_users_go_up_and_down(enum engine_http http)
{
    struct run r;
    run_begin(&r, http, 2, waiting, NULL);
    static const uint32_t steps[][2] = {{3, 0}, {3, 4}, {10, 10}, {1, 10}, {0, 2}, {5, 5}, {0, 0}};
    uint64_t last[2] = {0, 0}, started = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        for (int c = 0; c < 2; c++) {
            started += steps[i][c] > last[c] ? steps[i][c] - last[c] : 0;
            last[c] = r.targets[c] = steps[i][c];
        }
        set_users(&r, 0);
        WAIT_FOR(&r, r.status.reached && r.status.in_flight == 0);
        assert_int_equal(r.status.running[0], steps[i][0]);
        assert_int_equal(r.status.running[1], steps[i][1]);
        assert_int_equal(r.status.running_total, steps[i][0] + steps[i][1]);
    }
    /* each user that was started did its task once and then waited, but for those cut at once */
    assert_in_range(r.status.started, 1, started);
    take_all(&r);
    assert_int_equal(samples(&r), r.status.succeeded + r.status.failed);
    run_end(&r);
}

static void test_each_user_is_a_connection(enum engine_http http)
{
    struct run r;
    run_begin(&r, http, 2, waiting, NULL);
    r.targets[0] = 20;
    set_users(&r, 0);
    WAIT_FOR(&r, r.status.succeeded == 20);
    assert_int_equal(r.status.connections_opened, 20);
    assert_int_equal(r.status.sockets_peak, 20);
    take_all(&r);
    assert_int_equal(samples_of(&r, "/ok"), 20);
    run_end(&r);
}

static void test_failures_are_told_by_their_text(enum engine_http http)
{
    struct run r;
    run_begin(&r, http, 1, waiting, NULL);
    r.targets[1] = 5;
    set_users(&r, 0);
    WAIT_FOR(&r, r.status.failed == 5);
    take_all(&r);
    assert_int_equal(stats_error_count(r.stats), 1);
    const struct stats_error *e = stats_error_at(r.stats, 0);
    assert_true(str_eq(e->error, STR("HTTP status 404")));
    assert_true(str_eq(e->name, STR("/missing")));
    assert_int_equal(e->occurrences, 5);
    run_end(&r);
}

/* --- the end of users ----------------------------------------------------------------------- */

static const char hanging[] = "{\"host\": \"%s\", \"tasks\": [\"/hang\"]}";
static const char slow[] = "{\"host\": \"%s\", \"tasks\": [\"/slow\"]}";

static void start_hanging(struct run *r, enum engine_http http)
{
    run_begin(r, http, 1, hanging, NULL);
    r->targets[0] = 5;
    set_users(r, 0);
    WAIT_FOR(r, atomic_load(&r->server.hanging) == 5);
}

/* All five were cut: counted so, with their age, and not as samples. */
static void check_cut(struct run *r)
{
    WAIT_FOR(r, r->status.reached);
    assert_int_equal(r->status.running_total, 0);
    assert_int_equal(r->status.interrupted, 5);
    assert_int_equal(r->status.in_flight, 0);
    assert_true(r->status.interrupted_oldest_us > 0);
    take_all(r);
    assert_int_equal(samples(r), 0);
    run_end(r);
}

static void test_stop_cuts_at_once(enum engine_http http)
{
    struct run r;
    start_hanging(&r, http);
    assert_int_equal(engine_stop(r.engine, 0), 0);
    check_cut(&r);
}

static void test_stop_cuts_when_its_time_is_over(enum engine_http http)
{
    struct run r;
    start_hanging(&r, http);
    assert_int_equal(engine_stop(r.engine, SHORT_STOP_S), 0);
    check_cut(&r);
}

static void test_a_second_stop_may_be_shorter(enum engine_http http)
{
    struct run r;
    start_hanging(&r, http);
    assert_int_equal(engine_stop(r.engine, 100000), 0);
    for (int i = 0; i < 5; i++)
        turn(&r);
    assert_false(r.status.reached);
    assert_int_equal(r.status.running_total, 5);
    assert_int_equal(engine_stop(r.engine, 0), 0);
    check_cut(&r);
}

static void test_surplus_users_are_cut_like_that_too(enum engine_http http)
{
    struct run r;
    start_hanging(&r, http);
    r.targets[0] = 2;
    set_users(&r, 0);
    WAIT_FOR(&r, r.status.reached);
    assert_int_equal(r.status.running_total, 2);
    assert_int_equal(r.status.interrupted, 3);
    assert_int_equal(r.status.in_flight, 2);
    assert_int_equal(engine_stop(r.engine, 0), 0);
    check_cut(&r);
}

static void test_stop_with_time_lets_tasks_finish(enum engine_http http)
{
    struct run r;
    run_begin(&r, http, 2, slow, NULL);
    r.targets[0] = 6;
    set_users(&r, 0);
    WAIT_FOR(&r, r.status.started >= 6);
    assert_int_equal(engine_stop(r.engine, LONG_STOP_S), 0);
    WAIT_FOR(&r, r.status.reached);
    assert_int_equal(r.status.running_total, 0);
    assert_int_equal(r.status.interrupted, 0);
    assert_int_equal(r.status.succeeded, r.status.started);
    take_all(&r);
    assert_int_equal(samples(&r), r.status.succeeded);
    assert_int_equal(samples(&r), atomic_load(&r.server.answered));
    run_end(&r);
}

static void test_users_come_back_after_a_stop(enum engine_http http)
{
    struct run r;
    run_begin(&r, http, 2, slow, NULL);
    for (int i = 0; i < 3; i++) {
        r.targets[0] = 4;
        set_users(&r, 0);
        WAIT_FOR(&r, r.status.reached && r.status.running_total == 4);
        assert_int_equal(engine_stop(r.engine, LONG_STOP_S), 0);
        set_users(&r, 0); /* while those before still end */
        WAIT_FOR(&r, r.status.reached && r.status.running_total == 4);
        assert_int_equal(engine_stop(r.engine, 0), 0);
        WAIT_FOR(&r, r.status.reached && r.status.running_total == 0);
    }
    assert_int_equal(r.status.in_flight, 0);
    take_all(&r);
    assert_int_equal(samples(&r), r.status.succeeded + r.status.failed);
    run_end(&r);
}

static void test_free_cuts_what_runs(enum engine_http http)
{
    struct run r;
    start_hanging(&r, http);
    run_end(&r);
}

/* --- samples -------------------------------------------------------------------------------- */

static void test_samples_are_neither_lost_nor_doubled(enum engine_http http)
{
    struct run r;
    run_begin(&r, http, 2,
              "{\"host\": \"%s\", \"tasks\": [\"/ok\", {\"name\": \"m\", \"steps\": "
              "[\"/missing\", \"/ok?2\"]}]}",
              NULL);
    r.targets[0] = 4;
    set_users(&r, 0);
    uint64_t before = 0;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(engine_request_stats(r.engine), 0);
        if (i % 3 == 0) /* asked again before the answer */
            assert_int_equal(engine_request_stats(r.engine), 0);
        if (i % 2 == 0)
            turn(&r);
        assert_int_equal(engine_take_stats(r.engine, r.stats), 0);
        assert_true(samples(&r) >= before);
        before = samples(&r);
    }
    assert_int_equal(engine_stop(r.engine, LONG_STOP_S), 0);
    WAIT_FOR(&r, r.status.reached);
    take_all(&r);
    assert_int_equal(r.status.interrupted, 0);
    assert_int_equal(samples(&r), r.status.started);
    assert_int_equal(samples(&r), r.status.succeeded + r.status.failed);
    assert_int_equal(samples(&r), atomic_load(&r.server.answered));
    assert_int_equal(samples_of(&r, "/missing"), r.status.failed);
    take_all(&r); /* nothing is left */
    assert_int_equal(samples(&r), r.status.started);
    run_end(&r);
}

/* --- hosts ---------------------------------------------------------------------------------- */

static void test_a_new_host_is_for_new_users(enum engine_http http)
{
    struct run r;
    struct small_server other;
    struct err err = {0};
    assert_true(server_start(&other));
    run_begin(&r, http, 1, "{\"host\": \"%s\", \"tasks\": [\"/hang\"]}", NULL);
    r.targets[0] = 1;
    set_users(&r, 0);
    WAIT_FOR(&r, atomic_load(&r.server.hanging) == 1);
    assert_int_equal(engine_set_host(r.engine, str_of(other.url), &err), 0);
    r.targets[0] = 3;
    set_users(&r, 0);
    WAIT_FOR(&r, atomic_load(&other.hanging) == 2);
    /* no host at all: nothing changes */
    assert_int_equal(engine_set_host(r.engine, STR("nonsense"), &err), -EINVAL);
    assert_true(err.text[0] != '\0');
    r.targets[0] = 4;
    set_users(&r, 0);
    WAIT_FOR(&r, atomic_load(&other.hanging) == 3);
    /* back to the scenario's */
    assert_int_equal(engine_set_host(r.engine, (struct str){NULL, 0}, NULL), 0);
    r.targets[0] = 5;
    set_users(&r, 0);
    WAIT_FOR(&r, atomic_load(&r.server.hanging) == 2);
    run_end(&r);
    server_stop(&other);
}

static void test_a_class_without_a_host_is_refused(enum engine_http http)
{
    struct run r;
    struct err err = {0};
    run_begin(&r, http, 1,
              "{\"wait_time\": {\"constant\": 1000}, \"users\": ["
              "{\"name\": \"With\", \"host\": \"%s\", \"tasks\": [\"/ok\"]},"
              "{\"name\": \"Without\", \"tasks\": [\"/ok\"]}]}",
              NULL);
    r.targets[0] = 2;
    set_users(&r, 0);
    WAIT_FOR(&r, r.status.reached && r.status.running[0] == 2);
    r.targets[0] = 5;
    r.targets[1] = 1;
    assert_int_equal(engine_set_users(r.engine, r.targets, 0, &err), -EINVAL);
    assert_non_null(strstr(err.text, "'Without'"));
    turn(&r);
    assert_true(r.status.reached);
    assert_int_equal(r.status.running_total, 2);
    /* with a host it may run */
    assert_int_equal(engine_set_host(r.engine, str_of(r.server.url), NULL), 0);
    set_users(&r, 0);
    WAIT_FOR(&r, r.status.reached && r.status.running[1] == 1);
    run_end(&r);
}

static void test_users_without_a_task_do_nothing(enum engine_http http)
{
    struct run r;
    struct str exclude = STR("off");
    struct plan_tags tags = {.exclude = &exclude, .exclude_count = 1};
    run_begin(&r, http, 1,
              "{\"host\": \"%s\", \"wait_time\": {\"constant\": 1000}, \"users\": ["
              "{\"name\": \"Idle\", \"tasks\": [{\"name\": \"t\", \"tags\": [\"off\"], "
              "\"steps\": [\"/ok\"]}]},"
              "{\"name\": \"Busy\", \"tasks\": [\"/ok\"]}]}",
              &tags);
    r.targets[0] = 3;
    r.targets[1] = 1;
    set_users(&r, 0);
    WAIT_FOR(&r, r.status.reached && r.status.succeeded == 1);
    assert_int_equal(r.status.running[0], 3);
    assert_int_equal(r.status.started, 1);
    assert_int_equal(engine_stop(r.engine, LONG_STOP_S), 0);
    WAIT_FOR(&r, r.status.reached); /* at once: they wait */
    assert_int_equal(r.status.running_total, 0);
    run_end(&r);
}

/* --- faults of the surroundings ------------------------------------------------------------- */

static void test_a_server_that_is_gone(enum engine_http http)
{
    struct run r;
    struct err err = {0};
    struct small_server gone;
    assert_true(server_start(&gone));
    server_stop(&gone);
    run_begin(&r, http, 1, waiting, NULL);
    assert_int_equal(engine_set_host(r.engine, str_of(gone.url), &err), 0);
    r.targets[0] = 3;
    set_users(&r, 0);
    WAIT_FOR(&r, r.status.failed == 3);
    assert_int_equal(r.status.connections_failed, 3);
    take_all(&r);
    assert_true(str_eq(stats_error_at(r.stats, 0)->error, STR("connection refused")));
    run_end(&r);
}

static void test_a_server_that_goes_away_under_users(enum engine_http http)
{
    struct run r;
    start_hanging(&r, http);
    server_cut(&r.server);
    WAIT_FOR(&r, r.status.failed >= 5);
    assert_int_equal(engine_stop(r.engine, 0), 0);
    WAIT_FOR(&r, r.status.reached);
    take_all(&r);
    assert_true(str_eq(stats_error_at(r.stats, 0)->error,
                       STR("connection closed before the response was complete")));
    assert_int_equal(samples(&r), r.status.failed);
    run_end(&r);
}

/* --- all of them, with both HTTP engines ---------------------------------------------------- */

#define BOTH(test)                                                                                 \
    static void both_##test(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        for (size_t i = 0; i < sizeof engines / sizeof *engines; i++)                              \
            test(engines[i]);                                                                      \
    }
#define TESTS(X)                                                                                   \
    X(test_users_go_up_and_down)                                                                   \
    X(test_each_user_is_a_connection)                                                              \
    X(test_failures_are_told_by_their_text)                                                        \
    X(test_stop_cuts_at_once)                                                                      \
    X(test_stop_cuts_when_its_time_is_over)                                                        \
    X(test_a_second_stop_may_be_shorter)                                                           \
    X(test_surplus_users_are_cut_like_that_too)                                                    \
    X(test_stop_with_time_lets_tasks_finish)                                                       \
    X(test_users_come_back_after_a_stop)                                                           \
    X(test_free_cuts_what_runs)                                                                    \
    X(test_samples_are_neither_lost_nor_doubled)                                                   \
    X(test_a_new_host_is_for_new_users)                                                            \
    X(test_a_class_without_a_host_is_refused)                                                      \
    X(test_users_without_a_task_do_nothing)                                                        \
    X(test_a_server_that_is_gone)                                                                  \
    X(test_a_server_that_goes_away_under_users)

TESTS(BOTH)

int main(void)
{
#define ROW(test) cmocka_unit_test(both_##test),
    const struct CMUnitTest tests[] = {TESTS(ROW)};
    (void)curl_global_init(CURL_GLOBAL_ALL); /* the tests fail without */
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    curl_global_cleanup();
    return failed;
}

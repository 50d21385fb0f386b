/* Event by event: each rule of the protocol, worked by hand. What the machine does is written down
 * as one line of words (log lines below a warning are left out) and compared. The engine is played
 * by the rig: prompt, unless a test holds it back. */
#include "worker/runner/machine.h"

#include "base/buf.h"
#include "base/random.h"
#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define S    1000000u
#define MS   1000u
#define STEP (50 * MS)

struct rig {
    struct machine m;
    struct buf trace;
    uint64_t now;
    bool slow_users;    /* the engine neither starts nor ends users by itself */
    bool slow_stats;    /* shards do not answer */
    bool answering;     /* the master answers heartbeats */
    bool quiet_beats;   /* leave heartbeats and periodic stats out of the trace */
    const char *refuse; /* a host that the engine will not have */
    uint32_t targets[2];
    struct machine_engine engine;
    struct machine_actions actions;
    char warning[MACHINE_TEXT_BYTES]; /* the last one */
};

static const struct str two_classes[] = {{"A", 1}, {"B", 1}};

static void feed(struct rig *r, const struct machine_event *e);

static void feed_kind(struct rig *r, enum machine_event_kind kind)
{
    feed(r, &(struct machine_event){.kind = kind, .text = STR("reason")});
}

static void feed_engine(struct rig *r)
{
    feed(r, &(struct machine_event){.kind = EVENT_ENGINE, .engine = r->engine});
}

static void receive(struct rig *r, enum message_type type)
{
    struct message m = {.type = type};
    feed(r, &(struct machine_event){.kind = EVENT_MESSAGE, .message = &m});
}

static void say(struct rig *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct rig *r, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_int_equal(buf_printf(&r->trace, "%s%s", r->trace.len ? " " : "", text), 0);
}

/* What the shell would do to the engine. Returns true when the engine has news. */
static bool perform(struct rig *r, const struct machine_action *a)
{
    switch (a->kind) {
    case ACTION_SET_USERS:
        if (r->refuse && str_eq(a->host, str_of(r->refuse))) {
            feed(r, &(struct machine_event){.kind = EVENT_SPAWN_REFUSED, .text = STR("bad host")});
            return false;
        }
        memcpy(r->targets, a->targets, r->m.options.class_count * sizeof *r->targets);
        r->engine.reached = false;
        if (!r->slow_users) {
            r->engine.running_total = (uint64_t)r->targets[0] + r->targets[1];
            r->engine.reached = true;
        }
        return true;
    case ACTION_STOP_USERS:
        memset(r->targets, 0, sizeof r->targets);
        if (!r->slow_users)
            r->engine.running_total = 0;
        return true;
    case ACTION_REQUEST_STATS:
        r->engine.stats_complete = !r->slow_stats;
        return true;
    default:
        return false;
    }
}

static void describe(struct rig *r, const struct machine_action *a)
{
    switch (a->kind) {
    case ACTION_SEND_CLIENT_READY:
        say(r, "client_ready");
        break;
    case ACTION_SEND_SPAWNING:
        say(r, "spawning");
        break;
    case ACTION_SEND_SPAWNING_COMPLETE:
        say(r, "complete");
        break;
    case ACTION_SEND_HEARTBEAT:
        if (!r->quiet_beats)
            say(r, "beat:%s", a->text);
        break;
    case ACTION_SEND_STATS:
        if (!r->quiet_beats || a->if_any || a->no_users || r->m.state != RUNNER_RUNNING)
            say(r, "stats%s%s", a->if_any ? ":any" : "", a->no_users ? ":none" : "");
        break;
    case ACTION_SEND_LOGS:
        say(r, "logs");
        break;
    case ACTION_SEND_EXCEPTION:
        say(r, "exception");
        break;
    case ACTION_SEND_CLIENT_STOPPED:
        say(r, "client_stopped");
        break;
    case ACTION_SEND_QUIT:
        say(r, "quit");
        break;
    case ACTION_BEGIN_RUN:
        say(r, "begin");
        break;
    case ACTION_SET_USERS:
        if (r->m.options.class_count == 1)
            say(r, "users:%u", a->targets[0]);
        else
            say(r, "users:%u,%u", a->targets[0], a->targets[1]);
        if (a->host.ptr)
            say(r, "host:%.*s", STR_ARG(a->host));
        break;
    case ACTION_RESET_STATS:
        say(r, "reset");
        break;
    case ACTION_STOP_USERS:
        say(r, "end:%g", a->stop_timeout_s);
        break;
    case ACTION_REQUEST_STATS:
        break;
    case ACTION_REOPEN:
        say(r, "reopen:%s", a->keep_identity ? "same" : "fresh");
        break;
    case ACTION_NO_MASTER:
        say(r, "no_master:%s",
            a->level == LOG_INFO      ? "info"
            : a->level == LOG_WARNING ? "warning"
                                      : "error");
        break;
    case ACTION_LOG:
        if (a->level < LOG_WARNING)
            break;
        (void)snprintf(r->warning, sizeof r->warning, "%s", a->text);
        say(r, "log:%s", a->level == LOG_WARNING ? "warning" : "error");
        break;
    case ACTION_EXIT:
        say(r, "exit:%d", a->exit_code);
        break;
    }
}

static void feed(struct rig *r, const struct machine_event *e)
{
    struct machine_actions *actions = malloc(sizeof *actions);
    assert_non_null(actions);
    machine_handle(&r->m, e, r->now, actions);
    bool news = false, beat = false;
    for (unsigned i = 0; i < actions->count; i++) {
        describe(r, &actions->at[i]);
        beat |= actions->at[i].kind == ACTION_SEND_HEARTBEAT;
    }
    for (unsigned i = 0; i < actions->count; i++)
        news |= perform(r, &actions->at[i]);
    free(actions);
    if (news)
        feed_engine(r);
    if (beat && r->answering)
        receive(r, MESSAGE_HEARTBEAT);
}

static void pass(struct rig *r, uint64_t us)
{
    for (uint64_t end = r->now + us; r->now < end;) {
        r->now += STEP;
        feed_kind(r, EVENT_TICK);
    }
}

/* The trace since the last call. */
static void expect_at(struct rig *r, const char *want, const char *file, int line)
{
    const char *got = buf_c(&r->trace);
    if (strcmp(got, want) != 0) {
        print_error("got  '%s'\nwant '%s'\n", got, want);
        _fail(file, line);
    }
    buf_clear(&r->trace);
}
#define expect(r, want) expect_at(r, want, __FILE__, __LINE__)
#define forget(r)       buf_clear(&(r)->trace)

static void receive_ack(struct rig *r)
{
    struct message m = {.type = MESSAGE_ACK, .ack = {true, 7}};
    feed(r, &(struct machine_event){.kind = EVENT_MESSAGE, .message = &m});
}

/* A spawn for classes A and B. options: the parsed_options, NULL for none. */
static void receive_spawn_of(struct rig *r, double timestamp, const struct class_count *classes,
                             size_t count, const char *host, double stop_timeout_s,
                             const char *options)
{
    struct message m = {.type = MESSAGE_SPAWN};
    m.spawn.timestamp = timestamp;
    m.spawn.classes = malloc(count * sizeof *classes);
    assert_non_null(m.spawn.classes);
    memcpy(m.spawn.classes, classes, count * sizeof *classes);
    m.spawn.class_count = count;
    m.spawn.host = str_of(host);
    m.spawn.stop_timeout_s = stop_timeout_s;
    m.spawn.parsed_options = options ? json_loads(options, 0, NULL) : json_object();
    assert_non_null(m.spawn.parsed_options);
    feed(r, &(struct machine_event){.kind = EVENT_MESSAGE, .message = &m});
    json_decref(m.spawn.parsed_options);
    free(m.spawn.classes);
}

static void receive_spawn(struct rig *r, double timestamp, uint32_t a, uint32_t b)
{
    const struct class_count classes[] = {{STR("A"), a}, {STR("B"), b}};
    receive_spawn_of(r, timestamp, classes, 2, NULL, 0, NULL);
}

static void receive_spawn_with(struct rig *r, double stop_timeout_s, const char *options)
{
    const struct class_count classes[] = {{STR("A"), 2}, {STR("B"), 1}};
    receive_spawn_of(r, 1, classes, 2, NULL, stop_timeout_s, options);
}

static struct rig *new_rig_of(size_t class_count, const struct machine_options *base)
{
    struct rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    buf_init(&r->trace, 1 << 20);
    r->now = 1000 * (uint64_t)S;
    struct machine_options o = base ? *base : (struct machine_options){0};
    o.class_names = two_classes;
    o.class_count = class_count;
    if (!base)
        o.master_timeout_us = 60 * (uint64_t)S;
    assert_int_equal(machine_init(&r->m, &o, r->now), 0);
    return r;
}

static struct rig *new_rig(void)
{
    return new_rig_of(2, NULL);
}

static void free_rig(struct rig *r)
{
    machine_done(&r->m);
    buf_done(&r->trace);
    free(r);
}

/* A rig whose worker is registered with a master that answers heartbeats. */
static struct rig *ready_rig(void)
{
    struct rig *r = new_rig();
    r->answering = true;
    feed_kind(r, EVENT_LINK_UP);
    receive_ack(r);
    assert_int_equal(r->m.registration, REGISTRATION_ACKED);
    forget(r);
    return r;
}

/* And runs two users of A and one of B. */
static struct rig *running_rig_with(double stop_timeout_s, const char *options)
{
    struct rig *r = ready_rig();
    receive_spawn_with(r, stop_timeout_s, options);
    assert_int_equal(r->m.state, RUNNER_RUNNING);
    forget(r);
    r->quiet_beats = true;
    return r;
}

static struct rig *running_rig(void)
{
    return running_rig_with(0, NULL);
}

/* --- registration ---------------------------------------------------------------------------- */

static void test_client_ready_goes_out_when_the_link_stands(void **state)
{
    (void)state;
    struct rig *r = new_rig();
    pass(r, STEP);
    expect(r, "");
    feed_kind(r, EVENT_LINK_UP);
    expect(r, "client_ready");
    receive_ack(r);
    expect(r, "beat:ready");
    assert_true(r->m.has_index && r->m.index == 7);
    free_rig(r);
}

static void test_without_a_connection_each_try_resolves_again(void **state)
{
    (void)state;
    struct rig *r = new_rig();
    pass(r, 16 * S);
    expect(r, "no_master:info reopen:fresh reopen:fresh reopen:fresh");
    free_rig(r);
}

static void test_no_master_is_told_seldom(void **state)
{
    (void)state;
    struct rig *r = new_rig_of(2, &(struct machine_options){0});
    pass(r, 92 * S);
    unsigned told = 0;
    for (const char *p = buf_c(&r->trace); (p = strstr(p, "no_master")); p++)
        told++;
    assert_int_equal(told, 4); /* at 1, 31, 61 and 91 s */
    free_rig(r);
}

static void test_without_a_master_in_time_exit_1(void **state)
{
    (void)state;
    struct rig *r =
        new_rig_of(2, &(struct machine_options){.master_timeout_us = 300 * (uint64_t)S});
    pass(r, 299 * S);
    assert_int_equal(r->m.state, RUNNER_READY);
    forget(r);
    pass(r, 2 * S);
    expect(r, "no_master:error exit:1");
    pass(r, 10 * S);
    expect(r, "");
    free_rig(r);
}

static void test_no_ack_takes_a_fresh_identity_after_a_word_for_the_old_one(void **state)
{
    (void)state;
    struct rig *r = new_rig();
    r->quiet_beats = true;
    feed_kind(r, EVENT_LINK_UP);
    expect(r, "client_ready");
    pass(r, 4 * S);
    expect(r, "no_master:info");
    pass(r, 1 * S);
    expect(r, "client_stopped");
    receive_ack(r); /* too late: it was for the one that left */
    pass(r, 200 * MS);
    expect(r, "reopen:fresh");
    feed_kind(r, EVENT_LINK_UP);
    expect(r, "client_ready");
    free_rig(r);
}

static void test_client_ready_is_never_repeated_for_one_identity(void **state)
{
    (void)state;
    struct rig *r = new_rig();
    r->quiet_beats = true;
    feed_kind(r, EVENT_LINK_UP);
    feed_kind(r, EVENT_LINK_DOWN); /* perhaps it was heard */
    feed_kind(r, EVENT_LINK_UP);
    expect(r, "client_ready");
    pass(r, 1 * S);
    expect(r, "no_master:info reopen:fresh");
    feed_kind(r, EVENT_LINK_UP);
    expect(r, "client_ready");
    free_rig(r);
}

static void test_heartbeats_keep_an_unacked_worker_alive(void **state)
{
    (void)state;
    struct rig *r = new_rig();
    feed_kind(r, EVENT_LINK_UP);
    pass(r, 2 * S);
    expect(r, "client_ready no_master:info beat:ready beat:ready");
    free_rig(r);
}

static void test_master_without_acks_is_taken_at_its_spawn(void **state)
{
    (void)state;
    struct rig *r = new_rig();
    r->quiet_beats = true;
    feed_kind(r, EVENT_LINK_UP);
    pass(r, 6 * S);
    feed_kind(r, EVENT_LINK_UP);
    forget(r);
    pass(r, 40 * S); /* the second silent try: no third identity */
    expect(r, "log:warning no_master:warning");
    receive_spawn(r, 5, 1, 0);
    expect(r, "spawning begin users:1,0 complete");
    receive(r, MESSAGE_STOP);
    expect(r, "end:0 stats client_stopped client_ready");
    assert_int_equal(r->m.registration, REGISTRATION_ACKED); /* no ack to wait for */
    receive_spawn(r, 6, 2, 0);
    expect(r, "spawning begin users:2,0 complete");
    free_rig(r);
}

static void test_a_master_that_never_says_a_word_is_given_up(void **state)
{
    (void)state;
    struct rig *r = new_rig();
    r->quiet_beats = true;
    feed_kind(r, EVENT_LINK_UP);
    pass(r, 6 * S);
    feed_kind(r, EVENT_LINK_UP);
    pass(r, 300 * S);
    assert_int_equal(r->m.state, RUNNER_STOPPED);
    assert_non_null(strstr(buf_c(&r->trace), "exit:1"));
    free_rig(r);
}

static void test_repeated_acks_are_tolerated(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    receive_ack(r);
    receive_ack(r);
    expect(r, "");
    receive_spawn(r, 1, 9, 9); /* and do not reset the spawn clock */
    expect(r, "spawning");
    free_rig(r);
}

static void test_an_ack_resets_the_spawn_clock(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    receive_spawn(r, 1e9, 1, 0);
    receive(r, MESSAGE_STOP);
    receive_ack(r);
    r->quiet_beats = true;
    forget(r);
    receive_spawn(r, 5, 2, 0); /* of a master whose clock is behind */
    expect(r, "spawning begin users:2,0 complete");
    free_rig(r);
}

static void test_ack_without_an_index(void **state)
{
    (void)state;
    struct rig *r = new_rig();
    feed_kind(r, EVENT_LINK_UP);
    receive(r, MESSAGE_ACK);
    assert_false(r->m.has_index);
    assert_int_equal(r->m.registration, REGISTRATION_ACKED);
    free_rig(r);
}

/* --- spawn ----------------------------------------------------------------------------------- */

static void test_spawn_is_answered_first_and_completed_when_reached(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    r->slow_users = true;
    receive_spawn(r, 1, 2, 1);
    expect(r, "spawning begin users:2,1");
    pass(r, 1 * S);
    expect(r, "beat:spawning");
    r->engine = (struct machine_engine){.running_total = 3, .reached = true};
    feed_engine(r);
    expect(r, "complete");
    pass(r, 1 * S);
    expect(r, "beat:running");
    free_rig(r);
}

static void test_reached_of_the_last_target_is_not_taken_for_this_one(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    r->quiet_beats = true;
    receive_spawn(r, 1, 2, 1);
    forget(r);
    r->slow_users = true;
    receive_spawn(r, 2, 4, 1);
    pass(r, 5 * S);
    expect(r, "spawning users:4,1 stats");
    free_rig(r);
}

static void test_older_or_equal_timestamp_is_answered_and_discarded(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    receive_spawn(r, 1, 9, 9);
    receive_spawn(r, 0.5, 9, 9);
    expect(r, "spawning spawning");
    assert_int_equal(r->targets[0], 2);
    receive_spawn(r, 1.5, 3, 3);
    expect(r, "spawning users:3,3 complete");
    free_rig(r);
}

static void test_ramp_the_newest_spawn_wins(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    r->slow_users = true;
    r->quiet_beats = true;
    for (uint32_t i = 1; i <= 100; i++)
        receive_spawn(r, i, i, 0);
    forget(r);
    assert_int_equal(r->targets[0], 100);
    r->engine = (struct machine_engine){.running_total = 100, .reached = true};
    feed_engine(r);
    feed_engine(r);
    expect(r, "complete"); /* once for all of them */
    free_rig(r);
}

static void test_each_later_spawn_is_completed_again(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    receive_spawn(r, 2, 2, 1); /* the same counts */
    receive_spawn(r, 3, 1, 0); /* fewer */
    expect(r, "spawning users:2,1 complete spawning users:1,0 complete");
    free_rig(r);
}

static void test_classes_that_are_not_named_get_no_users(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    const struct class_count only_b[] = {{STR("B"), 5}};
    receive_spawn_of(r, 2, only_b, 1, NULL, 0, NULL);
    expect(r, "spawning users:0,5 complete");
    free_rig(r);
}

static void test_unknown_class_is_told_once_a_run_and_not_run(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    r->quiet_beats = true;
    const struct class_count some[] = {{STR("A"), 4}, {STR("Nope"), 2}};
    receive_spawn_of(r, 1, some, 2, NULL, 0, NULL);
    expect(r, "spawning log:error exception begin users:4,0 complete");
    receive_spawn_of(r, 2, some, 2, NULL, 0, NULL);
    expect(r, "spawning users:4,0 complete");
    receive(r, MESSAGE_STOP);
    receive_ack(r);
    forget(r);
    receive_spawn_of(r, 3, some, 2, NULL, 0, NULL);
    expect(r, "spawning log:error exception begin users:4,0 complete");
    free_rig(r);
}

static void test_unknown_class_with_no_users_is_no_fault(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    const struct class_count some[] = {{STR("A"), 4}, {STR("Nope"), 0}};
    receive_spawn_of(r, 2, some, 2, NULL, 0, NULL);
    expect(r, "spawning users:4,0 complete");
    free_rig(r);
}

static void test_many_unknown_classes_make_one_bounded_line(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    char names[500][300];
    struct class_count classes[500];
    for (size_t i = 0; i < 500; i++) {
        memset(names[i], '\1', sizeof names[i]);
        snprintf(names[i], sizeof names[i], "%zu", i);
        classes[i] = (struct class_count){{names[i], sizeof names[i]}, 1};
    }
    receive_spawn_of(r, 1, classes, 500, NULL, 0, NULL);
    expect(r, "spawning log:error exception begin users:0,0 complete");
    free_rig(r);
}

static void test_faults_told_in_one_run_are_bounded(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    for (unsigned i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "N%u", i);
        const struct class_count some[] = {{STR("A"), 1}, {str_of(name), 1}};
        receive_spawn_of(r, 2 + i, some, 2, NULL, 0, NULL);
    }
    unsigned told = 0;
    for (const char *p = buf_c(&r->trace); (p = strstr(p, "exception")); p++)
        told++;
    assert_int_equal(told, MACHINE_REPORTED);
    free_rig(r);
}

static void test_one_class_on_each_side_is_mapped_with_one_warning(void **state)
{
    (void)state;
    struct rig *r = new_rig_of(1, NULL);
    feed_kind(r, EVENT_LINK_UP);
    receive_ack(r);
    forget(r);
    assert_true(str_eq(machine_class_name(&r->m, 0), STR("A")));
    const struct class_count theirs[] = {{STR("WebsiteUser"), 3}};
    receive_spawn_of(r, 1, theirs, 1, NULL, 0, NULL);
    expect(r, "spawning log:warning begin users:3 complete");
    receive_spawn_of(r, 2, theirs, 1, NULL, 0, NULL);
    expect(r, "spawning users:3 complete");
    assert_true(str_eq(machine_class_name(&r->m, 0), STR("WebsiteUser")));
    const struct class_count ours[] = {{STR("A"), 2}};
    receive_spawn_of(r, 3, ours, 1, NULL, 0, NULL);
    expect(r, "spawning users:2 complete");
    assert_true(str_eq(machine_class_name(&r->m, 0), STR("A")));
    free_rig(r);
}

static void test_one_class_of_ours_and_two_of_theirs_are_not_mapped(void **state)
{
    (void)state;
    struct rig *r = new_rig_of(1, NULL);
    feed_kind(r, EVENT_LINK_UP);
    receive_ack(r);
    forget(r);
    const struct class_count theirs[] = {{STR("X"), 3}, {STR("Y"), 3}};
    receive_spawn_of(r, 1, theirs, 2, NULL, 0, NULL);
    expect(r, "spawning log:error exception begin users:0 complete");
    free_rig(r);
}

static void test_the_masters_host_wins_over_ours(void **state)
{
    (void)state;
    struct rig *r = new_rig_of(2, &(struct machine_options){.host = STR("http://own")});
    feed_kind(r, EVENT_LINK_UP);
    receive_ack(r);
    forget(r);
    const struct class_count a[] = {{STR("A"), 1}};
    receive_spawn_of(r, 1, a, 1, "http://master/", 0, NULL);
    expect(r, "spawning begin users:1,0 host:http://master/ complete");
    receive_spawn_of(r, 2, a, 1, NULL, 0, NULL);
    expect(r, "spawning users:1,0 host:http://own complete");
    receive_spawn_of(r, 3, a, 1, "", 0, NULL);
    expect(r, "spawning users:1,0 host:http://own complete");
    free_rig(r);
}

static void test_a_refused_host_runs_nobody_and_says_so_once(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    r->quiet_beats = true;
    r->refuse = "example.org";
    const struct class_count a[] = {{STR("A"), 3}};
    receive_spawn_of(r, 1, a, 1, "example.org", 0, NULL);
    expect(r, "spawning begin users:3,0 host:example.org log:error exception users:0,0 complete");
    receive_spawn_of(r, 2, a, 1, "example.org", 0, NULL);
    expect(r, "spawning users:3,0 host:example.org users:0,0 complete");
    free_rig(r);
}

static void test_a_host_over_the_limit_runs_nobody(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    char host[MACHINE_HOST_BYTES + 1];
    memset(host, 'h', sizeof host - 1);
    host[sizeof host - 1] = '\0';
    const struct class_count a[] = {{STR("A"), 3}};
    receive_spawn_of(r, 1, a, 1, host, 0, NULL);
    expect(r, "spawning log:error exception begin users:0,0 complete");
    free_rig(r);
}

static void test_parsed_options_are_kept(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(0, "{\"run_time\": 40}");
    assert_int_equal(json_integer_value(json_object_get(r->m.wanted.parsed_options, "run_time")),
                     40);
    free_rig(r);
}

static void test_reset_stats_when_the_master_says_that_all_are_spawned(void **state)
{
    (void)state;
    struct rig *r = new_rig_of(2, &(struct machine_options){.reset_stats = true});
    feed_kind(r, EVENT_LINK_UP);
    receive_ack(r);
    receive_spawn(r, 1, 1, 1);
    forget(r);
    receive(r, MESSAGE_SPAWNING_COMPLETE);
    expect(r, "reset");
    free_rig(r);
}

static void test_the_masters_total_is_kept_for_the_run(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    struct message m = {.type = MESSAGE_SPAWNING_COMPLETE, .spawning_complete = {true, 300}};
    feed(r, &(struct machine_event){.kind = EVENT_MESSAGE, .message = &m});
    assert_true(r->m.total.known && r->m.total.user_count == 300);
    receive(r, MESSAGE_STOP);
    receive_ack(r);
    receive_spawn(r, 2, 1, 0);
    assert_false(r->m.total.known);
    free_rig(r);
}

/* --- heartbeats, stats, logs ----------------------------------------------------------------- */

static void test_heartbeat_each_second_and_stats_each_three(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    pass(r, 6 * S);
    expect(r, "beat:ready beat:ready beat:ready stats beat:ready beat:ready beat:ready stats");
    free_rig(r);
}

static void test_a_late_tick_does_not_make_a_burst(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    r->now += 10 * S;
    feed_kind(r, EVENT_TICK);
    pass(r, 900 * MS);
    expect(r, "beat:ready stats");
    free_rig(r);
}

static void test_stats_are_sent_without_shards_that_do_not_answer(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    r->slow_stats = true;
    r->answering = true;
    pass(r, 3 * S);
    forget(r);
    pass(r, 900 * MS);
    expect(r, "");
    pass(r, 100 * MS);
    expect(r, "stats beat:ready");
    free_rig(r);
}

static void test_stats_wait_while_heartbeats_go_unanswered(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    r->quiet_beats = false;
    pass(r, 1 * S);
    expect(r, "beat:running");
    r->answering = false;
    pass(r, 2 * S);
    expect(r, "beat:running beat:running stats");
    pass(r, 3 * S);
    expect(r, "beat:running beat:running beat:running");
    receive(r, MESSAGE_HEARTBEAT);
    expect(r, "stats");
    free_rig(r);
}

static void test_logs_only_to_a_master_that_knows_them(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    pass(r, 30 * S);
    expect(r, "");
    receive(r, MESSAGE_SPAWNING_COMPLETE);
    expect(r, "logs");
    pass(r, 10 * S);
    expect(r, "logs");
    free_rig(r);
}

/* --- stop ------------------------------------------------------------------------------------ */

static void test_stop_last_stats_then_client_stopped_then_ready_again(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    receive(r, MESSAGE_STOP);
    expect(r, "end:0 stats client_stopped client_ready");
    assert_int_equal(r->m.state, RUNNER_READY);
    assert_int_equal(r->m.registration, REGISTRATION_ASKED);
    receive_ack(r);
    receive_spawn(r, 2, 1, 1);
    expect(r, "spawning begin users:1,1 complete");
    free_rig(r);
}

static void test_stop_waits_for_users_with_heartbeats_and_stats_going_on(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(30, NULL);
    r->slow_users = true;
    receive(r, MESSAGE_STOP);
    expect(r, "end:30");
    r->quiet_beats = false;
    pass(r, 3 * S);
    expect(r, "beat:running beat:running beat:running stats");
    r->engine.running_total = 0;
    feed_engine(r);
    expect(r, "stats client_stopped client_ready");
    free_rig(r);
}

static void test_stop_does_not_wait_for_ever(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(2, NULL);
    r->slow_users = true;
    receive(r, MESSAGE_STOP);
    pass(r, 11 * S);
    assert_int_equal(r->m.state, RUNNER_STOPPING);
    pass(r, 2 * S);
    assert_int_equal(r->m.state, RUNNER_READY);
    free_rig(r);
}

static void test_stop_waits_for_users_that_were_only_just_started(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    r->quiet_beats = true;
    r->slow_users = true; /* the shards have yet to say that they started three */
    receive_spawn_with(r, 30, NULL);
    r->slow_stats = true;
    receive(r, MESSAGE_STOP);
    r->engine.running_total = 3;
    r->engine.stats_complete = true;
    feed_engine(r);
    expect(r, "spawning begin users:2,1 end:30");
    r->slow_stats = false;
    r->engine.running_total = 0;
    feed_engine(r);
    expect(r, "stats client_stopped client_ready");
    free_rig(r);
}

static void test_the_wait_before_client_ready(void **state)
{
    (void)state;
    struct rig *r = new_rig_of(2, &(struct machine_options){.ready_wait_us = 2 * S});
    r->quiet_beats = true;
    feed_kind(r, EVENT_LINK_UP);
    receive_ack(r);
    receive_spawn(r, 1, 1, 1);
    forget(r);
    receive(r, MESSAGE_STOP);
    expect(r, "end:0 stats client_stopped");
    pass(r, 1900 * MS);
    expect(r, "");
    pass(r, 100 * MS);
    expect(r, "client_ready");
    free_rig(r);
}

static void test_stop_during_the_ramp(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    r->quiet_beats = true;
    r->slow_users = true;
    receive_spawn(r, 1, 50, 50);
    r->engine.running_total = 10;
    feed_engine(r);
    forget(r);
    receive(r, MESSAGE_STOP);
    r->engine = (struct machine_engine){.reached = true}; /* of target 0: not of the spawn */
    feed_engine(r);
    feed_engine(r);
    expect(r, "end:0 stats client_stopped client_ready");
    free_rig(r);
}

static void test_stop_while_stopping_and_again_before_the_ack(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(30, NULL);
    r->slow_users = true;
    receive(r, MESSAGE_STOP);
    receive(r, MESSAGE_STOP);
    expect(r, "end:30");
    r->engine.running_total = 0;
    feed_engine(r);
    expect(r, "stats client_stopped client_ready");
    receive(r, MESSAGE_STOP);
    expect(r, "end:30 stats client_stopped client_ready");
    receive_ack(r);
    receive_ack(r);
    assert_int_equal(r->m.registration, REGISTRATION_ACKED);
    free_rig(r);
}

static void test_a_link_that_breaks_while_a_second_stop_is_answered(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    receive(r, MESSAGE_STOP);
    r->slow_stats = true;
    receive(r, MESSAGE_STOP);
    feed_kind(r, EVENT_LINK_DOWN);
    forget(r);
    pass(r, 1 * S + STEP);
    expect(r, "reopen:fresh");
    feed_kind(r, EVENT_LINK_UP);
    expect(r, "stats:any client_ready");
    free_rig(r);
}

static void test_stop_of_a_ready_worker_is_answered(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    receive(r, MESSAGE_STOP);
    expect(r, "end:0 stats client_stopped client_ready");
    free_rig(r);
}

static void test_spawn_while_stopping_waits_for_the_next_ack(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(30, NULL);
    r->slow_users = true;
    receive(r, MESSAGE_STOP);
    receive_spawn(r, 5, 8, 8);
    receive_spawn(r, 6, 4, 4);
    receive_spawn(r, 4, 9, 9);
    expect(r, "end:30");
    r->slow_users = false;
    r->engine.running_total = 0;
    feed_engine(r);
    expect(r, "stats client_stopped client_ready");
    receive_ack(r);
    expect(r, "spawning begin users:4,4 complete");
    free_rig(r);
}

static void test_a_stop_takes_back_a_spawn_that_waits(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(30, NULL);
    r->slow_users = true;
    receive(r, MESSAGE_STOP);
    receive_spawn(r, 5, 8, 8);
    receive(r, MESSAGE_STOP);
    r->engine.running_total = 0;
    feed_engine(r);
    receive_ack(r);
    expect(r, "end:30 stats client_stopped client_ready");
    free_rig(r);
}

static void test_no_ack_after_a_stop_takes_a_fresh_identity(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    receive(r, MESSAGE_STOP);
    forget(r);
    pass(r, 5 * S + 200 * MS);
    expect(r, "no_master:warning client_stopped reopen:fresh");
    free_rig(r);
}

/* --- quit ------------------------------------------------------------------------------------ */

static void test_quit_without_users(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    receive(r, MESSAGE_QUIT);
    expect(r, "end:0 stats quit exit:0");
    free_rig(r);
}

static void test_quit_cuts_reports_and_leaves_at_once(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    receive(r, MESSAGE_QUIT);
    expect(r, "end:0 stats quit exit:0");
    receive(r, MESSAGE_QUIT);
    expect(r, "");
    free_rig(r);
}

static void test_quit_reports_within_half_a_second_then_drains(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(30, NULL);
    r->slow_users = true;
    receive(r, MESSAGE_QUIT);
    expect(r, "end:30 stats:any");
    pass(r, 300 * MS);
    expect(r, "stats quit");
    receive(r, MESSAGE_QUIT);
    receive(r, MESSAGE_QUIT);
    pass(r, 8 * S);
    expect(r, "");
    r->engine.running_total = 0;
    feed_engine(r);
    expect(r, "stats:any exit:0");
    free_rig(r);
}

static void test_quit_holds_the_last_stats_for_a_report_while_the_master_hears(void **state)
{
    (void)state;
    for (int comes = 0; comes < 2; comes++) {
        struct rig *r = running_rig();
        r->m.report_pending = true;
        receive(r, MESSAGE_QUIT);
        expect(r, "end:0 stats:any");
        pass(r, 250 * MS);
        expect(r, "");
        r->m.report_pending = !comes;
        pass(r, comes ? STEP : 100 * MS);
        expect(r, "stats quit exit:0");
        free_rig(r);
    }
}

static void test_a_signal_holds_nothing_for_a_report(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    r->m.report_pending = true;
    feed_kind(r, EVENT_INTERRUPT);
    expect(r, "end:0 stats quit exit:0");
    free_rig(r);
}

static void test_quit_does_not_wait_for_shards_that_do_not_answer(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(30, NULL);
    r->slow_users = r->slow_stats = true;
    receive(r, MESSAGE_QUIT);
    pass(r, 250 * MS);
    expect(r, "end:30 stats:any");
    pass(r, 200 * MS);
    expect(r, "stats quit");
    free_rig(r);
}

static void test_quit_drains_no_longer_than_the_stop_timeout(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(3, NULL);
    r->slow_users = true;
    receive(r, MESSAGE_QUIT);
    feed_kind(r, EVENT_LINK_DOWN);
    pass(r, 14 * S);
    expect(r, "end:3 stats:any exit:0");
    free_rig(r);
}

static void test_quit_while_stopping_gives_no_more_time(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(30, NULL);
    r->slow_users = true;
    receive(r, MESSAGE_STOP);
    pass(r, 10 * S);
    forget(r);
    receive(r, MESSAGE_QUIT);
    expect(r, "end:20 stats:any");
    free_rig(r);
}

static void test_quit_before_the_ack(void **state)
{
    (void)state;
    struct rig *r = new_rig();
    feed_kind(r, EVENT_LINK_UP);
    receive(r, MESSAGE_QUIT);
    expect(r, "client_ready end:0 stats quit exit:0");
    free_rig(r);
}

static void test_spawn_while_quitting_is_not_answered(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(30, NULL);
    r->slow_users = true;
    receive(r, MESSAGE_QUIT);
    forget(r);
    receive_spawn(r, 9, 9, 9);
    receive(r, MESSAGE_STOP);
    receive(r, MESSAGE_RECONNECT);
    receive_ack(r);
    expect(r, "");
    free_rig(r);
}

/* --- loss ------------------------------------------------------------------------------------ */

static void test_a_silent_master_is_left_and_looked_for(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(1, NULL);
    pass(r, 500 * MS);
    r->answering = false;
    pass(r, 5400 * MS); /* the first unanswered one went out at 1 s */
    expect(r, "");
    pass(r, 100 * MS);
    expect(r, "log:warning end:1 client_stopped");
    pass(r, 200 * MS);
    expect(r, "reopen:fresh");
    feed_kind(r, EVENT_LINK_UP);
    expect(r, "stats:any client_ready"); /* the samples first */
    receive_ack(r);
    receive_spawn(r, 0.1, 1, 1);
    expect(r, "spawning begin users:1,1 complete");
    free_rig(r);
}

static void test_a_lost_master_leaves_its_scenario(void **state)
{
    (void)state;
    for (int fetched = 0; fetched < 2; fetched++) {
        struct rig *r = running_rig_with(1, NULL);
        r->m.options.fetched = fetched;
        pass(r, 500 * MS);
        r->answering = false;
        pass(r, 5500 * MS);
        assert_string_equal(r->warning,
                            fetched ? "lost the master (it does not answer heartbeats): the load "
                                      "stops, registering again, with the scenario that came from "
                                      "it: if that changes, start this worker anew"
                                    : "lost the master (it does not answer heartbeats): the load "
                                      "stops, registering again");
        free_rig(r);
    }
}

static void test_a_lost_connection_is_replaced_after_silence(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    feed_kind(r, EVENT_LINK_DOWN);
    pass(r, 4900 * MS);
    expect(r, "");
    pass(r, 100 * MS);
    expect(r, "log:warning end:0 reopen:fresh"); /* nobody to say client_stopped to */
    free_rig(r);
}

static void test_a_connection_back_in_time_changes_nothing(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    r->quiet_beats = false;
    feed_kind(r, EVENT_LINK_DOWN);
    pass(r, 2 * S);
    expect(r, "");
    feed_kind(r, EVENT_LINK_UP);
    expect(r, "beat:running"); /* answered */
    pass(r, 1 * S);
    expect(r, "beat:running stats");
    free_rig(r);
}

static void test_a_restarted_master_is_told_nothing_it_cannot_bear(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    r->slow_users = true;
    receive_spawn(r, 1, 2, 0);
    r->answering = false;
    feed_kind(r, EVENT_LINK_DOWN);
    feed_kind(r, EVENT_LINK_UP); /* another one: it does not know us and answers nothing */
    forget(r);
    r->engine = (struct machine_engine){.running_total = 2, .reached = true};
    feed_engine(r);
    pass(r, 4 * S);
    expect(r, "beat:spawning beat:spawning beat:spawning beat:spawning");
    pass(r, 1 * S);
    expect(r, "log:warning end:0 reopen:fresh");
    free_rig(r);
}

static void test_spawning_complete_waits_for_the_doubt_to_end(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    r->slow_users = true;
    r->quiet_beats = true;
    receive_spawn(r, 1, 2, 0);
    r->answering = false;
    feed_kind(r, EVENT_LINK_DOWN);
    feed_kind(r, EVENT_LINK_UP);
    r->engine = (struct machine_engine){.running_total = 2, .reached = true};
    feed_engine(r);
    forget(r);
    receive(r, MESSAGE_HEARTBEAT);
    expect(r, "complete");
    free_rig(r);
}

static void test_without_heartbeat_answers_a_lost_connection_is_a_lost_master(void **state)
{
    (void)state;
    struct rig *r = new_rig();
    r->quiet_beats = true;
    feed_kind(r, EVENT_LINK_UP);
    receive_ack(r);
    receive_spawn(r, 1, 1, 1);
    forget(r);
    pass(r, 120 * S); /* an old master never answers: no reason to leave */
    expect(r, "");
    feed_kind(r, EVENT_LINK_DOWN);
    expect(r, "log:warning end:0 reopen:fresh");
    feed_kind(r, EVENT_LINK_UP);
    expect(r, "stats:any client_ready");
    free_rig(r);
}

static void test_after_a_loss_users_end_and_samples_come_before_client_ready(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(5, NULL);
    r->slow_users = r->slow_stats = true;
    feed_kind(r, EVENT_LINK_DOWN);
    pass(r, 5 * S);
    feed_kind(r, EVENT_LINK_UP);
    expect(r, "log:warning end:5 reopen:fresh");
    r->engine.running_total = 0;
    feed_engine(r);
    expect(r, "");
    r->engine.stats_complete = true;
    feed_engine(r);
    expect(r, "stats:any client_ready");
    free_rig(r);
}

static void test_after_a_loss_it_does_not_wait_long_for_users(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(300, NULL);
    r->slow_users = true;
    feed_kind(r, EVENT_LINK_DOWN);
    pass(r, 5 * S);
    feed_kind(r, EVENT_LINK_UP);
    pass(r, 9 * S);
    expect(r, "log:warning end:300 reopen:fresh");
    pass(r, 1 * S);
    expect(r, "stats:any client_ready");
    free_rig(r);
}

static void test_no_ack_after_a_loss_another_fresh_identity(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    feed_kind(r, EVENT_LINK_DOWN);
    pass(r, 5 * S);
    feed_kind(r, EVENT_LINK_UP);
    forget(r);
    pass(r, 5 * S + 200 * MS);
    expect(r, "no_master:warning client_stopped reopen:fresh");
    feed_kind(r, EVENT_LINK_UP);
    expect(r, "client_ready");
    free_rig(r);
}

static void test_a_master_that_stays_away_is_given_up(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    feed_kind(r, EVENT_LINK_DOWN);
    pass(r, 5 * S + 59 * S);
    assert_int_equal(r->m.state, RUNNER_READY);
    pass(r, 1 * S);
    assert_int_equal(r->m.state, RUNNER_STOPPED);
    assert_non_null(strstr(buf_c(&r->trace), "no_master:error exit:1"));
    free_rig(r);
}

static void test_master_timeout_0_looks_for_ever(void **state)
{
    (void)state;
    struct rig *r = new_rig_of(2, &(struct machine_options){0});
    feed_kind(r, EVENT_LINK_UP);
    receive_ack(r);
    feed_kind(r, EVENT_LINK_DOWN);
    pass(r, 3600 * (uint64_t)S);
    assert_int_equal(r->m.state, RUNNER_READY);
    free_rig(r);
}

static void test_a_process_that_stood_still_registers_before_anything_else(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    pass(r, 1 * S);
    r->now += 70 * S;
    receive_spawn(r, 2, 5, 5); /* it lay in the queue: answering it would bring a quit */
    expect(r, "log:warning end:0 reopen:fresh");
    free_rig(r);
}

static void test_a_shorter_standstill_is_healed_by_heartbeats(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    r->quiet_beats = false;
    pass(r, 1 * S);
    forget(r);
    r->now += 30 * S;
    feed_kind(r, EVENT_TICK);
    expect(r, "beat:running stats");
    free_rig(r);
}

static void test_reconnect_keeps_the_identity_and_says_no_client_ready(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    receive(r, MESSAGE_RECONNECT);
    expect(r, "log:warning reopen:same");
    feed_kind(r, EVENT_LINK_UP);
    pass(r, 2 * S);
    expect(r, "");
    assert_int_equal(r->m.state, RUNNER_RUNNING);
    free_rig(r);
}

static void test_reconnect_that_is_not_answered_ends_with_a_fresh_identity(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    r->answering = false;
    receive(r, MESSAGE_RECONNECT);
    feed_kind(r, EVENT_LINK_UP); /* a ROUTER that still holds the old one hears nothing */
    pass(r, 5 * S);
    expect(r, "log:warning reopen:same log:warning end:0 reopen:fresh");
    free_rig(r);
}

static void test_reconnects_do_not_become_a_storm(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    for (int i = 0; i < 10; i++) {
        receive(r, MESSAGE_RECONNECT);
        feed_kind(r, EVENT_LINK_UP);
    }
    expect(r, "log:warning reopen:same");
    free_rig(r);
}

static void test_a_message_that_could_not_be_sent_is_a_lost_master(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    feed_kind(r, EVENT_SEND_FAILED);
    expect(r, "log:warning end:0 reopen:fresh");
    free_rig(r);
}

/* --- signals --------------------------------------------------------------------------------- */

static void test_sigterm_without_rebalancing_quits_with_a_warning(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    feed_kind(r, EVENT_TERMINATE);
    expect(r, "log:warning end:0 stats quit exit:0");
    free_rig(r);
}

static void test_sigterm_drains_and_reports_what_the_drain_gave(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(30, NULL);
    r->slow_users = true;
    feed_kind(r, EVENT_TERMINATE);
    pass(r, 1 * S);
    expect(r, "log:warning end:30 stats:any stats quit");
    r->engine.running_total = 0;
    feed_engine(r);
    expect(r, "stats:any exit:0");
    free_rig(r);
}

static void test_sigterm_uses_the_longer_of_both_stop_timeouts(void **state)
{
    (void)state;
    struct rig *r = new_rig_of(2, &(struct machine_options){.stop_timeout_s = 12});
    feed_kind(r, EVENT_LINK_UP);
    receive_ack(r);
    receive_spawn(r, 1, 1, 0);
    forget(r);
    feed_kind(r, EVENT_TERMINATE);
    expect(r, "log:warning end:12 stats quit exit:0");
    free_rig(r);
}

static void test_sigterm_with_rebalancing_is_silent_then_leaves(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(0, "{\"enable_rebalancing\": true}");
    pass(r, 1 * S);
    r->quiet_beats = false;
    feed_kind(r, EVENT_TERMINATE);
    expect(r, "");
    pass(r, 5150 * MS); /* no heartbeat, no stats, users at work */
    expect(r, "");
    assert_int_equal(r->engine.running_total, 3);
    receive_spawn(r, 2, 9, 9); /* before it noticed */
    pass(r, 50 * MS);
    expect(r, "end:0 stats:none client_stopped exit:0");
    free_rig(r);
}

static void test_silent_leave_drains_before_the_goodbye(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(20, "{\"enable_rebalancing\": true}");
    r->slow_users = true;
    feed_kind(r, EVENT_TERMINATE);
    pass(r, 10 * S);
    expect(r, "end:20");
    r->engine.running_total = 0;
    feed_engine(r);
    expect(r, "stats:none client_stopped exit:0");
    free_rig(r);
}

static void test_silent_leave_says_goodbye_before_it_is_deleted(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(300, "{\"enable_rebalancing\": true}");
    r->slow_users = true;
    feed_kind(r, EVENT_TERMINATE);
    pass(r, 49 * S);
    expect(r, "end:300");
    pass(r, 2 * S);
    expect(r, "stats:none client_stopped");
    r->engine.running_total = 0;
    feed_engine(r);
    expect(r, "stats:any:none exit:0");
    free_rig(r);
}

static void test_silent_leave_ends_at_a_stop_or_quit(void **state)
{
    (void)state;
    static const enum message_type types[] = {MESSAGE_STOP, MESSAGE_QUIT};
    for (size_t i = 0; i < 2; i++) {
        struct rig *r = running_rig_with(0, "{\"enable_rebalancing\": true}");
        feed_kind(r, EVENT_TERMINATE);
        receive(r, types[i]);
        expect(r, "end:0 stats:none quit exit:0");
        free_rig(r);
    }
}

static void test_sigterm_when_ready_quits_at_once(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    feed_kind(r, EVENT_TERMINATE);
    expect(r, "end:0 stats quit exit:0");
    free_rig(r);
}

static void test_sigterm_without_a_master(void **state)
{
    (void)state;
    struct rig *r = new_rig();
    feed_kind(r, EVENT_TERMINATE);
    expect(r, "end:0 exit:0");
    free_rig(r);
}

static void test_sigterm_while_stopping(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(30, NULL);
    r->slow_users = true;
    receive(r, MESSAGE_STOP);
    pass(r, 1 * S);
    feed_kind(r, EVENT_TERMINATE);
    expect(r, "end:30 end:29 stats:any");
    r->engine.running_total = 0;
    feed_engine(r);
    expect(r, "stats quit exit:0");
    free_rig(r);
}

static void test_sigint_quits_even_with_rebalancing(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(0, "{\"enable_rebalancing\": true}");
    feed_kind(r, EVENT_INTERRUPT);
    expect(r, "end:0 stats quit exit:0");
    free_rig(r);
}

static void test_second_signal_exits_at_once(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(30, NULL);
    r->slow_users = true;
    feed_kind(r, EVENT_INTERRUPT);
    forget(r);
    feed_kind(r, EVENT_TERMINATE);
    expect(r, "log:warning exit:143");
    free_rig(r);
}

static void test_first_signal_while_quitting_lets_it_go_on(void **state)
{
    (void)state;
    struct rig *r = running_rig_with(30, NULL);
    r->slow_users = true;
    receive(r, MESSAGE_QUIT);
    forget(r);
    feed_kind(r, EVENT_INTERRUPT);
    expect(r, "");
    feed_kind(r, EVENT_INTERRUPT);
    expect(r, "log:warning exit:130");
    free_rig(r);
}

/* --- the rest -------------------------------------------------------------------------------- */

static void test_unknown_messages_are_told_once_a_type(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    unsigned told = 0;
    for (unsigned i = 0; i < 200; i++) {
        char type[16];
        snprintf(type, sizeof type, "custom%u", i / 2);
        struct message m = {.type = MESSAGE_CUSTOM, .custom.type = str_of(type)};
        struct machine_actions *a = malloc(sizeof *a);
        assert_non_null(a);
        machine_handle(&r->m, &(struct machine_event){.kind = EVENT_MESSAGE, .message = &m}, r->now,
                       a);
        told += a->count;
        free(a);
    }
    assert_int_equal(told, MACHINE_CUSTOM);
    free_rig(r);
}

static void test_messages_without_a_meaning_here_change_nothing(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    receive(r, MESSAGE_UPDATE_USER_CLASS);
    receive(r, MESSAGE_LOCUSTFILE);
    receive(r, MESSAGE_STATS);
    receive(r, MESSAGE_CLIENT_READY);
    expect(r, "");
    assert_int_equal(r->m.state, RUNNER_RUNNING);
    free_rig(r);
}

static void test_bad_messages_are_told_once_a_second(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    for (int i = 0; i < 1000; i++)
        feed_kind(r, EVENT_BAD_MESSAGE);
    expect(r, "log:warning");
    pass(r, 1 * S);
    feed_kind(r, EVENT_BAD_MESSAGE);
    expect(r, "log:warning");
    free_rig(r);
}

static void test_a_broken_engine_ends_the_worker_with_1(void **state)
{
    (void)state;
    struct rig *r = running_rig();
    feed_kind(r, EVENT_ENGINE_BROKEN);
    feed_kind(r, EVENT_ENGINE_BROKEN);
    expect(r, "log:error exception end:0 stats quit exit:1");
    free_rig(r);
}

static void test_making_survives_failed_allocations(void **state)
{
    (void)state;
    const struct machine_options options = {.class_names = two_classes, .class_count = 2};
    bool failed = true;
    for (unsigned long n = 1; failed; n++) {
        struct machine m;
        alloc_fail_at(n);
        int rc = machine_init(&m, &options, 1);
        failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        machine_done(&m);
    }
}

static void test_twenty_starts_and_stops(void **state)
{
    (void)state;
    struct rig *r = ready_rig();
    r->quiet_beats = true;
    for (unsigned i = 0; i < 20; i++) {
        receive_spawn(r, i, 1, 1);
        pass(r, 1 * S);
        receive(r, MESSAGE_STOP);
        receive_ack(r);
        expect(r, "spawning begin users:1,1 complete end:0 stats client_stopped client_ready");
    }
    free_rig(r);
}

/* --- invariants under random events ---------------------------------------------------------- */

/* What a master would know of us from what we sent, per connection. */
struct watcher {
    bool said_ready;  /* client_ready under this identity, no client_stopped or quit since */
    bool acked;       /* and acked */
    bool link_new;    /* the connection broke since; nothing was heard on the new one */
    bool stats_since; /* stats since the run's users ended or the last client_stopped */
    bool exited;
};

static void watch(struct watcher *w, struct rig *r, const struct machine_action *a)
{
    assert_false(w->exited);
    switch (a->kind) {
    case ACTION_SEND_CLIENT_READY:
        assert_false(w->said_ready); /* a second one doubles our share */
        assert_true(r->m.linked);
        w->said_ready = true;
        w->acked = r->m.registration == REGISTRATION_ACKED; /* a master that never acks */
        break;
    case ACTION_SEND_SPAWNING:
    case ACTION_SEND_SPAWNING_COMPLETE:
        assert_true(w->said_ready && w->acked && !w->link_new);
        break;
    case ACTION_SEND_CLIENT_STOPPED:
        assert_true(w->said_ready);
        w->said_ready = w->acked = false;
        break;
    case ACTION_SEND_QUIT:
        w->said_ready = w->acked = false;
        break;
    case ACTION_SEND_HEARTBEAT:
        assert_true(strcmp(a->text, "ready") == 0 || strcmp(a->text, "spawning") == 0 ||
                    strcmp(a->text, "running") == 0);
        assert_true(r->m.linked);
        break;
    case ACTION_REOPEN:
        if (!a->keep_identity)
            w->said_ready = w->acked = false;
        break;
    case ACTION_EXIT:
        w->exited = true;
        break;
    default:
        break;
    }
}

/* In one list: the last report stands before client_stopped whenever the run really ended. */
static void check_order(const struct machine_actions *a)
{
    for (unsigned i = 0; i < a->count; i++) {
        if (a->at[i].kind != ACTION_SEND_CLIENT_STOPPED)
            continue;
        bool ready_follows = i + 1 < a->count && a->at[i + 1].kind == ACTION_SEND_CLIENT_READY;
        if (ready_follows)
            assert_true(i > 0 && a->at[i - 1].kind == ACTION_SEND_STATS);
    }
}

static void random_event(struct rng *rng, struct rig *r, struct watcher *w, struct machine_event *e,
                         struct message *m, struct class_count classes[2])
{
    static const enum message_type types[] = {
        MESSAGE_ACK,  MESSAGE_SPAWN,     MESSAGE_SPAWN,     MESSAGE_SPAWN,
        MESSAGE_STOP, MESSAGE_RECONNECT, MESSAGE_HEARTBEAT, MESSAGE_SPAWNING_COMPLETE,
    };
    memset(e, 0, sizeof *e);
    e->text = STR("why");
    e->kind = EVENT_TICK;
    r->now += rng_below(rng, 4) ? rng_below(rng, 300 * MS) : rng_below(rng, 3 * S);
    switch (rng_below(rng, 40)) {
    case 0:
        e->kind = r->m.linked ? EVENT_LINK_DOWN : EVENT_LINK_UP;
        break;
    case 1:
        r->now += rng_below(rng, 90 * S);
        break;
    case 2:
        e->kind = rng_below(rng, 4) ? EVENT_SPAWN_REFUSED : EVENT_SEND_FAILED;
        break;
    case 3:
        if (rng_below(rng, 20) == 0)
            e->kind = rng_below(rng, 2) ? EVENT_TERMINATE : EVENT_INTERRUPT;
        break;
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:
    case 10:
    case 11: /* a master speaks to those it lists, over a connection */
        if (!r->m.linked || !w->said_ready)
            break;
        e->kind = EVENT_MESSAGE;
        m->type = types[rng_below(rng, sizeof types / sizeof *types)];
        if (m->type == MESSAGE_STOP && rng_below(rng, 20) == 0)
            m->type = MESSAGE_QUIT;
        if (m->type == MESSAGE_SPAWN) {
            m->spawn.timestamp = (double)rng_below(rng, 1000000);
            classes[0].count = (uint32_t)rng_below(rng, 5);
            classes[1].count = (uint32_t)rng_below(rng, 5);
        }
        w->acked = true; /* an ack, or a message that only listed ones get */
        if (m->type == MESSAGE_SPAWN || m->type == MESSAGE_HEARTBEAT)
            w->link_new = false;
        break;
    default:
        if (!r->m.linked && rng_below(rng, 2))
            e->kind = EVENT_LINK_UP;
        else if (rng_below(rng, 2))
            e->kind = EVENT_ENGINE;
        e->engine = (struct machine_engine){rng_below(rng, 3) ? 0 : rng_below(rng, 9),
                                            rng_below(rng, 2) == 0, rng_below(rng, 2) == 0};
        break;
    }
}

static void test_no_sequence_of_events_breaks_a_rule(void **state)
{
    (void)state;
    uint64_t seed = rng_seed_from_system();
    print_message("seed %llu\n", (unsigned long long)seed);
    struct rng rng;
    rng_init(&rng, seed);
    unsigned exits = 0;
    for (unsigned round = 0; round < 400; round++) {
        struct rig *r = new_rig();
        struct watcher w = {0};
        struct class_count classes[2] = {{STR("A"), 0}, {STR("B"), 0}};
        static const char *const options[] = {"{}", "{\"enable_rebalancing\": true}"};
        json_t *parsed = json_loads(options[round % 2], 0, NULL);
        assert_non_null(parsed);
        for (unsigned i = 0; i < 1000 && !w.exited; i++) {
            struct message m;
            memset(&m, 0, sizeof m);
            m.spawn.classes = classes;
            m.spawn.class_count = 2;
            m.spawn.stop_timeout_s = (double)(round % 5);
            m.spawn.parsed_options = parsed;
            struct machine_event e;
            random_event(&rng, r, &w, &e, &m, classes);
            e.message = &m;
            if (e.kind == EVENT_LINK_DOWN)
                w.link_new = true;
            machine_handle(&r->m, &e, r->now, &r->actions);
            check_order(&r->actions);
            for (unsigned k = 0; k < r->actions.count; k++)
                watch(&w, r, &r->actions.at[k]);
            if (!w.said_ready)
                w.link_new = false;
        }
        exits += w.exited;
        json_decref(parsed);
        free_rig(r);
    }
    assert_true(exits > 0);
}

static void test_it_always_ends_ready_or_gone(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    static const enum message_type ends[] = {MESSAGE_STOP, MESSAGE_QUIT};
    for (unsigned round = 0; round < 200; round++) {
        struct rig *r = ready_rig();
        for (unsigned i = 0; i < rng_below(&rng, 6); i++) {
            receive_spawn(r, i, (uint32_t)rng_below(&rng, 9), 1);
            pass(r, rng_below(&rng, 2 * S));
            if (rng_below(&rng, 3) == 0)
                receive(r, MESSAGE_STOP);
        }
        receive(r, ends[round % 2]);
        pass(r, 1 * S);
        if (r->m.registration == REGISTRATION_ASKED)
            receive_ack(r);
        pass(r, 1 * S);
        assert_int_equal(r->engine.running_total, 0);
        assert_int_equal(r->m.state, round % 2 ? RUNNER_STOPPED : RUNNER_READY);
        free_rig(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_client_ready_goes_out_when_the_link_stands),
        cmocka_unit_test(test_without_a_connection_each_try_resolves_again),
        cmocka_unit_test(test_no_master_is_told_seldom),
        cmocka_unit_test(test_without_a_master_in_time_exit_1),
        cmocka_unit_test(test_no_ack_takes_a_fresh_identity_after_a_word_for_the_old_one),
        cmocka_unit_test(test_client_ready_is_never_repeated_for_one_identity),
        cmocka_unit_test(test_heartbeats_keep_an_unacked_worker_alive),
        cmocka_unit_test(test_master_without_acks_is_taken_at_its_spawn),
        cmocka_unit_test(test_a_master_that_never_says_a_word_is_given_up),
        cmocka_unit_test(test_repeated_acks_are_tolerated),
        cmocka_unit_test(test_an_ack_resets_the_spawn_clock),
        cmocka_unit_test(test_ack_without_an_index),
        cmocka_unit_test(test_spawn_is_answered_first_and_completed_when_reached),
        cmocka_unit_test(test_reached_of_the_last_target_is_not_taken_for_this_one),
        cmocka_unit_test(test_older_or_equal_timestamp_is_answered_and_discarded),
        cmocka_unit_test(test_ramp_the_newest_spawn_wins),
        cmocka_unit_test(test_each_later_spawn_is_completed_again),
        cmocka_unit_test(test_classes_that_are_not_named_get_no_users),
        cmocka_unit_test(test_unknown_class_is_told_once_a_run_and_not_run),
        cmocka_unit_test(test_unknown_class_with_no_users_is_no_fault),
        cmocka_unit_test(test_many_unknown_classes_make_one_bounded_line),
        cmocka_unit_test(test_faults_told_in_one_run_are_bounded),
        cmocka_unit_test(test_one_class_on_each_side_is_mapped_with_one_warning),
        cmocka_unit_test(test_one_class_of_ours_and_two_of_theirs_are_not_mapped),
        cmocka_unit_test(test_the_masters_host_wins_over_ours),
        cmocka_unit_test(test_a_refused_host_runs_nobody_and_says_so_once),
        cmocka_unit_test(test_a_host_over_the_limit_runs_nobody),
        cmocka_unit_test(test_parsed_options_are_kept),
        cmocka_unit_test(test_reset_stats_when_the_master_says_that_all_are_spawned),
        cmocka_unit_test(test_the_masters_total_is_kept_for_the_run),
        cmocka_unit_test(test_heartbeat_each_second_and_stats_each_three),
        cmocka_unit_test(test_a_late_tick_does_not_make_a_burst),
        cmocka_unit_test(test_stats_are_sent_without_shards_that_do_not_answer),
        cmocka_unit_test(test_stats_wait_while_heartbeats_go_unanswered),
        cmocka_unit_test(test_logs_only_to_a_master_that_knows_them),
        cmocka_unit_test(test_stop_last_stats_then_client_stopped_then_ready_again),
        cmocka_unit_test(test_stop_waits_for_users_with_heartbeats_and_stats_going_on),
        cmocka_unit_test(test_stop_does_not_wait_for_ever),
        cmocka_unit_test(test_stop_waits_for_users_that_were_only_just_started),
        cmocka_unit_test(test_the_wait_before_client_ready),
        cmocka_unit_test(test_stop_during_the_ramp),
        cmocka_unit_test(test_stop_while_stopping_and_again_before_the_ack),
        cmocka_unit_test(test_a_link_that_breaks_while_a_second_stop_is_answered),
        cmocka_unit_test(test_stop_of_a_ready_worker_is_answered),
        cmocka_unit_test(test_spawn_while_stopping_waits_for_the_next_ack),
        cmocka_unit_test(test_a_stop_takes_back_a_spawn_that_waits),
        cmocka_unit_test(test_no_ack_after_a_stop_takes_a_fresh_identity),
        cmocka_unit_test(test_quit_without_users),
        cmocka_unit_test(test_quit_cuts_reports_and_leaves_at_once),
        cmocka_unit_test(test_quit_reports_within_half_a_second_then_drains),
        cmocka_unit_test(test_quit_holds_the_last_stats_for_a_report_while_the_master_hears),
        cmocka_unit_test(test_a_signal_holds_nothing_for_a_report),
        cmocka_unit_test(test_quit_does_not_wait_for_shards_that_do_not_answer),
        cmocka_unit_test(test_quit_drains_no_longer_than_the_stop_timeout),
        cmocka_unit_test(test_quit_while_stopping_gives_no_more_time),
        cmocka_unit_test(test_quit_before_the_ack),
        cmocka_unit_test(test_spawn_while_quitting_is_not_answered),
        cmocka_unit_test(test_a_silent_master_is_left_and_looked_for),
        cmocka_unit_test(test_a_lost_master_leaves_its_scenario),
        cmocka_unit_test(test_a_lost_connection_is_replaced_after_silence),
        cmocka_unit_test(test_a_connection_back_in_time_changes_nothing),
        cmocka_unit_test(test_a_restarted_master_is_told_nothing_it_cannot_bear),
        cmocka_unit_test(test_spawning_complete_waits_for_the_doubt_to_end),
        cmocka_unit_test(test_without_heartbeat_answers_a_lost_connection_is_a_lost_master),
        cmocka_unit_test(test_after_a_loss_users_end_and_samples_come_before_client_ready),
        cmocka_unit_test(test_after_a_loss_it_does_not_wait_long_for_users),
        cmocka_unit_test(test_no_ack_after_a_loss_another_fresh_identity),
        cmocka_unit_test(test_a_master_that_stays_away_is_given_up),
        cmocka_unit_test(test_master_timeout_0_looks_for_ever),
        cmocka_unit_test(test_a_process_that_stood_still_registers_before_anything_else),
        cmocka_unit_test(test_a_shorter_standstill_is_healed_by_heartbeats),
        cmocka_unit_test(test_reconnect_keeps_the_identity_and_says_no_client_ready),
        cmocka_unit_test(test_reconnect_that_is_not_answered_ends_with_a_fresh_identity),
        cmocka_unit_test(test_reconnects_do_not_become_a_storm),
        cmocka_unit_test(test_a_message_that_could_not_be_sent_is_a_lost_master),
        cmocka_unit_test(test_sigterm_without_rebalancing_quits_with_a_warning),
        cmocka_unit_test(test_sigterm_drains_and_reports_what_the_drain_gave),
        cmocka_unit_test(test_sigterm_uses_the_longer_of_both_stop_timeouts),
        cmocka_unit_test(test_sigterm_with_rebalancing_is_silent_then_leaves),
        cmocka_unit_test(test_silent_leave_drains_before_the_goodbye),
        cmocka_unit_test(test_silent_leave_says_goodbye_before_it_is_deleted),
        cmocka_unit_test(test_silent_leave_ends_at_a_stop_or_quit),
        cmocka_unit_test(test_sigterm_when_ready_quits_at_once),
        cmocka_unit_test(test_sigterm_without_a_master),
        cmocka_unit_test(test_sigterm_while_stopping),
        cmocka_unit_test(test_sigint_quits_even_with_rebalancing),
        cmocka_unit_test(test_second_signal_exits_at_once),
        cmocka_unit_test(test_first_signal_while_quitting_lets_it_go_on),
        cmocka_unit_test(test_unknown_messages_are_told_once_a_type),
        cmocka_unit_test(test_messages_without_a_meaning_here_change_nothing),
        cmocka_unit_test(test_bad_messages_are_told_once_a_second),
        cmocka_unit_test(test_a_broken_engine_ends_the_worker_with_1),
        cmocka_unit_test(test_making_survives_failed_allocations),
        cmocka_unit_test(test_twenty_starts_and_stops),
        cmocka_unit_test(test_no_sequence_of_events_breaks_a_rule),
        cmocka_unit_test(test_it_always_ends_ready_or_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The loop: whatever is readable becomes events of the machine, whose actions are done at once. An
 * action that leads to another event (a refused host, a changed engine) leaves a note, so the
 * machine is never entered from within. Deadlines need no timers of their own: a tick each 50 ms
 * costs nothing and the machine looks at its clock. */
#include "worker/runner/worker.h"

#include "base/clock.h"
#include "base/log.h"
#include "proto/locust/link.h"
#include "proto/locust/message.h"
#include "worker/runner/inputs.h"
#include "worker/runner/lines.h"
#include "worker/runner/machine.h"
#include "worker/runner/samples.h"
#include "worker/runner/signals.h"
#include "worker/runner/tasks.h"
#include "worker/runner/usage.h"
#include "worker/stats/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define TICK_MS          50
#define MESSAGES_AT_ONCE 1000 /* a master that floods us must not stop the clock */
#define EVENTS_AT_ONCE   8
#define STATS_BYTES      (4u << 20) /* with a server document: tens of ms of a master's time */
#define DRAIN_MS         500        /* for the last frames at the exit */

struct worker {
    const struct worker_options *options;
    const struct plan *plan;
    struct engine *engine;
    struct link *link;
    struct reporter *reporter;
    bool linked; /* as the machine knows it */
    int epoll_fd;
    int timer_fd;
    struct machine machine;
    struct machine_actions actions;
    struct samples samples;
    struct tasks tasks;
    struct lines lines;
    struct usage usage;
    struct scrape scrape;
    struct buf frame;
    struct buf host; /* as the engine has it; its ptr NULL: none was set */
    struct str *class_names;
    struct class_count *counts;

    /* notes of the actions for the next event */
    bool engine_changed;
    struct err refused;
    struct err not_sent;
    struct err broken;

    bool files_told;
    bool stop_told;
    bool done;
    int exit_code;
};

/* --- sending --------------------------------------------------------------------------------- */

/* Hand over the frame that was encoded with this result. 0 or the errno. */
static int send_frame(struct worker *w, int encoded)
{
    int rc = encoded == 0 ? link_send(w->link, buf_str(&w->frame)) : encoded;
    buf_clear(&w->frame);
    return rc;
}

/* A message whose loss would leave the master with a wrong idea of us. */
static void send_needed(struct worker *w, int encoded, const char *what)
{
    int rc = send_frame(w, encoded);
    if (rc < 0)
        (void)err_set(&w->not_sent, rc, "could not send %s: %s", what, strerror(-rc));
}

static void send_plain(struct worker *w, enum message_type type)
{
    send_needed(w, message_encode_plain(&w->frame, link_node_id(w->link), type),
                message_type_name(type));
}

/* A message that may be missed: the next one repeats it, or nothing depends on it. */
static void send_if_possible(struct worker *w, int encoded, const char *what)
{
    int rc = send_frame(w, encoded);
    if (rc < 0)
        log_debug("could not send %s: %s", what, strerror(-rc));
}

static uint64_t count_users(struct worker *w, bool none)
{
    struct engine_status status;
    engine_status(w->engine, &status);
    for (size_t i = 0; i < w->plan->class_count; i++)
        w->counts[i] = (struct class_count){
            .name = machine_class_name(&w->machine, i),
            .count = none ? 0 : status.running[i],
        };
    return none ? 0 : status.running_total;
}

static void send_spawning_complete(struct worker *w)
{
    uint64_t total = count_users(w, false);
    int rc = message_encode_spawning_complete(&w->frame, link_node_id(w->link), w->counts,
                                              w->plan->class_count, total);
    send_needed(w, rc, "spawning_complete");
}

static void send_heartbeat(struct worker *w, const char *state)
{
    struct engine_status status;
    engine_status(w->engine, &status);
    double own_pct = usage_thread_cpu_pct(&w->usage, clock_mono_us());
    struct message_heartbeat h = {
        .state = state,
        .current_cpu_usage = status.cpu_pct > own_pct ? status.cpu_pct : own_pct,
        .current_memory_usage = usage_memory_bytes(),
    };
    int rc = message_encode_heartbeat(&w->frame, link_node_id(w->link), &h);
    send_if_possible(w, rc, "heartbeat");
}

static void take_samples(struct worker *w)
{
    int rc = samples_take(&w->samples, w->engine, clock_wall_s());
    if (rc < 0)
        log_warning("no memory to merge samples, keeping them for later, continuing");
}

/* What the servers measured may be too deep for a message, or keep a master busy for too long: then
 * the whole of it is in the leader's files only, and its flat form goes out alone. */
static int encode_stats(struct worker *w, const struct message_stats *stats)
{
    int rc = message_encode_stats(&w->frame, link_node_id(w->link), stats);
    bool too_much = rc == -ERANGE || (rc == 0 && w->frame.len > STATS_BYTES);
    if (too_much && json_object_del(stats->cicada, "server_document") == 0)
        rc = message_encode_stats(&w->frame, link_node_id(w->link), stats);
    return rc;
}

/* The samples stay in the unsent set until the link has taken the frame. */
static void send_stats(struct worker *w, const struct machine_action *a)
{
    take_samples(w);
    if (a->if_any && stats_is_empty(w->samples.unsent))
        return;
    struct stats_wire wire;
    int rc = stats_wire_build(w->samples.unsent, &wire);
    if (rc == 0) {
        wire.message.user_count = count_users(w, a->no_users);
        wire.message.classes = w->counts;
        wire.message.class_count = w->plan->class_count;
        wire.message.cicada = reporter_object(w->reporter, &w->machine);
        rc = encode_stats(w, &wire.message);
        json_decref(wire.message.cicada);
        stats_wire_done(&wire);
    }
    rc = send_frame(w, rc);
    if (rc == 0) {
        samples_sent(&w->samples, clock_wall_s());
        reporter_sent(w->reporter);
    } else {
        log_warning("could not send stats (%s), keeping them for later, continuing", strerror(-rc));
    }
}

static void send_logs(struct worker *w)
{
    lines_take(&w->lines);
    if (!w->lines.news)
        return;
    struct str views[LINES_KEPT];
    size_t count = lines_views(&w->lines, views);
    int rc = message_encode_logs(&w->frame, link_node_id(w->link), views, count);
    send_if_possible(w, rc, "logs");
    w->lines.news = false;
}

/* --- actions --------------------------------------------------------------------------------- */

static int set_host(struct worker *w, struct str host, struct err *err)
{
    if (!host.ptr == !w->host.ptr && str_eq(host, buf_str(&w->host)))
        return 0;
    int rc = engine_set_host(w->engine, host, err);
    if (rc < 0)
        return rc;
    buf_done(&w->host);
    buf_init(&w->host, MACHINE_HOST_BYTES);
    if (!host.ptr)
        return 0;
    rc = buf_add(&w->host, host);
    return rc < 0 ? err_set(err, rc, "out of memory") : 0;
}

/* A user keeps a connection; those beyond the limit of open files would only fail. Told once until
 * fewer are wanted. */
static void check_files(struct worker *w, const uint32_t *targets)
{
    uint64_t users = 0, carried = w->options->file_users;
    for (size_t i = 0; i < w->plan->class_count; i++)
        users += targets[i];
    bool short_of = carried > 0 && users > carried;
    if (short_of && !w->files_told)
        log_warning("%llu users are wanted, but the hard limit of open files carries connections "
                    "for %llu: raise it (ulimit -Hn, or LimitNOFILE of the service), continuing",
                    (unsigned long long)users, (unsigned long long)carried);
    w->files_told = short_of;
}

/* What the scenario's variables get from outside, and which worker this is. */
static int set_inputs(struct worker *w, struct err *err)
{
    const struct machine *m = &w->machine;
    int rc = inputs_apply(w->engine, w->plan, w->options->sets, w->options->set_count,
                          m->wanted.parsed_options);
    if (m->has_index)
        engine_set_worker(w->engine, (uint32_t)m->index);
    return rc < 0 ? err_set(err, rc, "out of memory") : 0;
}

static void set_users(struct worker *w, const struct machine_action *a)
{
    check_files(w, a->targets);
    struct err err = {0};
    int rc = set_inputs(w, &err);
    if (rc == 0)
        rc = set_host(w, a->host, &err);
    if (rc == 0)
        rc = engine_set_users(w->engine, a->targets, a->stop_timeout_s, &err);
    if (rc == -EINVAL)
        w->refused = err;
    else if (rc < 0)
        w->broken = err;
    w->engine_changed = true;
}

static void engine_asked(struct worker *w, int rc)
{
    if (rc < 0)
        (void)err_set(&w->broken, rc, "%s", strerror(-rc));
    w->engine_changed = true;
}

static void reopen(struct worker *w, bool keep_identity)
{
    struct err err = {0};
    w->linked = false;
    int rc = link_reopen(w->link, keep_identity, &err);
    if (rc < 0) /* the link goes on trying by itself */
        log_warning("cannot connect to the master (%s), continuing", err.text);
}

static void tell_no_master(struct worker *w, const struct machine_action *a)
{
    char host[LOG_QUOTED_BYTES];
    const char *quoted = log_quote(str_of(w->options->master_host), host);
    if (link_connected(w->link))
        log_line(a->level, "connected to %s port %u, but no Locust master answers there, %s",
                 quoted, w->options->master_port, a->text);
    else
        log_line(a->level, "no Locust master at %s port %u (%s), %s", quoted,
                 w->options->master_port, link_status(w->link), a->text);
}

static void begin_run(struct worker *w)
{
    if (!stats_is_empty(w->samples.unsent))
        log_warning("samples of a run that the master no longer has are left out, continuing");
    reporter_begin(w->reporter, &w->machine);
    samples_begin(&w->samples, clock_wall_s());
    engine_asked(w, engine_request_stats(w->engine)); /* so that the shards' sets begin now too */
    tasks_begin(&w->tasks);
}

static void reset_stats(struct worker *w)
{
    samples_reset(&w->samples, clock_wall_s());
    engine_asked(w, engine_request_stats(w->engine));
}

static void perform(struct worker *w, const struct machine_action *a)
{
    struct str id = link_node_id(w->link);
    switch (a->kind) {
    case ACTION_SEND_CLIENT_READY: /* no version: a master compares it with its own and warns */
        send_needed(w, message_encode_client_ready(&w->frame, id, (struct str){0}), "client_ready");
        break;
    case ACTION_SEND_SPAWNING:
        send_plain(w, MESSAGE_SPAWNING);
        break;
    case ACTION_SEND_SPAWNING_COMPLETE:
        send_spawning_complete(w);
        break;
    case ACTION_SEND_HEARTBEAT:
        send_heartbeat(w, a->text);
        break;
    case ACTION_SEND_STATS:
        send_stats(w, a);
        break;
    case ACTION_SEND_LOGS:
        send_logs(w);
        break;
    case ACTION_SEND_EXCEPTION:
        send_if_possible(w, message_encode_exception(&w->frame, id, str_of(a->text), STR("")),
                         "exception");
        break;
    case ACTION_SEND_CLIENT_STOPPED:
        send_plain(w, MESSAGE_CLIENT_STOPPED);
        break;
    case ACTION_SEND_QUIT:
        send_plain(w, MESSAGE_QUIT);
        break;
    case ACTION_BEGIN_RUN:
        begin_run(w);
        break;
    case ACTION_RESET_STATS:
        reset_stats(w);
        break;
    case ACTION_SET_USERS:
        set_users(w, a);
        break;
    case ACTION_STOP_USERS:
        engine_asked(w, engine_stop(w->engine, a->stop_timeout_s));
        break;
    case ACTION_REQUEST_STATS:
        engine_asked(w, engine_request_stats(w->engine));
        break;
    case ACTION_REOPEN:
        reopen(w, a->keep_identity);
        break;
    case ACTION_NO_MASTER:
        tell_no_master(w, a);
        break;
    case ACTION_LOG:
        if (log_enabled(a->level))
            log_line(a->level, "%s", a->text);
        break;
    case ACTION_EXIT:
        w->done = true;
        w->exit_code = a->exit_code;
        break;
    }
}

/* --- events ---------------------------------------------------------------------------------- */

/* What tasks in C want the master to know. */
static void send_for_tasks(struct worker *w)
{
    struct str id = link_node_id(w->link);
    struct run_outgoing *o;
    while ((o = tasks_next(&w->tasks))) {
        struct str text = str_of(o->text);
        if (o->kind == RUN_OUT_MESSAGE)
            send_if_possible(w, message_encode_custom(&w->frame, id, text, o->data), o->text);
        else /* a master counts exceptions by their traceback */
            send_if_possible(w, message_encode_exception(&w->frame, id, text, text), "exception");
        run_outgoing_free(o);
    }
}

static void handle(struct worker *w, const struct machine_event *event)
{
    w->machine.report_pending = reporter_pending(w->reporter);
    machine_handle(&w->machine, event, clock_mono_us(), &w->actions);
    for (unsigned i = 0; i < w->actions.count; i++)
        perform(w, &w->actions.at[i]);
    reporter_follow(w->reporter, &w->machine);
    if (w->machine.state == RUNNER_READY || w->machine.state == RUNNER_STOPPED)
        tasks_end(&w->tasks);
    send_for_tasks(w);
}

static void handle_note(struct worker *w, enum machine_event_kind kind, struct err *note)
{
    struct err taken = *note;
    *note = (struct err){0};
    handle(w, &(struct machine_event){.kind = kind, .text = str_of(taken.text)});
}

static void handle_engine(struct worker *w)
{
    struct engine_status status;
    w->engine_changed = false;
    take_samples(w);
    engine_status(w->engine, &status);
    if (status.run_stopped && !w->stop_told)
        log_info("a step of the scenario stopped the run: no users run until the next test");
    w->stop_told = status.run_stopped;
    handle(w, &(struct machine_event){
                  .kind = EVENT_ENGINE,
                  .engine = {.running_total = status.running_total,
                             .reached = status.reached,
                             .stats_complete = engine_stats_complete(w->engine)},
              });
    scrape_answer(&w->scrape, w->plan, w->samples.run, w->engine,
                  runner_state_name(w->machine.state));
}

/* What the actions left to do, until nothing is. */
static void settle(struct worker *w)
{
    while (!w->done) {
        if (w->broken.code != 0)
            handle_note(w, EVENT_ENGINE_BROKEN, &w->broken);
        else if (w->refused.code != 0)
            handle_note(w, EVENT_SPAWN_REFUSED, &w->refused);
        else if (w->not_sent.code != 0)
            handle_note(w, EVENT_SEND_FAILED, &w->not_sent);
        else if (w->engine_changed)
            handle_engine(w);
        else
            break;
    }
}

static void feed(struct worker *w, const struct machine_event *event)
{
    handle(w, event);
    settle(w);
}

static void feed_kind(struct worker *w, enum machine_event_kind kind)
{
    feed(w, &(struct machine_event){.kind = kind});
}

static void feed_frame(struct worker *w, struct str frame)
{
    struct message message;
    struct err err = {0};
    if (message_decode(frame, &message, &err) < 0) {
        feed(w, &(struct machine_event){.kind = EVENT_BAD_MESSAGE, .text = str_of(err.text)});
        return;
    }
    log_debug("received %s", message_type_name(message.type));
    bool taken = reporter_message(w->reporter, &message, &w->machine);
    if (!taken && message.type == MESSAGE_CUSTOM)
        taken = tasks_message(&w->tasks, message.custom.type, message.custom.data);
    if (!taken)
        feed(w, &(struct machine_event){.kind = EVENT_MESSAGE, .message = &message});
    message_done(&message);
}

/* First what was received, then whether the connection that brought it still stands. */
static void look_at_link(struct worker *w)
{
    for (unsigned i = 0; i < MESSAGES_AT_ONCE && !w->done; i++) {
        struct str frame;
        int rc = link_receive(w->link, &frame);
        if (rc == 0)
            feed_frame(w, frame);
        else if (rc == -EPROTO)
            feed(w, &(struct machine_event){.kind = EVENT_BAD_MESSAGE,
                                            .text = STR("more than one frame")});
        else
            break;
    }
    bool linked = link_connected(w->link);
    if (!w->done && linked != w->linked) {
        w->linked = linked;
        feed_kind(w, linked ? EVENT_LINK_UP : EVENT_LINK_DOWN);
    }
}

static void look_at_engine(struct worker *w)
{
    engine_poll(w->engine);
    w->engine_changed = true;
    settle(w);
}

static void look_at_signals(struct worker *w)
{
    for (int signal; !w->done && (signal = signals_next(w->options->signal_fd)) != 0;)
        feed_kind(w, signal == SIGINT ? EVENT_INTERRUPT : EVENT_TERMINATE);
}

/* Is there news for the master's listener that should not wait for the next stats? */
static bool has_news(const struct worker *w)
{
    if (w->done)
        return false;
    if (machine_is_idle(&w->machine))
        return reporter_owes(w->reporter);
    return machine_runs(&w->machine) && reporter_announces(w->reporter);
}

static void tick(struct worker *w)
{
    uint64_t ticks;
    if (read(w->timer_fd, &ticks, sizeof ticks) <= 0)
        return;
    reporter_tick(w->reporter, &w->machine);
    feed_kind(w, EVENT_TICK);
    tasks_watch(&w->tasks, clock_mono_us());
    scrape_set_ready(&w->scrape, w->machine.registration == REGISTRATION_ACKED);
    if (has_news(w))
        send_stats(w, &(struct machine_action){.kind = ACTION_SEND_STATS});
}

/* --- the loop -------------------------------------------------------------------------------- */

static int watch_fd(struct worker *w, int fd)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

static int open_loop(struct worker *w)
{
    const struct timespec tick = {.tv_nsec = TICK_MS * 1000000};
    const struct itimerspec every = {.it_interval = tick, .it_value = tick};
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    w->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (w->epoll_fd < 0 || w->timer_fd < 0 || timerfd_settime(w->timer_fd, 0, &every, NULL) < 0)
        return -errno;
    int rc = watch_fd(w, w->timer_fd);
    if (rc == 0)
        rc = watch_fd(w, link_fd(w->link));
    if (rc == 0)
        rc = watch_fd(w, engine_fd(w->engine));
    if (rc == 0 && reporter_fd(w->reporter) >= 0)
        rc = watch_fd(w, reporter_fd(w->reporter));
    if (rc == 0 && w->options->signal_fd >= 0)
        rc = watch_fd(w, w->options->signal_fd);
    if (rc == 0 && scrape_fd(&w->scrape) >= 0)
        rc = watch_fd(w, scrape_fd(&w->scrape));
    return rc;
}

static bool is_ready(const struct epoll_event *events, int count, int fd)
{
    for (int i = 0; i < count; i++) {
        if (events[i].data.fd == fd)
            return true;
    }
    return false;
}

static int loop(struct worker *w)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    while (!w->done) {
        int count = epoll_wait(w->epoll_fd, events, EVENTS_AT_ONCE, -1);
        if (count < 0 && errno != EINTR)
            return -errno;
        if (is_ready(events, count, link_fd(w->link)))
            look_at_link(w);
        if (!w->done && is_ready(events, count, engine_fd(w->engine)))
            look_at_engine(w);
        if (!w->done && w->options->signal_fd >= 0 &&
            is_ready(events, count, w->options->signal_fd))
            look_at_signals(w);
        if (!w->done && scrape_fd(&w->scrape) >= 0 &&
            is_ready(events, count, scrape_fd(&w->scrape)))
            scrape_begin(&w->scrape, w->engine);
        if (!w->done && is_ready(events, count, reporter_fd(w->reporter)))
            reporter_poll(w->reporter);
        if (!w->done && is_ready(events, count, w->timer_fd))
            tick(w);
    }
    return 0;
}

/* --- making ---------------------------------------------------------------------------------- */

static int make_machine(struct worker *w)
{
    const struct plan *plan = w->plan;
    w->class_names = calloc(plan->class_count, sizeof *w->class_names);
    w->counts = calloc(plan->class_count, sizeof *w->counts);
    if (!w->class_names || !w->counts)
        return -ENOMEM;
    for (size_t i = 0; i < plan->class_count; i++)
        w->class_names[i] = plan->classes[i].name;
    const struct machine_options options = {
        .class_names = w->class_names,
        .class_count = plan->class_count,
        .host = str_of(w->options->host),
        .stop_timeout_s = w->options->stop_timeout_s,
        .master_timeout_us = machine_us(w->options->master_timeout_s),
        .ready_wait_us = machine_us(w->options->ready_wait_s),
        .reset_stats = w->options->reset_stats,
        .fetched = w->options->fetched,
    };
    return machine_init(&w->machine, &options, clock_mono_us());
}

static int begin_metrics(struct worker *w, struct err *err)
{
    struct scrape *open = w->options->scrape;
    if (!open || scrape_fd(open) < 0)
        return scrape_open(&w->scrape, &w->options->metrics, err);
    w->scrape = *open;
    *open = (struct scrape){0};
    return 0;
}

static int begin(struct worker *w, struct err *err)
{
    const struct worker_options *o = w->options;
    int rc = link_new(o->master_host, o->master_port, &w->link, err);
    if (rc < 0)
        return rc;
    rc = engine_new(w->plan, &o->engine, &w->engine, err);
    if (rc < 0)
        return rc;
    tasks_init(&w->tasks, w->plan, w->engine);
    if (o->host) { /* a mistake in it shows before anything begins */
        rc = set_host(w, str_of(o->host), err);
        if (rc < 0)
            return rc;
    }
    const struct reporter_options report = {
        .settings = o->report,
        .output = &o->output,
        .plan = w->plan,
        .engine = w->engine,
        .samples = &w->samples,
    };
    rc = reporter_new(&report, &w->reporter, err);
    if (rc < 0)
        return rc;
    rc = samples_init(&w->samples, o->engine.limits, clock_wall_s());
    if (rc == 0)
        rc = make_machine(w);
    if (rc == 0 && (rc = begin_metrics(w, err)) < 0)
        return rc;
    if (rc == 0)
        rc = open_loop(w);
    return rc < 0 ? err_set(err, rc, "cannot start the worker: %s", strerror(-rc)) : 0;
}

/* What came in when the master listened no more: it is in our own files only. */
static void tell_undelivered(struct worker *w)
{
    unsigned long long count = 0;
    take_samples(w);
    for (uint32_t i = 0; i < stats_entry_count(w->samples.unsent); i++)
        count += stats_entry_at(w->samples.unsent, i)->num_requests;
    if (count > 0)
        log_warning("%llu requests ended too late to be told to the master", count);
}

/* What is under way after a second signal is cut by the end of the process. */
static void tell_requests(struct worker *w)
{
    struct engine_status s;
    engine_status(w->engine, &s);
    if (s.started > 0)
        log_info("%llu requests: %llu succeeded, %llu failed, %llu cut at the end of their user",
                 (unsigned long long)s.started, (unsigned long long)s.succeeded,
                 (unsigned long long)s.failed, (unsigned long long)(s.interrupted + s.in_flight));
}

static void push_metrics(struct worker *w)
{
    struct engine_status status;
    engine_status(w->engine, &status);
    scrape_push(&w->options->metrics, &(struct metrics_input){.plan = w->plan,
                                                              .stats = w->samples.run,
                                                              .engine = &status,
                                                              .state = "stopped"});
}

/* What the exit still waits for, unless a second signal came, and the files. */
static void finish_report(struct worker *w)
{
    bool hurry = w->exit_code >= 128;
    int signal = reporter_finish(w->reporter, w->options->signal_fd, hurry);
    if (signal != 0 && w->machine.signalled)
        w->exit_code = 128 + signal;
    if (w->exit_code == 0 && !reporter_wrote_all(w->reporter))
        w->exit_code = 1;
}

static void end(struct worker *w)
{
    reporter_free(w->reporter);
    scrape_done(&w->scrape);
    engine_free(w->engine);
    if (w->link && w->linked && w->exit_code < 128) /* a second signal waits for nothing */
        link_drain(w->link, DRAIN_MS);
    link_free(w->link);
    if (w->epoll_fd >= 0)
        (void)close(w->epoll_fd);
    if (w->timer_fd >= 0)
        (void)close(w->timer_fd);
    machine_done(&w->machine);
    samples_done(&w->samples);
    lines_done(&w->lines);
    buf_done(&w->frame);
    buf_done(&w->host);
    free(w->class_names);
    free(w->counts);
    free(w);
}

int worker_run(const struct worker_options *options, const struct plan *plan, int *ret_exit_code,
               struct err *err)
{
    struct worker *w = calloc(1, sizeof *w);
    if (!w)
        return err_set(err, -ENOMEM, "out of memory");
    w->options = options;
    w->plan = plan;
    w->epoll_fd = w->timer_fd = -1;
    buf_init(&w->frame, MESSAGE_MAX_BYTES);
    buf_init(&w->host, MACHINE_HOST_BYTES);
    int rc = begin(w, err);
    if (rc == 0) {
        log_tap_on();
        rc = loop(w);
        if (rc < 0)
            (void)err_set(err, rc, "epoll: %s", strerror(-rc));
        tell_requests(w);
        tell_undelivered(w);
        if (w->exit_code < 128) /* a second signal waits for nothing */
            push_metrics(w);
    }
    if (rc == 0)
        finish_report(w);
    if (rc == 0)
        *ret_exit_code = w->exit_code;
    end(w);
    return rc;
}

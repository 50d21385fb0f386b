/* A loop of its own instead of the machine's: nothing that a registered worker does (heartbeats,
 * stats, spawns) has a meaning yet, and the machine is made of the plan's classes, which are not
 * known. */
#include "worker/runner/fetch.h"

#include "base/clock.h"
#include "base/log.h"
#include "proto/locust/link.h"
#include "worker/runner/signals.h"
#include "worker/scenario/bundle.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>

#define TICK_MS          50
#define MESSAGES_AT_ONCE 100
#define SHOWN_NAME_BYTES 100

/* --- when ------------------------------------------------------------------------------------ */

void fetch_clock_init(struct fetch_clock *c, double master_timeout_s, uint64_t now_us)
{
    *c = (struct fetch_clock){.complain_us = now_us + FETCH_COMPLAIN_US};
    if (master_timeout_s > 0)
        c->give_up_us = now_us + (uint64_t)(master_timeout_s * 1e6);
}

enum fetch_step fetch_clock_step(struct fetch_clock *c, bool connected, uint64_t now_us)
{
    c->asked = c->asked && connected; /* the question went with its connection */
    if (c->give_up_us != 0 && now_us >= c->give_up_us)
        return FETCH_GIVE_UP;
    if (connected && !c->asked) {
        c->asked = true;
        c->asked_us = now_us;
        return FETCH_ASK;
    }
    if (c->asked && now_us - c->asked_us >= FETCH_SILENCE_US)
        return FETCH_GIVE_UP;
    if (now_us < c->complain_us)
        return FETCH_WAIT;
    c->complain_us = now_us + FETCH_COMPLAIN_NEXT_US;
    return FETCH_COMPLAIN;
}

/* --- what was answered ----------------------------------------------------------------------- */

/* Without folders, in quotes unless it is plain. */
static const char *show_name(struct str name, char ret[static LOG_QUOTED_BYTES])
{
    static const char plain[] = "0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_.";
    for (size_t slash; (slash = str_find(name, '/')) < name.len;)
        name = str_sub(name, slash + 1, name.len);
    bool quoted = name.len == 0 || name.len > SHOWN_NAME_BYTES;
    for (size_t i = 0; !quoted && i < name.len; i++)
        quoted = !name.ptr[i] || !strchr(plain, name.ptr[i]);
    if (quoted)
        return log_quote(name, ret);
    memcpy(ret, name.ptr, name.len);
    ret[name.len] = '\0';
    return ret;
}

static bool is_url(const struct message_locustfile_source *source)
{
    return !source->filename.ptr;
}

/* URLs may hold passwords: they are not shown. */
static int none_chosen(const struct message_locustfile *answer, struct err *err)
{
    size_t urls = 0;
    for (size_t i = 0; i < answer->source_count; i++)
        urls += is_url(&answer->sources[i]);
    if (urls == answer->source_count)
        return err_set(err, -EINVAL,
                       "the master's locustfile is a URL, which cicada does not load: start the "
                       "master with the file itself");
    return err_set(err, -EINVAL,
                   "none of the master's %zu locustfiles holds a scenario: make one that does with "
                   "'cicada locustfile SCENARIO'",
                   answer->source_count);
}

int fetch_choose(const struct message_locustfile *answer, size_t *ret, struct err *err)
{
    char quoted[LOG_QUOTED_BYTES];
    if (answer->error.ptr)
        return err_set(err, -EREMOTEIO, "the master cannot give its locustfile: %s",
                       log_quote(answer->error, quoted));
    if (answer->source_count == 0)
        return err_set(err, -EREMOTEIO, "the master has no locustfile to give");
    for (size_t i = 0; i < answer->source_count; i++) {
        const struct message_locustfile_source *source = &answer->sources[i];
        if (is_url(source) || (answer->source_count > 1 && !bundle_is_in(source->contents)))
            continue;
        *ret = i;
        return 0;
    }
    return none_chosen(answer, err);
}

static int load_answer(const struct message_locustfile *answer, const struct plan_tags *tags,
                       struct plan **ret, struct err *err)
{
    char name[LOG_QUOTED_BYTES], source[LOG_QUOTED_BYTES + sizeof " from the master"];
    size_t chosen;
    int rc = fetch_choose(answer, &chosen, err);
    if (rc < 0)
        return rc;
    const struct message_locustfile_source *file = &answer->sources[chosen];
    (void)snprintf(source, sizeof source, "%s from the master",
                   show_name(file->filename, name)); /* fits */
    rc = bundle_load(file->contents, source, tags, ret, err);
    if (rc == 0 && answer->source_count > 1)
        log_info("the scenario is %.*s (of its %zu locustfiles the first that has one)",
                 STR_ARG((*ret)->source), answer->source_count);
    else if (rc == 0)
        log_info("the scenario is %.*s", STR_ARG((*ret)->source));
    return rc;
}

/* --- asking ---------------------------------------------------------------------------------- */

struct fetch {
    const struct fetch_options *options;
    struct link *link;
    struct fetch_clock clock;
    struct message answer;
};

static int ask(struct fetch *f, struct err *err)
{
    struct buf frame;
    buf_init(&frame, MESSAGE_MAX_BYTES);
    int rc = message_encode_locustfile(&frame, link_node_id(f->link), STR(CICADA_VERSION));
    if (rc == 0)
        rc = link_send(f->link, buf_str(&frame));
    buf_done(&frame);
    if (rc == -EAGAIN) { /* the connection has just gone */
        f->clock.asked = false;
        return 0;
    }
    return rc < 0 ? err_set(err, rc, "asking the master for its locustfile: %s", strerror(-rc)) : 0;
}

static void complain(struct fetch *f)
{
    const struct fetch_options *o = f->options;
    char quoted[LOG_QUOTED_BYTES];
    const char *host = log_quote(str_of(o->master_host), quoted);
    if (f->clock.asked)
        log_info("asked the Locust master at %s port %u for its locustfile, waiting for the answer",
                 host, o->master_port);
    else
        log_info("no Locust master at %s port %u (%s), trying on", host, o->master_port,
                 link_status(f->link));
}

static int give_up(struct fetch *f, struct err *err)
{
    const struct fetch_options *o = f->options;
    char quoted[LOG_QUOTED_BYTES];
    const char *host = log_quote(str_of(o->master_host), quoted);
    if (f->clock.asked)
        return err_set(
            err, -ETIMEDOUT,
            "the Locust master at %s port %u does not give its locustfile, as none before "
            "2.23 does: give the file to the worker (-f FILE)",
            host, o->master_port);
    return err_set(err, -ETIMEDOUT, "no Locust master at %s port %u (%s), giving up", host,
                   o->master_port, link_status(f->link));
}

static int keep_time(struct fetch *f, struct err *err)
{
    switch (fetch_clock_step(&f->clock, link_connected(f->link), clock_mono_us())) {
    case FETCH_WAIT:
        break;
    case FETCH_ASK:
        return ask(f, err);
    case FETCH_COMPLAIN:
        complain(f);
        break;
    case FETCH_GIVE_UP:
        return give_up(f, err);
    }
    return 0;
}

static int not_readable(const char *why, struct err *err)
{
    return err_set(err, -EPROTO, "the master's answer for its locustfile cannot be read: %s", why);
}

/* 1: the answer is there; 0: not yet. Whatever else a master may say is not meant for us. */
static int take_frame(struct fetch *f, struct str frame, struct err *err)
{
    struct err why = {0};
    int rc = message_decode(frame, &f->answer, &why);
    if (rc == -ENOMEM)
        return err_set(err, rc, "out of memory");
    if (rc < 0)
        return not_readable(why.text, err);
    if (f->answer.type == MESSAGE_LOCUSTFILE)
        return 1;
    log_debug("received %s before the locustfile, ignoring", message_type_name(f->answer.type));
    message_done(&f->answer);
    return 0;
}

static int look_at_link(struct fetch *f, struct err *err)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < MESSAGES_AT_ONCE; i++) {
        struct str frame;
        int received = link_receive(f->link, &frame);
        if (received == -EPROTO)
            return not_readable("it has more than one frame", err);
        if (received < 0)
            break;
        rc = take_frame(f, frame, err);
    }
    return rc;
}

static int look_at_signals(const struct fetch *f)
{
    int signal = signals_next(f->options->signal_fd);
    if (signal == 0)
        return 0;
    log_info("%s, quitting", signal == SIGINT ? "interrupted" : "terminated");
    return -ECANCELED;
}

static int wait_for_answer(struct fetch *f, struct err *err)
{
    struct pollfd fds[] = {{.fd = link_fd(f->link), .events = POLLIN},
                           {.fd = f->options->signal_fd, .events = POLLIN}};
    int rc = 0;
    while (rc == 0) {
        if (poll(fds, 2, TICK_MS) < 0 && errno != EINTR)
            return err_set(err, -errno, "poll: %s", strerror(errno));
        rc = look_at_signals(f);
        if (rc == 0)
            rc = look_at_link(f, err);
        if (rc == 0)
            rc = keep_time(f, err);
    }
    return rc < 0 ? rc : 0;
}

int fetch_plan(const struct fetch_options *options, const struct plan_tags *tags, struct plan **ret,
               struct err *err)
{
    struct fetch f = {.options = options};
    int rc = link_new(options->master_host, options->master_port, &f.link, err);
    if (rc < 0)
        return rc;
    fetch_clock_init(&f.clock, options->master_timeout_s, clock_mono_us());
    rc = wait_for_answer(&f, err);
    link_free(f.link);
    if (rc == 0)
        rc = load_answer(&f.answer.locustfile, tags, ret, err);
    message_done(&f.answer);
    return rc;
}

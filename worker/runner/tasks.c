#include "worker/runner/tasks.h"

#include "base/clock.h"
#include "base/log.h"
#include "include/cicada.h"
#include "worker/engine/crash.h"

#include <stdio.h>
#include <stdlib.h>

#define PLACE_BYTES 256

void tasks_init(struct tasks *t, const struct plan *plan, struct engine *engine)
{
    *t = (struct tasks){.test = plan->native, .engine = engine, .run = engine_tasks(engine)};
}

/* A crash in what follows is told as one of this place. */
static void call(void (*function)(struct cicada_run *run), struct cicada_run *run,
                 const char *place)
{
    crash_set_place(place);
    function(run);
    crash_set_place(NULL);
}

void tasks_begin(struct tasks *t)
{
    tasks_end(t);
    t->running = t->test != NULL;
    if (t->running && t->test->test_start)
        call(t->test->test_start, t->run, "test_start");
}

void tasks_end(struct tasks *t)
{
    bool ends = t->running;
    t->running = false;
    if (ends && t->test->test_stop)
        call(t->test->test_stop, t->run, "test_stop");
}

static const struct cicada_message_handler *find_handler(const struct tasks *t, struct str type)
{
    const struct cicada_message_handler *h = t->test ? t->test->messages : NULL;
    while (h && h->type && !str_eq(str_of(h->type), type))
        h++;
    return h && h->type && h->handle ? h : NULL;
}

static void handle(struct tasks *t, const struct cicada_message_handler *h, const char *json)
{
    char place[PLACE_BYTES];
    /* a longer type is cut */
    (void)snprintf(place, sizeof place, "the handler of '%s' messages", h->type);
    crash_set_place(place);
    h->handle(t->run, h->type, json);
    crash_set_place(NULL);
}

bool tasks_message(struct tasks *t, struct str type, const json_t *data)
{
    const struct cicada_message_handler *h = find_handler(t, type);
    if (!h)
        return false;
    char *json = data ? json_dumps(data, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    if (data && !json)
        log_warning("no memory for a message of the type '%s', ignoring", h->type);
    else
        handle(t, h, json ? json : "null");
    free(json);
    return true;
}

static void tell_exception(struct tasks *t, const char *text)
{
    uint64_t skipped;
    t->exceptions++;
    if (!log_due(&t->exception_us, clock_mono_us(), &t->exceptions_skipped, &skipped))
        return;
    if (skipped > 0)
        log_error("%s (and %llu others before)", text, (unsigned long long)skipped);
    else
        log_error("%s", text);
}

struct run_outgoing *tasks_next(struct tasks *t)
{
    struct run_outgoing *o = t->run ? run_take(t->run) : NULL;
    if (o && o->kind == RUN_OUT_EXCEPTION)
        tell_exception(t, o->text);
    return o;
}

void tasks_hear(struct tasks *t)
{
    struct run_outgoing *o;
    while ((o = tasks_next(t))) {
        if (o->kind == RUN_OUT_MESSAGE)
            log_debug("no master for a message of the type '%s'", o->text);
        run_outgoing_free(o);
    }
}

void tasks_watch(struct tasks *t, uint64_t now_us)
{
    struct err stuck;
    while (t->test && engine_stuck(t->engine, now_us, &stuck))
        log_error("%s", stuck.text);
}

/* Nothing in the handler allocates, locks or formats: it copies texts into a line and writes it. */
#include "worker/engine/crash.h"

#include "base/log.h"
#include "worker/engine/native.h"

#define LINE_BYTES 1024

static const struct {
    int number;
    const char *name;
} watched[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
    {SIGILL, "SIGILL"},   {SIGABRT, "SIGABRT"},
};
#define WATCHED (sizeof watched / sizeof *watched)

static struct sigaction before[WATCHED];
static unsigned watchers;
static _Thread_local const char *volatile thread_place; /* no task's */

struct line {
    size_t len;
    char bytes[LINE_BYTES];
};

/* What does not fit is left out. */
static void add(struct line *line, struct str text)
{
    for (size_t i = 0; i < text.len && line->len < LINE_BYTES - 1; i++) {
        char c = text.ptr[i];
        line->bytes[line->len++] = c == '\n' ? ' ' : c;
    }
}

static void add_place(struct line *line, const struct fiber *f)
{
    if (!f) {
        add(line, str_of(thread_place));
        return;
    }
    const struct cicada_user *n = fiber_arg(f);
    const struct user *u = n->user;
    add(line, STR("user class '"));
    add(line, u->shard->plan->classes[u->class].name);
    add(line, STR("', task '"));
    add(line, u->task->name);
    add(line, STR("'"));
}

static void last_words(const char *signal_name, const void *address)
{
    struct fiber *f = fiber_current();
    struct line line = {0};
    if (!f && !thread_place)
        return; /* it was not the test's */
    add(&line, STR("cicada: "));
    add_place(&line, f);
    add(&line, STR(": crashed ("));
    add(&line, str_of(signal_name));
    add(&line, STR(")"));
    if (fiber_is_guard(address))
        add(&line, STR(": its stack of 256 KiB is used up"));
    line.bytes[line.len++] = '\n';
    log_last_words((struct str){line.bytes, line.len});
}

static void handle(int number, siginfo_t *info, void *context)
{
    (void)context;
    for (size_t i = 0; i < WATCHED; i++) {
        if (watched[i].number != number)
            continue;
        last_words(watched[i].name, info->si_addr);
        (void)sigaction(number, &before[i], NULL); /* it was right before */
    }
    if (info->si_code <= 0)  /* sent by somebody, who does not send it twice; */
        (void)raise(number); /* a fault comes again by itself */
}

void crash_watch(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (watchers++ > 0)
        return;
    for (size_t i = 0; i < WATCHED; i++)
        (void)sigaction(watched[i].number, &action, &before[i]); /* the numbers are valid */
}

void crash_unwatch(void)
{
    if (--watchers > 0)
        return;
    for (size_t i = 0; i < WATCHED; i++)
        (void)sigaction(watched[i].number, &before[i], NULL); /* the same */
}

void crash_set_place(const char *place)
{
    thread_place = place;
}

void crash_thread_begin(struct crash_thread *t, void *memory)
{
    const stack_t own = {.ss_sp = memory, .ss_size = CRASH_STACK_BYTES};
    (void)sigaltstack(&own, &t->before); /* without it a crash by a full stack has no words */
}

void crash_thread_end(struct crash_thread *t)
{
    (void)sigaltstack(&t->before, NULL); /* the same */
}

/* The last words of a process that dies in a task in C: which user class and task it was. Signal
 * handlers are the process's, so this is, too; what was set before is set again and has the last
 * word: a core, a sanitizer's report. */
#ifndef CICADA_WORKER_ENGINE_CRASH_H
#define CICADA_WORKER_ENGINE_CRASH_H

#include <signal.h>

#define CRASH_STACK_BYTES 65536 /* handlers do not run on a stack that is used up */

/* Watch SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT. Counted: the last unwatch ends it. The
 * runner's thread. */
void crash_watch(void);
void crash_unwatch(void);

/* What of the test this thread runs when it is no task: "test_start". The text is borrowed until it
 * is NULL again: nothing. */
void crash_set_place(const char *place);

/* A thread that runs tasks. memory is CRASH_STACK_BYTES of the caller's for that time. */
struct crash_thread {
    stack_t before;
};
void crash_thread_begin(struct crash_thread *t, void *memory);
void crash_thread_end(struct crash_thread *t);

#endif

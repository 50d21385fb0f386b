/* Small stacks on which user code runs in a straight line: fiber_park gives the thread back to the
 * loop, fiber_resume goes on behind it. A switch is a handful of instructions and no system call
 * (ucontext makes two). A fiber belongs to the thread that made it. Clean under AddressSanitizer
 * and ThreadSanitizer, which are told of each switch. */
#ifndef CICADA_WORKER_ENGINE_FIBER_H
#define CICADA_WORKER_ENGINE_FIBER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define FIBER_STACK_BYTES (256u << 10) /* of address space; memory is taken a page at a time */
#define FIBER_SLAB_STACKS 64           /* mapped at once */
#define FIBER_MAX_GUARDED 8192 /* stacks with a guard page: each costs the kernel two maps */

struct fiber;

/* The stacks of one thread; they are reused and given back at the end. */
struct fiber_pool;

/* At most guards of its stacks get a guard page: all pools of a process together at most
 * FIBER_MAX_GUARDED. 0, -ENOMEM. */
MUST_USE int fiber_pool_new(unsigned guards, struct fiber_pool **ret);
void fiber_pool_free(struct fiber_pool *pool); /* every fiber is gone; NULL is nothing */

/* A fiber that will run entry(arg) at its first resume. entry may return. 0, -ENOMEM. */
MUST_USE int fiber_new(struct fiber_pool *pool, void (*entry)(void *arg), void *arg,
                       struct fiber **ret);

/* Run it until it parks or ends. False: it has ended. Not from within a fiber. */
bool fiber_resume(struct fiber *f);

/* From within: back to whoever resumed. */
void fiber_park(struct fiber *f);

/* Give the stack back; one that has not ended is dropped where it parks: what it holds is lost. */
void fiber_free(struct fiber_pool *pool, struct fiber *f);

/* The fiber that runs now on this thread, or NULL. Async-signal-safe: for naming a crash. */
struct fiber *fiber_current(void);

/* What its entry was given. Async-signal-safe. */
void *fiber_arg(const struct fiber *f);

/* Did it come to the end of its stack? Judged by what lies at its far end, so after the fact, where
 * there is no guard page. */
bool fiber_overflowed(const struct fiber *f);

/* Is the address in the guard page of the fiber that runs now? For a SIGSEGV handler. */
bool fiber_is_guard(const void *address);

#endif

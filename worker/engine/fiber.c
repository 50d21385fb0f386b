/* Stacks are cut from slabs of 64, so that ten thousand users are not ten thousand mappings. Each
 * of the first thousands has a guard page at its far end; the rest have some words there that are
 * zero as long as nothing was written so far, which tells an overflow afterwards. The tops differ
 * by some cache lines, so that thousands of equally deep stacks do not fight for the same sets of
 * the cache.
 *
 * The switch saves what a called function must preserve, and nothing else; it is written here
 * rather than taken from a library, for boost.context's comes with C++ and swapcontext with two
 * system calls. */
#include "worker/engine/fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef WITH_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#if defined(WITH_ASAN) || defined(WITH_TSAN)
#define KEEPS_FRAME 0
#else
#define KEEPS_FRAME 1
#endif

#define PAGE_BYTES  4096u
#define COLORS      16u
#define COLOR_BYTES 192u
#define MARK_WORDS  16 /* at the far end of a stack: zero, unless it came so far */

struct fiber {
    void *sp;        /* while it is parked */
    void *caller_sp; /* while it runs */
    void (*entry)(void *arg);
    void *arg;
    char *stack; /* its lowest byte, the guard page left out */
    size_t stack_bytes;
    bool guarded;
    bool ended;
    bool framed;        /* it waits in run for another entry */
    struct fiber *next; /* among the pool's free ones */
#ifdef WITH_ASAN
    void *fake_stack;
    const void *caller_stack;
    size_t caller_bytes;
#endif
#ifdef WITH_TSAN
    void *tsan;
    void *caller_tsan;
#endif
};

struct slab {
    struct slab *next;
    char *memory;
    struct fiber fibers[FIBER_SLAB_STACKS];
};

struct fiber_pool {
    struct slab *slabs;
    struct fiber *unused;
    unsigned stacks;
    unsigned guards; /* how many of them may have one */
};

static _Thread_local struct fiber *current;

/* --- the switch ----------------------------------------------------------------------------- */

/* Save the registers of the caller on its stack and that stack's pointer in *save; take those that
 * lie at `to`. */
void fiber_switch(void **save, void *to);
void fiber_begin(void);

#if defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl fiber_switch\n"
        ".hidden fiber_switch\n"
        ".type fiber_switch, @function\n"
        "fiber_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    subq $8, %rsp\n"
        "    stmxcsr (%rsp)\n"
        "    fnstcw 4(%rsp)\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    ldmxcsr (%rsp)\n"
        "    fldcw 4(%rsp)\n"
        "    addq $8, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size fiber_switch, .-fiber_switch\n"
        ".p2align 4\n"
        ".globl fiber_begin\n"
        ".hidden fiber_begin\n"
        ".type fiber_begin, @function\n"
        "fiber_begin:\n" /* r12: the fiber, r13: the function */
        "    movq %r12, %rdi\n"
        "    callq *%r13\n"
        "    ud2\n"
        ".size fiber_begin, .-fiber_begin\n");

/* What fiber_switch takes off a stack, so that it "returns" into fiber_begin. */
static void *first_frame(char *top, struct fiber *f, void (*run)(struct fiber *f))
{
    uint64_t *sp = (uint64_t *)(void *)top;
    uint32_t control[2] = {0, 0};
    __asm__ volatile("stmxcsr %0\n fnstcw %1" : "=m"(control[0]), "=m"(control[1]));
    *--sp = 0; /* leaves the stack aligned for a call */
    *--sp = 0; /* ends a back trace */
    *--sp = (uint64_t)(uintptr_t)fiber_begin;
    *--sp = 0;                        /* rbp */
    *--sp = 0;                        /* rbx */
    *--sp = (uint64_t)(uintptr_t)f;   /* r12 */
    *--sp = (uint64_t)(uintptr_t)run; /* r13 */
    *--sp = 0;                        /* r14 */
    *--sp = 0;                        /* r15 */
    *--sp = (uint64_t)control[0] | (uint64_t)control[1] << 32;
    return sp;
}
#elif defined(__aarch64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl fiber_switch\n"
        ".hidden fiber_switch\n"
        ".type fiber_switch, %function\n"
        "fiber_switch:\n"
        "    stp x29, x30, [sp, #-160]!\n"
        "    stp x19, x20, [sp, #16]\n"
        "    stp x21, x22, [sp, #32]\n"
        "    stp x23, x24, [sp, #48]\n"
        "    stp x25, x26, [sp, #64]\n"
        "    stp x27, x28, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #16]\n"
        "    ldp x21, x22, [sp, #32]\n"
        "    ldp x23, x24, [sp, #48]\n"
        "    ldp x25, x26, [sp, #64]\n"
        "    ldp x27, x28, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    ldp x29, x30, [sp], #160\n"
        "    ret\n"
        ".size fiber_switch, .-fiber_switch\n"
        ".p2align 4\n"
        ".globl fiber_begin\n"
        ".hidden fiber_begin\n"
        ".type fiber_begin, %function\n"
        "fiber_begin:\n" /* x19: the fiber, x20: the function */
        "    mov x0, x19\n"
        "    blr x20\n"
        "    brk #0\n"
        ".size fiber_begin, .-fiber_begin\n");

static void *first_frame(char *top, struct fiber *f, void (*run)(struct fiber *f))
{
    uint64_t *sp = (uint64_t *)(void *)(top - 160);
    memset(sp, 0, 160);
    sp[1] = (uint64_t)(uintptr_t)fiber_begin; /* x30 */
    sp[2] = (uint64_t)(uintptr_t)f;           /* x19 */
    sp[3] = (uint64_t)(uintptr_t)run;         /* x20 */
    return sp;
}
#else
#error "no context switch for this processor: write one beside those of x86-64 and AArch64"
#endif

/* --- with the sanitizers told --------------------------------------------------------------- */

static void before_entering(struct fiber *f)
{
#ifdef WITH_ASAN
    __sanitizer_start_switch_fiber(&f->fake_stack, f->stack, f->stack_bytes);
#endif
#ifdef WITH_TSAN
    f->caller_tsan = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(f->tsan, 0);
#endif
    (void)f;
}

static void after_leaving(struct fiber *f)
{
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(f->fake_stack, NULL, NULL);
#endif
    (void)f;
}

/* On the fiber's own stack, behind a switch to it. */
static void after_entering(struct fiber *f, void *fake_stack)
{
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, &f->caller_stack, &f->caller_bytes);
#endif
    (void)f;
    (void)fake_stack;
}

static void leave(struct fiber *f)
{
    void *fake_stack = NULL;
#ifdef WITH_ASAN
    /* an ended fiber's fake stack is given up */
    __sanitizer_start_switch_fiber(f->ended ? NULL : &fake_stack, f->caller_stack, f->caller_bytes);
#endif
#ifdef WITH_TSAN
    __tsan_switch_to_fiber(f->caller_tsan, 0);
#endif
    fiber_switch(&f->sp, f->caller_sp);
    after_entering(f, fake_stack);
}

/* An ended fiber waits for its next entry, but for the sanitizers, who want a new stack each time.
 */
static void run(struct fiber *f)
{
    do {
        after_entering(f, NULL);
        f->entry(f->arg);
        f->ended = true;
        leave(f);
    } while (KEEPS_FRAME);
    __builtin_trap(); /* nobody resumes an ended fiber */
}

bool fiber_resume(struct fiber *f)
{
    current = f;
    before_entering(f);
    fiber_switch(&f->caller_sp, f->sp);
    after_leaving(f);
    current = NULL;
    return !f->ended;
}

void fiber_park(struct fiber *f)
{
    leave(f);
}

struct fiber *fiber_current(void)
{
    return current;
}

void *fiber_arg(const struct fiber *f)
{
    return f->arg;
}

/* --- stacks --------------------------------------------------------------------------------- */

int fiber_pool_new(unsigned guards, struct fiber_pool **ret)
{
    struct fiber_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return -ENOMEM;
    pool->guards = guards;
    *ret = pool;
    return 0;
}

void fiber_pool_free(struct fiber_pool *pool)
{
    if (!pool)
        return;
    while (pool->slabs) {
        struct slab *s = pool->slabs;
        pool->slabs = s->next;
        (void)munmap(s->memory, (size_t)FIBER_SLAB_STACKS * FIBER_STACK_BYTES); /* it is ours */
        free(s);
    }
    free(pool);
}

static void lay_out(struct fiber_pool *pool, struct slab *s)
{
    for (unsigned i = 0; i < FIBER_SLAB_STACKS; i++) {
        struct fiber *f = &s->fibers[i];
        char *low = s->memory + (size_t)i * FIBER_STACK_BYTES;
        f->guarded = pool->stacks < pool->guards && mprotect(low, PAGE_BYTES, PROT_NONE) == 0;
        f->stack = low + PAGE_BYTES;
        f->stack_bytes = FIBER_STACK_BYTES - PAGE_BYTES;
        f->next = pool->unused;
        pool->unused = f;
        pool->stacks++;
    }
}

static __attribute__((noinline)) int grow(struct fiber_pool *pool)
{
    struct slab *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    size_t bytes = (size_t)FIBER_SLAB_STACKS * FIBER_STACK_BYTES;
    s->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (s->memory == MAP_FAILED) {
        free(s);
        return -ENOMEM;
    }
    (void)madvise(s->memory, bytes, MADV_NOHUGEPAGE); /* a huge page a stack would be a waste */
    s->next = pool->slabs;
    pool->slabs = s;
    lay_out(pool, s);
    return 0;
}

static __attribute__((noinline)) void frame(struct fiber *f)
{
    size_t color = ((uintptr_t)f->stack / FIBER_STACK_BYTES) % COLORS * COLOR_BYTES;
    f->sp = first_frame(f->stack + f->stack_bytes - color, f, run);
}

int fiber_new(struct fiber_pool *pool, void (*entry)(void *arg), void *arg, struct fiber **ret)
{
    int rc = pool->unused ? 0 : grow(pool);
    if (rc < 0)
        return rc;
    struct fiber *f = pool->unused;
    pool->unused = f->next;
    f->entry = entry;
    f->arg = arg;
    f->ended = false;
    if (!f->framed)
        frame(f);
#ifdef WITH_TSAN
    f->tsan = __tsan_create_fiber(0);
#endif
    *ret = f;
    return 0;
}

void fiber_free(struct fiber_pool *pool, struct fiber *f)
{
    if (!f)
        return;
#ifdef WITH_ASAN
    /* frames that were dropped leave their red zones behind */
    __asan_unpoison_memory_region(f->stack, f->stack_bytes);
#endif
#ifdef WITH_TSAN
    __tsan_destroy_fiber(f->tsan);
#endif
    f->framed = KEEPS_FRAME && f->ended;
    f->next = pool->unused;
    pool->unused = f;
}

/* A page that was only read costs no memory. */
bool fiber_overflowed(const struct fiber *f)
{
    const uint64_t *end = (const uint64_t *)(const void *)f->stack;
    uint64_t used = 0;
    for (size_t i = 0; !f->guarded && i < MARK_WORDS; i++)
        used |= end[i];
    return used != 0;
}

bool fiber_is_guard(const void *address)
{
    const char *at = address;
    return current && current->guarded && at >= current->stack - PAGE_BYTES && at < current->stack;
}

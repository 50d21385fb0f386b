#include "test/unit/alloc.h"

#include <stddef.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

/* atomics only so that tests with threads stay clean under ThreadSanitizer */
static unsigned long fail_at, count;
static bool failed;

void alloc_fail_at(unsigned long n)
{
    __atomic_store_n(&count, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&failed, false, __ATOMIC_RELAXED);
    __atomic_store_n(&fail_at, n, __ATOMIC_RELAXED);
}

bool alloc_failed(void)
{
    return __atomic_load_n(&failed, __ATOMIC_RELAXED);
}

unsigned long alloc_count(void)
{
    return __atomic_load_n(&count, __ATOMIC_RELAXED);
}

static bool fails_now(void)
{
    unsigned long n = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    if (n != __atomic_load_n(&fail_at, __ATOMIC_RELAXED))
        return false;
    __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    return true;
}

void *__wrap_malloc(size_t n)
{
    return fails_now() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails_now() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s)
{
    return fails_now() ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
    return fails_now() ? NULL : __real_strndup(s, n);
}

/* Failing allocations for tests: the n-th call from now of malloc, calloc, realloc, strdup or
 * strndup made by our own code returns NULL. Linked into every unit test by --wrap; single-threaded
 * use. */
#ifndef CICADA_TEST_ALLOC_H
#define CICADA_TEST_ALLOC_H

#include <stdbool.h>

/* Fail the n-th allocation from now (1 is the next); 0 never fails again. */
void alloc_fail_at(unsigned long n);

/* Did the planned failure happen since alloc_fail_at? A test loops n = 1, 2, … until it did not. */
bool alloc_failed(void);

/* Allocations made since the last alloc_fail_at. */
unsigned long alloc_count(void);

#endif

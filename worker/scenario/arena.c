#include "worker/scenario/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

/* Blocks double from the first size to the last one; whatever is larger gets a block to itself. */
#define FIRST_BLOCK_BYTES 4096u
#define LAST_BLOCK_BYTES  (1u << 20)

struct arena_block {
    struct arena_block *older;
    size_t used, size;
    alignas(max_align_t) char bytes[];
};

void arena_done(struct arena *a)
{
    while (a->blocks) {
        struct arena_block *older = a->blocks->older;
        free(a->blocks);
        a->blocks = older;
    }
}

static struct arena_block *add_block(struct arena *a, size_t need)
{
    size_t size = a->blocks ? a->blocks->size * 2 : FIRST_BLOCK_BYTES, bytes;
    if (size > LAST_BLOCK_BYTES)
        size = LAST_BLOCK_BYTES;
    if (size < need)
        size = need;
    if (__builtin_add_overflow(size, sizeof(struct arena_block), &bytes))
        return NULL;
    struct arena_block *block = calloc(1, bytes);
    if (!block)
        return NULL;
    block->size = size;
    block->older = a->blocks;
    a->blocks = block;
    return block;
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
    const size_t unit = alignof(max_align_t);
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) ||
        __builtin_add_overflow(bytes, unit - 1, &bytes))
        return NULL;
    bytes = bytes / unit * unit;
    struct arena_block *block = a->blocks;
    if (!block || block->size - block->used < bytes)
        block = add_block(a, bytes);
    if (!block)
        return NULL;
    void *p = block->bytes + block->used;
    block->used += bytes;
    return p;
}

struct str arena_copy(struct arena *a, struct str text)
{
    char *copy = text.len < SIZE_MAX ? arena_array(a, text.len + 1, 1) : NULL;
    if (!copy)
        return (struct str){NULL, 0};
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    return (struct str){copy, text.len};
}

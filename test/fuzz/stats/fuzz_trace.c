/* A scenario's own traceparent, and rows with names and errors of any bytes: a row is one line of
 * six fields, printable. */
#include "worker/stats/trace.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_row(struct str line)
{
    unsigned tabs = 0;
    for (size_t i = 0; i + 1 < line.len; i++) {
        tabs += line.ptr[i] == '\t';
        check(line.ptr[i] == '\t' || (unsigned char)line.ptr[i] >= 0x20);
    }
    check(tabs == 5 && line.ptr[line.len - 1] == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char id[TRACE_ID_BYTES] = "";
    struct str all = {(const char *)data, size};
    struct buf b;
    if (trace_id_of(all, id))
        check(strlen(id) == TRACE_ID_BYTES - 1 && memcmp(id, all.ptr + 3, TRACE_ID_BYTES - 1) == 0);
    buf_init(&b, 1 << 20);
    const struct trace_row row = {.name = str_sub(all, 0, size / 2),
                                  .id = id,
                                  .duration_us = size,
                                  .error = str_sub(all, size / 2, size)};
    if (trace_row_add(&b, &row) == 0)
        check_row(buf_str(&b));
    buf_done(&b);
    return 0;
}

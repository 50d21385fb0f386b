/* Any text is either refused with a line number, or gives rows of equal length whose cells lie in
 * the text. The first byte chooses the separator. */
#include "base/num.h"
#include "worker/scenario/csv_table.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct csv_table table = {0};
    struct err err = {0};
    if (size == 0)
        return 0;
    char separator = data[0] % 2 ? ',' : ';';
    char *text = malloc(size);
    demand(text != NULL);
    memcpy(text, data + 1, size - 1);
    int rc = csv_table_read(text, size - 1, separator, &arena, &table, &err);
    if (rc < 0) {
        uint64_t line;
        struct str told = str_of(err.text);
        demand(rc == -EINVAL && err.code == rc);
        demand(num_parse_u64(str_sub(told, 0, str_find(told, ':')), size + 1, &line) == 0);
        demand(line > 0);
    } else {
        demand(table.cell_count == (size_t)table.rows * table.columns);
        for (size_t i = 0; i < table.cell_count; i++) {
            const char *at = table.cells[i].ptr;
            demand(at >= text && at + table.cells[i].len <= text + size - 1);
        }
    }
    free(text);
    arena_done(&arena);
    return 0;
}

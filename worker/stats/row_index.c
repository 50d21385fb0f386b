#include "worker/stats/row_index.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CELLS 16

int row_index_reserve(struct row_index *x)
{
    if (x->row_count < x->cell_count / 2)
        return 0;
    if (x->cell_count > UINT32_MAX / 2)
        return -ENOMEM;
    struct row_index grown = {.cell_count = x->cell_count ? x->cell_count * 2 : FIRST_CELLS};
    grown.cells = calloc(grown.cell_count, sizeof *grown.cells);
    if (!grown.cells)
        return -ENOMEM;
    for (uint32_t i = 0; i < x->cell_count; i++) {
        if (x->cells[i].row_plus_1)
            row_index_put(&grown, x->cells[i].hash, x->cells[i].row_plus_1 - 1);
    }
    free(x->cells);
    *x = grown;
    return 0;
}

void row_index_put(struct row_index *x, size_t hash, uint32_t row)
{
    uint32_t mask = x->cell_count - 1, at = (uint32_t)hash & mask;
    while (x->cells[at].row_plus_1)
        at = (at + 1) & mask;
    x->cells[at] = (struct row_cell){(uint32_t)hash, row + 1};
    x->row_count++;
}

void row_index_clear(struct row_index *x)
{
    if (x->row_count > 0)
        memset(x->cells, 0, x->cell_count * sizeof *x->cells);
    x->row_count = 0;
}

void row_index_done(struct row_index *x)
{
    free(x->cells);
    *x = (struct row_index){0};
}

bool row_index_next(const struct row_index *x, size_t hash, uint32_t *probe, uint32_t *ret_row)
{
    uint32_t mask = x->cell_count - 1;
    while (*probe < x->cell_count) {
        const struct row_cell *cell = &x->cells[((uint32_t)hash + *probe) & mask];
        if (cell->row_plus_1 == 0)
            return false;
        ++*probe;
        if (cell->hash == (uint32_t)hash) {
            *ret_row = cell->row_plus_1 - 1;
            return true;
        }
    }
    return false;
}

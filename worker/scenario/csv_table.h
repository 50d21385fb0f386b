/* CSV text -> rows of cells (RFC 4180: quotes, doubled quotes, line ends within quotes, CRLF or
 * LF). Blank lines are passed over, as by Python's csv.DictReader. One thread; its memory is its
 * arena's. */
#ifndef CICADA_WORKER_SCENARIO_CSV_TABLE_H
#define CICADA_WORKER_SCENARIO_CSV_TABLE_H

#include "base/err.h"
#include "base/str.h"
#include "worker/scenario/arena.h"

#include <stdint.h>

#define CSV_TABLE_MAX_COLUMNS 1000
#define CSV_TABLE_MAX_CELLS   8000000 /* 16 bytes each, besides the text */

struct csv_table {
    struct str *cells; /* row by row; views into the text */
    size_t cell_count;
    uint32_t columns; /* of each row */
    uint32_t rows;
};

/* The text is changed in place (quotes are taken out) and must outlive the cells. Every row has as
 * many cells as the first. 0; -EINVAL with err "LINE: …"; -ENOMEM. */
MUST_USE int csv_table_read(char *text, size_t len, char separator, struct arena *arena,
                            struct csv_table *ret, struct err *err);

#endif

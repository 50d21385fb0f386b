/* What 'cicada calibrate' tells: a row for each window, the answer as text and as JSON. Pure. */
#ifndef CICADA_WORKER_CLI_CALIBRATE_TEXT_H
#define CICADA_WORKER_CLI_CALIBRATE_TEXT_H

#include "base/buf.h"
#include "worker/runner/calibrate.h"

#include <jansson.h>

/* The wished load; unknown: none was given. */
struct calibrate_wish {
    struct measure users;
    struct measure rate; /* requests a second */
};

/* A line of the table, with its newline. 0, -ENOMEM, -ERANGE (as buf.h). */
MUST_USE int calibrate_text_head(struct buf *out);
MUST_USE int calibrate_text_row(const struct capacity_window *w, enum capacity_limit over,
                                struct buf *out);

/* What ended the search, as one sentence without a full stop. */
MUST_USE int calibrate_text_why(const struct calibration *c, struct buf *out);

/* The answer: what one worker sustains, what limited it, and workers for each wish. */
MUST_USE int calibrate_text_answer(const struct calibration *c, const struct calibrate_wish *wish,
                                   struct buf *out);

/* The same and all windows; what was not measured is null. NULL: no memory. */
json_t *calibrate_json(const struct calibration *c, const struct calibrate_wish *wish);

#endif

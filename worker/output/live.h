/* The live view: how a run stands, in the lower lines of a terminal. Pure text; base/log draws it.
 */
#ifndef CICADA_WORKER_OUTPUT_LIVE_H
#define CICADA_WORKER_OUTPUT_LIVE_H

#include "worker/output/pen.h"
#include "worker/report/report.h"

struct live_screen {
    unsigned rows;
    unsigned columns;
    bool colour;
};

/* Lines with newlines between, fewer than the screen has rows; nothing on a screen that is too low
 * to show anything. */
void live_text(struct pen *p, const struct report *now, struct live_screen screen);

#endif

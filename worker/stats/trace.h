/* Traced requests as text: the header that lets the servers' own tracing take part, and the rows of
 * traces.txt. Pure, any thread. Source of the header: W3C Trace Context (version 00). */
#ifndef CICADA_WORKER_STATS_TRACE_H
#define CICADA_WORKER_STATS_TRACE_H

#include "base/buf.h"
#include "base/random.h"

#include <stdbool.h>
#include <stdint.h>

#define TRACE_ID_BYTES   33 /* 32 hexadecimal digits and a NUL */
#define TRACE_LINE_BYTES (sizeof "traceparent: 00-" + 32 + 1 + 16 + 3)

/* Draw a trace and write its header, without line end: "traceparent: 00-TRACE-PARENT-01". */
void trace_draw(struct rng *rng, char ret_id[static TRACE_ID_BYTES],
                char ret_line[static TRACE_LINE_BYTES]);

/* The trace id of a header's value that somebody else made. False: it is none that servers would
 * take. */
bool trace_id_of(struct str value, char ret_id[static TRACE_ID_BYTES]);

struct trace_row {
    double wall_s; /* when the request was sent */
    struct str name;
    uint64_t duration_us;
    bool scheduled; /* the duration counts from its scheduled start, else from when it was sent */
    const char *id;
    struct str error; /* empty: none */
};

/* Append "time, name, duration_ms, latency_source, trace_id, err" with tabs between and a newline
 * behind; b is unchanged on failure. 0, -ERANGE, -ENOMEM. */
MUST_USE int trace_row_add(struct buf *b, const struct trace_row *row);

#endif

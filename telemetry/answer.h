/* Answers of a Prometheus server, from their JSON text. Pure: bytes in, samples out; any thread. A
 * sample that is not a finite number is left out alone, and so is one that is malformed; what the
 * server remarks beside it is kept as text. */
#ifndef CICADA_TELEMETRY_ANSWER_H
#define CICADA_TELEMETRY_ANSWER_H

#include "base/buf.h"

#include <jansson.h>
#include <stddef.h>

#define ANSWER_BODY_BYTES    (32u * 1024 * 1024) /* 11,000 points of 100 series, about */
#define ANSWER_SERIES_MAX    100000
#define ANSWER_REMARKS_BYTES 1024 /* of all warnings or infos together; the rest is dropped */

struct query_answer_sample {
    double wall_s;
    double value; /* finite */
};

struct query_answer_series {
    json_t *labels; /* an object of strings; {} for a scalar */
    struct query_answer_sample *samples;
    size_t count; /* may be 0 */
};

struct query_answer {
    struct query_answer_series *series;
    size_t count;
    size_t dropped;             /* samples left out */
    struct buf warnings, infos; /* "'…'; '…'", one line; empty when there were none */
};

/* Parse the body of a 2xx answer to an instant query (scalar, vector) or a range query (matrix).
 * 0; -EPROTO with the reason in err: not JSON, an HTML page, "status":"error", a result of another
 * kind; -ERANGE: over the limits above; -ENOMEM. ret is written in any case; query_answer_done it.
 */
MUST_USE int query_answer_parse(struct str body, struct query_answer *ret, struct err *err);
void query_answer_done(struct query_answer *a);

/* Why a server said no, from the body of an answer that is not 2xx: "bad_data: 'parse error …'".
 * False, and nothing appended, when the body is no error of a Prometheus server. */
bool query_answer_add_error(struct buf *b, struct str body);

/* A label's value, or "" when the series has none of that name; valid as long as the answer. */
struct str query_answer_label(const struct query_answer_series *s, const char *name);

/* All values of all series in one array for the caller to free, NULL when there are none.
 * 0, -ENOMEM. */
MUST_USE int query_answer_pool(const struct query_answer *a, double **ret_values,
                               size_t *ret_count);

#endif

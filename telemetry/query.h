/* Queries to one Prometheus server, all at once, each with its own time-out and its own outcome.
 * Blocks until the last has ended: the report thread only. No text made here holds user-info,
 * tokens or header values. */
#ifndef CICADA_TELEMETRY_QUERY_H
#define CICADA_TELEMETRY_QUERY_H

#include "proto/http/http.h"
#include "telemetry/answer.h"
#include "telemetry/window.h"

#define QUERY_INSTANT_TIMEOUT_MS 5000
#define QUERY_RANGE_TIMEOUT_MS   8000
#define QUERY_GET_BYTES          2000  /* longer ones go as POST: proxies cut long URLs */
#define QUERY_POINTS_MAX         11000 /* Prometheus refuses a range query of more points */

/* How to reach the server; borrowed. Zeroed but for url: no credentials, the system's CAs. */
struct query_access {
    const char *url; /* base: "http://user:password@host:9090/prometheus/" keeps its path */
    const char *bearer_token;
    const char *username, *password;
    const char *const *headers; /* "Name: value" */
    size_t header_count;
    struct http_tls tls;
};

struct query {
    char *text;
    bool is_range;
    struct window span; /* an instant query is asked at span.end_s */
    double step_s;      /* of a range query */
};

struct query_outcome {
    struct query_answer answer; /* empty when the query failed */
    struct err err;             /* code 0, or why it failed in one line */
};

/* The step wanted, or a larger one that keeps within QUERY_POINTS_MAX points. */
double query_step_s(struct window span, double wanted_s);

/* Append the part behind the base URL of a query: path, and form ("query=…&start=…"). Pure.
 * 0, -ERANGE, -ENOMEM. */
const char *query_path(const struct query *q);
MUST_USE int query_add_form(struct buf *b, const struct query *q);

/* Is the base URL an absolute http or https URL without query and fragment? 0, -EINVAL. */
MUST_USE int query_check_url(const char *url, struct err *err);

/* Ask all; ret_outcomes holds count, written in any case, query_outcome_done each. abort_fd as in
 * http_fetch. 0, or -ENOMEM, which each outcome then says too. */
MUST_USE int query_ask(const struct query_access *access, const struct query *queries, size_t count,
                       int abort_fd, struct query_outcome *ret_outcomes);
void query_outcome_done(struct query_outcome *o);

#endif

/* Tracing of a sampled share of the requests: which ones, the header that is sent with them, and
 * their rows, which go to the engine together with the samples. A shard has one when tracing is
 * wished for at all; without, no request is looked at. The shard's thread only. */
#ifndef CICADA_WORKER_ENGINE_TRACER_H
#define CICADA_WORKER_ENGINE_TRACER_H

#include "worker/engine/http.h"
#include "worker/stats/trace.h"

#include "base/buf.h"

/* Rows that wait for the engine, which takes them each second. From so many bytes on no further
 * request is traced; those under way still find room. */
#define TRACER_FULL_BYTES ((size_t)1 << 20)
#define TRACER_MAX_BYTES  ((size_t)8 << 20)
#define TRACER_MAX_SPARE  256

struct shard;
struct user;

/* A traced request while it is under way. */
struct trace {
    struct trace *next;    /* among the spare ones */
    struct http_call call; /* the request's own and the header; unused for one that has its own */
    char id[TRACE_ID_BYTES];
    char line[TRACE_LINE_BYTES];
};

struct tracer {
    struct rng rng; /* apart from the shard's, whose choices tracing must not change */
    double ratio;
    bool on;            /* in this run */
    uint64_t rows_left; /* of this run */
    uint64_t left_out;  /* would have been traced, had there been room; since ever */
    struct buf rows;
    struct trace *spare;
    size_t spare_count;
};

/* ratio: above 0, at most 1. NULL: no memory. */
struct tracer *tracer_new(double ratio);
void tracer_free(struct tracer *t);

/* A run begins, with room for so many rows; 0: nothing of it is traced. */
void tracer_begin_run(struct tracer *t, uint64_t rows);

/* The user sends a call: what is to be sent in its place, which may be the call itself. A header
 * that the scenario gives is left as it is, and its trace is taken. */
const struct http_call *tracer_send(struct tracer *t, struct user *u, const struct http_call *call);

/* The user's request ended, or was cut; it was traced. error empty: a success. */
void tracer_record(struct user *u, struct str name, struct str error, uint64_t end_us);

/* The user goes, and with it what is still of a traced request. */
void tracer_forget(struct user *u);

#endif

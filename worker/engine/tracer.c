#include "worker/engine/tracer.h"

#include "worker/engine/user.h"

#include <stdlib.h>

struct tracer *tracer_new(double ratio)
{
    struct tracer *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    rng_init(&t->rng, rng_seed_from_system()); /* ids must not repeat, whatever seed a test has */
    t->ratio = ratio;
    buf_init(&t->rows, TRACER_MAX_BYTES);
    return t;
}

void tracer_free(struct tracer *t)
{
    if (!t)
        return;
    while (t->spare) {
        struct trace *spare = t->spare;
        t->spare = spare->next;
        free(spare);
    }
    buf_done(&t->rows);
    free(t);
}

void tracer_begin_run(struct tracer *t, uint64_t rows)
{
    t->on = rows > 0;
    t->rows_left = rows;
}

static struct trace *take(struct tracer *t)
{
    struct trace *trace = t->spare;
    if (!trace)
        return malloc(sizeof *trace);
    t->spare = trace->next;
    t->spare_count--;
    return trace;
}

void tracer_forget(struct user *u)
{
    struct tracer *t = u->shard->tracer;
    struct trace *trace = u->trace;
    u->trace = NULL;
    if (!trace)
        return;
    if (t->spare_count == TRACER_MAX_SPARE) {
        free(trace);
        return;
    }
    trace->next = t->spare;
    t->spare = trace;
    t->spare_count++;
}

static const struct plan_header *own_header(const struct http_call *call)
{
    for (size_t i = 0; i < call->header_count; i++) {
        if (str_eq_nocase(call->headers[i].name, STR("traceparent")))
            return &call->headers[i];
    }
    return NULL;
}

const struct http_call *tracer_send(struct tracer *t, struct user *u, const struct http_call *call)
{
    char id[TRACE_ID_BYTES];
    const struct plan_header *own;
    tracer_forget(u);
    if (!t->on || rng_unit(&t->rng) >= t->ratio)
        return call;
    if ((own = own_header(call)) && !trace_id_of(own->value, id))
        return call; /* no server takes it for a trace */
    struct trace *trace = t->rows_left > 0 && t->rows.len < TRACER_FULL_BYTES ? take(t) : NULL;
    if (!trace) {
        t->left_out++;
        return call;
    }
    t->rows_left--;
    u->trace = trace;
    trace->call = *call;
    if (own) {
        memcpy(trace->id, id, sizeof id);
        return call;
    }
    trace_draw(&t->rng, trace->id, trace->line);
    trace->call.added = str_of(trace->line);
    trace->call.once = true; /* another one may come to lie at this address */
    return &trace->call;
}

void tracer_record(struct user *u, struct str name, struct str error, uint64_t end_us)
{
    struct shard *s = u->shard;
    const struct trace_row row = {
        .wall_s = (double)u->request_sent_us / 1e6 + s->wall_offset_s,
        .name = name,
        .duration_us = end_us - u->request_start_us,
        .scheduled = u->request_start_us != u->request_sent_us,
        .id = u->trace->id,
        .error = error,
    };
    if (trace_row_add(&s->tracer->rows, &row) < 0)
        s->tracer->left_out++;
    tracer_forget(u);
}

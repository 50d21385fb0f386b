/* A plan bound to a host: every request of every task as an absolute URL, prepared once for the
 * HTTP engine. Made by the runner's thread; read by the shards, whose users hold references: users
 * of an old host end with the URLs they began with. */
#ifndef CICADA_WORKER_ENGINE_BINDING_H
#define CICADA_WORKER_ENGINE_BINDING_H

#include "base/err.h"
#include "worker/engine/http.h"
#include "worker/scenario/plan.h"

#include <stdatomic.h>

struct bound_task {
    const struct http_call *calls; /* one for each step of the plan's task; a request that is made
                                    * when it is sent is not prepared, and may have no URL yet */
};

struct bound_class {
    const struct bound_task *tasks;
    struct bound_task on_start, on_stop;
    struct str host;                   /* of paths; ptr NULL: none, or one with variables */
    const struct plan_text *host_text; /* the latter; NULL: none */
    bool lacks_host;                   /* it has paths and no host: its users cannot run */
};

/* What a variable got from outside. */
struct bound_input {
    struct str text; /* ptr NULL: nothing */
    bool json;       /* a number or a boolean, as the scenario's own value is */
};

/* What bindings are made with, beside the plan; borrowed. */
struct binding_inputs {
    char *const *values; /* by variable; NULL: it got none */
    uint32_t worker;     /* number of this process among the master's workers */
};

struct binding {
    atomic_uint references;
    const struct plan *plan;
    const struct http_ops *ops;
    struct bound_class *classes;
    struct bound_task *tasks;
    struct http_call *calls;
    size_t call_count;
    char *urls;                 /* of the calls, then the hosts */
    struct bound_input *inputs; /* by variable; NULL: none */
    uint32_t worker;
};

/* host wins over the plan's and the classes' own; ptr NULL: none. The caller has one reference.
 * 0; -EINVAL (host is no usable http(s) URL: err says why); -ENOMEM. */
MUST_USE int binding_new(const struct plan *plan, const struct http_ops *ops, struct str host,
                         const struct binding_inputs *inputs, struct binding **ret,
                         struct err *err);

static inline struct binding *binding_ref(struct binding *b)
{
    atomic_fetch_add_explicit(&b->references, 1, memory_order_relaxed);
    return b;
}

/* The last reference frees it; NULL is nothing. */
void binding_unref(struct binding *b);

#endif

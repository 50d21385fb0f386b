/* Requests of C tasks, prepared once and found again by what they are made of: a task gives the
 * same constant texts each time, so that its requests cost no more than a scenario's. Bounded: what
 * is seldom asked for makes room, and what is too large is made for once. The shard's thread
 * only. */
#ifndef CICADA_WORKER_ENGINE_NATIVE_CALL_H
#define CICADA_WORKER_ENGINE_NATIVE_CALL_H

#include "worker/engine/binding.h"
#include "worker/stats/stats.h"

#include "include/cicada.h"

#define NATIVE_CALL_SETS       1024              /* of four each: 4,096 requests */
#define NATIVE_CALL_KEPT_BYTES 8192              /* of texts and body; larger ones are not kept */
#define NATIVE_CALL_QUICK      256               /* found by where their URL lies */
#define NATIVE_CALL_BODY_BYTES ((size_t)1 << 20) /* of a response, unless the task says another */

/* What a task asks for: a method and a URL with nothing else to it, as most are, or all of it. */
struct native_ask {
    const char *method; /* of our own, so that where it lies says what it is; NULL: whole */
    const char *url;
    const struct cicada_request *whole;
};

struct native_call {
    struct http_call call;
    bool follow;       /* redirects */
    const char *error; /* why it cannot be sent; NULL: it can */

    /* what it is found by */
    const char *quick_url, *quick_method; /* NULL: not by these */
    uint64_t hash;
    struct binding *binding; /* a reference, so that no other host comes to lie at this address */
    struct str host;         /* the binding's; ptr NULL: none */
    struct str url, name, body; /* as given; name.ptr NULL: none */
    struct str method;
    const struct plan_header *headers;
    size_t header_count;
    size_t body_limit;
    struct plan_timeouts timeouts;

    uint64_t used; /* when it was last asked for; counts up */
    uint32_t pins;
    bool kept;
    struct str row; /* name of its row */
    uint32_t slot;  /* in slot_of */
    const struct stats *slot_of;
    void *memory; /* texts */
};

struct native_calls;

/* NULL: no memory. */
struct native_calls *native_calls_new(const struct http_ops *ops);
void native_calls_free(struct native_calls *calls);

/* The request of a task, for a host of the binding (ptr NULL: none). It stays until
 * native_call_release. NULL: no memory. */
struct native_call *native_call_get(struct native_calls *calls, struct binding *binding,
                                    struct str host, const struct native_ask *ask);
void native_call_release(struct native_calls *calls, struct native_call *call);

/* Its row in a set. 0, -ENOMEM. */
static inline int native_call_slot(struct native_call *call, struct stats *set, uint32_t *ret)
{
    if (__builtin_expect(call->slot_of != set, 0)) {
        int rc = stats_slot(set, call->method, call->row, &call->slot);
        if (rc < 0)
            return rc;
        call->slot_of = set;
    }
    *ret = call->slot;
    return 0;
}

#endif

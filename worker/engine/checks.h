/* Tests of a plan, decided: those of responses and those of conditions. The shard's thread only. */
#ifndef CICADA_WORKER_ENGINE_CHECKS_H
#define CICADA_WORKER_ENGINE_CHECKS_H

#include "worker/engine/http.h"
#include "worker/engine/json_tape.h"

struct user;

/* A response as checks and extraction see it. */
struct answer {
    const struct http_result *result;
    uint64_t response_time_us;
    struct json_tape *tape; /* the shard's; read when it is first asked for */
    bool json_is_read;
    bool json_is_valid;
};

/* The value that a JSON Pointer names in the body, by its place on the tape; JSON_TAPE_NONE: there
 * is none, or the body is no JSON. */
uint32_t answer_json(struct answer *a, const struct plan_pointer *pointer);
void answer_done(struct answer *a);

/* The first header of a name; false: none. A view into the result. */
bool answer_header(const struct http_result *result, struct str name, struct str *ret_value);

/* Does the test hold? answer is NULL for a condition's. A value that is not there equals nothing
 * and is smaller and larger than nothing. 0 or 1; -ENODATA: a feed is at its end; -ENOMEM. */
MUST_USE int check_holds(struct user *u, const struct plan_test *test, struct answer *answer,
                         uint64_t now_us);

/* All of them. */
MUST_USE int checks_hold(struct user *u, const struct plan_test *tests, size_t count,
                         struct answer *answer, uint64_t now_us,
                         const struct plan_test **ret_first);

#endif

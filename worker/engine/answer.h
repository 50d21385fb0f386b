/* What a response is worth: its checks are decided, and parts of it become variables. The shard's
 * thread only. */
#ifndef CICADA_WORKER_ENGINE_ANSWER_H
#define CICADA_WORKER_ENGINE_ANSWER_H

#include "worker/engine/http.h"

struct user;

/* Judge a whole response whose status is accepted. *ret_error is the text to count its failure
 * under, ptr NULL: none failed. Variables are set up to the first failure.
 * 0, or -ENODATA: a feed is at its end, and the user with it. */
MUST_USE int answer_judge(struct user *u, const struct plan_request *request,
                          const struct http_result *result, uint64_t response_time_us,
                          uint64_t now_us, struct str *ret_error);

#endif

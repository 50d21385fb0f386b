/* A user's requests: made, sent, redirected, judged and recorded. What comes before and after them
 * is the user's business. The shard's thread only. */
#ifndef CICADA_WORKER_ENGINE_REQUESTS_H
#define CICADA_WORKER_ENGINE_REQUESTS_H

#include "worker/engine/redirect.h"
#include "worker/engine/user.h"

/* Begin the request of the user's present step. */
enum requests_begun {
    REQUESTS_UNDER_WAY,   /* requests_answered will be called */
    REQUESTS_FAILED,      /* at once, and was recorded */
    REQUESTS_END_OF_FEED, /* nothing was begun: there is no row for the user any more */
};
enum requests_begun requests_begin(struct user *u, uint64_t now_us);

/* The HTTP engine says that it ended. Unless it was redirected it is recorded. */
enum requests_end {
    REQUESTS_ANSWERED,
    REQUESTS_REDIRECTED,     /* the next hop is under way */
    REQUESTS_NOT_REDIRECTED, /* the next hop could not be begun */
};
enum requests_end requests_answered(struct user *u, const struct http_result *result,
                                    uint64_t now_us);

/* The parts of both, for whoever makes and records requests otherwise. requests_send counts the
 * request as started and in flight; HTTP_FAILURE_NONE: it is under way. */
void requests_stamp(struct user *u, uint64_t now_us);
enum http_failure requests_send(struct user *u, uint64_t now_us);
static inline bool requests_redirects(const struct http_result *result)
{
    return result->location.ptr && result->failure == HTTP_FAILURE_NONE &&
           redirect_status(result->status);
}
/* HTTP_FAILURE_NONE: the next hop is under way. */
enum http_failure requests_follow(struct user *u, const struct http_result *result,
                                  uint64_t now_us);

void requests_take_cookie(struct user *u, struct str value);

/* The call of the present step. */
const struct http_call *requests_call(const struct user *u);

/* A request under way is cut: count it. */
void requests_count_cut(struct user *u, uint64_t now_us);

/* Give back what a request needs while it is under way. */
void requests_forget(struct user *u);

/* A group of requests ended. */
void requests_record_group(struct user *u, uint32_t entry, uint64_t took_us, bool failed,
                           uint64_t now_us);

#endif

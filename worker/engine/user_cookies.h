/* What a user's requests and responses do with its cookies. The shard's thread only. */
#ifndef CICADA_WORKER_ENGINE_USER_COOKIES_H
#define CICADA_WORKER_ENGINE_USER_COOKIES_H

#include "worker/engine/user.h"

/* The Cookie header's value for a call of the user: empty when it has none for that place, or when
 * the scenario's own Cookie header goes instead, as in Locust. Valid until the shard's next call of
 * this function. 0, -ENOMEM. */
MUST_USE int user_cookies_for(struct user *u, const struct http_call *call, uint64_t now_us,
                              struct str *ret);

/* Take in one Set-Cookie header of the response to a call. Without memory the cookie is lost, which
 * the requests that need it will show. */
void user_cookies_take(struct user *u, const struct http_call *call, struct str set_cookie);

#endif

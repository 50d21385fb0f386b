/* A plan in words, for people and for tests: what runs, in which shares. User and password of a
 * host, header values and bodies are not shown. Pure; any thread. */
#ifndef CICADA_WORKER_SCENARIO_DESCRIBE_H
#define CICADA_WORKER_SCENARIO_DESCRIBE_H

#include "worker/scenario/plan.h"

/* Append lines such as
 *
 *   shop.json: 2 user classes, 5 tasks, 9 requests, 7 stats entries
 *   host http://127.0.0.1:8080
 *
 *   Shopper: weight 3 (75 %), wait_time between 1 and 2.5 s
 *     browse: weight 2 (66.7 %), tags read
 *       GET /items?x=1, name "items", expect 200 404, timeout 5 s
 *
 * Shares of classes are of the users that no fixed_count takes. 0, -ERANGE, -ENOMEM. */
MUST_USE int plan_describe(const struct plan *p, struct buf *out);

#endif

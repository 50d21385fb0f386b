/* JSON text -> nodes. Strict RFC 8259; a key given twice is an error. Any thread. */
#ifndef CICADA_WORKER_SCENARIO_NODE_JSON_H
#define CICADA_WORKER_SCENARIO_NODE_JSON_H

#include "worker/scenario/node.h"

/* Build the tree in arena. Its texts point into `text` or the arena, so text must outlive the tree.
 * 0, -EINVAL with err "SOURCE:LINE: …", -ENOMEM. */
MUST_USE int node_from_json(struct str text, const char *source, struct arena *arena,
                            const struct node **ret, struct err *err);

#endif

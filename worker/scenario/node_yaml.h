/* YAML text -> the same nodes that JSON gives. YAML 1.2's core schema, in the part of it that every
 * reader agrees on: what another version of YAML reads otherwise (yes, 010, 1_000) is refused with
 * the way to write it. Aliases are copied; merge keys and tags of one's own are refused. Any
 * thread. */
#ifndef CICADA_WORKER_SCENARIO_NODE_YAML_H
#define CICADA_WORKER_SCENARIO_NODE_YAML_H

#include "worker/scenario/node.h"

/* Build the tree in arena; nothing of it points into the text.
 * 0, -EINVAL with err "SOURCE:LINE: …", -ENOMEM. */
MUST_USE int node_from_yaml(struct str text, const char *source, struct arena *arena,
                            const struct node **ret, struct err *err);

#endif

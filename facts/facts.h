/* Cluster facts: what capacity the worker pods of the server under test had. The inventory is pure:
 * list items in, struct cluster_facts out. facts_read does it all, asking the API server, and
 * blocks for at most a few time-outs: report thread only. A part that cannot be had is unknown
 * with a reason, and the rest is read. */
#ifndef CICADA_FACTS_FACTS_H
#define CICADA_FACTS_FACTS_H

#include "base/measure.h"
#include "facts/credentials.h"
#include "facts/lists.h"
#include "facts/quantity.h"

#define FACTS_POD_NAMESPACE      "benchmark-workloads"
#define FACTS_POD_SELECTOR       "ate.dev/worker-pool"
#define FACTS_MACHINE_TYPE_LABEL "node.kubernetes.io/instance-type"
#define FACTS_TIMEOUT_MS         5000          /* of each call to the API server */
#define FACTS_LONGEST_S          20            /* a login, nodes and pods, pods of all namespaces */
#define FACTS_ANSWER_BYTES       (2048u << 20) /* of one list; it is not kept */
#define FACTS_NODES_MAX          50000         /* kept in memory; Kubernetes is made for 5,000 */
#define FACTS_WHY_BYTES          320

enum facts_scope { FACTS_SCOPE_UNKNOWN, FACTS_SCOPE_WORKER_NODES, FACTS_SCOPE_ALL_NODES };

/* What may be unreadable by itself. */
enum facts_part {
    FACTS_ACCESS,       /* no credentials: nothing was asked */
    FACTS_NODES,        /* the list of nodes: the four measures of capacity */
    FACTS_PODS,         /* the list of pods: their count and which nodes host them */
    FACTS_CORES,        /* one node's quantity */
    FACTS_RAM,          /* the same */
    FACTS_MACHINE_TYPE, /* no node has the label */
    FACTS_PARTS
};

struct cluster_facts {
    struct measure node_count, allocatable_cores, allocatable_ram_gb; /* GiB */
    struct measure worker_pod_count;                                  /* unknown when 0 live ones */
    char *machine_type; /* sorted, joined by commas; owned; NULL: unknown */
    enum facts_scope capacity_scope;
    char why[FACTS_PARTS][FACTS_WHY_BYTES]; /* one line each; "" when there is nothing to say */
};

void cluster_facts_done(struct cluster_facts *f);

/* "worker_nodes", "all_nodes", NULL for unknown. */
const char *facts_scope_name(enum facts_scope scope);
/* "credentials", "nodes", "pods", "allocatable_cores", … for log lines. */
const char *facts_part_name(enum facts_part part);

/* One readable line: "2 worker nodes (n2-standard-4), 7.84 cores, 25.92 GiB, 4 worker pods"; what
 * is unknown is called so. 0, -ERANGE, -ENOMEM. */
MUST_USE int cluster_facts_describe(const struct cluster_facts *f, struct buf *ret);

/* --- the pure half ------------------------------------------------------------------------------
 */

struct facts_node;
struct facts_host;

/* Nodes, and what pods said. Zeroed at first. */
struct inventory {
    struct facts_node *nodes;
    size_t node_count, node_cap;
    struct facts_host *hosts; /* a table of the names of nodes that host live worker pods */
    size_t host_count, host_cap;
    unsigned long live_pods;
};

/* Keep what matters of one item; the types of list_item_fn, arg being the inventory.
 * 0; -ERANGE (more than FACTS_NODES_MAX names); -ENOMEM. */
MUST_USE int inventory_add_node(void *inventory, const struct list_item *node, struct err *err);
MUST_USE int inventory_add_pod(void *inventory, const struct list_item *pod, struct err *err);
void inventory_clear_nodes(struct inventory *i);
void inventory_clear_pods(struct inventory *i);
void inventory_done(struct inventory *i);

/* What the inventory amounts to. A part that could not be read is told by its line in ret->why
 * (FACTS_NODES, FACTS_PODS), which the caller has set before in a zeroed *ret; more lines may be
 * added. 0, or -ENOMEM with *ret still fit for cluster_facts_done. */
MUST_USE int inventory_facts(const struct inventory *i, struct cluster_facts *ret);

/* --- all in one ---------------------------------------------------------------------------------
 */

struct facts_options {
    struct credentials_options credentials;
    const char *pod_namespace;      /* NULL: FACTS_POD_NAMESPACE */
    const char *pod_selector;       /* NULL: FACTS_POD_SELECTOR; a label selector */
    const char *machine_type_label; /* NULL: FACTS_MACHINE_TYPE_LABEL */
    unsigned timeout_ms;            /* 0: FACTS_TIMEOUT_MS */
    int abort_fd;                   /* readable: give up at once; -1: never */
};

/* Ask the API server for nodes and pods at once, and for the pods of all namespaces when the one
 * has no live worker pod. *ret is written in any case; cluster_facts_done it. curl must have been
 * initialised. 0, or -ENOMEM with all unknown. */
MUST_USE int facts_read(const struct facts_options *options, struct cluster_facts *ret);

#endif

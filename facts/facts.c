/* The pure half: lists to facts. Nodes are kept by name with their exact quantities, hosts in an
 * open-addressed set; only when both lists are in is it known which nodes count. */
#include "facts/facts.h"

#include "base/num.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_NODES 64
#define FIRST_HOSTS 64 /* a power of two */

/* A quantity of one node: absent, refused, or there. */
struct amount {
    bool known;
    struct quantity quantity;
    char refused[48]; /* its text when it is no quantity; cut */
};

struct facts_node {
    char *name, *machine_type; /* owned; machine_type NULL: no label */
    struct amount cpu, memory;
};

struct facts_host {
    char *name; /* owned; NULL: a free place */
};

const char *facts_scope_name(enum facts_scope scope)
{
    switch (scope) {
    case FACTS_SCOPE_UNKNOWN:
        return NULL;
    case FACTS_SCOPE_WORKER_NODES:
        return "worker_nodes";
    case FACTS_SCOPE_ALL_NODES:
        return "all_nodes";
    }
    return NULL;
}

const char *facts_part_name(enum facts_part part)
{
    switch (part) {
    case FACTS_ACCESS:
        return "credentials";
    case FACTS_NODES:
        return "nodes";
    case FACTS_PODS:
        return "pods";
    case FACTS_CORES:
        return "allocatable_cores";
    case FACTS_RAM:
        return "allocatable_ram_gb";
    case FACTS_MACHINE_TYPE:
        return "machine_type";
    case FACTS_PARTS:
        break;
    }
    return "";
}

void cluster_facts_done(struct cluster_facts *f)
{
    free(f->machine_type);
    f->machine_type = NULL;
}

static void say_why(struct cluster_facts *f, enum facts_part part, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The first reason stands. */
static void say_why(struct cluster_facts *f, enum facts_part part, const char *format, ...)
{
    if (f->why[part][0])
        return;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(f->why[part], FACTS_WHY_BYTES, format, args); /* cut is fine */
    va_end(args);
}

/* --- collecting ---------------------------------------------------------------------------------
 */

static int copy(char **ret, struct str text)
{
    *ret = strndup(text.len ? text.ptr : "", text.len);
    return *ret ? 0 : -ENOMEM;
}

static void take_amount(struct amount *a, struct str text)
{
    *a = (struct amount){0};
    if (!text.ptr)
        return;
    a->known = quantity_parse(text, &a->quantity) == 0;
    if (!a->known)
        (void)snprintf(a->refused, sizeof a->refused, "%.*s", STR_ARG(text)); /* cut is fine */
}

static int grow_nodes(struct inventory *i, struct err *err)
{
    if (i->node_count == FACTS_NODES_MAX)
        return err_set(err, -ERANGE, "more than %d nodes", FACTS_NODES_MAX);
    if (i->node_count < i->node_cap)
        return 0;
    size_t cap = i->node_cap ? i->node_cap * 2 : FIRST_NODES;
    struct facts_node *grown = realloc(i->nodes, cap * sizeof *grown);
    if (!grown)
        return err_set(err, -ENOMEM, "out of memory");
    i->nodes = grown;
    i->node_cap = cap;
    return 0;
}

int inventory_add_node(void *inventory, const struct list_item *node, struct err *err)
{
    struct inventory *i = inventory;
    int rc = grow_nodes(i, err);
    if (rc < 0)
        return rc;
    struct facts_node n = {0};
    rc = copy(&n.name, node->field[LIST_NAME]);
    if (rc == 0 && node->field[LIST_MACHINE_TYPE].len > 0)
        rc = copy(&n.machine_type, node->field[LIST_MACHINE_TYPE]);
    if (rc < 0) {
        free(n.name);
        return err_set(err, rc, "out of memory");
    }
    take_amount(&n.cpu, node->field[LIST_CPU]);
    take_amount(&n.memory, node->field[LIST_MEMORY]);
    i->nodes[i->node_count++] = n;
    return 0;
}

/* The place of a name, or the free one where it belongs. There is always a free one. */
static struct facts_host *host_place(const struct inventory *i, struct str name)
{
    size_t at = str_hash(name) & (i->host_cap - 1);
    while (i->hosts[at].name && !str_eq(str_of(i->hosts[at].name), name))
        at = (at + 1) & (i->host_cap - 1);
    return &i->hosts[at];
}

static int grow_hosts(struct inventory *i, struct err *err)
{
    if (i->host_count == FACTS_NODES_MAX)
        return err_set(err, -ERANGE, "pods on more than %d nodes", FACTS_NODES_MAX);
    if (i->host_count * 2 < i->host_cap)
        return 0;
    struct inventory grown = *i;
    grown.host_cap = i->host_cap ? i->host_cap * 2 : FIRST_HOSTS;
    grown.hosts = calloc(grown.host_cap, sizeof *grown.hosts);
    if (!grown.hosts)
        return err_set(err, -ENOMEM, "out of memory");
    for (size_t k = 0; k < i->host_cap; k++) {
        if (i->hosts[k].name)
            *host_place(&grown, str_of(i->hosts[k].name)) = i->hosts[k];
    }
    free(i->hosts);
    *i = grown;
    return 0;
}

int inventory_add_pod(void *inventory, const struct list_item *pod, struct err *err)
{
    struct inventory *i = inventory;
    struct str phase = pod->field[LIST_PHASE], host = pod->field[LIST_NODE_NAME];
    if (!str_eq(phase, STR("Running")) && !str_eq(phase, STR("Pending")))
        return 0;
    if (host.len > 0) { /* not yet scheduled ones name none */
        int rc = grow_hosts(i, err);
        if (rc < 0)
            return rc;
        struct facts_host *place = host_place(i, host);
        if (!place->name) {
            if (copy(&place->name, host) < 0)
                return err_set(err, -ENOMEM, "out of memory");
            i->host_count++;
        }
    }
    i->live_pods++;
    return 0;
}

void inventory_clear_nodes(struct inventory *i)
{
    for (size_t k = 0; k < i->node_count; k++) {
        free(i->nodes[k].name);
        free(i->nodes[k].machine_type);
    }
    i->node_count = 0;
}

void inventory_clear_pods(struct inventory *i)
{
    for (size_t k = 0; k < i->host_cap; k++) {
        free(i->hosts[k].name);
        i->hosts[k].name = NULL;
    }
    i->host_count = 0;
    i->live_pods = 0;
}

void inventory_done(struct inventory *i)
{
    inventory_clear_nodes(i);
    inventory_clear_pods(i);
    free(i->nodes);
    free(i->hosts);
    *i = (struct inventory){0};
}

/* --- adding up ----------------------------------------------------------------------------------
 */

struct sums {
    size_t nodes;
    bool cores_known, ram_known;
    struct quantity cores, ram;
    const char **types; /* borrowed from the nodes */
    size_t type_count;
};

static void add_amount(struct cluster_facts *f, enum facts_part part, const struct facts_node *n,
                       const struct amount *a, const char *what, bool *known, struct quantity *sum)
{
    if (a->known && quantity_add(sum, a->quantity) == 0)
        return;
    if (a->known)
        say_why(f, part, "node %.100s: the sum of %s is too large", n->name, what);
    else if (a->refused[0])
        say_why(f, part, "node %.100s: %s '%s' is not a quantity", n->name, what, a->refused);
    else
        say_why(f, part, "node %.100s: no allocatable %s", n->name, what);
    *known = false;
}

static bool counts(const struct inventory *i, const struct facts_node *n, bool hosts_only)
{
    return !hosts_only || host_place(i, str_of(n->name))->name;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int join_types(struct sums *s, char **ret)
{
    struct buf joined;
    int rc = 0;
    buf_init(&joined, (size_t)FACTS_NODES_MAX * LIST_TEXT_BYTES);
    qsort(s->types, s->type_count, sizeof *s->types, by_text);
    for (size_t k = 0; rc == 0 && k < s->type_count; k++) {
        if (k > 0 && strcmp(s->types[k], s->types[k - 1]) == 0)
            continue;
        rc = buf_printf(&joined, "%s%s", k > 0 ? "," : "", s->types[k]);
    }
    if (rc == 0)
        *ret = buf_take(&joined);
    buf_done(&joined);
    return rc;
}

static int add_up(const struct inventory *i, bool hosts_only, struct cluster_facts *f)
{
    struct sums s = {.cores_known = true, .ram_known = true};
    s.types = calloc(i->node_count + 1, sizeof *s.types);
    if (!s.types)
        return -ENOMEM;
    for (size_t k = 0; k < i->node_count; k++) {
        const struct facts_node *n = &i->nodes[k];
        if (!counts(i, n, hosts_only))
            continue;
        s.nodes++;
        if (n->machine_type)
            s.types[s.type_count++] = n->machine_type;
        add_amount(f, FACTS_CORES, n, &n->cpu, "cpu", &s.cores_known, &s.cores);
        add_amount(f, FACTS_RAM, n, &n->memory, "memory", &s.ram_known, &s.ram);
    }
    int rc = 0;
    if (s.nodes == 0) {
        say_why(f, FACTS_NODES, "%s",
                hosts_only ? "none of the nodes that host worker pods is in the list of nodes"
                           : "the list of nodes is empty");
    } else {
        f->capacity_scope = hosts_only ? FACTS_SCOPE_WORKER_NODES : FACTS_SCOPE_ALL_NODES;
        f->node_count = measure_of((double)s.nodes);
        if (s.cores_known)
            f->allocatable_cores = measure_of(num_round(quantity_units(s.cores), 2));
        if (s.ram_known)
            f->allocatable_ram_gb = measure_of(num_round(quantity_gib(s.ram), 2));
        if (s.type_count > 0)
            rc = join_types(&s, &f->machine_type);
        else
            say_why(f, FACTS_MACHINE_TYPE, "no node has the label");
    }
    free(s.types);
    return rc;
}

int inventory_facts(const struct inventory *i, struct cluster_facts *ret)
{
    bool pods = !ret->why[FACTS_PODS][0], nodes = !ret->why[FACTS_NODES][0];
    if (pods && i->live_pods > 0)
        ret->worker_pod_count = measure_of((double)i->live_pods);
    else
        say_why(ret, FACTS_PODS, "no pod of the selector is Running or Pending");
    return nodes ? add_up(i, pods && i->host_count > 0, ret) : 0;
}

/* --- in words -----------------------------------------------------------------------------------
 */

static int add_measure(struct buf *b, const char *before, struct measure m, const char *unit)
{
    char text[NUM_TEXT_BYTES] = "unknown";
    if (m.known)
        num_format_repr(m.value, text);
    struct str shown = str_of(text);
    if (str_ends(shown, STR(".0")))
        shown.len -= 2;
    return buf_printf(b, "%s%.*s %s", before, STR_ARG(shown), unit);
}

int cluster_facts_describe(const struct cluster_facts *f, struct buf *ret)
{
    int rc = add_measure(ret, "", f->node_count,
                         f->capacity_scope == FACTS_SCOPE_WORKER_NODES ? "worker nodes" : "nodes");
    if (rc == 0)
        rc = buf_printf(ret, " (%s)", f->machine_type ? f->machine_type : "unknown type");
    if (rc == 0)
        rc = add_measure(ret, ", ", f->allocatable_cores, "cores");
    if (rc == 0)
        rc = add_measure(ret, ", ", f->allocatable_ram_gb, "GiB");
    if (rc == 0)
        rc = add_measure(ret, ", ", f->worker_pod_count, "worker pods");
    return rc;
}

#include "worker/report/cicada_object.h"

#include <math.h>

#define WHOLE_MAX 9007199254740992.0 /* up to it every whole number is a double */

/* A whole number goes out as one: 5 nodes, not 5.0. */
static json_t *count_json(struct measure m)
{
    if (!m.known)
        return json_null();
    if (m.value == floor(m.value) && fabs(m.value) <= WHOLE_MAX)
        return json_integer((json_int_t)m.value);
    return json_real(m.value);
}

static json_t *number_json(struct measure m)
{
    return m.known ? json_real(m.value) : json_null();
}

static json_t *text_json(const char *text)
{
    return text ? json_string(text) : json_null();
}

/* NULL when a member could not be made; packing takes those that could in any case. */
json_t *cluster_facts_json(const struct cluster_facts *facts)
{
    static const struct cluster_facts none = {0};
    const struct cluster_facts *f = facts ? facts : &none;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "machine_type", text_json(f->machine_type),
                     "node_count", count_json(f->node_count), "allocatable_cores",
                     number_json(f->allocatable_cores), "allocatable_ram_gb",
                     number_json(f->allocatable_ram_gb), "worker_pod_count",
                     count_json(f->worker_pod_count), "capacity_scope",
                     text_json(facts_scope_name(f->capacity_scope)));
}

json_t *frontiers_json(const struct frontiers *frontiers)
{
    static const struct frontiers none = {0};
    const struct frontiers *f = frontiers ? frontiers : &none;
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "actors_per_node",
        number_json(f->actors_per_node), "actors_per_vcpu", number_json(f->actors_per_vcpu),
        "actors_per_gb_ram", number_json(f->actors_per_gb_ram), "ap_ratio_p50",
        number_json(f->ap_ratio_p50), "ap_ratio_p90", number_json(f->ap_ratio_p90), "ap_ratio_p99",
        number_json(f->ap_ratio_p99), "actors_per_pod_p50", number_json(f->actors_per_pod_p50),
        "actors_per_pod_p90", number_json(f->actors_per_pod_p90), "actors_per_pod_p99",
        number_json(f->actors_per_pod_p99), "aggregate_failure_ratio",
        number_json(f->aggregate_failure_ratio));
}

static json_t *actors_json(const struct actors_summary *a)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "running_actors_peak",
                     count_json(a->running_peak), "running_actors_p50", count_json(a->running_p50),
                     "running_actors_p90", count_json(a->running_p90), "live_actors_peak",
                     count_json(a->live_peak), "hibernate_pending_actors_peak",
                     count_json(a->hibernate_pending_peak), "crashed_actors_final",
                     count_json(a->crashed_final));
}

static json_t *base_json(const struct cicada_object *c)
{
    return json_pack("{s:s, s:{s:o, s:o, s:b}, s:b}", "version", CICADA_VERSION, "generator",
                     "cpu_pct", number_json(c->cpu_pct), "loop_lag_ms", number_json(c->loop_lag_ms),
                     "saturated", c->saturated, "reporter", c->reporter);
}

/* What only the leader knows, when the run is over. 0, -1. */
static int add_report(json_t *root, const struct cicada_object *c)
{
    json_auto_t *more = json_pack(
        "{s:b, s:f, s:f, s:o, s:o, s:o, s:f}", "complete", c->complete, "start_s", c->start_s,
        "end_s", c->end_s, "cluster_facts", cluster_facts_json(c->facts), "frontiers",
        frontiers_json(c->frontiers), "users_source", text_json(users_source_name(c->users_source)),
        "actors_per_user", c->actors_per_user);
    if (!more || json_object_update(root, more) < 0)
        return -1;
    if (c->actors && json_object_set_new(root, "actors", actors_json(c->actors)) < 0)
        return -1;
    if (!c->server_flat)
        return 0;
    return json_object_set_new(root, "server_summary", json_deep_copy(c->server_flat));
}

json_t *cicada_object_json(const struct cicada_object *c)
{
    json_t *root = base_json(c);
    if (root && c->reporter && c->over && add_report(root, c) < 0) {
        json_decref(root);
        return NULL;
    }
    return root;
}

#include "worker/report/cicada_object.h"

#include "facts/json.h"

/* The keys of raw_configuration that are facts. */
json_t *cluster_facts_json(const struct cluster_facts *facts)
{
    static const struct cluster_facts none = {0};
    json_t *object = facts_raw_configuration(facts ? facts : &none, NULL, MEASURE_UNKNOWN);
    (void)json_object_del(object, "users_source"); /* not there when there is no object */
    (void)json_object_del(object, "actors_per_user");
    return object;
}

json_t *frontiers_json(const struct frontiers *frontiers)
{
    static const struct frontiers none = {0};
    const struct frontiers *f = frontiers ? frontiers : &none;
    json_t *object = facts_frontiers(f);
    json_auto_t *pods =
        json_pack("{s:o, s:o, s:o}", "actors_per_pod_p50", json_of_measure(f->actors_per_pod_p50),
                  "actors_per_pod_p90", json_of_measure(f->actors_per_pod_p90),
                  "actors_per_pod_p99", json_of_measure(f->actors_per_pod_p99));
    if (object && pods && json_object_update(object, pods) == 0)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *actors_json(const struct actors_summary *a)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "running_actors_peak",
                     json_of_count(a->running_peak), "running_actors_p50",
                     json_of_count(a->running_p50), "running_actors_p90",
                     json_of_count(a->running_p90), "live_actors_peak", json_of_count(a->live_peak),
                     "hibernate_pending_actors_peak", json_of_count(a->hibernate_pending_peak),
                     "crashed_actors_final", json_of_count(a->crashed_final));
}

static json_t *base_json(const struct cicada_object *c)
{
    return json_pack("{s:s, s:{s:o, s:o, s:b}, s:b}", "version", CICADA_VERSION, "generator",
                     "cpu_pct", json_of_measure(c->cpu_pct), "loop_lag_ms",
                     json_of_measure(c->loop_lag_ms), "saturated", c->saturated, "reporter",
                     c->reporter);
}

/* What only the leader knows, when the run is over. 0, -1. */
static int add_report(json_t *root, const struct cicada_object *c)
{
    const char *source = users_source_name(c->users_source);
    json_auto_t *more = json_pack(
        "{s:b, s:f, s:f, s:o, s:o, s:o, s:f}", "complete", c->complete, "start_s", c->start_s,
        "end_s", c->end_s, "cluster_facts", cluster_facts_json(c->facts), "frontiers",
        frontiers_json(c->frontiers), "users_source", source ? json_string(source) : json_null(),
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

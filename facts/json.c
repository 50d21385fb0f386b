#include "facts/json.h"

json_t *json_of_count(struct measure m)
{
    return m.known ? json_integer((json_int_t)m.value) : json_null();
}

json_t *json_of_measure(struct measure m)
{
    return m.known ? json_real(m.value) : json_null();
}

static json_t *json_of_text(const char *text)
{
    return text ? json_string(text) : json_null();
}

/* A member and its value, which is taken. */
struct member {
    const char *key;
    json_t *value;
};

static json_t *object_of(const struct member *members, size_t count)
{
    json_t *object = json_object();
    bool bad = !object;
    for (size_t i = 0; i < count; i++) /* takes the value, failing or not */
        bad |= json_object_set_new(object, members[i].key, members[i].value) < 0;
    if (bad) {
        json_decref(object);
        return NULL;
    }
    return object;
}

json_t *facts_raw_configuration(const struct cluster_facts *f, const char *users_source,
                                struct measure actors_per_user)
{
    const struct member members[] = {
        {"machine_type", json_of_text(f->machine_type)},
        {"node_count", json_of_count(f->node_count)},
        {"allocatable_cores", json_of_measure(f->allocatable_cores)},
        {"allocatable_ram_gb", json_of_measure(f->allocatable_ram_gb)},
        {"worker_pod_count", json_of_count(f->worker_pod_count)},
        {"capacity_scope", json_of_text(facts_scope_name(f->capacity_scope))},
        {"users_source", json_of_text(users_source)},
        {"actors_per_user", json_of_measure(actors_per_user)},
    };
    return object_of(members, sizeof members / sizeof *members);
}

json_t *facts_frontiers(const struct frontiers *f)
{
    const struct member members[] = {
        {"actors_per_node", json_of_measure(f->actors_per_node)},
        {"actors_per_vcpu", json_of_measure(f->actors_per_vcpu)},
        {"actors_per_gb_ram", json_of_measure(f->actors_per_gb_ram)},
        {"ap_ratio_p50", json_of_measure(f->ap_ratio_p50)},
        {"ap_ratio_p90", json_of_measure(f->ap_ratio_p90)},
        {"ap_ratio_p99", json_of_measure(f->ap_ratio_p99)},
        {"aggregate_failure_ratio", json_of_measure(f->aggregate_failure_ratio)},
    };
    return object_of(members, sizeof members / sizeof *members);
}

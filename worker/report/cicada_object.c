#include "worker/report/cicada_object.h"

#include "base/utf8.h"
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

static json_t *verdict_json(const struct generator_verdict *g)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:b, s:s}", "cpu_p50",
        json_of_measure(g->cpu_p50), "cpu_p90", json_of_measure(g->cpu_p90), "cpu_max",
        json_of_measure(g->cpu_max), "loop_lag_p99_ms", json_of_measure(g->loop_lag_p99_ms),
        "missed_starts", (json_int_t)g->missed_starts_1ms, "missed_starts_over_10ms",
        (json_int_t)g->missed_starts_10ms, "connect_errors", (json_int_t)g->connect_errors,
        "retries", (json_int_t)g->retries, "sockets_peak", (json_int_t)g->sockets_peak, "saturated",
        g->saturated, "saturated_reasons", g->reasons);
}

static json_t *generator_json(const struct cicada_object *c)
{
    const struct report_requests *r = &c->requests;
    json_t *object = json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:I}", "cpu_pct", json_of_measure(c->cpu_pct), "loop_lag_ms",
        json_of_measure(c->loop_lag_ms), "requests_started", (json_int_t)r->started,
        "requests_succeeded", (json_int_t)r->succeeded, "requests_failed", (json_int_t)r->failed,
        "requests_interrupted", (json_int_t)r->interrupted);
    if (!object || !c->generator)
        return object;
    json_auto_t *verdict = verdict_json(c->generator);
    if (verdict && json_object_update(object, verdict) == 0)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *base_json(const struct cicada_object *c)
{
    return json_pack("{s:s, s:o, s:b, s:b}", "version", CICADA_VERSION, "generator",
                     generator_json(c), "reporter", c->reporter, "may_report", c->may_report);
}

/* What is no UTF-8 cannot go to a master. */
static json_t *text_json(const char *text)
{
    bool sendable = text && utf8_valid(str_of(text));
    return sendable ? json_string(text) : json_null();
}

/* Of a server that was asked. 0, -1. */
static int add_server(json_t *root, const struct cicada_object *c)
{
    if (c->server_flat &&
        json_object_set_new(root, "server_summary", json_deep_copy(c->server_flat)) < 0)
        return -1;
    if (!c->server_document)
        return 0;
    return json_object_set_new(root, "server_document", json_deep_copy(c->server_document));
}

/* What only the leader knows, when the run is over. 0, -1. */
static int add_report(json_t *root, const struct cicada_object *c)
{
    json_auto_t *more = json_pack(
        "{s:b, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:f}", "complete", c->complete, "start_s",
        c->start_s, "end_s", c->end_s, "test_name", text_json(c->test_name), "tag",
        text_json(c->tag), "cluster_facts", cluster_facts_json(c->facts), "frontiers",
        frontiers_json(c->frontiers), "users_source", text_json(users_source_name(c->users_source)),
        "actors_per_user", c->actors_per_user);
    if (!more || json_object_update(root, more) < 0)
        return -1;
    if (c->actors && json_object_set_new(root, "actors", actors_json(c->actors)) < 0)
        return -1;
    return add_server(root, c);
}

/* What the leader tells at any time. 0, -1. */
static int add_leader(json_t *root, const struct cicada_object *c)
{
    if (c->report_within_s.known &&
        json_object_set_new(root, "report_within_s", json_real(c->report_within_s.value)) < 0)
        return -1;
    return c->over ? add_report(root, c) : 0;
}

json_t *cicada_object_json(const struct cicada_object *c)
{
    json_t *root = base_json(c);
    if (root && c->reporter && add_leader(root, c) < 0) {
        json_decref(root);
        return NULL;
    }
    return root;
}

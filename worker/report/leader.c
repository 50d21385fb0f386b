#include "worker/report/leader.h"

#include "base/log.h"

#include <math.h>
#include <stdlib.h>

#define FIRST_SAMPLES 256

bool leader_role_parse(struct str word, enum leader_role *ret)
{
    static const char *const words[] = {"auto", "always", "never"};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        if (str_eq(word, str_of(words[i]))) {
            *ret = (enum leader_role)i;
            return true;
        }
    }
    return false;
}

bool leader_reports(enum leader_role role, bool has_index, uint64_t index, bool named)
{
    switch (role) {
    case LEADER_AUTO:
        return named || (has_index && index == 0);
    case LEADER_ALWAYS:
        return true;
    case LEADER_NEVER:
        break;
    }
    return false;
}

/* --- the run --------------------------------------------------------------------------------- */

void leader_begin(struct leader *l, bool alone, double wall_s)
{
    for (unsigned i = 0; i < LEADER_SOURCES; i++)
        l->series[i].count = 0;
    l->target = MEASURE_UNKNOWN;
    l->all_here = alone;
    l->told = l->elsewhere = false;
    l->active = true;
    l->start_s = l->end_s = wall_s;
}

void leader_end(struct leader *l, double wall_s)
{
    if (!l->active)
        return;
    l->active = false;
    l->end_s = fmax(wall_s, l->start_s);
}

void leader_done(struct leader *l)
{
    for (unsigned i = 0; i < LEADER_SOURCES; i++)
        free(l->series[i].samples);
    *l = (struct leader){0};
}

/* Keep every second sample, the last one included. */
static void thin_out(struct leader_series *s)
{
    size_t kept = 0;
    for (size_t i = 1; i < s->count; i += 2)
        s->samples[kept++] = s->samples[i];
    s->count = kept;
}

static int make_room(struct leader_series *s)
{
    if (s->count == LEADER_SAMPLES_MAX)
        thin_out(s);
    if (s->count < s->cap)
        return 0;
    size_t cap = s->cap ? s->cap * 2 : FIRST_SAMPLES;
    struct users_sample *grown = realloc(s->samples, cap * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    s->samples = grown;
    s->cap = cap;
    return 0;
}

int leader_add(struct leader *l, enum users_source source, double wall_s, double users)
{
    struct leader_series *s = &l->series[source];
    if (!l->active || source == USERS_SOURCE_NONE || !isfinite(users) || users < 0)
        return 0;
    int rc = make_room(s);
    if (rc < 0)
        return rc;
    s->samples[s->count++] = (struct users_sample){.wall_s = wall_s, .users = users};
    l->end_s = fmax(l->end_s, wall_s);
    return 0;
}

void leader_total(struct leader *l, uint64_t total, uint64_t own)
{
    if (!l->active)
        return;
    if (!l->target.known || (double)total > l->target.value)
        l->target = measure_of((double)total);
    if (total == 0) /* the end of a shape tells nothing about who ran the users */
        return;
    l->told = true;
    l->elsewhere |= total != own;
    l->all_here = !l->elsewhere;
}

/* --- its end --------------------------------------------------------------------------------- */

/* Did the source speak over at least half of the run? */
static bool covers(const struct leader *l, const struct leader_series *s)
{
    if (s->count == 0)
        return false;
    double spoke_s = s->samples[s->count - 1].wall_s - s->samples[0].wall_s;
    return spoke_s + LEADER_SLACK_S >= (l->end_s - l->start_s) / 2;
}

struct leader_users leader_users(const struct leader *l)
{
    for (unsigned i = USERS_SOURCE_LOCAL; i < LEADER_SOURCES; i++) {
        const struct leader_series *s = &l->series[i];
        if ((i == USERS_SOURCE_LOCAL && !l->all_here) || !covers(l, s))
            continue;
        return (struct leader_users){(enum users_source)i, s->samples, s->count};
    }
    return (struct leader_users){USERS_SOURCE_NONE, NULL, 0};
}

int leader_frontiers(const struct leader *l, const struct cluster_facts *facts,
                     double actors_per_user, uint64_t requests, uint64_t failures,
                     struct frontiers *ret)
{
    static const struct cluster_facts none = {0};
    const struct cluster_facts *f = facts ? facts : &none;
    struct leader_users users = leader_users(l);
    const struct frontiers_input in = {
        .samples = users.samples,
        .sample_count = users.count,
        .target_users = l->target,
        .actors_per_user = actors_per_user,
        .node_count = f->node_count,
        .allocatable_cores = f->allocatable_cores,
        .allocatable_ram_gb = f->allocatable_ram_gb,
        .worker_pod_count = f->worker_pod_count,
        .requests = requests,
        .failures = failures,
    };
    return frontiers_compute(&in, ret);
}

/* --- what others say ------------------------------------------------------------------------- */

static bool is_count(const json_t *value, double *ret)
{
    if (!json_is_number(value))
        return false;
    double v = json_number_value(value);
    if (!isfinite(v) || v < 0)
        return false;
    *ret = v;
    return true;
}

bool leader_message_users(const json_t *data, double *ret)
{
    return is_count(json_is_object(data) ? json_object_get(data, "user_count") : data, ret);
}

struct measure leader_planned_users(const json_t *parsed_options)
{
    double users;
    if (is_count(json_object_get(parsed_options, "users"), &users) ||
        is_count(json_object_get(parsed_options, "num_users"), &users))
        return measure_of(users);
    return MEASURE_UNKNOWN;
}

int leader_web_users(const char *content_type, struct str body, double *ret, struct err *err)
{
    if (!str_starts_nocase(str_of(content_type), STR("application/json"))) {
        char quoted[LOG_QUOTED_BYTES];
        return err_set(err, -EPROTO, "an answer of type %s and not JSON: does it want a login?",
                       log_quote(str_of(content_type), quoted));
    }
    json_error_t e;
    json_auto_t *root = json_loadb(body.ptr ? body.ptr : "", body.len, 0, &e);
    if (!root)
        return err_set(err, -EPROTO, "invalid JSON (line %d, column %d)", e.line, e.column);
    if (!is_count(json_object_get(root, "user_count"), ret))
        return err_set(err, -EPROTO, "no user_count in it: is it a Locust master?");
    return 0;
}

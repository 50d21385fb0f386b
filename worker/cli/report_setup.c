#include "worker/cli/report_setup.h"

#include <stdlib.h>

static int out_of_memory(struct err *err)
{
    return err_set(err, -ENOMEM, "out of memory");
}

static int check_url(const char *flag, const char *url, struct err *err)
{
    if (!url)
        return 0;
    int rc = query_check_url(url, err);
    return rc < 0 ? err_prefix(err, "%s", flag) : 0;
}

/* Unlike a base URL, that of a page may have a query. */
static int check_page(const char *flag, const char *url, struct err *err)
{
    struct buf shown;
    buf_init(&shown, 1u << 16);
    int rc = url ? http_url_shown(&shown, url) : 0;
    buf_done(&shown);
    return rc < 0 ? err_set(err, rc, "%s: not an absolute http or https URL", flag) : 0;
}

/* Something of every file that will be read again at the end. */
static int check_file(const char *flag, const char *path, struct err *err)
{
    struct buf text;
    if (!path)
        return 0;
    buf_init(&text, SAMPLER_TOKEN_BYTES + CREDENTIALS_PEM_BYTES);
    int rc = buf_read_file(&text, path, err);
    buf_done(&text);
    return rc < 0 ? err_prefix(err, "%s", flag) : 0;
}

/* --- Prometheus ------------------------------------------------------------------------------ */

static int take_headers(const struct options *o, struct report_setup *s, struct err *err)
{
    struct query_access *a = &s->settings.background.prometheus.access;
    s->headers = calloc(o->prometheus_headers.count + 1, sizeof *s->headers);
    if (!s->headers)
        return out_of_memory(err);
    for (size_t i = 0; i < o->prometheus_headers.count; i++) {
        struct str header = o->prometheus_headers.items[i];
        size_t colon = str_find(header, ':');
        if (colon == 0 || colon == header.len || strpbrk(header.ptr, "\r\n"))
            return err_set(err, -EINVAL, "--prometheus-header: must be as 'Name: value'");
        s->headers[i] = header.ptr;
    }
    a->headers = s->headers;
    a->header_count = o->prometheus_headers.count;
    return 0;
}

static int take_auth(const struct options *o, struct report_setup *s, struct err *err)
{
    struct query_access *a = &s->settings.background.prometheus.access;
    if (!o->prometheus_auth)
        return 0;
    if (o->prometheus_token_file)
        return err_set(err, -EINVAL,
                       "give --prometheus-auth or --prometheus-bearer-token-file, not both");
    s->auth = strdup(o->prometheus_auth);
    if (!s->auth)
        return out_of_memory(err);
    char *colon = strchr(s->auth, ':');
    if (!colon)
        return err_set(err, -EINVAL, "--prometheus-auth: must be as USER:PASSWORD");
    *colon = '\0';
    a->username = s->auth;
    a->password = colon + 1;
    return 0;
}

static int take_prometheus(const struct options *o, struct report_setup *s, struct err *err)
{
    struct background_options *b = &s->settings.background;
    b->prometheus.access.url = o->prometheus_url;
    b->prometheus.access.tls.ca.file = o->prometheus_ca;
    b->prometheus.bearer_token_file = o->prometheus_token_file;
    b->users_query = o->prometheus_users_query;
    if (o->prometheus_users_query && !o->prometheus_url)
        return err_set(err, -EINVAL, "--prometheus-users-query: needs --prometheus-url");
    int rc = check_url("--prometheus-url", o->prometheus_url, err);
    if (rc == 0)
        rc = check_file("--prometheus-bearer-token-file", o->prometheus_token_file, err);
    if (rc == 0)
        rc = check_file("--prometheus-ca", o->prometheus_ca, err);
    if (rc == 0)
        rc = take_headers(o, s, err);
    return rc < 0 ? rc : take_auth(o, s, err);
}

static int take_profile(const struct options *o, struct report_setup *s, struct err *err)
{
    int rc = profile_load(o->telemetry_profile, &s->profile, err);
    if (rc < 0)
        return err_prefix(err, "--telemetry-profile");
    for (size_t i = 0; i < o->telemetry_vars.count; i++) {
        struct str text = o->telemetry_vars.items[i];
        size_t equals = str_find(text, '=');
        if (equals == text.len)
            return err_set(err, -EINVAL, "--telemetry-var: must be as NAME=VALUE");
        rc = profile_set_variable(&s->profile, str_sub(text, 0, equals),
                                  str_sub(text, equals + 1, text.len), err);
        if (rc < 0)
            return err_prefix(err, "--telemetry-var");
    }
    s->settings.background.profile = &s->profile;
    if (o->telemetry_lag_s != OPTIONS_OWN_LAG)
        s->settings.background.telemetry_lag_s = measure_of((double)o->telemetry_lag_s);
    return 0;
}

/* --- the rest -------------------------------------------------------------------------------- */

static void take_facts(const struct options *o, struct report_setup *s)
{
    struct facts_options *f = &s->settings.background.facts_options;
    *f = (struct facts_options){
        .credentials = credentials_options_from_env(),
        .pod_namespace = o->worker_pod_namespace,
        .pod_selector = o->worker_pod_selector,
        .machine_type_label = o->machine_type_label,
        .abort_fd = -1,
    };
    s->settings.background.facts =
        o->cluster_facts || (!o->no_cluster_facts && credentials_at_hand(&f->credentials));
}

static int take_samplers(const struct options *o, struct report_setup *s, struct err *err)
{
    struct background_options *b = &s->settings.background;
    b->actors_metrics_url = o->actors_metrics_url;
    b->master_web_url = o->master_web_url;
    b->master_web_auth = o->master_web_auth;
    if (o->master_web_auth && !strchr(o->master_web_auth, ':'))
        return err_set(err, -EINVAL, "--master-web-auth: must be as USER:PASSWORD");
    int rc = check_page("--actors-metrics-url", o->actors_metrics_url, err);
    return rc < 0 ? rc : check_url("--master-web-url", o->master_web_url, err);
}

int report_setup(const struct options *o, struct report_setup *ret, struct err *err)
{
    *ret = (struct report_setup){.settings.actors_per_user = o->actors_per_user};
    if (!leader_role_parse(str_of(o->report), &ret->settings.role))
        return err_set(err, -EINVAL, "--report: must be auto, always or never");
    take_facts(o, ret);
    int rc = take_samplers(o, ret, err);
    if (rc == 0)
        rc = take_prometheus(o, ret, err);
    return rc < 0 ? rc : take_profile(o, ret, err);
}

void report_setup_done(struct report_setup *s)
{
    profile_done(&s->profile);
    free(s->headers);
    free(s->auth);
    *s = (struct report_setup){0};
}

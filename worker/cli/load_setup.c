#include "worker/cli/load_setup.h"

#include "base/log.h"
#include "worker/engine/sources.h"
#include "worker/runner/fetch.h"
#include "worker/runner/inputs.h"
#include "worker/scenario/plan_native.h"

#include <stdlib.h>

/* A name that nobody has is a mistake, also where the master says which classes run. */
static int check_classes(const struct options *o, const struct plan *plan, struct err *err)
{
    for (size_t i = 0; i < o->user_classes.count; i++) {
        struct str name = o->user_classes.items[i];
        char quoted[LOG_QUOTED_BYTES];
        if (plan_class_index(plan, name) == plan->class_count)
            return err_set(err, -EINVAL, "%.*s has no user class %s", STR_ARG(plan->source),
                           log_quote(name, quoted));
    }
    if (o->worker && o->user_classes.count > 0)
        log_warning("the master decides which user classes run: those named here are checked, and "
                    "otherwise without meaning, ignoring");
    return 0;
}

struct plan_tags load_setup_tags(const struct options *o)
{
    return (struct plan_tags){
        .include = o->tags.items,
        .include_count = o->tags.count,
        .exclude = o->exclude_tags.items,
        .exclude_count = o->exclude_tags.count,
    };
}

static int fetch(const struct options *o, const struct plan_tags *tags, int signal_fd,
                 struct plan **ret, struct err *err)
{
    const struct fetch_options options = {
        .master_host = o->master_host,
        .master_port = (unsigned)o->master_port,
        .master_timeout_s = (double)o->master_timeout_s,
        .signal_fd = signal_fd,
    };
    return fetch_plan(&options, tags, ret, err);
}

int load_setup_plan(const struct options *o, const struct cicada_test *test, int signal_fd,
                    struct plan **ret, struct err *err)
{
    const struct plan_tags tags = load_setup_tags(o);
    int rc = sources_check(o->source_addresses.items, o->source_addresses.count, err);
    if (rc < 0)
        return rc;
    rc = test             ? plan_load_native(test, o->scenario_file, &tags, ret, err)
         : o->url         ? plan_from_url(str_of(o->url), ret, err)
         : o->from_master ? fetch(o, &tags, signal_fd, ret, err)
                          : plan_load_file(o->scenario_file, &tags, ret, err);
    if (rc == 0)
        rc = inputs_check(*ret, o->sets.items, o->sets.count, err);
    return rc < 0 ? rc : check_classes(o, *ret, err);
}

static enum engine_http http_engine(const struct options *o)
{
    if (strcmp(o->engine, "curl") == 0)
        return ENGINE_HTTP_CURL;
    return strcmp(o->engine, "fast") == 0 ? ENGINE_HTTP_FAST : ENGINE_HTTP_AUTO;
}

struct engine_options load_setup_engine(const struct options *o)
{
    return (struct engine_options){
        .http = http_engine(o),
        .http2 = o->http2,
        .proxy = o->proxy ? str_of(o->proxy) : (struct str){NULL, 0},
        .shards = (unsigned)o->threads,
        .sources = o->source_addresses.items,
        .source_count = o->source_addresses.count,
        .phases = o->phases,
        .trace_ratio = o->trace_ratio,
    };
}

bool *load_setup_classes(const struct options *o, const struct plan *plan)
{
    bool *chosen = calloc(plan->class_count, sizeof *chosen);
    for (size_t i = 0; chosen && i < o->user_classes.count; i++)
        chosen[plan_class_index(plan, o->user_classes.items[i])] = true;
    return chosen;
}

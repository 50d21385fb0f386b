/* The runner's side of the shards: it spreads the wished users over them, puts orders into their
 * mailboxes and takes out what they report. */
#include "worker/engine/engine.h"

#include "base/clock.h"
#include "base/random.h"
#include "worker/engine/arrival.h"
#include "worker/engine/binding.h"
#include "worker/engine/cpus.h"
#include "worker/engine/dispatch.h"
#include "worker/engine/feeds.h"
#include "worker/engine/native.h"
#include "worker/engine/shard.h"
#include "worker/engine/tls.h"
#include "worker/engine/tracer.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#define DESCRIPTORS_APART 64 /* log, link, event loops, libraries: not for users */
#define LONGEST_STOP_S    (365.0 * 86400.0)

#define ENGINE_TRACE_BYTES ((size_t)64 << 20) /* the runner takes them each second */

/* A shard whose loop does not come round. */
struct watch {
    unsigned turns;    /* when it was last looked at */
    uint64_t since_us; /* since when that number stands still */
    bool told;
};

struct engine {
    const struct plan *plan;
    const struct http_ops *ops;
    struct shard *shards;
    unsigned shard_count;
    unsigned shards_ready; /* initialised, for engine_free */
    int wake_fd;
    struct binding *binding;
    char *host;    /* from outside; NULL: none */
    char **inputs; /* by variable, what came from outside; NULL: nothing */
    uint32_t worker;
    bool inputs_changed;      /* since the binding was made */
    struct feeds *feeds;      /* NULL: the plan has none */
    struct cicada_run *tasks; /* what tasks in C see of all this; NULL: the plan has none */
    struct watch *watches;    /* by shard; only with tasks in C */
    uint64_t run;             /* counts up when users are wanted after there were none to be */
    bool idle;                /* no users are wanted */
    bool run_stopped;         /* by a step of the scenario */
    uint32_t *spread;         /* shard_count rows of class_count targets */
    uint32_t *running;        /* by class */
    struct stats **filled;    /* by shard: taken from the mailbox, not merged yet */
    struct shard_report *reports;
    uint64_t order_number;
    uint64_t stats_number;
    atomic_llong tasks_left; /* when they are limited */
    struct buf traces;       /* rows that nobody has taken yet */
    uint64_t trace_rows;     /* of a run */
    uint64_t traces_lost;    /* for want of memory */
};

static void stop_run_if_told(struct engine *e);

static int alloc_tables(struct engine *e)
{
    size_t classes = e->plan->class_count;
    e->shards = calloc(e->shard_count, sizeof *e->shards);
    e->spread = calloc(e->shard_count * classes, sizeof *e->spread);
    e->running = calloc(classes, sizeof *e->running);
    e->filled = calloc(e->shard_count, sizeof(struct stats *));
    e->reports = calloc(e->shard_count, sizeof *e->reports);
    e->inputs = calloc(e->plan->variable_count + 1, sizeof(char *));
    if (!e->shards || !e->spread || !e->running || !e->filled || !e->reports || !e->inputs)
        return -ENOMEM;
    return feeds_new(e->plan, &e->feeds);
}

static int start_shards(struct engine *e, const struct engine_options *options)
{
    struct rng seeds;
    rng_init(&seeds, options->seed ? options->seed : rng_seed_from_system());
    for (unsigned i = 0; i < e->shard_count; i++) {
        e->shards_ready++;
        int rc = shard_init(&e->shards[i], e->plan, e->ops, e->wake_fd, options, rng_u64(&seeds));
        e->shards[i].index = i;
        e->shards[i].count = e->shard_count;
        e->shards[i].feeds = e->feeds;
        if (options->task_limit > 0)
            e->shards[i].tasks_left = &e->tasks_left;
        if (rc == 0 && e->tasks &&
            !(e->shards[i].native = native_shard_new(e->ops, e->tasks, e->shard_count)))
            rc = -ENOMEM;
        if (rc == 0)
            rc = shard_start(&e->shards[i]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* What only a plan with tasks in C needs. */
static int alloc_native(struct engine *e)
{
    if (!e->plan->native)
        return 0;
    e->watches = calloc(e->shard_count, sizeof *e->watches);
    e->tasks = e->watches ? run_new(e->wake_fd) : NULL;
    if (!e->tasks)
        return -ENOMEM;
    crash_watch();
    return 0;
}

/* A binding to a host (NULL: none from outside) and to the inputs of now. */
static int bind(struct engine *e, const char *host, struct binding **ret, struct err *err)
{
    const struct binding_inputs inputs = {e->inputs, e->worker};
    return binding_new(e->plan, e->ops, str_of(host), &inputs, ret, err);
}

/* What is asked for that only curl has; NULL: nothing. */
static const char *curls_own(const struct plan *plan, const struct engine_options *options)
{
    bool http2 = options->http2, proxy = options->proxy.ptr;
    for (size_t i = 0; i < plan->class_count; i++) {
        http2 = http2 || plan->classes[i].http2;
        proxy = proxy || plan->classes[i].proxy.ptr;
    }
    return http2 ? "HTTP/2" : proxy ? "proxies" : NULL;
}

/* The command line counts more than the scenario. */
static int choose_http(struct engine *e, const struct engine_options *options, struct err *err)
{
    static const enum engine_http plans[] = {[PLAN_ENGINE_AUTO] = ENGINE_HTTP_AUTO,
                                             [PLAN_ENGINE_FAST] = ENGINE_HTTP_FAST,
                                             [PLAN_ENGINE_CURL] = ENGINE_HTTP_CURL};
    enum engine_http wanted = options->http;
    const char *need = curls_own(e->plan, options);
    if (wanted == ENGINE_HTTP_AUTO)
        wanted = plans[e->plan->engine];
    if (wanted == ENGINE_HTTP_FAST && need)
        return err_set(err, -EINVAL,
                       "%.*s: the engine 'fast' has no %s: leave the engine to 'auto', or take "
                       "'curl'",
                       STR_ARG(e->plan->source), need);
    e->ops = wanted == ENGINE_HTTP_CURL || need ? &http_curl_ops : &http_fast_ops;
    return 0;
}

/* So that a certificate that OpenSSL cannot use is a mistake, and not a failure of each request. */
static int check_certificates(const struct plan *plan, struct err *err)
{
    for (size_t i = 0; i < plan->class_count; i++) {
        const struct plan_class *class = &plan->classes[i];
        int rc = class->client_certificate.ptr ? tls_check(class->client_certificate, err) : 0;
        if (rc < 0) {
            err_prefix(err, "%.*s: user class '%.*s'", STR_ARG(plan->source), STR_ARG(class->name));
            return rc;
        }
    }
    return 0;
}

int engine_new(const struct plan *plan, const struct engine_options *options, struct engine **ret,
               struct err *err)
{
    struct engine *e = calloc(1, sizeof *e);
    if (!e)
        return err_set(err, -ENOMEM, "out of memory");
    e->plan = plan;
    e->idle = true;
    e->trace_rows = ENGINE_TRACE_ROWS;
    buf_init(&e->traces, ENGINE_TRACE_BYTES);
    e->shard_count = options->shards ? options->shards : cpus_usable();
    if (e->shard_count > ENGINE_MAX_SHARDS)
        e->shard_count = ENGINE_MAX_SHARDS;
    atomic_init(&e->tasks_left,
                options->task_limit < LLONG_MAX ? (long long)options->task_limit : LLONG_MAX);
    e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = e->wake_fd < 0 ? -errno : choose_http(e, options, err);
    if (rc == 0)
        rc = check_certificates(plan, err);
    if (rc == 0)
        rc = alloc_tables(e);
    if (rc == 0)
        rc = bind(e, NULL, &e->binding, err);
    if (rc == 0)
        rc = alloc_native(e);
    if (rc == 0)
        rc = start_shards(e, options);
    if (rc < 0) {
        err_set(err, rc, "cannot start %u threads: %s", e->shard_count, strerror(-rc));
        engine_free(e);
        return rc;
    }
    *ret = e;
    return 0;
}

void engine_free(struct engine *e)
{
    if (!e)
        return;
    for (unsigned i = 0; i < e->shards_ready; i++)
        shard_done(&e->shards[i]);
    for (unsigned i = 0; e->filled && i < e->shard_count; i++)
        stats_free(e->filled[i]);
    binding_unref(e->binding);
    feeds_free(e->feeds);
    if (e->tasks)
        crash_unwatch();
    run_free(e->tasks);
    free(e->watches);
    for (size_t i = 0; e->inputs && i < e->plan->variable_count; i++)
        free(e->inputs[i]);
    free(e->inputs);
    free(e->host);
    if (e->wake_fd >= 0)
        (void)close(e->wake_fd);
    free(e->shards);
    free(e->spread);
    free(e->running);
    free(e->filled);
    free(e->reports);
    buf_done(&e->traces);
    free(e);
}

unsigned engine_shard_count(const struct engine *e)
{
    return e->shard_count;
}

int engine_fd(const struct engine *e)
{
    return e->wake_fd;
}

struct cicada_run *engine_tasks(struct engine *e)
{
    return e->tasks;
}

bool engine_stuck(struct engine *e, uint64_t now_us, struct err *ret)
{
    for (unsigned i = 0; e->tasks && i < e->shard_count; i++) {
        struct watch *w = &e->watches[i];
        struct shard *s = &e->shards[i];
        unsigned turns = atomic_load_explicit(&s->turns, memory_order_relaxed);
        char what[ERR_TEXT_BYTES / 2];
        if (turns != w->turns || w->since_us == 0) {
            *w = (struct watch){.turns = turns, .since_us = now_us};
            continue;
        }
        if (w->told || now_us - w->since_us < ENGINE_STUCK_US)
            continue;
        if (!native_running_text(s->native, what, sizeof what))
            continue;
        w->told = true;
        *ret = (struct err){0};
        (void)err_set(ret, -EBUSY,
                      "%s: has not waited for %u s: its thread's other users stand still", what,
                      ENGINE_STUCK_US / 1000000); /* told by the return value */
        return true;
    }
    return false;
}

void engine_poll(struct engine *e)
{
    uint64_t count;
    size_t classes = e->plan->class_count;
    if (read(e->wake_fd, &count, sizeof count) < 0)
        return; /* nobody rang */
    memset(e->running, 0, classes * sizeof *e->running);
    for (unsigned i = 0; i < e->shard_count; i++) {
        struct shard_mailbox *mail = &e->shards[i].mail;
        pthread_mutex_lock(&mail->lock);
        e->reports[i] = mail->report;
        for (size_t c = 0; c < classes; c++)
            e->running[c] += mail->running[c];
        if (mail->filled) { /* the one before was merged: the shard got its set back from us */
            e->filled[i] = mail->filled;
            mail->filled = NULL;
        }
        pthread_mutex_unlock(&mail->lock);
    }
    stop_run_if_told(e);
}

/* --- what users are started with ------------------------------------------------------------- */

static void use_binding(struct engine *e, struct binding *bound)
{
    binding_unref(e->binding);
    e->binding = bound;
    e->inputs_changed = false;
}

int engine_set_host(struct engine *e, struct str host, struct err *err)
{
    struct binding *bound;
    char *copy = host.ptr ? strndup(host.ptr, host.len) : NULL;
    int rc = host.ptr && !copy ? err_set(err, -ENOMEM, "out of memory") : 0;
    if (rc == 0)
        rc = bind(e, copy, &bound, err);
    if (rc < 0) {
        free(copy);
        return rc;
    }
    free(e->host);
    e->host = copy;
    use_binding(e, bound);
    return 0;
}

int engine_set_variable(struct engine *e, struct str name, struct str value)
{
    if (e->tasks)
        return run_set_option(e->tasks, name, value);
    size_t i = plan_variable_index(e->plan, name);
    if (i == e->plan->variable_count || !e->plan->variables[i].outside)
        return -ENOENT;
    if (!value.ptr == !e->inputs[i] && str_eq(value, str_of(e->inputs[i])))
        return 0;
    char *copy = value.ptr ? strndup(value.ptr, value.len) : NULL;
    if (value.ptr && !copy)
        return -ENOMEM;
    free(e->inputs[i]);
    e->inputs[i] = copy;
    e->inputs_changed = true;
    return 0;
}

void engine_set_worker(struct engine *e, uint32_t index)
{
    if (e->tasks)
        run_set_worker_index(e->tasks, (int)index);
    e->inputs_changed |= index != e->worker;
    e->worker = index;
}

static int bind_inputs(struct engine *e, struct err *err)
{
    struct binding *bound;
    int rc = e->inputs_changed ? bind(e, e->host, &bound, err) : 0;
    if (rc == 0 && e->inputs_changed)
        use_binding(e, bound);
    return rc;
}

/* --- orders --------------------------------------------------------------------------------- */

/* One array of targets for each shard, made before the first is posted: all or none. */
static int copy_rows(const struct engine *e, uint32_t **rows)
{
    size_t classes = e->plan->class_count;
    for (unsigned i = 0; i < e->shard_count; i++) {
        rows[i] = malloc(classes * sizeof *rows[i]);
        if (!rows[i]) {
            while (i-- > 0)
                free(rows[i]);
            return -ENOMEM;
        }
        memcpy(rows[i], e->spread + i * classes, classes * sizeof *rows[i]);
    }
    return 0;
}

static void post(struct engine *e, struct shard *s, uint32_t *targets, struct arrivals *arrivals,
                 uint64_t stop_timeout_us)
{
    struct shard_mailbox *mail = &s->mail;
    pthread_mutex_lock(&mail->lock);
    free(mail->order.targets); /* an order that was not read yet is replaced */
    binding_unref(mail->order.binding);
    arrivals_free(mail->order.arrivals);
    mail->order = (struct shard_order){
        .number = e->order_number,
        .targets = targets,
        .run = e->run,
        .stop_timeout_us = stop_timeout_us,
        .binding = binding_ref(e->binding),
        .arrivals = arrivals,
        .trace_rows = e->trace_rows / e->shard_count + (s->index < e->trace_rows % e->shard_count),
    };
    mail->order_is_new = true;
    pthread_mutex_unlock(&mail->lock);
    shard_wake(s);
}

static uint64_t stop_timeout_us(double stop_timeout_s)
{
    if (!(stop_timeout_s > 0))
        return 0;
    return (uint64_t)((stop_timeout_s < LONGEST_STOP_S ? stop_timeout_s : LONGEST_STOP_S) * 1e6);
}

static int order(struct engine *e, const uint32_t *targets, double stop_timeout_s)
{
    size_t classes = e->plan->class_count;
    uint32_t **rows = calloc(e->shard_count, sizeof(uint32_t *));
    uint32_t *before = malloc(e->shard_count * classes * sizeof *before);
    int rc = rows && before ? 0 : -ENOMEM;
    if (rc == 0) {
        memcpy(before, e->spread, e->shard_count * classes * sizeof *before);
        dispatch_spread(e->spread, e->shard_count, classes, targets);
        rc = copy_rows(e, rows);
        if (rc < 0)
            memcpy(e->spread, before, e->shard_count * classes * sizeof *before);
    }
    if (rc == 0) {
        e->order_number++;
        for (unsigned i = 0; i < e->shard_count; i++)
            post(e, &e->shards[i], rows[i], NULL, stop_timeout_us(stop_timeout_s));
    }
    free(before);
    free(rows);
    return rc;
}

int engine_check_inputs(const struct engine *e, struct err *err)
{
    for (size_t i = 0; i < e->plan->variable_count; i++) {
        const struct plan_variable *v = &e->plan->variables[i];
        if (v->required && !e->inputs[i])
            return err_set(err, -EINVAL,
                           "variable '%.*s' has no value: give it by --set, or as an argument of "
                           "the master",
                           STR_ARG(v->name));
    }
    return 0;
}

/* A run begins with the first users that are wanted after there were none to be. */
static void note_run(struct engine *e, bool any)
{
    if (any && e->idle) {
        e->run++;
        e->run_stopped = false;
        feeds_rewind(e->feeds);
    }
    e->idle = !any;
}

static int order_none(struct engine *e, double stop_timeout_s)
{
    uint32_t *none = calloc(e->plan->class_count, sizeof *none);
    int rc = none ? order(e, none, stop_timeout_s) : -ENOMEM;
    free(none);
    return rc;
}

/* A step of the scenario stopped the run: its users are cut, as Locust's runner.quit() does. */
static void stop_run_if_told(struct engine *e)
{
    bool told = e->tasks && run_take_stop(e->tasks);
    for (unsigned i = 0; i < e->shard_count; i++)
        told |= e->reports[i].stopped_run == e->run && e->run > 0;
    if (told && !e->run_stopped && !e->idle)
        e->run_stopped = order_none(e, 0) == 0; /* without memory: at the next poll */
}

static int check_host(const struct engine *e, size_t class, struct err *err)
{
    if (!e->binding->classes[class].lacks_host)
        return 0;
    return err_set(err, -EINVAL,
                   "user class '%.*s' has no host: give one by --host or in the scenario",
                   STR_ARG(e->plan->classes[class].name));
}

int engine_check_hosts(const struct engine *e, const bool *wanted, struct err *err)
{
    int rc = 0;
    for (size_t c = 0; rc == 0 && c < e->plan->class_count; c++)
        rc = !wanted || wanted[c] ? check_host(e, c, err) : 0;
    return rc;
}

static int check_hosts(const struct engine *e, const uint32_t *targets, struct err *err)
{
    for (size_t c = 0; c < e->plan->class_count; c++) {
        if (targets[c] > 0 && check_host(e, c, err) < 0)
            return -EINVAL;
    }
    return 0;
}

int engine_set_users(struct engine *e, const uint32_t *targets, double stop_timeout_s,
                     struct err *err)
{
    bool any = false;
    for (size_t c = 0; c < e->plan->class_count; c++)
        any |= targets[c] > 0;
    int rc = any ? engine_check_inputs(e, err) : 0;
    if (rc == 0)
        rc = bind_inputs(e, err);
    if (rc == 0)
        rc = check_hosts(e, targets, err);
    if (rc < 0)
        return rc;
    note_run(e, any);
    rc = e->run_stopped ? 0 : order(e, targets, stop_timeout_s);
    return rc < 0 ? err_set(err, rc, "out of memory") : 0;
}

/* The pool's users are the shards' own business: none is wished for here. */
static int order_arrivals(struct engine *e, const bool *wanted)
{
    struct arrivals **made = calloc(e->shard_count, sizeof(struct arrivals *));
    uint32_t **rows = calloc(e->shard_count, sizeof(uint32_t *));
    uint64_t begin_us = clock_mono_us();
    int rc = made && rows ? 0 : -ENOMEM;
    memset(e->spread, 0, e->shard_count * e->plan->class_count * sizeof *e->spread);
    for (unsigned i = 0; rc == 0 && i < e->shard_count; i++) {
        made[i] = arrivals_new(e->plan, wanted, i, e->shard_count, begin_us);
        rc = made[i] ? 0 : -ENOMEM;
    }
    if (rc == 0)
        rc = copy_rows(e, rows);
    if (rc == 0)
        e->order_number++;
    for (unsigned i = 0; made && i < e->shard_count; i++) {
        if (rc == 0)
            post(e, &e->shards[i], rows[i], made[i], 0);
        else
            arrivals_free(made[i]);
    }
    free(made);
    free(rows);
    return rc;
}

int engine_set_arrivals(struct engine *e, const bool *wanted, struct err *err)
{
    int rc = engine_check_inputs(e, err);
    if (rc == 0)
        rc = bind_inputs(e, err);
    if (rc == 0)
        rc = engine_check_hosts(e, wanted, err);
    if (rc < 0)
        return rc;
    note_run(e, true);
    rc = order_arrivals(e, wanted);
    return rc < 0 ? err_set(err, rc, "out of memory") : 0;
}

int engine_stop(struct engine *e, double stop_timeout_s)
{
    e->idle = true;
    return order_none(e, stop_timeout_s);
}

/* --- samples -------------------------------------------------------------------------------- */

int engine_request_stats(struct engine *e)
{
    e->stats_number++;
    for (unsigned i = 0; i < e->shard_count; i++) {
        struct shard_mailbox *mail = &e->shards[i].mail;
        pthread_mutex_lock(&mail->lock);
        mail->stats_wanted = e->stats_number;
        pthread_mutex_unlock(&mail->lock);
        shard_wake(&e->shards[i]);
    }
    return 0;
}

bool engine_stats_complete(const struct engine *e)
{
    for (unsigned i = 0; i < e->shard_count; i++) {
        if (e->reports[i].stats_done != e->stats_number)
            return false;
    }
    return true;
}

/* With the shard's mailbox locked; before it may hand over more. */
static void take_traces(struct engine *e, struct shard_mailbox *mail)
{
    if (buf_add(&e->traces, buf_str(&mail->traced)) < 0)
        for (size_t i = 0; i < mail->traced.len; i++)
            e->traces_lost += mail->traced.ptr[i] == '\n';
    buf_clear(&mail->traced);
}

struct str engine_traces(const struct engine *e)
{
    return buf_str(&e->traces);
}

void engine_drop_traces(struct engine *e)
{
    buf_clear(&e->traces);
}

void engine_set_trace_rows(struct engine *e, uint64_t rows)
{
    e->trace_rows = rows;
}

int engine_take_stats(struct engine *e, struct stats *into)
{
    for (unsigned i = 0; i < e->shard_count; i++) {
        struct stats *set = e->filled[i];
        if (!set)
            continue;
        int rc = stats_merge(into, set);
        if (rc < 0)
            return rc;
        e->filled[i] = NULL;
        struct shard_mailbox *mail = &e->shards[i].mail;
        pthread_mutex_lock(&mail->lock);
        take_traces(e, mail);
        mail->empty = set;
        pthread_mutex_unlock(&mail->lock);
        shard_wake(&e->shards[i]);
    }
    return 0;
}

/* --- status --------------------------------------------------------------------------------- */

void engine_status(struct engine *e, struct engine_status *ret)
{
    *ret = (struct engine_status){.running = e->running,
                                  .reached = true,
                                  .run_stopped = e->run_stopped,
                                  .traces_left_out = e->traces_lost};
    for (size_t c = 0; c < e->plan->class_count; c++)
        ret->running_total += e->running[c];
    for (unsigned i = 0; i < e->shard_count; i++) {
        const struct shard_report *r = &e->reports[i];
        const struct shard_counters *n = &r->counters;
        ret->reached &= r->order_done == e->order_number;
        ret->started += n->started;
        ret->succeeded += n->succeeded;
        ret->failed += n->failed;
        ret->interrupted += n->interrupted;
        ret->in_flight += n->in_flight;
        if (n->interrupted_oldest_us > ret->interrupted_oldest_us)
            ret->interrupted_oldest_us = n->interrupted_oldest_us;
        ret->connections_opened += r->http_counters.connections_opened;
        ret->connections_failed += r->http_counters.connections_failed;
        ret->retries += r->http_counters.retries;
        ret->sockets_peak += r->http_counters.sockets_peak;
        ret->ports_exhausted += n->by_failure[HTTP_FAILURE_NO_PORTS];
        ret->files_exhausted += n->by_failure[HTTP_FAILURE_NO_DESCRIPTORS];
        ret->memory_exhausted += n->by_failure[HTTP_FAILURE_MEMORY] + n->stackless;
        ret->late_starts_1ms += n->late_starts_1ms;
        ret->late_starts_10ms += n->late_starts_10ms;
        ret->tasks_started += n->tasks_started;
        ret->tasks_ended += n->tasks_ended;
        ret->arrivals_waited += n->arrivals_waited;
        ret->arrivals_missed += n->arrivals_missed;
        ret->traces_left_out += r->traces_left_out;
        if (r->cpu_pct > ret->cpu_pct)
            ret->cpu_pct = r->cpu_pct;
        if (r->loop_lag_ms > ret->loop_lag_ms)
            ret->loop_lag_ms = r->loop_lag_ms;
    }
}

uint64_t engine_raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0 && getrlimit(RLIMIT_NOFILE, &limit) < 0)
            return 0;
    }
    return limit.rlim_cur > DESCRIPTORS_APART ? limit.rlim_cur - DESCRIPTORS_APART : 0;
}

/* Each question is a task: a job with what it needs and what it finds. A task that is no longer
 * wanted is aborted and left to end by itself, so that a slow name server keeps nobody waiting; its
 * find is dropped, because it is of another run. Tasks hand over by ending (facts, harvest) or by
 * the mailbox (samplers). */
#include "worker/report/background.h"

#include "base/log.h"
#include "telemetry/harvest.h"
#include "worker/report/actors_log.h"
#include "worker/report/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define DESCRIPTION_BYTES 1024
#define DATE_BYTES        32

enum task_kind { TASK_FACTS, TASK_SAMPLER, TASK_HARVEST };

struct task {
    struct task *next;
    struct job job;
    enum task_kind kind;
    bool dropped; /* aborted: nobody waits for it */
    const struct background_options *options;

    struct cluster_facts facts; /* of TASK_FACTS */
    struct sampler sampler;     /* of TASK_SAMPLER */

    /* of TASK_HARVEST */
    struct telemetry_options telemetry;
    struct window_sample *samples;
    char date[DATE_BYTES];
    struct telemetry_result result;
    bool harvested;
    struct err err;
};

struct background {
    const struct background_options *options;
    int notify_fd;
    struct mailbox mailbox;
    struct task *tasks;
    unsigned run;  /* counts them */
    bool sampling; /* between begin and end */

    bool has_facts;
    struct cluster_facts facts;
    json_t *server_document, *server_flat;
    struct actors_log actors;
    struct actors_summary actors_summary;
    bool actors_failed;    /* to keep a sample; said so */
    struct reading *users; /* not yet taken by background_next_users */
    size_t users_count, users_next;
};

/* --- the work, on the tasks' threads --------------------------------------------------------- */

static void read_facts(void *context, int abort_fd)
{
    struct task *t = context;
    struct facts_options options = t->options->facts_options;
    options.abort_fd = abort_fd;
    int rc = facts_read(&options, &t->facts);
    if (rc < 0)
        (void)err_set(&t->err, rc, "%s", strerror(-rc)); /* the task holds it */
}

static void harvest(void *context, int abort_fd)
{
    struct task *t = context;
    struct buf token;
    int rc = prometheus_open(&t->options->prometheus, &token, &t->telemetry.access, &t->err);
    if (rc == 0) {
        rc = telemetry_harvest(&t->telemetry, abort_fd, &t->result);
        t->harvested = rc == 0;
        if (rc < 0)
            (void)err_set(&t->err, rc, "%s", strerror(-rc)); /* the same */
    }
    if (token.ptr)
        explicit_bzero(token.ptr, token.len);
    buf_done(&token);
}

/* --- tasks ----------------------------------------------------------------------------------- */

static void task_free(struct task *t)
{
    job_join(&t->job);
    cluster_facts_done(&t->facts);
    telemetry_result_done(&t->result);
    free(t->samples);
    free(t);
}

static struct task *task_new(struct background *b, enum task_kind kind)
{
    struct task *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->kind = kind;
    t->options = b->options;
    return t;
}

/* Takes the task over (NULL: out of memory), whatever becomes of it. */
static void start(struct background *b, struct task *t, job_work *work, void *context,
                  const char *what)
{
    int rc = t ? job_start(&t->job, work, context, b->notify_fd) : -ENOMEM;
    if (rc < 0) {
        log_warning("cannot start reading %s (%s), continuing", what, strerror(-rc));
        if (t)
            task_free(t);
        return;
    }
    t->next = b->tasks;
    b->tasks = t;
}

static void drop(struct task *t)
{
    t->dropped = true;
    job_abort(&t->job);
}

static bool pending(const struct background *b, enum task_kind kind)
{
    for (const struct task *t = b->tasks; t; t = t->next) {
        if (t->kind == kind && !t->dropped)
            return true;
    }
    return false;
}

/* --- what they found ------------------------------------------------------------------------- */

static void tell_facts(const struct cluster_facts *f)
{
    struct buf line;
    buf_init(&line, DESCRIPTION_BYTES);
    if (cluster_facts_describe(f, &line) == 0)
        log_info("cluster: %s", buf_c(&line));
    buf_done(&line);
    for (unsigned i = 0; i < FACTS_PARTS; i++) {
        if (f->why[i][0] != '\0')
            log_warning("cluster facts: %s: %s, continuing", facts_part_name((enum facts_part)i),
                        f->why[i]);
    }
}

static void take_facts(struct background *b, struct task *t)
{
    cluster_facts_done(&b->facts);
    b->facts = t->facts;
    t->facts = (struct cluster_facts){0};
    b->has_facts = true;
    if (t->err.code < 0)
        log_warning("cluster facts: %s, continuing", t->err.text);
    else
        tell_facts(&b->facts);
}

static void take_harvest(struct background *b, struct task *t)
{
    if (!t->harvested) {
        log_warning("server telemetry: %s, continuing", t->err.text);
        return;
    }
    const struct telemetry_result *r = &t->result;
    for (size_t i = 0; i < r->failures.count; i++)
        log_warning("%s, continuing", r->failures.lines[i]);
    for (size_t i = 0; i < r->remarks.count; i++)
        log_debug("%s", r->remarks.lines[i]);
    if (r->queries_ok > 0)
        log_info("server telemetry: %zu queries answered, %zu failed", r->queries_ok,
                 r->queries_failed);
    b->server_document = json_incref(r->document);
    b->server_flat = json_incref(r->flat);
}

static void take(struct background *b, struct task *t)
{
    switch (t->kind) {
    case TASK_FACTS:
        take_facts(b, t);
        break;
    case TASK_HARVEST:
        take_harvest(b, t);
        break;
    case TASK_SAMPLER:
        break;
    }
}

/* Of those that have ended; the others stay in the list. */
static void take_ended(struct background *b)
{
    struct task **at = &b->tasks;
    while (*at) {
        struct task *t = *at;
        if (!job_take(&t->job)) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        if (!t->dropped)
            take(b, t);
        task_free(t);
    }
}

static void keep_actors(struct background *b, const struct reading *r)
{
    int rc = actors_log_add(&b->actors, &r->scrape, r->wall_s);
    if (rc < 0 && !b->actors_failed) {
        b->actors_failed = true;
        log_warning("cannot keep a sample of the actor gauge (%s), continuing", strerror(-rc));
    }
}

static int keep_users(struct background *b, const struct reading *r)
{
    if (b->users_next == b->users_count)
        b->users_next = b->users_count = 0;
    struct reading *grown = realloc(b->users, (b->users_count + 1) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    b->users = grown;
    b->users[b->users_count++] = *r;
    return 0;
}

static void take_mail(struct background *b)
{
    size_t count;
    struct reading *readings = mailbox_take(&b->mailbox, &count);
    for (size_t i = 0; i < count; i++) {
        struct reading *r = &readings[i];
        bool wanted = b->sampling && r->run == b->run;
        if (wanted && r->kind == SAMPLER_ACTORS)
            keep_actors(b, r);
        else if (wanted && keep_users(b, r) < 0)
            log_warning("no memory for a sample of the user count, continuing");
        actors_scrape_done(&r->scrape);
    }
    free(readings);
}

void background_poll(struct background *b)
{
    uint64_t rings;
    ssize_t n = read(b->notify_fd, &rings, sizeof rings);
    (void)n; /* nothing there: looking costs nothing */
    take_mail(b);
    take_ended(b);
}

/* --- a run ----------------------------------------------------------------------------------- */

static void drop_all(struct background *b, enum task_kind kind)
{
    for (struct task *t = b->tasks; t; t = t->next) {
        if (t->kind == kind)
            drop(t);
    }
}

static void forget_harvest(struct background *b)
{
    json_decref(b->server_document);
    json_decref(b->server_flat);
    b->server_document = b->server_flat = NULL;
}

static void forget(struct background *b)
{
    cluster_facts_done(&b->facts);
    b->facts = (struct cluster_facts){0};
    b->has_facts = false;
    forget_harvest(b);
    actors_log_clear(&b->actors);
    b->actors_failed = false;
    b->users_count = b->users_next = 0;
}

static void start_sampler(struct background *b, enum sampler_kind kind, const char *url,
                          const char *what)
{
    const struct background_options *o = b->options;
    struct task *t = task_new(b, TASK_SAMPLER);
    if (t)
        t->sampler = (struct sampler){
            .kind = kind,
            .run = b->run,
            .url = url,
            .auth = o->master_web_auth,
            .prometheus = &o->prometheus,
            .users_query = o->users_query,
            .mailbox = &b->mailbox,
        };
    start(b, t, sampler_work, t ? &t->sampler : NULL, what);
}

void background_begin(struct background *b)
{
    const struct background_options *o = b->options;
    background_abort(b);
    forget(b);
    b->run++;
    b->sampling = true;
    if (o->facts) {
        struct task *t = task_new(b, TASK_FACTS);
        start(b, t, read_facts, t, "the cluster facts");
    }
    if (o->actors_metrics_url)
        start_sampler(b, SAMPLER_ACTORS, o->actors_metrics_url, "the actor gauge");
    if (o->master_web_url)
        start_sampler(b, SAMPLER_MASTER_WEB, o->master_web_url, "the master's user count");
    if (o->prometheus.access.url && o->users_query)
        start_sampler(b, SAMPLER_PROMETHEUS, NULL, "the user count in Prometheus");
}

void background_end(struct background *b)
{
    take_mail(b);
    b->sampling = false;
    drop_all(b, TASK_SAMPLER);
}

bool background_harvests(const struct background *b)
{
    return b->options->prometheus.access.url && b->options->profile;
}

static int copy_samples(struct task *t, const struct users_sample *samples, size_t count)
{
    t->samples = calloc(count + 1, sizeof *t->samples);
    if (!t->samples)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        t->samples[i] = (struct window_sample){samples[i].wall_s, samples[i].users};
    return 0;
}

static void set_date(struct task *t, double wall_s)
{
    struct tm utc;
    time_t seconds = (time_t)wall_s;
    if (!gmtime_r(&seconds, &utc) ||
        strftime(t->date, sizeof t->date, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        t->date[0] = '\0'; /* a year that nobody will see */
}

void background_harvest(struct background *b, struct window run, const struct users_sample *samples,
                        size_t sample_count)
{
    const struct background_options *o = b->options;
    if (!background_harvests(b))
        return;
    forget_harvest(b);
    struct task *t = task_new(b, TASK_HARVEST);
    if (t && copy_samples(t, samples, sample_count) < 0) {
        task_free(t);
        t = NULL;
    }
    if (t) {
        set_date(t, run.end_s);
        t->telemetry = (struct telemetry_options){
            .profile = o->profile,
            .lag_s = o->telemetry_lag_s,
            .test_name = o->test_name,
            .tag = o->tag,
            .data_timestamp = t->date,
            .run = run,
            .worker_pod_count = b->has_facts ? b->facts.worker_pod_count : MEASURE_UNKNOWN,
            .samples = t->samples,
            .sample_count = sample_count,
        };
    }
    start(b, t, harvest, t, "the server telemetry");
}

bool background_facts_pending(const struct background *b)
{
    return pending(b, TASK_FACTS);
}

struct measure background_longest_s(const struct background *b)
{
    const struct background_options *o = b->options;
    if (!background_harvests(b))
        return MEASURE_UNKNOWN;
    double facts_s = background_facts_pending(b) ? FACTS_LONGEST_S : 0;
    return measure_of(facts_s + telemetry_longest_s(o->profile, o->telemetry_lag_s));
}

bool background_busy(const struct background *b)
{
    return pending(b, TASK_FACTS) || pending(b, TASK_HARVEST);
}

void background_drop_facts(struct background *b)
{
    drop_all(b, TASK_FACTS);
}

void background_abort(struct background *b)
{
    drop_all(b, TASK_FACTS);
    drop_all(b, TASK_SAMPLER);
    drop_all(b, TASK_HARVEST);
}

/* --- what has come --------------------------------------------------------------------------- */

const struct cluster_facts *background_facts(const struct background *b)
{
    return b->has_facts ? &b->facts : NULL;
}

const json_t *background_server_document(const struct background *b)
{
    return b->server_document;
}

const json_t *background_server_flat(const struct background *b)
{
    return b->server_flat;
}

const struct actors_summary *background_actors(struct background *b)
{
    if (!b->options->actors_metrics_url ||
        actors_summarize(&b->actors.series, &b->actors_summary) < 0)
        return NULL;
    return &b->actors_summary;
}

const struct report_actors *background_actors_history(const struct background *b, size_t *ret_count)
{
    *ret_count = b->actors.count;
    return b->actors.count > 0 ? b->actors.rows : NULL;
}

bool background_next_users(struct background *b, enum users_source *ret_source,
                           struct users_sample *ret)
{
    if (b->users_next == b->users_count)
        return false;
    const struct reading *r = &b->users[b->users_next++];
    *ret_source = r->kind == SAMPLER_MASTER_WEB ? USERS_SOURCE_MASTER_WEB : USERS_SOURCE_PROMETHEUS;
    *ret = (struct users_sample){.wall_s = r->wall_s, .users = r->users};
    return true;
}

/* --- making ---------------------------------------------------------------------------------- */

int background_new(const struct background_options *options, struct background **ret,
                   struct err *err)
{
    struct background *b = calloc(1, sizeof *b);
    if (!b)
        return err_set(err, -ENOMEM, "out of memory");
    b->options = options;
    b->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = b->notify_fd < 0 ? -errno : mailbox_init(&b->mailbox, b->notify_fd);
    if (rc < 0) {
        if (b->notify_fd >= 0)
            (void)close(b->notify_fd);
        free(b);
        return err_set(err, rc, "cannot begin the report: %s", strerror(-rc));
    }
    *ret = b;
    return 0;
}

void background_free(struct background *b)
{
    if (!b)
        return;
    background_abort(b);
    while (b->tasks) {
        struct task *t = b->tasks;
        b->tasks = t->next;
        task_free(t);
    }
    forget(b);
    actors_log_done(&b->actors);
    mailbox_done(&b->mailbox);
    free(b->users);
    (void)close(b->notify_fd);
    free(b);
}

int background_fd(const struct background *b)
{
    return b->notify_fd;
}

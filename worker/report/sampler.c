#include "worker/report/sampler.h"

#include "base/clock.h"
#include "base/log.h"
#include "worker/report/job.h"
#include "worker/report/leader.h"

#include <poll.h>
#include <stdlib.h>

#define URL_BYTES 16384u

/* --- the mailbox ----------------------------------------------------------------------------- */

int mailbox_init(struct mailbox *m, int notify_fd)
{
    *m = (struct mailbox){.notify_fd = notify_fd};
    return -pthread_mutex_init(&m->lock, NULL);
}

void mailbox_done(struct mailbox *m)
{
    size_t count;
    struct reading *left = mailbox_take(m, &count);
    for (size_t i = 0; i < count; i++)
        actors_scrape_done(&left[i].scrape);
    free(left);
    (void)pthread_mutex_destroy(&m->lock); /* nobody holds it */
}

struct reading *mailbox_take(struct mailbox *m, size_t *ret_count)
{
    pthread_mutex_lock(&m->lock);
    struct reading *readings = m->readings;
    *ret_count = m->count;
    m->readings = NULL;
    m->count = 0;
    pthread_mutex_unlock(&m->lock);
    return readings;
}

/* Takes the scrape over, also when the reading has to be dropped. */
static void put(struct mailbox *m, struct reading *reading)
{
    pthread_mutex_lock(&m->lock);
    struct reading *grown = NULL;
    if (m->count < SAMPLER_UNREAD_MAX)
        grown = realloc(m->readings, (m->count + 1) * sizeof *grown);
    if (grown) {
        m->readings = grown;
        m->readings[m->count++] = *reading;
    }
    pthread_mutex_unlock(&m->lock);
    if (grown)
        job_ring(m->notify_fd);
    else
        actors_scrape_done(&reading->scrape);
}

/* --- the questions --------------------------------------------------------------------------- */

static int fetch(const struct http_query *request, int abort_fd, struct http_answer *ret,
                 struct err *err)
{
    int rc = http_fetch(request, 1, abort_fd, ret);
    if (rc < 0 || ret->code < 0)
        return err_set(err, rc < 0 ? rc : ret->code, "%s", ret->error);
    return http_answer_ok(ret) ? 0 : err_set(err, -EPROTO, "%s", ret->error);
}

static int ask_actors(const struct sampler *s, int abort_fd, struct reading *ret, struct err *err)
{
    static const char *const headers[] = {"Accept: text/plain;version=0.0.4"};
    const struct http_query request = {
        .url = s->url,
        .headers = headers,
        .header_count = 1,
        .timeout_ms = SAMPLER_TIMEOUT_MS,
        .max_bytes = ACTORS_PAGE_BYTES,
    };
    struct http_answer answer;
    int rc = fetch(&request, abort_fd, &answer, err);
    if (rc == 0)
        rc = actors_parse(buf_str(&answer.body), &ret->scrape, err);
    http_answer_done(&answer);
    return rc;
}

/* "user:password" as two texts within the copy. */
static void split_auth(char *copy, struct http_query *request)
{
    char *colon = strchr(copy, ':');
    if (colon)
        *colon = '\0';
    request->username = copy;
    request->password = colon ? colon + 1 : "";
}

static int web_url(const char *base, struct buf *url)
{
    struct str b = str_of(base);
    while (b.len > 0 && b.ptr[b.len - 1] == '/')
        b.len--;
    int rc = buf_add(url, b);
    return rc < 0 ? rc : buf_add(url, STR("/stats/requests"));
}

static int ask_master_web(const struct sampler *s, int abort_fd, struct reading *ret,
                          struct err *err)
{
    struct http_query request = {.timeout_ms = SAMPLER_TIMEOUT_MS, .max_bytes = LEADER_WEB_BYTES};
    struct http_answer answer = {0};
    struct buf url;
    char *auth = s->auth ? strdup(s->auth) : NULL;
    buf_init(&url, URL_BYTES);
    int rc = s->auth && !auth ? -ENOMEM : web_url(s->url, &url);
    if (rc < 0)
        (void)err_set(err, rc, "%s", strerror(-rc)); /* rc says it too */
    if (auth)
        split_auth(auth, &request);
    request.url = buf_c(&url);
    if (rc == 0)
        rc = fetch(&request, abort_fd, &answer, err);
    if (rc == 0)
        rc = leader_web_users(answer.content_type, buf_str(&answer.body), &ret->users, err);
    http_answer_done(&answer);
    free(auth);
    buf_done(&url);
    return rc;
}

int prometheus_open(const struct prometheus *p, struct buf *token, struct query_access *ret,
                    struct err *err)
{
    buf_init(token, SAMPLER_TOKEN_BYTES);
    *ret = p->access;
    if (!p->bearer_token_file)
        return 0;
    int rc = buf_read_file(token, p->bearer_token_file, err);
    if (rc < 0)
        return rc;
    struct str trimmed = str_trim(buf_str(token));
    if (trimmed.len == 0)
        return err_set(err, -EINVAL, "%s: is empty", p->bearer_token_file);
    token->ptr[(size_t)(trimmed.ptr - token->ptr) + trimmed.len] = '\0';
    ret->bearer_token = trimmed.ptr;
    return 0;
}

/* -ENOENT without a text: Prometheus does not know it (yet). */
static int users_of(const struct query_outcome *o, double *ret, struct err *err)
{
    if (o->err.code < 0)
        return err_set(err, o->err.code, "%s", o->err.text);
    if (o->answer.count == 0 || o->answer.series[0].count == 0)
        return -ENOENT;
    if (o->answer.count > 1)
        return err_set(err, -EPROTO, "the query gives %zu series and not one: sum(…)?",
                       o->answer.count);
    *ret = o->answer.series[0].samples[0].value;
    return 0;
}

static int ask_prometheus(const struct sampler *s, int abort_fd, struct reading *ret,
                          struct err *err)
{
    struct buf token;
    struct query_access access;
    struct query_outcome outcome = {0};
    char *text = strdup(s->users_query);
    const double now_s = clock_wall_s();
    const struct query query = {.text = text, .span = {now_s, now_s}};
    int rc = prometheus_open(s->prometheus, &token, &access, err);
    if (rc == 0 && !text)
        rc = -ENOMEM;
    if (rc == 0)
        rc = query_ask(&access, &query, 1, abort_fd, &outcome);
    if (rc == 0)
        rc = users_of(&outcome, &ret->users, err);
    query_outcome_done(&outcome);
    buf_done(&token);
    free(text);
    return rc;
}

/* --- each second ----------------------------------------------------------------------------- */

static int ask(const struct sampler *s, int abort_fd, struct reading *ret, struct err *err)
{
    switch (s->kind) {
    case SAMPLER_ACTORS:
        return ask_actors(s, abort_fd, ret, err);
    case SAMPLER_MASTER_WEB:
        return ask_master_web(s, abort_fd, ret, err);
    case SAMPLER_PROMETHEUS:
        return ask_prometheus(s, abort_fd, ret, err);
    case SAMPLER_KINDS:
        break;
    }
    return -EINVAL;
}

static const char *what(enum sampler_kind kind)
{
    static const char *const names[SAMPLER_KINDS] = {"the actor gauge", "the master's user count",
                                                     "the user count in Prometheus"};
    return names[kind];
}

static void complain(struct sampler *s, const struct err *err)
{
    if (s->failed || err->code == 0 || err->code == -ECANCELED)
        return;
    s->failed = true;
    log_warning("%s cannot be read (%s), continuing", what(s->kind), err->text);
}

/* Until then or until aborted; true: aborted. */
static bool wait_until(uint64_t until_us, int abort_fd)
{
    struct pollfd p = {.fd = abort_fd, .events = POLLIN};
    for (;;) {
        uint64_t now_us = clock_mono_us();
        int left_ms = now_us < until_us ? (int)((until_us - now_us + 999) / 1000) : 0;
        int n = poll(&p, 1, left_ms);
        if (n > 0)
            return true;
        if (n == 0 && left_ms == 0)
            return false;
    }
}

void sampler_work(void *context, int abort_fd)
{
    struct sampler *s = context;
    uint64_t next_us = clock_mono_us();
    while (!wait_until(next_us, abort_fd)) {
        struct reading reading = {.kind = s->kind, .run = s->run};
        struct err err = {0};
        int rc = ask(s, abort_fd, &reading, &err);
        reading.wall_s = clock_wall_s();
        if (rc == 0) {
            put(s->mailbox, &reading);
        } else {
            actors_scrape_done(&reading.scrape);
            complain(s, &err);
        }
        next_us += SAMPLER_PERIOD_US;
        if (next_us < clock_mono_us()) /* a slow answer: no burst to catch up */
            next_us = clock_mono_us();
    }
}

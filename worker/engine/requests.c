/* What a user's requests are: sent, redirected, recorded. */
#include "worker/engine/requests.h"

#include "worker/engine/answer.h"
#include "worker/engine/cookies.h"
#include "worker/engine/made_call.h"
#include "worker/engine/native.h"
#include "worker/engine/redirect.h"
#include "worker/engine/tracer.h"
#include "worker/engine/user_cookies.h"
#include "worker/engine/variables.h"

#include <stdlib.h>

#define MAX_REDIRECTS      30    /* as Locust's client */
#define MAX_REDIRECT_BYTES 65536 /* of one URL */

static const struct plan_request *request_of(const struct user *u)
{
    return &u->task->steps[u->step].request;
}

static void redirect_clear(struct user *u)
{
    struct user_redirect *r = u->redirect;
    if (!r)
        return;
    u->shard->ops->unprepare(&r->call);
    free(r->headers);
    buf_done(&r->url);
    free(r);
    u->redirect = NULL;
}

void requests_forget(struct user *u)
{
    redirect_clear(u);
    if (u->made) {
        made_call_release(u->made, u->shard);
        u->made = NULL;
    }
}

/* --- recording ------------------------------------------------------------------------------ */

static bool status_expected(const struct plan_request *request, unsigned status)
{
    if (request->expected_status_count == 0)
        return status < 400 || request->any_status;
    for (size_t i = 0; i < request->expected_status_count; i++) {
        if (request->expected_status[i] == status)
            return true;
    }
    return false;
}

static void record_times(struct user *u, uint32_t slot, const struct http_result *result,
                         uint64_t now_us)
{
    bool service = user_has_schedule(u);
    if (!service && !result->phases_us)
        return;
    struct stats_times times = {
        .service_us = service ? now_us - u->request_sent_us : STATS_NO_TIME,
        .phases_us = result->phases_us,
    };
    stats_record_times(u->shard->stats, slot, &times);
}

static struct str own_name(const struct user *u, const struct plan_request *request)
{
    return u->made ? u->made->name : request->name;
}

/* The plan's entry, or the one of the name that the request got. False: no memory for it. */
static bool slot_of(const struct user *u, const struct plan_request *request, uint32_t *ret)
{
    if (request->entry != PLAN_NO_ENTRY) {
        *ret = u->shard->slots[request->entry];
        return true;
    }
    return stats_slot(u->shard->stats, request->method, own_name(u, request), ret) == 0;
}

/* As its row in the tables is named. */
static struct str shown_name(const struct user *u)
{
    if (u->native)
        return u->native->call->row;
    const struct plan_request *request = request_of(u);
    return request->entry != PLAN_NO_ENTRY ? u->shard->plan->entries[request->entry].name
                                           : own_name(u, request);
}

/* Count an ended request; an error is the text to count its failure under, ptr NULL: it succeeded.
 * Without memory for its entry only the counters know it. */
static void record(struct user *u, const struct http_result *result, struct str error,
                   uint64_t now_us)
{
    struct shard *s = u->shard;
    const struct plan_request *request = request_of(u);
    uint32_t slot;
    const struct stats_sample sample = {
        .response_time_us = now_us - u->request_start_us,
        .content_length_bytes = result->failure == HTTP_FAILURE_NONE ? result->body_bytes : 0,
        .wall_s = (double)now_us / 1e6 + s->wall_offset_s,
    };
    bool counted = slot_of(u, request, &slot);
    if (counted) {
        stats_record(s->stats, slot, &sample);
        record_times(u, slot, result, now_us);
    }
    if (u->trace)
        tracer_record(u, shown_name(u), error, now_us);
    u->state = USER_RESUMING; /* nothing is under way any more, should the user end now */
    s->counters.in_flight--;
    if (!error.ptr) {
        s->counters.succeeded++;
        return;
    }
    s->counters.failed++;
    s->counters.by_failure[result->failure]++;
    if (u->variables)
        u->variables->failures++;
    u->stop_next = (uint8_t)request->on_failure;
    if (counted)
        stats_record_error(s->stats, slot, error, sample.wall_s);
}

void requests_record_group(struct user *u, uint32_t entry, uint64_t took_us, bool failed,
                           uint64_t now_us)
{
    struct shard *s = u->shard;
    uint32_t slot = s->slots[entry];
    const struct stats_sample sample = {
        .response_time_us = took_us,
        .wall_s = (double)now_us / 1e6 + s->wall_offset_s,
    };
    stats_record(s->stats, slot, &sample);
    s->counters.started++;
    if (!failed) {
        s->counters.succeeded++;
        return;
    }
    s->counters.failed++;
    stats_record_error(s->stats, slot, STR("a request of the group failed"), sample.wall_s);
}

/* --- sending -------------------------------------------------------------------------------- */

static void failed(struct user *u, enum http_failure failure, struct str error, uint64_t now_us)
{
    const struct http_result result = {.failure = failure};
    record(u, &result, error.ptr ? error : http_failure_text(failure), now_us);
    requests_forget(u);
}

const struct http_call *requests_call(const struct user *u)
{
    if (u->native)
        return native_http_call(u);
    return u->made ? &u->made->call : &u->calls[u->step];
}

static enum http_failure send_with_cookies(struct user *u, const struct http_call *call,
                                           uint64_t now_us)
{
    struct str cookies;
    if (user_cookies_for(u, call, now_us, &cookies) < 0)
        return HTTP_FAILURE_MEMORY;
    return u->shard->ops->begin(u->client, call, cookies, now_us);
}

static inline enum http_failure send_call(struct user *u, const struct http_call *call,
                                          uint64_t now_us)
{
    if (u->cookies)
        return send_with_cookies(u, call, now_us);
    return u->shard->ops->begin(u->client, call, (struct str){NULL, 0}, now_us);
}

/* The first request of a scheduled task counts from when the task was to start. A task in C may
 * have worked until now, which is not the server's time. */
void requests_stamp(struct user *u, uint64_t now_us)
{
    bool from_task = u->fresh && (!u->native || u->native->scheduled);
    u->request_sent_us = now_us;
    u->request_start_us = from_task ? u->task_start_us : now_us;
    u->fresh = false;
}

/* The first sending of a request, redirects apart. */
static inline enum http_failure send_first(struct user *u, uint64_t now_us)
{
    const struct http_call *call = requests_call(u);
    if (__builtin_expect(u->shard->tracer != NULL, 0))
        call = tracer_send(u->shard->tracer, u, call);
    return send_call(u, call, now_us);
}

static void start(struct user *u, uint64_t now_us)
{
    requests_stamp(u, now_us);
    u->shard->counters.started++;
    u->shard->counters.in_flight++;
    u->state = USER_REQUESTING;
}

enum http_failure requests_send(struct user *u, uint64_t now_us)
{
    start(u, now_us);
    return send_first(u, now_us);
}

/* Make the request of its variables. *ret_error: why it cannot be sent; ptr NULL: it can. */
static int make(struct user *u, uint64_t now_us, enum http_failure *ret_failure,
                struct str *ret_error)
{
    int rc = made_call_new(u, request_of(u), &u->calls[u->step], now_us, &u->made);
    *ret_failure = rc == -ENOMEM ? HTTP_FAILURE_MEMORY : HTTP_FAILURE_NONE;
    if (rc == -EINVAL) {
        *ret_failure = HTTP_FAILURE_OTHER;
        *ret_error = str_of(u->made->error);
    }
    if (rc == -ENODATA)
        requests_forget(u);
    return rc == -ENODATA ? rc : 0;
}

enum requests_begun requests_begin(struct user *u, uint64_t now_us)
{
    enum http_failure failure = HTTP_FAILURE_NONE;
    struct str error = {NULL, 0};
    if (u->calls[u->step].once && make(u, now_us, &failure, &error) < 0)
        return REQUESTS_END_OF_FEED;
    start(u, now_us);
    if (failure == HTTP_FAILURE_NONE)
        failure = send_first(u, now_us);
    if (failure == HTTP_FAILURE_NONE)
        return REQUESTS_UNDER_WAY;
    failed(u, failure, error, now_us);
    return REQUESTS_FAILED;
}

/* --- redirects ------------------------------------------------------------------------------ */

/* The scenario's own cookies are for the first request only, as in Locust: the jar's go with the
 * next ones. */
static bool keeps_header(struct str name, bool body, bool same)
{
    if (str_eq_nocase(name, STR("Cookie")) || (!body && str_eq_nocase(name, STR("Content-Type"))))
        return false;
    return same || !(str_eq_nocase(name, STR("Authorization")) || str_eq_nocase(name, STR("Host")));
}

static int copy_headers(struct user_redirect *r, const struct http_call *from, bool body, bool same)
{
    struct plan_header *headers = calloc(from->header_count + 1, sizeof *headers);
    size_t n = 0;
    if (!headers)
        return -ENOMEM;
    for (size_t i = 0; i < from->header_count; i++) {
        if (keeps_header(from->headers[i].name, body, same))
            headers[n++] = from->headers[i];
    }
    free(r->headers);
    r->headers = headers;
    r->call.headers = headers;
    r->call.header_count = n;
    return 0;
}

/* Build the hop in a new struct beside the one it comes from. */
static enum http_failure make_hop(struct user *u, const struct http_call *from,
                                  const struct http_result *result, struct user_redirect *r)
{
    bool body = redirect_keeps_body(result->status);
    buf_init(&r->url, MAX_REDIRECT_BYTES);
    int rc = redirect_resolve(&r->url, from->url, result->location);
    if (rc < 0)
        return rc == -ENOMEM ? HTTP_FAILURE_MEMORY : HTTP_FAILURE_BAD_REDIRECT;
    bool same = redirect_same_origin(from->url, buf_str(&r->url));
    r->call = *from;
    r->call.prepared = NULL;
    r->call.added = u->trace ? u->trace->call.added : (struct str){NULL, 0};
    r->call.url = buf_str(&r->url);
    if (redirect_becomes_get(result->status, from->method))
        r->call.method = STR("GET");
    if (!body)
        r->call.body = (struct str){NULL, 0};
    if (copy_headers(r, from, body, same) < 0 || u->shard->ops->prepare(&r->call) < 0)
        return HTTP_FAILURE_MEMORY;
    return HTTP_FAILURE_NONE;
}

enum http_failure requests_follow(struct user *u, const struct http_result *result, uint64_t now_us)
{
    const struct http_call *first = requests_call(u);
    const struct http_call *from = u->redirect ? &u->redirect->call : first;
    unsigned hops = u->redirect ? u->redirect->hops + 1 : 1;
    uint64_t spent_us = now_us - u->request_sent_us;
    if (hops > MAX_REDIRECTS)
        return HTTP_FAILURE_TOO_MANY_REDIRECTS;
    if (first->timeouts.total_us && spent_us >= first->timeouts.total_us)
        return HTTP_FAILURE_TIMEOUT;
    struct user_redirect *r = calloc(1, sizeof *r), *old = u->redirect;
    if (!r)
        return HTTP_FAILURE_MEMORY;
    r->hops = hops;
    enum http_failure failure = make_hop(u, from, result, r);
    if (failure == HTTP_FAILURE_NONE && first->timeouts.total_us)
        r->call.timeouts.total_us = first->timeouts.total_us - spent_us;
    u->redirect = r;
    if (failure == HTTP_FAILURE_NONE)
        failure = send_call(u, &r->call, now_us);
    u->redirect = old; /* the hop before: freed now that nothing is made of it any more */
    redirect_clear(u);
    u->redirect = r;
    return failure;
}

/* --- answers -------------------------------------------------------------------------------- */

/* The text of the failure; ptr NULL: it is a success. */
static struct str judge(struct user *u, const struct http_result *result, uint64_t now_us)
{
    const struct plan_request *request = request_of(u);
    struct str error = {NULL, 0};
    if (result->failure != HTTP_FAILURE_NONE)
        return http_failure_text(result->failure);
    if (!status_expected(request, result->status))
        return http_status_text(result->status);
    if (request->check_count + request->extract_count == 0)
        return error;
    if (answer_judge(u, request, result, now_us - u->request_start_us, now_us, &error) == -ENODATA)
        u->stop_next = PLAN_STOP_USER;
    return error;
}

enum requests_end requests_answered(struct user *u, const struct http_result *result,
                                    uint64_t now_us)
{
    const struct plan_request *request = request_of(u);
    if (request->follow_redirects && requests_redirects(result)) {
        enum http_failure failure = requests_follow(u, result, now_us);
        if (failure == HTTP_FAILURE_NONE)
            return REQUESTS_REDIRECTED;
        failed(u, failure, (struct str){NULL, 0}, now_us);
        return REQUESTS_NOT_REDIRECTED;
    }
    record(u, result, judge(u, result, now_us), now_us);
    requests_forget(u);
    return REQUESTS_ANSWERED;
}

void requests_take_cookie(struct user *u, struct str value)
{
    user_cookies_take(u, u->redirect ? &u->redirect->call : requests_call(u), value);
}

void requests_count_cut(struct user *u, uint64_t now_us)
{
    struct shard_counters *counters = &u->shard->counters;
    uint64_t age_us = now_us - u->request_start_us;
    if (u->trace)
        tracer_record(u, shown_name(u), STR("interrupted"), now_us);
    counters->interrupted++;
    counters->in_flight--;
    if (age_us > counters->interrupted_oldest_us)
        counters->interrupted_oldest_us = age_us;
}

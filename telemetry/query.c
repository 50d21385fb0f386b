#include "telemetry/query.h"

#include "telemetry/promql.h"

#include <math.h>
#include <stdlib.h>

#define FORM_BYTES (4u * PROMQL_TEXT_BYTES) /* percent-encoding takes at most three times */

/* --- the request --------------------------------------------------------------------------------
 */

double query_step_s(struct window span, double wanted_s)
{
    double least = ceil((span.end_s - span.start_s) / (QUERY_POINTS_MAX - 1));
    return fmax(wanted_s, least);
}

const char *query_path(const struct query *q)
{
    return q->is_range ? "/api/v1/query_range" : "/api/v1/query";
}

static int add_field(struct buf *b, const char *name, double seconds)
{
    int rc = buf_printf(b, "&%s=", name);
    return rc < 0 ? rc : promql_add_time(b, seconds);
}

int query_add_form(struct buf *b, const struct query *q)
{
    int rc = buf_add(b, STR("query="));
    if (rc == 0)
        rc = http_escape(b, str_of(q->text));
    if (rc == 0 && !q->is_range)
        rc = add_field(b, "time", q->span.end_s);
    if (rc == 0 && q->is_range)
        rc = add_field(b, "start", q->span.start_s);
    if (rc == 0 && q->is_range)
        rc = add_field(b, "end", q->span.end_s);
    if (rc == 0 && q->is_range)
        rc = add_field(b, "step", query_step_s(q->span, q->step_s));
    return rc;
}

int query_check_url(const char *url, struct err *err)
{
    struct buf shown;
    buf_init(&shown, FORM_BYTES);
    int rc = http_url_shown(&shown, url);
    buf_done(&shown);
    if (rc == -ENOMEM)
        return err_set(err, rc, "out of memory");
    if (rc < 0)
        return err_set(err, -EINVAL, "not an absolute http or https URL");
    if (strpbrk(url, "?#"))
        return err_set(err, -EINVAL, "the URL of a server must have no query and no fragment");
    return 0;
}

/* The strings that a request borrows. */
struct sent {
    struct buf url, form;
    const char **headers;
};

static int add_base(struct buf *b, const char *url)
{
    struct str base = str_of(url);
    while (base.len && base.ptr[base.len - 1] == '/')
        base.len--;
    return buf_add(b, base);
}

static int prepare(const struct query_access *access, const struct query *q, struct sent *s,
                   struct http_query *ret)
{
    buf_init(&s->url, 2 * FORM_BYTES);
    buf_init(&s->form, FORM_BYTES);
    s->headers = calloc(access->header_count + 1, sizeof *s->headers);
    int rc = s->headers ? add_base(&s->url, access->url) : -ENOMEM;
    if (rc == 0)
        rc = buf_add(&s->url, str_of(query_path(q)));
    if (rc == 0)
        rc = query_add_form(&s->form, q);
    bool post = s->form.len > QUERY_GET_BYTES;
    if (rc == 0 && !post)
        rc = buf_printf(&s->url, "?%s", buf_c(&s->form));
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < access->header_count; i++)
        s->headers[i] = access->headers[i];
    s->headers[access->header_count] = "Content-Type: application/x-www-form-urlencoded";
    *ret = (struct http_query){
        .url = buf_c(&s->url),
        .body = post ? buf_str(&s->form) : (struct str){NULL, 0},
        .headers = s->headers,
        .header_count = access->header_count + (post ? 1 : 0),
        .bearer_token = access->bearer_token,
        .username = access->username,
        .password = access->password,
        .tls = access->tls,
        .timeout_ms = q->is_range ? QUERY_RANGE_TIMEOUT_MS : QUERY_INSTANT_TIMEOUT_MS,
        .max_bytes = ANSWER_BODY_BYTES,
    };
    return 0;
}

static void sent_done(struct sent *s)
{
    buf_done(&s->url);
    buf_done(&s->form);
    free(s->headers);
}

/* --- the answer ---------------------------------------------------------------------------------
 */

/* A refusal's own words go behind the status, when it has any. */
static void take_refusal(struct query_outcome *o, const struct http_answer *a)
{
    struct buf said;
    buf_init(&said, ERR_TEXT_BYTES);
    bool has = query_answer_add_error(&said, buf_str(&a->body));
    (void)err_set(&o->err, -EPROTO, "%s%s%s", a->error, has ? ": " : "", has ? buf_c(&said) : "");
    buf_done(&said);
}

static void take_answer(struct query_outcome *o, const struct http_answer *a)
{
    if (a->code < 0) {
        (void)err_set(&o->err, a->code, "%s", a->error); /* the outcome holds it */
        return;
    }
    if (!http_answer_ok(a)) {
        take_refusal(o, a);
        return;
    }
    if (query_answer_parse(buf_str(&a->body), &o->answer, &o->err) == 0)
        return;
    query_answer_done(&o->answer);
    o->answer = (struct query_answer){0};
}

static int fail_all(struct query_outcome *outcomes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)err_set(&outcomes[i].err, -ENOMEM, "out of memory"); /* the outcome holds it */
    return -ENOMEM;
}

int query_ask(const struct query_access *access, const struct query *queries, size_t count,
              int abort_fd, struct query_outcome *ret_outcomes)
{
    for (size_t i = 0; i < count; i++)
        ret_outcomes[i] = (struct query_outcome){0};
    struct sent *sent = calloc(count + 1, sizeof *sent);
    struct http_query *requests = calloc(count + 1, sizeof *requests);
    struct http_answer *answers = calloc(count + 1, sizeof *answers);
    int rc = sent && requests && answers ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = prepare(access, &queries[i], &sent[i], &requests[i]);
    if (rc == 0)
        rc = http_fetch(requests, count, abort_fd, answers);
    for (size_t i = 0; rc == 0 && i < count; i++)
        take_answer(&ret_outcomes[i], &answers[i]);
    for (size_t i = 0; i < count; i++) {
        if (answers)
            http_answer_done(&answers[i]);
        if (sent)
            sent_done(&sent[i]);
    }
    free(sent);
    free(requests);
    free(answers);
    return rc < 0 ? fail_all(ret_outcomes, count) : 0;
}

void query_outcome_done(struct query_outcome *o)
{
    query_answer_done(&o->answer);
    *o = (struct query_outcome){0};
}

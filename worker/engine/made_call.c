#include "worker/engine/made_call.h"

#include "worker/engine/user.h"
#include "worker/engine/variables.h"
#include "worker/scenario/encode.h"
#include "worker/scenario/url.h"

#include <stdlib.h>

static struct made_call *take_spare(struct shard *s)
{
    struct made_call *m = s->made_spare;
    if (m) {
        s->made_spare = m->next;
        s->made_spare_count--;
        return m;
    }
    m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    buf_init(&m->raw, MADE_CALL_MAX_BYTES);
    buf_init(&m->url, MADE_CALL_MAX_BYTES);
    buf_init(&m->values, MADE_CALL_MAX_BYTES);
    buf_init(&m->body, MADE_CALL_MAX_BYTES);
    buf_init(&m->name_text, MADE_CALL_MAX_BYTES);
    buf_init(&m->error_text, PLAN_MAX_NAME_BYTES * 2);
    return m;
}

static void made_call_free(struct made_call *m)
{
    buf_done(&m->raw);
    buf_done(&m->url);
    buf_done(&m->values);
    buf_done(&m->body);
    buf_done(&m->name_text);
    buf_done(&m->error_text);
    free(m->headers);
    free(m);
}

void made_call_release(struct made_call *m, struct shard *s)
{
    if (!m)
        return;
    s->ops->unprepare(&m->call);
    size_t kept = m->raw.cap + m->url.cap + m->values.cap + m->body.cap + m->name_text.cap;
    if (kept > MADE_CALL_KEEP_BYTES || s->made_spare_count == MADE_CALL_MAX_SPARE) {
        made_call_free(m);
        return;
    }
    m->next = s->made_spare;
    s->made_spare = m;
    s->made_spare_count++;
}

void made_call_free_all(struct shard *s)
{
    while (s->made_spare) {
        struct made_call *m = s->made_spare;
        s->made_spare = m->next;
        made_call_free(m);
    }
    s->made_spare_count = 0;
}

/* --- why not -------------------------------------------------------------------------------- */

static int refuse(struct made_call *m, const char *why)
{
    m->error = why;
    return -EINVAL;
}

/* The errors of render; one that only this request has to do with becomes its failure. */
static int refuse_text(struct made_call *m, int rc, const struct rendered *r)
{
    if (rc == -ERANGE)
        return refuse(m, "request too large");
    if (rc != -ENOENT)
        return rc;
    buf_clear(&m->error_text);
    rc = buf_printf(&m->error_text, "variable has no value: %.*s", STR_ARG(r->missing->name));
    return rc == -ENOMEM ? rc : refuse(m, buf_c(&m->error_text));
}

/* --- the parts ------------------------------------------------------------------------------ */

/* What a path is joined to: the request's own host, or its class's. */
static int add_host(struct user *u, struct made_call *m, const struct plan_request *r,
                    uint64_t now_us)
{
    const struct bound_class *class = &u->binding->classes[u->class];
    const struct plan_text *host = r->host.text.ptr ? &r->host : class->host_text;
    struct rendered rendered;
    if (host) {
        int rc = render(u, host, now_us, &m->values, &rendered);
        return rc ? refuse_text(m, rc, &rendered) : 0;
    }
    if (!class->host.ptr)
        return refuse(m, "request has a path and no host");
    return buf_add(&m->values, class->host);
}

/* raw has the path or URL with its values; values is used for the host. */
static int finish_url(struct user *u, struct made_call *m, const struct plan_request *r,
                      uint64_t now_us)
{
    struct url parts;
    struct str raw = buf_str(&m->raw);
    int rc;
    buf_clear(&m->url);
    if (url_is_absolute(raw)) {
        rc = url_encode(&m->url, raw);
    } else {
        buf_clear(&m->values);
        rc = add_host(u, m, r, now_us);
        if (rc < 0)
            return rc;
        buf_clear(&m->name_text);
        rc = url_encode(&m->name_text, raw);
        if (rc == 0)
            rc = url_join(&m->url, buf_str(&m->values), buf_str(&m->name_text));
    }
    if (rc < 0)
        return rc == -ERANGE ? refuse(m, "request too large") : rc;
    if (url_parse(buf_str(&m->url), &parts, NULL) < 0)
        return refuse(m, "request has no valid URL");
    m->call.url = buf_str(&m->url);
    return 0;
}

static int make_url(struct user *u, struct made_call *m, const struct plan_request *r,
                    uint64_t now_us)
{
    struct rendered rendered = {0};
    if (m->call.url.len > 0) /* known when the plan was bound */
        return 0;
    buf_clear(&m->raw);
    const struct plan_text url =
        r->url_text.piece_count ? r->url_text : (struct plan_text){.text = r->url};
    int rc = render(u, &url, now_us, &m->raw, &rendered);
    if (rc < 0)
        return refuse_text(m, rc, &rendered);
    return finish_url(u, m, r, now_us);
}

/* A value that would end its header, or look to servers as if it did, cannot be sent. */
static bool is_header_value(struct str value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7F)
            return false;
    }
    return true;
}

/* The values lie one behind the other in a buffer that still moves: lengths first, then pointers.
 */
static int make_headers(struct user *u, struct made_call *m, const struct plan_request *r,
                        uint64_t now_us)
{
    if (!r->header_texts)
        return 0;
    if (r->header_count > m->header_room) {
        struct plan_header *headers = realloc(m->headers, r->header_count * sizeof *headers);
        if (!headers)
            return -ENOMEM;
        m->headers = headers;
        m->header_room = r->header_count;
    }
    buf_clear(&m->values);
    for (size_t i = 0; i < r->header_count; i++) {
        struct rendered rendered = {0};
        size_t at = m->values.len;
        int rc = render(u, &r->header_texts[i], now_us, &m->values, &rendered);
        if (rc < 0)
            return refuse_text(m, rc, &rendered);
        m->headers[i].value.len = m->values.len - at;
    }
    const char *at = buf_c(&m->values);
    for (size_t i = 0; i < r->header_count; i++) {
        size_t len = m->headers[i].value.len;
        struct str value = {at, len};
        if (!is_header_value(value))
            return refuse(m, "request has a header value with control characters");
        m->headers[i] = (struct plan_header){r->headers[i].name, str_trim(value)};
        at += len;
    }
    m->call.headers = m->headers;
    return 0;
}

static int make_body(struct user *u, struct made_call *m, const struct plan_request *r,
                     uint64_t now_us)
{
    struct rendered rendered = {0};
    if (r->body_text.piece_count == 0)
        return 0;
    buf_clear(&m->body);
    int rc = render(u, &r->body_text, now_us, &m->body, &rendered);
    if (rc < 0)
        return refuse_text(m, rc, &rendered);
    m->call.body = (struct str){buf_c(&m->body), m->body.len};
    return 0;
}

/* --- the name ------------------------------------------------------------------------------- */

static struct str cut_name(const struct buf *name)
{
    return str_sub(buf_str(name), 0, PLAN_MAX_NAME_BYTES);
}

/* A URL with something hidden in it is named as it is written, each variable as ":name". */
static int fold_name(struct user *u, struct made_call *m, const struct plan_request *r,
                     uint64_t now_us)
{
    int rc = 0;
    buf_clear(&m->raw);
    buf_clear(&m->values);
    rc = render_shown(u, &r->url_text, now_us, &m->raw);
    if (rc == 0)
        rc = url_encode(&m->values, buf_str(&m->raw));
    buf_clear(&m->name_text);
    return rc ? rc : encode_folded(&m->name_text, url_target(buf_str(&m->values)));
}

/* Made first, so that a request that cannot be sent has a name too. */
static int make_name(struct user *u, struct made_call *m, const struct plan_request *r,
                     uint64_t now_us)
{
    int rc = 0;
    m->name = r->name;
    switch (r->naming) {
    case PLAN_NAME_FIXED:
        return 0;
    case PLAN_NAME_TEXT:
        buf_clear(&m->name_text);
        rc = render_shown(u, &r->name_text, now_us, &m->name_text);
        break;
    case PLAN_NAME_FOLDED:
        rc = fold_name(u, m, r, now_us);
        break;
    }
    if (rc == 0)
        m->name = cut_name(&m->name_text);
    return rc == -ERANGE ? 0 : rc;
}

static int make(struct user *u, struct made_call *m, const struct plan_request *r, uint64_t now_us)
{
    int rc = make_url(u, m, r, now_us); /* uses name_text */
    int named = make_name(u, m, r, now_us);
    if (rc == 0)
        rc = named;
    if (rc == 0)
        rc = make_headers(u, m, r, now_us);
    if (rc == 0)
        rc = make_body(u, m, r, now_us);
    if (rc == 0)
        rc = u->shard->ops->prepare(&m->call);
    return rc;
}

int made_call_new(struct user *u, const struct plan_request *request, const struct http_call *bound,
                  uint64_t now_us, struct made_call **ret)
{
    struct made_call *m = take_spare(u->shard);
    if (!m)
        return -ENOMEM;
    m->call = *bound;
    m->call.prepared = NULL;
    m->error = NULL;
    int rc = make(u, m, request, now_us);
    if (rc == -ENOMEM) {
        made_call_release(m, u->shard);
        return rc;
    }
    *ret = m;
    return rc;
}

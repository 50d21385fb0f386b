#include "worker/engine/http_response.h"

void http_response_head(struct http_response *r, const struct http_parser *p,
                        const struct http_engine_setup *setup, void *owner)
{
    bool redirect = p->status >= 300 && p->status < 400, coded = false;
    struct str rest = p->head, name, value;
    if (r->call && r->call->wants_head) {
        r->head = p->head;
        if (p->held.ptr) /* it lies there, and only for now */
            http_response_copy(r);
    }
    if (!redirect && !p->has_cookies && !p->has_coding)
        return;
    while (http_parser_header(&rest, &name, &value)) {
        if (str_eq_nocase(name, STR("set-cookie"))) {
            setup->set_cookie(owner, value);
        } else if (str_eq_nocase(name, STR("content-encoding"))) {
            r->coding = coded ? CONTENT_PLAIN : content_coding_of(value);
            coded = true;
        } else if (redirect && !r->location && value.len > 0 &&
                   str_eq_nocase(name, STR("location"))) { /* an empty one leads nowhere */
            /* without memory it is a redirect without a target: not followed */
            r->location = strndup(value.ptr, value.len);
        }
    }
}

/* --- what is wanted ------------------------------------------------------------------------- */

/* NULL: no memory, which leaves the body cut. */
static struct http_kept *copies(struct http_response *r)
{
    if (!r->kept)
        r->kept = http_kept_take(r->keeper, r->call);
    r->cut |= !r->kept;
    return r->kept;
}

void http_response_copy(struct http_response *r)
{
    struct http_kept *kept = copies(r);
    if (kept && r->head.ptr && buf_add(&kept->head, r->head) < 0)
        r->cut = true;
    if (kept && r->body.ptr && buf_add(&kept->body, r->body) < 0)
        r->cut = true;
    r->head = r->body = (struct str){NULL, 0};
}

/* No more than is wanted. */
static struct str wanted(struct http_response *r, struct str bytes)
{
    size_t have = r->body.len + (r->kept ? r->kept->body.len : 0);
    size_t room = r->call->wants_body_bytes - have;
    r->cut |= bytes.len > room;
    return str_sub(bytes, 0, room);
}

static void keep_copy(struct http_response *r, struct str bytes)
{
    bytes = wanted(r, bytes);
    http_response_settle(r);
    if (bytes.len > 0 && copies(r) && buf_add(&r->kept->body, bytes) < 0)
        r->cut = true;
}

void http_response_keep_more(struct http_response *r, struct str bytes)
{
    if (r->call->wants_body_bytes > 0 && !r->cut && bytes.len > 0)
        keep_copy(r, bytes);
}

static void keep_decoded(void *response, struct str bytes)
{
    struct http_response *r = response;
    http_response_keep_more(r, bytes);
}

enum http_failure http_response_decode(struct http_response *r, struct str bytes)
{
    if (!r->decoder && r->call) {
        r->decoder = content_decoder_new(r->coding);
        if (!r->decoder)
            return HTTP_FAILURE_MEMORY;
        content_decoder_give(r->decoder, keep_decoded, r);
    }
    return content_decoder_count(&r->decoder, r->coding, bytes, &r->body_bytes);
}

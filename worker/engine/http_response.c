#include "worker/engine/http_response.h"

void http_response_head(struct http_response *r, const struct http_parser *p,
                        const struct http_engine_setup *setup, void *owner)
{
    bool redirect = p->status >= 300 && p->status < 400, coded = false;
    struct str rest = p->head, name, value;
    if (r->kept)
        http_kept_head(r->kept, p->head);
    if (!redirect && !p->has_cookies && !p->has_coding)
        return;
    while (http_parser_header(&rest, &name, &value)) {
        if (str_eq_nocase(name, STR("set-cookie"))) {
            setup->set_cookie(owner, value);
        } else if (str_eq_nocase(name, STR("content-encoding"))) {
            r->coding = coded ? CONTENT_PLAIN : content_coding_of(value);
            coded = true;
        } else if (redirect && !r->location && str_eq_nocase(name, STR("location"))) {
            /* without memory it is a redirect without a target: not followed */
            r->location = strndup(value.ptr, value.len);
        }
    }
}

static void keep_decoded(void *kept, struct str bytes)
{
    http_kept_body(kept, bytes);
}

enum http_failure http_response_decode(struct http_response *r, struct str bytes)
{
    if (!r->decoder && r->kept) {
        r->decoder = content_decoder_new(r->coding);
        if (!r->decoder)
            return HTTP_FAILURE_MEMORY;
        content_decoder_give(r->decoder, keep_decoded, r->kept);
    }
    return content_decoder_count(&r->decoder, r->coding, bytes, &r->body_bytes);
}

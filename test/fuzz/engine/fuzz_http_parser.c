/* The HTTP response parser: the first two bytes choose HEAD or not and where the rest is cut; the
 * result must be the same whether it is cut or not, and when the head is remembered. */
#include "worker/engine/http_parser.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    enum http_parser_event end;
    unsigned status;
    uint64_t body;
    bool keep_alive, cookies, coding;
    size_t headers;
};

static struct outcome run(struct str bytes, bool head, size_t cut, struct http_parser_memo *memo)
{
    struct http_parser p;
    struct outcome out = {.end = HTTP_EVENT_MORE};
    struct str pieces[] = {str_sub(bytes, 0, cut), str_sub(bytes, cut, bytes.len)};
    http_parser_init(&p);
    http_parser_begin(&p, head);
    p.memo = memo;
    for (int i = 0; i < 2; i++) {
        do {
            struct str rest, name, value;
            out.end = http_parser_next(&p, &pieces[i]);
            if (out.end == HTTP_EVENT_BODY)
                out.body += p.body.len;
            if (out.end == HTTP_EVENT_HEAD) {
                out.status = p.status;
                out.keep_alive = p.keep_alive;
                out.cookies = p.has_cookies;
                out.coding = p.has_coding;
                rest = p.head;
                while (http_parser_header(&rest, &name, &value))
                    out.headers++;
            }
        } while (out.end == HTTP_EVENT_HEAD || out.end == HTTP_EVENT_BODY);
        if (out.end != HTTP_EVENT_MORE)
            break;
    }
    http_parser_done(&p);
    return out;
}

static bool same(const struct outcome *a, const struct outcome *b)
{
    return a->end == b->end && a->status == b->status && a->keep_alive == b->keep_alive &&
           a->cookies == b->cookies && a->coding == b->coding && a->headers == b->headers &&
           (a->end == HTTP_EVENT_FAILED || a->body == b->body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http_parser_memo memo; /* also of the input before */
    if (size < 2)
        return 0;
    struct str bytes = {(const char *)data + 2, size - 2};
    bool head = data[0] & 1;
    struct outcome whole = run(bytes, head, bytes.len, NULL);
    struct outcome cut = run(bytes, head, bytes.len * data[1] / 255, NULL);
    struct outcome first = run(bytes, head, bytes.len, &memo);
    struct outcome again = run(bytes, head, bytes.len, &memo);
    if (!same(&whole, &cut) || !same(&whole, &first) || !same(&whole, &again))
        abort();
    return 0;
}

/* The HTTP response parser: the first two bytes choose HEAD or not and where the rest is cut; the
 * result must be the same whether it is cut or not. */
#include "worker/engine/http_parser.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    enum http_parser_event end;
    unsigned status;
    uint64_t body;
};

static struct outcome run(struct str bytes, bool head, size_t cut)
{
    struct http_parser p;
    struct outcome out = {HTTP_EVENT_MORE, 0, 0};
    struct str pieces[] = {str_sub(bytes, 0, cut), str_sub(bytes, cut, bytes.len)};
    http_parser_init(&p);
    http_parser_begin(&p, head);
    for (int i = 0; i < 2; i++) {
        do {
            struct str rest, name, value;
            out.end = http_parser_next(&p, &pieces[i]);
            if (out.end == HTTP_EVENT_BODY)
                out.body += p.body.len;
            if (out.end == HTTP_EVENT_HEAD) {
                out.status = p.status;
                rest = p.head;
                while (http_parser_header(&rest, &name, &value))
                    ;
            }
        } while (out.end == HTTP_EVENT_HEAD || out.end == HTTP_EVENT_BODY);
        if (out.end != HTTP_EVENT_MORE)
            break;
    }
    http_parser_done(&p);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct str bytes = {(const char *)data + 2, size - 2};
    bool head = data[0] & 1;
    struct outcome whole = run(bytes, head, bytes.len);
    struct outcome cut = run(bytes, head, bytes.len * data[1] / 255);
    if (whole.end != cut.end || whole.status != cut.status ||
        (whole.end != HTTP_EVENT_FAILED && whole.body != cut.body))
        abort();
    return 0;
}

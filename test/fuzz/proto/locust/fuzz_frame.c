/* Any bytes as a frame from the master. What decodes must be whole: its texts are valid UTF-8, and
 * a custom message can be sent on and comes back as the same bytes. */
#include "base/utf8.h"
#include "proto/locust/message.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static void encode(const struct message *m, struct buf *out)
{
    expect(m->type == MESSAGE_CUSTOM);
    buf_init(out, (size_t)MESSAGE_MAX_BYTES);
    expect(message_encode_custom(out, m->node_id, m->custom.type, m->custom.data) == 0);
}

static void check_custom(const struct message *m)
{
    struct buf first, second;
    struct message again;
    encode(m, &first);
    expect(message_decode(buf_str(&first), &again, NULL) == 0);
    encode(&again, &second);
    expect(str_eq(buf_str(&first), buf_str(&second)));
    message_done(&again);
    buf_done(&first);
    buf_done(&second);
}

static void check_spawn(const struct message_spawn *s)
{
    expect(json_is_object(s->parsed_options));
    expect(s->stop_timeout_s >= 0);
    for (size_t i = 0; i < s->class_count; i++)
        expect(utf8_valid(s->classes[i].name));
}

/* An answer is an error or files; a file without a name is a URL. */
static void check_locustfile(const struct message_locustfile *l)
{
    expect(!l->error.ptr || (utf8_valid(l->error) && l->source_count == 0));
    for (size_t i = 0; i < l->source_count; i++) {
        expect(utf8_valid(l->sources[i].filename));
        expect(l->sources[i].contents.ptr && utf8_valid(l->sources[i].contents));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct message m;
    struct err err = {0};
    int rc = message_decode((struct str){(const char *)data, size}, &m, &err);
    expect((rc < 0) == (err.code < 0));
    if (rc < 0)
        return 0;
    expect(utf8_valid(m.node_id));
    if (m.type == MESSAGE_CUSTOM)
        check_custom(&m);
    if (m.type == MESSAGE_SPAWN)
        check_spawn(&m.spawn);
    if (m.type == MESSAGE_LOCUSTFILE)
        check_locustfile(&m.locustfile);
    message_done(&m);
    return 0;
}

#include "proto/locust/pack.h"

#include "base/utf8.h"
#include "proto/locust/message.h"

/* msgpack-c asks for 0 on success and stops the value at anything else; the error itself is kept
 * here. */
static int write_bytes(void *data, const char *bytes, size_t len)
{
    struct pack *p = data;
    if (p->rc == 0)
        p->rc = buf_add(p->out, (struct str){bytes, len});
    return p->rc;
}

void pack_begin(struct pack *p, struct buf *out)
{
    *p = (struct pack){.out = out, .start = out->len};
    msgpack_packer_init(&p->msgpack, p, write_bytes);
}

int pack_end(struct pack *p)
{
    if (p->rc < 0 && p->out->len > p->start) {
        p->out->len = p->start;
        p->out->ptr[p->start] = '\0';
    }
    return p->rc;
}

void pack_fail(struct pack *p, int rc)
{
    if (p->rc == 0)
        p->rc = rc;
}

/* The returned codes below are those of write_bytes, which keeps them. */

void pack_array(struct pack *p, size_t count)
{
    if (count > UINT32_MAX)
        pack_fail(p, -ERANGE);
    (void)msgpack_pack_array(&p->msgpack, count);
}

void pack_map(struct pack *p, size_t count)
{
    if (count > UINT32_MAX)
        pack_fail(p, -ERANGE);
    (void)msgpack_pack_map(&p->msgpack, count);
}

void pack_nil(struct pack *p)
{
    (void)msgpack_pack_nil(&p->msgpack);
}

void pack_bool(struct pack *p, bool value)
{
    (void)(value ? msgpack_pack_true(&p->msgpack) : msgpack_pack_false(&p->msgpack));
}

void pack_uint(struct pack *p, uint64_t value)
{
    (void)msgpack_pack_uint64(&p->msgpack, value);
}

void pack_int(struct pack *p, int64_t value)
{
    (void)msgpack_pack_int64(&p->msgpack, value);
}

void pack_double(struct pack *p, double value)
{
    if (isfinite(value))
        (void)msgpack_pack_double(&p->msgpack, value);
    else
        pack_nil(p);
}

static void pack_valid(struct pack *p, struct str text)
{
    if (text.len > UINT32_MAX)
        pack_fail(p, -ERANGE);
    (void)msgpack_pack_str(&p->msgpack, text.len);
    (void)msgpack_pack_str_body(&p->msgpack, text.ptr, text.len);
}

/* The length stands before the text, so a repair needs a place of its own. */
static void pack_repaired(struct pack *p, struct str text)
{
    struct buf repaired;
    buf_init(&repaired, p->out->max);
    int rc = utf8_add_repaired(&repaired, text);
    if (rc < 0)
        pack_fail(p, rc);
    else
        pack_valid(p, buf_str(&repaired));
    buf_done(&repaired);
}

void pack_text(struct pack *p, struct str text)
{
    if (utf8_valid(text))
        pack_valid(p, text);
    else
        pack_repaired(p, text);
}

void pack_key(struct pack *p, struct str key)
{
    if (str_eq(key, STR("__datetime__")))
        key = STR("___datetime__");
    else if (str_eq(key, STR("__ObjectId__")))
        key = STR("___ObjectId__");
    pack_text(p, key);
}

void pack_amount(struct pack *p, double value)
{
    pack_double(p, isfinite(value) ? value : 0.0);
}

void pack_ms(struct pack *p, double ms)
{
    if (isfinite(ms) && ms != 0.0)
        pack_double(p, ms);
    else
        pack_uint(p, 0);
}

void pack_measure(struct pack *p, struct measure m)
{
    if (m.known)
        pack_double(p, m.value);
    else
        pack_nil(p);
}

#include "worker/stats/trace.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ID_AT     3 /* of the value: behind "00-" */
#define PARENT_AT 36
#define FLAGS_AT  53
#define VALUE_LEN 55

/* --- the header ------------------------------------------------------------------------------ */

/* All zeros is no id, so it is not drawn. */
static uint64_t draw(struct rng *rng)
{
    uint64_t v = rng_u64(rng);
    return v ? v : 1;
}

void trace_draw(struct rng *rng, char ret_id[static TRACE_ID_BYTES],
                char ret_line[static TRACE_LINE_BYTES])
{
    uint64_t high = draw(rng), low = draw(rng), parent = draw(rng);
    (void)snprintf(ret_id, TRACE_ID_BYTES, "%016" PRIx64 "%016" PRIx64, high, low); /* fits */
    (void)snprintf(ret_line, TRACE_LINE_BYTES, "traceparent: 00-%s-%016" PRIx64 "-01", ret_id,
                   parent); /* fits */
}

/* Lower-case hexadecimal digits, not all of them 0 when it must be an id. */
static bool is_hex(struct str text, bool id)
{
    bool any = !id;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
        any |= c != '0';
    }
    return any;
}

bool trace_id_of(struct str value, char ret_id[static TRACE_ID_BYTES])
{
    if (value.len < VALUE_LEN || value.ptr[ID_AT - 1] != '-' || value.ptr[PARENT_AT - 1] != '-' ||
        value.ptr[FLAGS_AT - 1] != '-')
        return false;
    struct str version = str_sub(value, 0, ID_AT - 1);
    struct str id = str_sub(value, ID_AT, PARENT_AT - 1);
    bool later = !str_eq(version, STR("00")); /* versions to come may have more behind the flags */
    if (str_eq(version, STR("ff")) || (value.len > VALUE_LEN && !later) ||
        (value.len > VALUE_LEN && value.ptr[VALUE_LEN] != '-'))
        return false;
    if (!is_hex(version, false) || !is_hex(id, true) ||
        !is_hex(str_sub(value, PARENT_AT, FLAGS_AT - 1), true) ||
        !is_hex(str_sub(value, FLAGS_AT, VALUE_LEN), false))
        return false;
    memcpy(ret_id, id.ptr, id.len);
    ret_id[id.len] = '\0';
    return true;
}

/* --- rows ------------------------------------------------------------------------------------ */

/* To the millisecond: tracing shows no less. */
static int add_time(struct buf *b, double wall_s)
{
    uint64_t ms = (uint64_t)(wall_s * 1e3 + 0.5);
    time_t seconds = (time_t)(ms / 1000);
    struct tm t;
    if (!gmtime_r(&seconds, &t))
        return -ERANGE;
    return buf_printf(b, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", t.tm_year + 1900, t.tm_mon + 1,
                      t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec, (unsigned)(ms % 1000));
}

/* What would end a field or a line, or command a terminal, is escaped; so is what is not UTF-8. */
static int add_text(struct buf *b, struct str text)
{
    int rc = 0;
    for (size_t at = 0, n; rc == 0 && at < text.len; at += n) {
        uint32_t point;
        n = utf8_decode(str_sub(text, at, text.len), &point);
        if (n == 0 || point < 0x20 || (point >= 0x7F && point < 0xA0))
            rc = buf_printf(b, "\\x%02x", n ? (unsigned)point : (unsigned char)text.ptr[at]);
        else
            rc = buf_add(b, str_sub(text, at, at + n));
        n = n ? n : 1;
    }
    return rc;
}

int trace_row_add(struct buf *b, const struct trace_row *row)
{
    size_t before = b->len;
    int rc = add_time(b, row->wall_s);
    if (rc == 0)
        rc = buf_add_byte(b, '\t');
    if (rc == 0)
        rc = add_text(b, row->name);
    if (rc == 0)
        rc = buf_printf(b, "\t%" PRIu64 ".%03u\t%s\t%s\t", row->duration_us / 1000,
                        (unsigned)(row->duration_us % 1000),
                        row->scheduled ? "scheduled_start" : "sent", row->id);
    if (rc == 0)
        rc = add_text(b, row->error);
    if (rc == 0)
        rc = buf_add_byte(b, '\n');
    if (rc < 0 && b->ptr) {
        b->len = before;
        b->ptr[before] = '\0';
    }
    return rc;
}

/* The input's first line is a host, the rest is a path. */
#include "worker/scenario/url.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds)
{
    if (!holds)
        abort();
}

static bool is_inside(struct str part, struct str whole)
{
    return !part.ptr || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
}

static void check_parts(struct str text)
{
    struct url u;
    struct err err = {0};
    if (url_parse(text, &u, &err) < 0) {
        demand(err.code == -EINVAL && err.text[0]);
        return;
    }
    demand(u.host.len > 0 && u.port >= 1 && u.port <= 65535);
    demand(u.path.len == 0 || u.path.ptr[0] == '/');
    demand(is_inside(u.host, text) && is_inside(u.path, text) && is_inside(u.query, text));
    demand(is_inside(u.userinfo, text) && is_inside(u.zone, text));
}

static void check_encoded(struct str encoded)
{
    struct str target = url_target(encoded);
    demand(target.len > 0 && target.ptr[0] == '/');
    for (size_t i = 0; i < target.len; i++)
        demand(target.ptr[i] > ' ' && target.ptr[i] < 0x7F && target.ptr[i] != '#');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct str host = str_sub(text, 0, str_find(text, '\n'));
    struct str path = str_sub(text, host.len + 1, size);
    struct buf out;
    check_parts(host);
    check_parts(path);
    buf_init(&out, size * 3 + 2);
    demand(url_encode(&out, path) == 0);
    check_encoded(buf_str(&out));
    check_parts(buf_str(&out));
    buf_clear(&out);
    demand(url_join(&out, host, path) == 0);
    buf_done(&out);
    return 0;
}

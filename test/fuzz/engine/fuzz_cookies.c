/* A cookie jar: each line is one response or request. Its first byte chooses what, the second the
 * host, then comes a path up to a space, then the Set-Cookie header:
 *   s1/path a=1; Path=/     set, over http; S: over https
 *   g1/path                 get, over http; G: over https
 *   t                       a minute passes */
#include "worker/engine/cookies.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const hosts[] = {
    "example.com",       "www.example.com",
    "a.www.Example.com", "localhost",
    "127.0.0.1",         "::1",
    "example.org",       "com",
};

static void check(struct cookies *jar, const struct cookie_place *at, double now_s)
{
    struct buf header;
    buf_init(&header, COOKIES_MAX_HEADER_BYTES);
    if (cookies_header(jar, at, now_s, &header) < 0 || cookies_count(jar) > COOKIES_MAX)
        abort();
    for (size_t i = 0; i < header.len; i++) {
        unsigned char c = (unsigned char)header.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7F)
            abort(); /* would break the request's head */
    }
    buf_done(&header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cookies *jar = NULL;
    struct str rest = {(const char *)data, size}, line;
    double now_s = 1e9;
    while (str_next(&rest, '\n', &line)) {
        if (line.len < 2) {
            now_s += 60;
            continue;
        }
        struct str behind = str_sub(line, 2, line.len);
        size_t space = str_find(behind, ' ');
        struct cookie_place at = {
            .tls = line.ptr[0] == 'S' || line.ptr[0] == 'G',
            .host = str_of(hosts[(unsigned char)line.ptr[1] % (sizeof hosts / sizeof *hosts)]),
            .path = str_sub(behind, 0, space),
        };
        if ((line.ptr[0] | 0x20) == 's' &&
            cookies_set(&jar, str_sub(behind, space + 1, behind.len), &at, now_s) < 0)
            abort();
        check(jar, &at, now_s);
    }
    cookies_free(jar);
    return 0;
}

#include "test/unit/alloc.h"
#include "worker/engine/content_decoder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <zlib.h>

/* Made by Python's zlib and gzip of b"hello hello hello hello". */
#define GZIP_HEAD "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
#define DEFLATED  "\xcb\x48\xcd\xc9\xc9\x57\xc8\x40\x27\x01"
#define GZIPPED   GZIP_HEAD DEFLATED "\xe3\x51\x3d\x8d\x17\x00\x00\x00"
#define ZLIBBED   "\x78\xda" DEFLATED "\x68\x03\x08\xb1"
#define LENGTH    23

enum verdict { WHOLE, CUT, CORRUPT };

static const struct {
    const char *label;
    enum content_coding coding;
    struct str bytes;
    enum verdict want;
    uint64_t length; /* unless CORRUPT */
} cases[] = {
    {"gzip", CONTENT_GZIP, STR(GZIPPED), WHOLE, LENGTH},
    {"two members", CONTENT_GZIP, STR(GZIPPED GZIPPED), WHOLE, 2 * LENGTH},
    {"zeros behind", CONTENT_GZIP, STR(GZIPPED "\0\0\0\0"), WHOLE, LENGTH},
    {"rubbish behind that begins like a member", CONTENT_GZIP, STR(GZIPPED "\x1f rubbish"), WHOLE,
     LENGTH},
    {"nothing", CONTENT_GZIP, STR(""), WHOLE, 0},
    {"head only", CONTENT_GZIP, STR(GZIP_HEAD), CUT, 0},
    {"without its last byte", CONTENT_GZIP, STR(GZIP_HEAD DEFLATED "\xe3\x51\x3d\x8d\x17\x00\x00"),
     CUT, LENGTH},
    {"second member cut", CONTENT_GZIP, STR(GZIPPED GZIP_HEAD), CUT, LENGTH},
    {"plain text", CONTENT_GZIP, STR("hello"), CORRUPT, 0},
    {"zlib as gzip", CONTENT_GZIP, STR(ZLIBBED), CORRUPT, 0},
    {"another checksum", CONTENT_GZIP, STR(GZIP_HEAD DEFLATED "\xe3\x51\x3d\x8e\x17\x00\x00\x00"),
     CORRUPT, 0},
    {"another length", CONTENT_GZIP, STR(GZIP_HEAD DEFLATED "\xe3\x51\x3d\x8d\x18\x00\x00\x00"),
     CORRUPT, 0},
    {"no such block", CONTENT_GZIP, STR(GZIP_HEAD "\xff\xff"), CORRUPT, 0},
    {"zlib", CONTENT_DEFLATE, STR(ZLIBBED), WHOLE, LENGTH},
    {"bytes behind zlib", CONTENT_DEFLATE, STR(ZLIBBED ZLIBBED), WHOLE, LENGTH},
    {"zlib cut", CONTENT_DEFLATE, STR("\x78\xda" DEFLATED "\x68\x03\x08"), CUT, LENGTH},
    {"another zlib checksum", CONTENT_DEFLATE, STR("\x78\xda" DEFLATED "\x68\x03\x08\xb0"), CORRUPT,
     0},
    {"zlib with a dictionary", CONTENT_DEFLATE, STR("\x78\xf9\0\0\0\1" DEFLATED), CORRUPT, 0},
    {"raw deflate", CONTENT_DEFLATE, STR(DEFLATED), WHOLE, LENGTH},
    {"raw deflate, nothing in it", CONTENT_DEFLATE, STR("\x03\x00"), WHOLE, 0},
    {"raw deflate cut", CONTENT_DEFLATE, STR("\xcb\x48\xcd\xc9\xc9\x57\xc8\x40\x27"), CUT, 7},
    {"one byte", CONTENT_DEFLATE, STR("\x78"), CUT, 0},
    {"no deflate", CONTENT_DEFLATE, STR("\xff\xff"), CORRUPT, 0},
};

/* In pieces of so many bytes. */
static enum verdict decode(enum content_coding coding, struct str bytes, size_t piece,
                           uint64_t *count)
{
    struct content_decoder *d = content_decoder_new(coding);
    int rc = 0;
    assert_non_null(d);
    *count = 0;
    for (size_t at = 0; rc == 0 && at < bytes.len; at += piece)
        rc = content_decoder_add(d, str_sub(bytes, at, at + piece), count);
    bool ended = content_decoder_ended(d);
    content_decoder_free(d);
    if (rc < 0)
        assert_int_equal(rc, -EPROTO);
    return rc < 0 ? CORRUPT : ended ? WHOLE : CUT;
}

static void test_cases_at_every_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t piece = 1; piece <= cases[i].bytes.len + 1; piece++) {
            uint64_t count;
            enum verdict got = decode(cases[i].coding, cases[i].bytes, piece, &count);
            if (got != cases[i].want || (got != CORRUPT && count != cases[i].length))
                fail_msg("%s in pieces of %zu: %d, %lu bytes", cases[i].label, piece, got,
                         (unsigned long)count);
        }
    }
}

static void test_names_of_codings(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        enum content_coding want;
    } names[] = {
        {"gzip", CONTENT_GZIP},        {"x-gzip", CONTENT_GZIP},
        {" GZip\t", CONTENT_GZIP},     {"deflate", CONTENT_DEFLATE},
        {"", CONTENT_PLAIN},           {"identity", CONTENT_PLAIN},
        {"br", CONTENT_PLAIN},         {"zstd", CONTENT_PLAIN},
        {"gzip, ", CONTENT_GZIP},      {"identity, deflate", CONTENT_DEFLATE},
        {"gzip, gzip", CONTENT_PLAIN}, {"deflate,br", CONTENT_PLAIN},
        {"br, gzip", CONTENT_PLAIN},   {"gzip;q=1", CONTENT_PLAIN},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (content_coding_of(str_of(names[i].value)) != names[i].want)
            fail_msg("'%s'", names[i].value);
    }
}

/* 64 MiB out of 64 KiB, through the decoder's one small buffer. */
static void test_bomb_is_counted(void **state)
{
    (void)state;
    static const unsigned char zeros[1 << 20];
    static unsigned char packed[1 << 17];
    const uint64_t mebibytes = 64;
    z_stream z = {.next_out = packed, .avail_out = sizeof packed};
    assert_int_equal(deflateInit(&z, 9), Z_OK);
    for (uint64_t i = 0; i < mebibytes; i++) {
        z.next_in = (unsigned char *)(uintptr_t)zeros;
        z.avail_in = sizeof zeros;
        assert_int_equal(deflate(&z, i + 1 < mebibytes ? Z_NO_FLUSH : Z_FINISH),
                         i + 1 < mebibytes ? Z_OK : Z_STREAM_END);
    }
    uint64_t count;
    struct str bytes = {(const char *)packed, sizeof packed - z.avail_out};
    deflateEnd(&z);
    assert_int_equal(decode(CONTENT_DEFLATE, bytes, bytes.len, &count), WHOLE);
    assert_int_equal(count, mebibytes << 20);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    bool failed = true;
    for (unsigned long n = 1; failed; n++) {
        struct content_decoder *d = NULL;
        uint64_t count = 0;
        enum http_failure failure = HTTP_FAILURE_NONE;
        struct str rest = STR(GZIPPED);
        alloc_fail_at(n);
        for (size_t i = 0; failure == HTTP_FAILURE_NONE && i < rest.len; i++)
            failure = content_decoder_count(&d, CONTENT_GZIP, str_sub(rest, i, i + 1), &count);
        failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(failure, failed ? HTTP_FAILURE_MEMORY : HTTP_FAILURE_NONE);
        if (!failed)
            assert_int_equal(count, LENGTH);
        content_decoder_free(d);
    }
}

static void test_corrupt_is_malformed(void **state)
{
    (void)state;
    struct content_decoder *d = NULL;
    uint64_t count = 0;
    assert_int_equal(content_decoder_count(&d, CONTENT_GZIP, STR("rubbish"), &count),
                     HTTP_FAILURE_MALFORMED);
    content_decoder_free(d);
    content_decoder_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases_at_every_split), cmocka_unit_test(test_names_of_codings),
        cmocka_unit_test(test_bomb_is_counted),      cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test(test_corrupt_is_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

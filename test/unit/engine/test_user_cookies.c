#include "worker/engine/user_cookies.h"

#include "worker/engine/cookies.h"
#include "worker/engine/shard.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define NOW_US 5000000u

struct scene {
    struct shard shard;
    struct user user;
};

static void set_up(struct scene *s)
{
    memset(s, 0, sizeof *s);
    s->user.shard = &s->shard;
    s->shard.now_us = NOW_US;
    buf_init(&s->shard.cookie_header, COOKIES_MAX_HEADER_BYTES);
}

static void tear_down(struct scene *s)
{
    cookies_free(s->user.cookies);
    buf_done(&s->shard.cookie_header);
}

static void take(struct scene *s, const char *url, const char *set_cookie)
{
    const struct http_call call = {.url = str_of(url)};
    user_cookies_take(&s->user, &call, str_of(set_cookie));
}

static void sends_at(struct scene *s, uint64_t now_us, const char *url, const char *want)
{
    const struct http_call call = {.url = str_of(url)};
    struct str header;
    assert_int_equal(user_cookies_for(&s->user, &call, now_us, &header), 0);
    if (!str_eq(header, str_of(want)))
        fail_msg("%s: '%.*s'", url, STR_ARG(header));
}

static void sends(struct scene *s, const char *url, const char *want)
{
    sends_at(s, NOW_US, url, want);
}

/* Ports, users and queries of a URL are nothing to a cookie; host, scheme and path are. */
static void test_cookies_go_where_the_url_says(void **state)
{
    (void)state;
    struct scene s;
    set_up(&s);
    sends(&s, "http://h/", "");
    take(&s, "http://me:p@ss@h:8080/a/b?c=/d", "x=1");
    take(&s, "https://h/a/b", "s=2; Secure");
    sends(&s, "http://h/a/", "x=1");
    sends(&s, "http://u@h:1/a/z?q", "x=1");
    sends(&s, "https://h:8443/a/z", "x=1; s=2");
    sends(&s, "http://h", "");
    sends(&s, "http://h/?/a/b", "");
    sends(&s, "http://other/a/", "");
    take(&s, "http://[::1]:80/", "six=1");
    sends(&s, "http://[::1]/", "six=1");
    sends(&s, "http://[::2]/", "");
    tear_down(&s);
}

static void test_a_host_header_is_the_host(void **state)
{
    (void)state;
    struct scene s;
    const struct plan_header host = {STR("hOST"), STR("shop.example:8080")};
    const struct http_call call = {
        .url = STR("http://127.0.0.1:8080/"), .headers = &host, .header_count = 1};
    struct str header;
    set_up(&s);
    user_cookies_take(&s.user, &call, STR("x=1"));
    assert_int_equal(user_cookies_for(&s.user, &call, NOW_US, &header), 0);
    assert_true(str_eq(header, STR("x=1")));
    sends(&s, "http://shop.example/", "x=1");
    sends(&s, "http://127.0.0.1:8080/", "");
    tear_down(&s);
}

static void test_a_cookie_header_of_the_scenario_goes_instead(void **state)
{
    (void)state;
    struct scene s;
    const struct plan_header own = {STR("cookie"), STR("mine=1")};
    const struct http_call call = {.url = STR("http://h/"), .headers = &own, .header_count = 1};
    struct str header;
    set_up(&s);
    take(&s, "http://h/", "x=1");
    sends(&s, "http://h/", "x=1");
    assert_int_equal(user_cookies_for(&s.user, &call, NOW_US, &header), 0);
    assert_int_equal(header.len, 0);
    tear_down(&s);
}

static void test_cookies_expire_by_wall_time(void **state)
{
    (void)state;
    struct scene s;
    set_up(&s);
    s.shard.wall_offset_s = 1700000000;
    take(&s, "http://h/", "x=1; Max-Age=10");
    take(&s, "http://h/", "old=1; Expires=Mon, 01 Jan 2001 00:00:00 GMT");
    sends_at(&s, NOW_US + 9000000, "http://h/", "x=1");
    sends_at(&s, NOW_US + 11000000, "http://h/", "");
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cookies_go_where_the_url_says),
        cmocka_unit_test(test_a_host_header_is_the_host),
        cmocka_unit_test(test_a_cookie_header_of_the_scenario_goes_instead),
        cmocka_unit_test(test_cookies_expire_by_wall_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

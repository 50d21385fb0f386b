/* The background against servers that refuse or never answer, and one that answers at once; real
 * ones are in test/integration. */
#include "worker/report/background.h"

#include "base/clock.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <curl/curl.h>

#define DEADLINE_MS 20000

struct listener {
    int fd;
    char url[64];
};

/* Connections are taken by the kernel and never looked at. */
static void listener_open(struct listener *l, const char *path)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(l->fd >= 0);
    assert_int_equal(bind(l->fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(l->fd, 16), 0);
    assert_int_equal(getsockname(l->fd, (struct sockaddr *)&at, &size), 0);
    (void)snprintf(l->url, sizeof l->url, "http://127.0.0.1:%u%s", ntohs(at.sin_port), path);
}

/* Answer the next request on it. */
static void listener_answer(struct listener *l, const char *type, const char *body)
{
    char request[4096], answer[1024];
    int fd = accept(l->fd, NULL, NULL);
    assert_true(fd >= 0);
    assert_true(read(fd, request, sizeof request) > 0);
    int n = snprintf(answer, sizeof answer,
                     "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n%s", type,
                     strlen(body), body);
    assert_int_equal(write(fd, answer, (size_t)n), n);
    assert_int_equal(close(fd), 0);
}

static void wait_rung(struct background *b)
{
    struct pollfd p = {.fd = background_fd(b), .events = POLLIN};
    assert_int_equal(poll(&p, 1, DEADLINE_MS), 1);
    background_poll(b);
}

static struct profile profile;

static int load_profile(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(curl_global_init(CURL_GLOBAL_DEFAULT), 0);
    return profile_load("node", &profile, &err);
}

static int drop_profile(void **state)
{
    (void)state;
    profile_done(&profile);
    curl_global_cleanup();
    return 0;
}

static void test_facts_come_once_and_unknown_without_credentials(void **state)
{
    (void)state;
    const struct background_options o = {
        .facts = true,
        .facts_options = {
            .credentials = {.service_account_dir = "/nowhere", .kubeconfig = "/nowhere/config"}}};
    struct background *b;
    assert_int_equal(background_new(&o, &b, NULL), 0);
    assert_false(background_busy(b));
    assert_null(background_facts(b));
    background_begin(b);
    assert_true(background_facts_pending(b));
    while (background_facts_pending(b))
        wait_rung(b);
    assert_false(background_busy(b));
    const struct cluster_facts *f = background_facts(b);
    assert_non_null(f);
    assert_false(f->node_count.known);
    assert_true(f->why[FACTS_ACCESS][0] != '\0');
    background_begin(b); /* of another run: read anew */
    assert_null(background_facts(b));
    background_end(b);
    background_free(b);
}

static void test_nothing_is_asked_without_addresses(void **state)
{
    (void)state;
    const struct background_options o = {.profile = &profile};
    struct background *b;
    struct users_sample sample;
    enum users_source source;
    assert_int_equal(background_new(&o, &b, NULL), 0);
    background_begin(b);
    assert_false(background_harvests(b));
    background_end(b);
    background_harvest(b, (struct window){1, 2}, NULL, 0);
    assert_false(background_busy(b));
    assert_null(background_actors(b));
    assert_null(background_server_flat(b));
    assert_false(background_next_users(b, &source, &sample));
    background_free(b);
}

static void test_samples_come_while_the_run_is_on(void **state)
{
    (void)state;
    struct listener web, page;
    struct users_sample sample;
    enum users_source source;
    size_t count;
    listener_open(&web, "/");
    listener_open(&page, "/metrics");
    const struct background_options o = {
        .master_web_url = web.url, .master_web_auth = "me:secret", .actors_metrics_url = page.url};
    struct background *b;
    assert_int_equal(background_new(&o, &b, NULL), 0);
    background_begin(b);
    listener_answer(&web, "application/json", "{\"user_count\": 12}");
    listener_answer(&page, "text/plain",
                    "locust_actors{user_class=\"A\",state=\"running\"} 3\n"
                    "locust_actors{user_class=\"A\",state=\"crashed\"} 1\n");
    do {
        wait_rung(b);
    } while (!background_next_users(b, &source, &sample));
    assert_int_equal(source, USERS_SOURCE_MASTER_WEB);
    assert_true(sample.users == 12);
    const struct report_actors *rows = background_actors_history(b, &count);
    while (count == 0) {
        wait_rung(b);
        rows = background_actors_history(b, &count);
    }
    assert_int_equal(count, 2);
    assert_true(str_eq(rows[1].user_class, STR("A")) && str_eq(rows[1].state, STR("crashed")));
    assert_true(rows[1].count == 1);
    assert_true(background_actors(b)->live_peak.value == 4);
    assert_false(background_busy(b)); /* samplers are not waited for */
    background_end(b);
    background_free(b);
    assert_int_equal(close(web.fd), 0);
    assert_int_equal(close(page.fd), 0);
}

static void test_what_hangs_is_aborted(void **state)
{
    (void)state;
    struct listener hanging;
    struct users_sample samples[] = {{100, 5}, {200, 5}};
    listener_open(&hanging, "");
    const struct background_options o = {.master_web_url = hanging.url,
                                         .prometheus.access.url = hanging.url,
                                         .users_query = "sum(cicada_users)",
                                         .profile = &profile};
    struct background *b;
    assert_int_equal(background_new(&o, &b, NULL), 0);
    background_begin(b);
    background_end(b);
    background_harvest(b, (struct window){100, 200}, samples, 2);
    assert_true(background_busy(b));
    uint64_t began_us = clock_mono_us();
    background_abort(b);
    assert_false(background_busy(b));
    background_begin(b); /* the next run waits for nobody */
    background_harvest(b, (struct window){100, 200}, samples, 2);
    background_free(b);
    assert_true(clock_mono_us() - began_us < DEADLINE_MS * 1000u);
    assert_int_equal(close(hanging.fd), 0);
}

static void test_a_harvest_of_nothing_is_one_of_nulls(void **state)
{
    (void)state;
    struct listener gone;
    listener_open(&gone, "");
    assert_int_equal(close(gone.fd), 0);
    const struct background_options o = {
        .prometheus.access.url = gone.url, .profile = &profile, .test_name = "t", .tag = "x"};
    struct background *b;
    assert_int_equal(background_new(&o, &b, NULL), 0);
    background_begin(b);
    background_end(b);
    for (int i = 0; i < 2; i++) {
        background_harvest(b, (struct window){100, 200}, NULL, 0);
        while (background_busy(b))
            wait_rung(b);
        const json_t *metadata = json_object_get(background_server_document(b), "metadata");
        assert_string_equal(json_string_value(json_object_get(metadata, "data_timestamp")),
                            "1970-01-01T00:03:20Z");
        assert_string_equal(json_string_value(json_object_get(metadata, "test_name")), "t");
        assert_non_null(background_server_flat(b));
    }
    background_free(b);
}

static void test_a_token_file_is_read_each_time(void **state)
{
    (void)state;
    char path[] = "/tmp/cicada-token-XXXXXX";
    int fd = mkstemp(path);
    struct prometheus p = {.access.url = "http://h", .bearer_token_file = path};
    struct query_access access;
    struct buf token;
    struct err err = {0};
    assert_true(fd >= 0);
    assert_int_equal(prometheus_open(&p, &token, &access, &err), -EINVAL); /* still empty */
    assert_non_null(strstr(err.text, "is empty"));
    buf_done(&token);
    assert_int_equal(write(fd, " abc \n", 6), 6);
    err = (struct err){0};
    assert_int_equal(prometheus_open(&p, &token, &access, &err), 0);
    assert_string_equal(access.bearer_token, "abc");
    assert_string_equal(access.url, "http://h");
    buf_done(&token);
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(prometheus_open(&p, &token, &access, &err), -ENOENT);
    buf_done(&token);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts_come_once_and_unknown_without_credentials),
        cmocka_unit_test(test_nothing_is_asked_without_addresses),
        cmocka_unit_test(test_samples_come_while_the_run_is_on),
        cmocka_unit_test(test_what_hangs_is_aborted),
        cmocka_unit_test(test_a_harvest_of_nothing_is_one_of_nulls),
        cmocka_unit_test(test_a_token_file_is_read_each_time),
    };
    return cmocka_run_group_tests(tests, load_profile, drop_profile);
}

/* Everything a task can ask for, checked from within against app.py: what does not hold becomes an
 * exception, which the test finds in the log. One user, one task, then the run is stopped. */
#define _GNU_SOURCE
#include <cicada.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(user, condition)                                                                     \
    ((condition) ? (void)0 : cicada_exception(user, "line %d: not so: %s", __LINE__, #condition))

static void responses(struct cicada_user *user)
{
    const struct cicada_response *r = cicada_get(user, "/items/17");
    char value[64];
    CHECK(user, r->result == CICADA_OK && r->status == 200 && !r->error);
    CHECK(user, strcmp(r->body, "{\"ok\": true, \"id\": 17, \"name\": \"item 17\"}") == 0);
    CHECK(user, r->body_length == strlen(r->body) && r->content_length == r->body_length);
    CHECK(user, !r->body_cut && r->response_time_ms > 0 && r->response_time_ms < 60000);
    CHECK(user, cicada_response_header(r, "content-TYPE", value, sizeof value) == 16);
    CHECK(user, strcmp(value, "application/json") == 0);
    CHECK(user,
          cicada_response_header(r, "Content-Type", value, 4) == 16 && strcmp(value, "app") == 0);
    CHECK(user, cicada_response_header(r, "Content-Type", NULL, 0) == 16);
    CHECK(user, cicada_response_header(r, "X-None", value, sizeof value) == -1);
    r = cicada_get(user, "/status/404");
    CHECK(user, r->result == CICADA_OK && r->status == 404);
    CHECK(user, r->error && strcmp(r->error, "HTTP status 404") == 0);
    r = cicada_head(user, "/echo");
    CHECK(user, r->status == 200 && r->body_length == 0 && r->body[0] == '\0');
    r = cicada_delete(user, "/echo");
    CHECK(user, strstr(r->body, "\"method\": \"DELETE\"") != NULL);
}

static void bodies(struct cicada_user *user)
{
    const struct cicada_response *r = cicada_post(user, "/echo", "text/plain", "abc", 3);
    CHECK(user, strstr(r->body, "\"method\": \"POST\"") && strstr(r->body, "\"body\": \"abc\""));
    CHECK(user, strstr(r->body, "\"Content-Type\": \"text/plain\"") != NULL);
    r = cicada_post(user, "/echo", "text/plain", "abcd", 4);
    CHECK(user, strstr(r->body, "\"body\": \"abcd\"") != NULL);
    r = cicada_post(user, "/echo", NULL, NULL, 0);
    CHECK(user, strstr(r->body, "\"body\": \"\"") && !strstr(r->body, "Content-Type"));
    r = cicada_put(user, "/echo", NULL, "x", 1);
    CHECK(user, strstr(r->body, "\"method\": \"PUT\"") && strstr(r->body, "\"body\": \"x\""));
    r = cicada_patch(user, "/echo", NULL, "y", 1);
    CHECK(user, strstr(r->body, "\"method\": \"PATCH\"") != NULL);
    char *large = malloc(1 << 20);
    if (!large)
        return;
    memset(large, 'z', 1 << 20);
    struct cicada_request big = {
        .url = "/upload", .name = "big", .body = large, .body_length = 1 << 20};
    r = cicada_request(user, &big);
    CHECK(user, r->status == 200 && strstr(r->body, "\"bytes\": 1048576"));
    free(large);
}

static void requests(struct cicada_user *user)
{
    const struct cicada_header headers[] = {{"X-One", "1"}, {"User-Agent", "mine"}, {NULL, NULL}};
    struct cicada_request request = {
        .url = "/echo?q=a%20b#part", .name = "named", .headers = headers};
    const struct cicada_response *r = cicada_request(user, &request);
    CHECK(user, strstr(r->body, "\"path\": \"/echo?q=a%20b\"") != NULL);
    CHECK(user, strstr(r->body, "\"X-One\": \"1\"") && strstr(r->body, "\"User-Agent\": \"mine\""));
    request.headers = NULL;
    r = cicada_request(user, &request);
    CHECK(user, !strstr(r->body, "X-One"));
    request.method = "OPTIONS";
    request.body_limit = 10;
    r = cicada_request(user, &request);
    CHECK(user, r->body_length == 10 && r->body_cut && strcmp(r->body, "{\"method\":") == 0);
    CHECK(user, r->content_length > 10 && !r->error);
    request.body_limit = CICADA_NO_BODY;
    r = cicada_request(user, &request);
    CHECK(user, r->body_length == 0 && r->body[0] == '\0' && r->content_length > 10);
    r = cicada_get(user, "/redirect");
    CHECK(user, r->status == 200 && strstr(r->body, "\"id\": 5"));
    request = (struct cicada_request){.url = "/redirect", .name = "stay", .no_redirects = true};
    r = cicada_request(user, &request);
    CHECK(user, r->status == 302 && !r->error);
    r = cicada_get(user, "/echo/cookies");
    CHECK(user, strstr(r->body, "\"Cookie\": \"seen=yes\"") != NULL);
    char url[32]; /* the same place, another text */
    for (int i = 0; i < 20; i++) {
        char expected[32];
        (void)snprintf(url, sizeof url, "/items/%d", i);
        (void)snprintf(expected, sizeof expected, "\"id\": %d,", i);
        r = cicada_get(user, url);
        CHECK(user, strstr(r->body, expected) != NULL);
    }
}

static void failures(struct cicada_user *user)
{
    struct cicada_request request = {.url = "http://127.0.0.1:1/", .name = "refused"};
    const struct cicada_response *r = cicada_request(user, &request);
    CHECK(user, r->result == CICADA_FAILED && r->status == 0);
    CHECK(user, r->error && strcmp(r->error, "connection refused") == 0);
    CHECK(user, r->body[0] == '\0' && cicada_response_header(r, "Server", NULL, 0) == -1);
    request.url = "ftp://127.0.0.1/";
    r = cicada_request(user, &request);
    CHECK(user, r->error && r->result == CICADA_FAILED);
    request = (struct cicada_request){.url = "/", .name = "bad", .method = "G ET"};
    r = cicada_request(user, &request);
    CHECK(user, r->error && strcmp(r->error, "request with an invalid method") == 0);
    const struct cicada_header evil[] = {{"X", "a\r\nY: b"}, {NULL, NULL}};
    request = (struct cicada_request){.url = "/", .name = "bad", .headers = evil};
    r = cicada_request(user, &request);
    CHECK(user, r->error && strcmp(r->error, "request with an invalid header") == 0);
    const char *silent = getenv("SILENT_URL");
    request = (struct cicada_request){.url = silent, .name = "silent", .timeout_s = 0.2};
    r = cicada_request(user, &request);
    CHECK(user, r->error && strcmp(r->error, "timed out") == 0 && r->response_time_ms >= 200);
}

static void judgements(struct cicada_user *user)
{
    struct cicada_request request = {.url = "/status/404", .name = "judged"};
    const struct cicada_response *r = cicada_request(user, &request);
    cicada_success(r);
    cicada_fail(r, "too late"); /* the first word counts */
    request.url = "/items/1";
    r = cicada_request(user, &request);
    cicada_fail(r, "item %d is not wanted", 1);
    r = cicada_request(user, &request);
    cicada_sleep(user, 0);
    cicada_fail(r, "too late as well");
    cicada_record_success(user, "TYPE", "own", 12.5, 100);
    cicada_record_failure(user, "TYPE", "own", 1, 0, "own failure");
}

static void the_user(struct cicada_user *user)
{
    CHECK(user, cicada_data(user) == NULL);
    cicada_set_data(user, &user);
    CHECK(user, cicada_data(user) == &user);
    CHECK(user, cicada_variable(user, "v") == NULL);
    CHECK(user, cicada_set_variable(user, "v", "1") == CICADA_OK);
    CHECK(user, strcmp(cicada_variable(user, "v"), "1") == 0);
    CHECK(user, cicada_set_variable(user, "v", NULL) == CICADA_OK && !cicada_variable(user, "v"));
    CHECK(user, cicada_user_number(user) == 1);
    CHECK(user, strcmp(cicada_class_name(user), "Everything") == 0);
    CHECK(user, cicada_random(user, 1) == 0 && cicada_random(user, 10) < 10);
    double x = cicada_random_between(user, 2, 3);
    CHECK(user, x >= 2 && x < 3);
    CHECK(user, cicada_worker_index(cicada_run_of(user)) >= -1);
    CHECK(user, cicada_send_message(cicada_run_of(user), "own", "{\"a\": [1, null]}") == CICADA_OK);
    CHECK(user, cicada_send_message(cicada_run_of(user), "own", NULL) == CICADA_OK);
    CHECK(user, cicada_send_message(cicada_run_of(user), "own", "{") == CICADA_FAILED);
    CHECK(user, cicada_send_message(cicada_run_of(user), "quit", NULL) == CICADA_FAILED);
    cicada_log(CICADA_INFO, "a line of %s's own", "the task");
}

static void waits(struct cicada_user *user)
{
    int fds[2], other;
    char byte = 'x';
    uint64_t begin_us = cicada_clock_us();
    CHECK(user, cicada_sleep(user, 0.05) == CICADA_OK);
    CHECK(user, cicada_clock_us() - begin_us >= 49000); /* a sleep may be an even 256th shorter */
    if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0)
        return;
    CHECK(user, cicada_wait_fd(user, fds[0], POLLIN, 0.02) == CICADA_TIMEOUT);
    CHECK(user, cicada_wait_fd(user, fds[1], POLLOUT, 1) == POLLOUT);
    CHECK(user, write(fds[1], &byte, 1) == 1);
    CHECK(user, cicada_wait_fd(user, fds[0], POLLIN, 0) == POLLIN);
    CHECK(user, cicada_wait_fd(user, fds[0], POLLIN, 1) == POLLIN); /* still */
    CHECK(user, read(fds[0], &byte, 1) == 1);
    CHECK(user, cicada_wait_fd(user, fds[0], POLLIN, 0.02) == CICADA_TIMEOUT);
    (void)close(fds[1]);
    CHECK(user, cicada_wait_fd(user, fds[0], POLLIN, 1) & POLLHUP);
    (void)close(fds[0]);
    CHECK(user, cicada_wait_fd(user, fds[0], POLLIN, 1) == CICADA_FAILED && errno == EBADF);
    other = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK(user, cicada_wait_fd(user, other, POLLIN, 1) == CICADA_FAILED && errno == EPERM);
    (void)close(other);
}

static void everything(struct cicada_user *user)
{
    responses(user);
    bodies(user);
    requests(user);
    failures(user);
    judgements(user);
    the_user(user);
    waits(user);
    cicada_log(CICADA_INFO, "everything was asked");
    cicada_stop_run(cicada_run_of(user));
    cicada_stop_user(user);
}

static const struct cicada_task tasks[] = {{.name = "everything", .run = everything},
                                           {.name = NULL}};
static const struct cicada_user_class users[] = {{.name = "Everything", .tasks = tasks},
                                                 {.name = NULL}};
CICADA_TEST = {CICADA_TEST_HEAD, .users = users};

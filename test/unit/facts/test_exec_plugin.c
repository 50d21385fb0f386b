/* The plugins are one-line shell programs. */
#include "facts/exec_plugin.h"

#include "base/clock.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#define V1 "client.authentication.k8s.io/v1"

struct outcome {
    int rc;
    struct buf token, cert, key;
    struct err err;
};

static void outcome_init(struct outcome *o)
{
    *o = (struct outcome){0};
    buf_init(&o->token, 1000);
    buf_init(&o->cert, 1000);
    buf_init(&o->key, 1000);
}

static void outcome_done(struct outcome *o)
{
    buf_done(&o->token);
    buf_done(&o->cert);
    buf_done(&o->key);
}

static void run_with(struct kube_exec exec, int timeout_ms, int abort_fd, struct outcome *ret)
{
    static char from[] = "/k: user 'u'", server[] = "https://h", ca[] = "Y2E=";
    struct kube_login login = {.user_from = from, .server = server, .ca_data = ca, .exec = exec};
    outcome_init(ret);
    ret->rc = exec_plugin_run(&login, timeout_ms, abort_fd, &ret->token, &ret->cert, &ret->key,
                              &ret->err);
}

static char *argv_of(const char *text)
{
    static char copy[2000];
    (void)snprintf(copy, sizeof copy, "%s", text); /* fits */
    return copy;
}

/* Run a shell program as the plugin. */
static void run(const char *program, int timeout_ms, struct outcome *ret)
{
    static char sh[] = "sh", c[] = "-c", version[] = V1;
    char *args[] = {c, argv_of(program), NULL};
    run_with(
        (struct kube_exec){.command = sh, .api_version = version, .args = args, .arg_count = 2},
        timeout_ms, -1, ret);
}

static void test_a_token(void **state)
{
    (void)state;
    struct outcome o;
    run("echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
        "\",\"status\":{\"token\":\"t0ken\",\"expirationTimestamp\":null}}'",
        20000, &o);
    assert_string_equal(o.err.text, "");
    assert_int_equal(o.rc, 0);
    assert_string_equal(buf_c(&o.token), "t0ken");
    assert_int_equal(o.cert.len, 0);
    outcome_done(&o);
}

/* The answer shows what the plugin was told. */
static void test_what_the_plugin_is_told(void **state)
{
    (void)state;
    static char sh[] = "/bin/sh", c[] = "-c", version[] = V1 "beta1", name[] = "PLUGIN_X",
                value[] = "va lue";
    static char program[] =
        "i=$(printf %s \"$KUBERNETES_EXEC_INFO\" | sed 's/\"/\\\\\"/g'); "
        "printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"%s\",\"status\":"
        "{\"token\":\"%s\"}}' client.authentication.k8s.io/v1beta1 \"$PLUGIN_X|$i|$(cat | wc -c)\"";
    char *args[] = {c, program, NULL};
    struct kube_variable env[] = {{name, value}};
    struct outcome o;
    assert_int_equal(setenv("PLUGIN_X", "overridden", 1), 0);
    run_with((struct kube_exec){.command = sh,
                                .api_version = version,
                                .args = args,
                                .arg_count = 2,
                                .env = env,
                                .env_count = 1,
                                .provide_cluster_info = true},
             20000, -1, &o);
    assert_string_equal(o.err.text, "");
    assert_string_equal(
        buf_c(&o.token),
        "va lue|{\"apiVersion\":\"client.authentication.k8s.io/v1beta1\",\"kind\":"
        "\"ExecCredential\",\"spec\":{\"interactive\":false,\"cluster\":{\"server\":\"https://h\","
        "\"certificate-authority-data\":\"Y2E=\"}}}|0");
    outcome_done(&o);
}

static void test_faults(void **state)
{
    (void)state;
    static const struct {
        const char *program;
        int rc;
        const char *error;
    } cases[] = {
        {"echo s3cret; exit 3", -EPROTO, "/k: user 'u': exec sh: exited with 3"},
        {"kill -9 $$", -EPROTO, "/k: user 'u': exec sh: ended by signal 9"},
        {"echo s3cret", -EPROTO, "/k: user 'u': exec sh: its answer is not an ExecCredential"},
        {"head -c 300000 /dev/zero", -ERANGE, "/k: user 'u': exec sh: its answer is too long"},
        {"true", -EPROTO, "/k: user 'u': exec sh: its answer is not an ExecCredential"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outcome o;
        run(cases[i].program, 20000, &o);
        assert_string_equal(o.err.text, cases[i].error);
        assert_int_equal(o.rc, cases[i].rc);
        outcome_done(&o);
    }
}

/* A plugin's child that outlives it, too, must not hold the answer open. */
static void test_the_time_limit_reaches_children(void **state)
{
    (void)state;
    struct outcome o;
    char path[] = "/tmp/exec-plugin-XXXXXX", program[200];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)snprintf(program, sizeof program, "sleep 600 & echo $! > %s; wait", path); /* fits */
    run(program, 1000, &o);
    assert_int_equal(o.rc, -ETIMEDOUT);
    assert_string_equal(o.err.text, "/k: user 'u': exec sh: timed out after 1000 ms");
    outcome_done(&o);
    char text[32] = "";
    assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
    pid_t child = (pid_t)strtol(text, NULL, 10);
    uint64_t deadline_us = clock_mono_us() + 20000000;
    char stat[64], line[512];
    bool gone = false;
    (void)snprintf(stat, sizeof stat, "/proc/%d/stat", (int)child); /* fits */
    while (!gone && clock_mono_us() < deadline_us) {
        FILE *f = fopen(stat, "r");
        gone = !f || !fgets(line, sizeof line, f) || strstr(line, ") Z ");
        if (f)
            fclose(f);
        usleep(10000);
    }
    assert_true(gone);
    close(fd);
    unlink(path);
}

static void test_a_readable_descriptor_ends_it(void **state)
{
    (void)state;
    static char sleeper[] = "sleep", version[] = V1, long_time[] = "600";
    char *args[] = {long_time, NULL};
    struct outcome o;
    int fd = eventfd(1, 0);
    run_with(
        (struct kube_exec){
            .command = sleeper, .api_version = version, .args = args, .arg_count = 1},
        20000, fd, &o);
    assert_int_equal(o.rc, -ECANCELED);
    outcome_done(&o);
    close(fd);
}

static void test_what_is_not_run(void **state)
{
    (void)state;
    static char missing[] = "no-such-program", sh[] = "sh", v1[] = V1, alpha[] = V1 "alpha1";
    struct outcome o;
    run_with((struct kube_exec){.command = missing, .api_version = v1}, 20000, -1, &o);
    assert_int_equal(o.rc, -ENOENT);
    assert_string_equal(o.err.text,
                        "/k: user 'u': exec no-such-program: No such file or directory");
    outcome_done(&o);
    run_with((struct kube_exec){.command = sh, .api_version = alpha}, 20000, -1, &o);
    assert_string_equal(o.err.text, "/k: user 'u': exec: its apiVersion is not supported");
    outcome_done(&o);
    run_with((struct kube_exec){.command = sh, .api_version = v1, .needs_terminal = true}, 20000,
             -1, &o);
    assert_string_equal(o.err.text, "/k: user 'u': exec sh: needs a terminal");
    outcome_done(&o);
}

static void test_answers(void **state)
{
    (void)state;
#define ANSWER(status) "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\"" status "}"
    static const struct {
        const char *answer, *error;
    } cases[] = {
        {ANSWER(",\"status\":{\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\"}"), ""},
        {ANSWER(""), "its answer has no status"},
        {ANSWER(",\"status\":{}"), "its answer has neither a token nor a certificate"},
        {ANSWER(",\"status\":{\"token\":1}"), "its status.token is not a text"},
        {ANSWER(",\"status\":{\"token\":\"t\",\"clientKeyData\":\"k\"}"),
         "its answer has a certificate or a key, not both"},
        {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"v9\"}",
         "its answer has another apiVersion"},
        {"{\"kind\":\"Pod\"}", "its answer is not an ExecCredential"},
        {"[]", "its answer is not an ExecCredential"},
        {"", "its answer is not an ExecCredential"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outcome o;
        outcome_init(&o);
        int rc = exec_plugin_parse(str_of(cases[i].answer), V1, &o.token, &o.cert, &o.key, &o.err);
        assert_string_equal(o.err.text, cases[i].error);
        assert_int_equal(rc, cases[i].error[0] ? -EPROTO : 0);
        outcome_done(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_token),
        cmocka_unit_test(test_what_the_plugin_is_told),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_the_time_limit_reaches_children),
        cmocka_unit_test(test_a_readable_descriptor_ends_it),
        cmocka_unit_test(test_what_is_not_run),
        cmocka_unit_test(test_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

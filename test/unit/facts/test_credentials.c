/* Files in a folder of its own, and no network. */
#include "facts/credentials.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/credentials-XXXXXX";

static const char *in_dir(const char *name)
{
    static char path[8][200];
    static int next;
    char *p = path[next++ % 8];
    (void)snprintf(p, sizeof path[0], "%s/%s", dir, name); /* fits */
    return p;
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(in_dir(name), "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void write_kubeconfig(const char *name, const char *cluster, const char *user)
{
    char text[1000];
    (void)snprintf(text, sizeof text,
                   "current-context: x\n"
                   "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                   "clusters: [{name: c, cluster: {%s}}]\n"
                   "users: [{name: u, user: {%s}}]\n",
                   cluster, user); /* fits */
    write_file(name, text);
}

static struct credentials_options in_pod(const char *host)
{
    return (struct credentials_options){
        .service_account_dir = dir, .service_host = host, .service_port = "6443"};
}

static void test_service_account(void **state)
{
    (void)state;
    struct credentials c;
    struct credentials_options o = in_pod("10.0.0.1");
    o.kubeconfig = in_dir("config");
    write_file("token", "first\n");
    write_file("ca.crt", "PEM");
    assert_int_equal(credentials_load(&o, -1, &c, NULL), 0);
    assert_string_equal(c.server, "https://10.0.0.1:6443");
    assert_string_equal(buf_c(&c.token), "first");
    assert_string_equal(buf_c(&c.ca), "PEM");
    credentials_done(&c);

    write_file("token", "second");
    o.service_host = "fd00::1";
    assert_int_equal(credentials_load(&o, -1, &c, NULL), 0);
    assert_string_equal(c.server, "https://[fd00::1]:6443");
    assert_string_equal(buf_c(&c.token), "second");
    credentials_done(&c);

    struct err err = {0};
    char want[300];
    write_file("token", " \n");
    assert_int_equal(credentials_load(&o, -1, &c, &err), -EPROTO);
    (void)snprintf(want, sizeof want, "%s: empty", in_dir("token")); /* fits */
    assert_string_equal(err.text, want);
    unlink(in_dir("token"));
}

static void test_kubeconfig_comes_second(void **state)
{
    (void)state;
    struct credentials c;
    struct credentials_options o = in_pod("10.0.0.1"); /* but no token */
    char list[500];
    write_kubeconfig("config",
                     "server: 'https://h/base/', certificate-authority-data: Q0E=", "token: t");
    (void)snprintf(list, sizeof list, ":%s:%s:", in_dir("missing"), in_dir("config")); /* fits */
    o.kubeconfig = list;
    assert_int_equal(credentials_load(&o, -1, &c, NULL), 0);
    assert_string_equal(c.server, "https://h/base");
    assert_string_equal(buf_c(&c.ca), "CA");
    assert_string_equal(buf_c(&c.token), "t");
    struct http_query r = {0};
    credentials_apply(&c, &r);
    assert_string_equal(r.bearer_token, "t");
    assert_int_equal(r.tls.ca.data.len, 2);
    assert_null(r.tls.cert.data.ptr);
    credentials_done(&c);
}

static void test_home(void **state)
{
    (void)state;
    struct credentials c;
    struct credentials_options o = {.home = dir};
    assert_int_equal(mkdir(in_dir(".kube"), 0700), 0);
    write_kubeconfig(".kube/config", "server: 'h:1'", "username: u, password: p");
    assert_int_equal(credentials_load(&o, -1, &c, NULL), 0);
    assert_string_equal(c.server, "http://h:1");
    assert_string_equal(c.username, "u");
    credentials_done(&c);
    write_kubeconfig(".kube/config", "server: 'h:1', insecure-skip-tls-verify: true", "");
    assert_int_equal(credentials_load(&o, -1, &c, NULL), 0);
    assert_string_equal(c.server, "https://h:1");
    assert_true(c.insecure);
    credentials_done(&c);
    unlink(in_dir(".kube/config"));
    rmdir(in_dir(".kube"));
}

/* A renewed file wins over the token beside it, which serves when there is no file. */
static void test_token_file(void **state)
{
    (void)state;
    struct credentials c;
    struct credentials_options o = {.kubeconfig = in_dir("config")};
    write_kubeconfig("config", "server: 'https://h'", "token: old, tokenFile: t");
    write_file("t", "new\n");
    assert_int_equal(credentials_load(&o, -1, &c, NULL), 0);
    assert_string_equal(buf_c(&c.token), "new");
    credentials_done(&c);
    unlink(in_dir("t"));
    assert_int_equal(credentials_load(&o, -1, &c, NULL), 0);
    assert_string_equal(buf_c(&c.token), "old");
    credentials_done(&c);
}

static void test_plugin_is_the_last_resort(void **state)
{
    (void)state;
    struct credentials c;
    struct credentials_options o = {.kubeconfig = in_dir("config")};
    const char *plugin = "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin}";
    char user[200];
    write_file("plugin", "#!/bin/sh\necho '{\"kind\":\"ExecCredential\",\"apiVersion\":"
                         "\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"p\"}}'\n");
    assert_int_equal(chmod(in_dir("plugin"), 0700), 0);
    write_kubeconfig("config", "server: 'https://h'", plugin);
    assert_int_equal(credentials_load(&o, -1, &c, NULL), 0);
    assert_string_equal(buf_c(&c.token), "p");
    credentials_done(&c);
    (void)snprintf(user, sizeof user, "token: t, %s", plugin); /* fits */
    write_kubeconfig("config", "server: 'https://h'", user);
    assert_int_equal(credentials_load(&o, -1, &c, NULL), 0);
    assert_string_equal(buf_c(&c.token), "t");
    credentials_done(&c);
    unlink(in_dir("plugin"));
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *cluster, *user;
        int rc;
        const char *error; /* after the folder */
    } cases[] = {
        {"server: 'https://h', certificate-authority: ca", "", -ENOENT,
         "/config: cluster 'c': certificate-authority: %s/ca: No such file or directory"},
        {"server: 'https://h', certificate-authority-data: '!'", "", -EINVAL,
         "/config: cluster 'c': certificate-authority-data is not base64"},
        {"server: 'ftp://h'", "", -EINVAL, "/config: cluster 'c': server is not a usable URL"},
        {"server: 'https://h'", "tokenFile: t", -ENOENT,
         "/config: user 'u': tokenFile: %s/t: No such file or directory"},
        {"server: 'https://h'", "client-certificate-data: YQ==, client-key: k", -ENOENT,
         "/config: user 'u': client-key: %s/k: No such file or directory"},
        {"server: 'https://h'", "client-certificate-data: YQ==, client-key-data: 's3cret'", -EINVAL,
         "/config: user 'u': client-key-data is not base64"},
    };
    struct credentials_options o = {.kubeconfig = in_dir("config")};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct credentials c;
        struct err err = {0};
        struct buf want;
        buf_init(&want, 1000);
        const char *hole = strstr(cases[i].error, "%s");
        assert_int_equal(buf_printf(&want, "%s%.*s%s%s", dir,
                                    (int)(hole ? hole - cases[i].error : 500), cases[i].error,
                                    hole ? dir : "", hole ? hole + 2 : ""),
                         0);
        write_kubeconfig("config", cases[i].cluster, cases[i].user);
        assert_int_equal(credentials_load(&o, -1, &c, &err), cases[i].rc);
        assert_string_equal(err.text, buf_c(&want));
        buf_done(&want);
    }
}

static void test_out_of_memory(void **state)
{
    (void)state;
    struct credentials_options o = {.kubeconfig = in_dir("config")};
    bool failed = true;
    write_kubeconfig("config", "server: 'https://h', tls-server-name: n, proxy-url: 'http://p'",
                     "username: u, password: p, client-certificate-data: YQ==, "
                     "client-key-data: YQ==");
    for (unsigned long n = 1; failed; n++) {
        struct credentials c;
        alloc_fail_at(n);
        int rc = credentials_load(&o, -1, &c, NULL);
        failed = alloc_failed();
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        if (rc == 0)
            credentials_done(&c);
    }
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(in_dir("config"));
    unlink(in_dir("ca.crt"));
    return rmdir(dir);
}

static void test_what_is_at_hand(void **state)
{
    (void)state;
    struct credentials_options o = {.service_account_dir = dir, .home = in_dir("home")};
    (void)unlink(in_dir("token")); /* of a test before this one */
    assert_false(credentials_at_hand(&o));
    o.kubeconfig = "";
    assert_false(credentials_at_hand(&o));
    o.kubeconfig = "/nowhere"; /* named by somebody who means it */
    assert_true(credentials_at_hand(&o));
    o.kubeconfig = NULL;
    write_file("token", "x");
    assert_false(credentials_at_hand(&o)); /* a folder alone is no pod */
    o.service_host = "10.0.0.1";
    o.service_port = "443";
    assert_true(credentials_at_hand(&o));
    o.service_host = NULL;
    assert_int_equal(mkdir(in_dir("home"), 0700), 0);
    assert_int_equal(mkdir(in_dir("home/.kube"), 0700), 0);
    assert_false(credentials_at_hand(&o));
    write_file("home/.kube/config", "");
    assert_true(credentials_at_hand(&o));
    assert_int_equal(unlink(in_dir("home/.kube/config")), 0);
    assert_int_equal(rmdir(in_dir("home/.kube")), 0);
    assert_int_equal(rmdir(in_dir("home")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_at_hand),
        cmocka_unit_test(test_service_account),
        cmocka_unit_test(test_kubeconfig_comes_second),
        cmocka_unit_test(test_home),
        cmocka_unit_test(test_token_file),
        cmocka_unit_test(test_plugin_is_the_last_resort),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

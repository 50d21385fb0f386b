#include "facts/kubeconfig.h"

#include "base/buf.h"
#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const char first[] = "apiVersion: v1\n"
                            "kind: Config\n"
                            "current-context: two\n"
                            "contexts:\n"
                            "- name: one\n"
                            "  context: {cluster: c, user: u}\n"
                            "- name: two\n"
                            "  context: {cluster: c, user: plugin}\n"
                            "clusters:\n"
                            "- name: c\n"
                            "  cluster:\n"
                            "    server: https://h:6443\n"
                            "    certificate-authority: pki/ca.crt\n"
                            "    tls-server-name: kubernetes\n"
                            "    proxy-url: http://p:1\n"
                            "    insecure-skip-tls-verify: True\n"
                            "users:\n"
                            "- name: u\n"
                            "  user:\n"
                            "    client-certificate: /abs/c.crt\n"
                            "    client-key-data: a2V5\n"
                            "    tokenFile: ../t\n"
                            "    username: null\n"
                            "    password: \"\"\n"
                            "- name: plugin\n"
                            "  user:\n"
                            "    exec:\n"
                            "      apiVersion: client.authentication.k8s.io/v1\n"
                            "      command: bin/login\n"
                            "      args: [a, \"b c\", '']\n"
                            "      env:\n"
                            "      - {name: X, value: \"1\"}\n"
                            "      - name: Y\n"
                            "      interactiveMode: Never\n"
                            "      provideClusterInfo: true\n";

static int load(const char *text, const char *path, struct kubeconfig *k, struct err *err)
{
    return kubeconfig_add(k, str_of(text), path, err);
}

static void test_a_user_with_certificates(void **state)
{
    (void)state;
    struct kubeconfig k = {0};
    struct kube_login l;
    assert_int_equal(load(first, "/etc/kube/config", &k, NULL), 0);
    assert_int_equal(kubeconfig_login(&k, "one", &l, NULL), 0);
    assert_string_equal(l.context, "one");
    assert_string_equal(l.cluster_from, "/etc/kube/config: cluster 'c'");
    assert_string_equal(l.user_from, "/etc/kube/config: user 'u'");
    assert_string_equal(l.server, "https://h:6443");
    assert_string_equal(l.ca_file, "/etc/kube/pki/ca.crt");
    assert_string_equal(l.server_name, "kubernetes");
    assert_string_equal(l.proxy_url, "http://p:1");
    assert_true(l.insecure);
    assert_string_equal(l.cert_file, "/abs/c.crt");
    assert_string_equal(l.key_data, "a2V5");
    assert_string_equal(l.token_file, "/etc/kube/../t");
    assert_null(l.username);
    assert_null(l.password);
    assert_null(l.token);
    assert_null(l.exec.command);
    kube_login_done(&l);
    kubeconfig_done(&k);
}

static void test_a_user_with_a_plugin(void **state)
{
    (void)state;
    struct kubeconfig k = {0};
    struct kube_login l;
    assert_int_equal(load(first, "config", &k, NULL), 0);
    assert_int_equal(kubeconfig_login(&k, NULL, &l, NULL), 0);
    assert_string_equal(l.context, "two");
    assert_string_equal(l.ca_file, "pki/ca.crt"); /* the working folder is the file's */
    assert_string_equal(l.exec.command, "bin/login");
    assert_string_equal(l.exec.api_version, "client.authentication.k8s.io/v1");
    assert_int_equal(l.exec.arg_count, 3);
    assert_string_equal(l.exec.args[1], "b c");
    assert_string_equal(l.exec.args[2], "");
    assert_int_equal(l.exec.env_count, 2);
    assert_string_equal(l.exec.env[0].value, "1");
    assert_null(l.exec.env[1].value);
    assert_true(l.exec.provide_cluster_info);
    assert_false(l.exec.needs_terminal);
    kube_login_done(&l);
    kubeconfig_done(&k);
}

/* The first file that has an entry gives the whole of it; each path belongs to its own file. */
static void test_files_are_merged(void **state)
{
    (void)state;
    static const char a[] = "users:\n- name: red\n  user: {tokenFile: t}\n";
    static const char b[] = "current-context: x\n"
                            "contexts:\n- name: x\n  context: {cluster: c, user: red}\n"
                            "users:\n- name: red\n  user: {token: other, username: u}\n";
    static const char c[] = "current-context: y\n"
                            "clusters:\n- name: c\n  cluster: {server: h, "
                            "certificate-authority: ca}\n";
    struct kubeconfig k = {0};
    struct kube_login l;
    assert_int_equal(load(a, "/a/config", &k, NULL), 0);
    assert_int_equal(load("", "/empty/config", &k, NULL), 0);
    assert_int_equal(load(b, "/b/config", &k, NULL), 0);
    assert_int_equal(load(c, "/config", &k, NULL), 0);
    assert_int_equal(kubeconfig_login(&k, NULL, &l, NULL), 0);
    assert_string_equal(l.context, "x");
    assert_string_equal(l.token_file, "/a/t");
    assert_null(l.token);
    assert_null(l.username);
    assert_string_equal(l.ca_file, "//ca");
    kube_login_done(&l);
    kubeconfig_done(&k);
}

static void test_aliases_and_json(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "current-context: x\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: &c {server: &s h}}, {name: d, cluster: *c}]\n"
        "users: [{name: u, user: {token: *s}}]\n",
        "{\"current-context\":\"x\",\"contexts\":[{\"name\":\"x\",\"context\":{\"cluster\":\"c\","
        "\"user\":\"u\"}}],\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"h\"}}],"
        "\"users\":[{\"name\":\"u\",\"user\":{\"token\":\"h\"}}]}",
    };
    for (int i = 0; i < 2; i++) {
        struct kubeconfig k = {0};
        struct kube_login l;
        assert_int_equal(load(texts[i], "config", &k, NULL), 0);
        assert_int_equal(kubeconfig_login(&k, NULL, &l, NULL), 0);
        assert_string_equal(l.token, "h");
        kube_login_done(&l);
        kubeconfig_done(&k);
    }
}

#define HEAD                                                                                       \
    "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"                  \
    "clusters: [{name: c, cluster: {server: h}}]\n"
#define USER(text) HEAD "users: [{name: u, user: {" text "}}]\n"

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int rc;
        const char *error;
    } cases[] = {
        {"a: [", -EPROTO, "/k: line 2: did not find expected node content"},
        {"- a\n", -EPROTO, "/k: not a mapping"},
        {"secret", -EPROTO, "/k: not a mapping"},
        {"a: b\n", -ENOENT, "/k: no current-context"},
        {"current-context: x\n", -ENOENT, "/k: no context 'x'"},
        {"current-context: {}\n", -EPROTO, "/k: current-context is not a text"},
        {"current-context: x\ncontexts: 1\n", -EPROTO, "/k: contexts is not a list"},
        {"current-context: x\ncontexts: [1]\n", -EPROTO,
         "/k: an element of contexts is not a mapping"},
        {"current-context: x\ncontexts: [{name: x}]\n", -EPROTO, "/k: context 'x' is empty"},
        {"current-context: x\ncontexts: [{name: x, context: {}}]\n", -EPROTO,
         "/k: context 'x': no cluster"},
        {"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n", -ENOENT,
         "/k: no cluster 'c'"},
        {HEAD, -ENOENT, "/k: no user 'u'"},
        {"current-context: x\ncurrent-context: y\n", -EPROTO, "/k: current-context is there twice"},
        {HEAD "users: [{name: u, user: {token: a}}, {name: u, user: {token: b}}]\n", -EPROTO,
         "/k: user 'u' is there twice"},
        {USER("token: [s3cret]"), -EPROTO, "/k: user 'u': token is not a text"},
        {USER("token: \"a\\0b\""), -EPROTO, "/k: user 'u': token holds a NUL"},
        {USER("client-certificate: c"), -EPROTO,
         "/k: user 'u': client-certificate without client-key"},
        {USER("client-key: c"), -EPROTO, "/k: user 'u': client-key without client-certificate"},
        {USER("token: t, username: u"), -EPROTO,
         "/k: user 'u': token and password, only one is allowed"},
        {USER("as: root, token: t"), -EPROTO, "/k: user 'u': as is not supported (impersonation)"},
        {USER("auth-provider: {name: gcp}"), -EPROTO,
         "/k: user 'u': auth-provider is not supported: use an exec plugin"},
        {USER("exec: {apiVersion: v}"), -EPROTO, "/k: user 'u': exec has no command"},
        {USER("exec: {command: c}"), -EPROTO, "/k: user 'u': exec has no apiVersion"},
        {USER("exec: {command: c, apiVersion: v, args: a}"), -EPROTO,
         "/k: user 'u': args is not a list"},
        {USER("exec: {command: c, apiVersion: v, args: [[]]}"), -EPROTO,
         "/k: user 'u': an element of args is not a text"},
        {USER("exec: {command: c, apiVersion: v, env: [{value: v}]}"), -EPROTO,
         "/k: user 'u': an element of env has no usable name"},
        {USER("exec: {command: c, apiVersion: v, provideClusterInfo: 2}"), -EPROTO,
         "/k: user 'u': provideClusterInfo is neither true nor false"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kubeconfig k = {0};
        struct kube_login l;
        struct err err = {0};
        int rc = load(cases[i].text, "/k", &k, &err);
        if (rc == 0)
            rc = kubeconfig_login(&k, NULL, &l, &err);
        assert_string_equal(err.text, cases[i].error);
        assert_int_equal(rc, cases[i].rc);
        kubeconfig_done(&k);
    }
}

static void test_a_context_without_user_is_anonymous(void **state)
{
    (void)state;
    struct kubeconfig k = {0};
    struct kube_login l;
    assert_int_equal(load("current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
                          "clusters: [{name: c, cluster: {server: h}}]\n",
                          "/k", &k, NULL),
                     0);
    assert_int_equal(kubeconfig_login(&k, NULL, &l, NULL), 0);
    assert_null(l.user_from);
    kube_login_done(&l);
    kubeconfig_done(&k);
}

static void test_bombs_are_refused(void **state)
{
    (void)state;
    struct kubeconfig k = {0};
    struct err err = {0};
    struct buf b;
    buf_init(&b, KUBECONFIG_FILE_BYTES * 2);
    /* each level twice the one before: a million and more when it is expanded */
    assert_int_equal(buf_add(&b, STR("l0: &l0 [x,x]\n")), 0);
    for (int i = 1; i <= 60; i++)
        assert_int_equal(buf_printf(&b, "l%d: &l%d [*l%d,*l%d]\n", i, i, i - 1, i - 1), 0);
    assert_int_equal(kubeconfig_add(&k, buf_str(&b), "/k", &err), -EPROTO);
    assert_string_equal(err.text, "/k: line 52: too many aliases");

    buf_clear(&b);
    err = (struct err){0};
    for (int i = 0; i <= KUBECONFIG_DEPTH_MAX; i++)
        assert_int_equal(buf_add(&b, STR("{a: ")), 0);
    assert_int_equal(kubeconfig_add(&k, buf_str(&b), "/k", &err), -EPROTO);
    assert_string_equal(err.text, "/k: line 1: nested too deeply");

    buf_clear(&b);
    err = (struct err){0};
    for (int i = 0; i < KUBECONFIG_EVENTS_MAX; i++)
        assert_int_equal(buf_add(&b, STR("- 1\n")), 0);
    assert_int_equal(kubeconfig_add(&k, buf_str(&b), "/k", &err), -EPROTO);
    assert_string_equal(err.text, "/k: too many entries");

    buf_clear(&b);
    err = (struct err){0};
    assert_int_equal(buf_reserve(&b, KUBECONFIG_FILE_BYTES + 1), 0);
    memset(b.ptr, ' ', KUBECONFIG_FILE_BYTES + 1);
    b.len = KUBECONFIG_FILE_BYTES + 1;
    assert_int_equal(kubeconfig_add(&k, buf_str(&b), "/k", &err), -ERANGE);
    buf_done(&b);
    kubeconfig_done(&k);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    unsigned sound = 0; /* both contexts, in turn */
    for (unsigned long n = 2; sound < 2; n++) {
        struct kubeconfig k = {0};
        struct kube_login l = {0};
        alloc_fail_at(n / 2);
        int rc = load(first, "/k/config", &k, NULL);
        if (rc == 0)
            rc = kubeconfig_login(&k, n % 2 ? "one" : NULL, &l, NULL);
        bool failed = alloc_failed();
        sound += !failed;
        alloc_fail_at(0);
        assert_int_equal(rc, failed ? -ENOMEM : 0);
        kube_login_done(&l);
        kubeconfig_done(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_user_with_certificates),
        cmocka_unit_test(test_a_user_with_a_plugin),
        cmocka_unit_test(test_files_are_merged),
        cmocka_unit_test(test_aliases_and_json),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_a_context_without_user_is_anonymous),
        cmocka_unit_test(test_bombs_are_refused),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

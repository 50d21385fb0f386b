/* posix_spawn, because the process has many threads. The plugin leads a process group of its own so
 * that a time limit reaches its children too. Its answer comes through a pipe that is read until
 * its end; standard input and error are /dev/null: there is nobody to ask, and what plugins print
 * to the error stream may be secret. */
#include "facts/exec_plugin.h"

#include "base/clock.h"

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENVIRONMENT_MAX (1u << 20) /* bytes of one variable */
#define REAP_STEP_MS    5

extern char **environ;

/* --- the answer ---------------------------------------------------------------------------------
 */

static int take_member(json_t *status, const char *key, struct buf *ret, struct err *err)
{
    json_t *value = json_object_get(status, key);
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_string(value))
        return err_set(err, -EPROTO, "its status.%s is not a text", key);
    int rc = buf_add(ret, (struct str){json_string_value(value), json_string_length(value)});
    return rc < 0 ? err_set(err, rc, "its status.%s is too long", key) : 0;
}

int exec_plugin_parse(struct str answer, const char *api_version, struct buf *ret_token,
                      struct buf *ret_cert, struct buf *ret_key, struct err *err)
{
    json_error_t error;
    json_auto_t *root =
        json_loadb(answer.len ? answer.ptr : "", answer.len, JSON_DISABLE_EOF_CHECK, &error);
    if (!root && json_error_code(&error) == json_error_out_of_memory)
        return err_set(err, -ENOMEM, "out of memory");
    const char *kind = json_string_value(json_object_get(root, "kind"));
    const char *version = json_string_value(json_object_get(root, "apiVersion"));
    json_t *status = json_object_get(root, "status");
    if (!kind || strcmp(kind, "ExecCredential") != 0)
        return err_set(err, -EPROTO, "its answer is not an ExecCredential");
    if (!version || strcmp(version, api_version) != 0)
        return err_set(err, -EPROTO, "its answer has another apiVersion");
    if (!json_is_object(status))
        return err_set(err, -EPROTO, "its answer has no status");
    int rc = take_member(status, "token", ret_token, err);
    if (rc == 0)
        rc = take_member(status, "clientCertificateData", ret_cert, err);
    if (rc == 0)
        rc = take_member(status, "clientKeyData", ret_key, err);
    if (rc < 0)
        return rc;
    if ((ret_cert->len > 0) != (ret_key->len > 0))
        return err_set(err, -EPROTO, "its answer has a certificate or a key, not both");
    if (ret_token->len == 0 && ret_cert->len == 0)
        return err_set(err, -EPROTO, "its answer has neither a token nor a certificate");
    return 0;
}

/* --- what it is told ----------------------------------------------------------------------------
 */

static json_t *cluster_info(const struct kube_login *l)
{
    json_t *cluster = json_pack("{s:s}", "server", l->server);
    bool bad = !cluster;
    if (l->ca_data)
        bad |= json_object_set_new(cluster, "certificate-authority-data", json_string(l->ca_data));
    if (l->server_name)
        bad |= json_object_set_new(cluster, "tls-server-name", json_string(l->server_name));
    if (l->proxy_url)
        bad |= json_object_set_new(cluster, "proxy-url", json_string(l->proxy_url));
    if (l->insecure)
        bad |= json_object_set_new(cluster, "insecure-skip-tls-verify", json_true());
    if (bad) {
        json_decref(cluster);
        return NULL;
    }
    return cluster;
}

static char *exec_info(const struct kube_login *l)
{
    json_auto_t *info = json_pack("{s:s, s:s, s:{s:b}}", "apiVersion", l->exec.api_version, "kind",
                                  "ExecCredential", "spec", "interactive", 0);
    if (info && l->exec.provide_cluster_info &&
        json_object_set_new(json_object_get(info, "spec"), "cluster", cluster_info(l)) < 0)
        return NULL;
    return info ? json_dumps(info, JSON_COMPACT) : NULL;
}

static int add_variable(char **variables, size_t *count, const char *name, const char *value)
{
    struct buf b;
    buf_init(&b, ENVIRONMENT_MAX);
    int rc = buf_printf(&b, "%s=%s", name, value ? value : "");
    if (rc < 0) {
        buf_done(&b);
        return rc;
    }
    variables[(*count)++] = buf_take(&b);
    return 0;
}

static void environment_free(char **variables, size_t own_from)
{
    for (size_t i = own_from; variables && variables[i]; i++) {
        explicit_bzero(variables[i], strlen(variables[i]));
        free(variables[i]);
    }
    free(variables);
}

/* The process's own variables that are not overridden, borrowed, then the plugin's, owned from
 * *ret_own_from on. */
static int make_environment(const struct kube_login *l, char ***ret, size_t *ret_own_from)
{
    size_t own = 0, count = 0;
    while (environ[own])
        own++;
    char **variables = calloc(own + l->exec.env_count + 2, sizeof *variables);
    char *info = exec_info(l);
    int rc = variables && info ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < own; i++) {
        struct str name = str_sub(str_of(environ[i]), 0, str_find(str_of(environ[i]), '='));
        bool overridden = str_eq(name, STR("KUBERNETES_EXEC_INFO"));
        for (size_t k = 0; k < l->exec.env_count; k++)
            overridden |= str_eq(name, str_of(l->exec.env[k].name));
        if (!overridden)
            variables[count++] = environ[i];
    }
    *ret_own_from = count;
    for (size_t i = 0; rc == 0 && i < l->exec.env_count; i++)
        rc = add_variable(variables, &count, l->exec.env[i].name, l->exec.env[i].value);
    if (rc == 0)
        rc = add_variable(variables, &count, "KUBERNETES_EXEC_INFO", info);
    free(info);
    if (rc < 0)
        environment_free(variables, *ret_own_from);
    else
        *ret = variables;
    return rc;
}

/* --- the process --------------------------------------------------------------------------------
 */

static int set_attributes(posix_spawnattr_t *attributes, posix_spawn_file_actions_t *files,
                          int out_fd)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    /* the process blocks and ignores signals for its own purposes; a plugin must not inherit that
     */
    int rc = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                      POSIX_SPAWN_SETSIGDEF);
    rc = rc ? rc : posix_spawnattr_setpgroup(attributes, 0);
    rc = rc ? rc : posix_spawnattr_setsigmask(attributes, &none);
    rc = rc ? rc : posix_spawnattr_setsigdefault(attributes, &all);
    rc = rc ? rc : posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
    rc = rc ? rc : posix_spawn_file_actions_adddup2(files, out_fd, 1);
    rc = rc ? rc : posix_spawn_file_actions_addopen(files, 2, "/dev/null", O_WRONLY, 0);
    return -rc;
}

static int spawn(const struct kube_exec *x, char **variables, int out_fd, pid_t *ret)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    char **argv = calloc(x->arg_count + 2, sizeof *argv);
    if (!argv)
        return -ENOMEM;
    argv[0] = x->command;
    for (size_t i = 0; i < x->arg_count; i++)
        argv[i + 1] = x->args[i];
    int rc = -posix_spawnattr_init(&attributes);
    if (rc == 0) {
        rc = -posix_spawn_file_actions_init(&files);
        if (rc == 0) {
            rc = set_attributes(&attributes, &files, out_fd);
            if (rc == 0)
                rc = -posix_spawnp(ret, x->command, &files, &attributes, argv, variables);
            (void)posix_spawn_file_actions_destroy(&files); /* cannot fail */
        }
        (void)posix_spawnattr_destroy(&attributes); /* cannot fail */
    }
    free(argv);
    return rc;
}

/* Milliseconds left, for poll. */
static int left_ms(uint64_t deadline_us)
{
    uint64_t now_us = clock_mono_us();
    return now_us >= deadline_us ? 0 : (int)((deadline_us - now_us) / 1000 + 1);
}

static int read_answer(int fd, uint64_t deadline_us, int abort_fd, struct buf *ret)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = abort_fd, .events = POLLIN}};
        int n = poll(fds, 2, left_ms(deadline_us)); /* a negative fd is passed over */
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0 && fds[1].revents)
            return -ECANCELED;
        if (n <= 0 && clock_mono_us() >= deadline_us)
            return -ETIMEDOUT;
        if (n <= 0)
            continue;
        char step[4096];
        ssize_t got = read(fd, step, sizeof step);
        if (got == 0)
            return 0;
        if (got < 0 && errno != EINTR)
            return -errno;
        int rc = got > 0 ? buf_add(ret, (struct str){step, (size_t)got}) : 0;
        explicit_bzero(step, sizeof step);
        if (rc < 0)
            return rc;
    }
}

/* Wait for the end, at most until the deadline. *ret_status is -1 when somebody else reaped it. */
static int reap(pid_t pid, uint64_t deadline_us, int *ret_status)
{
    for (;;) {
        pid_t got = waitpid(pid, ret_status, WNOHANG);
        if (got == pid)
            return 0;
        if (got < 0 && errno != EINTR) {
            *ret_status = -1;
            return 0;
        }
        if (clock_mono_us() >= deadline_us)
            return -ETIMEDOUT;
        (void)poll(NULL, 0, REAP_STEP_MS); /* only a pause */
    }
}

static int converse(const struct kube_exec *x, char **variables, uint64_t deadline_us, int abort_fd,
                    struct buf *ret, int *ret_status)
{
    int fds[2];
    pid_t pid;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    int rc = spawn(x, variables, fds[1], &pid);
    (void)close(fds[1]);
    if (rc == 0) {
        rc = read_answer(fds[0], deadline_us, abort_fd, ret);
        if (rc == 0)
            rc = reap(pid, deadline_us, ret_status);
        if (rc < 0) {
            int status;
            (void)kill(-pid, SIGKILL);                           /* gone already is as good */
            (void)reap(pid, clock_mono_us() + 1000000, &status); /* killed: it ends */
        }
    }
    (void)close(fds[0]); /* only read from */
    return rc;
}

static int failure(const struct kube_login *l, int rc, int status, int timeout_ms, struct err *err)
{
    const char *from = l->user_from, *command = l->exec.command;
    if (rc == -ETIMEDOUT)
        return err_set(err, rc, "%s: exec %s: timed out after %d ms", from, command, timeout_ms);
    if (rc == -ERANGE)
        return err_set(err, rc, "%s: exec %s: its answer is too long", from, command);
    if (rc < 0)
        return err_set(err, rc, "%s: exec %s: %s", from, command, strerror(-rc));
    if (status != -1 && WIFSIGNALED(status))
        return err_set(err, -EPROTO, "%s: exec %s: ended by signal %d", from, command,
                       WTERMSIG(status));
    if (status != -1 && WEXITSTATUS(status) != 0)
        return err_set(err, -EPROTO, "%s: exec %s: exited with %d", from, command,
                       WEXITSTATUS(status));
    return 0;
}

int exec_plugin_run(const struct kube_login *login, int timeout_ms, int abort_fd,
                    struct buf *ret_token, struct buf *ret_cert, struct buf *ret_key,
                    struct err *err)
{
    static const char *const versions[] = {"client.authentication.k8s.io/v1",
                                           "client.authentication.k8s.io/v1beta1"};
    const struct kube_exec *x = &login->exec;
    if (strcmp(x->api_version, versions[0]) != 0 && strcmp(x->api_version, versions[1]) != 0)
        return err_set(err, -EPROTO, "%s: exec: its apiVersion is not supported", login->user_from);
    if (x->needs_terminal)
        return err_set(err, -EPROTO, "%s: exec %s: needs a terminal", login->user_from, x->command);
    char **variables = NULL;
    size_t own_from = 0;
    struct buf answer;
    int status = 0;
    buf_init(&answer, EXEC_PLUGIN_ANSWER_BYTES);
    int rc = make_environment(login, &variables, &own_from);
    if (rc == 0) {
        uint64_t deadline_us = clock_mono_us() + (uint64_t)timeout_ms * 1000;
        rc = converse(x, variables, deadline_us, abort_fd, &answer, &status);
        environment_free(variables, own_from);
    }
    rc = failure(login, rc, status, timeout_ms, err);
    if (rc == 0) {
        rc = exec_plugin_parse(buf_str(&answer), x->api_version, ret_token, ret_cert, ret_key, err);
        err_prefix(err, "%s: exec %s", login->user_from, x->command);
    }
    if (answer.ptr)
        explicit_bzero(answer.ptr, answer.len);
    buf_done(&answer);
    return rc;
}

#include "facts/credentials.h"

#include "base/base64.h"
#include "facts/exec_plugin.h"
#include "facts/kubeconfig.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PATH_TEXT_BYTES 4096
#define URL_BYTES       4096

struct credentials_options credentials_options_from_env(void)
{
    return (struct credentials_options){
        .service_host = getenv("KUBERNETES_SERVICE_HOST"),
        .service_port = getenv("KUBERNETES_SERVICE_PORT"),
        .kubeconfig = getenv("KUBECONFIG"),
        .home = getenv("HOME"),
    };
}

static void credentials_init(struct credentials *c)
{
    *c = (struct credentials){0};
    buf_init(&c->token, CREDENTIALS_TOKEN_BYTES);
    buf_init(&c->ca, CREDENTIALS_PEM_BYTES);
    buf_init(&c->cert, CREDENTIALS_PEM_BYTES);
    buf_init(&c->key, CREDENTIALS_PEM_BYTES);
}

static bool is_set(const char *text)
{
    return text && *text;
}

/* --- texts and files ----------------------------------------------------------------------------
 */

static int copy(char **ret, const char *text)
{
    if (!text)
        return 0;
    *ret = strdup(text);
    return *ret ? 0 : -ENOMEM;
}

/* "HOST:PORT" alone is https when anything about TLS was said, as kubectl has it. */
static int set_server(struct credentials *c, const char *text, const char *from, bool tls,
                      struct err *err)
{
    struct buf url, shown;
    struct str server = str_of(text);
    while (str_ends(server, STR("/")))
        server.len--;
    buf_init(&url, URL_BYTES);
    buf_init(&shown, URL_BYTES);
    bool has_scheme = str_find_str(server, STR("://")) < server.len;
    int rc = buf_printf(&url, "%s%.*s",
                        has_scheme ? ""
                        : tls      ? "https://"
                                   : "http://",
                        STR_ARG(server));
    if (rc == 0)
        rc = http_url_shown(&shown, buf_c(&url));
    buf_done(&shown);
    if (rc == 0)
        c->server = buf_take(&url);
    buf_done(&url);
    return rc < 0 ? err_set(err, rc, "%s: server is not a usable URL", from) : 0;
}

static void trim(struct buf *b)
{
    struct str text = str_trim(buf_str(b));
    if (text.len == b->len)
        return;
    memmove(b->ptr, text.ptr, text.len);
    b->len = text.len;
    b->ptr[b->len] = '\0';
}

/* A token of a file; an empty one would look like none. */
static int read_token(const char *path, struct buf *ret, struct err *err)
{
    int rc = buf_read_file(ret, path, err);
    if (rc == 0)
        trim(ret);
    return rc == 0 && ret->len == 0 ? err_set(err, -EPROTO, "%s: empty", path) : rc;
}

/* Bytes by value or by path; the value wins. Neither: nothing. */
static int take_pem(const char *from, const char *key, const char *data, const char *file,
                    struct buf *ret, struct err *err)
{
    int rc = 0;
    if (data) {
        rc = base64_decode(ret, str_of(data));
        if (rc < 0)
            err_set(err, rc, "%s: %s-data is %s", from, key,
                    rc == -EINVAL ? "not base64" : "too long");
    } else if (file) {
        rc = buf_read_file(ret, file, err);
        if (rc < 0)
            err_prefix(err, "%s: %s", from, key);
    }
    if (rc == 0 && (data || file) && ret->len == 0)
        rc = err_set(err, -EPROTO, "%s: %s is empty", from, key);
    return rc;
}

/* --- in the cluster -----------------------------------------------------------------------------
 */

static int join(char ret[static PATH_TEXT_BYTES], const char *dir, const char *name,
                struct err *err)
{
    int n = snprintf(ret, PATH_TEXT_BYTES, "%s/%s", dir, name);
    return n < PATH_TEXT_BYTES ? 0 : err_set(err, -ENAMETOOLONG, "%s: too long a path", name);
}

/* Are we in a pod with a service account? A host or a folder alone is not enough. */
static bool in_cluster(const struct credentials_options *o, const char *dir)
{
    char path[PATH_TEXT_BYTES];
    return is_set(o->service_host) && is_set(o->service_port) &&
           join(path, dir, "token", NULL) == 0 && access(path, F_OK) == 0;
}

static int load_service_account(const struct credentials_options *o, const char *dir,
                                struct credentials *c, struct err *err)
{
    char path[PATH_TEXT_BYTES], server[URL_BYTES];
    bool is_ipv6 = strchr(o->service_host, ':') && o->service_host[0] != '[';
    int n = snprintf(server, sizeof server, is_ipv6 ? "https://[%s]:%s" : "https://%s:%s",
                     o->service_host, o->service_port);
    if (n >= (int)sizeof server)
        return err_set(err, -ENAMETOOLONG, "KUBERNETES_SERVICE_HOST: too long");
    int rc = set_server(c, server, "KUBERNETES_SERVICE_HOST", true, err);
    if (rc == 0)
        rc = join(path, dir, "token", err);
    if (rc == 0)
        rc = read_token(path, &c->token, err);
    if (rc == 0)
        rc = join(path, dir, "ca.crt", err);
    if (rc == 0 && access(path, F_OK) == 0) /* else the system's authorities, as client-go does */
        rc = buf_read_file(&c->ca, path, err);
    (void)snprintf(c->source, sizeof c->source, "service account in %s", dir); /* cut is fine */
    return rc;
}

/* --- kubeconfig ---------------------------------------------------------------------------------
 */

static int add_file(struct kubeconfig *k, const char *path, struct err *err)
{
    struct buf text;
    buf_init(&text, KUBECONFIG_FILE_BYTES);
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0; /* kubectl passes over missing ones */
    int rc = buf_read_file(&text, path, err);
    if (rc == 0)
        rc = kubeconfig_add(k, buf_str(&text), path, err);
    if (text.ptr)
        explicit_bzero(text.ptr, text.len);
    buf_done(&text);
    return rc;
}

static int add_files(struct kubeconfig *k, const struct credentials_options *o, struct err *err)
{
    char path[PATH_TEXT_BYTES];
    int rc = 0;
    if (!is_set(o->kubeconfig)) {
        if (!is_set(o->home))
            return 0;
        rc = join(path, o->home, ".kube/config", err);
        return rc < 0 ? rc : add_file(k, path, err);
    }
    struct str rest = str_of(o->kubeconfig), part;
    while (rc == 0 && str_next(&rest, ':', &part)) {
        if (part.len == 0)
            continue;
        int n = snprintf(path, sizeof path, "%.*s", STR_ARG(part));
        rc = n < (int)sizeof path ? add_file(k, path, err)
                                  : err_set(err, -ENAMETOOLONG, "KUBECONFIG: too long a path");
    }
    return rc;
}

/* The file wins over the text while it can be read, for it may have been renewed. */
static int take_token(const struct kube_login *l, struct credentials *c, struct err *err)
{
    int rc = 0;
    if (l->token_file) {
        rc = read_token(l->token_file, &c->token, l->token ? NULL : err);
        if (rc == 0 || !l->token) {
            err_prefix(err, "%s: tokenFile", l->user_from);
            return rc;
        }
        buf_clear(&c->token);
    }
    if (!l->token)
        return 0;
    rc = buf_add(&c->token, str_of(l->token));
    if (rc == 0)
        trim(&c->token);
    return rc < 0 ? err_set(err, rc, "%s: token is too long", l->user_from) : 0;
}

static int take_cluster(const struct kube_login *l, struct credentials *c, struct err *err)
{
    bool tls = l->ca_data || l->ca_file || l->cert_data || l->cert_file || l->insecure;
    int rc = set_server(c, l->server, l->cluster_from, tls, err);
    if (rc == 0)
        rc =
            take_pem(l->cluster_from, "certificate-authority", l->ca_data, l->ca_file, &c->ca, err);
    if (rc == 0 && (copy(&c->server_name, l->server_name) < 0 || copy(&c->proxy, l->proxy_url) < 0))
        rc = err_set(err, -ENOMEM, "%s: out of memory", l->cluster_from);
    c->insecure = l->insecure;
    return rc;
}

static int take_user(const struct kube_login *l, int abort_fd, struct credentials *c,
                     struct err *err)
{
    int rc = take_token(l, c, err);
    if (rc == 0)
        rc =
            take_pem(l->user_from, "client-certificate", l->cert_data, l->cert_file, &c->cert, err);
    if (rc == 0)
        rc = take_pem(l->user_from, "client-key", l->key_data, l->key_file, &c->key, err);
    if (rc == 0 && (copy(&c->username, l->username) < 0 || copy(&c->password, l->password) < 0))
        rc = err_set(err, -ENOMEM, "%s: out of memory", l->user_from);
    bool known = c->token.len > 0 || c->cert.len > 0 || c->username || c->password;
    if (rc == 0 && l->exec.command && !known) /* as client-go: a plugin is the last resort */
        rc =
            exec_plugin_run(l, EXEC_PLUGIN_TIMEOUT_MS, abort_fd, &c->token, &c->cert, &c->key, err);
    return rc;
}

static int load_kubeconfig(const struct credentials_options *o, int abort_fd, struct credentials *c,
                           struct err *err)
{
    struct kubeconfig k = {0};
    struct kube_login l = {0};
    int rc = add_files(&k, o, err);
    if (rc == 0 && k.count == 0)
        rc = err_set(err, -ENOENT, "no service account, and no kubeconfig file%s%.100s",
                     is_set(o->kubeconfig) ? " at KUBECONFIG=" : "",
                     is_set(o->kubeconfig) ? o->kubeconfig : "");
    if (rc == 0)
        rc = kubeconfig_login(&k, is_set(o->context) ? o->context : NULL, &l, err);
    if (rc == 0)
        rc = take_cluster(&l, c, err);
    if (rc == 0)
        rc = take_user(&l, abort_fd, c, err);
    if (rc == 0)
        (void)snprintf(c->source, sizeof c->source, "context %.100s of a kubeconfig", l.context);
    kube_login_done(&l);
    kubeconfig_done(&k);
    return rc;
}

bool credentials_at_hand(const struct credentials_options *options)
{
    char path[PATH_TEXT_BYTES];
    const char *dir = is_set(options->service_account_dir) ? options->service_account_dir
                                                           : CREDENTIALS_SERVICE_ACCOUNT_DIR;
    if (is_set(options->kubeconfig) || in_cluster(options, dir))
        return true;
    return is_set(options->home) && join(path, options->home, ".kube/config", NULL) == 0 &&
           access(path, F_OK) == 0;
}

int credentials_load(const struct credentials_options *options, int abort_fd,
                     struct credentials *ret, struct err *err)
{
    const char *dir = is_set(options->service_account_dir) ? options->service_account_dir
                                                           : CREDENTIALS_SERVICE_ACCOUNT_DIR;
    struct credentials c;
    credentials_init(&c);
    int rc = in_cluster(options, dir) ? load_service_account(options, dir, &c, err)
                                      : load_kubeconfig(options, abort_fd, &c, err);
    if (rc < 0)
        credentials_done(&c);
    else
        *ret = c;
    return rc;
}

static void wipe(struct buf *b)
{
    if (b->ptr)
        explicit_bzero(b->ptr, b->len);
    buf_done(b);
}

void credentials_done(struct credentials *c)
{
    char *texts[] = {c->server, c->server_name, c->proxy, c->username, c->password};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i])
            explicit_bzero(texts[i], strlen(texts[i]));
        free(texts[i]);
    }
    wipe(&c->token);
    wipe(&c->ca);
    wipe(&c->cert);
    wipe(&c->key);
    credentials_init(c);
}

static struct str pem_of(const struct buf *b)
{
    return b->len ? buf_str(b) : (struct str){NULL, 0};
}

void credentials_apply(const struct credentials *c, struct http_query *request)
{
    request->tls = (struct http_tls){.ca.data = pem_of(&c->ca),
                                     .cert.data = pem_of(&c->cert),
                                     .key.data = pem_of(&c->key),
                                     .server_name = c->server_name,
                                     .insecure = c->insecure};
    request->bearer_token = c->token.len ? buf_c(&c->token) : NULL;
    request->username = c->username;
    request->password = c->password;
    request->proxy = c->proxy;
}

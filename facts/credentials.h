/* How to reach and convince the Kubernetes API server: the in-cluster service account, else the
 * kubeconfig files. Reads files and may run an exec plugin: report thread only. Nothing is kept
 * between calls, so a rotated token is read anew each time. */
#ifndef CICADA_FACTS_CREDENTIALS_H
#define CICADA_FACTS_CREDENTIALS_H

#include "base/buf.h"
#include "proto/http/http.h"

#define CREDENTIALS_SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"
#define CREDENTIALS_TOKEN_BYTES         (64u * 1024)
#define CREDENTIALS_PEM_BYTES           (1u << 20)
#define CREDENTIALS_SOURCE_BYTES        256

/* Borrowed; NULL is "not there". */
struct credentials_options {
    const char *service_account_dir;         /* NULL: CREDENTIALS_SERVICE_ACCOUNT_DIR */
    const char *service_host, *service_port; /* KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT */
    const char *kubeconfig;                  /* KUBECONFIG: files with ':' between them */
    const char *home;                        /* HOME, for .kube/config */
    const char *context;                     /* NULL: the current one */
};

/* The five as the environment has them; valid until it changes. */
struct credentials_options credentials_options_from_env(void);

/* Is there anything to find credentials in: a service account, KUBECONFIG, ~/.kube/config? Looks
 * at names of files only. */
bool credentials_at_hand(const struct credentials_options *options);

struct credentials {
    char *server;                                    /* URL without a slash at its end */
    char *server_name, *proxy, *username, *password; /* or NULL */
    struct buf token, ca, cert, key;                 /* empty: none */
    bool insecure;
    char source[CREDENTIALS_SOURCE_BYTES]; /* for the log */
};

/* abort_fd: see exec_plugin_run. 0; -ENOENT (no credentials at all, a file or entry is missing);
 * -EPROTO; other errnos. err is one line that names the file and the key, never contents. */
MUST_USE int credentials_load(const struct credentials_options *options, int abort_fd,
                              struct credentials *ret, struct err *err);
/* Secrets are overwritten. */
void credentials_done(struct credentials *c);

/* Let a request use them; the request borrows. Its url stays the caller's business. */
void credentials_apply(const struct credentials *c, struct http_query *request);

#endif

/* kubeconfig files: YAML texts in, the entries that one context needs out. It reads no files and
 * runs nothing; credentials.h does. Files are merged by kubectl's rule: the first file that has a
 * current context, or an entry of a name, gives the whole of it. One thread at a time.
 * Source: k8s.io/client-go tools/clientcmd, v0.34. */
#ifndef CICADA_FACTS_KUBECONFIG_H
#define CICADA_FACTS_KUBECONFIG_H

#include "base/err.h"
#include "base/str.h"

#include <stddef.h>

#define KUBECONFIG_FILE_BYTES  (1u << 20) /* hundreds of clusters with their certificates */
#define KUBECONFIG_FILES_MAX   32         /* named in KUBECONFIG */
#define KUBECONFIG_DEPTH_MAX   32         /* real ones stay below 10 */
#define KUBECONFIG_EVENTS_MAX  200000     /* of the YAML of one file */
#define KUBECONFIG_ALIASES_MAX 100        /* an alias is looked up in a list of anchors */
#define KUBECONFIG_LIST_MAX    256        /* arguments or variables of a plugin */

struct kubeconfig_file;

/* Zeroed at first. */
struct kubeconfig {
    struct kubeconfig_file *file[KUBECONFIG_FILES_MAX];
    size_t count;
};

struct kube_variable {
    char *name, *value;
};

/* command NULL: none. */
struct kube_exec {
    char *command, *api_version;
    char **args;
    size_t arg_count;
    struct kube_variable *env;
    size_t env_count;
    bool provide_cluster_info, needs_terminal;
};

/* One context's cluster and user; all texts owned, NULL when absent. Paths are relative to the
 * working folder; data is still base64. *_from ("FILE: user 'NAME'") is for messages. */
struct kube_login {
    char *context;
    char *cluster_from, *user_from;
    char *server, *ca_file, *ca_data, *server_name, *proxy_url;
    bool insecure;
    char *token, *token_file, *cert_file, *cert_data, *key_file, *key_data;
    char *username, *password;
    struct kube_exec exec;
};

/* Take in one more file's text; path is where it lies, for messages and relative paths.
 * 0; -EPROTO (not YAML, not a mapping, too deep, too many aliases); -ERANGE (too many files);
 * -ENOMEM. err names the file and the line, never contents. */
MUST_USE int kubeconfig_add(struct kubeconfig *k, struct str text, const char *path,
                            struct err *err);
void kubeconfig_done(struct kubeconfig *k);

/* The cluster and user of a context; NULL is the current one.
 * 0; -ENOENT (no such context, cluster or user); -EPROTO (a value of the wrong form); -ENOMEM. */
MUST_USE int kubeconfig_login(struct kubeconfig *k, const char *context, struct kube_login *ret,
                              struct err *err);
/* Secrets are overwritten. */
void kube_login_done(struct kube_login *l);

#endif

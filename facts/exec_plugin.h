/* Credential plugins: the program that a kubeconfig's user names (exec), run once, its answer read.
 * It blocks up to the time limit: report thread only.
 * Source: k8s.io/client-go plugin/pkg/client/auth/exec, v0.34. */
#ifndef CICADA_FACTS_EXEC_PLUGIN_H
#define CICADA_FACTS_EXEC_PLUGIN_H

#include "base/buf.h"
#include "facts/kubeconfig.h"

#define EXEC_PLUGIN_TIMEOUT_MS   10000         /* those of the clouds ask a server or two */
#define EXEC_PLUGIN_ANSWER_BYTES (256u * 1024) /* a token and a certificate chain */

/* Run the plugin of a login with KUBERNETES_EXEC_INFO in its environment, without a terminal, and
 * put what it answered into *ret_token, *ret_cert and *ret_key (PEM), each empty when not given.
 * The process and what it started in its group are killed at the time limit or when abort_fd
 * (-1: none) becomes readable.
 * 0; -ENOENT (no such program); -ETIMEDOUT; -ECANCELED; -ERANGE (too long an answer); -EPROTO (it
 * failed, or its answer is not an ExecCredential of the wanted version); other errnos. err names
 * the file, the user and the program, never its output. */
MUST_USE int exec_plugin_run(const struct kube_login *login, int timeout_ms, int abort_fd,
                             struct buf *ret_token, struct buf *ret_cert, struct buf *ret_key,
                             struct err *err);

/* The pure half: a plugin's answer. 0; -EPROTO; -ERANGE; -ENOMEM. */
MUST_USE int exec_plugin_parse(struct str answer, const char *api_version, struct buf *ret_token,
                               struct buf *ret_cert, struct buf *ret_key, struct err *err);

#endif

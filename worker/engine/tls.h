/* TLS for the fast engine, by OpenSSL: the contexts of a shard. The shard's thread only. */
#ifndef CICADA_WORKER_ENGINE_TLS_H
#define CICADA_WORKER_ENGINE_TLS_H

#include "base/err.h"
#include "worker/engine/http_request.h"

#include <openssl/ssl.h>

struct tls;

/* The CA certificates of the system are loaded at the first use. NULL: no memory. */
struct tls *tls_new(void);
void tls_free(struct tls *t);

/* An SSL object for a connected, non-blocking socket: server name, verification of the host's name
 * or address (unless the origin is insecure), ALPN http/1.1. *session is resumed and replaced by
 * newer ones; it is the caller's (SSL_SESSION_free) and must stay where it is as long as the object
 * lives. NULL: no memory. Free with SSL_free. */
SSL *tls_connect(struct tls *t, const struct http_origin *origin, SSL_SESSION **session, int fd);

#endif

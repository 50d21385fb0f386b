/* TLS for the fast engine, by OpenSSL: the contexts of a shard. The shard's thread only. */
#ifndef CICADA_WORKER_ENGINE_TLS_H
#define CICADA_WORKER_ENGINE_TLS_H

#include "base/err.h"
#include "worker/engine/http_request.h"

#include <openssl/ssl.h>

struct tls;

/* What a user class wants of its connections. */
struct tls_terms {
    bool insecure;          /* the server's certificate is not verified */
    struct str certificate; /* of the class, PEM with its private key; ptr NULL: none */
};

static inline struct tls_terms tls_terms_of(const struct plan_class *class)
{
    return (struct tls_terms){class->insecure, class->client_certificate};
}

static inline bool tls_terms_equal(const struct tls_terms *a, const struct tls_terms *b)
{
    return a->insecure == b->insecure && a->certificate.ptr == b->certificate.ptr;
}

/* Can a certificate be used? 0; -EINVAL with what is wrong with it; -ENOMEM. */
MUST_USE int tls_check(struct str certificate, struct err *err);

/* The CA certificates of the system are loaded at the first use. NULL: no memory. */
struct tls *tls_new(void);
void tls_free(struct tls *t);

/* An SSL object for a connected, non-blocking socket: server name, verification of the host's name
 * or address (unless the terms are insecure), the certificate of the terms if the server asks for
 * one, ALPN http/1.1. The terms' texts must outlive t. *session is resumed and replaced by
 * newer ones; it is the caller's (SSL_SESSION_free) and must stay where it is as long as the object
 * lives. NULL: no memory. Free with SSL_free. */
SSL *tls_connect(struct tls *t, const struct http_origin *origin, const struct tls_terms *terms,
                 SSL_SESSION **session, int fd);

#endif

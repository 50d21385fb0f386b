#include "worker/engine/tls.h"

#include "worker/scenario/url.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

struct tls {
    SSL_CTX *verified;
    SSL_CTX *insecure;
};

/* OpenSSL hands over a session (several in TLS 1.3); the newest one is kept. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
    SSL_SESSION **slot = SSL_get_app_data(ssl);
    SSL_SESSION_free(*slot);
    *slot = session;
    return 1; /* the reference is the slot's now */
}

static SSL_CTX *new_context(bool insecure)
{
    static const unsigned char alpn[] = "\x08http/1.1";
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx)
        return NULL;
    /* memory for records only while one is being read: thousands of connections wait */
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* many servers end a connection without TLS's own close, and neither Locust nor curl minds */
    SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_read_ahead(ctx, 1); /* one read for a record, not two */
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, on_session);
    if (SSL_CTX_set_alpn_protos(ctx, alpn, sizeof alpn - 1) != 0 ||
        (!insecure && SSL_CTX_set_default_verify_paths(ctx) != 1)) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set_verify(ctx, insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    return ctx;
}

struct tls *tls_new(void)
{
    return calloc(1, sizeof(struct tls));
}

void tls_free(struct tls *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->verified);
    SSL_CTX_free(t->insecure);
    free(t);
}

static bool is_address(struct str host)
{
    struct in6_addr any;
    return inet_pton(AF_INET, host.ptr, &any) == 1 || inet_pton(AF_INET6, host.ptr, &any) == 1;
}

/* Server names are for names only (RFC 6066 3). */
static bool set_peer(SSL *ssl, const struct http_origin *origin)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    if (is_address(origin->host))
        return origin->insecure || X509_VERIFY_PARAM_set1_ip_asc(param, origin->host.ptr) == 1;
    char name[URL_MAX_HOST_BYTES + 1]; /* OpenSSL's macro wants it writable */
    (void)snprintf(name, sizeof name, "%s", origin->host.ptr); /* a longer one is no URL */
    return SSL_set_tlsext_host_name(ssl, name) == 1 &&
           (origin->insecure || SSL_set1_host(ssl, name) == 1);
}

SSL *tls_connect(struct tls *t, const struct http_origin *origin, SSL_SESSION **session, int fd)
{
    SSL_CTX **ctx = origin->insecure ? &t->insecure : &t->verified;
    if (!*ctx)
        *ctx = new_context(origin->insecure);
    SSL *ssl = *ctx ? SSL_new(*ctx) : NULL;
    if (!ssl)
        return NULL;
    if (SSL_set_fd(ssl, fd) != 1 || !set_peer(ssl, origin)) {
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_app_data(ssl, session);
    if (*session)
        (void)SSL_set_session(ssl, *session); /* a full handshake otherwise */
    return ssl;
}

#include "worker/engine/tls.h"

#include "worker/scenario/url.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

/* One for each kind of terms, made when it is first wanted. */
struct context {
    struct context *next;
    struct tls_terms terms;
    SSL_CTX *ctx;
};

struct tls {
    struct context *contexts;
};

/* --- a certificate of one's own ------------------------------------------------------------- */

/* Else OpenSSL asks at the terminal. */
static int no_password(char *to, int size, int writes, void *unused)
{
    (void)to;
    (void)size;
    (void)writes;
    (void)unused;
    return 0;
}

/* The first certificate is the class's, the others lead to an authority's. */
static const char *take_certificates(SSL_CTX *ctx, BIO *pem)
{
    const char *wrong = NULL;
    X509 *x = PEM_read_bio_X509_AUX(pem, NULL, no_password, NULL);
    if (!x || SSL_CTX_use_certificate(ctx, x) != 1)
        wrong = "the certificate is none";
    X509_free(x);
    while (!wrong && (x = PEM_read_bio_X509(pem, NULL, no_password, NULL))) {
        if (SSL_CTX_add1_chain_cert(ctx, x) != 1)
            wrong = "a certificate of the chain is none";
        X509_free(x);
    }
    ERR_clear_error(); /* that of the end */
    return wrong;
}

static const char *take_key(SSL_CTX *ctx, BIO *pem)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(pem, NULL, no_password, NULL);
    const char *wrong = NULL;
    if (!key)
        wrong = "the private key is none, or encrypted";
    else if (SSL_CTX_use_PrivateKey(ctx, key) != 1)
        wrong = "the private key is not the certificate's";
    EVP_PKEY_free(key);
    ERR_clear_error();
    return wrong;
}

/* NULL, or what is wrong. */
static const char *take_identity(SSL_CTX *ctx, struct str certificate)
{
    BIO *pem = BIO_new_mem_buf(certificate.ptr, (int)certificate.len); /* a plan's file is small */
    if (!pem)
        return "out of memory";
    const char *wrong = take_certificates(ctx, pem);
    if (!wrong)
        wrong = BIO_reset(pem) == 1 ? take_key(ctx, pem) : "out of memory";
    BIO_free(pem);
    return wrong;
}

int tls_check(struct str certificate, struct err *err)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx)
        return -ENOMEM;
    const char *wrong = take_identity(ctx, certificate);
    SSL_CTX_free(ctx);
    return wrong ? err_set(err, -EINVAL, "client_certificate: %s", wrong) : 0;
}

/* --- contexts ------------------------------------------------------------------------------- */

/* OpenSSL hands over a session (several in TLS 1.3); the newest one is kept. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
    SSL_SESSION **slot = SSL_get_app_data(ssl);
    SSL_SESSION_free(*slot);
    *slot = session;
    return 1; /* the reference is the slot's now */
}

static SSL_CTX *new_ctx(const struct tls_terms *terms)
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
        (!terms->insecure && SSL_CTX_set_default_verify_paths(ctx) != 1) ||
        (terms->certificate.ptr && take_identity(ctx, terms->certificate))) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set_verify(ctx, terms->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    return ctx;
}

/* NULL: no memory. */
static SSL_CTX *ctx_of(struct tls *t, const struct tls_terms *terms)
{
    struct context *c = t->contexts;
    while (c && !tls_terms_equal(&c->terms, terms))
        c = c->next;
    if (c)
        return c->ctx;
    SSL_CTX *ctx = new_ctx(terms);
    c = ctx ? calloc(1, sizeof *c) : NULL;
    if (!c) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    *c = (struct context){t->contexts, *terms, ctx};
    t->contexts = c;
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
    while (t->contexts) {
        struct context *c = t->contexts;
        t->contexts = c->next;
        SSL_CTX_free(c->ctx);
        free(c);
    }
    free(t);
}

static bool is_address(struct str host)
{
    struct in6_addr any;
    return inet_pton(AF_INET, host.ptr, &any) == 1 || inet_pton(AF_INET6, host.ptr, &any) == 1;
}

/* Server names are for names only (RFC 6066 3). */
static bool set_peer(SSL *ssl, const struct http_origin *origin, bool insecure)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    if (is_address(origin->host))
        return insecure || X509_VERIFY_PARAM_set1_ip_asc(param, origin->host.ptr) == 1;
    char name[URL_MAX_HOST_BYTES + 1]; /* OpenSSL's macro wants it writable */
    (void)snprintf(name, sizeof name, "%s", origin->host.ptr); /* a longer one is no URL */
    return SSL_set_tlsext_host_name(ssl, name) == 1 && (insecure || SSL_set1_host(ssl, name) == 1);
}

SSL *tls_connect(struct tls *t, const struct http_origin *origin, const struct tls_terms *terms,
                 SSL_SESSION **session, int fd)
{
    SSL_CTX *ctx = ctx_of(t, terms);
    SSL *ssl = ctx ? SSL_new(ctx) : NULL;
    if (!ssl)
        return NULL;
    if (SSL_set_fd(ssl, fd) != 1 || !set_peer(ssl, origin, terms->insecure)) {
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_app_data(ssl, session);
    if (*session)
        (void)SSL_set_session(ssl, *session); /* a full handshake otherwise */
    return ssl;
}

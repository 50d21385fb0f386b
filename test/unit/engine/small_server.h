/* A small HTTP server in the test's own process: a thread for each connection, on a free port of
 * the loopback. /ok answers, /missing is a 404, /slow answers after SLOW_US, /hang never does. It
 * counts what it answered. */
#ifndef CICADA_TEST_SMALL_SERVER_H
#define CICADA_TEST_SMALL_SERVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVER_MAX_CONNECTIONS 256 /* over its whole life */
#define SLOW_US                50000

struct small_server;

struct server_peer {
    struct small_server *server;
    pthread_t thread;
    int fd;
};

struct small_server {
    int listener;
    unsigned port;
    char url[64];
    pthread_t acceptor;
    struct server_peer peers[SERVER_MAX_CONNECTIONS];
    atomic_uint count; /* of peers */
    atomic_uint answered;
    atomic_uint hanging; /* requests for /hang so far */
};

static inline bool server_answer(struct small_server *s, int fd, const char *head)
{
    static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    static const char missing[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    const char *answer = strncmp(head, "GET /missing ", 13) == 0 ? missing : ok;
    if (strncmp(head, "GET /hang ", 10) == 0) {
        atomic_fetch_add(&s->hanging, 1);
        return true;
    }
    if (strncmp(head, "GET /slow ", 10) == 0)
        usleep(SLOW_US);
    atomic_fetch_add(&s->answered, 1);
    return send(fd, answer, strlen(answer), MSG_NOSIGNAL) >= 0;
}

/* A client sends its next request when the one before is answered: one request is in the buffer. */
static inline void *server_connection(void *peer)
{
    const struct server_peer *p = peer;
    char buffer[4096];
    size_t have = 0;
    for (;;) {
        ssize_t n = recv(p->fd, buffer + have, sizeof buffer - 1 - have, 0);
        if (n <= 0)
            break;
        have += (size_t)n;
        buffer[have] = '\0';
        if (!strstr(buffer, "\r\n\r\n"))
            continue;
        have = 0;
        if (!server_answer(p->server, p->fd, buffer))
            break;
    }
    (void)shutdown(p->fd, SHUT_RDWR); /* closed by server_stop: the number is not to be used anew */
    return NULL;
}

static inline void *server_accept(void *server)
{
    struct small_server *s = server;
    for (unsigned n = 0; n < SERVER_MAX_CONNECTIONS; n++) {
        struct server_peer *p = &s->peers[n];
        p->server = s;
        p->fd = accept(s->listener, NULL, NULL);
        if (p->fd < 0)
            break;
        atomic_store(&s->count, n + 1); /* known before it answers */
        if (pthread_create(&p->thread, NULL, server_connection, p) != 0) {
            atomic_store(&s->count, n);
            (void)close(p->fd);
            break;
        }
    }
    return NULL;
}

/* Cut every connection there is. */
static inline void server_cut(struct small_server *s)
{
    for (unsigned i = 0; i < atomic_load(&s->count); i++)
        (void)shutdown(s->peers[i].fd, SHUT_RDWR);
}

static inline bool server_start(struct small_server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    memset(s, 0, sizeof *s);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&at, sizeof at) < 0 ||
        listen(s->listener, SERVER_MAX_CONNECTIONS) < 0 ||
        getsockname(s->listener, (struct sockaddr *)&at, &length) < 0)
        return false;
    s->port = ntohs(at.sin_port);
    (void)snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u", s->port); /* fits */
    return pthread_create(&s->acceptor, NULL, server_accept, s) == 0;
}

static inline void server_stop(struct small_server *s)
{
    (void)shutdown(s->listener, SHUT_RDWR); /* wakes accept */
    pthread_join(s->acceptor, NULL);
    server_cut(s);
    for (unsigned i = 0; i < s->count; i++) {
        pthread_join(s->peers[i].thread, NULL);
        (void)close(s->peers[i].fd);
    }
    (void)close(s->listener);
}

#endif

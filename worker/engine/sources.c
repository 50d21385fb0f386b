#include "worker/engine/sources.h"

#include "worker/engine/resolver.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static bool read_address(struct str text, struct resolver_address *ret)
{
    return resolver_literal(text, (struct str){NULL, 0}, 0, ret);
}

int sources_init(struct sources *s, const struct str *texts, size_t count)
{
    *s = (struct sources){0};
    if (count == 0)
        return 0;
    s->items = calloc(count, sizeof *s->items);
    if (!s->items)
        return -ENOMEM;
    for (; s->count < count; s->count++) {
        if (!read_address(texts[s->count], &s->items[s->count])) {
            sources_done(s);
            return -EINVAL;
        }
    }
    return 0;
}

void sources_done(struct sources *s)
{
    free(s->items);
    *s = (struct sources){0};
}

/* 0, or the errno. */
static int bind_to(int fd, const struct resolver_address *a)
{
    int one = 1;
    /* the port is chosen at connect: one local port serves many remote ones. Scarcer without */
    (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (bind(fd, (const struct sockaddr *)&a->storage, a->length) == 0)
        return 0;
    return errno == EADDRNOTAVAIL ? ENODEV : errno; /* at connect that errno is about ports */
}

int sources_bind(struct sources *s, int fd, int family)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct resolver_address *a = &s->items[s->next++ % s->count];
        if (a->storage.ss_family == family)
            return bind_to(fd, a);
    }
    return 0;
}

static int check_one(struct str text, struct err *err)
{
    struct resolver_address a;
    if (!read_address(text, &a))
        return err_set(err, -EINVAL, "--source-address: '%s' is no IPv4 or IPv6 address", text.ptr);
    int fd = socket(a.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error = fd < 0 ? errno : bind_to(fd, &a);
    if (fd >= 0)
        (void)close(fd);
    if (error == ENODEV || error == EAFNOSUPPORT)
        return err_set(err, -EINVAL, "--source-address: this machine has no address %s", text.ptr);
    return error ? err_set(err, -error, "--source-address: %s: %s", text.ptr, strerror(error)) : 0;
}

int sources_check(const struct str *texts, size_t count, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = check_one(texts[i], err);
    return rc;
}

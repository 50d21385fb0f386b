#include "worker/engine/run.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

struct option {
    struct option *next;
    char *value;
    char name[];
};

struct cicada_run {
    int wake_fd;
    atomic_int worker_index;
    atomic_bool stop;
    pthread_mutex_t lock; /* of all below */
    struct option *options;
    struct run_outgoing *first, **end;
    unsigned waiting;
};

struct cicada_run *run_new(int wake_fd)
{
    struct cicada_run *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->wake_fd = wake_fd;
    r->end = &r->first;
    atomic_init(&r->worker_index, -1);
    atomic_init(&r->stop, false);
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void run_outgoing_free(struct run_outgoing *o)
{
    if (!o)
        return;
    json_decref(o->data);
    free(o);
}

void run_free(struct cicada_run *r)
{
    if (!r)
        return;
    while (r->first) {
        struct run_outgoing *o = r->first;
        r->first = o->next;
        run_outgoing_free(o);
    }
    while (r->options) {
        struct option *o = r->options;
        r->options = o->next;
        free(o->value);
        free(o);
    }
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static void wake(struct cicada_run *r)
{
    uint64_t one = 1;
    if (write(r->wake_fd, &one, sizeof one) < 0)
        return; /* the counter is full: it is readable anyway */
}

/* --- values --------------------------------------------------------------------------------- */

static struct option *find_option(struct cicada_run *r, struct str name)
{
    struct option *o = r->options;
    while (o && !str_eq(str_of(o->name), name))
        o = o->next;
    return o;
}

static struct option *new_option(struct cicada_run *r, struct str name)
{
    struct option *o = calloc(1, sizeof *o + name.len + 1);
    if (!o)
        return NULL;
    memcpy(o->name, name.ptr, name.len);
    o->next = r->options;
    r->options = o;
    return o;
}

int run_set_option(struct cicada_run *r, struct str name, struct str value)
{
    char *copy = value.ptr ? strndup(value.ptr, value.len) : NULL;
    if (value.ptr && !copy)
        return -ENOMEM;
    pthread_mutex_lock(&r->lock);
    struct option *o = find_option(r, name);
    if (!o && copy)
        o = new_option(r, name);
    char *old = copy;
    if (o) {
        old = o->value;
        o->value = copy;
    }
    pthread_mutex_unlock(&r->lock);
    int rc = copy && !o ? -ENOMEM : 0;
    free(old);
    return rc;
}

char *run_option(struct cicada_run *r, const char *name)
{
    pthread_mutex_lock(&r->lock);
    struct option *o = find_option(r, str_of(name));
    char *copy = o && o->value ? strdup(o->value) : NULL;
    pthread_mutex_unlock(&r->lock);
    return copy;
}

void run_set_worker_index(struct cicada_run *r, int index)
{
    atomic_store(&r->worker_index, index);
}

int run_worker_index(const struct cicada_run *r)
{
    return atomic_load(&r->worker_index);
}

/* --- to the runner -------------------------------------------------------------------------- */

int run_send(struct cicada_run *r, enum run_outgoing_kind kind, struct str text, json_t *data)
{
    struct run_outgoing *o = calloc(1, sizeof *o + text.len + 1);
    if (!o) {
        json_decref(data);
        return -ENOMEM;
    }
    o->kind = kind;
    o->data = data;
    if (text.len)
        memcpy(o->text, text.ptr, text.len);
    pthread_mutex_lock(&r->lock);
    bool full = r->waiting == RUN_MAX_OUTGOING;
    if (!full) {
        *r->end = o;
        r->end = &o->next;
        r->waiting++;
    }
    pthread_mutex_unlock(&r->lock);
    if (full)
        run_outgoing_free(o);
    else
        wake(r);
    return full ? -EAGAIN : 0;
}

struct run_outgoing *run_take(struct cicada_run *r)
{
    pthread_mutex_lock(&r->lock);
    struct run_outgoing *o = r->first;
    if (o) {
        r->first = o->next;
        if (!r->first)
            r->end = &r->first;
        r->waiting--;
    }
    pthread_mutex_unlock(&r->lock);
    return o;
}

void run_stop(struct cicada_run *r)
{
    atomic_store(&r->stop, true);
    wake(r);
}

bool run_take_stop(struct cicada_run *r)
{
    return atomic_exchange(&r->stop, false);
}

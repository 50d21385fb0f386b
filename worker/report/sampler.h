/* What is asked each second while a run is on, each by a thread of its own so that none waits for
 * another: the actor gauge on a /metrics page, the master's /stats/requests, the users' query to
 * Prometheus. Readings go into a mailbox that the runner's thread empties. A failed question leaves
 * a gap and, the first time in a run, a line in the log. */
#ifndef CICADA_WORKER_REPORT_SAMPLER_H
#define CICADA_WORKER_REPORT_SAMPLER_H

#include "facts/actors.h"
#include "telemetry/query.h"

#include <pthread.h>
#include <stdbool.h>

#define SAMPLER_PERIOD_US   1000000u
#define SAMPLER_TIMEOUT_MS  3000u       /* of a page; a slow one leaves a gap */
#define SAMPLER_TOKEN_BYTES (64u << 10) /* of a bearer token's file */
#define SAMPLER_UNREAD_MAX  1000        /* readings; more only when nobody reads them */

enum sampler_kind { SAMPLER_ACTORS, SAMPLER_MASTER_WEB, SAMPLER_PROMETHEUS, SAMPLER_KINDS };

struct reading {
    enum sampler_kind kind;
    unsigned run; /* of which it is; later ones do not want it */
    double wall_s;
    double users;                /* not of SAMPLER_ACTORS */
    struct actors_scrape scrape; /* of SAMPLER_ACTORS */
};

/* Any thread. */
struct mailbox {
    pthread_mutex_t lock;
    struct reading *readings;
    size_t count;
    int notify_fd; /* an eventfd, rung for each reading */
};

/* 0, -ENOMEM. */
MUST_USE int mailbox_init(struct mailbox *m, int notify_fd);
void mailbox_done(struct mailbox *m);
/* All readings so far; the caller frees the array, and each scrape. NULL: none. */
struct reading *mailbox_take(struct mailbox *m, size_t *ret_count);

/* How Prometheus is reached, with what has to be read anew each time. Borrowed. */
struct prometheus {
    struct query_access access;    /* url NULL: there is none; bearer_token is not set */
    const char *bearer_token_file; /* NULL: none */
};

/* The access with the token of now, which lives in token (initialised here; buf_done it in any
 * case). 0; the errno of the file, err names it; -EINVAL: it is empty. */
MUST_USE int prometheus_open(const struct prometheus *p, struct buf *token,
                             struct query_access *ret, struct err *err);

/* One sampler; borrowed texts. */
struct sampler {
    enum sampler_kind kind;
    unsigned run;
    const char *url;  /* the page, or the base URL of the master */
    const char *auth; /* "user:password" for the master, or NULL */
    const struct prometheus *prometheus;
    const char *users_query;
    struct mailbox *mailbox;
    bool failed; /* said so */
};

/* A job_work; its context is a struct sampler. */
void sampler_work(void *context, int abort_fd);

#endif

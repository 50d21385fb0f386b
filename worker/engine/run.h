/* This process's part in a test, as C tasks see it: the values from outside, the number among the
 * workers, and what tasks want of the runner. Any thread may call; a lock is taken, never for a
 * request. The runner's end is native_hooks.h of its room. */
#ifndef CICADA_WORKER_ENGINE_RUN_H
#define CICADA_WORKER_ENGINE_RUN_H

#include "base/err.h"
#include "base/str.h"

#include <jansson.h>
#include <stdbool.h>

#define RUN_MAX_OUTGOING 1000 /* kept for the runner; more are refused */

struct cicada_run;

enum run_outgoing_kind {
    RUN_OUT_MESSAGE,   /* text: its type; data */
    RUN_OUT_EXCEPTION, /* text */
};

struct run_outgoing {
    struct run_outgoing *next;
    enum run_outgoing_kind kind;
    json_t *data; /* NULL: none */
    char text[];
};

/* wake_fd is an eventfd that the runner's thread looks at; borrowed. NULL: no memory. */
struct cicada_run *run_new(int wake_fd);
void run_free(struct cicada_run *r);

/* --- the runner's thread --- */

/* A value from outside; ptr NULL takes it back. 0, -ENOMEM. */
MUST_USE int run_set_option(struct cicada_run *r, struct str name, struct str value);
void run_set_worker_index(struct cicada_run *r, int index);

/* The oldest thing that a task wants to be sent; NULL: none. The caller's: run_outgoing_free. */
struct run_outgoing *run_take(struct cicada_run *r);
void run_outgoing_free(struct run_outgoing *o);

/* Has a task asked for the end of the run? Asking takes the wish away. */
bool run_take_stop(struct cicada_run *r);

/* --- any thread --- */

int run_worker_index(const struct cicada_run *r); /* -1: none */

/* A copy of a value, to be freed; NULL: there is none, or no memory. */
char *run_option(struct cicada_run *r, const char *name);

/* data is taken over, also when it fails. 0, -ENOMEM, -EAGAIN (too many wait). */
MUST_USE int run_send(struct cicada_run *r, enum run_outgoing_kind kind, struct str text,
                      json_t *data);
void run_stop(struct cicada_run *r);

#endif

/* One piece of blocking work on a thread of its own, which can be ended early: the questions that
 * the report asks the world. Started, aborted and taken by one thread, the owner's. */
#ifndef CICADA_WORKER_REPORT_JOB_H
#define CICADA_WORKER_REPORT_JOB_H

#include "base/err.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Works until it is done or abort_fd becomes readable (it is not to be read). */
typedef void job_work(void *context, int abort_fd);

/* Zeroed: not running. */
struct job {
    bool running; /* from job_start until job_take or job_join */
    pthread_t thread;
    int abort_fd;  /* an eventfd */
    int notify_fd; /* another, the owner's: rung at the end */
    job_work *work;
    void *context;
    atomic_bool finished;
};

/* context and the job must stay where they are until it was taken or joined. 0; -EMFILE, -EAGAIN
 * and kin (nothing runs). */
MUST_USE int job_start(struct job *j, job_work *work, void *context, int notify_fd);

/* Ask it to end soon; job_take tells when it has. */
void job_abort(struct job *j);

/* True once, when the work has ended: from now on the context is the owner's alone. */
bool job_take(struct job *j);

/* Abort and wait. Nothing when it does not run. */
void job_join(struct job *j);

/* Make an eventfd readable. */
void job_ring(int event_fd);

#endif

#include "worker/report/job.h"

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

void job_ring(int event_fd)
{
    uint64_t one = 1;
    ssize_t n = write(event_fd, &one, sizeof one);
    (void)n; /* fails only when it is rung already, 2^64 times */
}

static void *run(void *arg)
{
    struct job *j = arg;
    int notify_fd = j->notify_fd; /* once it has finished the owner may do away with the job */
    j->work(j->context, j->abort_fd);
    atomic_store_explicit(&j->finished, true, memory_order_release);
    job_ring(notify_fd);
    return NULL;
}

int job_start(struct job *j, job_work *work, void *context, int notify_fd)
{
    int abort_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (abort_fd < 0)
        return -errno;
    *j = (struct job){
        .abort_fd = abort_fd, .notify_fd = notify_fd, .work = work, .context = context};
    int rc = -pthread_create(&j->thread, NULL, run, j);
    if (rc < 0)
        (void)close(abort_fd);
    j->running = rc == 0;
    return rc;
}

void job_abort(struct job *j)
{
    if (j->running)
        job_ring(j->abort_fd);
}

static void end(struct job *j)
{
    (void)pthread_join(j->thread, NULL); /* fails for threads that are none */
    (void)close(j->abort_fd);
    j->running = false;
}

bool job_take(struct job *j)
{
    if (!j->running || !atomic_load_explicit(&j->finished, memory_order_acquire))
        return false;
    end(j);
    return true;
}

void job_join(struct job *j)
{
    job_abort(j);
    if (j->running)
        end(j);
}

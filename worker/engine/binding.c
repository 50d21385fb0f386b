#include "worker/engine/binding.h"

#include "base/buf.h"
#include "worker/scenario/url.h"

#include <stdlib.h>

#define BINDING_MAX_BYTES (256u << 20) /* all URLs of a plan; a plan itself is bounded */

static int check_host(struct str host, struct err *err)
{
    struct url parts;
    int rc = url_parse_host(host, &parts, err);
    if (rc < 0)
        err_prefix(err, "host '%.*s'", STR_ARG(host));
    return rc;
}

static struct str host_of(const struct plan *plan, const struct plan_class *class,
                          struct str override)
{
    return override.ptr ? override : class->host.ptr ? class->host : plan->host;
}

static void count(const struct plan *plan, size_t *ret_tasks, size_t *ret_calls)
{
    *ret_tasks = *ret_calls = 0;
    for (size_t c = 0; c < plan->class_count; c++) {
        *ret_tasks += plan->classes[c].task_count;
        for (size_t t = 0; t < plan->classes[c].task_count; t++)
            *ret_calls += plan->classes[c].tasks[t].step_count;
    }
}

/* Append the request's absolute URL with a NUL behind it; an empty one when there is no host. */
static int add_url(struct buf *urls, struct str host, const struct plan_request *request,
                   bool *ret_lacks_host)
{
    int rc;
    if (url_is_absolute(request->url)) {
        rc = buf_add(urls, request->url);
    } else if (host.ptr) {
        rc = url_join(urls, host, request->url);
    } else {
        *ret_lacks_host = true;
        rc = 0;
    }
    return rc < 0 ? rc : buf_add_byte(urls, '\0');
}

static int bind_task(struct binding *b, const struct plan_task *task, struct str host,
                     struct buf *urls, bool *ret_lacks_host)
{
    for (size_t s = 0; s < task->step_count; s++) {
        const struct plan_request *request = &task->steps[s].request;
        size_t at = urls->len;
        int rc = add_url(urls, host, request, ret_lacks_host);
        if (rc < 0)
            return rc;
        /* the buffer still moves: keep the offset in the length, set_urls makes pointers of it */
        b->calls[b->call_count++] = (struct http_call){
            .method = request->method,
            .url = {NULL, at},
            .headers = request->headers,
            .header_count = request->header_count,
            .body = request->body,
            .timeouts = request->timeouts,
        };
    }
    return 0;
}

static int set_urls(struct binding *b, struct buf *urls)
{
    b->urls = buf_take(urls);
    for (size_t i = 0; i < b->call_count; i++) {
        struct http_call *call = &b->calls[i];
        call->url = str_of(b->urls + call->url.len);
        int rc = b->ops->prepare(call);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int bind_classes(struct binding *b, struct str override, struct buf *urls, struct err *err)
{
    const struct plan *plan = b->plan;
    size_t task_at = 0;
    for (size_t c = 0; c < plan->class_count; c++) {
        const struct plan_class *class = &plan->classes[c];
        struct str host = host_of(plan, class, override);
        int rc = host.ptr && !override.ptr ? check_host(host, err) : 0;
        if (rc < 0)
            return rc;
        b->classes[c].tasks = b->tasks + task_at;
        for (size_t t = 0; t < class->task_count; t++) {
            b->tasks[task_at++].calls = b->calls + b->call_count;
            rc = bind_task(b, &class->tasks[t], host, urls, &b->classes[c].lacks_host);
            if (rc < 0)
                return err_set(err, rc, rc == -ENOMEM ? "out of memory" : "the URLs are too long");
        }
    }
    return 0;
}

int binding_new(const struct plan *plan, const struct http_ops *ops, struct str host,
                struct binding **ret, struct err *err)
{
    struct buf urls;
    size_t tasks, calls;
    int rc = host.ptr ? check_host(host, err) : 0;
    if (rc < 0)
        return rc;
    buf_init(&urls, BINDING_MAX_BYTES);
    count(plan, &tasks, &calls);
    struct binding *b = calloc(1, sizeof *b);
    if (b) {
        b->plan = plan;
        b->ops = ops;
        atomic_init(&b->references, 1);
        b->classes = calloc(plan->class_count, sizeof *b->classes);
        b->tasks = calloc(tasks ? tasks : 1, sizeof *b->tasks);
        b->calls = calloc(calls ? calls : 1, sizeof *b->calls);
    }
    if (!b || !b->classes || !b->tasks || !b->calls)
        rc = err_set(err, -ENOMEM, "out of memory");
    if (rc == 0)
        rc = bind_classes(b, host, &urls, err);
    if (rc == 0)
        rc = set_urls(b, &urls);
    buf_done(&urls);
    if (rc == 0)
        *ret = b;
    else
        binding_unref(b);
    return rc;
}

void binding_unref(struct binding *b)
{
    if (!b || atomic_fetch_sub_explicit(&b->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; b->calls && i < b->call_count; i++)
        b->ops->unprepare(&b->calls[i]);
    free(b->urls);
    free(b->calls);
    free(b->tasks);
    free(b->classes);
    free(b);
}

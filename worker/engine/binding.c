#include "worker/engine/binding.h"

#include "base/buf.h"
#include "worker/engine/json_tape.h"
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

/* The tasks of a class with what it does before and after them. */
static size_t task_total(const struct plan_class *class)
{
    return class->task_count + 2;
}

static const struct plan_task *task_at(const struct plan_class *class, size_t t)
{
    if (t < class->task_count)
        return &class->tasks[t];
    return t == class->task_count ? &class->on_start : &class->on_stop;
}

static void count(const struct plan *plan, size_t *ret_tasks, size_t *ret_calls)
{
    *ret_tasks = *ret_calls = 0;
    for (size_t c = 0; c < plan->class_count; c++) {
        const struct plan_class *class = &plan->classes[c];
        *ret_tasks += task_total(class);
        for (size_t t = 0; t < task_total(class); t++)
            *ret_calls += task_at(class, t)->step_count;
    }
}

/* A URL that begins with a variable may be an absolute one. */
static bool wants_host(const struct plan_request *request)
{
    if (request->host.text.ptr || url_is_absolute(request->url))
        return false;
    return request->url_text.piece_count == 0 || request->url_text.pieces[0].before.len > 0;
}

/* Append the request's absolute URL with a NUL behind it; an empty one when it is not known yet. */
static int add_url(struct buf *urls, struct bound_class *class, const struct plan_request *request)
{
    int rc = 0;
    if (request->url_text.piece_count > 0)
        rc = 0;
    else if (url_is_absolute(request->url))
        rc = buf_add(urls, request->url);
    else if (!request->host.text.ptr && class->host.ptr)
        rc = url_join(urls, class->host, request->url);
    if (wants_host(request) && !class->host.ptr && !class->host_text)
        class->lacks_host = true;
    return rc < 0 ? rc : buf_add_byte(urls, '\0');
}

static int bind_request(struct bound_class *class, const struct plan_request *request,
                        struct http_call *call, struct buf *urls)
{
    size_t at = urls->len;
    int rc = add_url(urls, class, request);
    /* the buffer still moves: keep the offset in the length, set_urls makes pointers of it */
    *call = (struct http_call){
        .method = request->method,
        .url = {NULL, at},
        .headers = request->headers,
        .header_count = request->header_count,
        .body = request->body,
        .timeouts = request->timeouts,
        .wants_body_bytes = request->wants_body_bytes,
        .wants_head = request->wants_head,
        .once = request->has_variables,
    };
    return rc;
}

static int bind_task(struct binding *b, struct bound_class *class, const struct plan_task *task,
                     struct bound_task *bound, struct buf *urls)
{
    bound->calls = b->calls + b->call_count;
    for (size_t s = 0; s < task->step_count; s++) {
        struct http_call *call = &b->calls[b->call_count++];
        int rc = 0;
        if (task->steps[s].kind == PLAN_STEP_REQUEST)
            rc = bind_request(class, &task->steps[s].request, call, urls);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The host with a NUL behind it. */
static int add_class_host(struct buf *urls, struct bound_class *class)
{
    size_t at = urls->len;
    int rc = class->host.ptr ? buf_add(urls, class->host) : 0;
    if (rc == 0)
        rc = buf_add_byte(urls, '\0');
    if (class->host.ptr)
        class->host = (struct str){NULL, at}; /* as for the calls */
    return rc;
}

/* A request with variables is prepared when it is sent, and so is one whose host has some. */
static int prepare(struct binding *b, struct http_call *call)
{
    call->once |= call->url.len == 0;
    return call->once ? 0 : b->ops->prepare(call);
}

static int set_urls(struct binding *b, struct buf *urls)
{
    b->urls = buf_take(urls);
    for (size_t c = 0; c < b->plan->class_count; c++) {
        struct bound_class *class = &b->classes[c];
        if (class->host.len)
            class->host = str_of(b->urls + class->host.len);
    }
    for (size_t i = 0; i < b->call_count; i++) {
        struct http_call *call = &b->calls[i];
        if (!call->method.ptr)
            continue; /* not a request */
        call->url = str_of(b->urls + call->url.len);
        int rc = prepare(b, call);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int bind_class(struct binding *b, const struct plan_class *class, struct bound_class *bound,
                      struct bound_task *tasks, struct buf *urls)
{
    int rc = 0;
    for (size_t t = 0; rc == 0 && t < task_total(class); t++)
        rc = bind_task(b, bound, task_at(class, t), &tasks[t], urls);
    bound->tasks = tasks;
    bound->on_start = tasks[class->task_count];
    bound->on_stop = tasks[class->task_count + 1];
    return rc ? rc : add_class_host(urls, bound);
}

static void choose_host(const struct plan *plan, const struct plan_class *class,
                        struct str override, struct bound_class *bound)
{
    if (override.ptr)
        bound->host = override;
    else if (class->host.ptr)
        bound->host = class->host;
    else if (class->host_text.piece_count)
        bound->host_text = &class->host_text;
    else if (plan->host.ptr)
        bound->host = plan->host;
    else if (plan->host_text.piece_count)
        bound->host_text = &plan->host_text;
}

static int bind_classes(struct binding *b, struct str override, struct buf *urls, struct err *err)
{
    const struct plan *plan = b->plan;
    struct bound_task *tasks = b->tasks;
    for (size_t c = 0; c < plan->class_count; c++) {
        const struct plan_class *class = &plan->classes[c];
        struct bound_class *bound = &b->classes[c];
        choose_host(plan, class, override, bound);
        int rc = bound->host.ptr && !override.ptr ? check_host(bound->host, err) : 0;
        if (rc < 0)
            return rc;
        rc = bind_class(b, class, bound, tasks, urls);
        if (rc < 0)
            return err_set(err, rc, rc == -ENOMEM ? "out of memory" : "the URLs are too long");
        tasks += task_total(class);
    }
    return 0;
}

/* What comes from outside is text; where the scenario has a number or a boolean, it is one, too, if
 * it looks like it. */
static bool is_typed(const struct plan_variable *variable, struct str text)
{
    struct json_tape tape = {0};
    bool typed =
        variable->initial_json && json_tape_read(&tape, text) == 0 &&
        (tape.values[0].type == PLAN_TYPE_NUMBER || tape.values[0].type == PLAN_TYPE_BOOLEAN);
    json_tape_done(&tape);
    return typed;
}

/* The values and a copy of their texts in one piece of memory. */
static int copy_inputs(struct binding *b, const struct binding_inputs *inputs)
{
    size_t n = b->plan->variable_count, bytes = n * sizeof *b->inputs;
    b->worker = inputs ? inputs->worker : 0;
    if (!inputs || !inputs->values || n == 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        bytes += str_of(inputs->values[i]).len;
    b->inputs = calloc(1, bytes);
    if (!b->inputs)
        return -ENOMEM;
    char *at = (char *)(b->inputs + n);
    for (size_t i = 0; i < n; i++) {
        struct str text = str_of(inputs->values[i]);
        if (!text.ptr)
            continue;
        memcpy(at, text.ptr, text.len);
        b->inputs[i] = (struct bound_input){{at, text.len}, is_typed(&b->plan->variables[i], text)};
        at += text.len;
    }
    return 0;
}

static struct binding *binding_alloc(const struct plan *plan, const struct http_ops *ops)
{
    size_t tasks, calls;
    count(plan, &tasks, &calls);
    struct binding *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->plan = plan;
    b->ops = ops;
    atomic_init(&b->references, 1);
    b->classes = calloc(plan->class_count, sizeof *b->classes);
    b->tasks = calloc(tasks, sizeof *b->tasks);
    b->calls = calloc(calls ? calls : 1, sizeof *b->calls);
    if (b->classes && b->tasks && b->calls)
        return b;
    binding_unref(b);
    return NULL;
}

int binding_new(const struct plan *plan, const struct http_ops *ops, struct str host,
                const struct binding_inputs *inputs, struct binding **ret, struct err *err)
{
    struct buf urls;
    int rc = host.ptr ? check_host(host, err) : 0;
    if (rc < 0)
        return rc;
    buf_init(&urls, BINDING_MAX_BYTES);
    struct binding *b = binding_alloc(plan, ops);
    if (!b || copy_inputs(b, inputs) < 0)
        rc = err_set(err, -ENOMEM, "out of memory");
    if (rc == 0)
        rc = buf_add_byte(&urls, '\0'); /* offset 0 stands for none */
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
    free(b->inputs);
    free(b->urls);
    free(b->calls);
    free(b->tasks);
    free(b->classes);
    free(b);
}

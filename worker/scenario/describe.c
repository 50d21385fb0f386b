#include "worker/scenario/describe.h"

#include "base/num.h"
#include "worker/scenario/describe_shape.h"
#include "worker/scenario/url.h"

static int add_c(struct buf *out, const char *text)
{
    return buf_add(out, str_of(text));
}

/* "1", "2.5": Python's repr without an empty fraction. */
static int add_number(struct buf *out, double value)
{
    char text[NUM_TEXT_BYTES];
    num_format_repr(value, text);
    struct str s = str_of(text);
    return buf_add(out, str_ends(s, STR(".0")) ? str_sub(s, 0, s.len - 2) : s);
}

static int add_seconds(struct buf *out, uint64_t us)
{
    return add_number(out, (double)us / 1e6);
}

static int add_share(struct buf *out, uint64_t part, uint64_t whole)
{
    int rc = add_c(out, " (");
    if (rc == 0)
        rc = add_number(out, num_round(100.0 * (double)part / (double)whole, 1));
    return rc ? rc : add_c(out, " %)");
}

static int add_count(struct buf *out, size_t n, const char *one, const char *many)
{
    return buf_printf(out, "%zu %s", n, n == 1 ? one : many);
}

static int add_host(struct buf *out, const char *before, struct str host)
{
    struct url u;
    int rc = add_c(out, before);
    if (rc == 0 && url_parse(host, &u, NULL) == 0 && u.userinfo.ptr) {
        const char *behind = u.userinfo.ptr + u.userinfo.len;
        rc = buf_printf(out, "http%s://…", u.tls ? "s" : "");
        host = (struct str){behind, (size_t)(host.ptr + host.len - behind)};
    }
    return rc ? rc : buf_add(out, host);
}

/* --- a request --- */

static int add_headers(struct buf *out, const struct plan_request *r)
{
    int rc = r->header_count ? add_c(out, ", headers") : 0;
    for (size_t i = 0; rc == 0 && i < r->header_count; i++)
        rc = buf_printf(out, " %.*s", STR_ARG(r->headers[i].name));
    return rc;
}

static int add_expected(struct buf *out, const struct plan_request *r)
{
    int rc = r->expected_status_count ? add_c(out, ", expect") : 0;
    for (size_t i = 0; rc == 0 && i < r->expected_status_count; i++)
        rc = buf_printf(out, " %u", r->expected_status[i]);
    return rc;
}

static int add_timeout(struct buf *out, const char *part, uint64_t timeout_us)
{
    if (timeout_us == 0)
        return 0;
    int rc = buf_printf(out, ", %stimeout ", part);
    if (rc == 0)
        rc = add_seconds(out, timeout_us);
    return rc ? rc : add_c(out, " s");
}

static int add_request(struct buf *out, const struct plan_request *r)
{
    int rc = buf_printf(out, "    %.*s", STR_ARG(r->method));
    if (rc == 0)
        rc = add_host(out, " ", r->url);
    if (rc == 0 && !str_eq(r->name, url_target(r->url)))
        rc = buf_printf(out, ", name \"%.*s\"", STR_ARG(r->name));
    if (rc == 0)
        rc = add_headers(out, r);
    if (rc == 0 && r->body.ptr)
        rc = buf_printf(out, ", body of %zu bytes", r->body.len);
    if (rc == 0)
        rc = add_expected(out, r);
    if (rc == 0)
        rc = add_timeout(out, "connect ", r->timeouts.connect_us);
    if (rc == 0)
        rc = add_timeout(out, "first byte ", r->timeouts.first_byte_us);
    if (rc == 0)
        rc = add_timeout(out, "", r->timeouts.total_us);
    if (rc == 0 && !r->follow_redirects)
        rc = add_c(out, ", redirects not followed");
    return rc ? rc : add_c(out, "\n");
}

/* --- a task --- */

static int add_task(struct buf *out, const struct plan_task *task, uint64_t weight_sum)
{
    int rc = buf_printf(out, "  %.*s: weight %u", STR_ARG(task->name), task->weight);
    if (rc == 0)
        rc = add_share(out, task->weight, weight_sum);
    if (rc == 0 && task->tag_count)
        rc = add_c(out, ", tags");
    for (size_t i = 0; rc == 0 && i < task->tag_count; i++)
        rc = buf_printf(out, " %.*s", STR_ARG(task->tags[i]));
    if (rc == 0)
        rc = add_c(out, "\n");
    for (size_t i = 0; rc == 0 && i < task->step_count; i++) {
        switch (task->steps[i].kind) {
        case PLAN_STEP_REQUEST:
            rc = add_request(out, &task->steps[i].request);
            break;
        }
    }
    return rc;
}

/* --- a class --- */

static int add_wait(struct buf *out, const struct plan_wait *wait)
{
    static const char *const words[] = {
        [PLAN_WAIT_NONE] = ", no wait_time",
        [PLAN_WAIT_CONSTANT] = ", wait_time constant ",
        [PLAN_WAIT_BETWEEN] = ", wait_time between ",
        [PLAN_WAIT_PACING] = ", wait_time constant_pacing ",
        [PLAN_WAIT_THROUGHPUT] = ", wait_time constant_throughput of one task in ",
    };
    int rc = add_c(out, words[wait->kind]);
    if (rc || wait->kind == PLAN_WAIT_NONE)
        return rc;
    rc = add_seconds(out, wait->min_us);
    if (rc == 0 && wait->kind == PLAN_WAIT_BETWEEN)
        rc = add_c(out, " and ");
    if (rc == 0 && wait->kind == PLAN_WAIT_BETWEEN)
        rc = add_seconds(out, wait->max_us);
    return rc ? rc : add_c(out, " s");
}

static int add_class(struct buf *out, const struct plan_class *class, uint64_t weight_sum)
{
    int rc = buf_printf(out, "\n%.*s: ", STR_ARG(class->name));
    if (rc == 0 && class->fixed_count)
        rc = buf_printf(out, "fixed_count %u", class->fixed_count);
    if (rc == 0 && !class->fixed_count)
        rc = buf_printf(out, "weight %u", class->weight);
    if (rc == 0 && !class->fixed_count)
        rc = add_share(out, class->weight, weight_sum);
    if (rc == 0)
        rc = add_wait(out, &class->wait);
    if (rc == 0 && class->host.ptr)
        rc = add_host(out, ", host ", class->host);
    if (rc == 0 && class->insecure)
        rc = add_c(out, ", insecure");
    if (rc == 0 && class->task_count == 0)
        rc = add_c(out, ", no task left after --tags and --exclude-tags");
    if (rc == 0)
        rc = add_c(out, "\n");
    for (size_t i = 0; rc == 0 && i < class->task_count; i++)
        rc = add_task(out, &class->tasks[i], class->task_weight_sum);
    return rc;
}

/* --- the whole --- */

static int add_summary(struct buf *out, const struct plan *p)
{
    size_t tasks = 0, requests = 0;
    for (size_t i = 0; i < p->class_count; i++) {
        tasks += p->classes[i].task_count;
        for (size_t j = 0; j < p->classes[i].task_count; j++)
            requests += p->classes[i].tasks[j].step_count;
    }
    int rc = buf_printf(out, "%.*s: ", STR_ARG(p->source));
    if (rc == 0)
        rc = add_count(out, p->class_count, "user class, ", "user classes, ");
    if (rc == 0)
        rc = add_count(out, tasks, "task, ", "tasks, ");
    if (rc == 0)
        rc = add_count(out, requests, "request, ", "requests, ");
    return rc ? rc : add_count(out, p->entry_count, "stats entry\n", "stats entries\n");
}

int plan_describe(const struct plan *p, struct buf *out)
{
    uint64_t weight_sum = 0;
    for (size_t i = 0; i < p->class_count; i++)
        weight_sum += p->classes[i].fixed_count ? 0 : p->classes[i].weight;
    int rc = add_summary(out, p);
    if (rc == 0 && p->host.ptr)
        rc = add_host(out, "host ", p->host);
    if (rc == 0)
        rc = add_c(out, p->host.ptr ? "\n" : "no host: set one with --host\n");
    if (rc == 0)
        rc = describe_shape(p, out);
    for (size_t i = 0; rc == 0 && i < p->class_count; i++)
        rc = add_class(out, &p->classes[i], weight_sum);
    return rc;
}

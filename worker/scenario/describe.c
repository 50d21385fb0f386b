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

static int add_url(struct buf *out, const char *before, struct str url, struct str userinfo)
{
    int rc = add_c(out, before);
    if (rc == 0 && userinfo.ptr) {
        const char *behind = userinfo.ptr + userinfo.len;
        rc = buf_printf(out, "%.*s://…", STR_ARG(str_sub(url, 0, str_find(url, ':'))));
        url = (struct str){behind, (size_t)(url.ptr + url.len - behind)};
    }
    return rc ? rc : buf_add(out, url);
}

static int add_host(struct buf *out, const char *before, struct str host)
{
    struct url parts;
    bool absolute = url_parse(host, &parts, NULL) == 0;
    return add_url(out, before, host, absolute ? parts.userinfo : (struct str){NULL, 0});
}

static int add_proxy(struct buf *out, struct str proxy)
{
    struct url parts;
    int rc = url_parse_proxy(proxy, &parts, NULL); /* as the loader did */
    return rc ? rc : add_url(out, ", proxy ", proxy, parts.userinfo);
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

static int add_checks(struct buf *out, const struct plan_request *r)
{
    static const char *const words[] = {"", "task", "user", "run"};
    int rc = r->check_count ? add_c(out, ", ") : 0;
    if (rc == 0 && r->check_count)
        rc = add_count(out, r->check_count, "check", "checks");
    if (rc == 0 && r->extract_count)
        rc = add_c(out, ", extracts");
    for (size_t i = 0; rc == 0 && i < r->extract_count; i++)
        rc = buf_printf(out, " %.*s",
                        STR_ARG(str_sub(r->extracts[i].failure, sizeof "extraction failed: " - 1,
                                        r->extracts[i].failure.len)));
    if (rc == 0 && r->on_failure != PLAN_STOP_NOTHING)
        rc = buf_printf(out, ", a failure stops the %s", words[r->on_failure]);
    return rc;
}

static int add_body(struct buf *out, const struct plan_request *r)
{
    if (!r->body.ptr)
        return 0;
    if (r->body_text.piece_count)
        return add_c(out, ", body with variables");
    return buf_printf(out, ", body of %zu bytes", r->body.len);
}

static bool is_named_by_url(const struct plan_request *r)
{
    if (r->naming == PLAN_NAME_FOLDED)
        return true;
    return r->naming == PLAN_NAME_FIXED && r->url_text.piece_count == 0 &&
           str_eq(r->name, url_target(r->url));
}

static int add_request(struct buf *out, const struct plan_request *r)
{
    int rc = buf_printf(out, "%.*s", STR_ARG(r->method));
    if (rc == 0 && r->host.piece_count)
        rc = buf_printf(out, " %.*s", STR_ARG(r->host.text));
    if (rc == 0)
        rc = add_host(out, " ", r->url);
    if (rc == 0 && !is_named_by_url(r))
        rc = buf_printf(out, ", name \"%.*s\"", STR_ARG(r->name));
    if (rc == 0)
        rc = add_headers(out, r);
    if (rc == 0)
        rc = add_body(out, r);
    if (rc == 0)
        rc = add_expected(out, r);
    if (rc == 0)
        rc = add_checks(out, r);
    if (rc == 0)
        rc = add_timeout(out, "connect ", r->timeouts.connect_us);
    if (rc == 0)
        rc = add_timeout(out, "first byte ", r->timeouts.first_byte_us);
    if (rc == 0)
        rc = add_timeout(out, "", r->timeouts.total_us);
    if (rc == 0 && !r->follow_redirects)
        rc = add_c(out, ", redirects not followed");
    return rc;
}

/* --- steps --- */

static int add_range(struct buf *out, uint64_t min_us, uint64_t max_us)
{
    int rc = add_seconds(out, min_us);
    if (rc == 0 && max_us > min_us)
        rc = add_c(out, " to ");
    if (rc == 0 && max_us > min_us)
        rc = add_seconds(out, max_us);
    return rc ? rc : add_c(out, " s");
}

/* The words of a test without what its failure begins with. */
static int add_tests(struct buf *out, const struct plan_step *step)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < step->test_count; i++) {
        struct str words = step->tests[i].failure;
        rc = buf_printf(out, "%s%.*s", i ? " and " : " ",
                        STR_ARG(str_sub(words, sizeof "check failed: " - 1, words.len)));
    }
    return rc;
}

static int add_repeat(struct buf *out, const struct plan_loop *loop)
{
    if (loop->count.piece_count)
        return buf_printf(out, "repeat %.*s times", STR_ARG(loop->count.text));
    return buf_printf(out, "repeat %u times", loop->times);
}

static int add_set(struct buf *out, const struct plan *p, const struct plan_step *step)
{
    int rc = add_c(out, "set");
    for (size_t i = 0; rc == 0 && i < step->set.count; i++)
        rc = buf_printf(out, " %.*s", STR_ARG(p->variables[step->set.items[i].variable].name));
    return rc;
}

static int add_step(struct buf *out, const struct plan *p, const struct plan_step *step)
{
    static const char *const stops[] = {"nothing", "the task", "the user", "the run"};
    int rc;
    switch (step->kind) {
    case PLAN_STEP_REQUEST:
        return add_request(out, &step->request);
    case PLAN_STEP_PAUSE:
        if (step->pause.seconds.piece_count)
            return buf_printf(out, "pause %.*s s", STR_ARG(step->pause.seconds.text));
        rc = add_c(out, "pause ");
        return rc ? rc : add_range(out, step->pause.min_us, step->pause.max_us);
    case PLAN_STEP_REPEAT:
        return add_repeat(out, &step->loop);
    case PLAN_STEP_WHILE:
        rc = buf_printf(out, "at most %u times while", step->loop.times);
        return rc ? rc : add_tests(out, step);
    case PLAN_STEP_IF:
        rc = add_c(out, "if");
        return rc ? rc : add_tests(out, step);
    case PLAN_STEP_ELSE:
        return add_c(out, "else");
    case PLAN_STEP_GROUP:
        return buf_printf(out, "group \"%.*s\"", STR_ARG(step->group.name));
    case PLAN_STEP_SET:
        return add_set(out, p, step);
    case PLAN_STEP_LOG:
        return add_c(out, "log a line");
    case PLAN_STEP_STOP:
        return buf_printf(out, "stop %s", stops[step->stop]);
    case PLAN_STEP_END:
        break;
    }
    return 0;
}

static int add_steps(struct buf *out, const struct plan *p, const struct plan_task *task)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < task->step_count; i++) {
        const struct plan_step *step = &task->steps[i];
        if (step->kind == PLAN_STEP_END)
            continue;
        rc = buf_printf(out, "%*s", 4 + 2 * (int)step->depth, "");
        if (rc == 0)
            rc = add_step(out, p, step);
        if (rc == 0)
            rc = add_c(out, "\n");
    }
    return rc;
}

/* --- a task --- */

static int add_task(struct buf *out, const struct plan *p, const struct plan_class *class,
                    const struct plan_task *task)
{
    int rc = buf_printf(out, "  %.*s", STR_ARG(task->name));
    if (rc == 0 && !class->sequential)
        rc = buf_printf(out, ": weight %u", task->weight);
    if (rc == 0 && !class->sequential)
        rc = add_share(out, task->weight, class->task_weight_sum);
    if (rc == 0 && task->tag_count)
        rc = add_c(out, class->sequential ? ": tags" : ", tags");
    for (size_t i = 0; rc == 0 && i < task->tag_count; i++)
        rc = buf_printf(out, " %.*s", STR_ARG(task->tags[i]));
    if (rc == 0)
        rc = add_c(out, "\n");
    return rc ? rc : add_steps(out, p, task);
}

static int add_edge(struct buf *out, const struct plan *p, const struct plan_task *task)
{
    int rc = task->step_count ? buf_printf(out, "  %.*s\n", STR_ARG(task->name)) : 0;
    return rc ? rc : add_steps(out, p, task);
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

static int add_class(struct buf *out, const struct plan *p, const struct plan_class *class,
                     uint64_t weight_sum)
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
    if (rc == 0 && class->host_text.piece_count)
        rc = buf_printf(out, ", host %.*s", STR_ARG(class->host_text.text));
    if (rc == 0 && class->sequential)
        rc = add_c(out, ", tasks in order");
    if (rc == 0 && class->insecure)
        rc = add_c(out, ", insecure");
    if (rc == 0 && class->client_certificate.ptr)
        rc = add_c(out, ", client certificate");
    if (rc == 0 && class->http2)
        rc = add_c(out, ", HTTP/2");
    if (rc == 0 && class->proxy.ptr)
        rc = add_proxy(out, class->proxy);
    if (rc == 0 && class->task_count == 0)
        rc = add_c(out, ", no task left after --tags and --exclude-tags");
    if (rc == 0)
        rc = add_c(out, "\n");
    if (rc == 0)
        rc = add_edge(out, p, &class->on_start);
    for (size_t i = 0; rc == 0 && i < class->task_count; i++)
        rc = add_task(out, p, class, &class->tasks[i]);
    return rc ? rc : add_edge(out, p, &class->on_stop);
}

/* --- variables --- */

static int add_feed(struct buf *out, const struct plan_feed *f)
{
    static const char *const orders[] = {"in order", "at random", "unique"};
    int rc = buf_printf(out, "feed %.*s: ", STR_ARG(f->file));
    if (rc == 0)
        rc = add_count(out, f->row_count, "row", "rows");
    if (rc == 0)
        rc = buf_printf(out, ", %s, one for each %s", orders[f->order],
                        f->each_user ? "user" : "task");
    if (rc == 0 && f->workers > 1)
        rc = buf_printf(out, ", dealt out to %u workers", f->workers);
    if (rc == 0 && f->stop_at_end)
        rc = add_c(out, ", users stop at the end");
    return rc ? rc : add_c(out, "\n");
}

static int add_variables(struct buf *out, const struct plan *p)
{
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->variable_count; i++) {
        const struct plan_variable *v = &p->variables[i];
        if (!v->outside)
            continue;
        rc = buf_printf(out, "%s%.*s%s", n++ ? ", " : "variables ", STR_ARG(v->name),
                        v->required ? " (must be given)" : "");
    }
    if (rc == 0 && n > 0)
        rc = add_c(out, "\n");
    for (size_t i = 0; rc == 0 && i < p->feed_count; i++)
        rc = add_feed(out, &p->feeds[i]);
    return rc;
}

/* --- the whole --- */

static size_t count_requests(const struct plan_task *task)
{
    size_t n = 0;
    for (size_t i = 0; i < task->step_count; i++)
        n += task->steps[i].kind == PLAN_STEP_REQUEST;
    return n;
}

static int add_summary(struct buf *out, const struct plan *p)
{
    size_t tasks = 0, requests = 0;
    for (size_t i = 0; i < p->class_count; i++) {
        tasks += p->classes[i].task_count;
        requests +=
            count_requests(&p->classes[i].on_start) + count_requests(&p->classes[i].on_stop);
        for (size_t j = 0; j < p->classes[i].task_count; j++)
            requests += count_requests(&p->classes[i].tasks[j]);
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

static bool lacks_host(const struct plan *p)
{
    if (p->host.ptr)
        return false;
    for (size_t i = 0; i < p->class_count; i++) {
        if (!p->classes[i].host.ptr && !p->classes[i].host_text.piece_count)
            return true;
    }
    return false;
}

int plan_describe(const struct plan *p, struct buf *out)
{
    uint64_t weight_sum = 0;
    for (size_t i = 0; i < p->class_count; i++)
        weight_sum += p->classes[i].fixed_count ? 0 : p->classes[i].weight;
    int rc = add_summary(out, p);
    if (rc == 0 && p->host.ptr)
        rc = add_host(out, "host ", p->host);
    if (rc == 0 && p->host_text.piece_count)
        rc = buf_printf(out, "host %.*s\n", STR_ARG(p->host_text.text));
    else if (rc == 0)
        rc = add_c(out, lacks_host(p) ? "no host: set one with --host\n" : p->host.ptr ? "\n" : "");
    if (rc == 0)
        rc = add_variables(out, p);
    if (rc == 0)
        rc = describe_shape(p, out);
    for (size_t i = 0; rc == 0 && i < p->class_count; i++)
        rc = add_class(out, p, &p->classes[i], weight_sum);
    return rc;
}

/* Any text is either refused with one line that names the source, or gives a plan whose parts hold
 * what plan.h promises. */
#include "base/utf8.h"
#include "worker/scenario/describe.h"
#include "worker/scenario/plan.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds)
{
    if (!holds)
        abort();
}

static void check_request(const struct plan *p, const struct plan_request *r)
{
    demand(r->entry < p->entry_count);
    demand(str_eq(r->method, p->entries[r->entry].method));
    demand(str_eq(r->name, p->entries[r->entry].name));
    demand(r->name.len > 0 && r->method.len > 0 && utf8_valid(r->name));
    demand(r->url.len > 0);
    for (size_t i = 0; i < r->url.len; i++)
        demand(r->url.ptr[i] > ' ' && r->url.ptr[i] < 0x7F);
    for (size_t i = 0; i < r->header_count; i++)
        demand(!memchr(r->headers[i].value.ptr, '\n', r->headers[i].value.len));
    for (size_t i = 0; i < r->expected_status_count; i++)
        demand(r->expected_status[i] >= 100 && r->expected_status[i] <= 599);
}

static void check_class(const struct plan *p, const struct plan_class *c)
{
    uint64_t sum = 0;
    demand(c->name.len > 0 && utf8_valid(c->name));
    demand(c->weight >= 1 && c->wait.min_us <= c->wait.max_us);
    for (size_t t = 0; t < c->task_count; t++) {
        const struct plan_task *task = &c->tasks[t];
        demand(task->weight >= 1 && task->name.len > 0 && task->step_count > 0);
        sum += task->weight;
        for (size_t s = 0; s < task->step_count; s++)
            check_request(p, &task->steps[s].request);
    }
    demand(sum == c->task_weight_sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct str include[] = {STR("read")}, exclude[] = {STR("slow")};
    const struct plan_tags tags = {include, size % 2, exclude, size / 2 % 2};
    struct plan *p = NULL;
    struct err err = {0};
    int rc = plan_load_json((struct str){(const char *)data, size}, "fuzz", &tags, &p, &err);
    demand(err.code == rc);
    if (rc < 0) {
        demand(p == NULL && str_starts(str_of(err.text), STR("fuzz:")));
        demand(!strchr(err.text, '\n'));
        return 0;
    }
    for (size_t i = 0; i < p->class_count; i++)
        check_class(p, &p->classes[i]);
    struct buf out;
    buf_init(&out, 1 << 24);
    demand(plan_describe(p, &out) == 0);
    demand(utf8_valid(buf_str(&out)));
    buf_done(&out);
    plan_free(p);
    return 0;
}

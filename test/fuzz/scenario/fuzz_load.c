/* Any text, JSON or YAML, is either refused with one line that names the source, or gives a plan
 * whose parts hold what plan.h promises. */
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

static void check_text(const struct plan *p, const struct plan_text *t)
{
    for (size_t i = 0; i < t->piece_count; i++) {
        const struct plan_source *source = t->pieces[i].value;
        demand(source || i + 1 == t->piece_count);
        if (source && source->kind == PLAN_SOURCE_VARIABLE)
            demand(source->index < p->variable_count);
        if (source && source->kind == PLAN_SOURCE_COLUMN)
            demand(source->index < p->feed_count);
    }
}

static void check_name(const struct plan *p, const struct plan_request *r)
{
    demand(r->name.len > 0 && r->method.len > 0 && utf8_valid(r->name));
    if (r->naming != PLAN_NAME_FIXED) {
        demand(r->has_variables && r->entry == PLAN_NO_ENTRY);
        return;
    }
    demand(r->entry < p->entry_count);
    demand(str_eq(r->method, p->entries[r->entry].method));
    demand(str_eq(r->name, p->entries[r->entry].name));
}

static void check_request(const struct plan *p, const struct plan_request *r)
{
    check_name(p, r);
    check_text(p, &r->url_text);
    check_text(p, &r->body_text);
    demand(r->url.len > 0);
    for (size_t i = 0; i < r->url.len && r->url_text.piece_count == 0; i++)
        demand(r->url.ptr[i] > ' ' && r->url.ptr[i] < 0x7F);
    for (size_t i = 0; i < r->header_count; i++)
        demand(!memchr(r->headers[i].value.ptr, '\n', r->headers[i].value.len));
    for (size_t i = 0; i < r->expected_status_count; i++)
        demand(r->expected_status[i] >= 100 && r->expected_status[i] <= 599);
    for (size_t i = 0; i < r->check_count; i++)
        demand(utf8_valid(r->checks[i].failure) && r->checks[i].failure.len < 1024);
    for (size_t i = 0; i < r->extract_count; i++)
        demand(r->extracts[i].variable < p->variable_count);
}

/* Blocks are closed, and where a step leads is inside the task. */
static void check_steps(const struct plan *p, const struct plan_task *task)
{
    uint32_t depth = 0;
    for (size_t i = 0; i < task->step_count; i++) {
        const struct plan_step *step = &task->steps[i];
        depth -= step->kind == PLAN_STEP_END;
        demand(step->depth == depth - (step->kind == PLAN_STEP_ELSE));
        switch (step->kind) {
        case PLAN_STEP_REQUEST:
            check_request(p, &step->request);
            break;
        case PLAN_STEP_REPEAT:
        case PLAN_STEP_WHILE:
            demand(step->loop.slot < p->loop_slots);
            demand(step->other > i && step->other < task->step_count);
            depth++;
            break;
        case PLAN_STEP_GROUP:
            demand(step->group.slot < p->group_slots && step->group.entry < p->entry_count);
            demand(step->other > i && step->other < task->step_count);
            depth++;
            break;
        case PLAN_STEP_IF:
            demand(step->other > i && step->other < task->step_count);
            depth++;
            break;
        case PLAN_STEP_ELSE:
            demand(task->steps[step->other].kind == PLAN_STEP_END);
            break;
        case PLAN_STEP_END:
            demand(step->other < i);
            break;
        case PLAN_STEP_PAUSE:
        case PLAN_STEP_SET:
        case PLAN_STEP_LOG:
        case PLAN_STEP_STOP:
            break;
        }
    }
    demand(depth == 0);
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
        check_steps(p, task);
    }
    check_steps(p, &c->on_start);
    check_steps(p, &c->on_stop);
    demand(sum == c->task_weight_sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct str include[] = {STR("read")}, exclude[] = {STR("slow")};
    const struct plan_tags tags = {include, size % 2, exclude, size / 2 % 2};
    struct plan *p = NULL;
    struct err err = {0};
    struct str text = {(const char *)data, size};
    /* what begins with a brace is JSON, as people mean it */
    bool json = str_starts(str_trim(text), STR("{"));
    int rc = (json ? plan_load_json : plan_load_yaml)(text, "fuzz", &tags, &p, &err);
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

#include "worker/locustfile/classes.h"

#include "base/num.h"
#include "worker/locustfile/identifiers.h"
#include "worker/locustfile/steps.h"

#define NAMES_BYTES ((size_t)64 << 20) /* of the tasks of a class; each is short */
#define INDENT      4

/* An identifier for a name, and a decorator when they differ: the master and people know the name.
 */
static void write_name(struct script *s, struct str name, struct buf *taken, unsigned indent,
                       struct buf *ret)
{
    buf_clear(ret);
    if (s->rc == 0)
        s->rc = identifier_add(ret, name, indent ? IDENTIFIER_METHOD : IDENTIFIER_CLASS, taken);
    if (s->rc < 0 || str_eq(name, buf_str(ret)))
        return;
    script_printf(s, "%*s@named(", (int)indent, "");
    script_string(s, name);
    script_put(s, ")\n");
}

/* --- tasks ---------------------------------------------------------------------------------- */

static void write_tags(struct script *s, const struct plan_task *task)
{
    struct script_call c;
    if (task->tag_count == 0)
        return;
    script_call_begin(&c);
    for (size_t i = 0; i < task->tag_count; i++)
        script_string(script_argument(&c, NULL), task->tags[i]);
    script_call_end(&c, s, INDENT, "@tag", "");
}

/* In a sequence weights mean nothing. */
static void write_task(struct script *s, const struct plan *plan, const struct plan_class *class,
                       const struct plan_task *task, struct buf *taken)
{
    struct buf name;
    buf_init(&name, PLAN_MAX_NAME_BYTES);
    script_put(s, "\n");
    write_name(s, task->name, taken, INDENT, &name); /* first: @task refuses some names */
    write_tags(s, task);
    if (task->weight > 1 && !class->sequential)
        script_printf(s, "    @task(%u)\n", task->weight);
    else
        script_put(s, "    @task\n");
    script_printf(s, "    @steps\n    def %s(self):\n", buf_c(&name));
    steps_write(s, plan, task, 2 * INDENT);
    buf_done(&name);
}

static void write_event(struct script *s, const struct plan *plan, const struct plan_task *task,
                        const char *name)
{
    if (plan_task_is_empty(task))
        return;
    script_printf(s, "\n    @steps\n    def %s(self):\n", name);
    steps_write(s, plan, task, 2 * INDENT);
}

/* --- what a class has ------------------------------------------------------------------------- */

static void write_wait(struct script *s, const struct plan_wait *wait)
{
    char rate[NUM_TEXT_BYTES];
    switch (wait->kind) {
    case PLAN_WAIT_NONE:
        return;
    case PLAN_WAIT_CONSTANT:
        script_put(s, "    wait_time = constant(");
        break;
    case PLAN_WAIT_BETWEEN:
        script_put(s, "    wait_time = between(");
        script_seconds(s, wait->min_us);
        script_put(s, ", ");
        script_seconds(s, wait->max_us);
        script_put(s, ")\n");
        return;
    case PLAN_WAIT_PACING:
        script_put(s, "    wait_time = constant_pacing(");
        break;
    case PLAN_WAIT_THROUGHPUT:
        num_format_repr(1e6 / (double)wait->min_us, rate);
        script_printf(s, "    wait_time = constant_throughput(%s)\n", rate);
        return;
    }
    script_seconds(s, wait->min_us);
    script_put(s, ")\n");
}

/* The class's own host, else the scenario's. */
static void write_host(struct script *s, const struct plan *plan, const struct plan_class *class)
{
    struct str host = class->host;
    const struct plan_text *text = &class->host_text;
    if (!host.ptr && !text->piece_count) {
        host = plan->host;
        text = &plan->host_text;
    }
    if (host.ptr) {
        script_put(s, "    host = ");
        script_string(s, host);
        script_put(s, "\n");
    } else if (text->piece_count) {
        script_put(s, "    own_host = ");
        script_template(s, text);
        script_put(s, "\n");
    }
}

static void write_class(struct script *s, const struct plan *plan, const struct plan_class *class,
                        struct buf *taken)
{
    struct buf name, tasks;
    buf_init(&name, PLAN_MAX_NAME_BYTES);
    buf_init(&tasks, NAMES_BYTES);
    script_put(s, "\n\n");
    write_name(s, class->name, taken, 0, &name);
    script_printf(s, "class %s(ScenarioUser):\n", buf_c(&name));
    write_host(s, plan, class);
    if (class->fixed_count)
        script_printf(s, "    fixed_count = %u\n", class->fixed_count);
    else
        script_printf(s, "    weight = %u\n", class->weight);
    write_wait(s, &class->wait);
    if (class->insecure)
        script_put(s, "    insecure = True\n");
    if (class->client_certificate.ptr) {
        script_put(s, "    client_certificate = ");
        script_string(s, class->client_certificate);
        script_put(s, "\n");
    }
    if (class->proxy.ptr) {
        script_put(s, "    proxy = ");
        script_string(s, class->proxy);
        script_put(s, "\n");
    }
    if (class->sequential)
        script_put(s, "    order = \"sequential\"\n");
    write_event(s, plan, &class->on_start, "on_start");
    for (size_t i = 0; s->rc == 0 && i < class->task_count; i++)
        write_task(s, plan, class, &class->tasks[i], &tasks);
    write_event(s, plan, &class->on_stop, "on_stop");
    buf_done(&tasks);
    buf_done(&name);
}

void classes_write(struct script *s, const struct plan *plan, struct buf *taken)
{
    for (size_t i = 0; s->rc == 0 && i < plan->class_count; i++)
        write_class(s, plan, &plan->classes[i], taken);
}

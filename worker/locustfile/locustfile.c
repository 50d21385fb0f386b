/* The file has fixed parts and printed ones. It begins with the scenario, for the runtime reads its
 * files from there, and ends with what people look for, the classes. */
#include "worker/locustfile/locustfile.h"

#include "base/log.h"
#include "worker/locustfile/classes.h"
#include "worker/locustfile/sections.h"
#include "worker/scenario/bundle.h"
#include "worker/scenario/shape.h"
#include "worker/scenario/threshold.h"

#include <stdio.h>

#define TAKEN_BYTES (1u << 20) /* names of classes */
#define WARN_BYTES  1024

static const char title[] =
    "\"\"\"Made by cicada locustfile: run it again rather than edit this.\n"
    "\n"
    "The user classes are at the end. C workers take the scenario below, with -f -.\n"
    "\"\"\"\n\n";

struct maker {
    struct script script;
    const struct plan *plan;
    plan_fault_fn *warn;
    void *context;
};

/* What cannot be said in Python: a comment where it would stand, and a warning. */
static void fall_short(struct maker *m, const char *what)
{
    char line[WARN_BYTES];
    script_comment(&m->script, 0, "%s", what);
    (void)snprintf(line, sizeof line, "%.*s: %s", STR_ARG(m->plan->source), what); /* cut is fine */
    if (m->warn)
        m->warn(m->context, line);
}

/* --- variables and feeds ---------------------------------------------------------------------- */

static bool is_declared(const struct plan_variable *v)
{
    return v->outside || v->initial.ptr;
}

static void write_variables(struct script *s, const struct plan *plan)
{
    bool any = false;
    for (size_t i = 0; i < plan->variable_count; i++)
        any |= is_declared(&plan->variables[i]);
    if (!any)
        return;
    script_put(s, "\nVARIABLES.update({\n");
    for (size_t i = 0; i < plan->variable_count; i++) {
        const struct plan_variable *v = &plan->variables[i];
        if (!is_declared(v))
            continue;
        script_put(s, "    ");
        script_string(s, v->name);
        script_put(s, ": ");
        if (!v->initial.ptr)
            script_put(s, "None");
        else if (v->initial_json)
            script_number(s, v->initial);
        else
            script_string(s, v->initial);
        script_put(s, ",\n");
    }
    script_put(s, "})\n");
}

static void write_columns(struct script *s, const struct plan_feed *feed)
{
    for (uint32_t i = 0; i < feed->column_count; i++) {
        script_put(s, i == 0 ? "[" : ", ");
        script_string(s, feed->columns[i]);
    }
    script_put(s, "]");
}

static void write_feed(struct script *s, const struct plan_feed *feed)
{
    static const char *const orders[] = {"sequential", "random", "unique"};
    struct script_call c;
    script_call_begin(&c);
    script_string(script_argument(&c, NULL), feed->file);
    if (feed->names_given)
        write_columns(script_argument(&c, "columns"), feed);
    if (feed->separator != ',')
        script_string(script_argument(&c, "separator"), (struct str){&feed->separator, 1});
    if (feed->order != PLAN_FEED_SEQUENTIAL)
        script_printf(script_argument(&c, "order"), "\"%s\"", orders[feed->order]);
    if (feed->each_user)
        script_put(script_argument(&c, "each"), "\"user\"");
    if (feed->stop_at_end)
        script_put(script_argument(&c, "at_end"), "\"stop\"");
    if (feed->workers > 1)
        script_printf(script_argument(&c, "workers"), "%u", feed->workers);
    script_call_end(&c, s, 0, "feed", "");
}

static void write_feeds(struct script *s, const struct plan *plan)
{
    if (plan->feed_count)
        script_put(s, "\n");
    for (size_t i = 0; i < plan->feed_count; i++)
        write_feed(s, &plan->feeds[i]);
}

/* --- the load --------------------------------------------------------------------------------- */

static bool has_class_users(const struct plan_shape *shape)
{
    for (size_t i = 0; i < shape->stage_count; i++) {
        if (shape->stages[i].class_users)
            return true;
    }
    return false;
}

/* The classes that users of this stage may be of; taken has the identifiers of the classes. */
static void write_stage_classes(struct script *s, const struct plan *plan, const bool *classes,
                                struct str identifiers)
{
    struct str name;
    const char *before = "";
    script_put(s, ", \"user_classes\": [");
    for (size_t i = 0; i < plan->class_count && str_next(&identifiers, '\n', &name); i++) {
        if (classes[i])
            script_printf(s, "%s%.*s", before, STR_ARG(name));
        before = classes[i] ? ", " : before;
    }
    script_put(s, "]");
}

static const char tick[] =
    "    ]\n"
    "\n"
    "    def tick(self):\n"
    "        for stage in self.stages:\n"
    "            if self.get_run_time() < stage[\"duration\"]:\n"
    "                return stage[\"users\"], stage[\"spawn_rate\"], stage.get(\"user_classes\")\n"
    "        return None\n";

static void write_stages(struct maker *m, struct str identifiers)
{
    struct script *s = &m->script;
    const struct plan_shape *shape = m->plan->shape;
    script_put(s, "\n\n");
    if (has_class_users(shape))
        fall_short(m, "stages: Python has no users by class, the sum of them is of all classes");
    script_put(s, "class StagesShape(LoadTestShape):\n    stages = [\n");
    for (size_t i = 0; i < shape->stage_count; i++) {
        const struct shape_stage *stage = &shape->stages[i];
        script_put(s, "        {\"duration\": ");
        script_seconds(s, stage->until_us);
        script_printf(s, ", \"users\": %u, \"spawn_rate\": ", stage->users);
        script_seconds(s, (uint64_t)(stage->spawn_rate * 1e6));
        if (stage->classes)
            write_stage_classes(s, m->plan, stage->classes, identifiers);
        script_put(s, "},\n");
    }
    script_put(s, tick);
}

static void write_load(struct maker *m, struct str identifiers)
{
    const struct plan *plan = m->plan;
    if (plan->shape && !plan->shape->arrival)
        write_stages(m, identifiers);
    if (plan->shape && plan->shape->arrival) {
        script_put(&m->script, "\n\n");
        fall_short(m, "arrival: Locust has no arrival rates, users go on one task after another");
    }
    if (plan->threshold_count) {
        script_put(&m->script, "\n\n");
        fall_short(m, "thresholds: they are looked at in headless runs of cicada, not by Locust");
        for (size_t i = 0; i < plan->threshold_count; i++)
            script_comment(&m->script, 0, "  %.*s", STR_ARG(plan->thresholds[i].text));
    }
}

/* --- regular expressions ------------------------------------------------------------------------
 */

/* Does the expression use what Python's has not, and the runtime does not translate? */
static bool is_foreign(struct str pattern)
{
    static const char *const marks[] = {"\\K", "\\H", "\\X", "\\N",  "\\Q", "\\E", "\\p",
                                        "\\P", "\\G", "\\C", "(?|",  "(?R", "(?&", "(?0",
                                        "(?1", "(?'", "(*",  "[[:",  "\\V", "\\g", "\\k",
                                        "\\o", "\\c", "(?C", "(?P>", "(?>", "\\x{"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (str_find_str(pattern, str_of(marks[i])) < pattern.len)
            return true;
    }
    return false;
}

static void warn_of_pattern(struct maker *m, struct str pattern)
{
    char line[WARN_BYTES], quoted[LOG_QUOTED_BYTES];
    if (!is_foreign(pattern))
        return;
    (void)snprintf(line, sizeof line,
                   "regular expression %s: Python may read it otherwise; see how it does",
                   log_quote(pattern, quoted));
    fall_short(m, line);
}

static void warn_of_request(struct maker *m, const struct plan_request *r)
{
    for (size_t i = 0; i < r->check_count; i++) {
        if (r->checks[i].op == PLAN_MATCHES)
            warn_of_pattern(m, r->checks[i].operand.text);
    }
    for (size_t i = 0; i < r->extract_count; i++) {
        if (r->extracts[i].kind == PLAN_EXTRACT_REGEX)
            warn_of_pattern(m, r->extracts[i].pattern_text);
    }
}

static void warn_of_steps(struct maker *m, const struct plan_task *task)
{
    for (size_t i = 0; i < task->step_count; i++) {
        const struct plan_step *step = &task->steps[i];
        if (step->kind == PLAN_STEP_REQUEST)
            warn_of_request(m, &step->request);
        for (size_t t = 0; t < step->test_count; t++) {
            if (step->tests[t].op == PLAN_MATCHES)
                warn_of_pattern(m, step->tests[t].operand.text);
        }
    }
}

static void warn_of_patterns(struct maker *m)
{
    for (size_t c = 0; m->plan->has_patterns && c < m->plan->class_count; c++) {
        const struct plan_class *class = &m->plan->classes[c];
        warn_of_steps(m, &class->on_start);
        warn_of_steps(m, &class->on_stop);
        for (size_t t = 0; t < class->task_count; t++)
            warn_of_steps(m, &class->tasks[t]);
    }
}

static void warn_of_transport(struct maker *m)
{
    bool http2 = false, socks = false;
    for (size_t c = 0; c < m->plan->class_count; c++) {
        http2 |= m->plan->classes[c].http2;
        socks |= str_starts_nocase(m->plan->classes[c].proxy, STR("socks"));
    }
    if (http2)
        fall_short(m, "http2: Python workers speak HTTP/1.1");
    if (socks)
        fall_short(m, "proxy: Python workers need the library PySocks for SOCKS");
}

/* --- the whole ----------------------------------------------------------------------------------
 */

static void add(struct script *s, struct str text)
{
    if (s->rc == 0)
        s->rc = buf_add(s->out, text);
}

static void write_imports(struct script *s, const struct plan *plan)
{
    bool stages = plan->shape && !plan->shape->arrival;
    script_printf(s,
                  "\n# --- the scenario's own part ---\n\n"
                  "from locust import %sbetween, constant_pacing, constant_throughput, tag, "
                  "task  # noqa: E402, F401\n",
                  stages ? "LoadTestShape, " : "");
}

static int write_own_part(struct maker *m)
{
    struct script *s = &m->script;
    struct buf classes;
    buf_init(&classes, TAKEN_BYTES);
    write_imports(s, m->plan);
    warn_of_patterns(m);
    warn_of_transport(m);
    write_variables(s, m->plan);
    write_feeds(s, m->plan);
    classes_write(s, m->plan, &classes);
    write_load(m, buf_str(&classes));
    buf_done(&classes);
    return s->rc;
}

int locustfile_add(const struct plan *plan, const char *path, plan_fault_fn *warn, void *context,
                   struct buf *out, struct err *err)
{
    struct maker m = {{.out = out}, plan, warn, context};
    script_put(&m.script, title);
    if (m.script.rc == 0) {
        int rc = bundle_write(path, out, err);
        if (rc < 0)
            return rc;
    }
    script_printf(&m.script, "USER_AGENT = \"cicada/%s\"\n\n", CICADA_VERSION);
    add(&m.script, locustfile_runtime());
    script_put(&m.script, "\n\n");
    add(&m.script, locustfile_listener());
    int rc = write_own_part(&m);
    if (rc == 0)
        return 0;
    return err_set(err, rc, rc == -ENOMEM ? "out of memory" : "the locustfile is too long");
}

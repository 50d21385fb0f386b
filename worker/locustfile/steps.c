#include "worker/locustfile/steps.h"

#include "base/num.h"
#include "worker/scenario/url.h"

#include <stdio.h>

/* --- what is looked at ---------------------------------------------------------------------- */

static void write_source(struct script *s, const struct plan_source *source)
{
    char name[96];
    if (source->kind != PLAN_SOURCE_RANDOM) {
        script_string(s, source->name);
        return;
    }
    int n = snprintf(name, sizeof name, "random(%lld, %lld)", (long long)source->min,
                     (long long)source->max); /* always fits */
    script_string(s, (struct str){name, (size_t)n});
}

static void write_subject(struct script *s, const struct plan_test *t)
{
    switch (t->subject) {
    case PLAN_SUBJECT_STATUS:
        script_put(s, "status");
        break;
    case PLAN_SUBJECT_HEADER:
        script_put(s, "header(");
        script_string(s, t->key);
        script_put(s, ")");
        break;
    case PLAN_SUBJECT_BODY:
        script_put(s, "body");
        break;
    case PLAN_SUBJECT_JSON:
        script_put(s, "json_at(");
        script_string(s, t->pointer.text);
        script_put(s, ")");
        break;
    case PLAN_SUBJECT_SIZE:
        script_put(s, "size");
        break;
    case PLAN_SUBJECT_TIME:
        script_put(s, "response_time");
        break;
    case PLAN_SUBJECT_VALUE:
        script_put(s, "value(");
        write_source(s, t->source);
        script_put(s, ")");
        break;
    }
    if (t->of_length)
        script_put(s, ".length");
}

static void write_operand(struct script *s, const struct plan_test *t)
{
    char number[NUM_TEXT_BYTES];
    uint64_t whole;
    switch (t->type) {
    case PLAN_TYPE_NUMBER:
        num_format_repr(t->number, number);
        if (num_parse_u64(t->operand.text, 1u << 30, &whole) == 0)
            script_printf(s, "%llu", (unsigned long long)whole);
        else
            script_put(s, number);
        break;
    case PLAN_TYPE_BOOLEAN:
        script_put(s, t->truth ? "True" : "False");
        break;
    case PLAN_TYPE_STRING:
        script_template(s, &t->operand);
        break;
    case PLAN_TYPE_NULL:
    case PLAN_TYPE_ARRAY:
    case PLAN_TYPE_OBJECT:
        script_put(s, "None");
        break;
    }
}

static void write_test(struct script *s, const struct plan_test *t)
{
    static const char *const types[] = {"null", "boolean", "number", "string", "array", "object"};
    static const char *const comparisons[] = {
        [PLAN_EQUAL] = " == ",   [PLAN_NOT_EQUAL] = " != ", [PLAN_LESS] = " < ",
        [PLAN_AT_MOST] = " <= ", [PLAN_MORE] = " > ",       [PLAN_AT_LEAST] = " >= ",
    };
    write_subject(s, t);
    switch (t->op) {
    case PLAN_EQUAL:
    case PLAN_NOT_EQUAL:
    case PLAN_LESS:
    case PLAN_AT_MOST:
    case PLAN_MORE:
    case PLAN_AT_LEAST:
        script_put(s, comparisons[t->op]);
        write_operand(s, t);
        break;
    case PLAN_EXISTS:
        script_put(s, t->truth ? ".exists()" : ".exists(False)");
        break;
    case PLAN_TYPE:
        script_printf(s, ".has_type(\"%s\")", types[t->type]);
        break;
    case PLAN_CONTAINS:
        script_put(s, ".contains(");
        script_template(s, &t->operand);
        script_put(s, ")");
        break;
    case PLAN_MATCHES:
        script_put(s, ".matches(");
        script_pattern(s, t->operand.text);
        script_put(s, ")");
        break;
    }
}

/* --- the arguments of a request ------------------------------------------------------------- */

static void write_checks(struct script *s, const struct plan_request *r)
{
    const struct str prefix = STR("check failed: ");
    script_put(s, "[");
    for (size_t i = 0; i < r->check_count; i++) {
        const struct plan_test *t = &r->checks[i];
        script_put(s, "\n    (");
        script_string(s, str_sub(t->failure, prefix.len, t->failure.len));
        script_put(s, ", ");
        write_test(s, t);
        script_put(s, "),");
    }
    script_put(s, "\n]");
}

static void write_place(struct script *s, const struct plan_extract *e)
{
    switch (e->kind) {
    case PLAN_EXTRACT_JSON:
        script_put(s, "json_at(");
        script_string(s, e->pointer.text);
        break;
    case PLAN_EXTRACT_REGEX:
        script_put(s, "regex(");
        script_pattern(s, e->pattern_text);
        if (e->group > 0)
            script_printf(s, ", group=%u", e->group);
        break;
    case PLAN_EXTRACT_HEADER:
        script_put(s, "header(");
        script_string(s, e->key);
        break;
    case PLAN_EXTRACT_COOKIE:
        script_put(s, "cookie(");
        script_string(s, e->key);
        break;
    }
    if (e->has_default) {
        script_put(s, ", default=");
        if (e->fallback_json)
            script_number(s, e->fallback.text);
        else
            script_template(s, &e->fallback);
    }
    script_put(s, ")");
}

static void write_extracts(struct script *s, const struct plan *plan, const struct plan_request *r)
{
    bool many = r->extract_count > 1;
    script_put(s, "{");
    for (size_t i = 0; i < r->extract_count; i++) {
        script_put(s, many ? "\n    " : "");
        script_string(s, plan->variables[r->extracts[i].variable].name);
        script_put(s, ": ");
        write_place(s, &r->extracts[i]);
        script_put(s, many ? "," : "");
    }
    script_put(s, many ? "\n}" : "}");
}

/* The content type that goes without saying beside json= and form=. */
enum body_words { BODY_TEXT, BODY_JSON, BODY_FORM };

static enum body_words body_words(const struct plan_request *r)
{
    if (r->header_count == 0 || !r->body.ptr || r->body_file.ptr)
        return BODY_TEXT;
    const struct plan_header *last = &r->headers[r->header_count - 1];
    if (!str_eq(last->name, STR("Content-Type")))
        return BODY_TEXT;
    if (str_eq(last->value, STR("application/json")))
        return BODY_JSON;
    return str_eq(last->value, STR("application/x-www-form-urlencoded")) ? BODY_FORM : BODY_TEXT;
}

static void write_headers(struct script *s, const struct plan_request *r, size_t count)
{
    script_put(s, "{");
    for (size_t i = 0; i < count; i++) {
        const struct plan_text fixed = {.text = r->headers[i].value};
        script_put(s, i > 0 ? ", " : "");
        script_string(s, r->headers[i].name);
        script_put(s, ": ");
        script_template(s, r->header_texts && r->header_texts[i].piece_count ? &r->header_texts[i]
                                                                             : &fixed);
    }
    script_put(s, "}");
}

static void write_body(struct script_call *c, const struct plan_request *r)
{
    static const char *const names[] = {
        [BODY_TEXT] = "body", [BODY_JSON] = "json", [BODY_FORM] = "form"};
    enum body_words words = body_words(r);
    size_t headers = r->header_count - (words != BODY_TEXT);
    if (headers > 0)
        write_headers(script_argument(c, "headers"), r, headers);
    if (r->body_file.ptr)
        script_string(script_argument(c, "file"), r->body_file);
    else if (r->body.ptr)
        script_template(script_argument(c, names[words]), &r->body_text);
}

/* One that the runtime would not find by itself. */
static bool needs_name(const struct plan_request *r)
{
    if (r->naming != PLAN_NAME_FIXED)
        return r->naming == PLAN_NAME_TEXT;
    return r->url_text.piece_count > 0 || !str_eq(url_target(r->url), r->name);
}

static void write_name(struct script_call *c, const struct plan_request *r)
{
    const struct plan_text fixed = {.text = r->name};
    if (needs_name(r))
        script_template(script_argument(c, "name"),
                        r->naming == PLAN_NAME_TEXT ? &r->name_text : &fixed);
}

static void write_timeouts(struct script_call *c, const struct plan_timeouts *t)
{
    const struct {
        const char *name;
        uint64_t us;
    } parts[] = {
        {"connect", t->connect_us}, {"first_byte", t->first_byte_us}, {"total", t->total_us}};
    if (!t->connect_us && !t->first_byte_us) {
        if (t->total_us)
            script_seconds(script_argument(c, "timeout"), t->total_us);
        return;
    }
    struct script *s = script_argument(c, "timeout");
    const char *before = "{";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!parts[i].us)
            continue;
        script_printf(s, "%s\"%s\": ", before, parts[i].name);
        script_seconds(s, parts[i].us);
        before = ", ";
    }
    script_put(s, "}");
}

static void write_judgement(struct script_call *c, const struct plan *plan,
                            const struct plan_request *r)
{
    static const char *const stops[] = {
        [PLAN_STOP_TASK] = "stop task",
        [PLAN_STOP_USER] = "stop user",
        [PLAN_STOP_RUN] = "stop run",
    };
    if (r->expected_status_count > 0) {
        struct script *s = script_argument(c, "expect");
        for (size_t i = 0; i < r->expected_status_count; i++)
            script_printf(s, "%s%u", i == 0 ? "[" : ", ", r->expected_status[i]);
        script_put(s, "]");
    }
    if (r->check_count > 0)
        write_checks(script_argument(c, "check"), r);
    if (r->extract_count > 0)
        write_extracts(script_argument(c, "extract"), plan, r);
    if (r->wants_body_bytes && r->wants_body_bytes != PLAN_BODY_BYTES)
        script_printf(script_argument(c, "body_limit"), "%zu", r->wants_body_bytes);
    if (r->on_failure != PLAN_STOP_NOTHING)
        script_printf(script_argument(c, "on_failure"), "\"%s\"", stops[r->on_failure]);
}

static void write_url(struct script_call *c, const struct plan_request *r)
{
    const struct plan_text fixed = {.text = r->url};
    const struct plan_text *url = r->url_text.piece_count ? &r->url_text : &fixed;
    script_template(script_argument(c, NULL), url);
}

static void write_request(struct script *s, const struct plan *plan, const struct plan_request *r,
                          unsigned indent)
{
    static const char *const methods[] = {"get",    "post", "put",    "patch",
                                          "delete", "head", "options"};
    struct script_call c;
    char what[32] = "self.request";
    script_call_begin(&c);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (str_eq_nocase(r->method, str_of(methods[i])))
            (void)snprintf(what, sizeof what, "self.%s", methods[i]); /* always fits */
    }
    if (strcmp(what, "self.request") == 0)
        script_string(script_argument(&c, NULL), r->method);
    write_url(&c, r);
    write_name(&c, r);
    if (r->host.text.ptr && !url_is_absolute(r->url))
        script_template(script_argument(&c, "host"), &r->host);
    write_body(&c, r);
    if (!r->follow_redirects)
        script_put(script_argument(&c, "redirects"), "False");
    write_timeouts(&c, &r->timeouts);
    write_judgement(&c, plan, r);
    script_call_end(&c, s, indent, what, "");
}

/* --- the other steps ------------------------------------------------------------------------ */

static void write_tests(struct script_call *c, const struct plan_step *step)
{
    for (size_t i = 0; i < step->test_count; i++)
        write_test(script_argument(c, NULL), &step->tests[i]);
}

static void write_pause(struct script *s, const struct plan_pause *pause, unsigned indent)
{
    script_printf(s, "%*sself.pause(", (int)indent, "");
    if (pause->seconds.piece_count > 0) {
        script_template(s, &pause->seconds);
    } else {
        script_seconds(s, pause->min_us);
        if (pause->max_us > pause->min_us) {
            script_put(s, ", ");
            script_seconds(s, pause->max_us);
        }
    }
    script_put(s, ")\n");
}

static void write_loop(struct script *s, const struct plan_step *step, unsigned indent)
{
    struct script_call c;
    script_call_begin(&c);
    if (step->kind == PLAN_STEP_WHILE) {
        write_tests(&c, step);
        if (step->loop.times != PLAN_WHILE_REPEATS)
            script_printf(script_argument(&c, "limit"), "%u", step->loop.times);
        script_call_end(&c, s, indent, "for _ in self.as_long_as", ":");
    } else if (step->loop.count.piece_count > 0) {
        script_template(script_argument(&c, NULL), &step->loop.count);
        script_call_end(&c, s, indent, "for _ in self.repeat", ":");
    } else {
        script_printf(script_argument(&c, NULL), "%u", step->loop.times);
        script_call_end(&c, s, indent, "for _ in range", ":");
    }
}

static void write_set(struct script *s, const struct plan *plan, const struct plan_step *step,
                      unsigned indent)
{
    script_printf(s, "%*sself.set({", (int)indent, "");
    for (size_t i = 0; i < step->set.count; i++) {
        const struct plan_assignment *item = &step->set.items[i];
        script_put(s, i > 0 ? ", " : "");
        script_string(s, plan->variables[item->variable].name);
        script_put(s, ": ");
        if (item->json)
            script_number(s, item->value.text);
        else
            script_template(s, &item->value);
    }
    script_put(s, "})\n");
}

static void write_stop(struct script *s, enum plan_stop what, unsigned indent)
{
    static const char *const words[] = {
        [PLAN_STOP_TASK] = "task", [PLAN_STOP_USER] = "user", [PLAN_STOP_RUN] = "run"};
    script_printf(s, "%*sself.stop_%s()\n", (int)indent, "", words[what]);
}

static void write_if(struct script *s, const struct plan_step *step, unsigned indent)
{
    struct script_call c;
    script_call_begin(&c);
    write_tests(&c, step);
    script_call_end(&c, s, indent, "if self.holds", ":");
}

static void write_step(struct script *s, const struct plan *plan, const struct plan_step *step,
                       unsigned indent)
{
    switch (step->kind) {
    case PLAN_STEP_REQUEST:
        write_request(s, plan, &step->request, indent);
        break;
    case PLAN_STEP_PAUSE:
        write_pause(s, &step->pause, indent);
        break;
    case PLAN_STEP_REPEAT:
    case PLAN_STEP_WHILE:
        write_loop(s, step, indent);
        break;
    case PLAN_STEP_IF:
        write_if(s, step, indent);
        break;
    case PLAN_STEP_ELSE:
        script_printf(s, "%*selse:\n", (int)indent - 4, "");
        break;
    case PLAN_STEP_GROUP:
        script_printf(s, "%*swith self.group(", (int)indent, "");
        script_string(s, step->group.name);
        script_put(s, "):\n");
        break;
    case PLAN_STEP_END:
        break;
    case PLAN_STEP_SET:
        write_set(s, plan, step, indent);
        break;
    case PLAN_STEP_LOG:
        script_printf(s, "%*sself.log(", (int)indent, "");
        script_template(s, &step->log);
        script_put(s, ")\n");
        break;
    case PLAN_STEP_STOP:
        write_stop(s, step->stop, indent);
        break;
    }
}

static bool begins_block(enum plan_step_kind kind)
{
    return kind == PLAN_STEP_REPEAT || kind == PLAN_STEP_WHILE || kind == PLAN_STEP_IF ||
           kind == PLAN_STEP_ELSE || kind == PLAN_STEP_GROUP;
}

static bool ends_block(enum plan_step_kind kind)
{
    return kind == PLAN_STEP_ELSE || kind == PLAN_STEP_END;
}

void steps_write(struct script *s, const struct plan *plan, const struct plan_task *task,
                 unsigned indent)
{
    bool empty = true; /* what Python cannot have: a block without a line */
    for (size_t i = 0; s->rc == 0 && i < task->step_count; i++) {
        const struct plan_step *step = &task->steps[i];
        if (empty && ends_block(step->kind))
            script_printf(s, "%*spass\n", (int)indent, "");
        if (step->kind == PLAN_STEP_END)
            indent -= 4;
        write_step(s, plan, step, indent);
        if (begins_block(step->kind) && step->kind != PLAN_STEP_ELSE)
            indent += 4;
        empty = begins_block(step->kind);
    }
    if (empty)
        script_printf(s, "%*spass\n", (int)indent, "");
}

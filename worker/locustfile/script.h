/* Writes Python. The first fault sticks: what comes after it writes nothing, and rc tells it at the
 * end. The text is ASCII, whatever the scenario holds. */
#ifndef CICADA_WORKER_LOCUSTFILE_SCRIPT_H
#define CICADA_WORKER_LOCUSTFILE_SCRIPT_H

#include "base/buf.h"
#include "worker/scenario/plan.h"

#define SCRIPT_WIDTH 116 /* of a call that stands in one line */

struct script {
    struct buf *out;
    int rc; /* 0, -ERANGE, -ENOMEM */
};

void script_put(struct script *s, const char *text);
void script_printf(struct script *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As a string literal; what is no UTF-8 as Python's surrogateescape has it. */
void script_string(struct script *s, struct str text);
/* A regular expression, raw when it can be. */
void script_pattern(struct script *s, struct str text);
/* A text that the runtime will read for variables: "${name}", and "$${" for "${" itself. */
void script_template(struct script *s, const struct plan_text *text);
void script_seconds(struct script *s, uint64_t us);
/* A number as it stands in JSON, such that its text comes out again. */
void script_number(struct script *s, struct str json);
/* A comment of one line. */
void script_comment(struct script *s, unsigned indent, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* --- calls: arguments one by one, then the whole in one line or in many --- */

struct script_call {
    struct buf text;      /* each argument with a NUL behind it */
    struct script writer; /* into text */
    size_t count;
};

void script_call_begin(struct script_call *c);
/* The writer for the next argument, whose name is put before it; NULL: it has none. */
struct script *script_argument(struct script_call *c, const char *name);
/* Write "<what>(<arguments>)<end>" and a line end, and forget the arguments. */
void script_call_end(struct script_call *c, struct script *s, unsigned indent, const char *what,
                     const char *end);

#endif

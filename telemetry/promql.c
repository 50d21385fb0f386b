/* Queries are written with single letters for their parts: $B a selector of buckets, $X one of a
 * counter, each with its placeholders replaced already, $S the start of the window, $W its length,
 * $L that length and the lookback more. That keeps each formula readable in one piece. */
#include "telemetry/promql.h"

#include "base/log.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>

#define TIME_MAX_S 1e11 /* far beyond any run; keeps every number printable without an exponent */

/* --- selectors ----------------------------------------------------------------------------------
 */

static size_t name_length(struct str text)
{
    size_t n = 0;
    while (n < text.len &&
           (isalnum((unsigned char)text.ptr[n]) || text.ptr[n] == '_' || text.ptr[n] == ':'))
        n++;
    return n && isdigit((unsigned char)text.ptr[0]) ? 0 : n;
}

/* Position of the brace that closes the one at 0, or text.len. Braces within quotes are text. */
static size_t closing_brace(struct str text)
{
    char quote = 0;
    for (size_t i = 1; i < text.len; i++) {
        char c = text.ptr[i];
        if (quote && c == '\\' && quote != '`')
            i++;
        else if (quote)
            quote = c == quote ? 0 : quote;
        else if (c == '"' || c == '\'' || c == '`')
            quote = c;
        else if (c == '}')
            return i;
    }
    return text.len;
}

int promql_selector_parse(struct str text, struct promql_selector *ret, struct err *err)
{
    static const char wanted[] = "must be one selector such as name{label=\"value\"}";
    text = str_trim(text);
    size_t n = name_length(text);
    if (n == 0)
        return err_set(err, -EINVAL, "%s, beginning with the metric's name", wanted);
    struct promql_selector s = {str_sub(text, 0, n), str_trim(str_sub(text, n, text.len))};
    if (s.labels.len && (s.labels.ptr[0] != '{' || closing_brace(s.labels) != s.labels.len - 1))
        return err_set(err, -EINVAL, "%s, with nothing behind it", wanted);
    *ret = s;
    return 0;
}

/* --- placeholders -------------------------------------------------------------------------------
 */

int promql_add_time(struct buf *b, double wall_s)
{
    uint64_t ms = (uint64_t)llround(fmin(fmax(wall_s, 0), TIME_MAX_S) * 1000);
    int rc = buf_printf(b, "%" PRIu64, ms / 1000);
    return rc < 0 || ms % 1000 == 0 ? rc : buf_printf(b, ".%03" PRIu64, ms % 1000);
}

int promql_add_duration(struct buf *b, double seconds)
{
    double ms = round(fmin(fmax(seconds, 0.001), TIME_MAX_S) * 1000);
    return fmod(ms, 1000) == 0 ? buf_printf(b, "%.0fs", ms / 1000) : buf_printf(b, "%.0fms", ms);
}

static double length_s(struct window w)
{
    return w.end_s - w.start_s;
}

/* Append what a placeholder of ours stands for; -ENOENT when it is none of ours. */
static int add_known(struct buf *b, struct str name, const struct promql_scope *s)
{
    if (str_eq(name, STR("start")))
        return promql_add_time(b, s->steady.start_s);
    if (str_eq(name, STR("end")))
        return promql_add_time(b, s->steady.end_s);
    if (str_eq(name, STR("window")))
        return promql_add_duration(b, length_s(s->steady));
    if (str_eq(name, STR("run_start")))
        return promql_add_time(b, s->run.start_s);
    if (str_eq(name, STR("run_end")))
        return promql_add_time(b, s->run.end_s);
    if (str_eq(name, STR("range")))
        return promql_add_duration(b, length_s(s->run));
    if (str_eq(name, STR("step")))
        return promql_add_duration(b, s->step_s);
    return -ENOENT;
}

static int add_escaped(struct buf *b, struct str value)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < value.len; i++) {
        char c = value.ptr[i];
        if (c == '\n')
            rc = buf_add(b, STR("\\n"));
        else if (c == '\\' || c == '"')
            rc = buf_printf(b, "\\%c", c);
        else
            rc = buf_add_byte(b, c);
    }
    return rc;
}

static const json_t *variable(const json_t *variables, struct str name)
{
    return json_object_getn(variables, name.ptr, name.len);
}

static int add_placeholder(struct buf *b, struct str name, const struct promql_scope *scope)
{
    int rc = add_known(b, name, scope);
    if (rc != -ENOENT)
        return rc;
    const json_t *value = variable(scope->variables, name);
    if (!json_is_string(value))
        return -EINVAL;
    return add_escaped(b, (struct str){json_string_value(value), json_string_length(value)});
}

/* Split *rest at the next ${name}: ret_before is the text before it, ret_name the name, whose ptr
 * is NULL when there was none. False when ${ is not closed. */
static bool next_placeholder(struct str *rest, struct str *ret_before, struct str *ret_name)
{
    size_t at = str_find_str(*rest, STR("${"));
    *ret_before = str_sub(*rest, 0, at);
    *ret_name = (struct str){NULL, 0};
    struct str behind = str_sub(*rest, at + 2, rest->len);
    if (at == rest->len) {
        *rest = str_sub(*rest, rest->len, rest->len);
        return true;
    }
    size_t close = str_find(behind, '}');
    if (close == behind.len)
        return false;
    *ret_name = str_sub(behind, 0, close);
    *rest = str_sub(behind, close + 1, behind.len);
    return true;
}

int promql_check(struct str text, const json_t *variables, struct err *err)
{
    struct promql_scope scope = {.variables = variables};
    struct str before, name;
    while (text.len) {
        if (!next_placeholder(&text, &before, &name))
            return err_set(err, -EINVAL, "a '${' without its '}'");
        if (!name.ptr)
            continue;
        struct buf value;
        char quoted[LOG_QUOTED_BYTES];
        buf_init(&value, PROMQL_TEXT_BYTES);
        int rc = add_placeholder(&value, name, &scope);
        buf_done(&value);
        if (rc == -EINVAL)
            return err_set(err, rc, "unknown placeholder %s", log_quote(name, quoted));
        if (rc < 0)
            return err_set(err, rc, rc == -ENOMEM ? "out of memory" : "a variable is too long");
    }
    return 0;
}

int promql_expand(struct buf *b, struct str text, const struct promql_scope *scope)
{
    int rc = 0;
    struct str before, name;
    while (rc == 0 && text.len) {
        if (!next_placeholder(&text, &before, &name))
            return -EINVAL;
        rc = buf_add(b, before);
        if (rc == 0 && name.ptr)
            rc = add_placeholder(b, name, scope);
    }
    return rc;
}

/* --- growth -------------------------------------------------------------------------------------
 */

struct parts {
    struct promql_selector selector;
    const char *suffix;
    double q;
    const struct promql_scope *scope;
};

static int add_selector(struct buf *b, const struct parts *p, const char *suffix)
{
    int rc = buf_add(b, p->selector.name);
    if (rc == 0)
        rc = buf_add(b, str_of(suffix));
    return rc < 0 ? rc : promql_expand(b, p->selector.labels, p->scope);
}

static int add_part(struct buf *b, char letter, const struct parts *p)
{
    struct window w = p->scope->steady;
    switch (letter) {
    case 'X':
        return add_selector(b, p, p->suffix);
    case 'B':
        return add_selector(b, p, "_bucket");
    case 'S':
        return promql_add_time(b, w.start_s);
    case 'W':
        return promql_add_duration(b, length_s(w));
    case 'L':
        return promql_add_duration(b, length_s(w) + PROMQL_LOOKBACK_S);
    case 'E':
        return promql_add_duration(b, PROMQL_LOOKBACK_S);
    case 'A':
        return promql_add_duration(b, PROMQL_ALIVE_S);
    default:
        return buf_printf(b, "%.10g", p->q);
    }
}

static int add_formula(struct buf *b, const char *formula, const struct parts *p)
{
    int rc = 0;
    for (const char *c = formula; rc == 0 && *c; c++)
        rc = *c == '$' ? add_part(b, *++c, p) : buf_add_byte(b, *c);
    return rc;
}

/* The counter still lives at the end: by Prometheus' own rule, or but for a few missed scrapes. */
#define ALIVE " and on () (count($X) or count(last_over_time($X[$A])))"

/* A sample below the one before it; for the first sample of the window that one is the value at its
 * start, which lies before the range that resets() sees. */
#define UNLESS_RESET                                                                               \
    " unless on () ((sum(resets($X[$W])) or vector(0))"                                            \
    " + (count(min_over_time($X[$W]) < last_over_time($X[$E] @ $S)) or vector(0)) > 0)"

int promql_growth(struct buf *b, struct promql_selector selector, const char *suffix,
                  const struct promql_scope *scope)
{
    const struct parts p = {.selector = selector, .suffix = suffix, .scope = scope};
    return add_formula(b,
                       "(sum(last_over_time($X[$L]))"
                       " - (sum(last_over_time($X[$E] @ $S)) or vector(0)))" ALIVE UNLESS_RESET,
                       &p);
}

/* A bucket that was not there at the start counts from zero: the edge is then 0 times itself. The
 * reset of any bucket is one of the count. */
int promql_quantile(struct buf *b, double q, struct promql_selector histogram,
                    const struct promql_scope *scope)
{
    const struct parts p = {.selector = histogram, .suffix = "_count", .q = q, .scope = scope};
    return add_formula(b,
                       "histogram_quantile($Q, sum by (le) (last_over_time($B[$L]))"
                       " - (sum by (le) (last_over_time($B[$E] @ $S))"
                       " or sum by (le) (last_over_time($B[$L])) * 0))" ALIVE UNLESS_RESET,
                       &p);
}

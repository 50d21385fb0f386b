/* jansson reads the whole body, then each series is copied into an array of its own: a walk over
 * the tree, no state machine. The tree costs about ten times the text for the time of the call,
 * which the limit on the body bounds. */
#include "telemetry/answer.h"

#include "base/log.h"
#include "base/num.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* "NaN", "+Inf" and "-Inf" are no numbers to num_parse_double either. */
static bool sample_parse(const json_t *pair, struct query_answer_sample *ret)
{
    const json_t *when = json_array_get(pair, 0), *text = json_array_get(pair, 1);
    if (!json_is_number(when) || !json_is_string(text))
        return false;
    double wall_s = json_number_value(when), value;
    struct str digits = {json_string_value(text), json_string_length(text)};
    if (!isfinite(wall_s) || num_parse_double(digits, &value) < 0)
        return false;
    *ret = (struct query_answer_sample){wall_s, value};
    return true;
}

static int series_add(struct query_answer *a, json_t *labels, struct query_answer_series **ret)
{
    struct query_answer_series *s = &a->series[a->count];
    s->labels = json_is_object(labels) ? json_incref(labels) : json_object();
    if (!s->labels)
        return -ENOMEM;
    a->count++;
    *ret = s;
    return 0;
}

/* points: an array of [time, "value"]. */
static int series_fill(struct query_answer *a, struct query_answer_series *s, const json_t *points)
{
    size_t n = json_array_size(points);
    if (n == 0)
        return 0;
    s->samples = calloc(n, sizeof *s->samples);
    if (!s->samples)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if (sample_parse(json_array_get(points, i), &s->samples[s->count]))
            s->count++;
        else
            a->dropped++;
    }
    return 0;
}

static int series_fill_one(struct query_answer *a, struct query_answer_series *s,
                           const json_t *point)
{
    s->samples = calloc(1, sizeof *s->samples);
    if (!s->samples)
        return -ENOMEM;
    if (sample_parse(point, s->samples))
        s->count = 1;
    else
        a->dropped++;
    return 0;
}

/* A vector's members hold "value", a matrix's "values"; one that holds neither is a bad sample. */
static int parse_list(struct query_answer *a, const json_t *result, bool matrix, struct err *err)
{
    size_t n = json_array_size(result);
    if (n > ANSWER_SERIES_MAX)
        return err_set(err, -ERANGE, "%zu series, at most %d are taken", n, ANSWER_SERIES_MAX);
    if (n == 0)
        return 0;
    a->series = calloc(n, sizeof *a->series);
    if (!a->series)
        return err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(result, i);
        const json_t *points = json_object_get(item, matrix ? "values" : "value");
        if (!json_is_array(points)) {
            a->dropped++;
            continue;
        }
        struct query_answer_series *s;
        int rc = series_add(a, json_object_get(item, "metric"), &s);
        if (rc == 0)
            rc = matrix ? series_fill(a, s, points) : series_fill_one(a, s, points);
        if (rc < 0)
            return err_set(err, rc, "out of memory");
    }
    return 0;
}

static int parse_scalar(struct query_answer *a, const json_t *result, struct err *err)
{
    struct query_answer_series *s;
    a->series = calloc(1, sizeof *a->series);
    if (!a->series || series_add(a, NULL, &s) < 0 || series_fill_one(a, s, result) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    return 0;
}

static int parse_data(struct query_answer *a, const json_t *data, struct err *err)
{
    const char *type = json_string_value(json_object_get(data, "resultType"));
    const json_t *result = json_object_get(data, "result");
    if (!type || !json_is_array(result))
        return err_set(err, -EPROTO, "an answer without a result");
    if (strcmp(type, "vector") == 0)
        return parse_list(a, result, false, err);
    if (strcmp(type, "matrix") == 0)
        return parse_list(a, result, true, err);
    if (strcmp(type, "scalar") == 0)
        return parse_scalar(a, result, err);
    char quoted[LOG_QUOTED_BYTES];
    return err_set(err, -EPROTO, "a result of type %s", log_quote(str_of(type), quoted));
}

/* Remarks are for a log line: those that find no room are dropped. */
static void add_remarks(struct buf *b, const json_t *list)
{
    char quoted[LOG_QUOTED_BYTES];
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *text = json_array_get(list, i);
        if (!json_is_string(text))
            continue;
        struct str view = {json_string_value(text), json_string_length(text)};
        size_t before = b->len;
        if (buf_printf(b, "%s%s", before ? "; " : "", log_quote(view, quoted)) < 0)
            return;
    }
}

static bool add_error_of(struct buf *b, const json_t *root)
{
    const char *status = json_string_value(json_object_get(root, "status"));
    const char *type = json_string_value(json_object_get(root, "errorType"));
    const json_t *text = json_object_get(root, "error");
    if (!status || strcmp(status, "error") != 0)
        return false;
    char kind[LOG_QUOTED_BYTES], what[LOG_QUOTED_BYTES];
    struct str view = {json_string_value(text), json_string_length(text)};
    return buf_printf(b, "%s: %s", log_quote(str_of(type ? type : "error"), kind),
                      log_quote(view, what)) == 0;
}

static int parse_root(struct query_answer *a, const json_t *root, struct err *err)
{
    const char *status = json_string_value(json_object_get(root, "status"));
    add_remarks(&a->warnings, json_object_get(root, "warnings"));
    add_remarks(&a->infos, json_object_get(root, "infos"));
    if (status && strcmp(status, "success") == 0)
        return parse_data(a, json_object_get(root, "data"), err);
    struct buf why;
    buf_init(&why, ERR_TEXT_BYTES);
    bool said = add_error_of(&why, root);
    int rc = err_set(err, -EPROTO, "%s", said ? buf_c(&why) : "JSON that is no answer to a query");
    buf_done(&why);
    return rc;
}

static int not_json(struct str body, const json_error_t *e, struct err *err)
{
    struct str text = str_trim(body);
    if (e->text[0] == '\0') /* out of memory is the only error without a text */
        return err_set(err, -ENOMEM, "out of memory");
    if (text.len == 0)
        return err_set(err, -EPROTO, "an empty answer");
    if (text.ptr[0] == '<')
        return err_set(err, -EPROTO, "an HTML page instead of an answer to a query");
    if (json_error_code(e) == json_error_premature_end_of_input)
        return err_set(err, -EPROTO, "JSON that breaks off after %zu bytes", body.len);
    return err_set(err, -EPROTO, "not JSON (line %d, column %d)", e->line, e->column);
}

int query_answer_parse(struct str body, struct query_answer *ret, struct err *err)
{
    *ret = (struct query_answer){0};
    buf_init(&ret->warnings, ANSWER_REMARKS_BYTES);
    buf_init(&ret->infos, ANSWER_REMARKS_BYTES);
    if (body.len > ANSWER_BODY_BYTES)
        return err_set(err, -ERANGE, "an answer of %zu bytes, at most %u are taken", body.len,
                       ANSWER_BODY_BYTES);
    json_error_t e = {0};
    json_t *root = json_loadb(body.len ? body.ptr : "", body.len, 0, &e);
    int rc = root ? parse_root(ret, root, err) : not_json(body, &e, err);
    json_decref(root);
    return rc;
}

void query_answer_done(struct query_answer *a)
{
    for (size_t i = 0; i < a->count; i++) {
        json_decref(a->series[i].labels);
        free(a->series[i].samples);
    }
    free(a->series);
    buf_done(&a->warnings);
    buf_done(&a->infos);
    *a = (struct query_answer){0};
}

bool query_answer_add_error(struct buf *b, struct str body)
{
    json_t *root = json_loadb(body.len ? body.ptr : "", body.len, 0, NULL);
    bool said = add_error_of(b, root);
    json_decref(root);
    return said;
}

struct str query_answer_label(const struct query_answer_series *s, const char *name)
{
    const json_t *value = json_object_get(s->labels, name);
    return (struct str){json_string_value(value), json_string_length(value)};
}

int query_answer_pool(const struct query_answer *a, double **ret_values, size_t *ret_count)
{
    size_t n = 0, k = 0;
    for (size_t i = 0; i < a->count; i++)
        n += a->series[i].count;
    double *values = n ? calloc(n, sizeof *values) : NULL;
    if (n && !values)
        return -ENOMEM;
    for (size_t i = 0; i < a->count; i++) {
        for (size_t j = 0; j < a->series[i].count; j++)
            values[k++] = a->series[i].samples[j].value;
    }
    *ret_values = values;
    *ret_count = n;
    return 0;
}

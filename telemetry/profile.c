/* The JSON tree stays in memory and the structs point into it. What keys a measurement has is one
 * table; each row says which kinds need it, which may have it, and how it is taken. A key that
 * nobody knows is an error: a misspelt option must not be a silent default. */
#include "telemetry/profile.h"

#include "base/log.h"
#include "base/num.h"
#include "base/utf8.h"
#include "telemetry/builtin.h"
#include "telemetry/profile_checks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const kind_names[PROFILE_KINDS] = {
    "range_distribution",  "value",         "counter_growth", "growth_ratio",
    "histogram_quantiles", "state_packing",
};

const char *profile_kind_name(enum profile_kind kind)
{
    return kind_names[kind];
}

bool profile_item_parse(struct str item, double *ret_q, bool *ret_mean)
{
    bool mean = str_eq(item, STR("avg")) || str_eq(item, STR("mean"));
    char digits[16];
    if (mean || item.len < 2 || item.len >= sizeof digits || item.ptr[0] != 'p') {
        *ret_mean = mean;
        return mean;
    }
    memcpy(digits, item.ptr + 1, item.len - 1);
    digits[item.len - 1] = '\0';
    char *point = strchr(digits, '_');
    if (point)
        *point = '.';
    double percent;
    bool plain = strspn(digits, "0123456789.") == item.len - 1;
    if (!plain || num_parse_double(str_of(digits), &percent) < 0 || percent > 100)
        return false;
    *ret_q = percent / 100;
    *ret_mean = false;
    return true;
}

/* --- the keys of a measurement ------------------------------------------------------------------
 */

struct loading {
    struct profile *profile;
    struct profile_measurement *m;
    struct err *err;
};

typedef int key_take(struct loading *l, const json_t *value);

static struct str text_of(const json_t *value)
{
    return (struct str){json_string_value(value), json_string_length(value)};
}

/* jansson takes no NUL inside a string, so it can be used as C text from here on. */
static int take_text(struct loading *l, const json_t *value, const char **ret)
{
    struct str text = text_of(value);
    if (!json_is_string(value) || text.len == 0)
        return err_set(l->err, -EINVAL, "must be a text");
    *ret = text.ptr;
    return 0;
}

static int take_query(struct loading *l, const json_t *value)
{
    int rc = take_text(l, value, &l->m->query);
    return rc < 0 ? rc : promql_check(text_of(value), l->profile->variables, l->err);
}

static int take_selector(struct loading *l, const json_t *value, const char **ret)
{
    struct promql_selector s;
    int rc = take_text(l, value, ret);
    if (rc == 0)
        rc = promql_selector_parse(text_of(value), &s, l->err);
    return rc < 0 ? rc : promql_check(text_of(value), l->profile->variables, l->err);
}

static int take_counter(struct loading *l, const json_t *value)
{
    return take_selector(l, value, &l->m->counter);
}

static int take_over(struct loading *l, const json_t *value)
{
    return take_selector(l, value, &l->m->over);
}

static int take_histogram(struct loading *l, const json_t *value)
{
    static const char *const parts[] = {"_bucket", "_sum", "_count"};
    struct promql_selector s;
    int rc = take_selector(l, value, &l->m->histogram);
    if (rc < 0 || promql_selector_parse(text_of(value), &s, NULL) < 0)
        return rc;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (str_ends(s.name, str_of(parts[i])))
            return err_set(l->err, -EINVAL, "must be the histogram's own name, without '%s'",
                           parts[i]);
    }
    return 0;
}

static int take_count_as(struct loading *l, const json_t *value)
{
    int rc = take_text(l, value, &l->m->count_as);
    if (rc == 0 && !profile_path_valid(text_of(value)))
        rc = err_set(l->err, -EINVAL, "must be names of letters, digits and '_' joined by dots");
    return rc;
}

static int take_state(struct loading *l, const json_t *value)
{
    return take_text(l, value, &l->m->state);
}

static int take_texts(struct loading *l, const json_t *value, const json_t **ret)
{
    size_t n = json_array_size(value);
    const char *text;
    if (n == 0 || n > PROFILE_LABELS_MAX)
        return err_set(l->err, -EINVAL, "must be a list of 1 to %d texts", PROFILE_LABELS_MAX);
    for (size_t i = 0; i < n; i++) {
        int rc = take_text(l, json_array_get(value, i), &text);
        if (rc < 0)
            return rc;
    }
    *ret = value;
    return 0;
}

static int take_process(struct loading *l, const json_t *value)
{
    return take_texts(l, value, &l->m->process);
}

static int take_busy(struct loading *l, const json_t *value)
{
    return take_texts(l, value, &l->m->busy);
}

static int take_factor(struct loading *l, const json_t *value, double *ret)
{
    double v = json_number_value(value);
    if (!json_is_number(value) || !isfinite(v) || v <= 0)
        return err_set(l->err, -EINVAL, "must be a number above 0");
    *ret = v;
    return 0;
}

static int take_multiply_by(struct loading *l, const json_t *value)
{
    return take_factor(l, value, &l->m->multiply_by);
}

static int take_divide_by(struct loading *l, const json_t *value)
{
    return take_factor(l, value, &l->m->divide_by);
}

static int take_bool(struct loading *l, const json_t *value, bool *ret)
{
    if (!json_is_boolean(value))
        return err_set(l->err, -EINVAL, "must be true or false");
    *ret = json_is_true(value);
    return 0;
}

static int take_late(struct loading *l, const json_t *value)
{
    return take_bool(l, value, &l->m->late);
}

static int take_integer(struct loading *l, const json_t *value)
{
    return take_bool(l, value, &l->m->integer);
}

static int take_per_second(struct loading *l, const json_t *value)
{
    return take_bool(l, value, &l->m->per_second);
}

/* For people only: unit, comment. */
static int take_note(struct loading *l, const json_t *value)
{
    const char *text;
    return take_text(l, value, &text);
}

/* Taken apart from the table, which only knows that they are there. */
static int take_nothing(struct loading *l, const json_t *value)
{
    (void)l;
    (void)value;
    return 0;
}

#define RANGE     (1u << PROFILE_RANGE_DISTRIBUTION)
#define VALUE     (1u << PROFILE_VALUE)
#define GROWTH    (1u << PROFILE_COUNTER_GROWTH)
#define RATIO     (1u << PROFILE_GROWTH_RATIO)
#define QUANTILES (1u << PROFILE_HISTOGRAM_QUANTILES)
#define PACKING   (1u << PROFILE_STATE_PACKING)
#define EVERY     ((1u << PROFILE_KINDS) - 1)

static const struct key {
    const char *name;
    unsigned needed, allowed; /* by kind */
    key_take *take;
} keys[] = {
    {"name", EVERY, EVERY, take_nothing},
    {"kind", EVERY, EVERY, take_nothing},
    {"flat", 0, EVERY, take_nothing},
    {"unit", 0, EVERY, take_note},
    {"comment", 0, EVERY, take_note},
    {"late", 0, EVERY, take_late},
    {"query", RANGE | VALUE | PACKING, RANGE | VALUE | PACKING, take_query},
    {"counter", GROWTH | RATIO, GROWTH | RATIO, take_counter},
    {"over", RATIO, RATIO, take_over},
    {"histogram", QUANTILES, QUANTILES, take_histogram},
    {"multiply_by", 0, EVERY & ~PACKING, take_multiply_by},
    {"divide_by", 0, EVERY & ~PACKING, take_divide_by},
    {"integer", 0, VALUE | GROWTH, take_integer},
    {"per_second", 0, GROWTH, take_per_second},
    {"count_as", 0, RANGE, take_count_as},
    {"process", PACKING, PACKING, take_process},
    {"state", PACKING, PACKING, take_state},
    {"busy", PACKING, PACKING, take_busy},
};
#define KEYS (sizeof keys / sizeof *keys)

static const struct key *key_find(const char *name)
{
    for (size_t i = 0; i < KEYS; i++) {
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    }
    return NULL;
}

static int take_keys(struct loading *l, json_t *object)
{
    unsigned kind = 1u << l->m->kind;
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        const struct key *key = key_find(name);
        char quoted[LOG_QUOTED_BYTES];
        if (!key || !(key->allowed & kind))
            return err_set(l->err, -EINVAL, "%s %s", log_quote(str_of(name), quoted),
                           key ? "does not go with this kind" : "is no known key");
        int rc = key->take(l, value);
        if (rc < 0) {
            (void)err_prefix(l->err, "'%s'", name); /* rc is returned */
            return rc;
        }
    }
    for (size_t i = 0; i < KEYS; i++) {
        if ((keys[i].needed & kind) && !json_object_get(object, keys[i].name))
            return err_set(l->err, -EINVAL, "'%s' is missing", keys[i].name);
    }
    return 0;
}

/* --- names --------------------------------------------------------------------------------------
 */

static bool has_distribution(enum profile_kind kind)
{
    return kind == PROFILE_RANGE_DISTRIBUTION || kind == PROFILE_STATE_PACKING;
}

static int take_kind(struct loading *l, const json_t *object)
{
    struct str kind = text_of(json_object_get(object, "kind"));
    for (size_t i = 0; i < PROFILE_KINDS; i++) {
        if (str_eq(kind, str_of(kind_names[i]))) {
            l->m->kind = (enum profile_kind)i;
            return 0;
        }
    }
    char quoted[LOG_QUOTED_BYTES];
    return err_set(l->err, -EINVAL, "'kind': %s is none of %s, %s, %s, %s, %s, %s",
                   log_quote(kind, quoted), kind_names[0], kind_names[1], kind_names[2],
                   kind_names[3], kind_names[4], kind_names[5]);
}

/* Does the name or its flat form have the braces that the kind wants, with items that it knows? */
static int check_items(struct loading *l, const struct braced *b, bool wanted)
{
    if (b->has_items != wanted)
        return err_set(l->err, -EINVAL,
                       wanted ? "needs a list such as {p50,p99}" : "must have no braces");
    if (braced_count(b) > PROFILE_ITEMS_MAX)
        return err_set(l->err, -EINVAL, "at most %d in braces", PROFILE_ITEMS_MAX);
    struct str item;
    for (size_t i = 0; braced_item(b, i, &item); i++) {
        char quoted[LOG_QUOTED_BYTES];
        enum distribution_stat stat;
        double q;
        bool mean, known = l->m->kind == PROFILE_HISTOGRAM_QUANTILES
                               ? profile_item_parse(item, &q, &mean)
                               : distribution_stat_parse(item, &stat);
        if (!known)
            return err_set(l->err, -EINVAL, "%s is none of %s", log_quote(item, quoted),
                           l->m->kind == PROFILE_HISTOGRAM_QUANTILES
                               ? "pNN, pNN_N, avg, mean"
                               : "min, p50, p90, p95, p99, max, avg");
    }
    return 0;
}

/* The text with its braces is a name: with an item of letters it must be a valid path. */
static int check_pattern(struct loading *l, struct str text, bool items_wanted)
{
    struct braced b;
    if (text.len > PROFILE_NAME_BYTES)
        return err_set(l->err, -EINVAL, "longer than %d bytes", PROFILE_NAME_BYTES);
    if (!braced_parse(text, &b))
        return err_set(l->err, -EINVAL, "braces do not match");
    struct buf sample;
    buf_init(&sample, 2 * PROFILE_NAME_BYTES);
    int rc = braced_add(&sample, &b, STR("x"));
    if (rc < 0)
        rc = err_set(l->err, rc, "out of memory");
    else if (!profile_path_valid(buf_str(&sample)))
        rc = err_set(l->err, -EINVAL,
                     "must be names of letters, digits and '_' joined by dots, not 'metadata'");
    buf_done(&sample);
    return rc < 0 ? rc : check_items(l, &b, items_wanted);
}

static int take_name(struct loading *l, const json_t *object)
{
    const json_t *value = json_object_get(object, "name");
    int rc = take_text(l, value, &l->m->name);
    if (rc == 0)
        rc = check_pattern(l, text_of(value), l->m->kind == PROFILE_HISTOGRAM_QUANTILES);
    if (rc < 0)
        (void)err_prefix(l->err, "'name'"); /* rc is returned */
    return rc;
}

/* Without a "flat" of its own, a name's dots become '_', and a distribution gives its percentiles.
 */
static int default_flat(struct loading *l)
{
    const char *more = has_distribution(l->m->kind) ? "_{p50,p90,p95,p99}" : "";
    struct buf b;
    buf_init(&b, 2 * PROFILE_NAME_BYTES);
    int rc = buf_printf(&b, "%s%s", l->m->name, more);
    l->m->flat = rc == 0 ? buf_take(&b) : NULL;
    buf_done(&b);
    if (!l->m->flat)
        return err_set(l->err, -ENOMEM, "out of memory");
    for (char *c = l->m->flat; *c; c++)
        *c = *c == '.' ? '_' : *c;
    return 0;
}

static bool item_in(const struct braced *list, struct str item)
{
    struct str other;
    for (size_t i = 0; braced_item(list, i, &other); i++) {
        if (str_eq(item, other))
            return true;
    }
    return false;
}

/* A histogram's flat names can only show what its name asks for. */
static int check_subset(struct loading *l, const char *flat)
{
    struct braced names, flats;
    struct str item;
    if (!braced_parse(str_of(l->m->name), &names) || !braced_parse(str_of(flat), &flats))
        return err_set(l->err, -EINVAL, "braces do not match");
    for (size_t i = 0; braced_item(&flats, i, &item); i++) {
        if (!item_in(&names, item))
            return err_set(l->err, -EINVAL, "'%.*s' is not in the name", STR_ARG(item));
    }
    return 0;
}

static int take_flat(struct loading *l, const json_t *object)
{
    const json_t *value = json_object_get(object, "flat");
    const char *text;
    if (!value)
        return default_flat(l);
    if (json_is_null(value))
        return 0;
    bool items = has_distribution(l->m->kind) || l->m->kind == PROFILE_HISTOGRAM_QUANTILES;
    int rc = take_text(l, value, &text);
    if (rc == 0)
        rc = check_pattern(l, text_of(value), items);
    if (rc == 0 && strchr(text, '.'))
        rc = err_set(l->err, -EINVAL, "must have no dots");
    if (rc == 0 && l->m->kind == PROFILE_HISTOGRAM_QUANTILES)
        rc = check_subset(l, text);
    if (rc == 0) {
        l->m->flat = strdup(text);
        rc = l->m->flat ? 0 : err_set(l->err, -ENOMEM, "out of memory");
    }
    if (rc < 0)
        (void)err_prefix(l->err, "'flat'"); /* rc is returned */
    return rc;
}

/* --- the profile --------------------------------------------------------------------------------
 */

static int take_measurement(struct profile *p, json_t *object, struct err *err)
{
    struct profile_measurement *m = &p->measurements[p->count++];
    struct loading l = {p, m, err};
    m->multiply_by = m->divide_by = 1;
    if (!json_is_object(object))
        return err_set(err, -EINVAL, "must be an object");
    int rc = take_kind(&l, object);
    if (rc == 0)
        rc = take_keys(&l, object);
    if (rc == 0)
        rc = take_name(&l, object);
    return rc < 0 ? rc : take_flat(&l, object);
}

static int take_measurements(struct profile *p, const json_t *list, struct err *err)
{
    size_t n = json_array_size(list);
    if (n == 0 || n > PROFILE_MEASUREMENTS_MAX)
        return err_set(err, -EINVAL, "'measurements' must be a list of 1 to %d objects",
                       PROFILE_MEASUREMENTS_MAX);
    p->measurements = calloc(n, sizeof *p->measurements);
    if (!p->measurements)
        return err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        int rc = take_measurement(p, json_array_get(list, i), err);
        if (rc < 0) {
            const json_t *name = json_object_get(json_array_get(list, i), "name");
            char quoted[LOG_QUOTED_BYTES];
            (void)err_prefix(err, "measurements[%zu] %s", i, log_quote(text_of(name), quoted));
            return rc;
        }
    }
    return profile_check_names(p, err);
}

static int take_variables(struct profile *p, struct err *err)
{
    json_t *given = json_object_get(p->root, "variables");
    if (!given) {
        given = json_object();
        if (json_object_set_new(p->root, "variables", given) < 0)
            return err_set(err, -ENOMEM, "out of memory");
    }
    if (!json_is_object(given))
        return err_set(err, -EINVAL, "'variables' must be an object of texts");
    const char *name;
    json_t *value;
    json_object_foreach(given, name, value)
    {
        if (!json_is_string(value))
            return err_set(err, -EINVAL, "variables: '%s' must be a text", name);
    }
    p->variables = given;
    return 0;
}

static int take_seconds(const struct profile *p, const char *key, double min, double max,
                        double *ret, struct err *err)
{
    const json_t *value = json_object_get(p->root, key);
    double v = json_number_value(value);
    if (!value)
        return 0;
    if (!json_is_number(value) || !(v >= min && v <= max))
        return err_set(err, -EINVAL, "'%s' must be seconds from %g to %g", key, min, max);
    *ret = v;
    return 0;
}

static int take_head(struct profile *p, struct err *err)
{
    static const char *const known[] = {"profile", "comment",   "telemetry_lag_s",
                                        "step_s",  "variables", "measurements"};
    const char *name;
    json_t *value;
    json_object_foreach(p->root, name, value)
    {
        size_t i = 0;
        char quoted[LOG_QUOTED_BYTES];
        while (i < sizeof known / sizeof *known && strcmp(known[i], name) != 0)
            i++;
        if (i == sizeof known / sizeof *known)
            return err_set(err, -EINVAL, "%s is no known key", log_quote(str_of(name), quoted));
    }
    struct str title = text_of(json_object_get(p->root, "profile"));
    if (title.len == 0 || title.len > PROFILE_NAME_BYTES)
        return err_set(err, -EINVAL, "'profile' must be the profile's name");
    p->name = strndup(title.ptr, title.len);
    if (!p->name)
        return err_set(err, -ENOMEM, "out of memory");
    p->lag_s = 0;
    p->step_s = 10;
    int rc = take_seconds(p, "telemetry_lag_s", 0, PROFILE_LAG_MAX_S, &p->lag_s, err);
    return rc < 0 ? rc : take_seconds(p, "step_s", 1, PROFILE_STEP_MAX_S, &p->step_s, err);
}

static int parse(struct str text, struct profile *ret, struct err *err)
{
    json_error_t e = {0};
    ret->root = json_loadb(text.len ? text.ptr : "", text.len, JSON_REJECT_DUPLICATES, &e);
    if (!ret->root && e.text[0] == '\0') /* out of memory is the only error without a text */
        return err_set(err, -ENOMEM, "out of memory");
    if (!ret->root)
        return err_set(err, -EINVAL, "line %d, column %d: %s", e.line, e.column, e.text);
    if (!json_is_object(ret->root))
        return err_set(err, -EINVAL, "must be a JSON object");
    int rc = take_head(ret, err);
    if (rc == 0)
        rc = take_variables(ret, err);
    return rc < 0 ? rc : take_measurements(ret, json_object_get(ret->root, "measurements"), err);
}

int profile_parse(struct str text, const char *source, struct profile *ret, struct err *err)
{
    *ret = (struct profile){0};
    int rc = parse(text, ret, err);
    if (rc < 0)
        (void)err_prefix(err, "%s", source); /* rc is returned */
    return rc;
}

int profile_load(const char *name_or_path, struct profile *ret, struct err *err)
{
    *ret = (struct profile){0};
    struct str shipped = builtin_profile(str_of(name_or_path));
    if (shipped.ptr)
        return profile_parse(shipped, name_or_path, ret, err);
    struct buf text;
    buf_init(&text, PROFILE_FILE_BYTES);
    int rc = buf_read_file(&text, name_or_path, err);
    if (rc == 0)
        rc = profile_parse(buf_str(&text), name_or_path, ret, err);
    else if (rc == -ENOENT && !strchr(name_or_path, '/'))
        (void)err_prefix(err, "no shipped telemetry profile (%s) and no file",
                         BUILTIN_PROFILE_NAMES); /* rc is returned */
    buf_done(&text);
    return rc;
}

void profile_done(struct profile *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->measurements[i].flat);
    free(p->measurements);
    free(p->name);
    json_decref(p->root);
    *p = (struct profile){0};
}

static int no_variable(const struct profile *p, struct str name, struct err *err)
{
    char quoted[LOG_QUOTED_BYTES], list[200] = "none";
    size_t used = 0;
    const char *key;
    json_t *value;
    json_object_foreach(p->variables, key, value)
    {
        int n = snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", key);
        if (n < 0 || (size_t)n >= sizeof list - used)
            break; /* the list is cut */
        used += (size_t)n;
    }
    return err_set(err, -ENOENT, "the telemetry profile '%s' has no variable %s; it has: %s",
                   p->name, log_quote(name, quoted), list);
}

int profile_set_variable(struct profile *p, struct str name, struct str value, struct err *err)
{
    const json_t *old = name.len ? json_object_getn(p->variables, name.ptr, name.len) : NULL;
    if (!old)
        return no_variable(p, name, err);
    if (!utf8_valid(value))
        return err_set(err, -EINVAL, "the value of variable '%.*s' is not UTF-8", STR_ARG(name));
    json_t *text = json_stringn(value.len ? value.ptr : "", value.len);
    if (json_object_setn_new(p->variables, name.ptr, name.len, text) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    return 0;
}

#include "worker/runner/inputs.h"

#include "base/log.h"

#include <stdlib.h>

static struct str name_of(struct str set)
{
    return str_sub(set, 0, str_find(set, '='));
}

static int refuse_unknown(const struct plan *plan, struct str name, struct err *err)
{
    char quoted[LOG_QUOTED_BYTES];
    struct buf known;
    buf_init(&known, ERR_TEXT_BYTES);
    for (size_t i = 0; i < plan->variable_count; i++) {
        if (plan->variables[i].outside &&
            buf_printf(&known, "%s%.*s", known.len ? ", " : "", STR_ARG(plan->variables[i].name)))
            break; /* a long list is cut */
    }
    (void)err_set(err, -EINVAL, "--set: the scenario declares no variable %s%s%s",
                  log_quote(name, quoted), known.len ? "; it has: " : "", buf_c(&known));
    buf_done(&known);
    return -EINVAL;
}

int inputs_check(const struct plan *plan, const struct str *sets, size_t set_count, struct err *err)
{
    for (size_t i = 0; i < set_count; i++) {
        struct str name = name_of(sets[i]);
        if (name.len == sets[i].len || name.len == 0)
            return err_set(err, -EINVAL, "--set: must be NAME=VALUE");
        if (plan->native) /* C asks for whatever it likes */
            continue;
        size_t index = plan_variable_index(plan, name);
        if (index == plan->variable_count || !plan->variables[index].outside)
            return refuse_unknown(plan, name, err);
    }
    return 0;
}

/* The last one given wins; ptr NULL: none was. */
static struct str find_set(const struct str *sets, size_t set_count, struct str name)
{
    for (size_t i = set_count; i-- > 0;) {
        if (str_eq(name_of(sets[i]), name))
            return str_sub(sets[i], name.len + 1, sets[i].len);
    }
    return (struct str){NULL, 0};
}

/* *ret_text is the value when there is one; a text that was made for it is in *ret_made. */
static int read_argument(const json_t *value, struct str *ret_text, char **ret_made)
{
    if (json_is_string(value)) {
        *ret_text = (struct str){json_string_value(value), json_string_length(value)};
        return 0;
    }
    if (!json_is_number(value) && !json_is_boolean(value))
        return 0;
    *ret_made = json_dumps(value, JSON_ENCODE_ANY);
    *ret_text = str_of(*ret_made);
    return *ret_made ? 0 : -ENOMEM;
}

static int apply(struct engine *e, struct str name, struct str value, const json_t *argument)
{
    char *made = NULL;
    int rc = read_argument(argument, &value, &made);
    if (rc == 0)
        rc = engine_set_variable(e, name, value);
    free(made);
    return rc;
}

/* A test in C declares nothing: it gets all there is. */
static int apply_all(struct engine *e, const struct str *sets, size_t set_count, json_t *arguments)
{
    const char *name;
    json_t *value;
    for (size_t i = 0; i < set_count; i++) {
        struct str set = name_of(sets[i]);
        int rc = apply(e, set, find_set(sets, set_count, set), NULL);
        if (rc < 0)
            return rc;
    }
    json_object_foreach(arguments, name, value)
    {
        bool any = json_is_string(value) || json_is_number(value) || json_is_boolean(value);
        int rc = any ? apply(e, str_of(name), (struct str){NULL, 0}, value) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Is it the scenario's own value? A master whose locustfile was made of the scenario has that for
 * each variable that nobody gave it, and an empty text for one that must be given. */
static bool says_nothing(const struct plan_variable *variable, const json_t *argument)
{
    struct str value = {NULL, 0};
    char *made = NULL;
    struct str own = variable->required ? STR("") : variable->initial;
    bool same =
        read_argument(argument, &value, &made) == 0 && value.ptr && own.ptr && str_eq(value, own);
    free(made);
    return same;
}

int inputs_apply(struct engine *e, const struct plan *plan, const struct str *sets,
                 size_t set_count, json_t *arguments)
{
    int rc = 0;
    if (plan->native)
        return apply_all(e, sets, set_count, arguments);
    for (size_t i = 0; rc == 0 && i < plan->variable_count; i++) {
        struct str name = plan->variables[i].name;
        if (!plan->variables[i].outside)
            continue;
        const json_t *argument = json_object_getn(arguments, name.ptr, name.len);
        if (says_nothing(&plan->variables[i], argument))
            argument = NULL;
        rc = apply(e, name, find_set(sets, set_count, name), argument);
    }
    return rc;
}

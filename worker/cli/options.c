/* Three kinds of layers, the weightiest first: the command line, the environment, each file. A
 * layer sets what no layer before it has set, so nothing is set twice by two layers and a value
 * that is overruled is not even looked at. */
#include "worker/cli/options.h"

#include "base/buf.h"
#include "base/num.h"
#include "telemetry/profile.h"
#include "worker/cli/config.h"
#include "worker/cli/flags.h"
#include "worker/report/leader.h"
#include "worker/scenario/url.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEFAULT_MASTER_PORT      5557
#define DEFAULT_REPORT           "auto"
#define DEFAULT_PROFILE          "substrate"
#define DEFAULT_MASTER_TIMEOUT_S 300 /* Locust's worker: 60 tries of 5 s */

struct kept {
    struct kept *next;
    char text[];
};

/* A flag that may have to be told about; in which words is known when the kind of run is. */
struct mention {
    const struct flag *flag;
    const char *where;
    const char *what; /* NULL: it has no meaning in this kind of run */
};

struct parse {
    struct options *o;
    struct err *err;
    bool command;                            /* of a command's own, not a run */
    unsigned layer;                          /* 1 is the command line */
    unsigned set_by[FLAG_MAX_COUNT];         /* the layer, or 0 */
    struct mention mentions[FLAG_MAX_COUNT]; /* the first of each flag */
    size_t mention_count;
    char quoted[LOG_QUOTED_BYTES];
};

/* --- what is kept --------------------------------------------------------------------------------
 */

static const char *keep(struct options *o, struct str text)
{
    struct kept *k = malloc(sizeof *k + text.len + 1);
    if (!k)
        return NULL;
    if (text.len > 0)
        memcpy(k->text, text.ptr, text.len);
    k->text[text.len] = '\0';
    k->next = o->memory;
    o->memory = k;
    return k->text;
}

static int list_add(struct options *o, struct options_list *list, struct str text)
{
    const char *copy = keep(o, text);
    struct str *grown = copy ? realloc(list->items, (list->count + 1) * sizeof *grown) : NULL;
    if (!grown)
        return -ENOMEM;
    list->items = grown;
    list->items[list->count++] = (struct str){copy, text.len};
    return 0;
}

static void list_clear(struct options_list *list)
{
    free(list->items);
    *list = (struct options_list){0};
}

void options_done(struct options *o)
{
    list_clear(&o->tags);
    list_clear(&o->exclude_tags);
    list_clear(&o->user_classes);
    list_clear(&o->prometheus_headers);
    list_clear(&o->telemetry_vars);
    list_clear(&o->sets);
    list_clear(&o->operands);
    list_clear(&o->source_addresses);
    list_clear(&o->thresholds);
    list_clear(&o->notices);
    while (o->memory) {
        struct kept *k = o->memory;
        o->memory = k->next;
        free(k);
    }
    *o = (struct options){0};
}

static int out_of_memory(struct parse *p)
{
    return err_set(p->err, -ENOMEM, "out of memory");
}

/* --- values --------------------------------------------------------------------------------------
 */

/* where names the flag as the user gave it: "--master-port", "LOCUST_MASTER_NODE_PORT",
 * "locust.conf:3: master-port". */
static int bad_value(struct parse *p, const char *where, const char *wanted, struct str value)
{
    return err_set(p->err, -EINVAL, "%s: must be %s, not %s", where, wanted,
                   log_quote(value, p->quoted));
}

static int set_number(struct parse *p, const struct flag *f, const char *where, struct str value,
                      int64_t *ret)
{
    if (num_parse_i64(str_trim(value), f->min, f->max, ret) == 0)
        return 0;
    char wanted[80];
    (void)snprintf(wanted, sizeof wanted, "a whole number from %lld to %lld", (long long)f->min,
                   (long long)f->max); /* fits */
    return bad_value(p, where, wanted, value);
}

static int set_rate(struct parse *p, const char *where, struct str value, double *ret)
{
    double rate;
    if (num_parse_double(str_trim(value), &rate) < 0 || !(rate > 0))
        return bad_value(p, where, "a number above 0", value);
    *ret = rate;
    return 0;
}

static int set_ratio(struct parse *p, const char *where, struct str value, double *ret)
{
    double ratio;
    if (num_parse_double(str_trim(value), &ratio) < 0 || !(ratio >= 0 && ratio <= 1))
        return bad_value(p, where, "a number from 0 to 1", value);
    *ret = ratio;
    return 0;
}

/* One value for a flag that takes one. */
static int set_value(struct parse *p, const struct flag *f, const char *where, struct str value)
{
    void *field = (char *)p->o + f->at;
    switch (f->kind) {
    case FLAG_NUMBER:
        return set_number(p, f, where, value, field);
    case FLAG_RATE:
        return set_rate(p, where, value, field);
    case FLAG_RATIO:
        return set_ratio(p, where, value, field);
    case FLAG_TIMESPAN:
        if (num_parse_timespan_s(value, field) < 0)
            return bad_value(p, where, "a time as 20, 20s, 3m or 1h20m", value);
        return 0;
    case FLAG_LEVEL:
        if (!log_level_parse(value, field))
            return bad_value(p, where, "DEBUG, INFO, WARNING, ERROR or CRITICAL", value);
        return 0;
    case FLAG_TEXT: /* an empty one is none: LOCUST_HOST= */
        *(const char **)field = value.len > 0 ? keep(p->o, value) : NULL;
        return *(const char **)field || value.len == 0 ? 0 : out_of_memory(p);
    case FLAG_LIST:
    case FLAG_REPEATED:
        return list_add(p->o, field, value) < 0 ? out_of_memory(p) : 0;
    case FLAG_SWITCH:
        *(bool *)field = true;
        return 0;
    }
    return 0;
}

/* The flag's place in set_by; two names of one field have the same. */
static size_t index_of(const struct flag *f)
{
    size_t i = 0;
    while (&flag_table[i] != f &&
           !(f->use == FLAG_USED && flag_table[i].use == FLAG_USED && flag_table[i].at == f->at))
        i++;
    return i;
}

/* May this layer set the flag? Marks it as set by it. */
static bool claim(struct parse *p, const struct flag *f)
{
    unsigned *set_by = &p->set_by[index_of(f)];
    if (*set_by != 0 && *set_by < p->layer)
        return false;
    *set_by = p->layer;
    return true;
}

static int mention(struct parse *p, const struct flag *f, const char *where, const char *what)
{
    for (size_t i = 0; i < p->mention_count; i++) {
        if (p->mentions[i].flag == f)
            return 0; /* one notice for a flag is enough */
    }
    const char *kept = keep(p->o, str_of(where));
    if (!kept)
        return out_of_memory(p);
    p->mentions[p->mention_count++] = (struct mention){f, kept, what};
    return 0;
}

/* A flag was given. *ret_use tells whether its value matters. */
static int give(struct parse *p, const struct flag *f, const char *where, bool *ret_use)
{
    bool always = f->use == FLAG_USED && f->run == FLAG_RUN_ANY && !p->o->calibrate;
    *ret_use = f->use == FLAG_USED;
    if (f->use == FLAG_REFUSED)
        return err_set(p->err, -EINVAL, "%s: %s", where, f->text);
    return always ? 0 : mention(p, f, where, NULL);
}

/* Has the flag no meaning in the run that was asked for? */
static bool is_idle(const struct options *o, const struct flag *f)
{
    unsigned run = o->calibrate ? FLAG_RUN_CALIBRATE
                   : o->worker  ? FLAG_RUN_WORKER
                                : FLAG_RUN_HEADLESS;
    bool of_runs = f->group == FLAG_GROUP_OUTPUT || f->group == FLAG_GROUP_METRICS ||
                   f->group == FLAG_GROUP_REPORT;
    if (f->use != FLAG_USED || (f->run != FLAG_RUN_ANY && !(f->run & run)))
        return true;
    return o->calibrate && of_runs && f->run == FLAG_RUN_ANY;
}

/* The lines for the log, in the order in which the flags were given. */
static int tell(struct parse *p)
{
    for (size_t i = 0; i < p->mention_count; i++) {
        const struct mention *m = &p->mentions[i];
        char line[ERR_TEXT_BYTES];
        const char *what = m->what           ? m->what
                           : p->o->calibrate ? "has no meaning for 'cicada calibrate'"
                           : p->o->worker    ? "has no meaning for a worker"
                                             : "has no meaning in a headless run";
        if (!m->what && !is_idle(p->o, m->flag))
            continue;
        (void)snprintf(line, sizeof line, "%s %s, ignoring", m->where,
                       what); /* a long name is cut */
        if (list_add(p->o, &p->o->notices, str_of(line)) < 0)
            return out_of_memory(p);
    }
    return 0;
}

/* --- the command line ----------------------------------------------------------------------------
 */

struct arguments {
    char *const *at; /* the next one; ends with NULL */
    bool plain;      /* "--" was seen: no flags any more */
};

/* argparse: -1 and -.5 are values, for no flag looks like a number */
static bool is_negative_number(struct str s)
{
    double v;
    return s.len > 1 && s.ptr[0] == '-' && num_parse_double(s, &v) == 0 &&
           str_find(s, 'e') == s.len && str_find(s, 'E') == s.len && s.ptr[s.len - 1] != '.';
}

/* Would argparse take it for a value? "-" is one ("-f -"), and so is an unknown flag with a blank
 * in it. */
static bool is_value(const char *argument)
{
    struct str s = str_of(argument), name = str_sub(s, 0, str_find(s, '='));
    const struct flag *f;
    if (s.len < 2 || s.ptr[0] != '-')
        return true;
    if (str_eq(s, STR("--")) || flag_find(name))
        return false;
    if (str_starts(s, STR("--")) ? flag_find_prefix(name, &f) > 0 : !!flag_find(str_sub(s, 0, 2)))
        return false;
    return is_negative_number(s) || str_find(s, ' ') < s.len;
}

static int unknown_flag(struct parse *p, struct str name)
{
    const struct flag *nearest = flag_nearest(name);
    return err_set(p->err, -EINVAL, "unknown flag %s%s%s%s", log_quote(name, p->quoted),
                   nearest ? ": did you mean '" : "", nearest ? nearest->name : "",
                   nearest ? "'?" : "");
}

static int ambiguous_flag(struct parse *p, struct str name, bool own)
{
    char names[256];
    size_t used = 0;
    for (size_t i = 0; i < flag_count && used < sizeof names; i++) {
        const struct flag *f = &flag_table[i];
        if (f->use != FLAG_GONE && flag_is_own(f) == own && str_starts(str_of(f->name), name))
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     flag_table[i].name);
    }
    return err_set(p->err, -EINVAL, "%s could be %s", log_quote(name, p->quoted), names);
}

/* Take the flag of one argument apart: "--name", "--name=value", "--nam", "-f", "-fvalue",
 * "-f=value". *ret_value has a NULL ptr when the argument holds none. */
static int read_flag(struct parse *p, struct str argument, const struct flag **ret,
                     struct str *ret_value)
{
    size_t equals = str_find(argument, '=');
    struct str name = str_sub(argument, 0, equals);
    *ret_value = (struct str){NULL, 0};
    if (equals < argument.len)
        *ret_value = str_sub(argument, equals + 1, argument.len);
    *ret = flag_find(name);
    if (*ret)
        return 0;
    if (!str_starts(argument, STR("--"))) {
        *ret = flag_find(str_sub(argument, 0, 2));
        *ret_value = str_sub(argument, 2, argument.len);
        return *ret ? 0 : unknown_flag(p, name);
    }
    size_t found = flag_find_prefix(name, ret);
    if (found > 1)
        return ambiguous_flag(p, name, flag_is_own(*ret));
    return found == 1 ? 0 : unknown_flag(p, name);
}

static int take_list(struct parse *p, const struct flag *f, bool use, struct str value,
                     struct arguments *args)
{
    struct options_list *list = use ? (void *)((char *)p->o + f->at) : NULL;
    int rc = 0;
    if (list)
        list_clear(list); /* a list given twice: the last one counts */
    if (value.ptr)
        return list ? set_value(p, f, f->name, value) : 0;
    for (; rc == 0 && *args->at && is_value(*args->at); args->at++)
        rc = list ? set_value(p, f, f->name, str_of(*args->at)) : 0;
    return rc;
}

/* As in Locust the last -f counts; that the others are left out is worth a line. */
static int tell_other_file(struct parse *p, const struct flag *f)
{
    char where[ERR_TEXT_BYTES];
    if (f->at != offsetof(struct options, scenario_file) || !p->o->scenario_file)
        return 0;
    (void)snprintf(where, sizeof where, "-f %s",
                   log_quote(str_of(p->o->scenario_file), p->quoted)); /* fits */
    return mention(p, f, where, "is followed by another -f");
}

static int take_flag(struct parse *p, struct str argument, struct arguments *args)
{
    const struct flag *f;
    struct str value;
    bool use;
    int rc = read_flag(p, argument, &f, &value);
    if (rc == 0)
        rc = give(p, f, f->name, &use);
    if (rc < 0)
        return rc;
    (void)claim(p, f); /* the first layer always may */
    if (f->kind == FLAG_LIST)
        return take_list(p, f, use, value, args);
    if (f->kind == FLAG_SWITCH) {
        if (value.ptr)
            return err_set(p->err, -EINVAL, "%s: takes no value, not %s", f->name,
                           log_quote(value, p->quoted));
        return use ? set_value(p, f, f->name, value) : 0;
    }
    if (!value.ptr) {
        if (!*args->at || !is_value(*args->at))
            return err_set(p->err, -EINVAL, "%s: needs a value", f->name);
        value = str_of(*args->at++);
    }
    rc = use ? tell_other_file(p, f) : 0;
    return rc == 0 && use ? set_value(p, f, f->name, value) : rc;
}

static int take_positional(struct parse *p, struct str argument)
{
    struct options *o = p->o;
    if (p->command && !o->calibrate)
        return list_add(o, &o->operands, argument) < 0 ? out_of_memory(p) : 0;
    if (str_find_str(argument, STR("://")) == argument.len) {
        if (argument.len == 0)
            return err_set(p->err, -EINVAL, "an empty argument is neither a URL nor a user class");
        return list_add(o, &o->user_classes, argument) < 0 ? out_of_memory(p) : 0;
    }
    if (o->url)
        return err_set(p->err, -EINVAL, "one URL at a time, not %s too",
                       log_quote(argument, p->quoted));
    o->url = keep(o, argument);
    return o->url ? 0 : out_of_memory(p);
}

static int layer_arguments(struct parse *p, char *const argv[])
{
    struct arguments args = {.at = argv[0] ? argv + 1 : argv};
    p->layer = 1;
    while (*args.at && !p->o->help && !p->o->version) {
        struct str argument = str_of(*args.at++);
        int rc = 0;
        if (!args.plain && str_eq(argument, STR("--")))
            args.plain = true;
        else if (args.plain || is_value(argument.ptr))
            rc = take_positional(p, argument);
        else
            rc = take_flag(p, argument, &args);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- the environment and the files ---------------------------------------------------------------
 */

static bool read_switch(struct str value, bool *ret)
{
    static const char *const words[][2] = {
        {"false", "true"}, {"no", "yes"}, {"off", "on"}, {"0", "1"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        for (int on = 0; on < 2; on++) {
            if (str_eq_nocase(value, str_of(words[i][on]))) {
                *ret = on;
                return true;
            }
        }
    }
    return false;
}

struct list_target {
    struct parse *p;
    const struct flag *f;
    const char *where;
};

static int list_target_add(void *context, struct str element)
{
    struct list_target *t = context;
    return set_value(t->p, t->f, t->where, element);
}

static int set_list(struct parse *p, const struct flag *f, const char *where, struct str value)
{
    struct list_target target = {p, f, where};
    list_clear((void *)((char *)p->o + f->at));
    int rc = config_list(value, list_target_add, &target);
    if (rc == -ENOENT)
        return set_value(p, f, where, value);
    if (rc == -EINVAL)
        return err_set(p->err, rc, "%s: a list may hold texts and numbers only", where);
    return rc;
}

/* What the environment or a file says about a flag. */
static int set_from_text(struct parse *p, const struct flag *f, const char *where, struct str value)
{
    bool use, on = true;
    if ((f->kind == FLAG_LIST || f->kind == FLAG_REPEATED) && value.len == 0)
        return 0; /* as if it were not there */
    if (!claim(p, f))
        return 0;
    if (f->kind == FLAG_SWITCH && !read_switch(value, &on) &&
        (f->use == FLAG_USED || f->use == FLAG_REFUSED))
        return bad_value(p, where, "true, false, yes, no, on, off, 1 or 0", value);
    int rc = on ? give(p, f, where, &use) : 0;
    if (rc < 0 || !on || !use)
        return rc;
    bool list = f->kind == FLAG_LIST || f->kind == FLAG_REPEATED;
    return list ? set_list(p, f, where, value) : set_value(p, f, where, value);
}

static struct str env_value(char *const envp[], const char *name)
{
    size_t len = strlen(name);
    for (; *envp; envp++) {
        if (strncmp(*envp, name, len) == 0 && (*envp)[len] == '=')
            return str_of(*envp + len + 1);
    }
    return (struct str){NULL, 0};
}

/* LOCUST_USER_CLASSES is no flag: names with blanks between them. */
static int env_user_classes(struct parse *p, char *const envp[])
{
    static const char blanks[] = " \t\r\n\f\v";
    struct str value = env_value(envp, "LOCUST_USER_CLASSES");
    const char *at = value.ptr ? value.ptr : "";
    if (p->o->user_classes.count > 0)
        return 0;
    while (*(at += strspn(at, blanks))) {
        size_t len = strcspn(at, blanks);
        if (list_add(p->o, &p->o->user_classes, (struct str){at, len}) < 0)
            return out_of_memory(p);
        at += len;
    }
    return 0;
}

static int env_ready_wait(struct parse *p, char *const envp[])
{
    static const char name[] = "LOCUST_WORKER_ADDITIONAL_WAIT_BEFORE_READY_AFTER_STOP";
    struct str value = env_value(envp, name);
    if (!value.ptr || num_parse_u64(str_trim(value), OPTIONS_MAX_READY_S, &p->o->ready_wait_s) == 0)
        return 0;
    return bad_value(p, name, "a number of seconds", value);
}

static int layer_environment(struct parse *p, char *const envp[])
{
    p->layer = 2;
    for (size_t i = 0; i < flag_count; i++) {
        const char *name = flag_table[i].env;
        struct str value = name ? env_value(envp, name) : (struct str){NULL, 0};
        int rc = value.ptr ? set_from_text(p, &flag_table[i], name, value) : 0;
        if (rc < 0)
            return rc;
    }
    int rc = env_ready_wait(p, envp);
    return rc < 0 ? rc : env_user_classes(p, envp);
}

static int unknown_key(struct parse *p, const char *where, struct str key)
{
    const struct flag *nearest = flag_nearest(key);
    return err_set(p->err, -EINVAL, "%s: unknown key %s%s%s%s", where, log_quote(key, p->quoted),
                   nearest ? ": did you mean '" : "", nearest ? nearest->name + 2 : "",
                   nearest ? "'?" : "");
}

static int set_item(struct parse *p, const struct options_file *file, unsigned line,
                    const struct config_item *item)
{
    char where[ERR_TEXT_BYTES];
    const struct flag *f = flag_find_key(item->key);
    (void)snprintf(where, sizeof where, "%s:%u", file->name, line); /* a long name is cut */
    if (!f)
        return unknown_key(p, where, item->key);
    (void)snprintf(where, sizeof where, "%s:%u: %s", file->name, line, f->name + 2);
    if (str_eq(str_of(f->name), STR("--config")))
        return mention(p, f, where, "has no meaning inside a configuration file");
    struct str v = item->value;
    bool list = v.len > 1 && v.ptr[0] == '[' && v.ptr[v.len - 1] == ']';
    if (list && f->kind != FLAG_LIST && f->kind != FLAG_REPEATED && f->use == FLAG_USED)
        return bad_value(p, where, "one value", v);
    return set_from_text(p, f, where, v);
}

static int layer_file(struct parse *p, const struct options_file *file)
{
    struct config_reader reader;
    struct config_item item;
    struct err err = {0};
    p->layer++;
    if (str_find(file->text, '\0') < file->text.len)
        return err_set(p->err, -EINVAL, "%s: is not a text file", file->name);
    config_reader_init(&reader, file->text, str_ends(str_of(file->name), STR(".toml")));
    while (config_next(&reader, &item, &err)) {
        int rc = set_item(p, file, reader.line, &item);
        if (rc < 0)
            return rc;
    }
    if (err.code < 0)
        return err_set(p->err, err.code, "%s:%u: %s", file->name, reader.line, err.text);
    return 0;
}

/* --- the whole -----------------------------------------------------------------------------------
 */

static bool set_by_command_line(const struct parse *p, const char *name)
{
    return p->set_by[index_of(flag_find(str_of(name)))] == 1;
}

static int check_scenario(struct parse *p)
{
    struct options *o = p->o;
    struct str file = str_of(o->scenario_file);
    if (o->url && o->scenario_file && set_by_command_line(p, "--locustfile"))
        return err_set(p->err, -EINVAL, "give a scenario file (-f) or a URL, not both");
    if (o->url) {
        o->scenario_file =
            NULL; /* a URL on the command line wins over what a file or variable says */
        return 0;
    }
    if (!o->scenario_file && o->user_classes.count > 0)
        return err_set(p->err, -EINVAL,
                       "nothing to run: '%s' is taken for a user class; a scenario file needs -f "
                       "before it, a URL its http://",
                       o->user_classes.items[0].ptr);
    if (!o->scenario_file)
        return err_set(p->err, -EINVAL, "nothing to run: give a scenario file (-f FILE) or a URL");
    o->from_master = str_eq(file, STR("-"));
    if (o->from_master && !o->worker)
        return err_set(p->err, -EINVAL,
                       "-f -: takes the scenario from a master, and a headless run has none: name "
                       "a file");
    if (str_find_str(file, STR("://")) < file.len)
        return err_set(p->err, -EINVAL,
                       "-f: must be a file, not %s: a URL to load is given without -f",
                       log_quote(file, p->quoted));
    if (str_find(file, ',') < file.len) /* Locust's way to name several */
        return err_set(p->err, -EINVAL,
                       "-f: must be one file, not %s: put all user classes into one scenario",
                       log_quote(file, p->quoted));
    return 0;
}

static unsigned layer_of(const struct parse *p, const char *name)
{
    return p->set_by[index_of(flag_find(str_of(name)))];
}

/* The weightier layer decides between a flag and its opposite. */
static int check_facts(struct parse *p)
{
    struct options *o = p->o;
    if (!o->cluster_facts || !o->no_cluster_facts)
        return 0;
    unsigned on = layer_of(p, "--cluster-facts"), off = layer_of(p, "--no-cluster-facts");
    if (on == off)
        return err_set(p->err, -EINVAL, "give --cluster-facts or --no-cluster-facts, not both");
    o->cluster_facts = on < off;
    o->no_cluster_facts = off < on;
    return 0;
}

static int check_report(struct parse *p)
{
    struct options *o = p->o;
    enum leader_role role;
    if (!o->report)
        o->report = DEFAULT_REPORT;
    if (!o->telemetry_profile)
        o->telemetry_profile = DEFAULT_PROFILE;
    if (!leader_role_parse(str_of(o->report), &role))
        return bad_value(p, "--report", "auto, always or never", str_of(o->report));
    if (o->telemetry_lag_s != OPTIONS_OWN_LAG && o->telemetry_lag_s > PROFILE_LAG_MAX_S)
        return err_set(p->err, -EINVAL, "--telemetry-lag: must be at most %d seconds",
                       PROFILE_LAG_MAX_S);
    return check_facts(p);
}

/* "http://host:5557" and "host:5557" would be looked up as names, for as long as a master is waited
 * for. */
static int check_addresses(struct parse *p)
{
    struct options *o = p->o;
    struct str host = str_of(o->master_host);
    uint64_t port;
    size_t colon = str_find(host, ':');
    if (str_find_str(host, STR("://")) < host.len ||
        (colon < host.len &&
         num_parse_u64(str_sub(host, colon + 1, host.len), UINT16_MAX, &port) == 0))
        return err_set(p->err, -EINVAL,
                       "--master-host: give the name or address alone, and the port by "
                       "--master-port, not '%s'",
                       o->master_host);
    for (size_t i = 0; i < o->source_addresses.count; i++) {
        struct in6_addr any;
        const char *text = o->source_addresses.items[i].ptr;
        if (inet_pton(AF_INET, text, &any) != 1 && inet_pton(AF_INET6, text, &any) != 1)
            return err_set(p->err, -EINVAL, "--source-address: '%s' is no IPv4 or IPv6 address",
                           text);
    }
    return 0;
}

/* The URL itself is not shown: it may hold a password. */
static int check_proxy(struct parse *p)
{
    struct url parts;
    struct err why = {0};
    if (p->o->proxy && url_parse_proxy(str_of(p->o->proxy), &parts, &why) < 0)
        return err_set(p->err, -EINVAL, "--proxy: the URL %s", why.text);
    return 0;
}

/* Without -f the first user class is no class but the scenario. */
static void name_scenario(struct parse *p)
{
    struct options *o = p->o;
    struct options_list *words = &o->user_classes;
    if (o->url || words->count == 0 || set_by_command_line(p, "--locustfile"))
        return;
    o->scenario_file = words->items[0].ptr;
    words->count--;
    memmove(words->items, words->items + 1, words->count * sizeof *words->items);
}

static int check(struct parse *p)
{
    struct options *o = p->o;
    if (options_ask(o) && !o->calibrate) {
        o->worker = false;
        o->headless = true;
    }
    if (layer_of(p, "--autoquit") && !layer_of(p, "--autostart"))
        return err_set(p->err, -EINVAL,
                       "--autoquit is only meaningful in combination with --autostart");
    if (!o->worker && !o->headless && !o->calibrate)
        return err_set(p->err, -EINVAL,
                       "give --headless to make the load from here, or --worker (and "
                       "--master-host) to attach to a Locust master; --help tells more");
    if (!o->master_host)
        return err_set(p->err, -EINVAL, "--master-host: must not be empty");
    int rc = check_addresses(p);
    if (rc < 0)
        return rc;
    if (!o->engine)
        return err_set(p->err, -EINVAL, "--engine: must not be empty");
    if (strcmp(o->engine, "auto") != 0 && strcmp(o->engine, "fast") != 0 &&
        strcmp(o->engine, "curl") != 0)
        return err_set(p->err, -EINVAL, "--engine: must be auto, fast or curl, not '%s'",
                       o->engine);
    rc = check_proxy(p);
    if (rc < 0)
        return rc;
    if (o->threads == 0 && o->processes > 0)
        o->threads = o->processes;
    if (o->csv_full_history && !o->csv_prefix && !o->worker && !o->calibrate)
        return err_set(p->err, -EINVAL, "'--csv-full-history' requires '--csv'.");
    if (o->calibrate) {
        o->worker = o->headless = false; /* an environment's */
        name_scenario(p);
    }
    rc = check_scenario(p);
    return rc < 0 ? rc : tell(p);
}

static void begin(struct parse *p, struct options *o, struct err *err)
{
    *o = (struct options){.master_host = "127.0.0.1",
                          .master_port = DEFAULT_MASTER_PORT,
                          .master_timeout_s = DEFAULT_MASTER_TIMEOUT_S,
                          .metrics_port = -1,
                          .users = -1,
                          .exit_code_on_error = 1,
                          .engine = "auto",
                          .report = DEFAULT_REPORT,
                          .actors_per_user = 1,
                          .telemetry_profile = DEFAULT_PROFILE,
                          .telemetry_lag_s = OPTIONS_OWN_LAG,
                          .log_level = LOG_INFO};
    *p = (struct parse){.o = o, .err = err};
}

static int end(struct parse *p, int rc)
{
    if (rc == 0 && !p->o->help && !p->o->version)
        rc = check_report(p);
    if (rc == 0 && !p->o->help && !p->o->version && (!p->command || p->o->calibrate))
        rc = check(p);
    if (rc < 0)
        options_done(p->o);
    return rc;
}

int options_parse(char *const argv[], char *const envp[], const struct options_file *files,
                  size_t file_count, struct options *ret, struct err *err)
{
    struct parse p;
    begin(&p, ret, err);
    int rc = layer_arguments(&p, argv);
    if (rc == 0 && !ret->help && !ret->version) {
        rc = layer_environment(&p, envp);
        for (size_t i = file_count; rc == 0 && i > 0; i--)
            rc = layer_file(&p, &files[i - 1]);
    }
    return end(&p, rc);
}

/* Read and apply one file; one of the standard ones need not exist. */
static int layer_path(struct parse *p, struct str home, const char *name, bool standard)
{
    struct buf path, text;
    buf_init(&path, OPTIONS_MAX_FILE_BYTES);
    buf_init(&text, OPTIONS_MAX_FILE_BYTES);
    struct err err = {0};
    int rc = 0;
    if (name[0] == '~' && name[1] == '/' && home.len > 0) {
        rc = buf_add(&path, home);
        name++;
    }
    if (rc == 0)
        rc = buf_add(&path, str_of(name));
    if (rc == 0)
        rc = buf_read_file(&text, buf_c(&path), &err);
    else
        err_set(&err, rc, "a configuration file's name: %s", strerror(-rc));
    if (rc == 0) {
        struct options_file file = {buf_c(&path), buf_str(&text)};
        rc = layer_file(p, &file);
    } else if (standard && access(buf_c(&path), F_OK) < 0) {
        rc = 0; /* also when it is in somebody else's home */
    } else {
        err_set(p->err, rc, "%s", err.text);
    }
    buf_done(&text);
    buf_done(&path);
    return rc;
}

static int read_all(struct parse *p, char *const argv[], char *const envp[])
{
    static const char *const standard[] = {"pyproject.toml", "locust.conf", "~/.locust.conf"};
    struct str home = env_value(envp, "HOME");
    int rc = layer_arguments(p, argv);
    if (rc == 0 && !p->o->help && !p->o->version) {
        rc = layer_environment(p, envp);
        if (rc == 0 && p->o->config_file)
            rc = layer_path(p, home, p->o->config_file, false);
        for (size_t i = 0; rc == 0 && i < sizeof standard / sizeof *standard; i++)
            rc = layer_path(p, home, standard[i], true);
    }
    return end(p, rc);
}

int options_read(char *const argv[], char *const envp[], struct options *ret, struct err *err)
{
    struct parse p;
    begin(&p, ret, err);
    return read_all(&p, argv, envp);
}

int options_read_command(char *const argv[], char *const envp[], struct options *ret,
                         struct err *err)
{
    struct parse p;
    begin(&p, ret, err);
    p.command = true;
    return read_all(&p, argv, envp);
}

int options_read_calibrate(char *const argv[], char *const envp[], struct options *ret,
                           struct err *err)
{
    struct parse p;
    begin(&p, ret, err);
    p.command = ret->calibrate = true;
    return read_all(&p, argv, envp);
}

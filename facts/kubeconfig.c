/* Each file stays the tree that libyaml made of it, and a login is looked up in the trees, so that
 * merging copies nothing and entries nobody asked for need not be right. In a tree an alias is
 * another way to the same node: it costs nothing to follow and cannot multiply. A first pass over
 * the events bounds depth and counts before a tree is built. */
#include "facts/kubeconfig.h"

#include "base/buf.h"
#include "base/log.h"

#include <stdlib.h>
#include <yaml.h>

struct kubeconfig_file {
    yaml_document_t document;
    char *path;
    struct str folder; /* of path, without the last slash unless it is the root; may be empty */
};

/* --- reading ------------------------------------------------------------------------------------
 */

static int yaml_failed(const yaml_parser_t *parser, const char *path, struct err *err)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return err_set(err, -ENOMEM, "%s: out of memory", path);
    return err_set(err, -EPROTO, "%s: line %zu: %s", path, parser->problem_mark.line + 1,
                   parser->problem ? parser->problem : "not YAML");
}

static int check_event(const yaml_event_t *event, unsigned *depth, unsigned *aliases,
                       const char *path, struct err *err)
{
    size_t line = event->start_mark.line + 1;
    switch (event->type) {
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        if (++*depth > KUBECONFIG_DEPTH_MAX)
            return err_set(err, -EPROTO, "%s: line %zu: nested too deeply", path, line);
        return 0;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        --*depth;
        return 0;
    case YAML_ALIAS_EVENT:
        if (++*aliases > KUBECONFIG_ALIASES_MAX)
            return err_set(err, -EPROTO, "%s: line %zu: too many aliases", path, line);
        return 0;
    default:
        return 0;
    }
}

/* The first document's events, with nothing built of them. */
static int check_bounds(struct str text, const char *path, struct err *err)
{
    yaml_parser_t parser;
    int rc = 0;
    bool end = false;
    unsigned depth = 0, aliases = 0, events = 0;
    if (!yaml_parser_initialize(&parser))
        return err_set(err, -ENOMEM, "%s: out of memory", path);
    yaml_parser_set_input_string(&parser, (const unsigned char *)(text.len ? text.ptr : ""),
                                 text.len);
    while (rc == 0 && !end) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            rc = yaml_failed(&parser, path, err);
            break;
        }
        rc = check_event(&event, &depth, &aliases, path, err);
        if (rc == 0 && ++events > KUBECONFIG_EVENTS_MAX)
            rc = err_set(err, -EPROTO, "%s: too many entries", path);
        end = event.type == YAML_DOCUMENT_END_EVENT || event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return rc;
}

static int load(struct str text, yaml_document_t *ret, const char *path, struct err *err)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return err_set(err, -ENOMEM, "%s: out of memory", path);
    yaml_parser_set_input_string(&parser, (const unsigned char *)(text.len ? text.ptr : ""),
                                 text.len);
    int rc = yaml_parser_load(&parser, ret) ? 0 : yaml_failed(&parser, path, err);
    yaml_parser_delete(&parser);
    return rc;
}

static void file_free(struct kubeconfig_file *f)
{
    if (!f)
        return;
    yaml_document_delete(&f->document);
    free(f->path);
    free(f);
}

static struct str folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return (struct str){NULL, 0};
    return (struct str){path, slash == path ? 1 : (size_t)(slash - path)};
}

int kubeconfig_add(struct kubeconfig *k, struct str text, const char *path, struct err *err)
{
    if (text.len > KUBECONFIG_FILE_BYTES)
        return err_set(err, -ERANGE, "%s: larger than %u bytes", path, KUBECONFIG_FILE_BYTES);
    if (k->count == KUBECONFIG_FILES_MAX)
        return err_set(err, -ERANGE, "%s: more than %d files", path, KUBECONFIG_FILES_MAX);
    int rc = check_bounds(text, path, err);
    if (rc < 0)
        return rc;
    struct kubeconfig_file *f = calloc(1, sizeof *f);
    if (!f || !(f->path = strdup(path))) {
        free(f);
        return err_set(err, -ENOMEM, "%s: out of memory", path);
    }
    f->folder = folder_of(f->path);
    rc = load(text, &f->document, path, err);
    if (rc < 0) { /* libyaml has deleted the document */
        free(f->path);
        free(f);
        return rc;
    }
    yaml_node_t *root = yaml_document_get_root_node(&f->document);
    if (root && root->type != YAML_MAPPING_NODE) {
        file_free(f);
        return err_set(err, -EPROTO, "%s: not a mapping", path);
    }
    if (!root) { /* an empty file says nothing, as kubectl has it */
        file_free(f);
        return 0;
    }
    k->file[k->count++] = f;
    return 0;
}

void kubeconfig_done(struct kubeconfig *k)
{
    for (size_t i = 0; i < k->count; i++)
        file_free(k->file[i]);
    *k = (struct kubeconfig){0};
}

/* --- looking up ---------------------------------------------------------------------------------
 */

/* A mapping within a file, and how messages call it: "FILE" or "FILE: user 'NAME'". */
struct entry {
    struct kubeconfig_file *file;
    yaml_node_t *node;
    const char *from;
};

static struct str scalar_text(const yaml_node_t *node)
{
    return (struct str){(const char *)node->data.scalar.value, node->data.scalar.length};
}

static bool is_null(const yaml_node_t *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++) {
        if (str_eq(scalar_text(node), str_of(nulls[i])))
            return true;
    }
    return false;
}

/* The value of a key; NULL when it is absent or null. -EPROTO when the key is there twice. */
static int find(const struct entry *e, const char *key, yaml_node_t **ret, struct err *err)
{
    yaml_node_t *found = NULL;
    for (yaml_node_pair_t *p = e->node->data.mapping.pairs.start;
         p < e->node->data.mapping.pairs.top; p++) {
        yaml_node_t *k = yaml_document_get_node(&e->file->document, p->key);
        if (!k || k->type != YAML_SCALAR_NODE || !str_eq(scalar_text(k), str_of(key)))
            continue;
        if (found)
            return err_set(err, -EPROTO, "%s: %s is there twice", e->from, key);
        found = yaml_document_get_node(&e->file->document, p->value);
    }
    *ret = found && !is_null(found) ? found : NULL;
    return 0;
}

/* The same for a mapping or a sequence. */
static int find_typed(const struct entry *e, const char *key, yaml_node_type_t type,
                      yaml_node_t **ret, struct err *err)
{
    int rc = find(e, key, ret, err);
    if (rc == 0 && *ret && (*ret)->type != type)
        rc = err_set(err, -EPROTO, "%s: %s is not a %s", e->from, key,
                     type == YAML_MAPPING_NODE ? "mapping" : "list");
    return rc;
}

static int copy_text(const struct entry *e, const yaml_node_t *node, const char *key, char **ret,
                     struct err *err)
{
    if (node->type != YAML_SCALAR_NODE)
        return err_set(err, -EPROTO, "%s: %s is not a text", e->from, key);
    struct str text = scalar_text(node);
    if (str_find(text, '\0') < text.len)
        return err_set(err, -EPROTO, "%s: %s holds a NUL", e->from, key);
    char *copy = strndup(text.ptr, text.len);
    if (!copy)
        return err_set(err, -ENOMEM, "%s: out of memory", e->from);
    *ret = copy;
    return 0;
}

/* *ret stays when the key is absent, null or empty. */
static int take_text(const struct entry *e, const char *key, char **ret, struct err *err)
{
    yaml_node_t *node;
    int rc = find(e, key, &node, err);
    if (rc < 0 || !node || (node->type == YAML_SCALAR_NODE && node->data.scalar.length == 0))
        return rc;
    return copy_text(e, node, key, ret, err);
}

/* A path, seen from the folder of the file. */
static int take_path(const struct entry *e, const char *key, char **ret, struct err *err)
{
    char *path = NULL;
    int rc = take_text(e, key, &path, err);
    if (rc < 0 || !path || path[0] == '/' || e->file->folder.len == 0) {
        if (path)
            *ret = path;
        return rc;
    }
    struct buf joined;
    buf_init(&joined, KUBECONFIG_FILE_BYTES);
    rc = buf_printf(&joined, "%.*s/%s", STR_ARG(e->file->folder), path);
    free(path);
    if (rc < 0) {
        buf_done(&joined);
        return err_set(err, rc, "%s: %s cannot be joined", e->from, key);
    }
    *ret = buf_take(&joined);
    return 0;
}

static int take_bool(const struct entry *e, const char *key, bool *ret, struct err *err)
{
    static const struct {
        const char *text;
        bool value;
    } words[] = {{"true", true},   {"yes", true}, {"on", true},
                 {"false", false}, {"no", false}, {"off", false}};
    yaml_node_t *node;
    int rc = find(e, key, &node, err);
    if (rc < 0 || !node)
        return rc;
    for (size_t i = 0; node->type == YAML_SCALAR_NODE && i < sizeof words / sizeof *words; i++) {
        if (str_eq_nocase(scalar_text(node), str_of(words[i].text))) {
            *ret = words[i].value;
            return 0;
        }
    }
    return err_set(err, -EPROTO, "%s: %s is neither true nor false", e->from, key);
}

/* What shall not be passed over, because it would change who asks. */
static int refuse_key(const struct entry *e, const char *key, const char *why, struct err *err)
{
    yaml_node_t *node;
    int rc = find(e, key, &node, err);
    return rc == 0 && node ? err_set(err, -EPROTO, "%s: %s is not supported%s", e->from, key, why)
                           : rc;
}

/* --- named entries ------------------------------------------------------------------------------
 */

/* Which list an entry stands in, and the key of its contents. */
struct shelf {
    const char *list, *inner;
};

static const struct shelf contexts = {"contexts", "context"};
static const struct shelf clusters = {"clusters", "cluster"};
static const struct shelf users = {"users", "user"};

/* Look for a named entry in one file; NULL when it has none. */
static int find_in_file(struct kubeconfig_file *f, const struct shelf *shelf, const char *name,
                        yaml_node_t **ret, struct err *err)
{
    struct entry top = {f, yaml_document_get_root_node(&f->document), f->path};
    yaml_node_t *list, *found = NULL;
    int rc = find_typed(&top, shelf->list, YAML_SEQUENCE_NODE, &list, err);
    if (rc < 0 || !list) {
        *ret = NULL;
        return rc;
    }
    for (yaml_node_item_t *i = list->data.sequence.items.start;
         rc == 0 && i < list->data.sequence.items.top; i++) {
        struct entry item = {f, yaml_document_get_node(&f->document, *i), f->path};
        yaml_node_t *n = NULL;
        if (!item.node || item.node->type != YAML_MAPPING_NODE)
            return err_set(err, -EPROTO, "%s: an element of %s is not a mapping", f->path,
                           shelf->list);
        rc = find(&item, "name", &n, err);
        if (rc < 0 || !n || n->type != YAML_SCALAR_NODE || !str_eq(scalar_text(n), str_of(name)))
            continue;
        char quoted[LOG_QUOTED_BYTES];
        if (found)
            return err_set(err, -EPROTO, "%s: %s %s is there twice", f->path, shelf->inner,
                           log_quote(str_of(name), quoted));
        rc = find_typed(&item, shelf->inner, YAML_MAPPING_NODE, &found, err);
        if (rc == 0 && !found)
            rc = err_set(err, -EPROTO, "%s: %s %s is empty", f->path, shelf->inner,
                         log_quote(str_of(name), quoted));
    }
    *ret = found;
    return rc;
}

/* The entry of the first file that has it. ret->from is new memory, also given to *ret_from. */
static int find_entry(struct kubeconfig *k, const struct shelf *shelf, const char *name,
                      struct entry *ret, char **ret_from, struct err *err)
{
    char quoted[LOG_QUOTED_BYTES];
    log_quote(str_of(name), quoted);
    for (size_t i = 0; i < k->count; i++) {
        yaml_node_t *node = NULL;
        int rc = find_in_file(k->file[i], shelf, name, &node, err);
        if (rc < 0)
            return rc;
        if (!node)
            continue;
        struct buf from;
        buf_init(&from, KUBECONFIG_FILE_BYTES);
        rc = buf_printf(&from, "%s: %s %s", k->file[i]->path, shelf->inner, quoted);
        if (rc < 0) {
            buf_done(&from);
            return err_set(err, rc, "%s: out of memory", k->file[i]->path);
        }
        *ret_from = buf_take(&from);
        *ret = (struct entry){k->file[i], node, *ret_from};
        return 0;
    }
    return err_set(err, -ENOENT, "%s%s: no %s %s", k->count ? k->file[0]->path : "kubeconfig",
                   k->count > 1 ? " and the files after it" : "", shelf->inner, quoted);
}

/* --- plugins ------------------------------------------------------------------------------------
 */

static int list_size(const struct entry *e, const yaml_node_t *list, const char *key, size_t *ret,
                     struct err *err)
{
    size_t n = (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
    if (n > KUBECONFIG_LIST_MAX)
        return err_set(err, -EPROTO, "%s: %s has more than %d elements", e->from, key,
                       KUBECONFIG_LIST_MAX);
    *ret = n;
    return 0;
}

static int take_args(const struct entry *e, struct kube_exec *x, struct err *err)
{
    yaml_node_t *list;
    size_t n = 0;
    int rc = find_typed(e, "args", YAML_SEQUENCE_NODE, &list, err);
    if (rc < 0 || !list || (rc = list_size(e, list, "args", &n, err)) < 0)
        return rc;
    x->args = calloc(n + 1, sizeof *x->args);
    if (!x->args)
        return err_set(err, -ENOMEM, "%s: out of memory", e->from);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        yaml_node_t *node =
            yaml_document_get_node(&e->file->document, list->data.sequence.items.start[i]);
        rc = copy_text(e, node, "an element of args", &x->args[i], err);
        x->arg_count += rc == 0;
    }
    return rc;
}

static int take_variable(const struct entry *e, struct kube_variable *v, struct err *err)
{
    if (!e->node || e->node->type != YAML_MAPPING_NODE)
        return err_set(err, -EPROTO, "%s: an element of env is not a mapping", e->from);
    int rc = take_text(e, "name", &v->name, err);
    if (rc == 0)
        rc = take_text(e, "value", &v->value, err);
    if (rc == 0 && (!v->name || strchr(v->name, '=')))
        rc = err_set(err, -EPROTO, "%s: an element of env has no usable name", e->from);
    return rc;
}

static int take_env(const struct entry *e, struct kube_exec *x, struct err *err)
{
    yaml_node_t *list;
    size_t n = 0;
    int rc = find_typed(e, "env", YAML_SEQUENCE_NODE, &list, err);
    if (rc < 0 || !list || (rc = list_size(e, list, "env", &n, err)) < 0)
        return rc;
    x->env = calloc(n + 1, sizeof *x->env);
    if (!x->env)
        return err_set(err, -ENOMEM, "%s: out of memory", e->from);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct entry item = {
            e->file, yaml_document_get_node(&e->file->document, list->data.sequence.items.start[i]),
            e->from};
        x->env_count++; /* what it holds is freed even when it is half made */
        rc = take_variable(&item, &x->env[i], err);
    }
    return rc;
}

static int take_exec(const struct entry *user, struct kube_exec *x, struct err *err)
{
    struct entry e = {user->file, NULL, user->from};
    int rc = find_typed(user, "exec", YAML_MAPPING_NODE, &e.node, err);
    if (rc < 0 || !e.node)
        return rc;
    char *mode = NULL;
    rc = take_text(&e, "command", &x->command, err);
    if (rc == 0 && x->command && strchr(x->command, '/')) { /* a path, not a name to look up */
        free(x->command);
        x->command = NULL;
        rc = take_path(&e, "command", &x->command, err);
    }
    if (rc == 0)
        rc = take_text(&e, "apiVersion", &x->api_version, err);
    if (rc == 0 && !x->command)
        rc = err_set(err, -EPROTO, "%s: exec has no command", e.from);
    if (rc == 0 && !x->api_version)
        rc = err_set(err, -EPROTO, "%s: exec has no apiVersion", e.from);
    if (rc == 0)
        rc = take_args(&e, x, err);
    if (rc == 0)
        rc = take_env(&e, x, err);
    if (rc == 0)
        rc = take_bool(&e, "provideClusterInfo", &x->provide_cluster_info, err);
    if (rc == 0)
        rc = take_text(&e, "interactiveMode", &mode, err);
    x->needs_terminal = mode && strcmp(mode, "Always") == 0;
    free(mode);
    return rc;
}

/* --- logins -------------------------------------------------------------------------------------
 */

static int take_cluster(const struct entry *e, struct kube_login *l, struct err *err)
{
    int rc = take_text(e, "server", &l->server, err);
    if (rc == 0)
        rc = take_path(e, "certificate-authority", &l->ca_file, err);
    if (rc == 0)
        rc = take_text(e, "certificate-authority-data", &l->ca_data, err);
    if (rc == 0)
        rc = take_text(e, "tls-server-name", &l->server_name, err);
    if (rc == 0)
        rc = take_text(e, "proxy-url", &l->proxy_url, err);
    if (rc == 0)
        rc = take_bool(e, "insecure-skip-tls-verify", &l->insecure, err);
    if (rc == 0 && !l->server)
        rc = err_set(err, -EPROTO, "%s: no server", e->from);
    return rc;
}

static int take_user(const struct entry *e, struct kube_login *l, struct err *err)
{
    const struct {
        const char *key;
        bool is_path;
        char **ret;
    } texts[] = {
        {"token", false, &l->token},
        {"tokenFile", true, &l->token_file},
        {"client-certificate", true, &l->cert_file},
        {"client-certificate-data", false, &l->cert_data},
        {"client-key", true, &l->key_file},
        {"client-key-data", false, &l->key_data},
        {"username", false, &l->username},
        {"password", false, &l->password},
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof texts / sizeof *texts; i++)
        rc = (texts[i].is_path ? take_path : take_text)(e, texts[i].key, texts[i].ret, err);
    if (rc == 0)
        rc = take_exec(e, &l->exec, err);
    if (rc == 0)
        rc = refuse_key(e, "as", " (impersonation)", err);
    if (rc == 0)
        rc = refuse_key(e, "auth-provider", ": use an exec plugin", err);
    bool cert = l->cert_file || l->cert_data, key = l->key_file || l->key_data;
    if (rc == 0 && cert != key)
        rc = err_set(err, -EPROTO, "%s: %s", e->from,
                     cert ? "client-certificate without client-key"
                          : "client-key without client-certificate");
    if (rc == 0 && l->token && (l->username || l->password))
        rc = err_set(err, -EPROTO, "%s: token and password, only one is allowed", e->from);
    return rc;
}

static int current_context(struct kubeconfig *k, char **ret, struct err *err)
{
    for (size_t i = 0; i < k->count && !*ret; i++) {
        struct kubeconfig_file *f = k->file[i];
        struct entry top = {f, yaml_document_get_root_node(&f->document), f->path};
        int rc = take_text(&top, "current-context", ret, err);
        if (rc < 0)
            return rc;
    }
    return *ret ? 0
                : err_set(err, -ENOENT, "%s: no current-context",
                          k->count ? k->file[0]->path : "kubeconfig");
}

/* A name within the context, then the entry of that name; ret->node is NULL without a name. */
static int follow(struct kubeconfig *k, const struct entry *context, const struct shelf *shelf,
                  struct entry *ret, char **ret_from, struct err *err)
{
    char *name = NULL;
    ret->node = NULL;
    int rc = take_text(context, shelf->inner, &name, err);
    if (rc == 0 && name)
        rc = find_entry(k, shelf, name, ret, ret_from, err);
    free(name);
    return rc;
}

int kubeconfig_login(struct kubeconfig *k, const char *context, struct kube_login *ret,
                     struct err *err)
{
    struct kube_login l = {0};
    struct entry at_context, cluster, user;
    char *from = NULL;
    int rc = 0;
    if (!context)
        rc = current_context(k, &l.context, err);
    else if (!(l.context = strdup(context)))
        rc = err_set(err, -ENOMEM, "kubeconfig: out of memory");
    if (rc == 0)
        rc = find_entry(k, &contexts, l.context, &at_context, &from, err);
    if (rc == 0)
        rc = follow(k, &at_context, &clusters, &cluster, &l.cluster_from, err);
    if (rc == 0 && !cluster.node)
        rc = err_set(err, -EPROTO, "%s: no cluster", from);
    if (rc == 0)
        rc = take_cluster(&cluster, &l, err);
    if (rc == 0)
        rc = follow(k, &at_context, &users, &user, &l.user_from, err);
    if (rc == 0 && user.node) /* without one the server sees an anonymous caller */
        rc = take_user(&user, &l, err);
    free(from);
    if (rc < 0)
        kube_login_done(&l);
    else
        *ret = l;
    return rc;
}

static void free_secret(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void kube_login_done(struct kube_login *l)
{
    char *plain[] = {l->context,      l->cluster_from,    l->user_from,   l->server,
                     l->ca_file,      l->ca_data,         l->server_name, l->token_file,
                     l->cert_file,    l->cert_data,       l->key_file,    l->username,
                     l->exec.command, l->exec.api_version};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        free(plain[i]);
    free_secret(l->proxy_url);
    free_secret(l->token);
    free_secret(l->key_data);
    free_secret(l->password);
    for (size_t i = 0; i < l->exec.arg_count; i++)
        free_secret(l->exec.args[i]);
    for (size_t i = 0; i < l->exec.env_count; i++) {
        free(l->exec.env[i].name);
        free_secret(l->exec.env[i].value);
    }
    free(l->exec.args);
    free(l->exec.env);
    *l = (struct kube_login){0};
}

/* A step is an object with one action ("get": "/path") and the options of that action beside it.
 * Its keys may come in any order, so they are gathered in a draft first. */
#include "worker/scenario/load.h"
#include "worker/scenario/url.h"

#include "base/log.h"

struct draft {
    const struct node *action; /* the key that says what the step does */
    const struct node *method, *name, *body, *json, *headers;
    struct plan_request request;
};

/* --- the keys --- */

static int read_action(struct loader *l, const struct node *n, void *target)
{
    struct draft *d = target;
    if (d->action)
        return load_fail(l, n, "a step does one thing, and this one has '%.*s' already",
                         STR_ARG(d->action->key));
    d->action = n;
    return 0;
}

static int read_method(struct loader *l, const struct node *n, void *target)
{
    (void)l;
    ((struct draft *)target)->method = n;
    return 0;
}

static int read_name(struct loader *l, const struct node *n, void *target)
{
    struct draft *d = target;
    d->name = n;
    return load_name(l, n, &d->request.name);
}

static int read_headers(struct loader *l, const struct node *n, void *target)
{
    ((struct draft *)target)->headers = n;
    if (n->kind != NODE_OBJECT)
        return load_fail(l, n, "must be an object of names and values, not %s",
                         node_kind_name(n->kind));
    if (n->child_count > PLAN_MAX_HEADERS)
        return load_fail(l, n, "must not have more than %d headers", PLAN_MAX_HEADERS);
    return 0;
}

static int read_body(struct loader *l, const struct node *n, void *target)
{
    struct draft *d = target;
    d->body = n;
    if (d->json)
        return load_fail(l, n, "'body' and 'json' exclude each other");
    if (n->kind != NODE_STRING)
        return load_fail(l, n, "must be a string, not %s; for a JSON value write 'json'",
                         node_kind_name(n->kind));
    return load_text(l, n, &d->request.body);
}

static int read_json(struct loader *l, const struct node *n, void *target)
{
    struct draft *d = target;
    d->json = n;
    if (d->body)
        return load_fail(l, n, "'body' and 'json' exclude each other");
    struct buf text;
    buf_init(&text, (size_t)PLAN_MAX_FILE_BYTES * 6); /* a byte becomes at most "\u00xx" */
    int rc = node_write_json(n, &text);
    if (rc == 0)
        d->request.body = arena_copy(l->memory, buf_str(&text));
    buf_done(&text);
    return rc == 0 && !d->request.body.ptr ? -ENOMEM : rc;
}

static int read_status(struct loader *l, const struct node *n, uint16_t *ret)
{
    uint32_t status;
    int rc = load_whole(l, n, 100, 599, &status);
    if (rc == 0)
        *ret = (uint16_t)status;
    return rc;
}

static int read_expect(struct loader *l, const struct node *n, void *target)
{
    struct draft *d = target;
    bool is_list = n->kind == NODE_LIST;
    int rc = is_list ? load_list(l, n, PLAN_MAX_STATUSES, "status codes") : 0;
    if (rc < 0)
        return rc;
    size_t count = is_list ? n->child_count : 1;
    uint16_t *statuses = ARENA_ARRAY(l->memory, uint16_t, count);
    if (!statuses)
        return -ENOMEM;
    const struct node *one = is_list ? n->first : n;
    for (size_t i = 0; rc == 0 && i < count; i++, one = one->next)
        rc = read_status(l, one, &statuses[i]);
    d->request.expected_status = statuses;
    d->request.expected_status_count = count;
    return rc;
}

static int read_limit(struct loader *l, const struct node *n, uint64_t *ret_us)
{
    return load_seconds(l, n, PLAN_MIN_TIMEOUT_S, PLAN_MAX_TIMEOUT_S, ret_us);
}

static int read_connect_limit(struct loader *l, const struct node *n, void *target)
{
    return read_limit(l, n, &((struct plan_timeouts *)target)->connect_us);
}

static int read_first_byte_limit(struct loader *l, const struct node *n, void *target)
{
    return read_limit(l, n, &((struct plan_timeouts *)target)->first_byte_us);
}

static int read_total_limit(struct loader *l, const struct node *n, void *target)
{
    return read_limit(l, n, &((struct plan_timeouts *)target)->total_us);
}

static const struct load_key timeout_keys[] = {
    {.name = "connect", .read = read_connect_limit},
    {.name = "first_byte", .read = read_first_byte_limit, .also = "read ttfb"},
    {.name = "total", .read = read_total_limit, .also = "whole request"},
};

static int read_timeout(struct loader *l, const struct node *n, void *target)
{
    struct plan_timeouts *timeouts = &((struct draft *)target)->request.timeouts;
    if (n->kind == NODE_OBJECT)
        return load_object(l, n, "timeout", KEYS(timeout_keys), timeouts);
    return read_limit(l, n, &timeouts->total_us);
}

static int read_redirects(struct loader *l, const struct node *n, void *target)
{
    return load_bool(l, n, &((struct draft *)target)->request.follow_redirects);
}

static const struct load_key step_keys[] = {
    {.name = "get", .read = read_action, .also = "url path uri"},
    {.name = "post", .read = read_action},
    {.name = "put", .read = read_action},
    {.name = "patch", .read = read_action},
    {.name = "delete", .read = read_action},
    {.name = "head", .read = read_action},
    {.name = "options", .read = read_action},
    {.name = "request", .read = read_action},
    {.name = "method", .read = read_method},
    {.name = "name", .read = read_name, .also = "label title"},
    {.name = "headers", .read = read_headers},
    {.name = "body", .read = read_body, .also = "data content text payload"},
    {.name = "json", .read = read_json},
    {.name = "expect", .read = read_expect, .also = "status expected_status check"},
    {.name = "timeout", .read = read_timeout},
    {.name = "redirects", .read = read_redirects, .also = "allow_redirects follow_redirects"},
};

/* --- method --- */

/* RFC 9110 5.6.2 */
static bool is_token(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return s.len > 0;
}

/* In capitals, as the requests library sends methods. */
static int set_method(struct loader *l, struct str text, struct plan_request *r)
{
    char upper[PLAN_MAX_METHOD_BYTES];
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        upper[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    r->method = arena_copy(l->memory, (struct str){upper, text.len});
    return r->method.ptr ? 0 : -ENOMEM;
}

static int finish_method(struct loader *l, const struct node *n, struct draft *d)
{
    const struct node *given = d->method;
    if (!str_eq(d->action->key, STR("request"))) {
        if (given)
            return load_fail(l, given, "stands beside 'request' only; '%.*s' says the method",
                             STR_ARG(d->action->key));
        return set_method(l, d->action->key, &d->request);
    }
    if (!given)
        return load_fail(l, n, "'request' needs the key 'method'");
    if (given->kind != NODE_STRING)
        return load_fail(l, given, "must be a string, not %s", node_kind_name(given->kind));
    if (!is_token(given->text) || given->text.len > PLAN_MAX_METHOD_BYTES)
        return load_fail(l, given, "must be a method like GET: up to %d letters, digits or -._",
                         PLAN_MAX_METHOD_BYTES);
    if (str_eq_nocase(given->text, STR("CONNECT")))
        return load_fail(l, given, "CONNECT is for proxies and cannot be sent");
    return set_method(l, given->text, &d->request);
}

/* --- URL and name --- */

/* "mailto:x", "localhost:8080/x": a colon before any slash. */
static bool has_scheme(struct str text)
{
    size_t colon = str_find(text, ':');
    for (size_t i = 0; i < colon && i < text.len; i++) {
        if (strchr("/?#", text.ptr[i]))
            return false;
    }
    return colon < text.len;
}

static int check_url(struct loader *l, const struct node *n)
{
    struct str text = n->text;
    char quoted[LOG_QUOTED_BYTES];
    if (n->kind != NODE_STRING)
        return load_fail(l, n, "must be a path or a URL in a string, not %s",
                         node_kind_name(n->kind));
    if (text.len == 0)
        return load_fail(l, n, "must not be empty; write \"/\"");
    if (text.len > PLAN_MAX_URL_BYTES)
        return load_fail(l, n, "must not be longer than %d bytes", PLAN_MAX_URL_BYTES);
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7F)
            return load_fail(l, n, "must not have control characters");
    }
    if (text.ptr[0] == ' ' || text.ptr[text.len - 1] == ' ')
        return load_fail(l, n, "must not begin or end with a space");
    if (strchr("?#", text.ptr[0]))
        return load_fail(l, n, "must begin with '/', not with '%c'", text.ptr[0]);
    if (!url_is_absolute(text) && has_scheme(text))
        return load_fail(l, n, "%s is no path and no http URL: write /… or http://…",
                         log_quote(text, quoted));
    return 0;
}

static int set_url(struct loader *l, const struct node *n, struct plan_request *r)
{
    struct buf encoded;
    buf_init(&encoded, PLAN_MAX_URL_BYTES * 3 + 1); /* each byte a "%20", and a slash before all */
    int rc = url_encode(&encoded, n->text);
    if (rc == 0)
        r->url = arena_copy(l->memory, buf_str(&encoded));
    buf_done(&encoded);
    return rc == 0 && !r->url.ptr ? -ENOMEM : rc;
}

static int finish_url(struct loader *l, struct draft *d)
{
    int rc = check_url(l, d->action);
    if (rc == 0)
        rc = set_url(l, d->action, &d->request);
    if (rc < 0)
        return rc;
    struct url parts;
    struct err why = {0};
    if (url_is_absolute(d->request.url) && url_parse(d->request.url, &parts, &why) < 0)
        return load_fail(l, d->action, "the URL %s", why.text);
    if (d->name)
        return 0;
    d->request.name = url_target(d->request.url);
    if (d->request.name.len > PLAN_MAX_NAME_BYTES)
        return load_fail(l, d->action, "is too long to name its stats entry (%d bytes): add 'name'",
                         PLAN_MAX_NAME_BYTES);
    return 0;
}

/* --- headers --- */

/* RFC 9110 5.5: visible characters, spaces and tabs between them, and bytes above ASCII. */
static int check_header(struct loader *l, const struct node *n)
{
    struct str value = n->text;
    if (!is_token(n->key))
        return load_fail(l, n, "is no valid header name");
    if (n->key.len > PLAN_MAX_HEADER_NAME_BYTES)
        return load_fail(l, n, "must not be longer than %d bytes", PLAN_MAX_HEADER_NAME_BYTES);
    if (str_eq_nocase(n->key, STR("Content-Length")) ||
        str_eq_nocase(n->key, STR("Transfer-Encoding")))
        return load_fail(l, n, "follows from the body and cannot be given");
    if (n->kind != NODE_STRING)
        return load_fail(l, n, "must be a string, not %s", node_kind_name(n->kind));
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7F)
            return load_fail(l, n, "must not have control characters");
    }
    if (str_trim(value).len != value.len)
        return load_fail(l, n, "must not begin or end with a space");
    return 0;
}

static const struct plan_header *find_header(const struct plan_request *r, struct str name)
{
    for (size_t i = 0; i < r->header_count; i++) {
        if (str_eq_nocase(r->headers[i].name, name))
            return &r->headers[i];
    }
    return NULL;
}

static int finish_headers(struct loader *l, struct draft *d)
{
    struct plan_request *r = &d->request;
    size_t given = d->headers ? d->headers->child_count : 0;
    struct plan_header *headers = ARENA_ARRAY(l->memory, struct plan_header, given + 1);
    if (!headers)
        return -ENOMEM;
    r->headers = headers;
    for (const struct node *n = given ? d->headers->first : NULL; n; n = n->next) {
        int rc = check_header(l, n);
        if (rc < 0)
            return rc;
        if (find_header(r, n->key))
            return load_fail(l, n, "the header is given twice (their case does not matter)");
        struct plan_header *h = &headers[r->header_count];
        h->name = arena_copy(l->memory, n->key);
        h->value = arena_copy(l->memory, n->text);
        if (!h->name.ptr || !h->value.ptr)
            return -ENOMEM;
        r->header_count++;
    }
    if (d->json && !find_header(r, STR("Content-Type")))
        headers[r->header_count++] =
            (struct plan_header){STR("Content-Type"), STR("application/json")};
    return 0;
}

/* --- the step --- */

static int finish_request(struct loader *l, const struct node *n, struct draft *d)
{
    int rc = finish_method(l, n, d);
    if (rc == 0)
        rc = finish_url(l, d);
    if (rc == 0)
        rc = finish_headers(l, d);
    return rc;
}

int load_step(struct loader *l, const struct node *n, bool count_entry, struct plan_step *ret)
{
    struct draft d = {.request = {.follow_redirects = true}};
    int rc;
    if (n->kind == NODE_STRING) { /* "/path" alone is a GET of it */
        d.action = n;
        rc = set_method(l, STR("GET"), &d.request);
        if (rc == 0)
            rc = finish_url(l, &d);
    } else if (n->kind == NODE_OBJECT) {
        rc = load_object(l, n, "a step", step_keys, sizeof step_keys / sizeof *step_keys, &d);
        if (rc == 0 && !d.action)
            rc = load_fail(l, n,
                           "the step does nothing: give it one of get, post, put, patch, "
                           "delete, head, options, request");
        if (rc == 0)
            rc = finish_request(l, n, &d);
    } else {
        rc = load_fail(l, n, "a step must be an object or a path, not %s", node_kind_name(n->kind));
    }
    bool is_new;
    if (rc == 0 && count_entry)
        rc = names_add(&l->entries, d.request.method, d.request.name, &d.request.entry, &is_new);
    if (rc == 0)
        *ret = (struct plan_step){PLAN_STEP_REQUEST, d.request};
    return rc;
}

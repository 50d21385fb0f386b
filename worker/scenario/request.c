/* A request is an object with one action ("get": "/path") and the options of that action beside it.
 * Its keys may come in any order, so they are gathered in a draft first. */
#include "worker/scenario/load.h"
#include "worker/scenario/url.h"

#include "base/log.h"

struct draft {
    const struct node *action; /* the key that says what the step does */
    const struct node *method, *name, *host, *query, *headers, *statuses, *body_limit;
    struct load_body body;
    struct test_list checks;
    size_t body_bytes;
    struct plan_request request;
};

/* --- the keys --- */

static int read_action(struct loader *l, const struct node *n, void *target)
{
    (void)l;
    ((struct draft *)target)->action = n; /* the only one: step.c saw to it */
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
    return load_name_template(l, n, &d->request.name_text);
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

typedef int load_body_fn(struct loader *l, const struct node *n, struct load_body *ret);

/* A request has one body. The pair is told in the order of the documentation. */
static int take_body(struct loader *l, const struct node *n, struct draft *d, load_body_fn *load)
{
    const struct str order = STR("body json form multipart file");
    const struct node *first = d->body.given, *second = n;
    if (!first) {
        d->body.given = n;
        return load(l, n, &d->body);
    }
    if (str_find_str(order, second->key) < str_find_str(order, first->key)) {
        first = n;
        second = d->body.given;
    }
    return load_fail(l, n, "'%.*s' and '%.*s' exclude each other", STR_ARG(first->key),
                     STR_ARG(second->key));
}

static int read_body(struct loader *l, const struct node *n, void *target)
{
    return take_body(l, n, target, load_body_text);
}

static int read_json(struct loader *l, const struct node *n, void *target)
{
    return take_body(l, n, target, load_body_json);
}

static int read_form(struct loader *l, const struct node *n, void *target)
{
    return take_body(l, n, target, load_body_form);
}

static int read_multipart(struct loader *l, const struct node *n, void *target)
{
    return take_body(l, n, target, load_body_multipart);
}

static int read_file(struct loader *l, const struct node *n, void *target)
{
    return take_body(l, n, target, load_body_file);
}

static int read_host(struct loader *l, const struct node *n, void *target)
{
    struct draft *d = target;
    struct plan_text *host = &d->request.host;
    d->host = n;
    return load_host(l, n, &host->text, host);
}

static int read_query(struct loader *l, const struct node *n, void *target)
{
    ((struct draft *)target)->query = n;
    if (n->kind != NODE_OBJECT)
        return load_fail(l, n, "must be an object of names and values, not %s",
                         node_kind_name(n->kind));
    return 0;
}

static int read_status(struct loader *l, const struct node *n, uint16_t *ret)
{
    uint32_t status;
    int rc = load_whole(l, n, 100, 599, &status);
    if (rc == 0)
        *ret = (uint16_t)status;
    return rc;
}

static int load_statuses(struct loader *l, const struct node *n, struct draft *d)
{
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

static int read_expect(struct loader *l, const struct node *n, void *target)
{
    struct draft *d = target;
    if (d->statuses)
        return load_fail(l, n, "'expect' and the status of 'check' exclude each other");
    d->statuses = n;
    return load_statuses(l, n, d);
}

static int read_check(struct loader *l, const struct node *n, void *target)
{
    struct draft *d = target;
    const struct node *statuses;
    int rc = load_checks(l, n, &d->checks, &statuses);
    if (rc < 0 || !statuses)
        return rc;
    if (d->statuses)
        return load_fail(l, statuses, "'expect' and the status of 'check' exclude each other");
    d->statuses = statuses;
    return load_statuses(l, statuses, d);
}

static int read_extract(struct loader *l, const struct node *n, void *target)
{
    struct plan_request *r = &((struct draft *)target)->request;
    return load_extracts(l, n, &r->extracts, &r->extract_count);
}

static int read_body_limit(struct loader *l, const struct node *n, void *target)
{
    struct draft *d = target;
    uint32_t bytes;
    d->body_limit = n;
    int rc = load_whole(l, n, 1, PLAN_MAX_BODY_BYTES, &bytes);
    if (rc == 0)
        d->body_bytes = bytes;
    return rc;
}

static int read_on_failure(struct loader *l, const struct node *n, void *target)
{
    static const char *const words[] = {"continue", "stop task", "stop user", "stop run"};
    size_t word;
    int rc = load_word(l, n, words, sizeof words / sizeof *words, &word);
    if (rc == 0)
        ((struct draft *)target)->request.on_failure = (enum plan_stop)word;
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

static const struct load_key request_keys[] = {
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
    {.name = "host", .read = read_host, .also = "base_url"},
    {.name = "query", .read = read_query, .also = "params parameters"},
    {.name = "headers", .read = read_headers},
    {.name = "body", .read = read_body, .also = "data content text payload"},
    {.name = "json", .read = read_json},
    {.name = "form", .read = read_form, .also = "urlencoded"},
    {.name = "multipart", .read = read_multipart, .also = "files upload"},
    {.name = "file", .read = read_file},
    {.name = "expect", .read = read_expect, .also = "status expected_status"},
    {.name = "check", .read = read_check, .also = "checks assert validate expectations"},
    {.name = "extract", .read = read_extract, .also = "capture save extractors"},
    {.name = "body_limit", .read = read_body_limit, .also = "max_body"},
    {.name = "on_failure", .read = read_on_failure, .also = "on_error stop"},
    {.name = "timeout", .read = read_timeout},
    {.name = "redirects", .read = read_redirects, .also = "allow_redirects follow_redirects"},
};

/* --- method --- */

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
    if (!str_is_token(given->text) || given->text.len > PLAN_MAX_METHOD_BYTES)
        return load_fail(l, given, "must be a method like GET: up to %d letters, digits or -._",
                         PLAN_MAX_METHOD_BYTES);
    if (str_eq_nocase(given->text, STR("CONNECT")))
        return load_fail(l, given, "CONNECT is for proxies and cannot be sent");
    return set_method(l, given->text, &d->request);
}

/* --- URL and name --- */

/* "GET /x", as other tools write a request. */
static bool begins_with_method(struct str text)
{
    static const char *const methods[] = {"GET",    "POST", "PUT",    "PATCH",
                                          "DELETE", "HEAD", "OPTIONS"};
    struct str word = str_sub(text, 0, str_find(text, ' '));
    struct str rest = str_trim(str_sub(text, word.len, text.len));
    bool is_path = str_starts(rest, STR("/")) || str_starts_nocase(rest, STR("http"));
    for (size_t i = 0; is_path && i < sizeof methods / sizeof *methods; i++) {
        if (str_eq_nocase(word, str_of(methods[i])))
            return true;
    }
    return false;
}

static int check_url(struct loader *l, const struct node *n, struct str text)
{
    char quoted[LOG_QUOTED_BYTES];
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
    if (begins_with_method(text))
        return load_fail(l, n, "%s begins with a method: write a step such as {\"get\": \"/x\"}",
                         log_quote(text, quoted));
    if (strchr("?#", text.ptr[0]))
        return load_fail(l, n, "must begin with '/', not with '%c'", text.ptr[0]);
    if (!url_is_absolute(text) && url_has_scheme(text) && !text_has_variables(text))
        return load_fail(l, n, "%s is no path and no http URL: write /… or http://…",
                         log_quote(text, quoted));
    return 0;
}

/* The URL as it is written, with the query behind it. */
static int build_url(struct loader *l, struct draft *d)
{
    const struct node *n = d->action;
    struct str path = str_sub(n->text, 0, str_find(n->text, '#'));
    struct text_builder b;
    text_begin(&b, l);
    int rc = text_add_template(&b, n, path, PLAN_INSERT_PLAIN);
    if (rc == 0 && d->query && d->query->first)
        rc = text_add(&b, str_find(path, '?') < path.len ? STR("&") : STR("?"));
    if (rc == 0 && d->query)
        rc = load_fields(&b, d->query);
    if (rc == 0)
        return text_end(&b, &d->request.url_text);
    text_abort(&b);
    return rc;
}

static int encode_url(struct loader *l, struct str text, struct str *ret)
{
    struct buf encoded;
    buf_init(&encoded, (size_t)PLAN_MAX_FILE_BYTES * 3); /* each byte a "%20" */
    int rc = url_encode(&encoded, text);
    if (rc == 0)
        *ret = arena_copy(l->memory, buf_str(&encoded));
    buf_done(&encoded);
    return rc == 0 && !ret->ptr ? -ENOMEM : rc;
}

/* A URL that begins with a variable is known when it is sent; any other one gets a name in which
 * each variable is ":name". */
static int name_by_url(struct loader *l, struct plan_request *r)
{
    const struct plan_text *url = &r->url_text;
    struct buf text;
    if (url->piece_count > 0 && url->pieces[0].before.len == 0) {
        r->naming = PLAN_NAME_FOLDED;
        r->name = url->text;
        return 0;
    }
    if (url->piece_count == 0) {
        r->name = url_target(r->url);
        return 0;
    }
    buf_init(&text, PLAN_MAX_FILE_BYTES);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < url->piece_count; i++) {
        rc = buf_add(&text, url->pieces[i].before);
        if (rc == 0 && url->pieces[i].value)
            rc = buf_printf(&text, ":%.*s", STR_ARG(url->pieces[i].value->name));
    }
    if (rc == 0)
        rc = encode_url(l, buf_str(&text), &r->name);
    buf_done(&text);
    r->name = url_target(r->name);
    return rc;
}

static int finish_name(struct loader *l, struct draft *d)
{
    struct plan_request *r = &d->request;
    if (d->name) {
        r->naming = r->name_text.piece_count ? PLAN_NAME_TEXT : PLAN_NAME_FIXED;
        r->name = r->name_text.text;
        return 0;
    }
    int rc = name_by_url(l, r);
    if (rc == 0 && r->name.len > PLAN_MAX_NAME_BYTES)
        return load_fail(l, d->action, "is too long to name its stats entry (%d bytes): add 'name'",
                         PLAN_MAX_NAME_BYTES);
    return rc;
}

/* A host of its own that is known makes an absolute URL. */
static int join_host(struct loader *l, struct draft *d)
{
    struct plan_request *r = &d->request;
    struct buf url;
    if (!d->host)
        return 0;
    if (url_is_absolute(r->url))
        return load_fail(l, d->host, "stands beside a path only: an absolute URL has its host");
    if (r->host.piece_count > 0 || r->url_text.piece_count > 0)
        return 0;
    buf_init(&url, (size_t)PLAN_MAX_FILE_BYTES * 3);
    int rc = url_join(&url, r->host.text, r->url);
    if (rc == 0)
        r->url = arena_copy(l->memory, buf_str(&url));
    buf_done(&url);
    return rc == 0 && !r->url.ptr ? -ENOMEM : rc;
}

static int finish_url(struct loader *l, struct draft *d)
{
    struct plan_request *r = &d->request;
    if (d->action->kind != NODE_STRING)
        return load_fail(l, d->action, "must be a path or a URL in a string, not %s",
                         node_kind_name(d->action->kind));
    int rc = check_url(l, d->action, d->action->text);
    if (rc == 0)
        rc = build_url(l, d);
    r->url = r->url_text.text;
    if (rc == 0 && r->url_text.piece_count == 0)
        rc = encode_url(l, r->url_text.text, &r->url);
    if (rc < 0)
        return rc;
    struct url parts;
    struct err why = {0};
    if (r->url_text.piece_count == 0 && url_is_absolute(r->url) &&
        url_parse(r->url, &parts, &why) < 0)
        return load_fail(l, d->action, "the URL %s", why.text);
    rc = finish_name(l, d);
    return rc ? rc : join_host(l, d);
}

/* --- headers --- */

/* RFC 9110 5.5: visible characters, spaces and tabs between them, and bytes above ASCII. */
static int check_header(struct loader *l, const struct node *n)
{
    struct str value = n->text;
    if (!str_is_token(n->key))
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

static int add_header(struct loader *l, const struct node *n, struct plan_header *headers,
                      struct plan_text *texts, struct plan_request *r)
{
    int rc = check_header(l, n);
    if (rc < 0)
        return rc;
    if (find_header(r, n->key))
        return load_fail(l, n, "the header is given twice (their case does not matter)");
    struct plan_text *text = &texts[r->header_count];
    rc = load_template(l, n, PLAN_INSERT_PLAIN, text);
    if (rc < 0)
        return rc;
    struct plan_header *h = &headers[r->header_count++];
    h->name = arena_copy(l->memory, n->key);
    h->value = text->text;
    if (text->piece_count > 0)
        r->header_texts = texts;
    return h->name.ptr ? 0 : -ENOMEM;
}

static int finish_headers(struct loader *l, struct draft *d)
{
    struct plan_request *r = &d->request;
    size_t given = d->headers ? d->headers->child_count : 0;
    struct plan_header *headers = ARENA_ARRAY(l->memory, struct plan_header, given + 1);
    struct plan_text *texts = ARENA_ARRAY(l->memory, struct plan_text, given + 1);
    if (!headers || !texts)
        return -ENOMEM;
    r->headers = headers;
    for (const struct node *n = given ? d->headers->first : NULL; n; n = n->next) {
        int rc = add_header(l, n, headers, texts, r);
        if (rc < 0)
            return rc;
    }
    if (d->body.content_type.ptr && !find_header(r, STR("Content-Type"))) {
        texts[r->header_count].text = d->body.content_type;
        headers[r->header_count++] =
            (struct plan_header){STR("Content-Type"), d->body.content_type};
    }
    return 0;
}

/* --- checks and extraction --- */

static bool reads_body(const struct plan_request *r)
{
    for (size_t i = 0; i < r->check_count; i++) {
        if (r->checks[i].subject == PLAN_SUBJECT_BODY || r->checks[i].subject == PLAN_SUBJECT_JSON)
            return true;
    }
    for (size_t i = 0; i < r->extract_count; i++) {
        if (r->extracts[i].kind == PLAN_EXTRACT_JSON || r->extracts[i].kind == PLAN_EXTRACT_REGEX)
            return true;
    }
    return false;
}

static bool reads_head(const struct plan_request *r)
{
    for (size_t i = 0; i < r->check_count; i++) {
        if (r->checks[i].subject == PLAN_SUBJECT_HEADER)
            return true;
    }
    for (size_t i = 0; i < r->extract_count; i++) {
        if (r->extracts[i].kind == PLAN_EXTRACT_HEADER ||
            r->extracts[i].kind == PLAN_EXTRACT_COOKIE)
            return true;
    }
    return false;
}

static int finish_checks(struct loader *l, struct draft *d)
{
    struct plan_request *r = &d->request;
    int rc = test_list_keep(l, &d->checks, &r->checks, &r->check_count);
    for (size_t i = 0; i < r->check_count; i++)
        r->any_status |= r->checks[i].subject == PLAN_SUBJECT_STATUS;
    r->any_status &= r->expected_status_count == 0;
    if (rc == 0 && d->body_limit && !reads_body(r))
        return load_fail(l, d->body_limit, "no check and no extraction here looks at the body");
    if (reads_body(r))
        r->wants_body_bytes = d->body_limit ? d->body_bytes : PLAN_BODY_BYTES;
    r->wants_head = reads_head(r);
    return rc;
}

/* --- the whole --- */

static int finish(struct loader *l, const struct node *n, struct draft *d)
{
    struct plan_request *r = &d->request;
    int rc = finish_method(l, n, d);
    if (rc == 0)
        rc = finish_url(l, d);
    if (rc == 0)
        rc = finish_headers(l, d);
    if (rc == 0)
        rc = finish_checks(l, d);
    r->body = d->body.text.text;
    r->body_text = d->body.text;
    r->body_file = d->body.file;
    r->has_variables = r->url_text.piece_count || r->body_text.piece_count || r->header_texts ||
                       r->host.piece_count || r->naming != PLAN_NAME_FIXED;
    return rc;
}

static int read_request(struct loader *l, const struct node *n, struct draft *d)
{
    if (n->kind == NODE_STRING) { /* "/path" alone is a GET of it */
        d->action = n;
        int rc = set_method(l, STR("GET"), &d->request);
        return rc ? rc : finish_url(l, d);
    }
    int rc = load_object(l, n, "a step", KEYS(request_keys), d);
    if (rc == 0 && !d->action)
        return load_fail(l, n,
                         "the step does nothing: give it one of get, post, put, patch, delete, "
                         "head, options, request, pause, repeat, while, if, group, set, log, stop");
    return rc ? rc : finish(l, n, d);
}

int load_request(struct loader *l, const struct node *n, bool count_entry, struct plan_request *ret)
{
    struct draft d = {.request = {.follow_redirects = true, .entry = PLAN_NO_ENTRY}};
    struct plan_request *r = &d.request;
    bool is_new;
    int rc = read_request(l, n, &d);
    r->has_variables |= r->url_text.piece_count > 0;
    if (rc == 0 && count_entry && r->naming == PLAN_NAME_FIXED)
        rc = names_add(&l->entries, r->method, r->name, &r->entry, &is_new);
    if (rc == 0)
        *ret = d.request;
    return rc;
}

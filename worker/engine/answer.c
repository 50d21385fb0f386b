#include "worker/engine/answer.h"

#include "worker/engine/checks.h"
#include "worker/engine/cookies.h"
#include "worker/engine/http_parser.h"
#include "worker/engine/user.h"
#include "worker/engine/variables.h"
#include "worker/scenario/pattern.h"

/* What was found for a variable. */
struct found {
    bool any;
    bool json;
    struct str text;
};

/* A string is decoded; any other value is its JSON text as the server wrote it. */
static int find_json(struct user *u, const struct plan_extract *e, struct answer *a,
                     struct found *f)
{
    uint32_t index = answer_json(a, &e->pointer);
    f->any = index != JSON_TAPE_NONE;
    if (!f->any)
        return 0;
    f->json = a->tape->values[index].type != PLAN_TYPE_STRING;
    return json_tape_text(a->tape, index, &u->shard->decoded, &f->text);
}

/* --- cookies -------------------------------------------------------------------------------- */

/* "NAME=value; Path=/" */
static bool cookie_named(struct str header, struct str name, struct str *ret_value)
{
    struct str pair = str_sub(header, 0, str_find(header, ';'));
    size_t equals = str_find(pair, '=');
    if (!str_eq(str_trim(str_sub(pair, 0, equals)), name))
        return false;
    *ret_value = str_trim(str_sub(pair, equals + 1, pair.len));
    return equals < pair.len;
}

static bool find_cookie(const struct http_result *result, struct str name, struct str *ret_value)
{
    struct str rest = result->head, header, value;
    while (rest.len && http_parser_header(&rest, &header, &value)) {
        if (str_eq_nocase(header, STR("set-cookie")) && cookie_named(value, name, ret_value))
            return true;
    }
    return false;
}

/* --- extraction ----------------------------------------------------------------------------- */

static int find(struct user *u, const struct plan_extract *e, struct answer *a, struct found *f)
{
    switch (e->kind) {
    case PLAN_EXTRACT_JSON:
        return find_json(u, e, a, f);
    case PLAN_EXTRACT_REGEX:
        f->any =
            pattern_match(e->pattern, u->shard->patterns, a->result->body, e->group, &f->text) &&
            f->text.ptr;
        return 0;
    case PLAN_EXTRACT_HEADER:
        f->any = answer_header(a->result, e->key, &f->text);
        return 0;
    case PLAN_EXTRACT_COOKIE:
        f->any = find_cookie(a->result, e->key, &f->text) ||
                 cookies_value(u->cookies, e->key, &f->text); /* set by a redirect, or before */
        return 0;
    }
    return 0;
}

/* 0; -ENOENT: there is nothing, and no default. */
static int extract(struct user *u, const struct plan_extract *e, struct answer *a, uint64_t now_us)
{
    struct found f = {0};
    struct rendered rendered = {0};
    int rc = find(u, e, a, &f);
    if (rc == 0 && !f.any && !e->has_default)
        rc = -ENOENT;
    if (rc == 0 && !f.any) {
        struct buf *operand = &u->shard->operand;
        buf_clear(operand);
        rc = render(u, &e->fallback, now_us, operand, &rendered);
        f.text = buf_str(operand);
        f.json = e->fallback_json || rendered.json;
    }
    if (rc == 0)
        rc = variables_set(u->variables, e->variable, f.text, f.json, rendered.hidden);
    return rc;
}

static int judge(struct user *u, const struct plan_request *r, struct answer *a, uint64_t now_us,
                 struct str *ret_error)
{
    const struct plan_test *failed;
    int rc = checks_hold(u, r->checks, r->check_count, a, now_us, &failed);
    if (rc == 0)
        *ret_error = failed->failure;
    for (size_t i = 0; rc == 1 && i < r->extract_count; i++) {
        int found = extract(u, &r->extracts[i], a, now_us);
        if (found == 0)
            continue;
        *ret_error = r->extracts[i].failure;
        rc = found;
    }
    if (rc == -ENOMEM)
        *ret_error = http_failure_text(HTTP_FAILURE_MEMORY);
    return rc == -ENODATA ? rc : 0;
}

int answer_judge(struct user *u, const struct plan_request *request,
                 const struct http_result *result, uint64_t response_time_us, uint64_t now_us,
                 struct str *ret_error)
{
    struct answer a = {
        .result = result, .response_time_us = response_time_us, .tape = &u->shard->tape};
    *ret_error = (struct str){NULL, 0};
    if (result->body_cut) {
        *ret_error = STR("body larger than body_limit");
        return 0;
    }
    int rc = judge(u, request, &a, now_us, ret_error);
    answer_done(&a);
    return rc;
}

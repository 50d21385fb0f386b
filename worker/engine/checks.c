/* A test's subject becomes a subject value (is it there, what type, text or number), and that is
 * compared. Values from JSON have types, and 5 is not "5"; texts (headers, bodies, variables) have
 * none, and are taken for numbers when they are compared with one. */
#include "worker/engine/checks.h"

#include "base/num.h"
#include "base/utf8.h"
#include "worker/engine/http_parser.h"
#include "worker/engine/user.h"
#include "worker/engine/variables.h"
#include "worker/scenario/pattern.h"

struct subject {
    bool present;
    bool typed; /* from JSON */
    enum plan_type type;
    struct str text; /* of a string or an untyped value; of another one as it is written */
    bool counted;    /* number is it */
    double number;
    bool truth;
    size_t count;           /* of a list's or an object's values */
    struct value_view view; /* what text may borrow from */
};

/* --- the answer ----------------------------------------------------------------------------- */

uint32_t answer_json(struct answer *a, const struct plan_pointer *pointer)
{
    if (!a->json_is_read) {
        a->json_is_read = true;
        a->json_is_valid = json_tape_read(a->tape, a->result->body) == 0;
    }
    return a->json_is_valid ? json_tape_find(a->tape, pointer) : JSON_TAPE_NONE;
}

void answer_done(struct answer *a)
{
    if (a->json_is_read)
        json_tape_clear(a->tape);
}

bool answer_header(const struct http_result *result, struct str name, struct str *ret_value)
{
    struct str rest = result->head, found;
    while (rest.len && http_parser_header(&rest, &found, ret_value)) {
        if (str_eq_nocase(found, name))
            return true;
    }
    return false;
}

/* --- subjects ------------------------------------------------------------------------------- */

/* A string may be decoded into the shard's scratch: it is good until the next one. */
static int take_json(struct user *u, struct subject *s, struct answer *a,
                     const struct plan_pointer *pointer)
{
    const struct json_tape *tape = a->tape;
    uint32_t index = answer_json(a, pointer);
    s->present = index != JSON_TAPE_NONE;
    s->typed = true;
    if (!s->present)
        return 0;
    const struct json_value *value = &tape->values[index];
    s->type = (enum plan_type)value->type;
    s->truth = value->truth;
    if (s->type == PLAN_TYPE_ARRAY || s->type == PLAN_TYPE_OBJECT)
        s->count = json_tape_length(tape, index);
    return json_tape_text(tape, index, &u->shard->decoded, &s->text);
}

static void take_text(struct subject *s, struct str text)
{
    s->present = true;
    s->type = PLAN_TYPE_STRING;
    s->text = text;
}

static void take_number(struct subject *s, double number)
{
    s->present = s->typed = s->counted = true;
    s->type = PLAN_TYPE_NUMBER;
    s->number = number;
}

static int take_subject(struct user *u, const struct plan_test *t, struct answer *a,
                        uint64_t now_us, struct subject *s)
{
    struct str text;
    int rc;
    switch (t->subject) {
    case PLAN_SUBJECT_STATUS:
        take_number(s, a->result->status);
        return 0;
    case PLAN_SUBJECT_HEADER:
        if (answer_header(a->result, t->key, &text))
            take_text(s, text);
        return 0;
    case PLAN_SUBJECT_BODY:
        take_text(s, a->result->body);
        return 0;
    case PLAN_SUBJECT_JSON:
        return take_json(u, s, a, &t->pointer);
    case PLAN_SUBJECT_SIZE:
        take_number(s, (double)a->result->body_bytes);
        return 0;
    case PLAN_SUBJECT_TIME:
        take_number(s, (double)a->response_time_us / 1e6);
        return 0;
    case PLAN_SUBJECT_VALUE:
        rc = value_of(u, t->source, now_us, &s->view);
        if (rc == 0)
            take_text(s, s->view.text);
        return rc == -ENOENT ? 0 : rc;
    }
    return 0;
}

static size_t count_points(struct str text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++)
        n += ((unsigned char)text.ptr[i] & 0xC0) != 0x80;
    return n;
}

/* The subject's length takes its place; what has none is as good as not there. */
static void take_length(struct subject *s)
{
    bool several = s->type == PLAN_TYPE_ARRAY || s->type == PLAN_TYPE_OBJECT;
    if (!s->present || (!several && s->type != PLAN_TYPE_STRING)) {
        s->present = false;
        return;
    }
    take_number(s, (double)(several ? s->count : count_points(s->text)));
}

/* --- comparisons ---------------------------------------------------------------------------- */

static int order_of_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

static bool decide(enum plan_operator op, int order)
{
    switch (op) {
    case PLAN_EQUAL:
        return order == 0;
    case PLAN_NOT_EQUAL:
        return order != 0;
    case PLAN_LESS:
        return order < 0;
    case PLAN_AT_MOST:
        return order <= 0;
    case PLAN_MORE:
        return order > 0;
    case PLAN_AT_LEAST:
        return order >= 0;
    case PLAN_EXISTS:
    case PLAN_TYPE:
    case PLAN_CONTAINS:
    case PLAN_MATCHES:
        break;
    }
    return false;
}

/* The subject as a number: it is one, or it is a text that looks like one. */
static bool as_number(const struct subject *s, double *ret)
{
    *ret = s->number;
    if (s->counted)
        return true;
    return (!s->typed || s->type == PLAN_TYPE_NUMBER) &&
           num_parse_double(s->typed ? s->text : str_trim(s->text), ret) == 0;
}

static bool compare_number(const struct plan_test *t, const struct subject *s, double operand)
{
    double number;
    if (!as_number(s, &number))
        return t->op == PLAN_NOT_EQUAL;
    return decide(t->op, order_of_numbers(number, operand));
}

static struct str text_of(const struct subject *s, char number[static NUM_TEXT_BYTES])
{
    if (!s->counted)
        return s->text;
    num_format_repr(s->number, number);
    return str_of(number);
}

/* With variables, the operand is a text that nobody gave a type: numbers are compared as such. */
static bool compare_text(const struct plan_test *t, const struct subject *s, struct str operand)
{
    double number, other;
    char buffer[NUM_TEXT_BYTES];
    bool free_type = t->operand.piece_count > 0;
    if (free_type && num_parse_double(operand, &other) == 0 && as_number(s, &number))
        return decide(t->op, order_of_numbers(number, other));
    if (s->typed && s->type != PLAN_TYPE_STRING && !free_type)
        return t->op == PLAN_NOT_EQUAL;
    return decide(t->op, str_cmp(text_of(s, buffer), operand));
}

static bool compare_truth(const struct plan_test *t, const struct subject *s)
{
    bool equal = s->typed ? s->type == PLAN_TYPE_BOOLEAN && s->truth == t->truth
                          : str_eq(s->text, t->truth ? STR("true") : STR("false"));
    return (t->op == PLAN_EQUAL) == equal;
}

static bool compare(const struct plan_test *t, const struct subject *s, struct str operand)
{
    switch (t->type) {
    case PLAN_TYPE_NUMBER:
        return compare_number(t, s, t->number);
    case PLAN_TYPE_STRING:
        return compare_text(t, s, operand);
    case PLAN_TYPE_BOOLEAN:
        return compare_truth(t, s);
    case PLAN_TYPE_NULL:
        return (t->op == PLAN_EQUAL) == (s->typed && s->type == PLAN_TYPE_NULL);
    case PLAN_TYPE_ARRAY:
    case PLAN_TYPE_OBJECT:
        break;
    }
    return false;
}

static bool holds(struct user *u, const struct plan_test *t, const struct subject *s,
                  struct str operand)
{
    if (t->op == PLAN_EXISTS)
        return s->present == t->truth;
    if (!s->present)
        return t->op == PLAN_NOT_EQUAL;
    if (t->op == PLAN_TYPE)
        return s->type == t->type;
    bool text = !s->typed || s->type == PLAN_TYPE_STRING;
    if (t->op == PLAN_CONTAINS)
        return text && (operand.len == 0 || str_find_str(s->text, operand) < s->text.len);
    if (t->op == PLAN_MATCHES)
        return text && pattern_match(t->pattern, u->shard->patterns, s->text, 0, NULL);
    return compare(t, s, operand);
}

int check_holds(struct user *u, const struct plan_test *test, struct answer *answer,
                uint64_t now_us)
{
    struct subject s = {0};
    struct str operand = test->operand.text;
    struct rendered rendered;
    int rc = take_subject(u, test, answer, now_us, &s);
    if (rc == 0 && test->operand.piece_count > 0) {
        buf_clear(&u->shard->operand);
        rc = render(u, &test->operand, now_us, &u->shard->operand, &rendered);
        operand = buf_str(&u->shard->operand);
    }
    if (rc == -ENOENT || rc == -ERANGE)
        return 0; /* nothing to compare with: it does not hold */
    if (rc < 0)
        return rc;
    if (test->of_length)
        take_length(&s);
    return holds(u, test, &s, operand);
}

int checks_hold(struct user *u, const struct plan_test *tests, size_t count, struct answer *answer,
                uint64_t now_us, const struct plan_test **ret_first)
{
    for (size_t i = 0; i < count; i++) {
        int rc = check_holds(u, &tests[i], answer, now_us);
        if (rc == 1)
            continue;
        *ret_first = &tests[i];
        return rc;
    }
    return 1;
}

#include "worker/scenario/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

struct pattern {
    pcre2_code *code;
    uint32_t groups;
};

struct pattern_scratch {
    pcre2_match_data *data;
    pcre2_match_context *limits;
};

int pattern_new(struct str text, struct pattern **ret, struct err *err)
{
    int error = 0;
    PCRE2_SIZE at = 0;
    struct pattern *p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, -ENOMEM, "out of memory");
    p->code = pcre2_compile((PCRE2_SPTR)text.ptr, text.len, PCRE2_UTF | PCRE2_MATCH_INVALID_UTF,
                            &error, &at, NULL);
    if (!p->code) {
        PCRE2_UCHAR why[160];
        free(p);
        if (error == PCRE2_ERROR_NOMEMORY || pcre2_get_error_message(error, why, sizeof why) < 0)
            return err_set(err, -ENOMEM, "out of memory");
        return err_set(err, -EINVAL, "%s, at byte %zu", (const char *)why, (size_t)at + 1);
    }
    (void)pcre2_pattern_info(p->code, PCRE2_INFO_CAPTURECOUNT, &p->groups); /* cannot fail */
    (void)pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE);                   /* slower without */
    *ret = p;
    return 0;
}

void pattern_free(struct pattern *p)
{
    if (!p)
        return;
    pcre2_code_free(p->code);
    free(p);
}

uint32_t pattern_group_count(const struct pattern *p)
{
    return p->groups;
}

struct pattern_scratch *pattern_scratch_new(void)
{
    struct pattern_scratch *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->data = pcre2_match_data_create(PATTERN_MAX_GROUPS + 1, NULL);
    s->limits = pcre2_match_context_create(NULL);
    if (!s->data || !s->limits) {
        pattern_scratch_free(s);
        return NULL;
    }
    (void)pcre2_set_match_limit(s->limits, PATTERN_MAX_STEPS); /* these return 0 always */
    (void)pcre2_set_heap_limit(s->limits, PATTERN_MAX_HEAP);
    return s;
}

void pattern_scratch_free(struct pattern_scratch *s)
{
    if (!s)
        return;
    pcre2_match_context_free(s->limits);
    pcre2_match_data_free(s->data);
    free(s);
}

bool pattern_match(const struct pattern *p, struct pattern_scratch *s, struct str text,
                   uint32_t group, struct str *ret_group)
{
    const char *bytes = text.len ? text.ptr : "";
    if (pcre2_match(p->code, (PCRE2_SPTR)bytes, text.len, 0, 0, s->data, s->limits) < 0)
        return false;
    if (!ret_group)
        return true;
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(s->data);
    *ret_group = (struct str){NULL, 0};
    bool took_part = group <= p->groups && ends[2 * group] != PCRE2_UNSET;
    if (took_part && ends[2 * group] <= ends[2 * group + 1]) /* \K may turn them round */
        *ret_group = (struct str){bytes + ends[2 * group], ends[2 * group + 1] - ends[2 * group]};
    return true;
}

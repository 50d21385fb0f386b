#include "worker/engine/variables.h"

#include "worker/engine/feeds.h"
#include "worker/engine/user.h"
#include "worker/scenario/encode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct variables *variables_new(const struct plan *plan, uint64_t number)
{
    struct variables *v =
        calloc(1, sizeof *v + plan->variable_count * sizeof v->values[0] +
                      plan->group_slots * sizeof v->groups[0] +
                      plan->loop_slots * sizeof v->loops[0] + plan->feed_count * sizeof v->rows[0]);
    if (!v)
        return NULL;
    v->number = number;
    v->groups = (struct group_mark *)(v->values + plan->variable_count);
    v->loops = (struct loop_mark *)(v->groups + plan->group_slots);
    v->rows = (uint32_t *)(v->loops + plan->loop_slots);
    for (size_t i = 0; i < plan->feed_count; i++)
        v->rows[i] = FEEDS_NO_ROW;
    return v;
}

void variables_free(struct variables *v, struct shard *s)
{
    if (!v)
        return;
    for (size_t i = 0; i < s->plan->variable_count; i++)
        free(v->values[i].bytes);
    for (size_t i = 0; i < s->plan->feed_count; i++)
        feeds_give_back(s->feeds, (uint32_t)i, v->rows[i]);
    free(v);
}

void variables_begin_task(struct variables *v, const struct plan *plan)
{
    for (size_t i = 0; i < plan->feed_count; i++) {
        if (!plan->feeds[i].each_user)
            v->rows[i] = FEEDS_NO_ROW;
    }
}

int variables_set(struct variables *v, uint32_t variable, struct str text, bool json, bool hidden)
{
    struct value *value = &v->values[variable];
    if (text.len > PLAN_MAX_VARIABLE_BYTES)
        return -ERANGE;
    if (text.len > value->room) {
        char *bytes = malloc(text.len);
        if (!bytes)
            return -ENOMEM;
        memcpy(bytes, text.ptr, text.len);
        free(value->bytes);
        value->bytes = bytes;
        value->room = (uint32_t)text.len;
    } else if (text.len > 0) {
        memmove(value->bytes, text.ptr, text.len);
    }
    value->len = (uint32_t)text.len;
    value->set = true;
    value->json = json;
    value->hidden = hidden;
    return 0;
}

/* --- sources -------------------------------------------------------------------------------- */

/* The user's own, else what was given from outside, else the scenario's. */
static int variable_value(struct user *u, uint32_t index, struct value_view *ret)
{
    const struct value *own = &u->variables->values[index];
    const struct plan_variable *variable = &u->shard->plan->variables[index];
    const struct bound_input *given = u->binding->inputs ? &u->binding->inputs[index] : NULL;
    if (own->set) {
        ret->text = (struct str){own->bytes, own->len};
        ret->json = own->json;
        ret->hidden = own->hidden;
        return 0;
    }
    if (given && given->text.ptr) {
        ret->text = given->text;
        ret->json = given->json;
        ret->hidden = true;
        return 0;
    }
    ret->text = variable->initial;
    ret->json = variable->initial_json;
    return variable->initial.ptr ? 0 : -ENOENT;
}

static int column_value(struct user *u, const struct plan_source *source, struct value_view *ret)
{
    const struct plan_feed *feed = &u->shard->plan->feeds[source->index];
    uint32_t *row = &u->variables->rows[source->index];
    if (*row == FEEDS_NO_ROW)
        *row = feeds_take(u->shard->feeds, source->index, u->binding->worker, &u->shard->rng);
    if (*row == FEEDS_NO_ROW)
        return -ENODATA;
    ret->text = feed->cells[(size_t)*row * feed->column_count + source->column];
    return 0;
}

static int made(struct value_view *ret, int n)
{
    ret->text = (struct str){ret->made, (size_t)n};
    ret->json = true;
    return 0;
}

static int uuid_value(struct rng *rng, struct value_view *ret)
{
    uint64_t a = rng_u64(rng), b = rng_u64(rng);
    (void)made(ret, snprintf(ret->made, sizeof ret->made,
                             "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
                             a >> 32, a >> 16 & 0xFFFF, a & 0xFFF, (b >> 48 & 0x3FFF) | 0x8000,
                             b & 0xFFFFFFFFFFFF));
    ret->json = false;
    return 0;
}

int value_of(struct user *u, const struct plan_source *source, uint64_t now_us,
             struct value_view *ret)
{
    struct shard *s = u->shard;
    const double wall_s = (double)now_us / 1e6 + s->wall_offset_s;
    char *to = ret->made;
    const size_t size = sizeof ret->made;
    ret->json = ret->hidden = false;
    switch (source->kind) {
    case PLAN_SOURCE_VARIABLE:
        return variable_value(u, source->index, ret);
    case PLAN_SOURCE_COLUMN:
        return column_value(u, source, ret);
    case PLAN_SOURCE_UUID:
        return uuid_value(&s->rng, ret);
    case PLAN_SOURCE_RANDOM:
        return made(ret, snprintf(to, size, "%" PRId64,
                                  source->min + (int64_t)rng_below(&s->rng, (uint64_t)source->max -
                                                                                source->min + 1)));
    case PLAN_SOURCE_TIMESTAMP:
        return made(ret, snprintf(to, size, "%" PRIu64, (uint64_t)wall_s));
    case PLAN_SOURCE_TIMESTAMP_MS:
        return made(ret, snprintf(to, size, "%" PRIu64, (uint64_t)(wall_s * 1e3)));
    case PLAN_SOURCE_COUNTER:
        return made(ret, snprintf(to, size, "%" PRIu64, s->counter++ * s->count + s->index + 1));
    case PLAN_SOURCE_USER:
        return made(ret, snprintf(to, size, "%" PRIu64, u->variables->number));
    case PLAN_SOURCE_WORKER:
        return made(ret, snprintf(to, size, "%" PRIu32, u->binding->worker));
    }
    return -ENOENT;
}

/* --- texts ---------------------------------------------------------------------------------- */

static int insert(const struct value_view *value, enum plan_insert how, struct buf *out)
{
    int rc;
    switch (how) {
    case PLAN_INSERT_PLAIN:
        return buf_add(out, value->text);
    case PLAN_INSERT_FORM:
        return encode_form(out, value->text);
    case PLAN_INSERT_QUOTED:
        return encode_quoted(out, value->text);
    case PLAN_INSERT_JSON_TEXT:
        return encode_json(out, value->text);
    case PLAN_INSERT_JSON_VALUE:
        if (value->json)
            return buf_add(out, value->text);
        rc = buf_add_byte(out, '"');
        if (rc == 0)
            rc = encode_json(out, value->text);
        return rc ? rc : buf_add_byte(out, '"');
    }
    return -EINVAL;
}

int render(struct user *u, const struct plan_text *text, uint64_t now_us, struct buf *out,
           struct rendered *ret)
{
    *ret = (struct rendered){0};
    if (text->piece_count == 0)
        return buf_add(out, text->text);
    for (size_t i = 0; i < text->piece_count; i++) {
        const struct plan_piece *piece = &text->pieces[i];
        struct value_view value;
        int rc = buf_add(out, piece->before);
        if (rc < 0 || !piece->value)
            return rc;
        rc = value_of(u, piece->value, now_us, &value);
        if (rc < 0) {
            ret->missing = piece->value;
            return rc;
        }
        rc = insert(&value, piece->insert, out);
        if (rc < 0)
            return rc;
        ret->hidden |= value.hidden;
        ret->json = value.json && text->piece_count == 1 && piece->before.len == 0;
    }
    return 0;
}

int render_shown(struct user *u, const struct plan_text *text, uint64_t now_us, struct buf *out)
{
    if (text->piece_count == 0)
        return buf_add(out, text->text);
    for (size_t i = 0; i < text->piece_count; i++) {
        const struct plan_piece *piece = &text->pieces[i];
        struct value_view value;
        int rc = buf_add(out, piece->before);
        if (rc < 0 || !piece->value)
            return rc;
        if (value_of(u, piece->value, now_us, &value) < 0 || value.hidden)
            rc = buf_printf(out, ":%.*s", STR_ARG(piece->value->name));
        else
            rc = insert(&value, piece->insert, out);
        if (rc < 0)
            return rc;
    }
    return 0;
}

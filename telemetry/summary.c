#include "telemetry/summary.h"

#include "base/num.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_BYTES 4096 /* of one text of the metadata */

/* --- values -------------------------------------------------------------------------------------
 */

/* A measure as JSON; integers (counts) without a fraction. */
static json_t *measure_json(struct measure v, bool integer)
{
    if (!v.known)
        return json_null();
    return integer && fabs(v.value) < 9e15 ? json_integer((json_int_t)v.value) : json_real(v.value);
}

/* The same as a text of the flat form. */
static json_t *measure_text(struct measure v, bool integer)
{
    char text[NUM_TEXT_BYTES];
    if (!v.known)
        return json_null();
    if (integer && fabs(v.value) < 9e15)
        (void)snprintf(text, sizeof text, "%lld", (long long)v.value); /* fits */
    else
        num_format_repr(v.value, text);
    return json_string(text);
}

/* Times and counts: whole where they are whole. */
static json_t *plain_number(double v)
{
    if (!isfinite(v))
        return json_null();
    v = num_round(v, 3);
    return measure_json(measure_of(v), v == floor(v));
}

/* Text from outside: made valid UTF-8. */
static json_t *plain_text(const char *text)
{
    if (!text)
        return json_null();
    struct buf b;
    buf_init(&b, TEXT_BYTES);
    json_t *value = NULL;
    int rc = utf8_add_repaired(&b, str_of(text));
    if (rc == 0)
        value = json_stringn(buf_c(&b), b.len);
    else if (rc == -ERANGE)
        value = json_null();
    buf_done(&b);
    return value;
}

static json_t *distribution_json(const struct distribution *d)
{
    json_t *o = json_object();
    int rc = o ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < DISTRIBUTION_STATS; i++)
        rc = json_object_set_new(o, distribution_stat_name((enum distribution_stat)i),
                                 measure_json(d->stat[i], false));
    if (rc == 0)
        return o;
    json_decref(o);
    return NULL;
}

static json_t *point_json(const struct packing_point *p)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "timestamp", plain_number(p->wall_s), "busy_workers",
                     plain_number(p->busy), "total_workers", plain_number(p->total),
                     "packing_ratio", measure_json(p->ratio, false));
}

static json_t *packing_json(const struct packing *p)
{
    json_t *list = json_array();
    int rc = list ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < p->count; i++)
        rc = json_array_append_new(list, point_json(&p->points[i]));
    json_t *summary = rc == 0 ? distribution_json(&p->summary) : NULL;
    if (!summary) {
        json_decref(list);
        return NULL;
    }
    return json_pack("{s:o, s:o}", "summary", summary, "timeseries", list);
}

/* --- the document -------------------------------------------------------------------------------
 */

/* Put value (which it takes, NULL: out of memory) at a path, with the objects on the way. */
static int put(json_t *root, const char *path, json_t *value)
{
    if (!value)
        return -ENOMEM;
    struct str rest = str_of(path), part;
    json_t *at = root;
    while (str_next(&rest, '.', &part) && rest.ptr) {
        json_t *next = json_object_getn(at, part.ptr, part.len);
        if (!next) {
            next = json_object();
            if (json_object_setn_new(at, part.ptr, part.len, next) < 0) {
                json_decref(value);
                return -ENOMEM;
            }
        }
        at = next;
    }
    return json_object_setn_new(at, part.ptr, part.len, value) < 0 ? -ENOMEM : 0;
}

/* Put value under the name that the pattern makes with item. */
static int put_item(json_t *root, const struct braced *pattern, struct str item, json_t *value)
{
    struct buf name;
    buf_init(&name, 2 * PROFILE_NAME_BYTES);
    int rc = braced_add(&name, pattern, item);
    if (rc == 0)
        rc = put(root, buf_c(&name), value);
    else
        json_decref(value);
    buf_done(&name);
    return rc < 0 ? -ENOMEM : 0;
}

static int put_measurement(json_t *root, const struct profile_measurement *m,
                           const struct measured *v)
{
    struct braced names;
    struct str item;
    int rc = 0;
    switch (m->kind) {
    case PROFILE_RANGE_DISTRIBUTION:
        rc = put(root, m->name, distribution_json(&v->distribution));
        if (rc == 0 && m->count_as)
            rc = put(root, m->count_as, measure_json(v->series_count, true));
        return rc;
    case PROFILE_STATE_PACKING:
        return put(root, m->name, packing_json(&v->packing));
    case PROFILE_HISTOGRAM_QUANTILES:
        if (!braced_parse(str_of(m->name), &names))
            return -EINVAL;
        for (size_t i = 0; rc == 0 && braced_item(&names, i, &item); i++)
            rc = put_item(root, &names, item, measure_json(v->values[i], false));
        return rc;
    case PROFILE_VALUE:
    case PROFILE_COUNTER_GROWTH:
    case PROFILE_GROWTH_RATIO:
        break;
    }
    return put(root, m->name, measure_json(v->values[0], m->integer));
}

/* The URL as it was given, so that it can be compared, but without user-info, query and fragment.
 * http_url_shown decides what a URL is, and stands in when an '@' is left elsewhere. */
static json_t *shown_url(const char *url)
{
    struct buf normal;
    buf_init(&normal, TEXT_BYTES);
    int rc = url ? http_url_shown(&normal, url) : -EINVAL;
    json_t *value = rc == -ENOMEM ? NULL : json_null();
    if (rc == 0) {
        struct str given = str_of(url);
        size_t authority = str_find_str(given, STR("://")) + 3;
        struct str behind = str_sub(given, authority, strcspn(url, "?#"));
        size_t at = str_find(behind, '@');
        struct str rest = at < behind.len ? str_sub(behind, at + 1, behind.len) : behind;
        bool plain = authority < given.len && str_find(rest, '@') == rest.len;
        struct buf shown;
        buf_init(&shown, TEXT_BYTES);
        rc = buf_printf(&shown, "%.*s%.*s", STR_ARG(str_sub(given, 0, authority)), STR_ARG(rest));
        value =
            rc == -ENOMEM ? NULL : plain_text(plain && rc == 0 ? buf_c(&shown) : buf_c(&normal));
        buf_done(&shown);
    }
    buf_done(&normal);
    return value;
}

static json_t *metadata(const struct summary_head *h, const char *profile)
{
    const struct {
        const char *name;
        json_t *value;
    } all[] = {
        {"test_name", plain_text(h->test_name)},
        {"tag", plain_text(h->tag)},
        {"data_timestamp", plain_text(h->data_timestamp)},
        {"prom_url", shown_url(h->url)},
        {"profile", plain_text(profile)},
        {"start_ts", plain_number(h->run.start_s)},
        {"end_ts", plain_number(h->run.end_s)},
        {"steady_start_ts", plain_number(h->steady.start_s)},
        {"steady_end_ts", plain_number(h->steady.end_s)},
        {"telemetry_lag_s", plain_number(h->lag_s)},
        {"worker_pod_count", measure_json(h->worker_pod_count, true)},
        {"queries_ok", json_integer((json_int_t)h->queries_ok)},
        {"queries_failed", json_integer((json_int_t)h->queries_failed)},
    };
    json_t *o = json_object();
    int rc = o ? 0 : -1;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        rc |= json_object_set_new(o, all[i].name, all[i].value); /* takes each, and refuses NULL */
    if (rc == 0)
        return o;
    json_decref(o);
    return NULL;
}

json_t *summary_document(const struct summary_head *head, const struct profile *profile,
                         const struct measured *measured)
{
    json_t *root = json_object();
    int rc = root ? put(root, "metadata", metadata(head, profile->name)) : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < profile->count; i++)
        rc = put_measurement(root, &profile->measurements[i], &measured[i]);
    if (rc == 0)
        return root;
    json_decref(root);
    return NULL;
}

/* --- the flat form ------------------------------------------------------------------------------
 */

/* Where in the name's braces an item stands; it does, as was checked when the profile was loaded.
 */
static size_t item_index(const struct braced *names, struct str item)
{
    struct str other;
    size_t i = 0;
    while (braced_item(names, i, &other) && !str_eq(item, other))
        i++;
    return i < PROFILE_ITEMS_MAX ? i : 0;
}

static struct measure item_value(const struct profile_measurement *m, const struct measured *v,
                                 struct str item)
{
    enum distribution_stat stat;
    struct braced names;
    if (m->kind == PROFILE_HISTOGRAM_QUANTILES)
        return braced_parse(str_of(m->name), &names) ? v->values[item_index(&names, item)]
                                                     : MEASURE_UNKNOWN;
    return distribution_stat_parse(item, &stat) ? v->distribution.stat[stat] : MEASURE_UNKNOWN;
}

static int put_flat(json_t *root, const struct profile_measurement *m, const struct measured *v)
{
    struct braced pattern;
    struct str item;
    int rc = 0;
    if (!braced_parse(str_of(m->flat), &pattern))
        return -EINVAL;
    if (!pattern.has_items)
        return json_object_set_new(root, m->flat, measure_text(v->values[0], m->integer));
    for (size_t i = 0; rc == 0 && braced_item(&pattern, i, &item); i++)
        rc = put_item(root, &pattern, item, measure_text(item_value(m, v, item), false));
    return rc;
}

json_t *summary_flat(const struct profile *profile, const struct measured *measured)
{
    json_t *root = json_object();
    int rc = root ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < profile->count; i++) {
        if (profile->measurements[i].flat)
            rc = put_flat(root, &profile->measurements[i], &measured[i]);
    }
    if (rc == 0)
        return root;
    json_decref(root);
    return NULL;
}

/* 15 digits show every number of 4 decimals as it was rounded, without noise behind. */
int summary_write(struct buf *b, const json_t *document)
{
    char *text = json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    int rc = text ? buf_add(b, str_of(text)) : -ENOMEM;
    free(text);
    return rc < 0 ? rc : buf_add_byte(b, '\n');
}

/* ENTRY: METRIC ORDER LIMIT [steady] [abort [after TIME]], read word by word. */
#include "worker/scenario/threshold.h"

#include "base/log.h"
#include "base/num.h"

static const char form[] =
    "write it as 'p95 < 300', 'failure_ratio < 1 %' or 'GET /items: avg < 100'";

static const struct metric_word {
    const char *word;
    enum threshold_metric metric;
    double percent;
} metric_words[] = {
    {"avg", THRESHOLD_AVERAGE, 0},
    {"average", THRESHOLD_AVERAGE, 0},
    {"median", THRESHOLD_PERCENTILE, 50},
    {"min", THRESHOLD_MIN, 0},
    {"max", THRESHOLD_MAX, 0},
    {"rps", THRESHOLD_RPS, 0},
    {"failure_ratio", THRESHOLD_FAILURE_RATIO, 0},
    {"failures", THRESHOLD_FAILURES, 0},
    {"requests", THRESHOLD_REQUESTS, 0},
};

static const struct {
    const char *sign;
    enum threshold_order order;
} signs[] = {
    {"<=", THRESHOLD_AT_MOST}, /* before its beginning */
    {"<", THRESHOLD_BELOW},
    {">=", THRESHOLD_AT_LEAST},
    {">", THRESHOLD_ABOVE},
};

/* What may follow a limit, and how many of the metric's own unit it is. */
static const struct {
    const char *unit;
    double factor;
    bool time;
} units[] = {
    {"ms", 1, true},
    {"s", 1000, true},
    {"us", 0.001, true},
    {"%", 0.01, false},
};

static bool is_time(enum threshold_metric metric)
{
    return metric <= THRESHOLD_MAX;
}

static bool is_any_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c);
}

/* Take the bytes of set (or, until, those outside of it) off the front of *rest. */
static struct str take(struct str *rest, const char *set, bool until)
{
    size_t n = 0;
    while (n < rest->len && is_any_of(rest->ptr[n], set) != until)
        n++;
    struct str taken = str_sub(*rest, 0, n);
    *rest = str_sub(*rest, n, rest->len);
    return taken;
}

static int read_metric(struct str *rest, struct plan_threshold *t, struct err *err)
{
    char quoted[LOG_QUOTED_BYTES];
    struct str word = take(rest, " \t<>=", true);
    if (word.len > 1 && word.ptr[0] == 'p' &&
        num_parse_double(str_sub(word, 1, word.len), &t->percent) == 0) {
        if (!(t->percent > 0 && t->percent <= THRESHOLD_MAX_PERCENT))
            return err_set(err, -EINVAL, "a percentile is from p0 to p100, not %s",
                           log_quote(word, quoted));
        t->metric = THRESHOLD_PERCENTILE;
        return 0;
    }
    for (size_t i = 0; i < sizeof metric_words / sizeof *metric_words; i++) {
        if (!str_eq(word, str_of(metric_words[i].word)))
            continue;
        t->metric = metric_words[i].metric;
        t->percent = metric_words[i].percent;
        return 0;
    }
    return err_set(err, -EINVAL,
                   "unknown metric %s: there are p50 to p99.99, avg, median, min, max, rps, "
                   "failure_ratio, failures and requests",
                   log_quote(word, quoted));
}

static int read_order(struct str *rest, struct plan_threshold *t, struct err *err)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        struct str sign = str_of(signs[i].sign);
        if (!str_starts(*rest, sign))
            continue;
        t->order = signs[i].order;
        *rest = str_sub(*rest, sign.len, rest->len);
        return 0;
    }
    return err_set(err, -EINVAL, "needs <, <=, > or >= behind the metric: %s", form);
}

static int read_unit(struct str word, struct plan_threshold *t, struct err *err)
{
    char quoted[LOG_QUOTED_BYTES];
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        bool fits = units[i].time ? is_time(t->metric) : t->metric == THRESHOLD_FAILURE_RATIO;
        if (!fits || !str_eq(word, str_of(units[i].unit)))
            continue;
        t->limit *= units[i].factor;
        return 0;
    }
    return err_set(err, -EINVAL, "%s does not fit behind the limit: %s", log_quote(word, quoted),
                   is_time(t->metric)                     ? "a time is in ms, s or us"
                   : t->metric == THRESHOLD_FAILURE_RATIO ? "a ratio is from 0 to 1, or in %"
                                                          : "it has no unit");
}

static bool is_word(struct str word)
{
    return str_eq(word, STR("steady")) || str_eq(word, STR("abort"));
}

static int read_limit(struct str *rest, struct plan_threshold *t, struct err *err)
{
    char quoted[LOG_QUOTED_BYTES];
    struct str number = take(rest, "0123456789.+-eE", false);
    if (num_parse_double(number, &t->limit) < 0)
        return err_set(err, -EINVAL, "the limit must be a number, not %s",
                       log_quote(number.len ? number : *rest, quoted));
    (void)take(rest, " \t", false);
    struct str after = *rest, unit = take(&after, " \t", true);
    if (unit.len > 0 && !is_word(unit)) {
        int rc = read_unit(unit, t, err);
        if (rc < 0)
            return rc;
        *rest = after;
    }
    if (t->limit < 0)
        return err_set(err, -EINVAL, "the limit must not be below zero");
    if (t->metric == THRESHOLD_FAILURE_RATIO && t->limit > 1)
        return err_set(err, -EINVAL, "a ratio is from 0 to 1, or in %%");
    return 0;
}

static int read_grace(struct str *rest, struct plan_threshold *t, struct err *err)
{
    char quoted[LOG_QUOTED_BYTES];
    struct str time = take(rest, " \t", true);
    uint64_t grace_s;
    if (num_parse_timespan_s(time, &grace_s) < 0 || grace_s > UINT32_MAX)
        return err_set(err, -EINVAL, "'after' needs a time as 20, 20s or 1m30s, not %s",
                       log_quote(time, quoted));
    t->grace_us = grace_s * 1000000;
    return 0;
}

static int read_words(struct str rest, struct plan_threshold *t, struct err *err)
{
    char quoted[LOG_QUOTED_BYTES];
    for (;;) {
        (void)take(&rest, " \t", false);
        struct str word = take(&rest, " \t", true);
        int rc = 0;
        if (word.len == 0)
            return 0;
        (void)take(&rest, " \t", false);
        if (str_eq(word, STR("steady")))
            t->steady = true;
        else if (str_eq(word, STR("abort")))
            t->abort = true;
        else if (t->abort && str_eq(word, STR("after")))
            rc = read_grace(&rest, t, err);
        else
            rc = err_set(err, -EINVAL, "%s is too much: %s", log_quote(word, quoted), form);
        if (rc < 0)
            return rc;
    }
}

/* "METHOD name" before the last colon: there is none in what follows. */
static int read_entry(struct str *rest, struct plan_threshold *t, struct err *err)
{
    size_t colon = rest->len;
    while (colon > 0 && rest->ptr[colon - 1] != ':')
        colon--;
    if (colon == 0)
        return 0;
    struct str entry = str_trim(str_sub(*rest, 0, colon - 1));
    *rest = str_trim(str_sub(*rest, colon, rest->len));
    size_t blank = str_find(entry, ' ');
    t->method = str_sub(entry, 0, blank);
    t->name = str_trim(str_sub(entry, blank, entry.len));
    if (t->name.len == 0)
        return err_set(err, -EINVAL, "before ':' stands a method and a name, as 'GET /items'");
    return 0;
}

int threshold_parse(struct str text, struct plan_threshold *ret, struct err *err)
{
    struct plan_threshold t = {.text = str_trim(text),
                               .grace_us = (uint64_t)THRESHOLD_GRACE_S * 1000000};
    struct str rest = t.text;
    if (rest.len == 0)
        return err_set(err, -EINVAL, "is empty: %s", form);
    int rc = read_entry(&rest, &t, err);
    if (rc == 0)
        rc = read_metric(&rest, &t, err);
    if (rc == 0) {
        (void)take(&rest, " \t", false);
        rc = read_order(&rest, &t, err);
    }
    if (rc == 0) {
        (void)take(&rest, " \t", false);
        rc = read_limit(&rest, &t, err);
    }
    if (rc == 0)
        rc = read_words(rest, &t, err);
    if (rc == 0)
        *ret = t;
    return rc;
}

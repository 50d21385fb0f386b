#include "worker/report/generator.h"

#include "base/rank.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SECONDS 256

int generator_add(struct generator *g, const struct generator_second *second)
{
    if (g->count == g->cap) {
        size_t cap = g->cap ? g->cap * 2 : FIRST_SECONDS;
        struct generator_second *grown = realloc(g->seconds, cap * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        g->seconds = grown;
        g->cap = cap;
    }
    g->seconds[g->count++] = *second;
    return 0;
}

void generator_done(struct generator *g)
{
    free(g->seconds);
    *g = (struct generator){0};
}

static void add_reason(struct generator_verdict *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_reason(struct generator_verdict *v, const char *format, ...)
{
    size_t used = strlen(v->reasons);
    va_list args;
    va_start(args, format);
    if (used > 0 && used + 2 < sizeof v->reasons) {
        memcpy(v->reasons + used, "; ", 3);
        used += 2;
    }
    (void)vsnprintf(v->reasons + used, sizeof v->reasons - used, format,
                    args); /* cut: still told */
    va_end(args);
    v->saturated = true;
}

/* The worst of all stretches of GENERATOR_SECONDS steady seconds in a row: how busy its CPU was on
 * average, and how small its lag was at the least. False when there is no such stretch. */
static bool worst_stretch(const struct generator *g, double *ret_cpu_pct, double *ret_lag_ms)
{
    bool found = false;
    size_t steady = 0;
    *ret_cpu_pct = *ret_lag_ms = 0;
    for (size_t i = 0; i < g->count; i++) {
        steady = g->seconds[i].steady ? steady + 1 : 0;
        if (steady < GENERATOR_SECONDS)
            continue;
        double cpu_pct = 0, lag_ms = g->seconds[i].loop_lag_ms;
        for (size_t j = i + 1 - GENERATOR_SECONDS; j <= i; j++) {
            cpu_pct += g->seconds[j].cpu_pct / GENERATOR_SECONDS;
            if (g->seconds[j].loop_lag_ms < lag_ms)
                lag_ms = g->seconds[j].loop_lag_ms;
        }
        found = true;
        *ret_cpu_pct = cpu_pct > *ret_cpu_pct ? cpu_pct : *ret_cpu_pct;
        *ret_lag_ms = lag_ms > *ret_lag_ms ? lag_ms : *ret_lag_ms;
    }
    return found;
}

static void add_exhausted(struct generator_verdict *v, uint64_t count, const char *what)
{
    if (count > 0)
        add_reason(v, "%s ran out (%llu)", what, (unsigned long long)count);
}

/* The times tell nothing of tasks that never started; a few at the end may be chance. */
static void judge_missed(const struct engine_status *end, struct generator_verdict *v)
{
    double due = (double)end->tasks_started + (double)end->arrivals_missed;
    if ((double)end->arrivals_missed * 100 > due * GENERATOR_MISSED_PCT)
        add_reason(v, "users ran out (%llu tasks never started)",
                   (unsigned long long)end->arrivals_missed);
}

static void judge_saturation(const struct generator *g, const struct engine_status *end,
                             struct generator_verdict *v)
{
    double cpu_pct, lag_ms;
    v->too_short = !worst_stretch(g, &cpu_pct, &lag_ms);
    if (!v->too_short) {
        if (cpu_pct > GENERATOR_CPU_PCT)
            add_reason(v, "CPU of the busiest thread at %.0f %% for %d s", cpu_pct,
                       GENERATOR_SECONDS);
        if (lag_ms > GENERATOR_LAG_MS)
            add_reason(v, "event loop late by %.0f ms and more for %d s", lag_ms,
                       GENERATOR_SECONDS);
    }
    add_exhausted(v, end->ports_exhausted, "local ports");
    add_exhausted(v, end->files_exhausted, "file descriptors");
    add_exhausted(v, end->memory_exhausted, "memory");
    judge_missed(end, v);
}

/* values has room for as many numbers as there are seconds. */
static size_t gather(const struct generator *g, bool lag, double *values)
{
    for (size_t i = 0; i < g->count; i++)
        values[i] = lag ? g->seconds[i].loop_lag_ms : g->seconds[i].cpu_pct;
    rank_sort(values, g->count);
    return g->count;
}

int generator_judge(const struct generator *g, const struct engine_status *end,
                    struct generator_verdict *ret)
{
    *ret = (struct generator_verdict){
        .missed_starts_1ms = end->late_starts_1ms + end->arrivals_missed,
        .missed_starts_10ms = end->late_starts_10ms + end->arrivals_missed,
        .connect_errors = end->connections_failed,
        .retries = end->retries,
        .sockets_peak = end->sockets_peak,
    };
    judge_saturation(g, end, ret);
    if (g->count == 0)
        return 0;
    double *values = calloc(g->count, sizeof *values);
    if (!values)
        return -ENOMEM;
    size_t n = gather(g, false, values);
    ret->cpu_p50 = measure_of(rank_of(values, n, 0.5));
    ret->cpu_p90 = measure_of(rank_of(values, n, 0.9));
    ret->cpu_max = measure_of(values[n - 1]);
    n = gather(g, true, values);
    ret->loop_lag_p99_ms = measure_of(rank_of(values, n, 0.99));
    free(values);
    return 0;
}

/* All samples become rows (time, process, busy, value); sorted by time and then by the rank of
 * their process, the rows of the process that counts are the first of each time. */
#include "telemetry/packing.h"

#include "base/num.h"

#include <math.h>
#include <stdlib.h>

struct process {
    const struct query_answer_series *series; /* one of its series, for its labels */
    double first_s, last_s;
    size_t rank; /* 0 is the one to prefer */
};

struct row {
    double wall_s;
    size_t rank;
    double busy, total;
};

struct packer {
    const json_t *labels;
    struct process *processes;
    size_t process_count;
    size_t *process_of; /* by series */
};

static int label_order(const json_t *labels, const struct query_answer_series *a,
                       const struct query_answer_series *b)
{
    int order = 0;
    for (size_t i = 0; order == 0 && i < json_array_size(labels); i++) {
        const char *name = json_string_value(json_array_get(labels, i));
        order = str_cmp(query_answer_label(a, name), query_answer_label(b, name));
    }
    return order;
}

/* PACKING_PROCESSES_MAX when there are that many already. */
static size_t process_of(struct packer *k, const struct query_answer_series *s)
{
    for (size_t i = 0; i < k->process_count; i++) {
        if (label_order(k->labels, k->processes[i].series, s) == 0)
            return i;
    }
    if (k->process_count == PACKING_PROCESSES_MAX)
        return PACKING_PROCESSES_MAX;
    k->processes[k->process_count] = (struct process){s, HUGE_VAL, -HUGE_VAL, 0};
    return k->process_count++;
}

static int find_processes(struct packer *k, const struct query_answer *a)
{
    for (size_t i = 0; i < a->count; i++) {
        size_t at = k->process_of[i] = process_of(k, &a->series[i]);
        if (at == PACKING_PROCESSES_MAX)
            return -ERANGE;
        for (size_t j = 0; j < a->series[i].count; j++) {
            double wall_s = a->series[i].samples[j].wall_s;
            k->processes[at].first_s = fmin(k->processes[at].first_s, wall_s);
            k->processes[at].last_s = fmax(k->processes[at].last_s, wall_s);
        }
    }
    return 0;
}

static bool preferred(const struct packer *k, const struct process *a, const struct process *b)
{
    if (a->last_s != b->last_s)
        return a->last_s > b->last_s;
    if (a->first_s != b->first_s)
        return a->first_s > b->first_s;
    return label_order(k->labels, a->series, b->series) > 0;
}

/* Processes are few: replicas of one server. */
static void rank_processes(struct packer *k)
{
    for (size_t i = 0; i < k->process_count; i++) {
        for (size_t j = 0; j < k->process_count; j++)
            k->processes[i].rank += preferred(k, &k->processes[j], &k->processes[i]);
    }
}

static bool is_busy(const json_t *busy, struct str state)
{
    for (size_t i = 0; i < json_array_size(busy); i++) {
        const json_t *text = json_array_get(busy, i);
        if (str_eq(state, (struct str){json_string_value(text), json_string_length(text)}))
            return true;
    }
    return false;
}

static size_t fill_rows(const struct packer *k, const struct query_answer *a, const char *state,
                        const json_t *busy, struct row *rows)
{
    size_t n = 0;
    for (size_t i = 0; i < a->count; i++) {
        const struct query_answer_series *s = &a->series[i];
        bool counts = is_busy(busy, query_answer_label(s, state));
        size_t rank = k->processes[k->process_of[i]].rank;
        for (size_t j = 0; j < s->count; j++, n++)
            rows[n] = (struct row){s->samples[j].wall_s, rank, counts ? s->samples[j].value : 0,
                                   s->samples[j].value};
    }
    return n;
}

static int row_order(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->wall_s != y->wall_s)
        return x->wall_s < y->wall_s ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void merge_rows(struct packing *p, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count;) {
        struct packing_point *point = &p->points[p->count++];
        *point = (struct packing_point){.wall_s = rows[i].wall_s};
        size_t rank = rows[i].rank;
        for (; i < count && rows[i].wall_s == point->wall_s; i++) {
            if (rows[i].rank != rank)
                continue;
            point->busy += rows[i].busy;
            point->total += rows[i].total;
        }
        if (point->total > 0)
            point->ratio = measure_of(num_round(point->busy / point->total, DISTRIBUTION_DECIMALS));
    }
}

static int summarise(struct packing *p, struct window steady)
{
    size_t n = 0;
    double *ratios = p->count ? calloc(p->count, sizeof *ratios) : NULL;
    if (p->count && !ratios)
        return -ENOMEM;
    for (size_t i = 0; i < p->count; i++) {
        const struct packing_point *point = &p->points[i];
        if (point->ratio.known && point->wall_s >= steady.start_s && point->wall_s <= steady.end_s)
            ratios[n++] = point->ratio.value;
    }
    p->summary = distribution_of(ratios, n);
    free(ratios);
    return 0;
}

static size_t sample_count(const struct query_answer *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->count; i++)
        n += a->series[i].count;
    return n;
}

int packing_of(const struct query_answer *a, const json_t *process, const char *state,
               const json_t *busy, struct window steady, struct packing *ret)
{
    *ret = (struct packing){0};
    size_t n = sample_count(a);
    if (n == 0)
        return 0;
    struct packer k = {
        .labels = process,
        .processes = calloc(a->count, sizeof *k.processes),
        .process_of = calloc(a->count, sizeof *k.process_of),
    };
    struct row *rows = calloc(n, sizeof *rows);
    ret->points = calloc(n, sizeof *ret->points);
    int rc = k.processes && k.process_of && rows && ret->points ? 0 : -ENOMEM;
    if (rc == 0)
        rc = find_processes(&k, a);
    if (rc == 0) {
        rank_processes(&k);
        (void)fill_rows(&k, a, state, busy, rows); /* n, as counted */
        qsort(rows, n, sizeof *rows, row_order);
        merge_rows(ret, rows, n);
        rc = summarise(ret, steady);
    }
    free(rows);
    free(k.processes);
    free(k.process_of);
    return rc;
}

void packing_done(struct packing *p)
{
    free(p->points);
    *p = (struct packing){0};
}

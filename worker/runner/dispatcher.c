/* Locust's generators as data: what a suspended generator remembers is in struct dispatcher. */
#include "worker/runner/dispatcher.h"

#include <math.h>
#include <stdlib.h>

#define LONGEST_WAIT_S 1e9

/* --- who is next ---------------------------------------------------------------------------- */

static const struct plan_class *class_at(const struct dispatcher *d, uint32_t class)
{
    return &d->plan->classes[class];
}

/* The order of Python's tuples (divergence, next, weight, name); names are distinct. */
static bool before(const struct dispatcher *d, const struct dispatcher_choice *a,
                   const struct dispatcher_choice *b)
{
    if (a->divergence != b->divergence)
        return a->divergence < b->divergence;
    if (a->next != b->next)
        return a->next < b->next;
    if (a->weight != b->weight)
        return a->weight < b->weight;
    return str_cmp(class_at(d, a->class)->name, class_at(d, b->class)->name) < 0;
}

static void sink(const struct dispatcher *d, struct dispatcher_order *o, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < o->count; child++) {
            if (before(d, &o->heap[child], &o->heap[least]))
                least = child;
        }
        if (least == at)
            return;
        struct dispatcher_choice moved = o->heap[at];
        o->heap[at] = o->heap[least];
        o->heap[least] = moved;
        at = least;
    }
}

static struct dispatcher_choice choice(uint32_t class, double weight)
{
    return (struct dispatcher_choice){
        .divergence = weight * log2(weight / (weight + 1.0)),
        .next = weight + 1.0,
        .weight = weight,
        .class = class,
    };
}

static void build(const struct dispatcher *d, struct dispatcher_order *o)
{
    for (size_t i = o->count / 2; i-- > 0;)
        sink(d, o, i);
}

/* The next class of an order that is not empty. */
static uint32_t take(const struct dispatcher *d, struct dispatcher_order *o)
{
    struct dispatcher_choice *top = &o->heap[0];
    uint32_t class = top->class;
    top->divergence = top->weight * log2(top->next / (top->next + 1.0));
    top->next += 1.0;
    sink(d, o, 0);
    return class;
}

static void order_by_weight(struct dispatcher *d)
{
    struct dispatcher_order *o = &d->weighted;
    o->count = 0;
    for (uint32_t c = 0; c < d->plan->class_count; c++) {
        if (d->chosen[c] && class_at(d, c)->fixed_count == 0)
            o->heap[o->count++] = choice(c, (double)class_at(d, c)->weight);
    }
    build(d, o);
}

/* How many users a class must have, whatever the weights say. */
static uint32_t fixed_users(const struct dispatcher *d, uint32_t class)
{
    if (d->by_class)
        return d->wished[class];
    return d->chosen[class] ? class_at(d, class)->fixed_count : 0;
}

static void order_missing(struct dispatcher *d)
{
    struct dispatcher_order *o = &d->fixed;
    o->count = 0;
    d->fixed_left = 0;
    for (uint32_t c = 0; c < d->plan->class_count; c++) {
        uint32_t fixed = fixed_users(d, c);
        if (fixed <= d->counts[c])
            continue;
        o->heap[o->count++] = choice(c, (double)(fixed - d->counts[c]));
        d->fixed_left += fixed - d->counts[c];
    }
    build(d, o);
}

/* The class of the next user; false when no class can have one more. */
static bool next_class(struct dispatcher *d, uint32_t *ret)
{
    if (d->fixed_left == 0 && d->try_fixed) {
        d->try_fixed = false;
        order_missing(d);
    }
    if (d->fixed_left > 0) {
        d->fixed_left--;
        *ret = take(d, &d->fixed);
        return true;
    }
    if (d->weighted.count == 0)
        return false;
    *ret = take(d, &d->weighted);
    return true;
}

/* --- making --------------------------------------------------------------------------------- */

int dispatcher_init(struct dispatcher *d, const struct plan *plan, const bool *wanted)
{
    size_t n = plan->class_count;
    *d = (struct dispatcher){.plan = plan, .try_fixed = true};
    d->chosen = calloc(n, sizeof *d->chosen);
    d->wished = calloc(n, sizeof *d->wished);
    d->counts = calloc(n, sizeof *d->counts);
    d->weighted.heap = calloc(n, sizeof *d->weighted.heap);
    d->fixed.heap = calloc(n, sizeof *d->fixed.heap);
    if (!d->chosen || !d->wished || !d->counts || !d->weighted.heap || !d->fixed.heap) {
        dispatcher_done(d);
        return -ENOMEM;
    }
    for (size_t c = 0; c < n; c++)
        d->chosen[c] = !wanted || wanted[c];
    order_by_weight(d);
    return 0;
}

void dispatcher_done(struct dispatcher *d)
{
    free(d->chosen);
    free(d->wished);
    free(d->counts);
    free(d->active);
    free(d->weighted.heap);
    free(d->fixed.heap);
    *d = (struct dispatcher){0};
}

/* --- ramps ---------------------------------------------------------------------------------- */

static int make_room(struct dispatcher *d, uint32_t target)
{
    if (target <= d->active_cap)
        return 0;
    uint32_t *grown = realloc(d->active, target * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    d->active = grown;
    d->active_cap = target;
    return 0;
}

/* Other classes than before: the order by weight begins anew, and what was left of a fixed order is
 * forgotten; whether fixed users are missing is asked only when it was to be asked anyway. */
static void choose(struct dispatcher *d, const bool *chosen)
{
    size_t bytes = d->plan->class_count * sizeof *chosen;
    if (memcmp(d->chosen, chosen, bytes) == 0)
        return;
    memcpy(d->chosen, chosen, bytes);
    d->fixed_left = 0;
    order_by_weight(d);
}

static void set_pace(struct dispatcher *d, uint32_t target, double rate)
{
    double whole = floor(rate);
    d->target = target;
    d->at_once = whole < 1                      ? 1
                 : whole > DISPATCHER_MAX_USERS ? DISPATCHER_MAX_USERS
                                                : (uint32_t)whole;
    double wait_s = (double)d->at_once / rate;
    d->wait_us =
        wait_s < LONGEST_WAIT_S ? (uint64_t)(wait_s * 1e6) : (uint64_t)(LONGEST_WAIT_S * 1e6);
}

int dispatcher_ramp(struct dispatcher *d, uint32_t target, double rate, const bool *chosen)
{
    if (target > DISPATCHER_MAX_USERS)
        return -ERANGE;
    int rc = make_room(d, target);
    if (rc < 0)
        return rc;
    if (d->by_class) { /* what it left is looked at as it is */
        d->by_class = false;
        d->fixed_left = 0;
        d->try_fixed = true;
    }
    if (chosen)
        choose(d, chosen);
    set_pace(d, target, rate);
    return 0;
}

int dispatcher_ramp_to(struct dispatcher *d, const uint32_t *class_users, double rate)
{
    size_t n = d->plan->class_count;
    uint64_t target = 0, missing = 0;
    for (size_t c = 0; c < n; c++) {
        target += class_users[c];
        missing += class_users[c] > d->counts[c] ? class_users[c] - d->counts[c] : 0;
    }
    if (target > DISPATCHER_MAX_USERS)
        return -ERANGE;
    int rc = make_room(d, (uint32_t)(d->active_count + missing)); /* they come before others go */
    if (rc < 0)
        return rc;
    memcpy(d->wished, class_users, n * sizeof *d->wished);
    d->by_class = true;
    order_missing(d);
    set_pace(d, (uint32_t)target, rate);
    return 0;
}

static bool add_users(struct dispatcher *d, uint32_t until)
{
    uint32_t class;
    while (d->active_count < until) {
        if (!next_class(d, &class))
            return false;
        d->counts[class]++;
        d->active[d->active_count++] = class;
    }
    return d->active_count != d->target;
}

static bool remove_users(struct dispatcher *d, uint32_t until)
{
    while (d->active_count > until) {
        d->counts[d->active[--d->active_count]]--;
        d->try_fixed = true;
    }
    return d->active_count != d->target;
}

/* Of the classes that have too many, the last ones; at most a step of them. */
static void remove_surplus(struct dispatcher *d)
{
    uint32_t left = d->at_once;
    size_t kept = d->active_count;
    for (size_t i = d->active_count; i-- > 0 && left > 0;) {
        uint32_t class = d->active[i];
        if (d->counts[class] <= d->wished[class])
            continue;
        d->counts[class]--;
        left--;
        kept--;
        memmove(d->active + i, d->active + i + 1, (kept - i) * sizeof *d->active);
    }
    d->active_count = kept;
}

static bool step_by_class(struct dispatcher *d)
{
    for (uint32_t i = 0; i < d->at_once && d->fixed_left > 0; i++) {
        uint32_t class = take(d, &d->fixed);
        d->fixed_left--;
        d->counts[class]++;
        d->active[d->active_count++] = class;
    }
    remove_surplus(d);
    return memcmp(d->counts, d->wished, d->plan->class_count * sizeof *d->counts) != 0;
}

bool dispatcher_step(struct dispatcher *d)
{
    if (d->by_class)
        return step_by_class(d);
    uint32_t now = (uint32_t)d->active_count;
    if (now < d->target)
        return add_users(d, d->target - now > d->at_once ? now + d->at_once : d->target);
    if (now > d->target)
        return remove_users(d, now - d->target > d->at_once ? now - d->at_once : d->target);
    return false;
}

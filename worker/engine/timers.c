/* A wheel after Varghese and Lauck: level 0 has a slot for each of the next 256 ticks, level 1 one
 * for each 256 ticks, and so on; a slot of a higher level is dealt out to the lower ones when its
 * time comes. A bit for each slot makes finding the next one cheap. The alternative, a heap, costs
 * a chain of cache misses for each of 100,000 waiting users. */
#include "worker/engine/timers.h"

#define SLOT_MASK (TIMERS_SLOTS - 1)
#define SLOT_BITS 8

static uint64_t tick_at_or_after(uint64_t us)
{
    return (us + (1u << TIMERS_TICK_SHIFT) - 1) >> TIMERS_TICK_SHIFT;
}

void timers_init(struct timers *w, uint64_t now_us)
{
    *w = (struct timers){.tick = (now_us >> TIMERS_TICK_SHIFT) + 1, .next_us = UINT64_MAX};
    for (int level = 0; level < TIMERS_LEVELS; level++) {
        for (int i = 0; i < TIMERS_SLOTS; i++) {
            struct timer *head = &w->slots[level][i];
            head->next = head->prev = head;
        }
    }
}

static void link_in(struct timers *w, struct timer *t)
{
    uint64_t due = tick_at_or_after(t->due_us), last = ((uint64_t)1 << 32) - 1;
    if (due < w->tick)
        due = w->tick;
    if (due << TIMERS_TICK_SHIFT < w->next_us)
        w->next_us = due << TIMERS_TICK_SHIFT;
    uint64_t ahead = due - w->tick;
    if (ahead > last) {
        ahead = last;
        due = w->tick + last;
    }
    int level = 0;
    while (ahead >= TIMERS_SLOTS) {
        ahead >>= SLOT_BITS;
        level++;
    }
    unsigned slot = (unsigned)(due >> (SLOT_BITS * level)) & SLOT_MASK;
    struct timer *head = &w->slots[level][slot];
    t->next = head;
    t->prev = head->prev;
    head->prev->next = t;
    head->prev = t;
    w->used[level][slot / 64] |= (uint64_t)1 << (slot % 64);
}

/* The slot's bit may stay set when it becomes empty; whoever comes to it clears the bit. */
static void link_out(struct timer *t)
{
    t->prev->next = t->next;
    t->next->prev = t->prev;
    t->next = t->prev = NULL;
}

void timers_set(struct timers *w, struct timer *t, uint64_t due_us)
{
    if (timer_is_set(t))
        link_out(t);
    else
        w->count++;
    t->due_us = due_us;
    link_in(w, t);
}

void timers_cancel(struct timers *w, struct timer *t)
{
    if (!timer_is_set(t))
        return;
    link_out(t);
    if (--w->count == 0)
        w->next_us = UINT64_MAX;
}

/* The first used slot of a level at or after `from`, going round once: how many slots ahead, or
 * TIMERS_SLOTS for none. */
static unsigned slots_ahead(const struct timers *w, int level, unsigned from)
{
    const uint64_t *used = w->used[level];
    for (unsigned step = 0; step <= TIMERS_SLOTS / 64; step++) {
        unsigned word = (from / 64 + step) % (TIMERS_SLOTS / 64);
        uint64_t bits = used[word];
        if (step == 0)
            bits &= ~(uint64_t)0 << (from % 64);
        else if (step == TIMERS_SLOTS / 64)
            bits &= ~(~(uint64_t)0 << (from % 64));
        if (bits) {
            unsigned slot = word * 64 + (unsigned)__builtin_ctzll(bits);
            return (slot - from) & SLOT_MASK;
        }
    }
    return TIMERS_SLOTS;
}

/* When the earliest slot is due. */
static uint64_t find_next_us(const struct timers *w)
{
    uint64_t next = UINT64_MAX;
    if (w->count == 0)
        return next;
    for (int level = 0; level < TIMERS_LEVELS; level++) {
        int shift = SLOT_BITS * level;
        /* the slot under the hand of a higher level is a whole turn away, unless the hand is just
         * entering it */
        uint64_t hand = w->tick >> shift;
        bool entering = (w->tick & (((uint64_t)1 << shift) - 1)) == 0;
        if (!entering)
            hand++;
        unsigned ahead = slots_ahead(w, level, (unsigned)hand & SLOT_MASK);
        if (ahead == TIMERS_SLOTS)
            continue;
        uint64_t at = (hand + ahead) << shift;
        if (at < next)
            next = at;
    }
    return next == UINT64_MAX ? next : next << TIMERS_TICK_SHIFT;
}

/* Take all timers of a slot into the list at head. */
static void take_slot(struct timers *w, int level, unsigned slot, struct timer *head)
{
    struct timer *from = &w->slots[level][slot];
    w->used[level][slot / 64] &= ~((uint64_t)1 << (slot % 64));
    head->next = head->prev = head;
    if (from->next == from)
        return;
    *head = (struct timer){.next = from->next, .prev = from->prev};
    head->next->prev = head->prev->next = head;
    from->next = from->prev = from;
}

static void deal_out(struct timers *w, int level)
{
    struct timer list;
    take_slot(w, level, (unsigned)(w->tick >> (SLOT_BITS * level)) & SLOT_MASK, &list);
    while (list.next != &list) {
        struct timer *t = list.next;
        link_out(t);
        link_in(w, t);
    }
}

/* What is left of a tick's timers comes first in the next tick. */
static void put_back(struct timers *w, struct timer *list)
{
    unsigned slot = (unsigned)w->tick & SLOT_MASK;
    struct timer *head = &w->slots[0][slot];
    list->prev->next = head->next;
    head->next->prev = list->prev;
    head->next = list->next;
    list->next->prev = head;
    w->used[0][slot / 64] |= (uint64_t)1 << (slot % 64);
}

static void run_ticks(struct timers *w, uint64_t now_us, void *context)
{
    unsigned left = TIMERS_A_RUN;
    uint64_t target = now_us >> TIMERS_TICK_SHIFT;
    while (w->tick <= target) {
        unsigned slot = (unsigned)w->tick & SLOT_MASK;
        for (int level = TIMERS_LEVELS - 1; level > 0; level--) {
            if ((w->tick & (((uint64_t)1 << (SLOT_BITS * level)) - 1)) == 0)
                deal_out(w, level);
        }
        struct timer due;
        take_slot(w, 0, slot, &due);
        w->tick++; /* what a callback sets goes behind this tick */
        while (due.next != &due) {
            struct timer *t = due.next;
            if (left-- == 0) {
                put_back(w, &due);
                return;
            }
            link_out(t);
            w->count--;
            t->fire(t, context, now_us);
        }
        /* over the empty slots, but stop where a higher level is dealt out */
        if (((unsigned)w->tick & SLOT_MASK) != 0) {
            unsigned here = (unsigned)w->tick & SLOT_MASK, ahead = slots_ahead(w, 0, here);
            uint64_t turn = TIMERS_SLOTS - here;
            uint64_t skip = ahead < turn ? ahead : turn;
            w->tick = w->tick + skip <= target ? w->tick + skip : target + 1;
        }
    }
}

/* The next time is sought only when this one has come: a loop under full load passes by here more
 * often than anything is due. */
void timers_run_due(struct timers *w, uint64_t now_us, void *context)
{
    run_ticks(w, now_us, context);
    w->next_us = find_next_us(w);
}

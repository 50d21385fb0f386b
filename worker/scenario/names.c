#include "worker/scenario/names.h"

#define FIRST_ROOM 16u

static size_t slot_of(const struct names *t, struct str method, struct str name)
{
    size_t mask = t->room * 2 - 1;
    size_t at = (str_hash(name) ^ (str_hash(method) << 1)) & mask;
    while (t->slots[at]) {
        const struct plan_entry *item = &t->items[t->slots[at] - 1];
        if (str_eq(item->name, name) && str_eq(item->method, method))
            break;
        at = (at + 1) & mask;
    }
    return at;
}

static int grow(struct names *t)
{
    size_t room = t->room ? t->room * 2 : FIRST_ROOM;
    struct plan_entry *items = ARENA_ARRAY(t->arena, struct plan_entry, room);
    uint32_t *slots = ARENA_ARRAY(t->arena, uint32_t, room * 2);
    if (!items || !slots)
        return -ENOMEM;
    if (t->count)
        memcpy(items, t->items, t->count * sizeof *items);
    t->items = items;
    t->slots = slots;
    t->room = room;
    for (size_t i = 0; i < t->count; i++)
        slots[slot_of(t, items[i].method, items[i].name)] = (uint32_t)i + 1;
    return 0;
}

int names_add(struct names *t, struct str method, struct str name, uint32_t *ret_index,
              bool *ret_new)
{
    if (t->count == t->room) {
        int rc = grow(t);
        if (rc < 0)
            return rc;
    }
    size_t at = slot_of(t, method, name);
    *ret_new = t->slots[at] == 0;
    if (*ret_new) {
        t->items[t->count] = (struct plan_entry){method, name};
        t->slots[at] = (uint32_t)++t->count;
    }
    *ret_index = t->slots[at] - 1;
    return 0;
}

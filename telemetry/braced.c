#include "telemetry/braced.h"

bool braced_parse(struct str text, struct braced *ret)
{
    size_t open = str_find(text, '{'), close = str_find(text, '}');
    if (open == text.len && close == text.len) {
        *ret = (struct braced){.before = text};
        return true;
    }
    if (open == text.len || close == text.len || close < open)
        return false;
    struct braced b = {
        .before = str_sub(text, 0, open),
        .items = str_sub(text, open + 1, close),
        .after = str_sub(text, close + 1, text.len),
        .has_items = true,
    };
    if (str_find(b.items, '{') < b.items.len || str_find(b.after, '{') < b.after.len ||
        str_find(b.after, '}') < b.after.len)
        return false;
    struct str rest = b.items, item;
    while (str_next(&rest, ',', &item)) {
        if (item.len == 0)
            return false;
    }
    *ret = b;
    return true;
}

bool braced_item(const struct braced *b, size_t index, struct str *ret)
{
    if (!b->has_items)
        return false;
    struct str rest = b->items, item;
    for (size_t i = 0; str_next(&rest, ',', &item); i++) {
        if (i == index) {
            *ret = item;
            return true;
        }
    }
    return false;
}

size_t braced_count(const struct braced *b)
{
    size_t n = 0;
    struct str rest = b->items, item;
    while (b->has_items && str_next(&rest, ',', &item))
        n++;
    return n;
}

int braced_add(struct buf *out, const struct braced *b, struct str item)
{
    int rc = buf_add(out, b->before);
    if (rc == 0 && b->has_items)
        rc = buf_add(out, item);
    return rc < 0 ? rc : buf_add(out, b->after);
}

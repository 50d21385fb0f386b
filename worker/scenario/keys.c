#include "worker/scenario/load.h"

#include "base/log.h"

#define LONGEST_KEY 32 /* longer ones get no suggestion */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits (a byte more, less, other, or two swapped) between two short words. */
static size_t distance(struct str a, struct str b)
{
    size_t d[LONGEST_KEY + 1][LONGEST_KEY + 1];
    for (size_t i = 0; i <= a.len; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= b.len; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        for (size_t j = 1; j <= b.len; j++) {
            size_t differs = a.ptr[i - 1] != b.ptr[j - 1];
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + differs);
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[a.len][b.len];
}

static bool has_word(const char *words, struct str word)
{
    struct str rest = str_of(words), one;
    while (rest.ptr && str_next(&rest, ' ', &one)) {
        if (str_eq(one, word))
            return true;
    }
    return false;
}

/* The known key that was most likely meant: another tool's word for it, the same word in other
 * letters, or one with few edits. NULL: none is near. */
const char *load_nearest(struct str given, const struct load_key *keys, size_t key_count)
{
    const char *best = NULL;
    if (given.len > LONGEST_KEY)
        return NULL;
    size_t best_distance = given.len / 3 + 2; /* one edit for a short word, more for a long one */
    for (size_t i = 0; i < key_count; i++) {
        struct str name = str_of(keys[i].name);
        if (has_word(keys[i].also, given) || str_eq_nocase(name, given))
            return keys[i].name;
        if (name.len > LONGEST_KEY) /* a variable's */
            continue;
        size_t edits = distance(given, name);
        if (edits < best_distance) {
            best = keys[i].name;
            best_distance = edits;
        }
    }
    return best;
}

static int refuse_key(struct loader *l, const struct node *n, const char *what,
                      const struct load_key *keys, size_t key_count)
{
    const char *meant = load_nearest(n->key, keys, key_count);
    if (meant)
        return load_fail(l, n, "unknown key; did you mean '%s'?", meant);
    struct buf known;
    buf_init(&known, ERR_TEXT_BYTES);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < key_count; i++)
        rc = buf_printf(&known, "%s%s", i ? ", " : "", keys[i].name);
    if (rc == 0)
        rc = load_fail(l, n, "unknown key; %s has: %s", what, buf_c(&known));
    buf_done(&known);
    return rc;
}

static const struct load_key *find_key(struct str name, const struct load_key *keys,
                                       size_t key_count)
{
    for (size_t i = 0; i < key_count; i++) {
        if (str_eq(name, str_of(keys[i].name)))
            return &keys[i];
    }
    return NULL;
}

static bool has_key(const struct node *object, const char *name)
{
    for (const struct node *n = object->first; n; n = n->next) {
        if (str_eq(n->key, str_of(name)))
            return true;
    }
    return false;
}

int load_object(struct loader *l, const struct node *n, const char *what,
                const struct load_key *keys, size_t key_count, void *target)
{
    if (n->kind != NODE_OBJECT)
        return load_fail(l, n, "%s must be an object, not %s", what, node_kind_name(n->kind));
    for (const struct node *child = n->first; child; child = child->next) {
        const struct load_key *key = find_key(child->key, keys, key_count);
        int rc = key ? key->read(l, child, target) : refuse_key(l, child, what, keys, key_count);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < key_count; i++) {
        if (keys[i].required && !has_key(n, keys[i].name))
            return load_fail(l, n, "%s needs the key '%s'", what, keys[i].name);
    }
    return 0;
}

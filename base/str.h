/* Text views. A struct str borrows bytes that somebody else owns; it does not end in NUL and may
 * hold any byte. Pure functions, any thread. Nothing here allocates. */
#ifndef CICADA_BASE_STR_H
#define CICADA_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct str {
    const char *ptr;
    size_t len;
};

/* For printf: "%.*s", STR_ARG(s). The length is cut at INT_MAX. */
#define STR_ARG(s) ((s).len > 0x7fffffff ? 0x7fffffff : (int)(s).len), ((s).len ? (s).ptr : "")
/* A view of a string literal. */
#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})

/* A view of a C string; NULL gives an empty view. */
static inline struct str str_of(const char *c_string)
{
    return (struct str){c_string, c_string ? strlen(c_string) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* ASCII case-insensitive equality. */
bool str_eq_nocase(struct str a, struct str b);

/* Bytewise order, as memcmp; the shorter of two equal beginnings comes first. */
int str_cmp(struct str a, struct str b);

bool str_starts(struct str s, struct str prefix);
bool str_starts_nocase(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);

/* The bytes from begin (clamped) to end (clamped). */
static inline struct str str_sub(struct str s, size_t begin, size_t end)
{
    if (end > s.len)
        end = s.len;
    if (begin > end)
        begin = end;
    return (struct str){s.ptr ? s.ptr + begin : NULL, end - begin};
}

/* Without spaces, tabs, CR and LF at both ends. */
struct str str_trim(struct str s);

/* What HTTP calls a token, as methods and names of headers are (RFC 9110 5.6.2): not empty,
 * letters, digits and some punctuation. */
bool str_is_token(struct str s);

/* Position of the first c, or s.len when there is none. */
static inline size_t str_find(struct str s, char c)
{
    const char *at = s.len ? memchr(s.ptr, c, s.len) : NULL;
    return at ? (size_t)(at - s.ptr) : s.len;
}

/* Position of the first occurrence of needle, or s.len when there is none. */
size_t str_find_str(struct str s, struct str needle);

/* Take the part of *rest before the first separator and step *rest behind it. Returns false when
 * *rest was used up: "a,b" gives "a", "b"; "" gives one empty part; "a," gives "a", "".
 * Start with *rest the whole text; it is marked used up by a NULL ptr. */
bool str_next(struct str *rest, char separator, struct str *ret_part);

/* FNV-1a with a final mix; not for adversarial keys. */
size_t str_hash(struct str s);

#endif

/* Which words mean something in the file is not kept in a list that would grow old: whatever stands
 * in the runtime or the listener is one (for a method: whatever the runtime's user has). Only what
 * is nowhere written out has to be listed. */
#include "worker/locustfile/identifiers.h"

#include "worker/locustfile/sections.h"

#define IDENTIFIER_BYTES 60 /* longer names are cut: they are read by people */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_part(char c)
{
    return is_letter(c) || is_digit(c) || c == '-';
}

/* Does the word stand in the text behind these bytes, not as a part of another one? */
static bool has_word(struct str text, const char *before, struct str word)
{
    struct str lead = str_of(before);
    for (;;) {
        size_t at = str_find_str(text, word), end = at + word.len;
        if (at == text.len)
            return false;
        bool begins =
            lead.len ? str_ends(str_sub(text, 0, at), lead) : at == 0 || !is_part(text.ptr[at - 1]);
        if (begins && (end == text.len || !is_part(text.ptr[end])))
            return true;
        text = str_sub(text, at + 1, text.len);
    }
}

/* Python's own words, what Locust's user classes have in any version, what the file imports. */
static const char own_words[] =
    "False None True and as assert async await break class continue def del elif else except "
    "finally for from global if import in is lambda nonlocal not or pass raise return try while "
    "with abstract context fixed_count fullname greenlet group host json max_wait min_wait "
    "on_start on_stop pool_manager rest rest_ run start stop tasks wait wait_function wait_time "
    "weight client environment user_id task tag between constant constant_pacing "
    "constant_throughput LoadTestShape StagesShape CICADA_SCENARIO USER_AGENT";

static bool is_taken(struct str word, enum identifier_kind kind, const struct buf *taken)
{
    struct str runtime = locustfile_runtime(), listener = locustfile_listener();
    if (word.ptr[0] == '_' || has_word(str_of(own_words), "", word) ||
        has_word(buf_str(taken), "", word))
        return true;
    if (kind == IDENTIFIER_CLASS)
        return has_word(runtime, "", word) || has_word(listener, "", word);
    return has_word(runtime, "self.", word) || has_word(runtime, "user.", word) ||
           has_word(runtime, "def ", word);
}

/* Letters, digits and single underscores. */
static int add_letters(struct buf *b, struct str name)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < name.len && b->len < IDENTIFIER_BYTES; i++) {
        char c = name.ptr[i];
        if ((is_letter(c) && c != '_') || (is_digit(c) && b->len > 0))
            rc = buf_add_byte(b, c);
        else if (b->len > 0 && b->ptr[b->len - 1] != '_')
            rc = buf_add_byte(b, '_');
    }
    while (b->len > 0 && b->ptr[b->len - 1] == '_' && !str_ends(name, STR("_")))
        b->ptr[--b->len] = '\0';
    return rc;
}

int identifier_add(struct buf *out, struct str name, enum identifier_kind kind, struct buf *taken)
{
    struct buf word;
    buf_init(&word, IDENTIFIER_BYTES * 2);
    int rc = add_letters(&word, name);
    if (rc == 0 && word.len == 0)
        rc = buf_add(&word, STR("unnamed"));
    size_t stem = word.len;
    for (unsigned n = 1; rc == 0 && is_taken(buf_str(&word), kind, taken); n++) {
        word.len = stem;
        rc = n == 1 ? buf_add_byte(&word, '_') : buf_printf(&word, "_%u", n);
    }
    if (rc == 0)
        rc = buf_add(out, buf_str(&word));
    if (rc == 0)
        rc = buf_add(taken, buf_str(&word));
    if (rc == 0)
        rc = buf_add_byte(taken, '\n');
    buf_done(&word);
    return rc;
}

/* A state machine over lines in the head and over lengths in the body. The head is read in one
 * pass, line by line with memchr; only the few headers that frame the message are looked at, told
 * apart by their first letter and the place of the colon before a comparison. Other headers are
 * read by whoever wants them, from the head as it came. */
#include "worker/engine/http_parser.h"

enum parser_state {
    STATE_HEAD,
    STATE_HEAD_SEEN, /* HEAD was told; what follows it is decided */
    STATE_BODY,
    STATE_CHUNK_SIZE,
    STATE_CHUNK_EXTENSION,
    STATE_CHUNK_DATA,
    STATE_CHUNK_END,
    STATE_TRAILER,
    STATE_DONE,
    STATE_FAILED,
};

void http_parser_init(struct http_parser *p)
{
    *p = (struct http_parser){.state = STATE_DONE};
    buf_init(&p->held, HTTP_PARSER_MAX_HEAD_BYTES);
}

void http_parser_done(struct http_parser *p)
{
    buf_done(&p->held);
}

void http_parser_begin(struct http_parser *p, bool no_body)
{
    p->state = STATE_HEAD;
    p->no_body = no_body;
    p->keep_alive = false;
    p->interim = 0;
    p->failure = HTTP_FAILURE_NONE;
    p->status = 0;
    p->head_bytes = 0;
    p->left = 0;
    if (p->held.ptr)
        buf_done(&p->held); /* a cut head is rare: its memory is not kept for each user */
}

bool http_parser_untouched(const struct http_parser *p)
{
    return p->state == STATE_HEAD && p->head_bytes == 0 && p->held.len == 0;
}

bool http_parser_at_head(const struct http_parser *p)
{
    return p->state == STATE_HEAD && p->held.len == 0;
}

bool http_parser_complete(const struct http_parser *p)
{
    return p->state == STATE_DONE;
}

bool http_parser_close(const struct http_parser *p)
{
    return p->state == STATE_DONE || (p->state == STATE_BODY && p->until_close);
}

static enum http_parser_event fail(struct http_parser *p, enum http_failure failure)
{
    p->state = STATE_FAILED;
    p->failure = failure;
    return HTTP_EVENT_FAILED;
}

/* --- the head ------------------------------------------------------------------------------- */

/* Cut one line off *rest: without its CRLF or LF. False when there is no whole line. */
static inline bool next_line(struct str *rest, struct str *ret_line)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    if (!end)
        return false;
    size_t n = (size_t)(end - rest->ptr);
    *ret_line = (struct str){rest->ptr, n && rest->ptr[n - 1] == '\r' ? n - 1 : n};
    rest->ptr += n + 1;
    rest->len -= n + 1;
    return true;
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HTTP/1.0 SSS[ reason]" or 1.1 */
static bool read_status_line(struct http_parser *p, struct str line)
{
    const char *s = line.ptr;
    if (line.len < 12 || memcmp(s, "HTTP/1.", 7) != 0 || (s[7] != '0' && s[7] != '1') ||
        s[8] != ' ')
        return false;
    if (!is_digit(s[9]) || !is_digit(s[10]) || !is_digit(s[11]) || s[9] == '0')
        return false;
    if (line.len > 12 && s[12] != ' ')
        return false;
    p->status = (uint16_t)((s[9] - '0') * 100 + (s[10] - '0') * 10 + (s[11] - '0'));
    p->keep_alive = s[7] != '0'; /* HTTP/1.0 closes unless it says otherwise */
    return true;
}

static inline struct str trim_blanks(struct str s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s.ptr++;
        s.len--;
    }
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* False: it is no number, or too large. */
static inline bool take_length(struct http_framing *f, struct str text)
{
    uint64_t n = 0;
    if (text.len == 0 || text.len > 19)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!is_digit(text.ptr[i]))
            return false;
        n = n * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    if (n > INT64_MAX || (f->has_length && n != f->length))
        return false;
    f->has_length = true;
    f->length = n;
    return true;
}

/* One length, or the same one several times (RFC 9112 6.3). */
static bool read_lengths(struct http_framing *f, struct str value)
{
    struct str rest = value, part;
    while (str_next(&rest, ',', &part)) {
        if (!take_length(f, trim_blanks(part)))
            return false;
    }
    return f->has_length;
}

static inline bool read_length(struct http_framing *f, struct str value)
{
    return take_length(f, value) || read_lengths(f, value);
}

/* Chunked, once. Others are sent only to those who ask for them (RFC 9112 7.4), but for the one of
 * RFC 2616 that does nothing. */
static bool read_coding(struct http_framing *f, struct str value)
{
    struct str rest = value, part;
    while (str_next(&rest, ',', &part)) {
        part = trim_blanks(part);
        if (part.len == 0)
            continue;
        if (str_eq_nocase(part, STR("identity"))) {
            f->identity = true;
            continue;
        }
        if (f->chunked || !str_eq_nocase(part, STR("chunked")))
            return false;
        f->chunked = true;
    }
    return true;
}

static void read_connection(struct http_framing *f, struct str value)
{
    struct str rest = value, part;
    if (str_eq(value, STR("keep-alive"))) { /* what nearly all say */
        f->keep = true;
        return;
    }
    while (str_next(&rest, ',', &part)) {
        part = trim_blanks(part);
        if (str_eq_nocase(part, STR("close")))
            f->close = true;
        else if (str_eq_nocase(part, STR("keep-alive")))
            f->keep = true;
    }
}

static inline struct str value_of(struct str line, size_t name_len)
{
    return trim_blanks(str_sub(line, name_len + 1, line.len));
}

/* Has the line this header? Nearly all servers spell it so; the others are read letter by letter.
 */
static inline bool has_name(struct str line, struct str name)
{
    return line.len > name.len && line.ptr[name.len] == ':' &&
           (memcmp(line.ptr, name.ptr, name.len) == 0 ||
            str_eq_nocase((struct str){line.ptr, name.len}, name));
}

/* Some other header: it must have a name, without blanks before the colon. */
static inline bool is_header(struct str line)
{
    size_t colon = str_find(line, ':');
    return colon != 0 && colon != line.len && line.ptr[colon - 1] != ' ' &&
           line.ptr[colon - 1] != '\t';
}

/* Take note of a header's line. False: it is none, or one of ours whose value makes no sense. */
static inline bool read_header(struct http_framing *f, struct str line)
{
    switch (line.ptr[0] | 0x20) { /* a letter's lower case */
    case 'c':
        if (has_name(line, STR("Content-Length")))
            return read_length(f, value_of(line, sizeof "Content-Length" - 1));
        if (has_name(line, STR("Connection"))) {
            read_connection(f, value_of(line, sizeof "Connection" - 1));
            return true;
        }
        if (has_name(line, STR("Content-Encoding"))) {
            f->content_coding = true;
            return true;
        }
        break;
    case 's':
        if (has_name(line, STR("Set-Cookie"))) {
            f->cookies = true;
            return true;
        }
        break;
    case 't':
        if (has_name(line, STR("Transfer-Encoding")))
            return read_coding(f, value_of(line, sizeof "Transfer-Encoding" - 1));
        break;
    default:
        break;
    }
    return is_header(line);
}

/* Read a whole head, at most text. Returns its length in bytes, 0 when it is not complete, and
 * SIZE_MAX when it makes no sense. */
static size_t read_head(struct http_parser *p, struct str text, struct http_framing *f)
{
    struct str rest = text, line;
    bool first = true, framing_line = false;
    if (!next_line(&rest, &line))
        return 0;
    if (!read_status_line(p, line))
        return SIZE_MAX;
    p->head.ptr = rest.ptr;
    while (next_line(&rest, &line)) {
        if (line.len == 0) {
            p->head.len = (size_t)(rest.ptr - p->head.ptr);
            size_t n = text.len - rest.len;
            return memchr(text.ptr, '\0', n) ? SIZE_MAX : n; /* RFC 9110 5.5 */
        }
        if (line.ptr[0] == ' ' || line.ptr[0] == '\t') {
            /* it continues the line before, which must not be one that frames the message */
            if (first || framing_line)
                return SIZE_MAX;
            continue;
        }
        first = false;
        bool had_length = f->has_length, was_chunked = f->chunked;
        if (!read_header(f, line))
            return SIZE_MAX;
        framing_line = had_length != f->has_length || was_chunked != f->chunked;
    }
    return 0;
}

/* RFC 9112 6.3, in its order. */
static void decide_body(struct http_parser *p, const struct http_framing *f)
{
    p->chunked = f->chunked;
    p->identity = f->identity;
    p->until_close = false;
    p->left = 0;
    if (f->close || f->identity || (f->chunked && f->has_length))
        p->keep_alive = false; /* two framings at once: smuggling, or confusion */
    else if (f->keep)
        p->keep_alive = true;
    if (p->no_body || p->status == 204 || p->status == 304) {
        p->chunked = false;
        return;
    }
    if (f->chunked)
        return;
    if (f->has_length) {
        p->left = f->length;
        return;
    }
    p->until_close = true;
    p->keep_alive = false;
}

/* Is it the last head again? Its length, or 0. */
static inline size_t recall(struct http_parser *p, struct str text, struct http_framing *f)
{
    const struct http_parser_memo *m = p->memo;
    if (!m || m->length == 0 || text.len < m->length || memcmp(text.ptr, m->head, m->length) != 0)
        return 0;
    p->status = m->status;
    p->keep_alive = m->keep_alive;
    p->head = (struct str){text.ptr + m->headers_at, (size_t)m->length - m->headers_at};
    *f = m->framing;
    return m->length;
}

/* For recall: the head of text, which was just read. */
static void remember(struct http_parser *p, struct str text, size_t n, const struct http_framing *f)
{
    struct http_parser_memo *m = p->memo;
    if (!m || n > sizeof m->head)
        return;
    m->framing = *f;
    m->length = (uint16_t)n;
    m->headers_at = (uint16_t)(p->head.ptr - text.ptr);
    m->status = p->status;
    m->keep_alive = p->keep_alive;
    memcpy(m->head, text.ptr, n);
}

static enum http_parser_event after_interim(struct http_parser *p)
{
    if (p->status == 101 || ++p->interim > HTTP_PARSER_MAX_INTERIM)
        return fail(p, HTTP_FAILURE_MALFORMED);
    p->status = 0;
    return HTTP_EVENT_MORE; /* the caller goes on with the next head */
}

/* Does text look like the beginning of a head at all? Judged as soon as there is a byte, so that a
 * server of another protocol that then keeps silent is found out; and so is a second line that
 * continues a header where there is none. */
static bool may_be_head(struct str text)
{
    struct str begin = STR("HTTP/1.");
    size_t n = text.len < begin.len ? text.len : begin.len;
    size_t second = str_find(text, '\n') + 1;
    return memcmp(text.ptr, begin.ptr, n) == 0 &&
           !(second < text.len && (text.ptr[second] == ' ' || text.ptr[second] == '\t'));
}

static enum http_parser_event hold(struct http_parser *p, struct str *input)
{
    int rc = buf_add(&p->held, *input);
    *input = str_sub(*input, input->len, input->len);
    if (rc == -ENOMEM)
        return fail(p, HTTP_FAILURE_MEMORY);
    if (rc < 0)
        return fail(p, HTTP_FAILURE_HEADERS_TOO_LARGE);
    return may_be_head(buf_str(&p->held)) ? HTTP_EVENT_MORE : fail(p, HTTP_FAILURE_MALFORMED);
}

/* Is there an empty line in text that was not there in its first `before` bytes? Looked for before
 * a held head is read, so that a head that drips in byte by byte is read once. */
static bool head_ends(struct str text, size_t before)
{
    struct str rest = str_sub(text, before > 2 ? before - 2 : 0, text.len);
    for (;;) {
        size_t at = str_find(rest, '\n');
        struct str behind = str_sub(rest, at + 1, rest.len);
        if (at == rest.len)
            return false;
        if (str_starts(behind, STR("\n")) || str_starts(behind, STR("\r\n")))
            return true;
        rest = behind;
    }
}

/* Take the head out of the input, or out of what is held and the input behind it. */
static enum http_parser_event next_head(struct http_parser *p, struct str *input)
{
    struct http_framing f = {0};
    size_t before = p->held.len;
    if (before > 0) {
        enum http_parser_event event = hold(p, input);
        if (event != HTTP_EVENT_MORE || !head_ends(buf_str(&p->held), before))
            return event;
    }
    struct str text = before > 0 ? buf_str(&p->held) : *input;
    size_t n = recall(p, text, &f);
    if (n == 0) {
        n = read_head(p, text, &f);
        if (n != 0 && n != SIZE_MAX)
            remember(p, text, n, &f);
    }
    if (n == SIZE_MAX && head_ends(text, 0))
        return fail(p, HTTP_FAILURE_MALFORMED);
    if (n == SIZE_MAX)
        n = 0; /* judged when it is whole, so that the verdict does not hang on how it was cut */
    if (n == 0)
        return before > 0 ? HTTP_EVENT_MORE : hold(p, input);
    p->head_bytes += (uint32_t)n;
    if (p->head_bytes > HTTP_PARSER_MAX_HEAD_BYTES)
        return fail(p, HTTP_FAILURE_HEADERS_TOO_LARGE);
    if (before > 0) { /* give back what lies behind the head: it is at the end of the old input */
        size_t behind = p->held.len - n;
        input->ptr -= behind;
        input->len += behind;
        p->held.len = 0; /* the bytes stay for p->head until the next call */
    } else {
        *input = str_sub(*input, n, input->len);
    }
    if (p->status < 200)
        return after_interim(p);
    p->has_cookies = f.cookies;
    p->has_coding = f.content_coding;
    decide_body(p, &f);
    p->state = STATE_HEAD_SEEN;
    return HTTP_EVENT_HEAD;
}

/* --- the body ------------------------------------------------------------------------------- */

static void begin_body(struct http_parser *p)
{
    p->line_bytes = 0;
    p->chunk_digits = 0;
    if (p->chunked)
        p->state = STATE_CHUNK_SIZE;
    else
        p->state = p->left > 0 || p->until_close ? STATE_BODY : STATE_DONE;
}

uint64_t http_parser_body_ahead(const struct http_parser *p)
{
    if (p->state != STATE_BODY)
        return 0;
    return p->until_close ? UINT64_MAX : p->left;
}

void http_parser_skip(struct http_parser *p, uint64_t n)
{
    if (p->until_close)
        return;
    p->left -= n;
    if (p->left == 0)
        p->state = p->state == STATE_BODY ? STATE_DONE : STATE_CHUNK_END;
}

static enum http_parser_event take_body(struct http_parser *p, struct str *input)
{
    size_t n = input->len;
    if (!p->until_close && n > p->left)
        n = (size_t)p->left;
    p->body = str_sub(*input, 0, n);
    *input = str_sub(*input, n, input->len);
    http_parser_skip(p, n);
    return HTTP_EVENT_BODY;
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    int lower = c | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static void end_chunk_line(struct http_parser *p)
{
    p->line_bytes = 0;
    p->chunk_digits = 0;
    p->state = p->left > 0 ? STATE_CHUNK_DATA : STATE_TRAILER;
}

/* One byte of a chunk's size line, of its end or of the trailer. False: it makes no sense there. */
static bool chunk_byte(struct http_parser *p, char c)
{
    int digit;
    switch ((enum parser_state)p->state) {
    case STATE_CHUNK_SIZE:
        digit = hex_value(c);
        if (digit >= 0) {
            if (++p->chunk_digits > 16 || p->left > (uint64_t)INT64_MAX >> 4)
                return false;
            p->left = p->left << 4 | (uint64_t)digit;
            return true;
        }
        if (p->chunk_digits == 0)
            return false;
        if (c == '\n')
            end_chunk_line(p);
        else if (c == ';' || c == ' ' || c == '\t' || c == '\r')
            p->state = STATE_CHUNK_EXTENSION;
        else
            return false;
        return true;
    case STATE_CHUNK_EXTENSION:
        if (c == '\n')
            end_chunk_line(p);
        return true;
    case STATE_CHUNK_END: /* CRLF or LF behind the data */
        if (c == '\n' && p->line_bytes <= 2) {
            p->line_bytes = 0;
            p->state = STATE_CHUNK_SIZE;
            return true;
        }
        return c == '\r' && p->line_bytes == 1;
    default:
        return false;
    }
}

static enum http_parser_event chunk_lines(struct http_parser *p, struct str *input)
{
    while (input->len > 0 && (p->state == STATE_CHUNK_SIZE || p->state == STATE_CHUNK_EXTENSION ||
                              p->state == STATE_CHUNK_END)) {
        char c = input->ptr[0];
        *input = str_sub(*input, 1, input->len);
        if (++p->line_bytes > HTTP_PARSER_MAX_CHUNK_LINE || !chunk_byte(p, c))
            return fail(p, HTTP_FAILURE_MALFORMED);
    }
    return HTTP_EVENT_MORE;
}

/* Trailer lines are passed over until an empty one; they count as part of the head. */
static enum http_parser_event trailer(struct http_parser *p, struct str *input)
{
    while (input->len > 0 && p->state == STATE_TRAILER) {
        char c = input->ptr[0];
        *input = str_sub(*input, 1, input->len);
        if (++p->head_bytes > HTTP_PARSER_MAX_HEAD_BYTES)
            return fail(p, HTTP_FAILURE_HEADERS_TOO_LARGE);
        if (c == '\n') {
            if (p->line_bytes == 0)
                p->state = STATE_DONE;
            p->line_bytes = 0;
        } else if (c != '\r' && ++p->line_bytes > HTTP_PARSER_MAX_CHUNK_LINE) {
            return fail(p, HTTP_FAILURE_HEADERS_TOO_LARGE);
        }
    }
    return HTTP_EVENT_MORE;
}

enum http_parser_event http_parser_next(struct http_parser *p, struct str *input)
{
    enum http_parser_event event = HTTP_EVENT_MORE;
    while (event == HTTP_EVENT_MORE) {
        switch ((enum parser_state)p->state) {
        case STATE_FAILED:
            return HTTP_EVENT_FAILED;
        case STATE_DONE:
            return HTTP_EVENT_DONE;
        case STATE_HEAD_SEEN:
            begin_body(p);
            continue;
        default:
            break;
        }
        if (input->len == 0)
            return HTTP_EVENT_MORE;
        if (p->state == STATE_HEAD)
            event = next_head(p, input);
        else if (p->state == STATE_BODY || p->state == STATE_CHUNK_DATA)
            event = take_body(p, input);
        else if (p->state == STATE_TRAILER)
            event = trailer(p, input);
        else
            event = chunk_lines(p, input);
    }
    return event;
}

bool http_parser_header(struct str *rest, struct str *ret_name, struct str *ret_value)
{
    struct str line;
    while (next_line(rest, &line)) {
        if (line.len == 0)
            return false;
        if (line.ptr[0] == ' ' || line.ptr[0] == '\t')
            continue;
        size_t colon = str_find(line, ':');
        *ret_name = str_sub(line, 0, colon);
        *ret_value = value_of(line, colon);
        return true;
    }
    return false;
}

/* An incremental reader of HTTP/1.x responses: bytes in, events out. Pure: no sockets, no clocks.
 * It works at every split of the bytes; a head that is whole in one piece, the common case, is read
 * where it lies, without a copy. Interim (1xx) responses are passed over.
 * Source: RFC 9112, RFC 9110 15.2; where they leave a choice, what curl does. */
#ifndef CICADA_WORKER_ENGINE_HTTP_PARSER_H
#define CICADA_WORKER_ENGINE_HTTP_PARSER_H

#include "base/buf.h"
#include "base/str.h"
#include "worker/engine/http.h"

#include <stdbool.h>
#include <stdint.h>

/* All heads of one response, interim ones too, and its trailer: libcurl takes no longer line. */
#define HTTP_PARSER_MAX_HEAD_BYTES (100u << 10)
#define HTTP_PARSER_MAX_CHUNK_LINE 4096 /* size and extensions; a line of the trailer */
#define HTTP_PARSER_MAX_INTERIM    100  /* 1xx responses before the final one */

enum http_parser_event {
    HTTP_EVENT_MORE,   /* all input is used, the response is not complete */
    HTTP_EVENT_HEAD,   /* the final head is read: status, flags and head are valid */
    HTTP_EVENT_BODY,   /* body holds the next bytes of the body */
    HTTP_EVENT_DONE,   /* the response is complete; what is left of the input is not part of it */
    HTTP_EVENT_FAILED, /* failure says how */
};

/* What the headers say of the framing. */
struct http_framing {
    uint64_t length;
    bool has_length;
    bool chunked;
    bool identity;
    bool close;
    bool keep;
    bool cookies; /* these two are only noted, for whoever reads the head */
    bool content_coding;
};

/* The last head that was read and what came of it: servers say the same again and again, and a head
 * that is byte for byte the last one needs no reading. Zeroed: none yet. Parsers of one thread may
 * share one. */
#define HTTP_PARSER_MEMO_BYTES 512 /* longer heads are read each time */
struct http_parser_memo {
    struct http_framing framing;
    uint16_t length; /* of the head; 0: none */
    uint16_t headers_at;
    uint16_t status;
    bool keep_alive; /* by the version alone */
    char head[HTTP_PARSER_MEMO_BYTES];
};

struct http_parser {
    uint8_t state;
    bool no_body;      /* the request was a HEAD */
    bool want_upgrade; /* 101 is expected */
    bool keep_alive;   /* after HEAD: the connection may be used again after DONE */
    bool has_cookies;  /* after HEAD: it has a Set-Cookie line */
    bool has_coding;   /* after HEAD: it has a Content-Encoding line */
    bool chunked;
    bool until_close;
    bool
        identity; /* a transfer coding that does nothing was named; others read to the close then */
    uint8_t interim;
    uint8_t chunk_digits;
    enum http_failure failure;
    uint16_t status;
    uint32_t head_bytes; /* of this response so far */
    uint32_t line_bytes; /* of the chunk or trailer line so far */
    uint64_t left;       /* bytes of the body or chunk to come */
    struct str body;     /* of HTTP_EVENT_BODY; a view into the input */
    /* After HTTP_EVENT_HEAD until the next call: the head's lines from the first header on, for
     * http_parser_header; a view into the input or into held. */
    struct str head;
    struct buf held;               /* the beginning of a head that was cut */
    struct http_parser_memo *memo; /* NULL, or the caller's; may be set between two responses */
};

void http_parser_init(struct http_parser *p);
void http_parser_done(struct http_parser *p);

/* Begin a response. no_body: it answers a HEAD. */
void http_parser_begin(struct http_parser *p, bool no_body);

/* Read on: takes bytes from the front of *input and returns what comes next. Call until MORE, DONE
 * or FAILED. */
enum http_parser_event http_parser_next(struct http_parser *p, struct str *input);

/* How many of the bytes that come next are body, whatever they are: a body without chunks. 0: none
 * may be passed over unread; UINT64_MAX: all until the connection is closed. */
uint64_t http_parser_body_ahead(const struct http_parser *p);

/* n of them came, and were not looked at. */
void http_parser_skip(struct http_parser *p, uint64_t n);

/* The connection was closed by the server. True: that ends the response properly (a body without a
 * length); false: it was cut. */
bool http_parser_close(const struct http_parser *p);

/* Has the whole response been read? */
bool http_parser_complete(const struct http_parser *p);

/* True when nothing of a response has been seen since http_parser_begin. */
bool http_parser_untouched(const struct http_parser *p);

/* True when the next byte begins a head: the first one, or the one behind an interim response. */
bool http_parser_at_head(const struct http_parser *p);

/* Walk the head: start with *rest = p->head; gives one header a call (folded lines are given as the
 * first line only). False at the end. */
bool http_parser_header(struct str *rest, struct str *ret_name, struct str *ret_value);

#endif

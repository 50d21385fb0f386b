#include "worker/engine/http.h"

static const char *const failure_texts[HTTP_FAILURE_COUNT] = {
    [HTTP_FAILURE_NONE] = "",
    [HTTP_FAILURE_NAME] = "host name could not be resolved",
    [HTTP_FAILURE_REFUSED] = "connection refused",
    [HTTP_FAILURE_CONNECT_TIMEOUT] = "connect timed out",
    [HTTP_FAILURE_UNREACHABLE] = "host unreachable",
    [HTTP_FAILURE_TLS] = "TLS handshake failed",
    [HTTP_FAILURE_CERTIFICATE] = "TLS certificate not accepted",
    [HTTP_FAILURE_RESET] = "connection reset",
    [HTTP_FAILURE_CLOSED] = "connection closed before the response was complete",
    [HTTP_FAILURE_TIMEOUT] = "timed out",
    [HTTP_FAILURE_MALFORMED] = "malformed response",
    [HTTP_FAILURE_HEADERS_TOO_LARGE] = "response headers too large",
    [HTTP_FAILURE_NO_HTTP2] = "no HTTP/2 from the server",
    [HTTP_FAILURE_STREAM] = "HTTP/2 stream reset",
    [HTTP_FAILURE_PROXY] = "refused by the proxy",
    [HTTP_FAILURE_TOO_MANY_REDIRECTS] = "too many redirects",
    [HTTP_FAILURE_BAD_REDIRECT] = "redirect to an unusable URL",
    [HTTP_FAILURE_NO_DESCRIPTORS] = "too many open files (generator)",
    [HTTP_FAILURE_NO_PORTS] = "no free local port (generator)",
    [HTTP_FAILURE_MEMORY] = "out of memory (generator)",
    [HTTP_FAILURE_OTHER] = "request failed",
};

struct str http_failure_text(enum http_failure failure)
{
    return str_of(failure_texts[failure]);
}

enum http_failure http_failure_of_errno(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return HTTP_FAILURE_REFUSED;
    case ETIMEDOUT:
        return HTTP_FAILURE_CONNECT_TIMEOUT;
    case ECONNRESET:
        return HTTP_FAILURE_RESET;
    case EPIPE:
        return HTTP_FAILURE_CLOSED;
    case EMFILE:
    case ENFILE:
        return HTTP_FAILURE_NO_DESCRIPTORS;
    case EADDRNOTAVAIL:
    case EADDRINUSE:
        return HTTP_FAILURE_NO_PORTS;
    case ENOMEM:
    case ENOBUFS:
        return HTTP_FAILURE_MEMORY;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
        return HTTP_FAILURE_UNREACHABLE;
    default:
        return HTTP_FAILURE_OTHER;
    }
}

enum http_failure http_transfer_failure(int error)
{
    return error == ETIMEDOUT ? HTTP_FAILURE_TIMEOUT : http_failure_of_errno(error);
}

/* Three digits behind a fixed beginning, for each code from 100 to 999: no text is made per request
 * and none has to be kept. */
#define T1(n) "HTTP status " #n
#define T10(n)                                                                                     \
    T1(n##0), T1(n##1), T1(n##2), T1(n##3), T1(n##4), T1(n##5), T1(n##6), T1(n##7), T1(n##8),      \
        T1(n##9)
#define T100(n)                                                                                    \
    T10(n##0), T10(n##1), T10(n##2), T10(n##3), T10(n##4), T10(n##5), T10(n##6), T10(n##7),        \
        T10(n##8), T10(n##9)
static const char status_texts[][sizeof "HTTP status 100"] = {
    T100(1), T100(2), T100(3), T100(4), T100(5), T100(6), T100(7), T100(8), T100(9)};

struct str http_status_text(unsigned status)
{
    if (status < 100 || status > 999)
        return http_failure_text(HTTP_FAILURE_MALFORMED);
    return (struct str){status_texts[status - 100], sizeof status_texts[0] - 1};
}

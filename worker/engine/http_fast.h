/* What the fast engine holds for each user, for the test that bounds it. */
#ifndef CICADA_WORKER_ENGINE_HTTP_FAST_H
#define CICADA_WORKER_ENGINE_HTTP_FAST_H

#include <stddef.h>

extern const size_t http_fast_client_bytes;
extern const size_t http_fast_connection_bytes; /* one for each origin it talks to; without TLS */

#endif

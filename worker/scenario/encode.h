/* Values made fit for the text they go into, as Python's libraries write them. Pure; any thread. */
#ifndef CICADA_WORKER_SCENARIO_ENCODE_H
#define CICADA_WORKER_SCENARIO_ENCODE_H

#include "base/buf.h"

/* As json.dumps writes a string, without the quotes; what is no UTF-8 becomes U+FFFD. Appends.
 * 0, -ERANGE, -ENOMEM. */
MUST_USE int encode_json(struct buf *out, struct str text);

/* As urllib.parse.quote_plus, for forms and queries. Appends. 0, -ERANGE, -ENOMEM. */
MUST_USE int encode_form(struct buf *out, struct str text);

/* As browsers write a name between the quotes of a part's header (RFC 7578 2, WHATWG): what would
 * end it as %22, %0A and %0D. Appends. 0, -ERANGE, -ENOMEM. */
MUST_USE int encode_quoted(struct buf *out, struct str text);

/* A path with its query as the name of a stats entry: without the query, and with each segment that
 * is a number, a UUID or another id of at least 8 digits and letters a to f, as ":id". Appends. */
MUST_USE int encode_folded(struct buf *out, struct str path);

#endif

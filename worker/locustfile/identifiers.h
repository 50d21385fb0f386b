/* Names of a scenario as names in Python. Pure; any thread. */
#ifndef CICADA_WORKER_LOCUSTFILE_IDENTIFIERS_H
#define CICADA_WORKER_LOCUSTFILE_IDENTIFIERS_H

#include "base/buf.h"

#include <stdbool.h>

enum identifier_kind { IDENTIFIER_CLASS, IDENTIFIER_METHOD };

/* Append the name as an identifier that is not one of the taken ones: "Locked out" becomes
 * "Locked_out", "/items" becomes "items", a keyword, a word of Locust's or the runtime's own gets a
 * "_" behind it. taken: identifiers, each with a line end behind it; the new one is added to it.
 * 0, -ERANGE, -ENOMEM. */
MUST_USE int identifier_add(struct buf *out, struct str name, enum identifier_kind kind,
                            struct buf *taken);

#endif

/* Dates of cookies, in every form that servers write. Pure, any thread.
 * Source: RFC 6265 5.1.1, which describes what browsers read rather than a grammar. */
#ifndef CICADA_WORKER_ENGINE_COOKIE_DATE_H
#define CICADA_WORKER_ENGINE_COOKIE_DATE_H

#include "base/str.h"

#include <stdbool.h>

/* "Wed, 09 Jun 2021 10:18:14 GMT" and its kin as seconds since 1970, UTC. False: no date. */
bool cookie_date_parse(struct str text, double *ret_s);

#endif

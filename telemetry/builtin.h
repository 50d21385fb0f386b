/* The telemetry profiles that ship inside the program. Any thread. */
#ifndef CICADA_TELEMETRY_BUILTIN_H
#define CICADA_TELEMETRY_BUILTIN_H

#include "base/str.h"

#define BUILTIN_PROFILE_NAMES "substrate, kubernetes, node"

/* The JSON text of the profile of that name, or a NULL ptr. Valid for ever. */
struct str builtin_profile(struct str name);

#endif

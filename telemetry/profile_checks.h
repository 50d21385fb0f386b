/* Checks of one profile that need more than a measurement's own keys: that no two results fall on
 * the same name. Internal to the loading of profiles. */
#ifndef CICADA_TELEMETRY_PROFILE_CHECKS_H
#define CICADA_TELEMETRY_PROFILE_CHECKS_H

#include "telemetry/profile.h"

/* Each path of the document and each flat name is given once, and no path lies within another.
 * 0, -EINVAL, -ENOMEM. */
MUST_USE int profile_check_names(const struct profile *p, struct err *err);

/* A path: names of letters, digits and '_' joined by dots; not within "metadata". */
bool profile_path_valid(struct str path);

#endif

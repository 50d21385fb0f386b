/* Regular expressions, by PCRE2. A pattern is immutable and read by every shard; what a match needs
 * besides is a scratch, one for each thread. */
#ifndef CICADA_WORKER_SCENARIO_PATTERN_H
#define CICADA_WORKER_SCENARIO_PATTERN_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define PATTERN_MAX_BYTES  65536
#define PATTERN_MAX_GROUPS 31
/* Steps of one match: enough for a page, and the end of a pattern that would take for ever. */
#define PATTERN_MAX_STEPS 1000000
/* Memory of one match, in KiB. */
#define PATTERN_MAX_HEAP 4096

struct pattern;
struct pattern_scratch;

/* UTF-8, "." matches no line end. 0; -EINVAL: err says why and where; -ENOMEM. */
MUST_USE int pattern_new(struct str text, struct pattern **ret, struct err *err);
void pattern_free(struct pattern *p);

/* Groups in parentheses. */
uint32_t pattern_group_count(const struct pattern *p);

/* NULL: no memory. */
struct pattern_scratch *pattern_scratch_new(void);
void pattern_scratch_free(struct pattern_scratch *s);

/* Does it match anywhere in the text, of any bytes? A match that takes too long is none. With
 * ret_group, the text of that group (0: of the whole match); it borrows from text; ptr NULL: the
 * group took no part. */
bool pattern_match(const struct pattern *p, struct pattern_scratch *s, struct str text,
                   uint32_t group, struct str *ret_group);

#endif

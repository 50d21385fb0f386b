/* The syntax of Locust's configuration files, as ConfigArgParse reads them: "key = value",
 * "key: value", "key value" or a bare "key" on each line, comments, sections ignored, values
 * quoted or in [lists]. Of a TOML file, the lines of its [tool.locust] section are read by the same
 * rules: one-line strings, numbers, booleans and lists are the same in both. Pure, any thread. */
#ifndef CICADA_WORKER_CLI_CONFIG_H
#define CICADA_WORKER_CLI_CONFIG_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

struct config_reader {
    struct str rest;
    unsigned line; /* of the item last read, from 1 */
    bool toml;
    bool inside; /* the [tool.locust] section */
};

struct config_item {
    struct str key; /* views into the text */
    struct str value;
};

void config_reader_init(struct config_reader *r, struct str text, bool toml);

/* True and the next item; false at the end (*err empty) or at a line that is none (*err says so,
 * code -EINVAL). err is not NULL. */
bool config_next(struct config_reader *r, struct config_item *ret, struct err *err);

/* "[a, b]", as JSON or else split at commas: calls add for each element. A text without brackets
 * is no list: -ENOENT. -EINVAL: an element that is no text, number or boolean. Else add's error. */
MUST_USE int config_list(struct str text, int (*add)(void *context, struct str element),
                         void *context);

#endif

/* The table of flags: each one that Locust has, or has had since 2.12, and cicada's own, with what
 * it means here. A locust command line, its environment and its configuration files are accepted
 * as they are; what cannot be obeyed is said. Constant data and pure functions, any thread. */
#ifndef CICADA_WORKER_CLI_FLAGS_H
#define CICADA_WORKER_CLI_FLAGS_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* What follows the flag, and the type of its field in struct options. */
enum flag_kind {
    FLAG_SWITCH,   /* nothing; bool */
    FLAG_TEXT,     /* const char * */
    FLAG_NUMBER,   /* a whole number from min to max; int64_t */
    FLAG_RATE,     /* a number above 0; double */
    FLAG_RATIO,    /* a number from 0 to 1; double */
    FLAG_TIMESPAN, /* "90", "90s", "1m30s"; uint64_t seconds */
    FLAG_LEVEL,    /* enum log_level */
    FLAG_LIST,     /* all values up to the next flag; struct options_list */
    FLAG_REPEATED, /* one value each time; struct options_list */
};

enum flag_use {
    FLAG_USED,
    FLAG_IGNORED, /* accepted with one line; its value is not looked at */
    FLAG_REFUSED, /* it would make the process another one than asked for; text says why */
    FLAG_GONE,    /* as ignored; no longer in Locust, so it takes part in no abbreviation */
};

/* In which kinds of run it has a meaning, bits; in the others it is ignored with one line. */
enum {
    FLAG_RUN_ANY = 0,
    FLAG_RUN_WORKER = 1,
    FLAG_RUN_HEADLESS = 2,
    FLAG_RUN_CALIBRATE = 4, /* 'cicada calibrate' */
};

enum flag_group {
    FLAG_GROUP_LOAD,
    FLAG_GROUP_HEADLESS,
    FLAG_GROUP_OUTPUT,
    FLAG_GROUP_CALIBRATE,
    FLAG_GROUP_WORKER,
    FLAG_GROUP_METRICS,
    FLAG_GROUP_REPORT,
    FLAG_GROUP_TAGS,
    FLAG_GROUP_LOG,
    FLAG_GROUP_OTHER,
    FLAG_GROUPS
};

#define FLAG_MAX_COUNT 192 /* rows; a test compares */

struct flag {
    const char *name;        /* "--master-host" */
    const char *letter;      /* "-H", or NULL */
    const char *env;         /* "LOCUST_MASTER_NODE_HOST", or NULL */
    const char *placeholder; /* of its value in the help */
    const char *text;        /* help, or the reason of a refusal; NULL for the ignored ones */
    enum flag_kind kind;
    enum flag_use use;
    enum flag_group group;
    unsigned run;
    size_t at; /* offset of its field in struct options, when used */
    int64_t min, max;
};

extern const struct flag flag_table[];
extern const size_t flag_count;

/* The row of a whole name ("--host") or letter ("-H"); NULL for an unknown one. */
const struct flag *flag_find(struct str name);

/* The row of a configuration file's key: "host" or "--host". */
const struct flag *flag_find_key(struct str key);

/* As argparse abbreviates: how many long names begin with prefix, the first of them in *ret
 * (untouched when none does). Our own names count only when none of Locust's begins so: what is
 * short for Locust stays it. */
size_t flag_find_prefix(struct str prefix, const struct flag **ret);

/* Not one of Locust's? */
bool flag_is_own(const struct flag *f);

/* The long name that resembles text ("--wroker", or a key "wroker") most, or NULL. */
const struct flag *flag_nearest(struct str text);

#endif

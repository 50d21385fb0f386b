/* Telemetry profiles: what to ask a Prometheus server, as data. A profile is a JSON file; docs/
 * telemetry.md describes it. Here it is loaded and checked whole, so that everything behind can
 * trust it; nothing is asked. A profile is immutable after its variables are set; any thread. */
#ifndef CICADA_TELEMETRY_PROFILE_H
#define CICADA_TELEMETRY_PROFILE_H

#include "base/buf.h"
#include "telemetry/braced.h"
#include "telemetry/distribution.h"
#include "telemetry/promql.h"

#include <jansson.h>
#include <stddef.h>

#define PROFILE_FILE_BYTES       (1u << 20) /* far more than anyone writes by hand */
#define PROFILE_MEASUREMENTS_MAX 200        /* each is at least one query, all asked at once */
#define PROFILE_ITEMS_MAX        12         /* names in one pair of braces */
#define PROFILE_NAME_BYTES       200
#define PROFILE_LABELS_MAX       16 /* of "process" and "busy" */
#define PROFILE_LAG_MAX_S        3600
#define PROFILE_STEP_MAX_S       3600

enum profile_kind {
    PROFILE_RANGE_DISTRIBUTION,  /* percentiles of all samples of a range query */
    PROFILE_VALUE,               /* one number at the end of the window */
    PROFILE_COUNTER_GROWTH,      /* of a counter over the window */
    PROFILE_GROWTH_RATIO,        /* of two counters */
    PROFILE_HISTOGRAM_QUANTILES, /* quantiles and mean of what a histogram counted */
    PROFILE_STATE_PACKING,       /* share of workers in busy states, with its time series */
};
#define PROFILE_KINDS 6

const char *profile_kind_name(enum profile_kind kind);

/* Texts are borrowed from the profile. Those that a kind does not have are NULL or zero. */
struct profile_measurement {
    enum profile_kind kind;
    const char *name; /* path in the document, "snapshots.size_{p50,avg}_mb" */
    char *flat;       /* pattern of its names in the flat form, or NULL: not in it */
    const char *query;
    const char *counter, *over, *histogram; /* selectors */
    const char *count_as;                   /* path for the number of series */
    const char *state;                      /* label */
    const json_t *process, *busy;           /* arrays of labels, of states */
    double multiply_by, divide_by;          /* 1 unless given */
    bool late;                              /* exported on an interval: read late by half the lag */
    bool integer, per_second;
};

struct profile {
    json_t *root;
    char *name;
    double lag_s; /* default of the telemetry lag */
    double step_s;
    json_t *variables; /* an object of strings, borrowed from root */
    struct profile_measurement *measurements;
    size_t count;
};

/* Load from JSON text; source names it in errors ("my.json", "profile 'node'"). ret is written in
 * any case; profile_done it. 0; -EINVAL with the path ("my.json: measurements[3].query: …") or the
 * line; -ENOMEM. */
MUST_USE int profile_parse(struct str text, const char *source, struct profile *ret,
                           struct err *err);

/* Load a profile that ships with the program ("substrate", "kubernetes", "node"), or else the file
 * of that path. Errors of reading besides; they name the shipped ones. */
MUST_USE int profile_load(const char *name_or_path, struct profile *ret, struct err *err);
void profile_done(struct profile *p);

/* Give a variable of the profile another value. 0, -ENOENT (err lists those it has), -EINVAL (not
 * UTF-8), -ENOMEM. */
MUST_USE int profile_set_variable(struct profile *p, struct str name, struct str value,
                                  struct err *err);

/* An item of a histogram's name: "p50", "p99_9" -> its quantile; "avg" and "mean" -> *ret_mean. */
bool profile_item_parse(struct str item, double *ret_q, bool *ret_mean);

#endif

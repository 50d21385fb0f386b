/* The server's part of a results folder, anew: what a later harvest needs of the folder, and
 * putting its result there. Only that part of the files changes. Blocking. */
#ifndef CICADA_WORKER_OUTPUT_REHARVEST_H
#define CICADA_WORKER_OUTPUT_REHARVEST_H

#include "base/measure.h"
#include "facts/frontiers.h"

#include <jansson.h>

/* What the folder says of its run. Zeroed at first. */
struct reharvest {
    char *test_name, *tag; /* NULL: none */
    double start_s, end_s;
    struct users_sample *samples;
    size_t sample_count;
    struct measure worker_pod_count;
};

/* From histograms.json.gz; from server_summary.json, if it is there, the number of pods and the
 * steady window, which two samples then stand for: it may come from a finer source than the
 * folder's history. ret is written in any case; reharvest_done it. 0; -EPROTO (a damaged file),
 * -ENOENT and other errnos of reading (err names the file), -ENOMEM. */
MUST_USE int reharvest_read(const char *folder, struct reharvest *ret, struct err *err);
void reharvest_done(struct reharvest *h);

/* Rewrite server_summary.json, the row "server_summary" of stats.jsonl and the servers' table of
 * report.html (the latter two, where there are such files). Each file is whole at any time.
 * 0, -EPROTO (stats.jsonl is none), the errno, -ENOMEM; err names the file. */
MUST_USE int reharvest_write(const char *folder, const json_t *document, const json_t *flat,
                             struct err *err);

#endif

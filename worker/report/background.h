/* The report's questions to the world, asked in the background: the cluster facts at the start of a
 * run, the actor gauge and the total of users each second, Prometheus after the end. Threads of
 * its own do the waiting; everything here returns at once, and what is asked ends within its
 * time-outs or soon after it was aborted. One thread calls, the runner's:
 *
 *   background_new                   once, before the first run
 *   background_begin                 a run begins: facts and samplers
 *   background_poll                  whenever background_fd is readable
 *   background_end                   the load ends: no more samples
 *   background_harvest               when the facts are there: ask Prometheus
 *   background_busy                  false: all that will come is there
 *   background_abort                 no more waiting: what is there is there
 *   background_free
 *
 * It logs what a person should know. Nothing here makes a run fail. */
#ifndef CICADA_WORKER_REPORT_BACKGROUND_H
#define CICADA_WORKER_REPORT_BACKGROUND_H

#include "facts/facts.h"
#include "telemetry/profile.h"
#include "telemetry/window.h"
#include "worker/report/report.h"
#include "worker/report/sampler.h"

struct background;

/* Borrowed, and not to change while there is a background. */
struct background_options {
    bool facts; /* read the cluster facts */
    struct facts_options facts_options;
    const char *actors_metrics_url; /* NULL: no gauge is sampled */
    const char *master_web_url;     /* NULL: not asked */
    const char *master_web_auth;    /* "user:password", or NULL */
    struct prometheus prometheus;
    const char *users_query;        /* PromQL for the total of users, or NULL */
    const struct profile *profile;  /* what to harvest; NULL: nothing */
    struct measure telemetry_lag_s; /* unknown: the profile's */
    const char *test_name, *tag;    /* for the summary's metadata; may be NULL */
};

/* 0, -EMFILE, -ENOMEM. */
MUST_USE int background_new(const struct background_options *options, struct background **ret,
                            struct err *err);
/* Aborts first, and waits for the threads. NULL is nothing. */
void background_free(struct background *b);

/* Readable when there is something to poll for. */
int background_fd(const struct background *b);
void background_poll(struct background *b);

/* A run begins: what is left of the one before is aborted and forgotten. */
void background_begin(struct background *b);
/* The load has ended. */
void background_end(struct background *b);

/* Ask Prometheus what the servers went through, from now on and after the lag. Samples are copied.
 * Nothing without a Prometheus or a profile. Needs the facts, for the number of pods, unless they
 * are not read at all; so call it when background_facts_pending is false. */
void background_harvest(struct background *b, struct window run, const struct users_sample *samples,
                        size_t sample_count);

/* The facts are being read; anything is being read, samplers aside. */
bool background_facts_pending(const struct background *b);
bool background_busy(const struct background *b);
/* There is a Prometheus to harvest. */
bool background_harvests(const struct background *b);
/* All is there so long after the end of the run, at the latest. Unknown: nothing will be harvested.
 */
struct measure background_longest_s(const struct background *b);

/* Do not wait for the facts any longer. */
void background_drop_facts(struct background *b);
/* End everything that still runs; background_busy is false afterwards. Facts and summary that were
 * not there yet stay unknown. */
void background_abort(struct background *b);

/* What has come of this run. Valid until the next begin, harvest or free. */
const struct cluster_facts *background_facts(const struct background *b); /* NULL: not there */
const json_t *background_server_document(const struct background *b);     /* the same */
const json_t *background_server_flat(const struct background *b);
const struct actors_summary *background_actors(struct background *b); /* NULL: no gauge */
const struct report_actors *background_actors_history(const struct background *b,
                                                      size_t *ret_count);

/* The next total of users that came, oldest first; false: none. */
bool background_next_users(struct background *b, enum users_source *ret_source,
                           struct users_sample *ret);

#endif

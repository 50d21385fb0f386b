/* The leader: which process reports, how many users the whole test had, and what density they came
 * to. Pure: whoever learns of a number of users adds it, from whatever source; each source keeps
 * its own series, and at the end the best one that covers the run is taken. Sources are never
 * mixed, so a plan never passes for a measurement. One thread at a time. */
#ifndef CICADA_WORKER_REPORT_LEADER_H
#define CICADA_WORKER_REPORT_LEADER_H

#include "base/err.h"
#include "base/str.h"
#include "facts/facts.h"
#include "facts/frontiers.h"
#include "worker/report/report.h"

#include <jansson.h>

#define LEADER_SAMPLES_MAX 1000000     /* of a source; when full every second one is dropped */
#define LEADER_SLACK_S     2.0         /* sources need a moment to speak up */
#define LEADER_WEB_BYTES   (16u << 20) /* of the master's /stats/requests */
/* From the master's listener: {"user_count": 20}; and, with no data, that this worker leads. */
#define LEADER_MESSAGE       "cicada_users"
#define LEADER_NAMED_MESSAGE "cicada_lead"

/* --report */
enum leader_role { LEADER_AUTO, LEADER_ALWAYS, LEADER_NEVER };
/* "auto", "always", "never". False for another word. */
bool leader_role_parse(struct str word, enum leader_role *ret);

/* Does this worker report? On auto, the one that the master gave index 0, and the one that its
 * listener named because nobody else does. */
bool leader_reports(enum leader_role role, bool has_index, uint64_t index, bool named);

#define LEADER_SOURCES (USERS_SOURCE_PLAN + 1)

struct leader_series {
    struct users_sample *samples; /* in the order of their coming */
    size_t count, cap;
};

/* Of one run. Zeroed at first. */
struct leader {
    struct leader_series series[LEADER_SOURCES];
    struct measure target; /* the most users that were asked for, all workers together */
    bool all_here;         /* they are all run by this process */
    bool told, elsewhere;  /* a total came; some were another worker's */
    bool active;           /* between begin and end */
    double start_s, end_s;
};

/* A run begins; alone: there are no other workers. Keeps memory. */
void leader_begin(struct leader *l, bool alone, double wall_s);
/* The load ends: nothing is added from now on. */
void leader_end(struct leader *l, double wall_s);
void leader_done(struct leader *l);

/* So many users ran, as this source knows. What is not a count, and what comes while no run is on,
 * is left out. 0, -ENOMEM. */
MUST_USE int leader_add(struct leader *l, enum users_source source, double wall_s, double users);

/* The total that was asked for (a master's spawning_complete), and this process's part of it. When
 * each total was this process's own, its own users are all there are. */
void leader_total(struct leader *l, uint64_t total, uint64_t own);

/* What the best source said. */
struct leader_users {
    enum users_source source; /* NONE: no samples */
    const struct users_sample *samples;
    size_t count;
};
struct leader_users leader_users(const struct leader *l);

/* The frontiers of the run (so far). facts NULL: not read. 0, -ENOMEM. */
MUST_USE int leader_frontiers(const struct leader *l, const struct cluster_facts *facts,
                              double actors_per_user, uint64_t requests, uint64_t failures,
                              struct frontiers *ret);

/* --- what others say ------------------------------------------------------------------------- */

/* The data of LEADER_MESSAGE: {"user_count": 20}, or the number alone. False: neither. */
bool leader_message_users(const json_t *data, double *ret);

/* "users" after a web UI's swarm, else "num_users" of the command line, else unknown. */
struct measure leader_planned_users(const json_t *parsed_options);

/* The body of the master's GET /stats/requests. A master that wants a login answers 200 with a text
 * or a page, so the type is looked at first. 0; -EPROTO, err says why. */
MUST_USE int leader_web_users(const char *content_type, struct str body, double *ret,
                              struct err *err);

#endif

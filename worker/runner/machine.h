/* What a worker of a Locust master does, and when: the pure state machine of a distributed run.
 * (state, event, now) -> (state, actions). It owns the state of the run and of the registration;
 * it has no sockets, no clock, no users and, after machine_init, allocates nothing. worker.c
 * performs the actions and feeds the events. One thread.
 *
 * The rules are the master's: what it cannot bear is never sent (above all spawning_complete before
 * an ack), what it waits for is sent in time. Source: locust/runners.py, WorkerRunner and
 * MasterRunner, 2.12.1 to 2.47.0; docs/worker.md tells why for each. */
#ifndef CICADA_WORKER_RUNNER_MACHINE_H
#define CICADA_WORKER_RUNNER_MACHINE_H

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "proto/locust/message.h"

#include <stdbool.h>
#include <stdint.h>

#define MACHINE_MAX_ACTIONS 24   /* of one event; the longest way there is takes half of it */
#define MACHINE_TEXT_BYTES  512  /* a log line, an exception's message */
#define MACHINE_HOST_BYTES  2048 /* the master's host with its NUL; longer ones are refused */
#define MACHINE_NAME_BYTES  1024 /* a class name of the master's that stands for our only one */
#define MACHINE_REPORTED    16   /* different faults of a run that are told; the rest is silent */
#define MACHINE_CUSTOM      32   /* different unknown message types that are told */

/* Locust's times, in microseconds. */
#define MACHINE_HEARTBEAT_US 1000000u  /* HEARTBEAT_INTERVAL */
#define MACHINE_STATS_US     3000000u  /* WORKER_REPORT_INTERVAL */
#define MACHINE_LOGS_US      10000000u /* WORKER_LOG_REPORT_INTERVAL */
#define MACHINE_ACK_US       5000000u  /* CONNECT_TIMEOUT */
/* And ours. */
#define MACHINE_SILENCE_US 5000000u /* heartbeats unanswered: the master is lost */
#define MACHINE_DOUBT_US   1500000u /* the same: stats wait until the next answer */
#define MACHINE_FORGOTTEN_US                                                                       \
    55000000u                       /* without a heartbeat of ours: the master deletes at 64 s     \
                                     */
#define MACHINE_MISSING_US 5200000u /* the same: it has given our users to others (4 to 5 s) */
#define MACHINE_LEAVE_LATEST_US                                                                    \
    50000000u                             /* of a silent leave: say goodbye before it deletes us   \
                                           */
#define MACHINE_FINAL_US         300000u  /* after quit: ask for the last samples; it hears 0.5 s */
#define MACHINE_FINAL_FORCE_US   120000u  /* after asking: send what came */
#define MACHINE_REPORT_FORCE_US  1000000u /* the same, not in such a hurry */
#define MACHINE_GRACE_US         10000000u /* beyond the stop timeout: users that will not end */
#define MACHINE_FLUSH_US         200000u   /* from a goodbye to closing the link under it */
#define MACHINE_COLLECT_US       10000000u /* after a loss: users and samples are waited for */
#define MACHINE_COMPLAIN_US      1000000u  /* without a master: the first line */
#define MACHINE_COMPLAIN_NEXT_US 30000000u /* and the next ones */

enum runner_state {
    RUNNER_READY,    /* no users wanted; not registered, or waiting for work */
    RUNNER_SPAWNING, /* on the way to the target of the last spawn message */
    RUNNER_RUNNING,  /* there, and told */
    RUNNER_STOPPING, /* the master said stop: users end, then the last report, then ready again */
    RUNNER_LEAVING,  /* silent, users at work, until the master has given them to others */
    RUNNER_QUITTING, /* users end, the last report goes out, then exit */
    RUNNER_STOPPED,  /* ACTION_EXIT was given */
};
const char *runner_state_name(enum runner_state state);

/* How far the registration with the master is. */
enum registration {
    REGISTRATION_NONE,  /* client_ready is yet to be sent */
    REGISTRATION_ASKED, /* sent, no ack so far */
    REGISTRATION_ACKED, /* the master lists us under this identity */
};

/* What the engine last said. */
struct machine_engine {
    uint64_t running_total;
    bool reached;        /* engine_status.reached */
    bool stats_complete; /* every shard answered the last request for samples */
};

enum machine_event_kind {
    EVENT_TICK,          /* time passed; several times a second */
    EVENT_MESSAGE,       /* .message */
    EVENT_BAD_MESSAGE,   /* .text: why a frame could not be decoded */
    EVENT_ENGINE,        /* .engine; after each set_users, stop and stats request too */
    EVENT_ENGINE_BROKEN, /* .text: the engine failed for good */
    EVENT_SPAWN_REFUSED, /* .text: why ACTION_SET_USERS did nothing (its host) */
    EVENT_LINK_UP,       /* the connection stands, for the first time or again */
    EVENT_LINK_DOWN,     /* it stands no more */
    EVENT_SEND_FAILED,   /* .text: a message that must not be missed could not be sent */
    EVENT_TERMINATE,     /* SIGTERM: this pod is scaled away */
    EVENT_INTERRUPT,     /* SIGINT */
};

struct machine_event {
    enum machine_event_kind kind;
    const struct message *message;
    struct machine_engine engine;
    struct str text;
};

enum machine_action_kind {
    ACTION_SEND_CLIENT_READY,
    ACTION_SEND_SPAWNING,
    ACTION_SEND_SPAWNING_COMPLETE, /* with the counts of now */
    ACTION_SEND_HEARTBEAT,         /* .text: the state it carries */
    ACTION_SEND_STATS,             /* all samples that arrived; .if_any, .no_users */
    ACTION_SEND_LOGS,              /* if there are new lines */
    ACTION_SEND_EXCEPTION,         /* .text */
    ACTION_SEND_CLIENT_STOPPED,
    ACTION_SEND_QUIT,
    ACTION_BEGIN_RUN,     /* forget all samples so far: another test begins */
    ACTION_RESET_STATS,   /* the same in the midst of a test */
    ACTION_SET_USERS,     /* .targets, .host, .stop_timeout_s */
    ACTION_STOP_USERS,    /* .stop_timeout_s */
    ACTION_REQUEST_STATS, /* ask the shards for their samples */
    ACTION_REOPEN,        /* .keep_identity */
    ACTION_NO_MASTER, /* .level: tell that no master answers and the likely cause; .text follows */
    ACTION_LOG,       /* .level, .text */
    ACTION_EXIT,      /* .exit_code; nothing follows */
};

struct machine_action {
    enum machine_action_kind kind;
    const uint32_t *targets; /* by class; the machine's, until the next event */
    struct str host;         /* ptr NULL: none; the same */
    double stop_timeout_s;
    bool keep_identity;
    bool if_any;   /* send nothing when there is no sample */
    bool no_users; /* report no users: the master has given them away */
    int exit_code;
    enum log_level level;
    char text[MACHINE_TEXT_BYTES];
};

struct machine_actions {
    unsigned count;
    struct machine_action at[MACHINE_MAX_ACTIONS];
};

struct machine_options {
    const struct str *class_names; /* of the plan, by index; borrowed, at least one */
    size_t class_count;
    struct str host;            /* --host, for a master that names none; borrowed, ptr NULL: none */
    double stop_timeout_s;      /* --stop-timeout, for SIGTERM and SIGINT */
    uint64_t master_timeout_us; /* to be acked, at first and after a loss; 0: for ever */
    bool reset_stats;           /* --reset-stats */
    bool fetched;               /* the scenario came from the master */
    uint64_t ready_wait_us;     /* from client_stopped to client_ready */
};

/* Where a spawn message wants us. */
struct machine_wanted {
    bool any;
    double timestamp;
    uint32_t *targets;
    bool has_host;
    char host[MACHINE_HOST_BYTES];
    double stop_timeout_s;
    json_t *parsed_options;
};

/* What a report of samples is waited for. */
enum machine_report { REPORT_NONE, REPORT_PERIODIC, REPORT_FINAL };

struct machine {
    /* to be read by anybody */
    enum runner_state state;
    enum registration registration;
    struct machine_wanted
        wanted;                 /* the last spawn that was taken; parsed_options may hold secrets */
    struct message_total total; /* the master's target over all workers */
    bool has_index;             /* this worker's number, from the ack */
    uint64_t index;

    /* to be written by the shell */
    bool report_pending; /* the last stats are better sent as late as the master still hears them */

    /* the machine's own */
    struct machine_options options;
    struct machine_wanted deferred; /* a spawn that came between a stop and the next ack */
    struct machine_engine engine;
    bool has_mapped_name;
    char mapped_name[MACHINE_NAME_BYTES];

    bool linked;       /* the connection stands */
    bool link_doubt;   /* it was lost and stands again: is it the same master? */
    bool acked_before; /* this identity has been acked, so the master acks */
    bool never_acks;   /* older than 2.10: spawned us without an ack */
    bool answers;      /* it answers heartbeats: 2.19 or newer */
    bool takes_logs;   /* it sent spawning_complete: 2.29 or newer */
    bool collected;    /* those samples are here: the users ended, the shards answered */
    bool flush_first;  /* samples of before the loss go out before client_ready */
    bool complete_due; /* a spawn was answered that has had no spawning_complete yet */
    bool goodbye_sent;
    bool goodbye_is_stop; /* client_stopped rather than quit */
    bool run_is_over;     /* the master said stop or quit */
    bool was_idle;        /* no users were wanted when the stopping or quitting began */
    bool last_report;     /* the final report was asked for when nobody ran any more */
    bool signalled;
    int exit_code;
    unsigned tries, unacked;
    double last_timestamp;
    enum machine_report report;

    uint64_t opened_us;           /* the link was (re)opened */
    uint64_t reopen_us;           /* when to close and open it; 0: not planned */
    uint64_t register_us;         /* not before */
    uint64_t asked_us;            /* client_ready was sent */
    uint64_t collect_us;          /* register without users and samples that take longer */
    uint64_t give_up_us;          /* without an ack until then: exit; 0: never */
    uint64_t complain_us;         /* next line about a master that does not answer */
    uint64_t heartbeat_us;        /* next one due */
    uint64_t stats_us;            /* the same */
    uint64_t logs_us;             /* the same */
    uint64_t beat_sent_us;        /* last heartbeat */
    uint64_t unanswered_us;       /* the first heartbeat without an answer; 0: none */
    uint64_t reconnect_us;        /* last reconnect that was obeyed */
    uint64_t force_us;            /* send the report that is waited for, whatever came */
    uint64_t leave_us;            /* end of the silence */
    uint64_t final_us;            /* quitting: ask for the last samples at the latest */
    uint64_t bad_us, bad_skipped; /* for log_due */
    uint64_t end_us;              /* users that are still there are no longer waited for */

    size_t reported[MACHINE_REPORTED]; /* hashes of faults told in this run */
    unsigned reported_count;
    size_t custom[MACHINE_CUSTOM];
    unsigned custom_count;

    uint64_t now_us; /* both only inside machine_handle */
    struct machine_actions *out;
};

/* now_us > 0 in all calls. The link was just made and is not connected. 0, -ENOMEM. */
MUST_USE int machine_init(struct machine *m, const struct machine_options *options,
                          uint64_t now_us);
void machine_done(struct machine *m);

/* Take one event; *ret is overwritten with what to do, in this order. */
void machine_handle(struct machine *m, const struct machine_event *event, uint64_t now_us,
                    struct machine_actions *ret);

/* Between two runs, and the master hears what is said. */
bool machine_is_idle(const struct machine *m);
/* In a run, and the same. */
bool machine_runs(const struct machine *m);

/* Seconds from outside as microseconds: not negative, not a number nor too large to wait for. */
uint64_t machine_us(double seconds);

/* The class's name to use towards the master: the plan's, or the one that stands for it. */
struct str machine_class_name(const struct machine *m, size_t class_index);

#endif

/* Joins the metrics server to a run: a scrape makes the runner ask its engine for fresh samples,
 * and when they are in, the page is rendered and handed over. The runner's thread. */
#ifndef CICADA_WORKER_RUNNER_SCRAPE_H
#define CICADA_WORKER_RUNNER_SCRAPE_H

#include "worker/metrics/server.h"

#define SCRAPE_PUSH_TIMEOUT_MS 5000

struct scrape_options {
    const char *push_url; /* of a Pushgateway, with its /metrics/job/…; NULL: nothing is pushed */
    bool on;
    const char *address; /* NULL: all */
    unsigned port;       /* 0: any free one, told in the log */
};

/* Zeroed: off. */
struct scrape {
    struct metrics_server *server;
    enum metrics_format format;
    bool waiting; /* for the engine's samples */
};

/* 0; the errno of listening, err says which port. */
MUST_USE int scrape_open(struct scrape *s, const struct scrape_options *options, struct err *err);
void scrape_done(struct scrape *s);

/* To be watched; -1 when off. Readable: call scrape_begin. */
int scrape_fd(const struct scrape *s);
void scrape_begin(struct scrape *s, struct engine *engine);

/* After the engine's samples were taken: answer a scrape that waits for them. */
void scrape_answer(struct scrape *s, const struct plan *plan, const struct stats *run,
                   struct engine *engine, const char *state);

/* At the end of a run's load: put the last figures to the Pushgateway. Blocks for at most
 * SCRAPE_PUSH_TIMEOUT_MS; what goes wrong is one warning. */
void scrape_push(const struct scrape_options *options, const struct metrics_input *last);

void scrape_set_ready(struct scrape *s, bool ready);

#endif

#include "worker/runner/survey.h"

#include "base/log.h"

int survey_open(struct survey *s, const struct report_settings *settings, struct err *err)
{
    *s = (struct survey){.settings = settings};
    return settings ? background_new(&settings->background, &s->background, err) : 0;
}

void survey_close(struct survey *s)
{
    background_free(s->background);
    leader_done(&s->leader);
    *s = (struct survey){0};
}

int survey_fd(const struct survey *s)
{
    return s->background ? background_fd(s->background) : -1;
}

/* What can be begun, is: the servers are asked when it is known how many pods there are. */
static void go_on(struct survey *s)
{
    if (!s->over || s->harvested || background_facts_pending(s->background))
        return;
    struct leader_users users = leader_users(&s->leader);
    const struct window run = {s->leader.start_s, s->leader.end_s};
    s->harvested = true;
    background_harvest(s->background, run, users.samples, users.count);
}

void survey_add(struct survey *s, enum users_source source, double wall_s, double users)
{
    if (leader_add(&s->leader, source, wall_s, users) == 0 || s->no_memory)
        return;
    s->no_memory = true;
    log_warning("no memory for a sample of the user count, continuing");
}

void survey_poll(struct survey *s)
{
    enum users_source source;
    struct users_sample sample;
    background_poll(s->background);
    while (background_next_users(s->background, &source, &sample))
        survey_add(s, source, sample.wall_s, sample.users);
    go_on(s);
}

void survey_begin(struct survey *s, bool alone, double wall_s)
{
    s->over = s->harvested = s->no_memory = false;
    leader_begin(&s->leader, alone, wall_s);
    if (s->background)
        background_begin(s->background);
}

void survey_end(struct survey *s, double wall_s)
{
    if (s->background)
        survey_poll(s); /* the last samples */
    leader_end(&s->leader, wall_s);
    s->over = true;
    if (!s->background)
        return;
    background_end(s->background);
    go_on(s);
}

bool survey_pending(const struct survey *s)
{
    return s->background && s->over && (!s->harvested || background_busy(s->background));
}

struct measure survey_longest_s(const struct survey *s)
{
    return s->background ? background_longest_s(s->background) : MEASURE_UNKNOWN;
}

void survey_drop_facts(struct survey *s)
{
    if (!survey_pending(s) || !background_facts_pending(s->background))
        return;
    log_warning("cluster facts: not there when the run was over, continuing");
    background_drop_facts(s->background);
    go_on(s);
}

void survey_abort(struct survey *s)
{
    if (!survey_pending(s))
        return;
    log_warning("the report goes without what was not there yet, continuing");
    background_abort(s->background);
    s->harvested = true;
}

static void count(const struct stats *run, uint64_t *requests, uint64_t *failures)
{
    for (uint32_t i = 0; i < stats_entry_count(run); i++) {
        *requests += stats_entry_at(run, i)->num_requests;
        *failures += stats_entry_at(run, i)->num_failures;
    }
}

void survey_fill(struct survey *s, struct report *report)
{
    struct background *b = s->background;
    double actors_per_user = s->settings ? s->settings->actors_per_user : 1;
    uint64_t requests = 0, failures = 0;
    count(report->stats, &requests, &failures);
    report->actors_per_user = actors_per_user;
    report->users_source = leader_users(&s->leader).source;
    report->facts = b ? background_facts(b) : NULL;
    if (leader_frontiers(&s->leader, report->facts, actors_per_user, requests, failures,
                         &s->frontiers) == 0)
        report->frontiers = &s->frontiers;
    if (!b)
        return;
    report->actors = background_actors(b);
    report->actors_history = background_actors_history(b, &report->actors_history_count);
    report->server_document = background_server_document(b);
    report->server_flat = background_server_flat(b);
}

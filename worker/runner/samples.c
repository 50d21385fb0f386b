#include "worker/runner/samples.h"

int samples_init(struct samples *s, struct stats_limits limits, double wall_s)
{
    *s = (struct samples){0};
    int rc = stats_new(limits, wall_s, &s->unsent);
    if (rc == 0)
        rc = stats_new(limits, wall_s, &s->run);
    if (rc == 0)
        rc = stats_new(limits, wall_s, &s->fresh);
    if (rc < 0)
        samples_done(s);
    return rc;
}

void samples_done(struct samples *s)
{
    stats_free(s->fresh);
    stats_free(s->run);
    stats_free(s->unsent);
    *s = (struct samples){0};
}

/* A merge adds all or nothing, so where it stopped is known and it can go on there. */
static int spread(struct samples *s, double wall_s)
{
    if (!s->in_unsent) {
        int rc = stats_merge(s->unsent, s->fresh);
        if (rc < 0)
            return rc;
        s->in_unsent = true;
    }
    int rc = stats_merge(s->run, s->fresh);
    if (rc < 0)
        return rc;
    s->in_unsent = false;
    stats_clear(s->fresh, wall_s);
    return 0;
}

int samples_take(struct samples *s, struct engine *engine, double wall_s)
{
    int rc = s->in_unsent ? spread(s, wall_s) : 0; /* an earlier call failed between the two */
    if (rc < 0)
        return rc;
    int taken = engine_take_stats(engine, s->fresh); /* on failure some shards' may be there */
    if (s->dropping) {
        stats_clear(s->fresh, wall_s);
        s->dropping = taken < 0 || !engine_stats_complete(engine);
        return taken;
    }
    rc = spread(s, wall_s);
    return rc < 0 ? rc : taken;
}

void samples_begin(struct samples *s, double wall_s)
{
    s->in_unsent = false;
    s->dropping = false;
    stats_clear(s->fresh, wall_s);
    stats_clear(s->unsent, wall_s);
    stats_clear(s->run, wall_s);
}

void samples_reset(struct samples *s, double wall_s)
{
    samples_begin(s, wall_s);
    s->dropping = true;
}

void samples_sent(struct samples *s, double wall_s)
{
    stats_clear(s->unsent, wall_s);
}

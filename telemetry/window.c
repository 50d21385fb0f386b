#include "telemetry/window.h"

#include <math.h>
#include <stdbool.h>

static bool usable(const struct window_sample *s)
{
    return isfinite(s->wall_s) && isfinite(s->users);
}

static double within(const struct window *run, double wall_s)
{
    return fmin(fmax(wall_s, run->start_s), run->end_s);
}

struct window window_steady(struct window run, const struct window_sample *samples, size_t count)
{
    double peak = 0;
    run.end_s = fmax(run.end_s, run.start_s);
    for (size_t i = 0; i < count; i++) {
        if (usable(&samples[i]))
            peak = fmax(peak, samples[i].users);
    }
    if (peak <= 0)
        return run;
    struct window steady = {HUGE_VAL, -HUGE_VAL};
    for (size_t i = 0; i < count; i++) {
        if (!usable(&samples[i]) || samples[i].users < peak * WINDOW_PEAK_SHARE)
            continue;
        steady.start_s = fmin(steady.start_s, samples[i].wall_s);
        steady.end_s = fmax(steady.end_s, samples[i].wall_s);
    }
    return (struct window){within(&run, steady.start_s), within(&run, steady.end_s)};
}

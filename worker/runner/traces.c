#include "worker/runner/traces.h"

#include "base/log.h"

static uint64_t left_out(struct engine *e)
{
    struct engine_status status;
    engine_status(e, &status);
    return status.traces_left_out;
}

void traces_begin(struct traces *t, struct engine *e)
{
    *t = (struct traces){.left_out = left_out(e)};
    engine_drop_traces(e);
}

void traces_pass(struct traces *t, struct engine *e, struct output *output)
{
    struct str rows = engine_traces(e);
    if (output && rows.len > 0)
        output_traces(output, rows);
    engine_drop_traces(e);
    if (t->told || left_out(e) == t->left_out)
        return;
    t->told = true;
    log_warning("traces.txt has room for %d requests of a run, and a MiB a second: more are not "
                "traced (a smaller --trace-ratio spreads them over the run), continuing",
                ENGINE_TRACE_ROWS);
}

void traces_end(const struct traces *t, struct engine *e)
{
    uint64_t missing = left_out(e) - t->left_out;
    if (missing > 0)
        log_warning("%llu requests that were to be traced are not in traces.txt",
                    (unsigned long long)missing);
}

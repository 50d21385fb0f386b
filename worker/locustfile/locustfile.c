#include "worker/locustfile/locustfile.h"

#include "worker/locustfile/sections.h"

static const char before[] =
    "\"\"\"Made by cicada locustfile; run it again rather than edit this.\"\"\"\n";

int locustfile_add(const struct plan *plan, const char *path, struct buf *out, struct err *err)
{
    (void)plan;
    (void)path;
    int rc = buf_add(out, str_of(before));
    if (rc == 0)
        rc = buf_add(out, locustfile_runtime());
    if (rc == 0)
        rc = buf_add(out, locustfile_listener());
    return rc < 0 ? err_set(err, rc, "out of memory") : 0;
}

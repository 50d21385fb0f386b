#include "worker/locustfile/sections.h"

#include "base/embed.h"

EMBED(locustfile_runtime_text, "worker/locustfile/runtime.py");
EMBED(locustfile_listener_text, "worker/locustfile/listener.py");

struct str locustfile_runtime(void)
{
    return EMBEDDED(locustfile_runtime_text);
}

struct str locustfile_listener(void)
{
    return EMBEDDED(locustfile_listener_text);
}

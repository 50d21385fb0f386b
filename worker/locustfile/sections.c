/* The assembler includes the files as they are, as in telemetry/builtin.c. */
#include "worker/locustfile/sections.h"

/* Two symbols around the bytes, visible to this program only. */
#define EMBED(symbol, path)                                                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global " #symbol "\n.hidden " #symbol "\n" #symbol ":\n"                             \
            ".incbin \"" path "\"\n"                                                               \
            ".global " #symbol "_end\n.hidden " #symbol "_end\n" #symbol "_end:\n"                 \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern const char symbol[] __attribute__((visibility("hidden")));                              \
    extern const char symbol##_end[] __attribute__((visibility("hidden")))

EMBED(locustfile_runtime_text, "worker/locustfile/runtime.py");
EMBED(locustfile_listener_text, "worker/locustfile/listener.py");

struct str locustfile_runtime(void)
{
    const char *begin = locustfile_runtime_text, *end = locustfile_runtime_text_end;
    return (struct str){begin, (size_t)(end - begin)};
}

struct str locustfile_listener(void)
{
    const char *begin = locustfile_listener_text, *end = locustfile_listener_text_end;
    return (struct str){begin, (size_t)(end - begin)};
}

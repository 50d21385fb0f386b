/* The assembler includes the files of profiles/ as they are: no generated source, no escaping.
 * Paths are relative to the root of the repository, where the compiler runs; the Makefile names the
 * files as what this object depends on. */
#include "telemetry/builtin.h"

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

EMBED(builtin_substrate, "telemetry/profiles/substrate.json");
EMBED(builtin_kubernetes, "telemetry/profiles/kubernetes.json");
EMBED(builtin_node, "telemetry/profiles/node.json");

struct str builtin_profile(struct str name)
{
    const struct {
        const char *name, *begin, *end;
    } all[] = {
        {"substrate", builtin_substrate, builtin_substrate_end},
        {"kubernetes", builtin_kubernetes, builtin_kubernetes_end},
        {"node", builtin_node, builtin_node_end},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (str_eq(name, str_of(all[i].name)))
            return (struct str){all[i].begin, (size_t)(all[i].end - all[i].begin)};
    }
    return (struct str){NULL, 0};
}

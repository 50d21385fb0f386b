#include "telemetry/builtin.h"

#include "base/embed.h"

EMBED(builtin_substrate, "telemetry/profiles/substrate.json");
EMBED(builtin_kubernetes, "telemetry/profiles/kubernetes.json");
EMBED(builtin_node, "telemetry/profiles/node.json");

struct str builtin_profile(struct str name)
{
    const struct {
        const char *name;
        struct str text;
    } all[] = {
        {"substrate", EMBEDDED(builtin_substrate)},
        {"kubernetes", EMBEDDED(builtin_kubernetes)},
        {"node", EMBEDDED(builtin_node)},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (str_eq(name, str_of(all[i].name)))
            return all[i].text;
    }
    return (struct str){NULL, 0};
}

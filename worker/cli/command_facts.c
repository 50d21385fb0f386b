/* cicada facts: what a run would read of the cluster, at once, so that a person sees whether the
 * permissions suffice. */
#include "facts/json.h"
#include "worker/cli/commands.h"
#include "worker/cli/report_setup.h"
#include "worker/report/cicada_object.h"

#include <stdio.h>
#include <stdlib.h>

static bool any_null(json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (json_is_null(value))
            return true;
    }
    return false;
}

static int print(const struct cluster_facts *facts, bool strict)
{
    json_t *object = cluster_facts_json(facts);
    char *text = object ? json_dumps(object, JSON_INDENT(2) | FACTS_DUMP_FLAGS) : NULL;
    bool shown = text && printf("%s\n", text) > 0 && fflush(stdout) == 0;
    bool lacking = strict && object && any_null(object);
    free(text);
    json_decref(object);
    return shown && !lacking ? EXIT_DONE : EXIT_FAILED;
}

static int read_and_print(const struct options *o)
{
    struct report_setup setup;
    struct cluster_facts facts = {0};
    struct err err = {0};
    int status = EXIT_FAILED;
    if (report_setup(o, &setup, &err) < 0) {
        status = command_fail(&err);
    } else if (facts_read(&setup.settings.background.facts_options, &facts) == 0) {
        for (unsigned i = 0; i < FACTS_PARTS; i++) {
            if (facts.why[i][0] != '\0')
                log_warning("%s: %s", facts_part_name((enum facts_part)i), facts.why[i]);
        }
        status = print(&facts, o->strict);
    }
    cluster_facts_done(&facts);
    report_setup_done(&setup);
    return status;
}

int command_facts(char *const argv[], char *const envp[])
{
    struct options options;
    int status = command_begin(argv, envp, 0, "no arguments but flags", &options);
    if (status >= 0)
        return status;
    status = read_and_print(&options);
    options_done(&options);
    log_close();
    return status;
}

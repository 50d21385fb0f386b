/* Reads the cluster facts as a worker would and prints one JSON object: "facts" with the keys of
 * raw_configuration, "why" with a line for each part that could not be read, "line" for people.
 * Credentials come from the environment; options come as NAME=VALUE:
 *   dir= namespace= selector= label= context= timeout_ms= */
#include "facts/json.h"

#include "base/num.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

static int option(struct facts_options *o, const char *argument)
{
    uint64_t ms;
    const struct {
        const char *name;
        const char **ret;
    } texts[] = {
        {"dir=", &o->credentials.service_account_dir},
        {"namespace=", &o->pod_namespace},
        {"selector=", &o->pod_selector},
        {"label=", &o->machine_type_label},
        {"context=", &o->credentials.context},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (str_starts(str_of(argument), str_of(texts[i].name))) {
            *texts[i].ret = argument + strlen(texts[i].name);
            return 0;
        }
    }
    if (!str_starts(str_of(argument), STR("timeout_ms=")) ||
        num_parse_u64(str_of(argument + strlen("timeout_ms=")), 600000, &ms) < 0)
        return -EINVAL;
    o->timeout_ms = (unsigned)ms;
    return 0;
}

static int print(const struct cluster_facts *f)
{
    struct buf line;
    buf_init(&line, 4096);
    json_auto_t *root = json_object(), *why = json_object();
    int bad = json_object_set_new(root, "facts", facts_raw_configuration(f, NULL, MEASURE_UNKNOWN));
    for (int part = 0; part < FACTS_PARTS; part++) {
        if (f->why[part][0])
            bad |= json_object_set_new(why, facts_part_name((enum facts_part)part),
                                       json_string(f->why[part]));
    }
    bad |= json_object_set(root, "why", why);
    bad |= cluster_facts_describe(f, &line);
    bad |= json_object_set_new(root, "line", json_string(buf_c(&line)));
    bad |= json_dumpf(root, stdout, FACTS_DUMP_FLAGS);
    buf_done(&line);
    return bad || putchar('\n') == EOF;
}

int main(int argc, char **argv)
{
    struct facts_options o = {.credentials = credentials_options_from_env(), .abort_fd = -1};
    struct cluster_facts f;
    for (int i = 1; i < argc; i++) {
        if (option(&o, argv[i]) < 0) {
            fprintf(stderr, "unknown option '%s'\n", argv[i]);
            return 2;
        }
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT))
        return 1;
    int bad = facts_read(&o, &f) < 0 || print(&f);
    cluster_facts_done(&f);
    curl_global_cleanup();
    return bad;
}

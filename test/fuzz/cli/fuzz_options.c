/* A command line, an environment and two configuration files from one input: parts that end in NUL
 * are arguments up to the first empty one, then variables up to the next empty one; the rest is the
 * text of both files, one of them TOML. */
#include "worker/cli/options.h"

#include <stdlib.h>

#define PARTS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Take parts from *rest into parts (NULL at the end), each a string of its own. */
static void take_parts(struct str *rest, char *parts[PARTS_MAX + 1], size_t n)
{
    struct str part;
    while (n < PARTS_MAX && str_next(rest, '\0', &part) && part.len > 0) {
        char *copy = strndup(part.ptr, part.len);
        if (!copy)
            abort();
        parts[n++] = copy;
    }
    parts[n] = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char program[] = "cicada", *argv[PARTS_MAX + 1] = {program}, *envp[PARTS_MAX + 1];
    struct str rest = {(const char *)data, size};
    take_parts(&rest, argv, 1);
    take_parts(&rest, envp, 0);
    struct options_file files[] = {{"locust.conf", rest}, {"pyproject.toml", rest}};
    struct options o;
    struct err err = {0};
    int rc = options_parse(argv, envp, files, 2, &o, &err);
    if ((rc < 0) != (err.text[0] != '\0'))
        abort(); /* a refusal without a reason */
    if (rc == 0 && !o.help && !o.version &&
        (!(o.worker || o.headless) || !o.master_host || o.master_port < 1 ||
         o.master_port > 65535 || !o.scenario_file == !o.url || o.threads < 0 ||
         o.threads > OPTIONS_MAX_THREADS || o.users < -1 || o.users > OPTIONS_MAX_USERS ||
         !(o.spawn_rate >= 0)))
        abort();
    options_done(&o);
    for (size_t i = 1; argv[i]; i++)
        free(argv[i]);
    for (size_t i = 0; envp[i]; i++)
        free(envp[i]);
    return 0;
}

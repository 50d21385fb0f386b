/* A profile that loads can be planned and summed up; its queries have no placeholder left. */
#include "telemetry/plan.h"
#include "telemetry/summary.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void sum_up(const struct profile *p)
{
    struct measured *none = calloc(p->count, sizeof *none);
    struct summary_head head = {.url = "http://h/"};
    if (!none)
        return;
    json_t *document = summary_document(&head, p, none), *flat = summary_flat(p, none);
    require(document && flat);
    json_decref(document);
    json_decref(flat);
    free(none);
}

static void use(const struct profile *p)
{
    struct query_plan plan;
    struct err err = {0};
    int rc = query_plan_make(p, (struct window){1000, 2000}, (struct window){1100, 1900.5},
                             p->lag_s, &plan, &err);
    require(rc == 0 || err.text[0]);
    query_plan_done(&plan);
    sum_up(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct profile p;
    struct err err = {0};
    if (profile_parse((struct str){(const char *)data, size}, "fuzz", &p, &err) == 0)
        use(&p);
    else
        require(err.text[0] != '\0');
    profile_done(&p);
    return 0;
}

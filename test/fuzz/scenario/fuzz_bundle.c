/* Any locustfile's text either gives a plan, or one line that names the locustfile. */
#include "base/utf8.h"
#include "worker/scenario/bundle.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct plan *plan = NULL;
    struct err err = {0};
    int rc = bundle_load(text, "l.py", NULL, &plan, &err);
    if (rc < 0) {
        struct str told = str_of(err.text);
        demand(rc == -EINVAL && err.code == rc && !plan);
        demand(str_starts(told, STR("l.py: ")) && utf8_valid(told));
        demand(str_find(told, '\n') == told.len);
    } else {
        demand(bundle_is_in(text) && err.code == 0);
        demand(str_starts(plan->source, STR("l.py: ")) && plan->class_count > 0);
    }
    plan_free(plan);
    return 0;
}

#include "facts/actors.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct actors_scrape scrape = {0};
    struct actors_series series = {0};
    struct actors_summary summary;
    if (actors_parse((struct str){(const char *)data, size}, &scrape, NULL) == 0) {
        if (scrape.count == 0 || actors_series_add(&series, &scrape) < 0 ||
            actors_summarize(&series, &summary) < 0)
            abort();
    } else if (scrape.count != 0) {
        abort();
    }
    actors_scrape_done(&scrape);
    actors_series_done(&series);
    return 0;
}

/* Takes ramps from standard input and prints each step's counts, to be compared with Locust's
 * dispatcher:
 *   class NAME WEIGHT FIXED_COUNT    a user class; all of them before the first ramp
 *   ramp USERS RATE STEPS [NAME …]   at most so many steps, with these classes only
 * For each step: the microseconds until the next one (0: it was the last), and the counts in the
 * order in which the classes were given. */
#include "base/num.h"
#include "worker/runner/dispatcher.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_CLASSES 1000
#define MAX_WORDS   (MAX_CLASSES + 4)

static struct plan_class classes[MAX_CLASSES];
static struct plan plan = {.classes = classes};

static void die(const char *text)
{
    (void)fprintf(stderr, "dispatch_script: %s\n", text);
    exit(2);
}

static size_t split(char *line, struct str *words)
{
    struct str rest = str_trim(str_of(line)), word;
    size_t n = 0;
    while (str_next(&rest, ' ', &word) && n < MAX_WORDS)
        words[n++] = word;
    return n;
}

static uint32_t whole(struct str word)
{
    uint64_t v;
    if (num_parse_u64(word, UINT32_MAX, &v) < 0)
        die("not a whole number");
    return (uint32_t)v;
}

static void add_class(const struct str *words)
{
    char *name = strndup(words[1].ptr, words[1].len); /* until the end */
    if (plan.class_count == MAX_CLASSES || !name)
        die("too many classes");
    classes[plan.class_count++] = (struct plan_class){
        .name = str_of(name), .weight = whole(words[2]), .fixed_count = whole(words[3])};
}

static size_t index_of(struct str name)
{
    size_t i = plan_class_index(&plan, name);
    if (i == plan.class_count)
        die("no such class");
    return i;
}

static void ramp(struct dispatcher *d, const struct str *words, size_t count)
{
    bool chosen[MAX_CLASSES] = {false};
    double rate;
    for (size_t i = 4; i < count; i++)
        chosen[index_of(words[i])] = true;
    if (num_parse_double(words[2], &rate) < 0 ||
        dispatcher_ramp(d, whole(words[1]), rate, count > 4 ? chosen : NULL) < 0)
        die("a bad ramp");
    uint32_t left = whole(words[3]);
    for (bool more = true; more && left > 0; left--) {
        more = dispatcher_step(d);
        (void)printf("%" PRIu64, more ? d->wait_us : 0);
        for (size_t c = 0; c < plan.class_count; c++)
            (void)printf(" %u", d->counts[c]);
        (void)printf("\n");
    }
}

int main(void)
{
    struct dispatcher d = {0};
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        struct str words[MAX_WORDS];
        size_t count = split(line, words);
        if (count == 4 && str_eq(words[0], STR("class"))) {
            add_class(words);
        } else if (count >= 4 && str_eq(words[0], STR("ramp"))) {
            if (!d.plan && dispatcher_init(&d, &plan, NULL) < 0)
                die("out of memory");
            ramp(&d, words, count);
        } else {
            die("neither class nor ramp");
        }
    }
    dispatcher_done(&d);
    free(line);
    return 0;
}

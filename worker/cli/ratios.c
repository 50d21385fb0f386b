#include "worker/cli/ratios.h"

#include "base/num.h"

#include <math.h>

#define RULE                                                                                       \
    "--------------------------------------------------------------------------------"             \
    "\n"
#define NAME_WIDTH 50

void ratios_list(struct pen *p, const struct plan *plan)
{
    pen_text(p, "Available Users:\n");
    for (size_t i = 0; i < plan->class_count; i++) {
        pen_text(p, "    ");
        (void)pen_shown(p, plan->classes[i].name, 0);
        pen_text(p, "\n");
    }
}

/* --- shares ---------------------------------------------------------------------------------- */

/* How the users fall to the classes. */
struct shares {
    const struct plan *plan;
    const bool *wanted;
    uint64_t weights; /* of the classes without a fixed count */
    double weighted;  /* users that are left for them */
    double users;     /* of all classes, each rounded; 1 when there are none */
};

static bool takes_part(const struct shares *s, size_t class)
{
    return !s->wanted || s->wanted[class];
}

/* rint rounds halves to the even number, as Python does. */
static double users_of(const struct shares *s, size_t class)
{
    const struct plan_class *c = &s->plan->classes[class];
    return c->fixed_count ? c->fixed_count
                          : rint((double)c->weight / (double)s->weights * s->weighted);
}

static struct shares shares_of(const struct plan *plan, const bool *wanted, uint64_t users)
{
    struct shares s = {.plan = plan, .wanted = wanted};
    uint64_t fixed = 0;
    for (size_t i = 0; i < plan->class_count; i++) {
        const struct plan_class *c = &plan->classes[i];
        if (!takes_part(&s, i))
            continue;
        fixed += c->fixed_count;
        s.weights += c->fixed_count ? 0 : c->weight;
    }
    if (users == 0)
        users = fixed ? 1 : s.weights;
    s.weighted = users > fixed ? (double)(users - fixed) : 0;
    for (size_t i = 0; i < plan->class_count; i++)
        s.users += takes_part(&s, i) ? users_of(&s, i) : 0;
    s.users = s.users > 0 ? s.users : 1;
    return s;
}

/* Of one task in its class, or in all tasks together when the class's share is given for whole. */
static double task_share(const struct plan_class *c, size_t task, double whole)
{
    return c->sequential ? whole / (double)c->task_count
                         : c->tasks[task].weight * whole / (double)c->task_weight_sum;
}

/* --- the text -------------------------------------------------------------------------------- */

static void line(struct pen *p, const char *indent, double share, struct str name)
{
    char number[NUM_FIXED_BYTES];
    num_format_fixed(share * 100, 1, number);
    pen_printf(p, " %s%-6s", indent, number);
    pen_blanks(p, indent[0] ? 2 : 4); /* 10 in all */
    pen_printf(p, " %s", indent);
    (void)pen_shown(p, name, NAME_WIDTH - strlen(indent));
    pen_text(p, "\n");
}

static void part(struct pen *p, const struct shares *s, bool total)
{
    for (size_t i = 0; i < s->plan->class_count; i++) {
        const struct plan_class *c = &s->plan->classes[i];
        if (!takes_part(s, i))
            continue;
        double share = users_of(s, i) / s->users;
        line(p, "", share, c->name);
        for (size_t t = 0; t < c->task_count; t++)
            line(p, "  ", task_share(c, t, total ? share : 1), c->tasks[t].name);
    }
}

void ratios_text(struct pen *p, const struct plan *plan, const bool *wanted, uint64_t users)
{
    const struct shares s = shares_of(plan, wanted, users);
    pen_text(p, "\n Task ratio per User class\n" RULE);
    part(p, &s, false);
    pen_text(p, "\n Total task ratio\n" RULE);
    part(p, &s, true);
}

/* --- JSON ------------------------------------------------------------------------------------ */

/* A name and the share under it; the object stays open. */
static void open_share(struct pen *p, const char *before, size_t indent, struct str name,
                       double share)
{
    char digits[NUM_TEXT_BYTES];
    num_format_repr(share, digits);
    pen_printf(p, "%s\n", before);
    pen_blanks(p, indent);
    pen_json(p, name);
    pen_text(p, ": {\n");
    pen_blanks(p, indent + 4);
    pen_printf(p, "\"ratio\": %s", digits);
}

static void json_class(struct pen *p, const struct plan_class *c, const char *before, double share,
                       bool total)
{
    open_share(p, before, 8, c->name, share);
    pen_text(p, ",\n            \"tasks\": {");
    for (size_t t = 0; t < c->task_count; t++) {
        open_share(p, t ? "," : "", 16, c->tasks[t].name, task_share(c, t, total ? share : 1));
        pen_text(p, "\n                }");
    }
    pen_text(p, c->task_count ? "\n            }\n        }" : "}\n        }");
}

static void json_part(struct pen *p, const struct shares *s, const char *name, bool total)
{
    const char *before = "";
    pen_printf(p, "    \"%s\": {", name);
    for (size_t i = 0; i < s->plan->class_count; i++) {
        if (!takes_part(s, i))
            continue;
        json_class(p, &s->plan->classes[i], before, users_of(s, i) / s->users, total);
        before = ",";
    }
    pen_text(p, "\n    }");
}

void ratios_json(struct pen *p, const struct plan *plan, const bool *wanted, uint64_t users)
{
    const struct shares s = shares_of(plan, wanted, users);
    pen_text(p, "{\n");
    json_part(p, &s, "per_class", false);
    pen_text(p, ",\n");
    json_part(p, &s, "total", true);
    pen_text(p, "\n}\n");
}

/* The plain load as a task in C: one request each. */
#include <cicada.h>

static void get(struct cicada_user *user)
{
    (void)cicada_get(user, "/"); /* counted by itself */
}

static const struct cicada_task tasks[] = {{.name = "get", .run = get}, {0}};
static const struct cicada_user_class users[] = {{.name = "Getter", .tasks = tasks}, {0}};
CICADA_TEST = {CICADA_TEST_HEAD, .users = users};

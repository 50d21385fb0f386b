/* Waiting users as tasks in C, in the dearest way: within the task, so that each holds its stack.
 */
#include <cicada.h>

static void get_and_sleep(struct cicada_user *user)
{
    (void)cicada_get(user, "/"); /* counted by itself */
    (void)cicada_sleep(user, 1); /* told to stop: the task ends here anyway */
}

static const struct cicada_task tasks[] = {{.name = "get and sleep", .run = get_and_sleep}, {0}};
static const struct cicada_user_class users[] = {{.name = "Sleeper", .tasks = tasks}, {0}};
CICADA_TEST = {CICADA_TEST_HEAD, .users = users};

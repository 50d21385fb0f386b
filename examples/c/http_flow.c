/* A shop: each visitor logs in once, then looks at lists and items, and checks what comes back.
 *
 *     cc -shared -fPIC -o http_flow.so http_flow.c $(pkg-config --cflags cicada)
 *     cicada --worker -f http_flow.so --host http://127.0.0.1:8080 */
#include <cicada.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct visitor {
    char authorization[96];
};

/* "token": "abc" in a small JSON body. */
static int find_token(const char *body, char *token, size_t size)
{
    static const char key[] = "\"token\": \"";
    const char *begin = strstr(body, key);
    size_t length;
    if (!begin)
        return -1;
    begin += sizeof key - 1;
    length = strcspn(begin, "\"");
    if (length >= size)
        return -1;
    memcpy(token, begin, length);
    token[length] = '\0';
    return 0;
}

static void log_in(struct cicada_user *user)
{
    unsigned long long number = cicada_user_number(user);
    struct visitor *me = calloc(1, sizeof *me);
    const struct cicada_response *r;
    char body[128], token[64];
    cicada_set_data(user, me);
    if (!me) {
        cicada_stop_user(user);
        return;
    }
    int length =
        snprintf(body, sizeof body, "{\"user\": \"v%llu\", \"password\": \"secret-of-v%llu\"}",
                 number, number);
    r = cicada_post(user, "/login", "application/json", body, (size_t)length);
    if (r->error)
        return; /* counted as a failure already */
    if (find_token(r->body, token, sizeof token) == 0)
        (void)snprintf(me->authorization, sizeof me->authorization, "Bearer %s", token);
    else
        cicada_fail(r, "no token");
}

static void log_out(struct cicada_user *user)
{
    (void)cicada_post(user, "/logout", NULL, NULL, 0);
    free(cicada_data(user));
}

static void browse(struct cicada_user *user)
{
    const struct cicada_response *r = cicada_get(user, "/items");
    if (!r->error && !strstr(r->body, "\"items\""))
        cicada_fail(r, "no items");
    /* what a visitor does with a list: read it */
    if (cicada_sleep(user, cicada_random_between(user, 0.01, 0.05)) == CICADA_STOPPED)
        return;
    (void)cicada_get(user, "/items?page=2");
}

/* A thousand items, one row in the statistics. */
static void look_at_item(struct cicada_user *user)
{
    const struct visitor *me = cicada_data(user);
    const struct cicada_header headers[] = {{"Authorization", me->authorization}, {NULL, NULL}};
    struct cicada_request request = {.name = "/items/[id]", .headers = headers, .timeout_s = 5};
    const struct cicada_response *r;
    char url[32];
    (void)snprintf(url, sizeof url, "/items/%u", (unsigned)cicada_random(user, 1000));
    request.url = url;
    r = cicada_request(user, &request);
    if (r->status == 404)
        cicada_success(r); /* sold: that is no fault */
}

static const char *const reading[] = {"read", NULL};

static const struct cicada_task tasks[] = {
    {.name = "browse", .run = browse, .weight = 3, .tags = reading},
    {.name = "look at item", .run = look_at_item, .weight = 2},
    {.name = NULL},
};

static const struct cicada_user_class users[] = {
    {
        .name = "Visitor",
        .wait_time = {CICADA_WAIT_BETWEEN, 0.05, 0.2},
        .on_start = log_in,
        .on_stop = log_out,
        .tasks = tasks,
    },
    {.name = NULL},
};

CICADA_TEST = {CICADA_TEST_HEAD, .users = users};

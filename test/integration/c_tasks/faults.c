/* Tasks that go wrong, one of them by FAULT=name. */
#include <cicada.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static volatile int *nowhere;
static volatile int zero, spun;
static struct cicada_user *other;

static int dig(volatile char *above, int depth)
{
    volatile char frame[1024];
    frame[0] = above[0];
    return depth == 0 ? frame[0] : dig(frame, depth - 1) + frame[0];
}

static void spin(double seconds)
{
    uint64_t begin_us = cicada_clock_us();
    while ((double)(cicada_clock_us() - begin_us) < seconds * 1e6)
        ;
}

/* Leaps over the guard page unless the compiler looks at each page. */
static int large_frame(struct cicada_user *user)
{
    volatile char frame[1 << 20];
    frame[0] = 1;
    cicada_sleep(user, 0.01);
    return frame[0];
}

static void *record(void *user)
{
    cicada_record_success(user, "X", "from another thread", 1, 1);
    return NULL;
}

static void in_a_thread(struct cicada_user *user)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, record, user) == 0)
        pthread_join(thread, NULL);
}

static void go_wrong(struct cicada_user *user)
{
    const char *fault = getenv("FAULT");
    volatile char top[1] = {1};
    cicada_sleep(user, 0.01);
    if (strcmp(fault, "segv") == 0)
        *nowhere = 1;
    else if (strcmp(fault, "fpe") == 0)
        zero = 7 / zero;
    else if (strcmp(fault, "abort") == 0)
        abort();
    else if (strcmp(fault, "stack") == 0)
        zero = dig(top, 10000);
    else if (strcmp(fault, "stuck") == 0 && !spun++)
        spin(13);
    else if (strcmp(fault, "sleep") == 0)
        (void)cicada_sleep(user, 60);
    else if (strcmp(fault, "frame") == 0)
        zero = large_frame(user);
    else if (strcmp(fault, "other user") == 0 && !other)
        other = user;
    else if (strcmp(fault, "other user") == 0 && other != user)
        (void)cicada_get(other, "/");
    else if (strcmp(fault, "other thread") == 0)
        in_a_thread(user);
    while (strcmp(fault, "deaf") == 0)
        (void)cicada_get(user, "/");
}

static void on_stop(struct cicada_user *user)
{
    cicada_log(CICADA_INFO, "user %llu stops", (unsigned long long)cicada_user_number(user));
}

static void crash_in(const char *place)
{
    if (strcmp(getenv("FAULT"), place) == 0)
        *nowhere = 1;
}

static void test_start(struct cicada_run *run)
{
    (void)run;
    crash_in("test_start");
}

static void test_stop(struct cicada_run *run)
{
    (void)run;
    crash_in("test_stop");
}

static const struct cicada_task tasks[] = {{.name = "go wrong", .run = go_wrong}, {.name = NULL}};
static const struct cicada_user_class users[] = {
    {.name = "Faulty",
     .wait_time = {CICADA_WAIT_CONSTANT, 0.01, 0},
     .on_stop = on_stop,
     .tasks = tasks},
    {.name = NULL},
};
CICADA_TEST = {CICADA_TEST_HEAD, .users = users, .test_start = test_start, .test_stop = test_stop};

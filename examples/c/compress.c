/* A library under load, in a program of one's own: what is measured is no server but zlib. Each
 * user compresses a text again and again, the run's totals go to the master at its end.
 *
 *     cc -o compress compress.c $(pkg-config --cflags --libs cicada) -lz
 *     ./compress --worker --master-host 127.0.0.1 */
#include <cicada.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define TEXT_BYTES 16384

static char text[TEXT_BYTES];
static atomic_ullong compressed_bytes; /* users are on several threads */

static void compress_at(struct cicada_user *user, const char *name, int level)
{
    unsigned char out[TEXT_BYTES + 1024];
    uLongf length = sizeof out;
    uint64_t begin_us = cicada_clock_us();
    int rc = compress2(out, &length, (const unsigned char *)text, sizeof text, level);
    double took_ms = (double)(cicada_clock_us() - begin_us) / 1e3;
    if (rc == Z_OK) {
        cicada_record_success(user, "zlib", name, took_ms, length);
        atomic_fetch_add(&compressed_bytes, length);
    } else {
        cicada_record_failure(user, "zlib", name, took_ms, 0, zError(rc));
    }
}

static void fast(struct cicada_user *user)
{
    compress_at(user, "level 1", 1);
}

static void small(struct cicada_user *user)
{
    compress_at(user, "level 9", 9);
}

/* Level 10 does not exist: a failure on purpose. */
static void wrong(struct cicada_user *user)
{
    compress_at(user, "level 10", 10);
}

static void begin(struct cicada_run *run)
{
    (void)run;
    atomic_store(&compressed_bytes, 0);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "the quick brown fox jumps over the lazy dog "[i * i / 7 % 44];
}

static void end(struct cicada_run *run)
{
    char json[64];
    (void)snprintf(json, sizeof json, "{\"bytes\": %llu}", atomic_load(&compressed_bytes));
    if (cicada_send_message(run, "compressed", json) < 0)
        cicada_log(CICADA_WARNING, "the master is not told of %s", json);
}

/* runner.send_message("greet", {"name": "x"}) in the master's locustfile. */
static void greet(struct cicada_run *run, const char *type, const char *json)
{
    cicada_log(CICADA_INFO, "the master says %s: %s", type, json);
    (void)cicada_send_message(run, "greeted", json);
}

static const char *const rare[] = {"rare", NULL};

static const struct cicada_task tasks[] = {
    {.name = "fast", .run = fast, .weight = 10},
    {.name = "small", .run = small, .weight = 3},
    {.name = "wrong", .run = wrong, .weight = 1, .tags = rare},
    {.name = NULL},
};

static const struct cicada_user_class users[] = {
    {.name = "Compressor", .wait_time = {CICADA_WAIT_CONSTANT_THROUGHPUT, 20, 0}, .tasks = tasks},
    {.name = NULL},
};

static const struct cicada_message_handler messages[] = {{"greet", greet}, {NULL, NULL}};

int main(int argc, char **argv)
{
    static const struct cicada_test test = {
        CICADA_TEST_HEAD, .users = users,       .test_start = begin,
        .test_stop = end, .messages = messages,
    };
    return cicada_main(argc, argv, &test);
}

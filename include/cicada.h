/* cicada: user classes and tasks in C, for a Locust-compatible load worker. The whole public
 * interface; docs/c-tasks.md shows how to use it. C11 and C++.
 *
 * A test is a table of user classes. Each simulated user runs one task after the other in straight
 * lines of code, on a small stack of its own. A call that has to wait (a request, cicada_sleep,
 * cicada_wait_fd) parks the user, and its thread goes on with the other users; so thousands of
 * users share a thread, and code between two such calls must be short: nothing that blocks (sleep,
 * read of a blocking socket, a lock that is held for long) and no long calculation.
 *
 *     static void browse(struct cicada_user *user)
 *     {
 *         const struct cicada_response *r = cicada_get(user, "/items");
 *         if (!r->error && r->body_length == 0)
 *             cicada_fail(r, "no items");
 *     }
 *
 *     static const struct cicada_task tasks[] = {{.name = "browse", .run = browse}, {0}};
 *     static const struct cicada_user_class users[] = {
 *         {.name = "Visitor", .wait_time = {CICADA_WAIT_BETWEEN, 1, 2}, .tasks = tasks}, {0}};
 *     CICADA_TEST = {CICADA_TEST_HEAD, .users = users};
 *
 * Built with `cc -shared -fPIC`, it is run by `cicada --worker -f tasks.so`; a program of one's own
 * hands it to cicada_main instead.
 *
 * Threads: a user lives on one thread for good, and everything that takes a `struct cicada_user *`
 * may be called for it only from its own task (or from what the task calls), never from another
 * thread. Users of the same class run on several threads at once: what they share is yours to
 * guard. What takes a `struct cicada_run *` may be called from any thread. Thread-local variables
 * keep their thread but not their user: another user may have run during any call that waits.
 *
 * Ownership: strings and tables that describe the test live as long as the process. What a call is
 * given is copied, if need be, before it returns. Whatever it returns belongs to cicada; until when
 * it lives is said at each function.
 *
 * Times are in seconds (`_s`) or milliseconds (`_ms`), sizes in bytes. Text is UTF-8 that ends in
 * NUL. A member that is zero has its default. */
#ifndef CICADA_H
#define CICADA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of this interface. It counts up when a struct grows or a function is added; members
 * are only ever added at a struct's end. cicada runs tests of its own number and of older ones, and
 * refuses newer ones in words. */
#define CICADA_ABI 1

#if defined(__GNUC__)
#define CICADA_API                 __attribute__((__visibility__("default")))
#define CICADA_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#else
#define CICADA_API
#define CICADA_PRINTF(text, first)
#endif

struct cicada_user; /* one simulated user */
struct cicada_run;  /* this process's part in the test */

/* What a call came to. */
enum cicada_result {
    CICADA_OK = 0,
    CICADA_FAILED = -1,  /* see the error text, or errno where it says so */
    CICADA_TIMEOUT = -2, /* cicada_wait_fd: nothing happened in time */
    CICADA_STOPPED = -3, /* the user's time is up: give back what the task holds, and return */
};

/* --- the test ------------------------------------------------------------------------------- */

/* Locust's wait_time. */
enum cicada_wait_kind {
    CICADA_WAIT_NONE,                /* the next task begins at once */
    CICADA_WAIT_CONSTANT,            /* .min seconds after a task's end */
    CICADA_WAIT_BETWEEN,             /* .min to .max seconds after a task's end */
    CICADA_WAIT_CONSTANT_PACING,     /* tasks begin every .min seconds */
    CICADA_WAIT_CONSTANT_THROUGHPUT, /* .min tasks begin each second */
};

struct cicada_wait_time {
    enum cicada_wait_kind kind;
    double min;
    double max;
};

struct cicada_task {
    const char *name;
    void (*run)(struct cicada_user *user);
    unsigned weight;         /* how often it is picked, beside the others; 0: 1 */
    const char *const *tags; /* for --tags and --exclude-tags; NULL ends them. NULL: none */
};

struct cicada_user_class {
    const char *name;     /* as the master's locustfile calls it */
    unsigned weight;      /* 0: 1 */
    unsigned fixed_count; /* so many users, whatever the weights say; 0: by weight */
    struct cicada_wait_time wait_time;
    const char *host; /* "https://example.com", for paths to be joined to; NULL: the test's */
    bool insecure;    /* TLS certificates are not verified */
    /* Run once for each user, before its first task and after its last one; NULL: nothing. on_stop
     * is called whenever on_start was, or would have been. */
    void (*on_start)(struct cicada_user *user);
    void (*on_stop)(struct cicada_user *user);
    const struct cicada_task *tasks; /* one without a name ends them */
};

/* A message of an unknown type from the master: runner.send_message(type, data) in a locustfile.
 * json is its data and lives until the handler returns. Called on the runner's thread, as
 * test_start is. */
struct cicada_message_handler {
    const char *type;
    void (*handle)(struct cicada_run *run, const char *type, const char *json);
};

struct cicada_test {
    uint32_t abi;     /* CICADA_ABI, and */
    uint32_t size;    /* sizeof(struct cicada_test): both by CICADA_TEST_HEAD */
    const char *host; /* for classes without one; --host and the master's win. NULL: none */
    const struct cicada_user_class *users; /* one without a name ends them */
    /* When the master begins a run, before its first user; and when it has ended, after its last
     * one. Called on the runner's thread, which must not wait: heartbeats go out from it. */
    void (*test_start)(struct cicada_run *run);
    void (*test_stop)(struct cicada_run *run);
    const struct cicada_message_handler *messages; /* one without a type ends them; NULL: none */
};

#define CICADA_TEST_HEAD .abi = CICADA_ABI, .size = sizeof(struct cicada_test)

/* What a shared object for -f defines: CICADA_TEST = {CICADA_TEST_HEAD, .users = …}; */
extern CICADA_API const struct cicada_test cicada_test;
#define CICADA_TEST const struct cicada_test cicada_test

/* Run a test that is linked into one's own program: the command line is cicada's own, without -f.
 * Called once, by main, before there are other threads; returns the exit status. */
CICADA_API int cicada_main(int argc, char **argv, const struct cicada_test *test);

/* The version of the library that runs, as "1.2.3". */
CICADA_API const char *cicada_version(void);

/* --- requests ------------------------------------------------------------------------------- */

struct cicada_header {
    const char *name;
    const char *value;
};

#define CICADA_NO_BODY ((size_t)-1)

struct cicada_request {
    const char *method;                  /* NULL: GET, or POST when there is a body */
    const char *url;                     /* a path, to be joined to the host, or an http(s) URL */
    const char *name;                    /* of its row in the statistics; NULL: the url */
    const struct cicada_header *headers; /* one without a name ends them; NULL: none */
    const void *body;                    /* NULL: none */
    size_t body_length;
    double timeout_s;         /* of the whole, redirects included; 0: none */
    double connect_timeout_s; /* of connecting; 0: none */
    bool no_redirects;        /* a redirect is the response; else 30 are followed */
    size_t
        body_limit; /* so much of the response's body is kept; 0: 1 MiB, CICADA_NO_BODY: nothing */
};

struct cicada_response {
    enum cicada_result result; /* CICADA_OK: a whole response came, whatever its status */
    unsigned status;           /* 404; 0: no response */
    const char *error; /* why it counts as a failure: no whole response, or a status of 400 and
                          more. NULL: it does not */
    double response_time_ms;
    uint64_t content_length; /* of the body as it is decoded, also what was not kept */
    const char *body;        /* what was kept of it, with a NUL behind; never NULL */
    size_t body_length;
    bool body_cut; /* it is longer than body_limit */
};

/* Send a request and wait for its response. Never NULL; it lives until the user's next call that
 * waits, or the task's end. It is counted then, so until then cicada_fail and cicada_success decide
 * what it counts as (Locust's catch_response). A request whose url, method and headers were seen
 * before costs no allocation. Cookies are kept for the user, as by Locust's client. */
CICADA_API const struct cicada_response *cicada_request(struct cicada_user *user,
                                                        const struct cicada_request *request);
CICADA_API const struct cicada_response *cicada_get(struct cicada_user *user, const char *url);
CICADA_API const struct cicada_response *cicada_head(struct cicada_user *user, const char *url);
CICADA_API const struct cicada_response *cicada_delete(struct cicada_user *user, const char *url);
/* content_type NULL: no such header. */
CICADA_API const struct cicada_response *cicada_post(struct cicada_user *user, const char *url,
                                                     const char *content_type, const void *body,
                                                     size_t body_length);
CICADA_API const struct cicada_response *cicada_put(struct cicada_user *user, const char *url,
                                                    const char *content_type, const void *body,
                                                    size_t body_length);
CICADA_API const struct cicada_response *cicada_patch(struct cicada_user *user, const char *url,
                                                      const char *content_type, const void *body,
                                                      size_t body_length);

/* The first header of that name, whatever its case: its value is copied to value, at most size
 * bytes with the NUL. Returns its length without the NUL (size or more: it was cut), -1: none. */
CICADA_API long cicada_response_header(const struct cicada_response *response, const char *name,
                                       char *value, size_t size);

/* Count the response as a failure with this text (few different ones: each has a row in the
 * statistics), or as a success whatever its status. The first word counts. */
CICADA_API void cicada_fail(const struct cicada_response *response, const char *format, ...)
    CICADA_PRINTF(2, 3);
CICADA_API void cicada_success(const struct cicada_response *response);

/* --- waiting -------------------------------------------------------------------------------- */

/* CICADA_OK or CICADA_STOPPED. 0 s lets the other users have their turn. */
CICADA_API int cicada_sleep(struct cicada_user *user, double seconds);

/* Wait until a non-blocking descriptor is ready: events are those of poll(2), POLLIN and POLLOUT.
 * timeout_s 0 or less: for ever. Returns the events that came (POLLERR and POLLHUP too), or
 * CICADA_TIMEOUT, CICADA_STOPPED, CICADA_FAILED (errno says why: EBADF, EPERM for a file, ENOMEM).
 * The descriptor stays the task's, which closes it. One user at a time waits for a descriptor. */
CICADA_API int cicada_wait_fd(struct cicada_user *user, int fd, short events, double timeout_s);

/* --- samples of one's own ------------------------------------------------------------------- */

/* Count something that the task measured itself, under a type (which stands where HTTP requests
 * have their method) and a name. */
CICADA_API void cicada_record_success(struct cicada_user *user, const char *type, const char *name,
                                      double response_time_ms, uint64_t length);
CICADA_API void cicada_record_failure(struct cicada_user *user, const char *type, const char *name,
                                      double response_time_ms, uint64_t length, const char *error);

/* A clock to measure by: microseconds, monotonic. */
CICADA_API uint64_t cicada_clock_us(void);

/* --- the user ------------------------------------------------------------------------------- */

/* A pointer of the user's own, NULL at first: what on_start makes and on_stop frees. */
CICADA_API void *cicada_data(const struct cicada_user *user);
CICADA_API void cicada_set_data(struct cicada_user *user, void *data);

/* Texts by name. A user begins with those of the command line and of the master's custom arguments
 * (parsed_options); what it sets is its own. The value lives until it is set again or the user
 * ends; NULL: there is none. Setting NULL goes back to the first value. CICADA_OK, or CICADA_FAILED
 * without memory. */
CICADA_API const char *cicada_variable(const struct cicada_user *user, const char *name);
CICADA_API int cicada_set_variable(struct cicada_user *user, const char *name, const char *value);

/* 1, 2, 3, …: no other user of this process has the same number. */
CICADA_API uint64_t cicada_user_number(const struct cicada_user *user);
CICADA_API const char *cicada_class_name(const struct cicada_user *user);

/* 0 <= x < limit (limit > 0), and min <= x < max. Not for secrets. */
CICADA_API uint64_t cicada_random(struct cicada_user *user, uint64_t limit);
CICADA_API double cicada_random_between(struct cicada_user *user, double min, double max);

/* The user ends when its task returns; its place stays empty until the master deals users anew. */
CICADA_API void cicada_stop_user(struct cicada_user *user);

/* What Locust calls an exception: a fault of the test itself. Logged, and shown in the master's
 * "Exceptions". */
CICADA_API void cicada_exception(struct cicada_user *user, const char *format, ...)
    CICADA_PRINTF(2, 3);

/* --- the run -------------------------------------------------------------------------------- */

CICADA_API struct cicada_run *cicada_run_of(const struct cicada_user *user);

/* The number that the master gave this worker, from 0; -1: it has not given any. */
CICADA_API int cicada_worker_index(const struct cicada_run *run);

/* A custom message to the master, where the locustfile has registered its type. json is its data;
 * NULL: none. CICADA_OK; CICADA_FAILED: no JSON, a type of Locust's own protocol, no memory, or
 * more than 1,000 wait to be sent. */
CICADA_API int cicada_send_message(struct cicada_run *run, const char *type, const char *json);

/* End this process's part in the test, as Locust's runner.quit() does. */
CICADA_API void cicada_stop_run(struct cicada_run *run);

/* --- the log -------------------------------------------------------------------------------- */

enum cicada_log_level { CICADA_DEBUG, CICADA_INFO, CICADA_WARNING, CICADA_ERROR };

/* One line. Any thread; what can happen for each request is better not logged. */
CICADA_API void cicada_log(enum cicada_log_level level, const char *format, ...)
    CICADA_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif

#endif

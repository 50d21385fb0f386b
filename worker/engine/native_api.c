/* The functions of include/cicada.h that a task calls, on the task's own stack: they say what is
 * wanted, park, and look at what came of it. */
#include "worker/engine/native.h"

#include "base/clock.h"
#include "base/log.h"
#include "proto/locust/message.h"
#include "worker/engine/http_parser.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_BYTES 512 /* of a failure, an exception, a log line */
#define LONGEST_S  (365.0 * 86400.0)

/* --- the place of a call -------------------------------------------------------------------- */

static __attribute__((noinline, noreturn)) void misplaced(const struct cicada_user *n)
{
    log_line(LOG_CRITICAL,
             "user class '%.*s': a function of cicada.h was called for a user from outside its own "
             "task (another user's, or another thread)",
             STR_ARG(n->class->name));
    __builtin_trap(); /* it would go on on a stack that is not the user's */
}

/* What is called for a user is called by its own task. */
static inline void check_place(const struct cicada_user *n)
{
    if (__builtin_expect(fiber_current() != n->fiber, 0))
        misplaced(n);
}

/* --- waiting -------------------------------------------------------------------------------- */

/* Park with a wish. False: the task was told to stop. */
static bool await(struct cicada_user *n, enum native_wish wish)
{
    check_place(n);
    native_count(n);
    if (__builtin_expect(n->stopping, 0)) {
        n->wish = NATIVE_DROP;
        if (++n->refusals > NATIVE_MAX_REFUSALS)
            fiber_park(n->fiber); /* for ever */
        return false;
    }
    n->wish = (uint8_t)wish;
    fiber_park(n->fiber);
    return true;
}

static uint64_t micros(double seconds)
{
    if (!(seconds > 0))
        return 0;
    return (uint64_t)ceil((seconds < LONGEST_S ? seconds : LONGEST_S) * 1e6);
}

int cicada_sleep(struct cicada_user *n, double seconds)
{
    n->wait_us = micros(seconds);
    return await(n, NATIVE_SLEEP) ? n->came : CICADA_STOPPED;
}

int cicada_wait_fd(struct cicada_user *n, int fd, short events, double timeout_s)
{
    n->fd = fd;
    n->fd_events = (uint32_t)(unsigned short)events;
    n->wait_us = micros(timeout_s);
    if (!await(n, NATIVE_FD))
        return CICADA_STOPPED;
    if (n->came == CICADA_FAILED)
        errno = (int)n->wait_us;
    return n->came;
}

/* --- requests ------------------------------------------------------------------------------- */

static const struct cicada_response *respond(struct cicada_user *n)
{
    if (!await(n, NATIVE_REQUEST))
        native_refuse(n);
    return &n->response;
}

const struct cicada_response *cicada_request(struct cicada_user *n,
                                             const struct cicada_request *request)
{
    n->ask.method = NULL;
    n->ask.whole = request;
    return respond(n);
}

static const struct cicada_response *send_plain(struct cicada_user *n, const char *method,
                                                const char *url)
{
    n->ask.method = method;
    n->ask.url = url ? url : "";
    return respond(n);
}

const struct cicada_response *cicada_get(struct cicada_user *user, const char *url)
{
    return send_plain(user, "GET", url);
}

const struct cicada_response *cicada_head(struct cicada_user *user, const char *url)
{
    return send_plain(user, "HEAD", url);
}

const struct cicada_response *cicada_delete(struct cicada_user *user, const char *url)
{
    return send_plain(user, "DELETE", url);
}

static const struct cicada_response *send_body(struct cicada_user *user, const char *method,
                                               const char *url, const char *content_type,
                                               struct str body)
{
    const struct cicada_header headers[] = {{"Content-Type", content_type}, {NULL, NULL}};
    return cicada_request(user, &(struct cicada_request){
                                    .method = method,
                                    .url = url,
                                    .headers = content_type ? headers : NULL,
                                    .body = body.ptr,
                                    .body_length = body.len,
                                });
}

const struct cicada_response *cicada_post(struct cicada_user *user, const char *url,
                                          const char *content_type, const void *body,
                                          size_t body_length)
{
    return send_body(user, "POST", url, content_type, (struct str){body, body_length});
}

const struct cicada_response *cicada_put(struct cicada_user *user, const char *url,
                                         const char *content_type, const void *body,
                                         size_t body_length)
{
    return send_body(user, "PUT", url, content_type, (struct str){body, body_length});
}

const struct cicada_response *cicada_patch(struct cicada_user *user, const char *url,
                                           const char *content_type, const void *body,
                                           size_t body_length)
{
    return send_body(user, "PATCH", url, content_type, (struct str){body, body_length});
}

/* --- responses ------------------------------------------------------------------------------ */

/* A response lies in its user. */
static struct cicada_user *user_of(const struct cicada_response *response)
{
    return (struct cicada_user *)((uintptr_t)response - offsetof(struct cicada_user, response));
}

long cicada_response_header(const struct cicada_response *response, const char *name, char *value,
                            size_t size)
{
    struct str rest = user_of(response)->head, header, found;
    while (rest.len && http_parser_header(&rest, &header, &found)) {
        if (!str_eq_nocase(header, str_of(name)))
            continue;
        if (size > 0) {
            size_t n = found.len < size ? found.len : size - 1;
            memcpy(value, found.ptr, n);
            value[n] = '\0';
        }
        return (long)found.len;
    }
    return -1;
}

void cicada_fail(const struct cicada_response *response, const char *format, ...)
{
    struct cicada_user *n = user_of(response);
    char text[TEXT_BYTES];
    va_list args;
    if (!n->uncounted)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args); /* a longer text is cut */
    va_end(args);
    n->judged = text;
    native_count(n);
}

void cicada_success(const struct cicada_response *response)
{
    struct cicada_user *n = user_of(response);
    if (!n->uncounted)
        return;
    n->judged = NULL;
    native_count(n);
}

/* --- samples -------------------------------------------------------------------------------- */

void cicada_record_success(struct cicada_user *user, const char *type, const char *name,
                           double response_time_ms, uint64_t length)
{
    check_place(user);
    native_record(user, str_of(type), str_of(name), response_time_ms, length, NULL);
}

void cicada_record_failure(struct cicada_user *user, const char *type, const char *name,
                           double response_time_ms, uint64_t length, const char *error)
{
    check_place(user);
    native_record(user, str_of(type), str_of(name), response_time_ms, length, error ? error : "");
}

uint64_t cicada_clock_us(void)
{
    return clock_mono_us();
}

/* --- the user ------------------------------------------------------------------------------- */

void *cicada_data(const struct cicada_user *user)
{
    return user->data;
}

void cicada_set_data(struct cicada_user *user, void *data)
{
    user->data = data;
}

static struct native_variable *find_variable(const struct cicada_user *n, const char *name)
{
    struct native_variable *v = n->variables;
    while (v && strcmp(v->name, name) != 0)
        v = v->next;
    return v;
}

/* A variable with what came from outside for it. NULL: no memory. */
static struct native_variable *new_variable(struct cicada_user *n, const char *name)
{
    size_t length = strlen(name) + 1;
    struct native_variable *v = malloc(sizeof *v + length);
    if (!v)
        return NULL;
    v->value = run_option(n->user->shard->native->run, name);
    v->outside = true;
    memcpy(v->name, name, length);
    v->next = n->variables;
    n->variables = v;
    return v;
}

const char *cicada_variable(const struct cicada_user *user, const char *name)
{
    /* what came from outside is copied when it is first asked for: it may change meanwhile */
    struct cicada_user *n = (struct cicada_user *)(uintptr_t)user;
    struct native_variable *v = name ? find_variable(n, name) : NULL;
    if (!v && name)
        v = new_variable(n, name);
    return v ? v->value : NULL;
}

int cicada_set_variable(struct cicada_user *n, const char *name, const char *value)
{
    struct native_variable *v = name ? find_variable(n, name) : NULL;
    if (!v && !(name && (v = new_variable(n, name))))
        return CICADA_FAILED;
    char *copy = value ? strdup(value) : run_option(n->user->shard->native->run, name);
    if (value && !copy)
        return CICADA_FAILED;
    free(v->value);
    v->value = copy;
    v->outside = !value;
    return CICADA_OK;
}

uint64_t cicada_user_number(const struct cicada_user *user)
{
    return user->number;
}

const char *cicada_class_name(const struct cicada_user *user)
{
    return user->class->name.ptr;
}

uint64_t cicada_random(struct cicada_user *user, uint64_t limit)
{
    return limit ? rng_below(&user->user->shard->rng, limit) : 0;
}

double cicada_random_between(struct cicada_user *user, double min, double max)
{
    return min + (max - min) * rng_unit(&user->user->shard->rng);
}

void cicada_stop_user(struct cicada_user *user)
{
    user->leaves = true;
}

void cicada_exception(struct cicada_user *n, const char *format, ...)
{
    const struct shard *s = n->user->shard;
    char place[TEXT_BYTES], text[TEXT_BYTES], whole[2 * TEXT_BYTES + 2];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args); /* a longer text is cut */
    va_end(args);
    (void)native_running_text(s->native, place, sizeof place);  /* something runs: the caller */
    (void)snprintf(whole, sizeof whole, "%s: %s", place, text); /* fits */
    if (run_send(s->native->run, RUN_OUT_EXCEPTION, str_of(whole), NULL) < 0)
        return; /* a thousand wait to be told already */
}

/* --- the run -------------------------------------------------------------------------------- */

struct cicada_run *cicada_run_of(const struct cicada_user *user)
{
    return user->user->shard->native->run;
}

int cicada_worker_index(const struct cicada_run *run)
{
    return run_worker_index(run);
}

/* What the protocol itself says is not for tasks: a false word of it harms the master. */
static bool is_protocol(const char *type)
{
    for (int i = 0; i < MESSAGE_CUSTOM; i++) {
        if (strcmp(type, message_type_name((enum message_type)i)) == 0)
            return true;
    }
    return false;
}

int cicada_send_message(struct cicada_run *run, const char *type, const char *json)
{
    json_t *data = NULL;
    if (!type || is_protocol(type))
        return CICADA_FAILED;
    if (json && !(data = json_loads(json, JSON_DECODE_ANY, NULL)))
        return CICADA_FAILED;
    return run_send(run, RUN_OUT_MESSAGE, str_of(type), data) < 0 ? CICADA_FAILED : CICADA_OK;
}

void cicada_stop_run(struct cicada_run *run)
{
    run_stop(run);
}

/* --- the process ---------------------------------------------------------------------------- */

void cicada_log(enum cicada_log_level level, const char *format, ...)
{
    static const enum log_level levels[] = {
        [CICADA_DEBUG] = LOG_DEBUG,
        [CICADA_INFO] = LOG_INFO,
        [CICADA_WARNING] = LOG_WARNING,
        [CICADA_ERROR] = LOG_ERROR,
    };
    enum log_level own =
        (unsigned)level < sizeof levels / sizeof *levels ? levels[level] : LOG_ERROR;
    char text[TEXT_BYTES];
    va_list args;
    if (!log_enabled(own))
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args); /* a longer text is cut */
    va_end(args);
    log_line(own, "%s", text);
}

const char *cicada_version(void)
{
    return CICADA_VERSION;
}

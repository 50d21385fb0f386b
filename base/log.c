#include "base/log.h"

#include "base/buf.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define FOOTER_MAX_BYTES (256u << 10) /* a large terminal full of colours */

static const char *const level_names[] = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"};

/* Level, file and host are set by log_open before there are threads; the rest changes later, each
 * under its lock. The screen's lock is held while lines go out, so that a line and the footer below
 * it are never mixed with another's. */
static struct {
    enum log_level level;
    int fd;
    char host[64];
    pthread_mutex_t screen_lock;
    int tee_fd; /* -1: none */
    int tee_error;
    char *footer; /* NULL: none */
    unsigned footer_lines;
    pthread_mutex_t tap_lock;
    bool tap_on;
    unsigned tap_first, tap_count;
    char *tap[LOG_TAP_LINES];
} the_log = {
    .level = LOG_INFO,
    .fd = STDERR_FILENO,
    .screen_lock = PTHREAD_MUTEX_INITIALIZER,
    .tee_fd = -1,
    .tap_lock = PTHREAD_MUTEX_INITIALIZER,
};

bool log_level_parse(struct str name, enum log_level *ret)
{
    for (unsigned i = 0; i < sizeof level_names / sizeof *level_names; i++) {
        if (str_eq_nocase(name, str_of(level_names[i]))) {
            *ret = (enum log_level)i;
            return true;
        }
    }
    return false;
}

int log_open(enum log_level level, const char *path, struct err *err)
{
    the_log.level = level;
    if (gethostname(the_log.host, sizeof the_log.host - 1) < 0)
        the_log.host[0] = '\0';
    if (!path)
        return 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) {
        int rc = -errno;
        return err_set(err, rc, "log file %s: %s", path, strerror(-rc));
    }
    the_log.fd = fd;
    return 0;
}

void log_close(void)
{
    if (the_log.fd != STDERR_FILENO) {
        (void)close(the_log.fd); /* every line was written when it was made */
        the_log.fd = STDERR_FILENO;
    }
    log_footer((struct str){NULL, 0});
    (void)log_tee_close(); /* whoever wants to know has closed it before */
    pthread_mutex_lock(&the_log.tap_lock);
    for (unsigned i = 0; i < LOG_TAP_LINES; i++) {
        free(the_log.tap[i]);
        the_log.tap[i] = NULL;
    }
    the_log.tap_on = false;
    the_log.tap_first = the_log.tap_count = 0;
    pthread_mutex_unlock(&the_log.tap_lock);
}

bool log_enabled(enum log_level level)
{
    return level >= the_log.level;
}

static size_t escape_byte(char *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    out[0] = '\\';
    if (c == '\n' || c == '\r' || c == '\t') {
        out[1] = c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
        return 2;
    }
    out[1] = 'x';
    out[2] = hex[c >> 4];
    out[3] = hex[c & 15];
    return 4;
}

/* Copy text into out with control bytes and broken UTF-8 escaped; returns the length, at most
 * out_bytes. */
static size_t escape(struct str text, char *out, size_t out_bytes)
{
    size_t used = 0;
    for (size_t at = 0; at < text.len && used + 4 <= out_bytes;) {
        uint32_t point;
        size_t n = utf8_decode(str_sub(text, at, text.len), &point);
        if (n == 0 || point < 0x20 || point == 0x7F) {
            used += escape_byte(out + used, (unsigned char)text.ptr[at]);
            at++;
        } else {
            memcpy(out + used, text.ptr + at, n);
            used += n;
            at += n;
        }
    }
    return used;
}

const char *log_quote(struct str text, char ret[static LOG_QUOTED_BYTES])
{
    struct str shown = utf8_cut(text, LOG_QUOTE_BYTES);
    size_t used = 1;
    ret[0] = '\'';
    used += escape(shown, ret + used, LOG_QUOTE_BYTES * 4);
    const char *end = shown.len < text.len ? "\xE2\x80\xA6'" : "'";
    memcpy(ret + used, end, strlen(end) + 1);
    return ret;
}

static void tap_keep(const char *line, size_t len)
{
    pthread_mutex_lock(&the_log.tap_lock);
    if (the_log.tap_on) {
        char *copy = strndup(line, len);
        if (copy && the_log.tap_count == LOG_TAP_LINES) {
            free(the_log.tap[the_log.tap_first]);
            the_log.tap[the_log.tap_first] = NULL;
            the_log.tap_first = (the_log.tap_first + 1) % LOG_TAP_LINES;
            the_log.tap_count--;
        }
        if (copy)
            the_log.tap[(the_log.tap_first + the_log.tap_count++) % LOG_TAP_LINES] = copy;
    }
    pthread_mutex_unlock(&the_log.tap_lock);
}

void log_tap_on(void)
{
    pthread_mutex_lock(&the_log.tap_lock);
    the_log.tap_on = true;
    pthread_mutex_unlock(&the_log.tap_lock);
}

bool log_tap_take(char ret[static LOG_LINE_BYTES])
{
    pthread_mutex_lock(&the_log.tap_lock);
    bool any = the_log.tap_count > 0;
    if (any) {
        (void)snprintf(ret, LOG_LINE_BYTES, "%s", the_log.tap[the_log.tap_first]); /* same bound */
        free(the_log.tap[the_log.tap_first]);
        the_log.tap[the_log.tap_first] = NULL;
        the_log.tap_first = (the_log.tap_first + 1) % LOG_TAP_LINES;
        the_log.tap_count--;
    }
    pthread_mutex_unlock(&the_log.tap_lock);
    return any;
}

/* --- the tee and the footer
 * -----------------------------------------------------------------------
 */

int log_tee_open(const char *path, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) {
        int rc = -errno;
        return err_set(err, rc, "log file %s: %s", path, strerror(-rc));
    }
    (void)log_tee_close(); /* another file's troubles are not this one's */
    pthread_mutex_lock(&the_log.screen_lock);
    the_log.tee_fd = fd;
    the_log.tee_error = 0;
    pthread_mutex_unlock(&the_log.screen_lock);
    return 0;
}

int log_tee_close(void)
{
    pthread_mutex_lock(&the_log.screen_lock);
    int fd = the_log.tee_fd, rc = the_log.tee_error;
    the_log.tee_fd = -1;
    the_log.tee_error = 0;
    pthread_mutex_unlock(&the_log.screen_lock);
    if (fd >= 0 && close(fd) < 0 && rc == 0)
        rc = -errno;
    return rc;
}

/* A full disk or a closed stderr must not end a run: the errno is for who asks. */
static int put(int fd, struct str bytes)
{
    ssize_t n = write(fd, bytes.ptr, bytes.len);
    if (n < 0)
        return -errno;
    return (size_t)n == bytes.len ? 0 : -ENOSPC; /* what did not fit any more */
}

/* One write, so that the terminal shows the step from before to after and nothing between: back to
 * the footer's first line, the log line, the footer, and what was below it cleared. The cursor
 * stands at the end of the footer's last line. A terminal that knows ?2026 waits for the end of it;
 * ?7l cuts long lines instead of wrapping them, which would make the footer higher than counted. */
static int repaint(struct buf *b, struct str line, const char *footer)
{
    int rc = buf_printf(b, "\033[?2026h\033[?7l\r");
    if (rc == 0 && the_log.footer_lines > 1)
        rc = buf_printf(b, "\033[%uA", the_log.footer_lines - 1);
    if (rc == 0 && line.len > 0)
        rc = buf_printf(b, "\033[?7h%.*s\033[K\n\033[?7l", STR_ARG(str_sub(line, 0, line.len - 1)));
    struct str rest = str_of(footer), part;
    for (bool first = true; rc == 0 && footer && str_next(&rest, '\n', &part); first = false)
        rc = buf_printf(b, "%s%.*s\033[K", first ? "" : "\n", STR_ARG(part));
    return rc < 0 ? rc : buf_printf(b, "\033[J\033[?7h\033[?2026l");
}

static void paint(struct str line, const char *footer)
{
    struct buf b;
    buf_init(&b, FOOTER_MAX_BYTES);
    if (repaint(&b, line, footer) == 0)
        (void)put(STDERR_FILENO, buf_str(&b));
    else
        (void)put(STDERR_FILENO, line); /* no memory: the footer is torn until it is drawn again */
    buf_done(&b);
}

void log_footer(struct str text)
{
    char *copy = text.len > 0 ? strndup(text.ptr, text.len) : NULL;
    unsigned lines = copy != NULL;
    for (const char *p = copy; p && *p; p++)
        lines += *p == '\n';
    pthread_mutex_lock(&the_log.screen_lock);
    if (copy || the_log.footer)
        paint((struct str){NULL, 0}, copy);
    free(the_log.footer);
    the_log.footer = copy;
    the_log.footer_lines = lines;
    pthread_mutex_unlock(&the_log.screen_lock);
}

static void put_line(struct str line)
{
    pthread_mutex_lock(&the_log.screen_lock);
    if (the_log.footer && the_log.fd == STDERR_FILENO)
        paint(line, the_log.footer);
    else
        (void)put(the_log.fd, line);
    int rc = the_log.tee_fd >= 0 ? put(the_log.tee_fd, line) : 0;
    if (the_log.tee_error == 0)
        the_log.tee_error = rc;
    pthread_mutex_unlock(&the_log.screen_lock);
}

void log_line(enum log_level level, const char *format, ...)
{
    if (!log_enabled(level))
        return;
    char text[LOG_LINE_BYTES], line[LOG_LINE_BYTES];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0)
        return;
    struct timeval now;
    struct tm local;
    gettimeofday(&now, NULL);
    localtime_r(&now.tv_sec, &local);
    size_t used = strftime(line, sizeof line, "[%Y-%m-%d %H:%M:%S", &local);
    used += (size_t)snprintf(line + used, sizeof line - used,
                             ",%03d] %s/%s/cicada: ", (int)(now.tv_usec / 1000), the_log.host,
                             level_names[level]);
    used += escape(str_of(text), line + used, sizeof line - used - 2);
    tap_keep(line, used);
    line[used++] = '\n';
    put_line((struct str){line, used});
}

bool log_due(uint64_t *state_us, uint64_t now_us, uint64_t *skipped, uint64_t *ret_skipped)
{
    if (*state_us != 0 && now_us - *state_us < 1000000u) {
        ++*skipped;
        return false;
    }
    *state_us = now_us ? now_us : 1;
    *ret_skipped = *skipped;
    *skipped = 0;
    return true;
}

static void write_last_words(int fd, struct str bytes)
{
    if (write(fd, bytes.ptr, bytes.len) < 0)
        return; /* nobody is left to be told */
}

void log_last_words(struct str bytes)
{
    write_last_words(STDERR_FILENO, bytes);
    if (the_log.fd != STDERR_FILENO)
        write_last_words(the_log.fd, bytes);
    if (the_log.tee_fd >= 0)
        write_last_words(the_log.tee_fd, bytes);
}

/* The log: one line each, in Locust's layout, to stderr or a file. Any thread; a line is written by
 * one write(). Foreign text goes through log_quote. Library folders log at debug only. */
#ifndef CICADA_BASE_LOG_H
#define CICADA_BASE_LOG_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_CRITICAL };

#define LOG_LINE_BYTES  2048 /* longer lines are cut */
#define LOG_QUOTE_BYTES 200  /* of foreign text in one line */
#define LOG_TAP_LINES   64   /* kept for log_tap_take; Locust's own workers send no more at once */

/* "DEBUG", "info", … -> a level. False for an unknown name. */
bool log_level_parse(struct str name, enum log_level *ret);

/* Set once, before other threads start. path NULL keeps stderr. The file is appended to.
 * 0, or the errno of opening it; then stderr stays. */
MUST_USE int log_open(enum log_level level, const char *path, struct err *err);
void log_close(void);

/* Write every further line to this file too (emptied first), until log_tee_close or log_close.
 * 0, or the errno of opening it. */
MUST_USE int log_tee_open(const char *path, struct err *err);
/* 0, or the first error of writing a line to it. */
int log_tee_close(void);

/* Lines that stay on the terminal below the log: text, lines between newlines, is drawn at once
 * over the footer before and again below each further line. Empty text takes the footer away. Only
 * for a stderr that is a terminal with more rows than the text has lines; longer lines are cut by
 * the terminal. Any thread. */
void log_footer(struct str text);

bool log_enabled(enum log_level level);

/* One line; its newline is added. Control characters are escaped. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_debug(...)                                                                             \
    do {                                                                                           \
        if (log_enabled(LOG_DEBUG))                                                                \
            log_line(LOG_DEBUG, __VA_ARGS__);                                                      \
    } while (0)
#define log_info(...)    log_line(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_error(...)   log_line(LOG_ERROR, __VA_ARGS__)

/* The bytes as they are, to wherever lines go, without a lock: for a signal handler of a process
 * that is about to die. Async-signal-safe. */
void log_last_words(struct str bytes);

/* Foreign text made fit for a line: in 'single quotes', control bytes and invalid UTF-8 as \xNN,
 * cut at LOG_QUOTE_BYTES with "…". Writes into ret and returns it. */
#define LOG_QUOTED_BYTES (LOG_QUOTE_BYTES * 4 + 8)
const char *log_quote(struct str text, char ret[static LOG_QUOTED_BYTES]);

/* Lines are also kept for the master when the tap is on (the last LOG_TAP_LINES; older ones are
 * dropped and counted). Take the oldest kept line into ret (NUL-terminated, as written to the log);
 * false when there is none. */
void log_tap_on(void);
bool log_tap_take(char ret[static LOG_LINE_BYTES]);

/* At most once a second: true for the first call of each second of *state (zeroed at first);
 * *ret_skipped tells how many calls were refused since. */
bool log_due(uint64_t *state_us, uint64_t now_us, uint64_t *skipped, uint64_t *ret_skipped);

#endif

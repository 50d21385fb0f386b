/* The keys of a terminal that change the number of users, as in Locust: w and W for 1 and 10 more,
 * s and S for 1 and 10 less. While it is open the terminal gives each key at once and does not show
 * it; CTRL-C and its like work as always. The runner's thread. */
#ifndef CICADA_WORKER_RUNNER_KEYS_H
#define CICADA_WORKER_RUNNER_KEYS_H

#include <stdbool.h>
#include <termios.h>

struct keys {
    bool open;
    struct termios before;
};

/* Nothing when standard input is no terminal, or one that belongs to another process group: a
 * program in the background must not touch it. */
void keys_open(struct keys *k);
/* Give the terminal back as it was; also twice. */
void keys_close(struct keys *k);

/* Readable when there is a key; -1: not open. */
int keys_fd(const struct keys *k);

/* All keys that wait, added up: how many users more (less). At the end of input it closes. */
int keys_read(struct keys *k);

#endif

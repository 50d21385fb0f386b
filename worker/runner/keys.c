#include "worker/runner/keys.h"

#include <poll.h>
#include <unistd.h>

void keys_open(struct keys *k)
{
    *k = (struct keys){0};
    if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp() ||
        tcgetattr(STDIN_FILENO, &k->before) < 0)
        return;
    struct termios now = k->before;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    k->open = tcsetattr(STDIN_FILENO, TCSANOW, &now) == 0;
}

void keys_close(struct keys *k)
{
    if (k->open)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &k->before); /* the terminal may be gone */
    k->open = false;
}

int keys_fd(const struct keys *k)
{
    return k->open ? STDIN_FILENO : -1;
}

static int meaning(char key)
{
    switch (key) {
    case 'w':
        return 1;
    case 'W':
        return 10;
    case 's':
        return -1;
    case 'S':
        return -10;
    default:
        return 0;
    }
}

int keys_read(struct keys *k)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    int more = 0;
    while (k->open && poll(&p, 1, 0) > 0) {
        char key;
        if (read(STDIN_FILENO, &key, 1) == 1)
            more += meaning(key);
        else
            keys_close(k);
    }
    return more;
}

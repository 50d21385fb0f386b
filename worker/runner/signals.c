#include "worker/runner/signals.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <unistd.h>

int signals_open(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int signals_next(int fd)
{
    struct signalfd_siginfo info;
    bool came = fd >= 0 && read(fd, &info, sizeof info) == sizeof info;
    return came ? (int)info.ssi_signo : 0;
}

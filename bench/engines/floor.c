/* The kernel's floor: send, epoll_wait, receive. Nothing is parsed, timed or recorded, and every
 * response must come in one piece. */
#include "bench/engines/common.h"

#include "base/clock.h"

#include <sys/epoll.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static struct epoll_event events[EVENTS_A_TURN];
    static char buffer[65536];
    char request[1024];
    struct options o = read_options(argc, argv);
    struct run run;
    size_t length = make_request(&o, request, sizeof request);
    int epoll_fd = epoll_create1(0);
    for (uint32_t i = 0; i < o.connections; i++) {
        int fd = open_socket(&o);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 || write(fd, request, length) < 0)
            die("begin");
    }
    run_begin(&run, &o);
    while (!run_is_over(&run, clock_mono_us())) {
        int n = epoll_wait(epoll_fd, events, EVENTS_A_TURN, 100);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (read(fd, buffer, sizeof buffer) <= 0 || write(fd, request, length) < 0)
                die("request");
            run.requests++;
        }
    }
    run_print(&run);
    return 0;
}

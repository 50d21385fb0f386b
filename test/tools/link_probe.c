/* Drives a link as a worker's loop does, for tests: waits for link_fd and standard input with poll,
 * reads the link until -EAGAIN, and tells what happens, one line each.
 *   link_probe HOST PORT
 * Input: "send HEX", "reopen", "reopen keep", "status", "wakes", "drain MS", "quit".
 * Output: "id X", "connected X" and "lost STATUS" (also at changes), "status X", "frame HEX",
 * "dropped" (-EPROTO), "error N", "sent N", "reopened N", "wakes N", "drained". */
#include "base/buf.h"
#include "base/num.h"
#include "proto/locust/link.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PART_BYTES 65536

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void send_hex(struct link *l, struct str hex)
{
    struct buf frame;
    int rc = 0;
    buf_init(&frame, hex.len);
    for (size_t i = 0; rc == 0 && i + 1 < hex.len; i += 2)
        rc = buf_add_byte(&frame, (char)(digit(hex.ptr[i]) << 4 | digit(hex.ptr[i + 1])));
    if (rc == 0)
        rc = link_send(l, buf_str(&frame));
    printf("sent %d\n", rc);
    buf_done(&frame);
}

/* A reopened link may be connected again already when it is looked at next. */
static void reopen(struct link *l, bool keep_identity, bool *connected)
{
    struct err err = {0};
    printf("reopened %d\n", link_reopen(l, keep_identity, &err));
    printf("id %.*s\n", STR_ARG(link_node_id(l)));
    *connected = false;
}

/* False to end. */
static bool obey(struct link *l, struct str line, unsigned long wakes, bool *connected)
{
    uint64_t ms;
    if (str_starts(line, STR("send ")))
        send_hex(l, str_sub(line, 5, line.len));
    else if (str_starts(line, STR("reopen")))
        reopen(l, str_ends(line, STR(" keep")), connected);
    else if (str_eq(line, STR("status")))
        printf("status %s\n", link_status(l));
    else if (str_eq(line, STR("wakes")))
        printf("wakes %lu\n", wakes);
    else if (str_starts(line, STR("drain ")) &&
             num_parse_u64(str_sub(line, 6, line.len), 60000, &ms) == 0) {
        link_drain(l, (int)ms);
        printf("drained\n");
    } else
        return false;
    return true;
}

static void tell_frames(struct link *l)
{
    struct str frame;
    for (;;) {
        int rc = link_receive(l, &frame);
        if (rc == -EAGAIN)
            return;
        if (rc == -EPROTO) {
            printf("dropped\n");
            continue;
        }
        if (rc < 0) {
            printf("error %d\n", rc);
            return;
        }
        printf("frame ");
        for (size_t i = 0; i < frame.len; i++)
            printf("%02x", (unsigned char)frame.ptr[i]);
        printf("\n");
    }
}

static void tell_connection(struct link *l, bool *connected)
{
    bool now = link_connected(l);
    if (now != *connected)
        printf("%s %s\n", now ? "connected" : "lost", now ? link_node_id(l).ptr : link_status(l));
    *connected = now;
}

/* Take what standard input has; false at its end or at "quit". */
static bool take_orders(struct link *l, struct buf *input, unsigned long wakes, bool *connected)
{
    char part[PART_BYTES];
    ssize_t n = read(STDIN_FILENO, part, sizeof part);
    if (n <= 0 || buf_add(input, (struct str){part, (size_t)n}) < 0)
        return false;
    for (;;) {
        struct str line = str_sub(buf_str(input), 0, str_find(buf_str(input), '\n'));
        if (line.len == input->len)
            return true;
        if (!obey(l, line, wakes, connected))
            return false;
        buf_drop(input, line.len + 1);
    }
}

int main(int argc, char **argv)
{
    struct link *l;
    struct err err = {0};
    struct buf input;
    uint64_t port;
    unsigned long wakes = 0;
    bool connected = false;
    if (argc != 3 || num_parse_u64(str_of(argv[2]), 65535, &port) < 0)
        return 2;
    if (link_new(argv[1], (unsigned)port, &l, &err) < 0) {
        printf("failed %s\n", err.text);
        return 1;
    }
    buf_init(&input, 256u << 20);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("id %.*s\n", STR_ARG(link_node_id(l)));
    for (bool on = true; on; wakes++) {
        struct pollfd fds[] = {{.fd = link_fd(l), .events = POLLIN},
                               {.fd = STDIN_FILENO, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0)
            break;
        if (fds[0].revents)
            tell_frames(l);
        if (fds[1].revents)
            on = take_orders(l, &input, wakes, &connected);
        tell_connection(l, &connected);
    }
    buf_done(&input);
    link_free(l);
    return 0;
}

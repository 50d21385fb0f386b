/* What ZeroMQ's transport events mean: is the master there, and if not, why. Pure; link.c feeds it
 * the events of its socket's monitor. ZeroMQ reports no errno of a failed connect, so the reason is
 * read from which events came, and when. */
#ifndef CICADA_PROTO_LOCUST_WATCH_H
#define CICADA_PROTO_LOCUST_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* A refusal comes back within a round trip; what takes longer went unanswered. */
#define WATCH_REFUSED_US 900000u

struct watch {
    const char *status; /* a string literal */
    bool numeric_host;  /* an address: there is no name to be found */
    bool connected;     /* TCP and ZMTP handshake stand */
    bool greeted;       /* a handshake succeeded since watch_init: the peer is a ZeroMQ server */
    bool gave_up;       /* ZeroMQ ended the session and will not connect again by itself */
    unsigned failures;  /* attempts that came to nothing since watch_init */
    bool explained;     /* the present handshake's failure was told */
    bool begun;         /* the present attempt got as far as a TCP connect */
    uint64_t begun_us;
};

void watch_init(struct watch *w, bool numeric_host);

/* One monitor event: ZMQ_EVENT_* and its value. */
void watch_event(struct watch *w, unsigned event, unsigned value, uint64_t now_us);

#endif

#include "proto/locust/watch.h"

#include <errno.h>
#include <zmq.h>

void watch_init(struct watch *w, bool numeric_host)
{
    *w = (struct watch){.status = "connecting", .numeric_host = numeric_host};
}

/* An attempt ended before TCP stood. */
static const char *failed_connect(const struct watch *w, uint64_t now_us)
{
    return now_us - w->begun_us < WATCH_REFUSED_US ? "connection refused" : "no answer";
}

static const char *failed_handshake(unsigned event, unsigned value)
{
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
        return "handshake failed: the server asks for authentication";
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL && value == EAGAIN)
        return "handshake failed: no answer, probably not a ZeroMQ server";
    return "handshake failed: not a ZeroMQ server";
}

/* The usual orders of events (libzmq 4.3):
 *   refused            CONNECT_DELAYED, CLOSED, CONNECT_RETRIED
 *   name not found     CONNECT_RETRIED alone; so does an immediate ENETUNREACH
 *   not ZeroMQ         CONNECT_DELAYED, CONNECTED, HANDSHAKE_FAILED_*, DISCONNECTED,
 * CONNECT_RETRIED a broken ZMTP      the same without the last: the session is over for good a
 * master           CONNECT_DELAYED, CONNECTED, HANDSHAKE_SUCCEEDED it goes            DISCONNECTED,
 * CONNECT_RETRIED */
void watch_event(struct watch *w, unsigned event, unsigned value, uint64_t now_us)
{
    switch (event) {
    case ZMQ_EVENT_CONNECT_DELAYED:
        w->begun = true;
        w->begun_us = now_us;
        break;
    case ZMQ_EVENT_CONNECTED: /* without CONNECT_DELAYED when it stood at once */
        w->begun = true;
        break;
    case ZMQ_EVENT_CLOSED:
        w->status = failed_connect(w, now_us);
        break;
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
        w->status = "connected";
        w->connected = w->greeted = true;
        break;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
        w->status = failed_handshake(event, value);
        break;
    case ZMQ_EVENT_DISCONNECTED:
        if (w->connected)
            w->status = "connection lost";
        w->connected = false;
        w->gave_up = true; /* until CONNECT_RETRIED follows */
        break;
    case ZMQ_EVENT_CONNECT_RETRIED:
        if (!w->begun)
            w->status = w->numeric_host ? "no route to it" : "name not found, or no route to it";
        w->begun = w->gave_up = false;
        break;
    default:
        break;
    }
}

#include "proto/locust/watch.h"

#include <errno.h>
#include <zmq.h>

static const char not_zeromq[] = "handshake failed: not a ZeroMQ server";

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
    return not_zeromq;
}

/* The usual orders of events (libzmq 4.3), without ZMQ_EVENT_:
 *
 * refused: CONNECT_DELAYED, CLOSED, CONNECT_RETRIED
 *
 * name not found, or an immediate ENETUNREACH: CONNECT_RETRIED alone
 *
 * not ZeroMQ: CONNECT_DELAYED, CONNECTED, HANDSHAKE_FAILED_*, DISCONNECTED, CONNECT_RETRIED
 *
 * broken ZMTP: the same without the last, and perhaps without the failure; the session is over
 *
 * a master that comes and goes: CONNECT_DELAYED, CONNECTED, HANDSHAKE_SUCCEEDED, DISCONNECTED,
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
        w->explained = false;
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
        w->explained = true;
        break;
    case ZMQ_EVENT_DISCONNECTED:
        if (w->connected)
            w->status = "connection lost";
        else if (!w->explained)
            w->status = not_zeromq;
        w->connected = false;
        w->gave_up = true; /* until CONNECT_RETRIED follows */
        break;
    case ZMQ_EVENT_CONNECT_RETRIED:
        if (!w->begun)
            w->status = w->numeric_host ? "no route to it" : "name not found, or no route to it";
        w->begun = w->gave_up = false;
        w->failures++;
        break;
    default:
        break;
    }
}

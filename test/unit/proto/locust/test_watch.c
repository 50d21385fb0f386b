#include "proto/locust/watch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <zmq.h>

#include <cmocka.h>

struct step {
    unsigned event;
    unsigned value;
    uint64_t at_us;
};

/* Orders of events as libzmq 4.3.4 was seen to report them. */
static const struct {
    const char *label;
    bool numeric_host;
    struct step steps[8];
    const char *status;
    bool connected;
    bool gave_up;
} cases[] = {
    {"nothing yet", true, {{0}}, "connecting", false, false},
    {"refused",
     true,
     {{ZMQ_EVENT_CONNECT_DELAYED, EINPROGRESS, 100},
      {ZMQ_EVENT_CLOSED, 12, 200},
      {ZMQ_EVENT_CONNECT_RETRIED, 250, 200}},
     "connection refused",
     false,
     false},
    {"no answer",
     true,
     {{ZMQ_EVENT_CONNECT_DELAYED, EINPROGRESS, 100},
      {ZMQ_EVENT_CLOSED, 12, 5000100},
      {ZMQ_EVENT_CONNECT_RETRIED, 250, 5000100}},
     "no answer",
     false,
     false},
    {"the next attempt under way",
     true,
     {{ZMQ_EVENT_CONNECT_DELAYED, EINPROGRESS, 100},
      {ZMQ_EVENT_CLOSED, 12, 200},
      {ZMQ_EVENT_CONNECT_RETRIED, 250, 200},
      {ZMQ_EVENT_CONNECT_DELAYED, EINPROGRESS, 300200}},
     "connection refused",
     false,
     false},
    {"name not found",
     false,
     {{ZMQ_EVENT_CONNECT_RETRIED, 250, 100}},
     "name not found, or no route to it",
     false,
     false},
    {"no route", true, {{ZMQ_EVENT_CONNECT_RETRIED, 250, 100}}, "no route to it", false, false},
    {"a name that vanishes",
     false,
     {{ZMQ_EVENT_CONNECT_DELAYED, EINPROGRESS, 100},
      {ZMQ_EVENT_CLOSED, 12, 200},
      {ZMQ_EVENT_CONNECT_RETRIED, 250, 200},
      {ZMQ_EVENT_CONNECT_RETRIED, 250, 300200}},
     "name not found, or no route to it",
     false,
     false},
    {"a web server",
     true,
     {{ZMQ_EVENT_CONNECT_DELAYED, EINPROGRESS, 100},
      {ZMQ_EVENT_CONNECTED, 12, 200},
      {ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL, EPIPE, 300},
      {ZMQ_EVENT_DISCONNECTED, 12, 300},
      {ZMQ_EVENT_CONNECT_RETRIED, 250, 300}},
     "handshake failed: not a ZeroMQ server",
     false,
     false},
    {"a silent server",
     true,
     {{ZMQ_EVENT_CONNECT_DELAYED, EINPROGRESS, 100},
      {ZMQ_EVENT_CONNECTED, 12, 200},
      {ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL, EAGAIN, 5000200},
      {ZMQ_EVENT_DISCONNECTED, 12, 5000200},
      {ZMQ_EVENT_CONNECT_RETRIED, 250, 5000200}},
     "handshake failed: no answer, probably not a ZeroMQ server",
     false,
     false},
    {"a broken handshake, which ZeroMQ does not try again",
     true,
     {{ZMQ_EVENT_CONNECT_DELAYED, EINPROGRESS, 100},
      {ZMQ_EVENT_CONNECTED, 12, 200},
      {ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL, ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH, 300},
      {ZMQ_EVENT_DISCONNECTED, 12, 300}},
     "handshake failed: not a ZeroMQ server",
     false,
     true},
    {"bytes that are no frame of the oldest protocol, which has no handshake",
     true,
     {{ZMQ_EVENT_CONNECT_DELAYED, EINPROGRESS, 100},
      {ZMQ_EVENT_CONNECTED, 12, 200},
      {ZMQ_EVENT_DISCONNECTED, 12, 300}},
     "handshake failed: not a ZeroMQ server",
     false,
     true},
    {"a master",
     true,
     {{ZMQ_EVENT_CONNECT_DELAYED, EINPROGRESS, 100},
      {ZMQ_EVENT_CONNECTED, 12, 200},
      {ZMQ_EVENT_HANDSHAKE_SUCCEEDED, 0, 300}},
     "connected",
     true,
     false},
    {"a master that went",
     true,
     {{ZMQ_EVENT_CONNECTED, 12, 200},
      {ZMQ_EVENT_HANDSHAKE_SUCCEEDED, 0, 300},
      {ZMQ_EVENT_DISCONNECTED, 12, 400},
      {ZMQ_EVENT_CONNECT_RETRIED, 250, 400}},
     "connection lost",
     false,
     false},
};

static void test_events_become_a_status(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct watch w;
        watch_init(&w, cases[i].numeric_host);
        for (const struct step *s = cases[i].steps; s->event; s++)
            watch_event(&w, s->event, s->value, s->at_us);
        print_message("%s\n", cases[i].label);
        assert_string_equal(w.status, cases[i].status);
        assert_int_equal(w.connected, cases[i].connected);
        assert_int_equal(w.gave_up, cases[i].gave_up);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_events_become_a_status)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

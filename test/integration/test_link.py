"""The link against a real pyzmq ROUTER, and against what is no master at all. test/tools/link_probe serves it as a worker's
loop does."""
import http.server
import os
import queue
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
import zmq

from harness.process import free_port

ROOT = Path(__file__).resolve().parents[2]
PROBE = ROOT / os.environ.get("BUILD", "build") / "test/tools/link_probe"
DEADLINE_S = 30


class Probe:
    def __init__(self, port, host="127.0.0.1"):
        self.process = subprocess.Popen([str(PROBE), host, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines, self.seen = queue.Queue(), []
        threading.Thread(target=self._read, daemon=True).start()
        self.identity = self.expect("id ").encode()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def expect(self, beginning, attend=None):
        """The rest of the next line that begins so; lines before it are passed over. Meanwhile the router attends to its
        connections, as a master in its loop does: it forgets a lost one only then."""
        end = time.monotonic() + DEADLINE_S
        while True:
            try:
                line = self.lines.get(timeout=0.02 if attend else max(0, end - time.monotonic()))
            except queue.Empty:
                if attend and time.monotonic() < end:
                    attend.poll(0)
                    continue
                raise AssertionError("no %r after %s" % (beginning, self.seen[-20:])) from None
            assert line is not None, "the probe ended after %s" % self.seen[-20:]
            self.seen.append(line)
            if line.startswith(beginning):
                return line[len(beginning):]

    def order(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def send(self, frame):
        self.order("send " + frame.hex())
        return int(self.expect("sent "))

    def reopen(self, keep=False, attend=None):
        """The link says so when the connection is closed; the identity that it keeps returns a second later."""
        self.order("reopen keep" if keep else "reopen")
        assert self.expect("reopened ", attend) == "0"
        self.identity = self.expect("id ", attend).encode()
        return self.identity

    def ask(self, what):
        self.order(what)
        return self.expect(what + " ")

    def wait_status(self, beginning):
        end = time.monotonic() + DEADLINE_S
        while not (status := self.ask("status")).startswith(beginning):
            assert time.monotonic() < end, status
            time.sleep(0.05)
        return status

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(DEADLINE_S)
        self.process.stdout.close()
        assert code == 0


@pytest.fixture
def probe():
    probes = []

    def make(*args, **more):
        probes.append(Probe(*args, **more))
        return probes[-1]

    yield make
    for p in probes:
        p.close()


@pytest.fixture
def router():
    context, sockets = zmq.Context(), []

    def make(port=0, host="127.0.0.1"):
        r = context.socket(zmq.ROUTER)
        sockets.append(r)
        r.setsockopt(zmq.RCVTIMEO, DEADLINE_S * 1000)
        r.setsockopt(zmq.LINGER, 0)
        r.setsockopt(zmq.IPV6, int(":" in host))
        host = "[%s]" % host if ":" in host else host
        port = port or free_port()
        r.bind("tcp://%s:%d" % (host, port))
        return r, port

    yield make
    for r in sockets:
        r.close()
    context.term()


class Sham:
    """A TCP server that does the same to each connection, and counts them."""

    def __init__(self, serve):
        self.port = free_port()
        self.server = socket.create_server(("127.0.0.1", self.port), backlog=100)
        self.serve, self.accepted, self.kept = serve, 0, []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            self.accepted += 1
            self.kept.append(connection)
            try:
                self.serve(connection)
            except OSError:
                pass

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        self.thread.join(DEADLINE_S)
        for connection in self.kept:
            connection.close()


class Tunnel:
    """Carries bytes both ways; a stalled connection stays open and carries nothing more, as after a lost NAT entry."""

    def __init__(self, to_port):
        self.to_port, self.stalled = to_port, set()
        self.sham = Sham(self._serve)
        self.port, self.pairs = self.sham.port, []

    def _serve(self, near):
        far = socket.create_connection(("127.0.0.1", self.to_port))
        self.pairs.append((near, far))
        for a, b in ((near, far), (far, near)):
            threading.Thread(target=self._carry, args=(near, a, b), daemon=True).start()

    def _carry(self, near, a, b):
        try:
            while data := a.recv(65536):
                if near not in self.stalled:
                    b.sendall(data)
            if near not in self.stalled:
                b.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def stall(self):
        self.stalled.update(near for near, _ in self.pairs)

    def close(self):
        self.sham.close()
        for pair in self.pairs:
            for s in pair:
                s.close()


def test_messages_go_both_ways_under_the_workers_identity(router, probe):
    r, port = router()
    p = probe(port)
    host, _, digits = p.identity.decode().partition("_")
    assert host and len(digits) == 32 and "_" not in digits
    assert p.expect("connected ") == p.identity.decode()
    assert p.send(b"\x93\xc0\xc0\xc0") == 0
    assert r.recv_multipart() == [p.identity, b"\x93\xc0\xc0\xc0"]
    r.send_multipart([p.identity, b"answer"])
    assert p.expect("frame ") == b"answer".hex()


def test_ipv6(router, probe):
    try:
        r, port = router(host="::1")
    except zmq.ZMQError:
        pytest.skip("this machine has no IPv6")
    for host in ("::1", "[::1]"):
        p = probe(port, host=host)
        p.expect("connected ")
        assert p.send(b"x") == 0
        assert r.recv_multipart() == [p.identity, b"x"]


def test_a_burst_both_ways_is_complete_and_in_order(router, probe):
    r, port = router()
    p = probe(port)
    p.expect("connected ")
    for i in range(500):
        p.order("send %08x" % i)
        assert r.recv_multipart() == [p.identity, i.to_bytes(4, "big")]
        r.send_multipart([p.identity, b"%d" % i])
        r.send_multipart([p.identity, b"again"])
    got = [bytes.fromhex(p.expect("frame ")) for _ in range(1000)]
    assert got[0::2] == [b"%d" % i for i in range(500)] and set(got[1::2]) == {b"again"}


def test_a_master_that_comes_late_and_goes_and_returns(router, probe):
    port = free_port()
    p = probe(port)
    p.wait_status("connection refused")
    assert p.send(b"early") < 0
    for word in (b"first", b"second"):
        r, _ = router(port)
        p.expect("connected ")
        assert p.send(word) == 0
        assert r.recv_multipart() == [p.identity, word]
        r.close()
        p.expect("lost ")
        assert p.send(b"meanwhile") < 0


def test_a_master_that_speaks_and_goes(router, probe):
    """A master waits 0.5 s after its quit. What a worker has not read when the connection goes is lost: ZeroMQ drops it
    with the connection it came by."""
    r, port = router()
    p = probe(port)
    p.expect("connected ")
    assert p.send(b"x") == 0
    r.recv_multipart()
    r.send_multipart([p.identity, b"quit"])
    assert p.expect("frame ") == b"quit".hex()
    r.close(linger=0)
    p.expect("lost ")


def test_reopening_with_the_same_and_with_a_fresh_identity(router, probe):
    r, port = router()
    p = probe(port)
    identities = set()
    for keep in (True, True, False, True, False):
        p.expect("connected ", attend=r)
        assert p.send(b"x") == 0
        assert r.recv_multipart() == [p.identity, b"x"]
        identities.add(p.identity)
        before = p.identity
        assert (p.reopen(keep, attend=r) == before) is keep
    assert len(identities) == 2


def test_a_half_open_connection_needs_a_fresh_identity(router, probe):
    r, port = router()
    tunnel = Tunnel(port)
    p = probe(tunnel.port)
    p.expect("connected ")
    assert p.send(b"one") == 0
    assert r.recv_multipart() == [p.identity, b"one"]
    tunnel.stall()
    # for the master the old connection still stands, so it ignores the new one of the same name
    p.reopen(keep=True)
    p.expect("connected ")
    assert p.send(b"two") == 0
    p.reopen()
    p.expect("connected ")
    assert p.send(b"three") == 0
    assert r.recv_multipart() == [p.identity, b"three"]
    tunnel.close()


def test_a_message_of_several_frames_is_dropped_whole(router, probe):
    r, port = router()
    p = probe(port)
    p.expect("connected ")
    assert p.send(b"x") == 0
    r.recv_multipart()
    for parts in ([b"a", b"b"], [b"", b"b"], [b""] * 100, [b"x" * 100000] * 10):
        r.send_multipart([p.identity] + parts)
        r.send_multipart([p.identity, b"next"])
        p.expect("dropped")
        assert p.expect("frame ") == b"next".hex()
    r.send_multipart([p.identity, b""])
    assert p.expect("frame ") == ""


def test_a_frame_over_the_limit_ends_the_connection_and_the_link_dials_again(router, probe):
    r, port = router()
    p = probe(port)
    p.expect("connected ")
    assert p.send(b"x") == 0
    r.recv_multipart()
    r.send_multipart([p.identity, b"y" * (1 << 20)])
    assert len(p.expect("frame ")) == 2 << 20
    r.send_multipart([p.identity, bytes((64 << 20) + 1)])
    p.expect("lost ", attend=r)
    p.expect("connected ", attend=r)
    assert p.send(b"again") == 0
    assert r.recv_multipart() == [p.identity, b"again"]


def test_a_web_server_at_the_port_is_named_and_does_no_harm(router, probe):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *_: None
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    p = probe(server.server_address[1])
    try:
        p.wait_status("handshake failed")
    finally:
        server.shutdown()
        server.server_close()
        thread.join(DEADLINE_S)
    p.ask("status")
    assert not [line for line in p.seen if line.startswith(("frame", "dropped", "connected"))]


ZMTP_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + b"\x00" + bytes(31)
SHAMS = {
    "closes": lambda c: c.close(),
    "http": lambda c: (c.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 400\r\n\r\n" + b"<html>" * 60), c.close()),
    "random": lambda c: (c.sendall(os.urandom(500)), c.close()),
    "flood": lambda c: [c.sendall(os.urandom(4000)) for _ in range(500)] and c.close(),
    "broken greeting": lambda c: c.sendall(b"\xff" + os.urandom(8) + b"\x7f\x03\x00" + os.urandom(200)),
    "broken command": lambda c: c.sendall(ZMTP_GREETING + b"\x04\xff" + os.urandom(300)),
    "old protocol": lambda c: (c.sendall(b"\x01\x00" + b"\x04\x00abc" * 1000), c.close()),
}


@pytest.mark.parametrize("name", SHAMS)
def test_what_is_no_master_is_survived_and_the_master_found_when_it_comes(name, router, probe):
    sham = Sham(SHAMS[name])
    p = probe(sham.port)
    p.wait_status("handshake failed")
    end = time.monotonic() + DEADLINE_S
    while sham.accepted < 3:  # it keeps trying, whatever ZeroMQ itself made of the answer
        assert time.monotonic() < end
        time.sleep(0.05)
    sham.close()
    r, _ = router(sham.port)
    p.expect("connected ")
    assert p.send(b"x") == 0
    assert r.recv_multipart() == [p.identity, b"x"]
    assert not [line for line in p.seen if line.startswith(("frame", "dropped", "error"))]


def test_an_idle_link_sleeps(router, probe):
    r, port = router()
    p = probe(port)
    p.expect("connected ")
    before = int(p.ask("wakes"))
    time.sleep(1)  # a span to count in, nothing is waited for
    assert int(p.ask("wakes")) - before < 10
    r.close()
    p.expect("lost ")
    before = int(p.ask("wakes"))
    time.sleep(1)
    assert int(p.ask("wakes")) - before < 60


def test_what_is_queued_is_handed_over_before_exit(router, probe):
    r, port = router()
    p = probe(port)
    p.expect("connected ")
    for i in range(200):
        p.order("send %04x" % i)
    p.order("drain 5000")
    p.expect("drained")
    assert [r.recv_multipart()[1] for _ in range(200)] == [i.to_bytes(2, "big") for i in range(200)]
    assert p.send(b"late") < 0

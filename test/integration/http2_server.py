"""A server of HTTP/2 that misbehaves as told, made of frames by hand (RFC 9113); with TLS and ALPN, or without."""
import socket
import ssl
import struct
import threading

from harness.listener import Listener

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, ACK, END_HEADERS = 1, 1, 4
MAX_CONCURRENT_STREAMS = 3
NO_ERROR, INTERNAL_ERROR, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 0, 2, 7, 8, 11
OK = b"\x88"  # ":status: 200" of HPACK's static table


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def field(name, value):
    """A header field, literally and not indexed."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def status(code):
    return b"\x08\x03" + code


def answer(stream, head=OK, body=b"ok", length=b"2"):
    fields = head + (field(b"content-length", length) if length else b"")
    return frame(HEADERS, END_HEADERS, stream, fields) + frame(DATA, END_STREAM, stream, body)


def goaway(stream, error=NO_ERROR):
    return frame(GOAWAY, 0, 0, struct.pack(">II", stream, error))


def reset(stream, error):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", error))


CLOSE = object()  # the connection, behind what was sent

ANSWERS = {
    "good": lambda n: [answer(n)],
    "no-length": lambda n: [answer(n, length=None)],
    "interim": lambda n: [frame(HEADERS, END_HEADERS, n, status(b"103") + field(b"link", b"</a>"))] * 2 + [answer(n)],
    "trailer": lambda n: [frame(HEADERS, END_HEADERS, n, OK), frame(DATA, 0, n, b"ok"),
                          frame(HEADERS, END_HEADERS | END_STREAM, n, field(b"x-sum", b"1"))],
    "no-content": lambda n: [frame(HEADERS, END_HEADERS | END_STREAM, n, b"\x89")],
    "redirect": lambda n: [frame(HEADERS, END_HEADERS | END_STREAM, n, status(b"302") + field(b"location", b"/landed"))],
    "cookie": lambda n: [answer(n, OK + field(b"set-cookie", b"a=b"))],
    "goaway": lambda n: [answer(n), goaway(n)],
    "goaway-close": lambda n: [answer(n), goaway(n), CLOSE],
    "goaway-unprocessed": lambda n: [goaway(0), CLOSE],
    "goaway-error": lambda n: [goaway(n, ENHANCE_YOUR_CALM), CLOSE],
    "answer-close": lambda n: [answer(n), CLOSE],
    "reset": lambda n: [reset(n, INTERNAL_ERROR)],
    "refused": lambda n: [reset(n, REFUSED_STREAM)],
    "reset-body": lambda n: [frame(HEADERS, END_HEADERS, n, OK + field(b"content-length", b"5")),
                             frame(DATA, 0, n, b"ok"), reset(n, CANCEL)],
    "reset-done": lambda n: [answer(n), reset(n, NO_ERROR)],
    "close": lambda n: [CLOSE],
    "close-body": lambda n: [frame(HEADERS, END_HEADERS, n, OK + field(b"content-length", b"5")), frame(DATA, 0, n, b"ok"), CLOSE],
    "short": lambda n: [answer(n, length=b"5")],
    "long": lambda n: [answer(n, length=b"1")],
    "two-lengths": lambda n: [answer(n, OK + field(b"content-length", b"3"))],
    "connection": lambda n: [answer(n, OK + field(b"connection", b"close"))],
    "no-status": lambda n: [answer(n, b"")],
    "capitals": lambda n: [answer(n, OK + field(b"X-Big", b"1"))],
    "hpack": lambda n: [frame(HEADERS, END_HEADERS, n, b"\xff\xff\xff\xff\xff\xff\xff")],
    "garbage": lambda n: [b"\xff" * 64],
    "silent": lambda n: [],
}


class Http2Server(Listener):
    """Request number i is answered as behaviours[i] says, and those beyond as the last one."""

    def __init__(self, behaviours, certificates=None, alpn=("h2",)):
        self.behaviours = behaviours
        self.context = None
        if certificates:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificates.at("good.pem"), certificates.at("good.key"))
            self.context.set_alpn_protocols(list(alpn))
        self.connections = self.requests = 0
        self.lock = threading.Lock()
        super().__init__()
        self.url = "%s://127.0.0.1:%d" % ("https" if certificates else "http", self.port)

    def serve(self, peer):
        try:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context:
                peer = self.context.wrap_socket(peer, server_side=True)
            self.connections += 1
            with peer, peer.makefile("rb") as input:
                self.talk(peer, input)
        except OSError:
            pass

    def talk(self, peer, input):
        if input.read(len(PREFACE)) != PREFACE:
            return
        peer.sendall(frame(SETTINGS, 0, 0, struct.pack(">HI", MAX_CONCURRENT_STREAMS, 1)))
        while True:
            head = input.read(9)
            if len(head) < 9:
                return
            kind, flags, stream = struct.unpack(">BBI", head[3:])
            payload = input.read(int.from_bytes(head[:3], "big"))
            if kind == SETTINGS and not flags & ACK:
                peer.sendall(frame(SETTINGS, ACK, 0))
            elif kind == PING and not flags & ACK:
                peer.sendall(frame(PING, ACK, 0, payload))
            elif kind in (HEADERS, DATA) and flags & END_STREAM and not self.answer(peer, stream):
                return

    def answer(self, peer, stream):
        with self.lock:
            behaviour = self.behaviours[min(self.requests, len(self.behaviours) - 1)]
            self.requests += 1
        parts = ANSWERS[behaviour](stream)
        data = b"".join(part for part in parts if part is not CLOSE)
        if data:
            peer.sendall(data)
        return CLOSE not in parts

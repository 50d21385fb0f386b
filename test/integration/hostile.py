"""HTTP servers that misbehave, one fault for each path or port. Loopback only; a connection is a thread, all of them
are ended with the server. `python hostile.py` serves until it is interrupted, to try something by hand.

/ok answers as it should. ANSWERS are paths whose answer is fixed bytes; the functions under @path do more than that;
those under @port have a port of their own, because nothing is to be read before the fault.
"""
import collections
import socket
import ssl
import struct
import subprocess
import threading
import time

KEEP, CLOSE, RESET, HANG = "keep", "close", "reset", "hang"  # what follows an answer
SLOW_S = 0.05
HANG_S = 30  # far above every time-out of the tests
MAX_HEAD_BYTES = 1 << 20
MAX_SENT_BYTES = 64 << 20  # of one endless answer

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def ok(headers=b"", body=b"ok", status=b"200 OK", version=b"1.1"):
    return b"HTTP/%s %s\r\n%sContent-Length: %d\r\n\r\n%s" % (version, status, headers, len(body), body)


def chunked(body):
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body


def length(value):
    return b"HTTP/1.1 200 OK\r\nContent-Length: " + value + b"\r\n\r\nhello"


def raw_header(line):
    return b"HTTP/1.1 200 OK\r\n" + line + b"\r\nContent-Length: 2\r\n\r\nok"


LARGE = b"0123456789" * 20000
FILLS = ok(body=b"x" * 65494)  # just what is read at once
assert len(FILLS) == 65536

ANSWERS = {
    "/ok": (OK, KEEP),
    "/before": (OK, KEEP),
    "/after": (OK, KEEP),
    # status lines
    "/status/no-reason": (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", KEEP),
    "/status/empty-reason": (b"HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok", KEEP),
    "/status/latin1-reason": (b"HTTP/1.1 200 \xe9\xff\r\nContent-Length: 2\r\n\r\nok", KEEP),
    "/status/bare-lf": (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", KEEP),
    "/status/599": (ok(status=b"599 What"), KEEP),
    "/status/999": (ok(status=b"999 What"), KEEP),
    "/status/404": (ok(status=b"404 Not Found"), KEEP),
    "/status/two-digits": (b"HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok", HANG),
    "/status/four-digits": (b"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok", HANG),
    "/status/letters": (b"HTTP/1.1 abc OK\r\nContent-Length: 2\r\n\r\nok", HANG),
    "/status/099": (b"HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\nok", HANG),
    "/status/negative": (b"HTTP/1.1 -200 OK\r\nContent-Length: 2\r\n\r\nok", HANG),
    "/status/glued": (b"HTTP/1.1 200OK\r\nContent-Length: 2\r\n\r\nok", HANG),
    "/status/no-status": (b"HTTP/1.1 \r\nContent-Length: 2\r\n\r\nok", HANG),
    "/status/no-space": (b"HTTP/1.1200 OK\r\nContent-Length: 2\r\n\r\nok", HANG),
    "/status/leading-space": (b" HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", HANG),
    "/status/leading-blank-line": (b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", HANG),
    "/status/lower-case": (b"http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", HANG),
    "/status/http-0.9": (b"<html>hello</html>\r\n", CLOSE),
    "/status/http-1.2": (b"HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nok", HANG),
    "/status/http-2": (b"HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\nok", HANG),
    "/status/http-3.0": (b"HTTP/3.0 200 OK\r\nContent-Length: 2\r\n\r\nok", HANG),
    "/status/http-11": (b"HTTP/11 200 OK\r\nContent-Length: 2\r\n\r\nok", HANG),
    "/status/ssh": (b"SSH-2.0-OpenSSH_9.2p1\r\n", HANG),
    "/status/ssh-no-line-end": (b"SSH-2.0-Open", HANG),
    "/status/nul": (b"HTTP/1.1 200 O\0K\r\nContent-Length: 2\r\n\r\nok", HANG),
    "/status/zeros": (b"\0" * 64, HANG),
    "/status/icy": (b"ICY 200 OK\r\n\r\n", HANG),
    "/status/request": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", HANG),
    # headers
    "/header/none": (b"HTTP/1.1 200 OK\r\n\r\n", CLOSE),
    "/header/no-colon": (raw_header(b"nonsense"), HANG),
    "/header/no-name": (raw_header(b": value"), HANG),
    "/header/blank-before-colon": (raw_header(b"Name : value"), HANG),
    "/header/empty-value": (raw_header(b"Name:"), KEEP),
    "/header/high-bytes": (raw_header(b"Name: \x80\xff"), KEEP),
    "/header/nul-in-value": (raw_header(b"Name: a\0b"), HANG),
    "/header/nul-in-name": (raw_header(b"Na\0me: b"), HANG),
    "/header/bare-cr": (raw_header(b"Name: a\rb"), KEEP),
    "/header/folded": (raw_header(b"Name: a\r\n b\r\n\tc"), KEEP),
    "/header/fold-first": (raw_header(b" Name: a"), HANG),
    "/header/folded-length": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n 1\r\n\r\nok", HANG),
    "/header/twice": (raw_header(b"Name: a\r\nname: b\r\nNAME: a"), KEEP),
    "/header/thousand": (raw_header(b"\r\n".join(b"X-%d: %d" % (i, i) for i in range(1000))), KEEP),
    "/header/120k": (raw_header(b"\r\n".join(b"X-%d: %s" % (i, b"y" * 90) for i in range(1200))), HANG),
    "/header/300k": (raw_header(b"\r\n".join(b"X-%d: %s" % (i, b"y" * 90) for i in range(3000))), HANG),
    "/header/one-of-60k": (raw_header(b"X: " + b"y" * 60000), KEEP),
    "/header/one-of-300k": (raw_header(b"X: " + b"y" * 300000), HANG),
    "/header/cut": (b"HTTP/1.1 200 OK\r\nContent-Le", CLOSE),
    "/header/cut-at-line": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", CLOSE),
    "/header/cut-status": (b"HTTP/1.1 2", CLOSE),
    # lengths
    "/length/zero": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", KEEP),
    "/length/leading-zeros": (length(b"0000005"), KEEP),
    "/length/blanks": (length(b" \t 5 \t "), KEEP),
    "/length/negative": (length(b"-5"), HANG),
    "/length/plus": (length(b"+5"), HANG),
    "/length/hex": (length(b"0x5"), HANG),
    "/length/fraction": (length(b"5.0"), HANG),
    "/length/letters": (length(b"five"), HANG),
    "/length/empty": (length(b""), HANG),
    "/length/trailing-letters": (length(b"5 bytes"), HANG),
    "/length/huge": (length(b"99999999999999999999"), HANG),
    "/length/2e63": (length(b"9223372036854775808"), HANG),
    "/length/two-equal": (length(b"5\r\nContent-Length: 5"), KEEP),
    "/length/list-equal": (length(b"5, 5"), KEEP),
    "/length/two-different": (length(b"5\r\nContent-Length: 3"), HANG),
    "/length/two-different-longer": (length(b"5\r\nContent-Length: 50"), HANG),
    "/length/list-different": (length(b"5, 3"), HANG),
    "/length/too-long": (length(b"10"), CLOSE),
    "/length/max": (length(b"9223372036854775807"), CLOSE),
    "/length/too-short": (length(b"3"), KEEP),
    # chunks
    "/chunk/good": (chunked(b"5\r\nhello\r\n0\r\n\r\n"), KEEP),
    "/chunk/extension": (chunked(b"5;a=b;c=\"d\"\r\nhello\r\n0;x\r\n\r\n"), KEEP),
    "/chunk/trailers": (chunked(b"5\r\nhello\r\n0\r\nX-Sum: 1\r\nContent-Length: 77\r\n\r\n"), KEEP),
    "/chunk/upper-case": (chunked(b"A\r\n0123456789\r\n0\r\n\r\n"), KEEP),
    "/chunk/bare-lf": (chunked(b"5\nhello\n0\n\n"), KEEP),
    "/chunk/with-length": (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
                           b"5\r\nhello\r\n0\r\n\r\n", KEEP),
    "/chunk/blank-after-size": (chunked(b"5 \r\nhello\r\n0\r\n\r\n"), KEEP),
    "/chunk/leading-zeros": (chunked(b"0000000005\r\nhello\r\n000\r\n\r\n"), KEEP),
    "/chunk/sixteen-digits": (chunked(b"0000000000000005\r\nhello\r\n0\r\n\r\n"), KEEP),
    "/chunk/seventeen-digits": (chunked(b"00000000000000005\r\nhello\r\n0\r\n\r\n"), HANG),
    "/chunk/no-size": (chunked(b"\r\nhello\r\n0\r\n\r\n"), HANG),
    "/chunk/letters": (chunked(b"xyz\r\nhello\r\n0\r\n\r\n"), HANG),
    "/chunk/size-and-letters": (chunked(b"5xyz\r\nhello\r\n0\r\n\r\n"), HANG),
    "/chunk/hex-prefix": (chunked(b"0x5\r\nhello\r\n0\r\n\r\n"), HANG),
    "/chunk/negative": (chunked(b"-5\r\nhello\r\n0\r\n\r\n"), HANG),
    "/chunk/leading-blank": (chunked(b" 5\r\nhello\r\n0\r\n\r\n"), HANG),
    "/chunk/huge": (chunked(b"ffffffffffffffff\r\nhello"), HANG),
    "/chunk/2e63-1": (chunked(b"7fffffffffffffff\r\nhello"), CLOSE),
    "/chunk/endless-size": (chunked(b"0" * 100000), HANG),
    "/chunk/endless-extension": (chunked(b"5;" + b"x" * 100000), HANG),
    "/chunk/longer-than-size": (chunked(b"3\r\nhello\r\n0\r\n\r\n"), HANG),
    "/chunk/shorter-than-size": (chunked(b"7\r\nhello\r\n0\r\n\r\n"), HANG),
    "/chunk/no-line-end": (chunked(b"5\r\nhello0\r\n\r\n"), HANG),
    "/chunk/cut-in-size": (chunked(b"5"), CLOSE),
    "/chunk/cut-in-data": (chunked(b"5\r\nhel"), CLOSE),
    "/chunk/cut-behind-data": (chunked(b"5\r\nhello\r\n"), CLOSE),
    "/chunk/cut-in-trailer": (chunked(b"5\r\nhello\r\n0\r\nX-Sum: 1\r\n"), CLOSE),
    "/chunk/no-last-line": (chunked(b"5\r\nhello\r\n0\r\n"), CLOSE),
    "/chunk/long-trailer": (chunked(b"0\r\nX: " + b"y" * 20000 + b"\r\n\r\n"), HANG),
    "/chunk/endless-trailers": (chunked(b"0\r\n" + b"X: 0123456789\r\n" * 40000), HANG),
    "/chunk/twice": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
                     b"5\r\nhello\r\n0\r\n\r\n", HANG),
    "/chunk/identity": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", KEEP),
    "/chunk/unasked-gzip": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", HANG),
    "/chunk/unknown-coding": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: frob\r\n\r\nx", CLOSE),
    # read to the close
    "/close/1.1": (b"HTTP/1.1 200 OK\r\n\r\nhello", CLOSE),
    "/close/1.1-said": (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello", CLOSE),
    "/close/1.0": (b"HTTP/1.0 200 OK\r\n\r\nhello", CLOSE),
    "/close/1.0-length": (ok(version=b"1.0"), CLOSE),
    "/close/1.0-keep-alive": (ok(b"Connection: keep-alive\r\n", version=b"1.0"), KEEP),
    "/close/said": (ok(b"Connection: close\r\n"), CLOSE),
    "/close/said-and-kept": (ok(b"Connection: close\r\n"), HANG),
    "/close/said-in-list": (ok(b"Connection: foo, Close\r\n"), CLOSE),
    "/close/unsaid": (OK, CLOSE),
    "/close/empty": (b"HTTP/1.1 200 OK\r\n\r\n", CLOSE),
    "/close/no-answer": (b"", CLOSE),
    # resets
    "/reset/no-answer": (b"", RESET),
    "/reset/in-status": (b"HTTP/1.1 2", RESET),
    "/reset/in-head": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", RESET),
    "/reset/in-body": (length(b"50"), RESET),
    "/reset/in-chunk": (chunked(b"50\r\nhello"), RESET),
    "/reset/in-read-to-close": (b"HTTP/1.1 200 OK\r\n\r\nhello", RESET),
    "/reset/after": (OK, RESET),
    # more than was asked for
    "/garbage/same-packet": (OK + b"garbage", KEEP),
    "/garbage/second-answer": (OK + OK, KEEP),
    "/garbage/after-chunks": (chunked(b"5\r\nhello\r\n0\r\n\r\ngarbage"), KEEP),
    # bodies of which the beginning is read, and the rest passed over
    "/large/ok": (ok(body=LARGE), KEEP),
    "/large/close": (ok(body=LARGE), CLOSE),
    "/large/cut": (ok(body=LARGE)[:-1], CLOSE),
    "/large/reset": (ok(body=LARGE)[:-1], RESET),
    "/large/read-to-close": (b"HTTP/1.1 200 OK\r\n\r\n" + LARGE, CLOSE),
    "/large/chunked": (chunked(b"%x\r\n%s\r\n0\r\n\r\n" % (len(LARGE), LARGE)), KEEP),
    "/large/fills": (FILLS, KEEP),
    # no body
    "/empty/204": (b"HTTP/1.1 204 No Content\r\n\r\n", KEEP),
    "/empty/204-zero": (b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", KEEP),
    "/empty/204-length": (b"HTTP/1.1 204 No Content\r\nContent-Length: 500\r\n\r\n", KEEP),
    "/empty/204-chunked": (b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", KEEP),
    "/empty/304": (b"HTTP/1.1 304 Not Modified\r\n\r\n", KEEP),
    "/empty/304-length": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n", KEEP),
    "/empty/head": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", KEEP),
    "/empty/head-chunked": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", KEEP),
    "/empty/head-nothing": (b"HTTP/1.1 200 OK\r\n\r\n", KEEP),
    "/garbage/204": (b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok", KEEP),
    # interim answers
    "/interim/100": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, KEEP),
    "/interim/102": (b"HTTP/1.1 102 Processing\r\n\r\n" + OK, KEEP),
    "/interim/103-twice": (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 2 + OK, KEEP),
    "/interim/103-length": (b"HTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\n" + OK, KEEP),
    "/interim/199": (b"HTTP/1.1 199 What\r\n\r\n" + OK, KEEP),
    "/interim/fifty": (b"HTTP/1.1 100 Continue\r\n\r\n" * 50 + OK, KEEP),
    "/interim/endless": (b"HTTP/1.1 100 Continue\r\n\r\n" * 2000, HANG),
    "/interim/only": (b"HTTP/1.1 100 Continue\r\n\r\n", CLOSE),
    "/interim/101": (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", HANG),
    # redirects whose place needs no port
    "/redirect/relative": (ok(b"Location: landed\r\n", status=b"302 Found"), KEEP),
    "/redirect/absolute-path": (ok(b"Location: /redirect/landed\r\n", status=b"302 Found"), KEEP),
    "/redirect/a/b/up": (ok(b"Location: ../../landed\r\n", status=b"302 Found"), KEEP),
    "/redirect/far-up": (ok(b"Location: ../../../../redirect/landed\r\n", status=b"302 Found"), KEEP),
    "/redirect/query": (ok(b"Location: ?landed=1\r\n", status=b"302 Found"), KEEP),
    "/redirect/query?landed=1": (OK, KEEP),
    "/redirect/fragment": (ok(b"Location: /redirect/landed#there\r\n", status=b"302 Found"), KEEP),
    "/redirect/space": (ok(b"Location: /redirect/landed here\r\n", status=b"302 Found"), KEEP),
    "/redirect/high-bytes": (ok(b"Location: /redirect/landed\xc3\xa9\r\n", status=b"302 Found"), KEEP),
    "/redirect/lower-case-header": (ok(b"location: /redirect/landed\r\n", status=b"302 Found"), KEEP),
    "/redirect/twice": (ok(b"Location: /redirect/landed\r\nLocation: /ok\r\n", status=b"302 Found"), KEEP),
    "/redirect/empty-location": (ok(b"Location: \r\n", status=b"302 Found"), KEEP),
    "/redirect/no-location": (ok(status=b"302 Found"), KEEP),
    "/redirect/300": (ok(b"Location: /redirect/landed\r\n", status=b"300 Multiple Choices"), KEEP),
    "/redirect/304": (b"HTTP/1.1 304 Not Modified\r\nLocation: /redirect/landed\r\n\r\n", KEEP),
    "/redirect/200": (ok(b"Location: /redirect/landed\r\n"), KEEP),
    "/redirect/chunked": (b"HTTP/1.1 302 Found\r\nLocation: /redirect/landed\r\nTransfer-Encoding: chunked\r\n\r\n"
                          b"5\r\nhello\r\n0\r\n\r\n", KEEP),
    "/redirect/close": (ok(b"Location: /redirect/landed\r\nConnection: close\r\n", status=b"302 Found"), CLOSE),
    "/redirect/loop": (ok(b"Location: /redirect/loop\r\n", status=b"302 Found"), KEEP),
    "/redirect/ftp": (ok(b"Location: ftp://127.0.0.1/x\r\n", status=b"302 Found"), KEEP),
    "/redirect/file": (ok(b"Location: file:///etc/passwd\r\n", status=b"302 Found"), KEEP),
    "/redirect/javascript": (ok(b"Location: javascript:alert(1)\r\n", status=b"302 Found"), KEEP),
    "/redirect/no-host": (ok(b"Location: http:///x\r\n", status=b"302 Found"), KEEP),
    "/redirect/bad-port": (ok(b"Location: http://127.0.0.1:99999/x\r\n", status=b"302 Found"), KEEP),
    "/redirect/cut-body": (b"HTTP/1.1 302 Found\r\nLocation: /redirect/landed\r\nContent-Length: 10\r\n\r\nhi", CLOSE),
}
for code, reason in ((301, b"Moved"), (302, b"Found"), (303, b"See Other"), (307, b"Temporary"), (308, b"Permanent")):
    ANSWERS["/redirect/%d" % code] = (ok(b"Location: /redirect/landed\r\n", status=b"%d %s" % (code, reason)), KEEP)

PATHS = {}  # path: function of a connection
PORTS = {}  # name: function of an accepted socket

Request = collections.namedtuple("Request", "method path headers body connection")


def path(name):
    def add(function):
        PATHS[name] = function
        return function
    return add


def port(name):
    def add(function):
        PORTS[name] = function
        return function
    return add


class Ended(Exception):
    """The connection is over."""


def reset(sock):
    """RST instead of FIN."""
    raw = socket.socket(fileno=sock.detach())
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()


def hang(sock):
    """Until the other side closes, or the server ends."""
    sock.settimeout(HANG_S)
    try:
        while sock.recv(65536):
            pass
    except OSError:
        pass


class Connection:
    """What a behaviour gets: the socket, the request, and how many of them this connection has had."""

    def __init__(self, server, sock):
        self.server = server
        self.sock = sock
        self.pending = b""
        self.requests = 0
        self.request = None

    def receive(self):
        data = self.sock.recv(65536)
        if not data:
            raise Ended
        self.pending += data

    def read_head(self):
        while b"\r\n\r\n" not in self.pending:
            if len(self.pending) > MAX_HEAD_BYTES:
                raise Ended
            self.receive()
        head, self.pending = self.pending.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        headers = [tuple(line.split(": ", 1)) if ": " in line else (line.rstrip(":"), "") for line in lines[1:]]
        self.requests += 1
        self.request = Request(method, target, headers, None, id(self))

    def read_body(self):
        size = int(dict((n.lower(), v) for n, v in self.request.headers).get("content-length", 0))
        while len(self.pending) < size:
            self.receive()
        body, self.pending = self.pending[:size], self.pending[size:]
        self.server.note_body(self, body)

    def send(self, data):
        self.sock.sendall(data)

    def send_ok(self):
        self.send(OK[:-2] if self.request.method == "HEAD" else OK)

    def linger(self):
        """Close our side and read on until the other one closes."""
        self.sock.shutdown(socket.SHUT_WR)
        hang(self.sock)
        raise Ended

    def drip(self, data, pause_s):
        for i in range(len(data)):
            self.send(data[i:i + 1])
            time.sleep(pause_s)

    def then(self, what):
        if what == CLOSE:
            raise Ended
        if what == RESET:
            time.sleep(0.02)  # so that the bytes before it arrive as bytes
            reset(self.sock)
            raise Ended
        if what == HANG:
            hang(self.sock)
            raise Ended

    def answer(self):
        target = self.request.path
        if target in UNREAD:
            PATHS[target](self)
            return
        self.read_body()
        if target in PATHS:
            PATHS[target](self)
        elif target in ANSWERS:
            data, what = ANSWERS[target]
            if self.request.method == "HEAD":
                data = data[:data.index(b"\r\n\r\n") + 4]
            self.send(data)
            self.then(what)
        elif target.startswith("/redirect/landed"):
            self.send(ok(body=b"landed"))
        else:
            self.send(ok(status=b"404 Not Found", body=b"unknown to the hostile server"))


# --- paths that do more than send bytes ---

UNREAD = {"/early/413", "/early/200", "/early/200-hang", "/early/reset"}  # answered before the body is read


@path("/early/413")
def early_413(c):
    c.send(ok(b"Connection: close\r\n", status=b"413 Too Large"))
    c.linger()


@path("/early/200")
def early_200(c):
    c.send(OK)
    c.linger()


@path("/early/200-hang")
def early_hang(c):
    """Reads no more, but does not close either."""
    c.send(OK)
    c.server.stopping.wait(1)
    raise Ended


@path("/early/reset")
def early_reset(c):
    reset(c.sock)
    raise Ended


@path("/drip/head")
def drip_head(c):
    c.drip(OK, 0.002)


@path("/drip/chunks")
def drip_chunks(c):
    c.drip(chunked(b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nX: y\r\n\r\n"), 0.002)


@path("/drip/slow")
def drip_slow(c):
    c.drip(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 1000, 0.03)


@path("/endless/body")
def endless_body(c):
    c.send(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(MAX_SENT_BYTES >> 16):
        c.send(b"x" * 65536)
        time.sleep(0.005)
    raise Ended


@path("/endless/chunks")
def endless_chunks(c):
    c.send(chunked(b""))
    for _ in range(MAX_SENT_BYTES >> 12):
        c.send(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        time.sleep(0.002)
    raise Ended


@path("/endless/headers")
def endless_headers(c):
    c.send(b"HTTP/1.1 200 OK\r\n")
    for i in range(MAX_SENT_BYTES >> 12):
        c.send(b"X-%d: %s\r\n" % (i, b"y" * 4000))
    raise Ended


@path("/endless/line")
def endless_line(c):
    c.send(b"HTTP/1.1 200 OK\r\nX: ")
    for _ in range(MAX_SENT_BYTES >> 12):
        c.send(b"y" * 4096)
    raise Ended


@path("/silent")
def silent(c):
    c.then(HANG)


@path("/silent-in-body")
def silent_in_body(c):
    c.send(length(b"50"))
    c.then(HANG)


@path("/garbage/later")
def garbage_later(c):
    c.send(OK)
    time.sleep(0.05)
    c.send(b"garbage")


@path("/garbage/head")
def garbage_head(c):
    """A body where none may be."""
    c.send(OK)


@path("/stale/close")
def stale_close(c):
    """A kept-alive connection that the server gives up just as the request comes."""
    if c.requests > 1:
        raise Ended
    c.send_ok()


@path("/stale/reset")
def stale_reset(c):
    if c.requests > 1:
        c.then(RESET)
    c.send_ok()


@path("/stale/always")
def stale_always(c):
    raise Ended


@path("/stale/partial")
def stale_partial(c):
    """Something of an answer came: not to be sent again."""
    if c.requests > 1:
        c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n")
        raise Ended
    c.send_ok()


@path("/stale/idle")
def stale_idle(c):
    """Closed while it is idle."""
    c.send_ok()
    raise Ended


@path("/half-close")
def half_close(c):
    """The body ends with our side of the connection; the other side stays open."""
    c.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
    c.sock.shutdown(socket.SHUT_WR)
    c.then(HANG)


@path("/auth")
def auth(c):
    """Shows what credentials came along."""
    given = [v for n, v in c.request.headers if n.lower() in ("authorization", "cookie")]
    c.send(ok(body="|".join(given).encode("latin-1")))


@path("/no-notify")
def no_notify(c):
    """TLS: read to close, and the end is not announced."""
    c.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
    socket.socket(fileno=c.sock.detach()).close()
    raise Ended


@path("/no-notify-length")
def no_notify_length(c):
    c.send(OK)
    socket.socket(fileno=c.sock.detach()).close()
    raise Ended


@path("/notify")
def notify(c):
    c.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
    c.sock.settimeout(5)
    c.sock.unwrap()
    raise Ended


@path("/plain-in-tls")
def plain_in_tls(c):
    """Bytes that are no TLS record, in the middle of a connection."""
    raw = socket.socket(fileno=c.sock.detach())
    raw.sendall(OK)
    time.sleep(0.05)
    raw.close()
    raise Ended


@path("/two-records")
def two_records(c):
    """Garbage in a record of its own, sent at once with the answer."""
    c.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    c.send(OK)
    c.send(b"garbage")
    c.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)


def location(where):
    def answer(c):
        c.send(ok(b"Location: " + where(c.server).encode() + b"\r\n", status=b"302 Found"))
    return answer


@path("/slow/redirect")
def slow_redirect(c):
    time.sleep(SLOW_S)
    c.send(ok(b"Location: /slow/landed\r\n", status=b"302 Found"))


@path("/slow/landed")
def slow_landed(c):
    time.sleep(SLOW_S)
    c.send(OK)


PATHS["/redirect/other-port"] = location(lambda s: s.other.url + "/auth")
PATHS["/redirect/other-host"] = location(lambda s: "http://localhost:%d/auth" % s.port)
PATHS["/redirect/same-host"] = location(lambda s: s.url + "/auth")
PATHS["/redirect/scheme-relative"] = location(lambda s: "//127.0.0.1:%d/redirect/landed" % s.port)
PATHS["/redirect/refused"] = location(lambda s: "http://127.0.0.1:%d/x" % s.ports["refused"])
PATHS["/redirect/to-fault"] = location(lambda s: s.url + "/length/negative")


# --- ports: what happens before a request is read ---

@port("close-at-accept")
def close_at_accept(sock):
    sock.close()


@port("reset-at-accept")
def reset_at_accept(sock):
    reset(sock)


@port("answer-at-accept")
def answer_at_accept(sock):
    sock.sendall(OK)
    hang(sock)


@port("half-open")
def half_open(sock):
    """Accepts and never says anything."""
    hang(sock)


@port("tls-alert")
def tls_alert(sock):
    sock.recv(65536)
    sock.sendall(b"\x15\x03\x03\x00\x02\x02\x28")  # fatal, handshake_failure
    sock.close()


@port("tls-close")
def tls_close(sock):
    sock.recv(65536)
    sock.close()


@port("tls-reset")
def tls_reset(sock):
    sock.recv(65536)
    reset(sock)


@port("tls-garbage")
def tls_garbage(sock):
    sock.recv(65536)
    sock.sendall(b"\x16\x03\x03\x40\x00" + b"\xff" * 0x4000)
    hang(sock)


# --- certificates ---

CA_CONFIG = """
[ca]
default_ca = it
[it]
database = {folder}/index
new_certs_dir = {folder}
serial = {folder}/serial
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign
[server]
subjectAltName = {names}
"""


class Certificates:
    """Two authorities, and server certificates of them by kind; all made anew in a folder with the openssl program."""

    KINDS = {
        # kind: (names, authority, from, to)
        "good": ("DNS:localhost, IP:127.0.0.1", "ca", "20200101000000Z", "20490101000000Z"),
        "expired": ("DNS:localhost, IP:127.0.0.1", "ca", "20200101000000Z", "20200102000000Z"),
        "future": ("DNS:localhost, IP:127.0.0.1", "ca", "20480101000000Z", "20490101000000Z"),
        "wrong-name": ("DNS:elsewhere.example, IP:127.0.0.2", "ca", "20200101000000Z", "20490101000000Z"),
        "wrong-ca": ("DNS:localhost, IP:127.0.0.1", "other-ca", "20200101000000Z", "20490101000000Z"),
    }

    def __init__(self, folder):
        self.folder = folder
        self.authority("ca")
        self.authority("other-ca")
        for kind, (names, authority, begin, end) in self.KINDS.items():
            self.server(kind, names, authority, begin, end)
        self.self_signed()
        self.ca_file = self.at("ca.pem")

    def at(self, name):
        return "%s/%s" % (self.folder, name)

    def openssl(self, *args, names="DNS:localhost"):
        config = self.at("config")
        with open(config, "w") as f:
            f.write(CA_CONFIG.format(folder=self.folder, names=names))
        done = subprocess.run(["openssl"] + list(args) + ["-config", config], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout

    def authority(self, name):
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650",
                     "-subj", "/CN=" + name, "-keyout", self.at(name + ".key"), "-out", self.at(name + ".pem"),
                     "-extensions", "authority")

    def server(self, kind, names, authority, begin, end):
        open(self.at("index"), "w").close()
        with open(self.at("serial"), "w") as f:
            f.write("%02X\n" % (len(kind) + 16))
        self.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                     "/CN=test server", "-keyout", self.at(kind + ".key"), "-out", self.at(kind + ".csr"))
        self.openssl("ca", "-batch", "-notext", "-in", self.at(kind + ".csr"), "-out", self.at(kind + ".pem"), "-cert",
                     self.at(authority + ".pem"), "-keyfile", self.at(authority + ".key"), "-startdate", begin,
                     "-enddate", end, "-extensions", "server", names=names)

    def self_signed(self):
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650",
                     "-subj", "/CN=test server", "-keyout", self.at("self-signed.key"), "-out",
                     self.at("self-signed.pem"), "-extensions", "server", names="DNS:localhost, IP:127.0.0.1")

    def context(self, kind):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.at(kind + ".pem"), self.at(kind + ".key"))
        context.set_alpn_protocols(["http/1.1"])
        return context


# --- the servers ---

class Listener:
    """A listening socket on a free port; each connection it accepts is given to a function in a thread."""

    def __init__(self, function, backlog=64, address="127.0.0.1"):
        self.function = function
        self.connections = 0
        self.open = set()
        self.lock = threading.Lock()
        self.sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        self.sock.bind((address, 0))
        self.sock.listen(backlog)
        self.port = self.sock.getsockname()[1]
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.connections += 1
                self.open.add(sock)
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        try:
            self.function(sock)
        except (OSError, ValueError):
            pass  # the other side is gone
        finally:
            with self.lock:
                self.open.discard(sock)
            sock.close()

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        with self.lock:
            left = list(self.open)
        for sock in left:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.thread.join(10)


class Server:
    """One HTTP port. seen: the requests in their order; connections: how many were opened."""

    def __init__(self, context=None, early=None, address="127.0.0.1"):
        self.context = context
        self.early = early  # sent as soon as a TLS connection stands
        self.seen = []
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.ports = {}
        self.other = self
        self.listener = Listener(self.serve, address=address)
        self.port = self.listener.port
        self.url = "%s://127.0.0.1:%d" % ("https" if context else "http", self.port)

    def forget(self):
        with self.lock:
            self.seen = []
            self.listener.connections = 0

    @property
    def connections(self):
        return self.listener.connections

    def count(self, wanted):
        with self.lock:
            return sum(1 for r in self.seen if r.path == wanted)

    def requests(self, wanted):
        with self.lock:
            return [r for r in self.seen if r.path == wanted]

    def note(self, connection):
        with self.lock:
            self.seen.append(connection.request)

    def note_body(self, connection, body):
        with self.lock:
            at = max(i for i, r in enumerate(self.seen) if r is connection.request)
            self.seen[at] = connection.request = connection.request._replace(body=body)

    def serve(self, sock):
        if self.context:
            sock.settimeout(10)
            sock = self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
            try:
                sock.do_handshake()
            except ssl.SSLError:  # after an alert was sent, which a reset would overtake
                sock.shutdown(socket.SHUT_WR)
                hang(sock)
                raise
            sock.settimeout(None)
            if self.early:
                sock.sendall(self.early)
                sock.settimeout(10)
        c = Connection(self, sock)
        try:
            while True:
                c.read_head()
                self.note(c)
                if self.early:
                    raise Ended
                c.answer()
        except (Ended, OSError):
            pass
        finally:
            c.sock.close()

    def close(self):
        self.stopping.set()
        self.listener.close()


class Full:
    """A port whose queue of connections is full: whoever connects waits for ever."""

    def __init__(self):
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen(0)
        self.port = self.sock.getsockname()[1]
        self.fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", self.port))
            self.fillers.append(filler)

    def close(self):
        for sock in self.fillers + [self.sock]:
            sock.close()


class Hostile:
    """All of them. ports: by name; servers: the HTTP ones by name."""

    def __init__(self, folder):
        self.certificates = Certificates(folder)
        self.servers = {"plain": Server(), "other": Server()}
        for kind in list(Certificates.KINDS) + ["self-signed"]:
            self.servers["tls-" + kind] = Server(self.certificates.context(kind))
        old = self.certificates.context("good")
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        self.servers["tls-1.2"] = Server(old)
        self.servers["tls-early"] = Server(self.certificates.context("good"), early=ok(b"Connection: close\r\n"))
        self.servers["tls-1.2-early"] = Server(old, early=ok(b"Connection: close\r\n"))
        for name, version in (("tls-wants-certificate", None), ("tls-1.2-wants-certificate", ssl.TLSVersion.TLSv1_2)):
            context = self.certificates.context("good")
            context.load_verify_locations(self.certificates.ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
            if version:
                context.maximum_version = version
            self.servers[name] = Server(context)
        self.listeners = {name: Listener(function) for name, function in PORTS.items()}
        self.full = Full()
        self.closed = socket.socket()  # bound and not listening: refuses
        self.closed.bind(("127.0.0.1", 0))
        self.ports = {name: s.port for name, s in list(self.servers.items()) + list(self.listeners.items())}
        self.ports.update({"full": self.full.port, "refused": self.closed.getsockname()[1]})
        for server in self.servers.values():
            server.ports = self.ports
            server.other = self.servers["other"]
        self.plain = self.servers["plain"]

    def forget(self):
        for server in self.servers.values():
            server.forget()
        for listener in self.listeners.values():
            listener.connections = 0

    def close(self):
        for thing in list(self.servers.values()) + list(self.listeners.values()) + [self.full, self.closed]:
            thing.close()


if __name__ == "__main__":
    import signal
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        hostile = Hostile(scratch)
        for shown, number in hostile.ports.items():
            print("%-26s %d" % (shown, number), flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            pass
        hostile.close()

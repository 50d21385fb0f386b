"""A server on 127.0.0.1 for faults that real ones will not make: it reads a request and sends prepared bytes."""
import threading

from harness.listener import Listener


class FakeHttp(Listener):
    """answer: the bytes for each connection; None: stay silent until the end; or a function of the request that gives
    one of them."""

    def __init__(self, answer):
        self.answer = answer
        self.requests = []
        self.stopped = threading.Event()
        super().__init__()
        self.url = "http://127.0.0.1:%d" % self.port

    def serve(self, connection):
        with connection:
            request = b""
            while b"\r\n\r\n" not in request:
                got = connection.recv(65536)
                if not got:
                    return
                request += got
            self.requests.append(request)
            answer = self.answer(request) if callable(self.answer) else self.answer
            if answer is None:
                self.stopped.wait()
                return
            try:
                connection.sendall(answer)
            except OSError:
                pass  # the client had enough

    def close(self):
        self.stopped.set()
        super().close()


def answer(status, body=b"", headers=""):
    head = "HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n" % (status, len(body), headers)
    return head.encode() + body

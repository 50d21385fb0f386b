"""A TCP relay that stands between a worker and its master: it can cut, stall, and tell when messages passed."""
import socket
import threading
import time

from .process import free_port


class Relay:
    """Listens on .port, relays to 127.0.0.1:target. Thread-per-direction, which is enough for a few workers."""

    def __init__(self, target):
        self.target = target
        self.port = free_port()
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.sockets = []
        self.stalled = threading.Event()
        self.heartbeats = []  # monotonic times at which a heartbeat of the worker passed
        self.stopping = False
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            self.sockets += [client, server]
            threading.Thread(target=self.pump, args=(client, server, self.heartbeats), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, None), daemon=True).start()

    def pump(self, source, sink, beats):
        try:
            while data := source.recv(65536):
                while self.stalled.is_set():
                    time.sleep(0.05)
                if beats is not None:
                    beats += [time.monotonic()] * data.count(b"\xa9heartbeat")
                sink.sendall(data)
        except OSError:
            pass
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        """Close all connections; new ones are taken."""
        for s in self.sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.sockets = []

    def close(self):
        self.listener.close()
        self.cut()

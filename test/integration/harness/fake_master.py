"""A ROUTER that speaks just enough of a master to misbehave in ways that a real one will not."""
import time

import msgpack
import zmq

from .process import free_port


class FakeMaster:
    def __init__(self, port=None):
        self.port = port or free_port()
        self.context = zmq.Context()
        self.router = self.context.socket(zmq.ROUTER)
        self.router.setsockopt(zmq.LINGER, 0)
        self.router.bind("tcp://127.0.0.1:%d" % self.port)
        self.received = []  # (type, data) in order
        self.worker = None  # identity of the last sender

    def receive(self, timeout=5):
        """The next message as (type, data), or None. Heartbeats are answered, as masters from 2.19 on do."""
        if not self.router.poll(timeout * 1000):
            return None
        identity, frame = self.router.recv_multipart()
        kind, data, node = msgpack.unpackb(frame, strict_map_key=False)
        assert node.encode() == identity, (node, identity)
        self.worker = identity
        self.received.append((kind, data))
        if kind == "heartbeat":
            self.send("heartbeat")
        return kind, data

    def wait(self, kind, timeout=20, condition=lambda data: True):
        """Data of the next message of this kind that fulfils the condition."""
        deadline = time.monotonic() + timeout
        seen = []
        while time.monotonic() < deadline:
            message = self.receive(0.2)
            if message is None:
                continue
            seen.append(message[0])
            if message[0] == kind and condition(message[1]):
                return message[1]
        raise TimeoutError("no %s in %g s, only %s" % (kind, timeout, seen))

    def send(self, kind, data=None):
        self.send_bytes(msgpack.packb([kind, data, self.worker.decode()]))

    def send_bytes(self, *frames):
        self.router.send_multipart([self.worker, *frames])

    def welcome(self, timeout=20):
        """Take a worker in."""
        version = self.wait("client_ready", timeout)
        self.send("ack", {"index": 0})
        return version

    def spawn(self, users, host, timestamp=None, stop_timeout=0.0, **more):
        data = {
            "timestamp": time.time() if timestamp is None else timestamp, "user_classes_count": users, "host": host,
            "stop_timeout": stop_timeout, "parsed_options": {}}
        data.update(more)
        self.send("spawn", data)

    def close(self):
        self.context.destroy(linger=0)

"""A proxy: HTTP (CONNECT, and requests passed on), or SOCKS 5. It asks for a user and a password when it is given them."""
import base64
import socket
import struct
import threading
import urllib.parse

from harness.listener import Listener


class Proxy(Listener):
    def __init__(self, user=None, socks=False):
        self.user = user  # "name:password"
        self.refuse = False
        self.seen = []  # the requests' lines; of SOCKS (address type, host, port)
        self.connections = 0
        self.talk = self.talk_socks if socks else self.talk_http
        self.lock = threading.Lock()
        super().__init__()
        self.address = "127.0.0.1:%d" % self.port

    def serve(self, peer):
        with self.lock:
            self.connections += 1
        try:
            with peer:
                self.talk(peer)
        except (OSError, ValueError):
            pass

    @staticmethod
    def pump(a, b):
        def copy(source, target):
            try:
                while data := source.recv(65536):
                    target.sendall(data)
                target.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        back = threading.Thread(target=copy, args=(b, a), daemon=True)
        back.start()
        copy(a, b)
        back.join()

    # HTTP

    def talk_http(self, peer):
        with peer.makefile("rb") as input:
            while line := input.readline().decode().strip():
                headers = {}
                while one := input.readline().decode().strip():
                    name, _, value = one.partition(":")
                    headers[name.lower()] = value.strip()
                self.seen.append(line)
                body = input.read(int(headers.get("content-length", 0)))
                method, target, _ = line.split(" ")
                asked = "Basic " + base64.b64encode((self.user or "").encode()).decode()
                if self.user and headers.get("proxy-authorization") != asked:
                    peer.sendall(b"HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\n\r\n")
                elif self.refuse:
                    peer.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
                elif method == "CONNECT":
                    host, _, port = target.rpartition(":")
                    with socket.create_connection((host, int(port))) as server:
                        peer.sendall(b"HTTP/1.1 200 Connected\r\nX-Proxy: of the tunnel\r\n\r\n")
                        self.pump(peer, server)
                    return
                else:
                    self.pass_on(peer, method, target, headers, body)

    @staticmethod
    def pass_on(peer, method, target, headers, body):
        url = urllib.parse.urlsplit(target)
        lines = ["%s %s HTTP/1.1" % (method, url.path or "/"), "Host: " + url.netloc, "Connection: close"]
        lines += ["%s: %s" % item for item in headers.items() if item[0] not in ("host", "connection") and "proxy" not in item[0]]
        with socket.create_connection((url.hostname, url.port)) as server:
            server.sendall("\r\n".join(lines + ["", ""]).encode() + body)
            answer = b""
            while data := server.recv(65536):
                answer += data
        peer.sendall(answer.replace(b"Connection: close\r\n", b""))

    # SOCKS 5 (RFC 1928, RFC 1929)

    def talk_socks(self, peer):
        with peer.makefile("rb") as input:
            offered = input.read(input.read(2)[1])
            peer.sendall(b"\x05\x02" if self.user else b"\x05\x00" if 0 in offered else b"\x05\xff")
            if self.user:
                input.read(1)
                name = input.read(input.read(1)[0])
                password = input.read(input.read(1)[0])
                right = name + b":" + password == self.user.encode()
                peer.sendall(b"\x01\x00" if right else b"\x01\x01")
                if not right:
                    return
            kind = input.read(4)[3]
            host = socket.inet_ntoa(input.read(4)) if kind == 1 else input.read(input.read(1)[0]).decode()
            port, = struct.unpack(">H", input.read(2))
            self.seen.append((kind, host, port))
            if self.refuse:
                peer.sendall(b"\x05\x02\x00\x01" + b"\0" * 6)
                return
            with socket.create_connection((host, port)) as server:
                peer.sendall(b"\x05\x00\x00\x01" + b"\0" * 6)
                self.pump(peer, server)

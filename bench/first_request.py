#!/usr/bin/env python3
"""How long after its start a program's first request arrives: first_request.py [ROUNDS] [COMMAND...], the command with {url}
in it (cicada's own by default). From the fork until a listening socket has a connection, so with all that loading costs."""
import os
import socket
import statistics
import subprocess
import sys
import time

CICADA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build", "cicada")
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def once(command):
    """Milliseconds until the connection, and until the request."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        url = "http://127.0.0.1:%d/" % listener.getsockname()[1]
        begin = time.monotonic()
        program = subprocess.Popen([word.replace("{url}", url) for word in command], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        connection, _ = listener.accept()
        connected = time.monotonic()
        with connection:
            connection.recv(65536)
            requested = time.monotonic()
            connection.sendall(ANSWER)
            program.terminate()
            program.wait()
    return (connected - begin) * 1e3, (requested - begin) * 1e3


def main():
    words = sys.argv[1:]
    rounds = int(words.pop(0)) if words and words[0].isdigit() else 21
    found = [once(words or [CICADA, "--headless", "--iterations", "1", "{url}"]) for _ in range(rounds)]
    for what, times in zip(("connection", "request"), zip(*found)):
        print("%s after %.1f ms (median of %d; %.1f to %.1f)" % (what, statistics.median(times), rounds, min(times), max(times)))


if __name__ == "__main__":
    main()

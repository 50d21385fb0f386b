"""Runs of a scenario by cicada, and of the locustfile that is made of it by Locust, against the application of app.py,
which here keeps every request of each connection."""
import csv
import json
import os
import re
import subprocess
import sys
import threading

import app
from harness.master import locust
from scenario_run import CICADA

DROPPED = {"host", "connection"}  # ports differ, and keeping alive goes without saying


class Recorder(app.Handler):
    RAW = {  # what it may get to hear otherwise; the connection is closed
        "/hostile/closed": b"",
        "/hostile/short": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab",
        "/hostile/garbage": b"nonsense\r\n\r\n",
        "/hostile/loop": b"HTTP/1.1 302 Found\r\nLocation: /hostile/loop\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        "/hostile/elsewhere": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2:PORT/echo/landed\r\nContent-Length: 0\r\n\r\n",
        "/hostile/nowhere": b"HTTP/1.1 302 Found\r\nLocation: mailto:x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    }

    def handle_one(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.peek(length)[:length] if length else b""
        headers = sorted((name.lower(), value) for name, value in self.headers.items()
                         if name.lower() not in DROPPED or "example" in value)
        with self.app.lock:
            self.app.requests.append((self.client_address[1], self.command, self.path, tuple(headers), body.decode("latin-1")))
        if self.path in self.RAW:
            self.wfile.write(self.RAW[self.path].replace(b"PORT", b"%d" % self.server.server_address[1]))
            self.close_connection = True
            return
        super().handle_one()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = do_PURGE = handle_one


def serve():
    state = app.App()
    state.requests = []
    server = app.Server(("", 0), type("Handler", (Recorder,), {"app": state}))
    server.state = state
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def rows(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


# Locust's files of the statistics are a second old when it ends.
RECORD = """

@events.quitting.add_listener
def record(environment, **_):
    stats = [[e.method, e.name, e.num_requests, e.num_failures, e.avg_content_length] for e in environment.stats.entries.values()]
    errors = [[e.method, e.name, type(e).parse_error(e.error), e.occurrences] for e in environment.stats.errors.values()]
    with open("record.json", "w") as f:
        json.dump({"stats": stats, "errors": errors}, f)
"""


class Run:
    """What the server was asked, connection by connection, and what the run counted."""

    def __init__(self, folder, command, time="3s", users=1, more=(), host=True):
        server = serve()
        where = "http://127.0.0.1:%d" % server.server_address[1]
        prefix = os.path.join(str(folder), "run%d" % len(os.listdir(str(folder))))
        command = command + ["--headless", "-u", str(users), "-r", "100", "--csv", prefix,
                             "--stop-timeout", "10", "--only-summary"] + (["-t", time] if time else [])
        command += ["-H", where] if host else []
        command += [m.replace("HOST", where) for m in more]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                              cwd=str(folder))
        self.log, self.status = done.stdout, done.returncode
        assert "Traceback" not in self.log, self.log
        server.shutdown()
        server.server_close()
        record = os.path.join(str(folder), "record.json")
        assert os.path.exists(record) or os.path.exists(prefix + "_stats.csv"), self.log
        if os.path.exists(record):
            with open(record) as f:
                counted = json.load(f)
            os.remove(record)
        else:
            counted = {"stats": [[r["Type"], r["Name"], int(r["Request Count"]), int(r["Failure Count"]),
                                  float(r["Average Content Size"])] for r in rows(prefix + "_stats.csv") if r["Name"] != "Aggregated"],
                       "errors": [[r["Method"], r["Name"], r["Error"], int(r["Occurrences"])] for r in rows(prefix + "_failures.csv")]}
        self.stats = {(kind, name): counts for kind, name, *counts in counted["stats"]}  # requests, failures, mean size
        self.errors = {(kind, name, error): n for kind, name, error, n in counted["errors"]}
        self.by_user = {}
        for port, *request in server.state.requests:
            self.by_user.setdefault(port, []).append(tuple(request))
        self.host = where
        self.in_order = [tuple(request) for _, *request in server.state.requests]
        self.requests = [request for one in self.by_user.values() for request in one]

    def total(self):
        return sum(counts[0] for (kind, _), counts in self.stats.items() if kind != "GROUP")


def locustfile(scenario, folder):
    done = subprocess.run([CICADA, "locustfile", str(scenario)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()
    path = os.path.join(str(folder), "locustfile.py")
    with open(path, "wb") as f:
        f.write(done.stdout)
    subprocess.run([sys.executable, "-W", "error", "-m", "py_compile", path], check=True)
    return path, done.stderr.decode()


def by_cicada(scenario, folder, **how):
    return Run(folder, [CICADA, "-f", str(scenario), "--threads", "1"], **how)


def by_locust(scenario, folder, version="2.47.0", **how):
    path, _ = locustfile(scenario, folder)
    with open(path, "a") as f:
        f.write(RECORD)
    return Run(folder, [locust(version), "-f", path], **how)


def anonymous(request, digits=True):
    """A request without what no two runs share: ids, tokens and, if need be, numbers."""
    def fold(text):
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}", "ID", text)
        return re.sub(r"\d+", "N", text) if digits else text
    method, path, headers, body = request
    headers = tuple((n, fold(v)) for n, v in headers if n != "content-length" or not digits and v != "0")
    return method, fold(path), headers, fold(body)


def masked(request, host):
    """A request without the address of its server, and without a length of nothing."""
    method, path, headers, body = request
    return method, path, [(n, v) for n, v in headers if (n, v) != ("content-length", "0")], body.replace(host, "HOST")

"""One generated locustfile for a whole fleet: a real master, C workers and one of Locust's own run the same classes, and
the master cannot tell whose rows are whose."""
import collections
import http.server
import json
import os
import socketserver
import subprocess
import threading
import time

import pytest

from harness.process import free_port, wait_for
from harness.worker import CICADA

SCENARIO = """
host: %(host)s
wait_time: 0.05
feeds:
  - {file: people.csv, order: random, each: task}
users:
  - name: Visitor
    tasks:
      - name: look
        weight: 3
        steps:
          - get: /hello/${name}
            name: /hello
            check: {body: {contains: hello}, headers: {X-Kind: {matches: "^t"}}}
      - name: faults
        steps:
          - {get: /missing/12345}
          - {get: /down, check: {status: 200}}
          - {get: "/hello/${name}?wrong=body", name: wrong body, check: {body: {contains: "good bye"}}}
          - {get: /hello/ann, name: wrong header, check: {headers: {X-Kind: other}}}
          - {get: /hello/ann, name: wrong pattern, check: {body: {matches: "good (bye|night)"}}}
          - {get: /, host: "%(nowhere)s", name: refused}
  - name: Buyer
    tasks:
      - name: buy
        steps:
          - post: /orders
            json: {item: 7, who: "${name}", note: "\\u00fc"}
            check: {status: 201, json: {/state: open, /item: {"<": 8}}}
            extract: {order: /id}
          - get: /orders/${order}
            check: {json: {/state: open}}
          - {get: "/orders/${order}", name: wrong state, check: {json: {/state: closed}}}
          - {get: "/orders/${order}", name: missing value, check: {json: {/price: {">": 3}}}}
          - {post: /echo, name: echo, file: body.bin, check: {size: 6}}
"""
FILES = {"people.csv": "name\nann\nbob\n\u00fcbel\n".encode(), "body.bin": b"\x89\x00\xff\n\"'"}
FAILING = {"/missing/12345", "/down", "wrong body", "wrong header", "wrong pattern", "refused", "wrong state",
           "missing value"}


class Handler(http.server.BaseHTTPRequestHandler):
    """Counts what it answered: by client address, method and path."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        part = self.path.split("?")[0].split("/")[1]
        status, text = {
            "hello": (200, b"hello"),
            "orders": (201 if self.command == "POST" else 200, b'{"id": 4711, "state": "open", "item": 7}'),
            "echo": (200, body),
            "down": (503, b"not now"),
        }.get(part, (404, b"nothing"))
        if part == "orders" and body:
            assert json.loads(body)["note"] == "\u00fc"
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("X-Kind", "text")
        self.end_headers()
        self.wfile.write(text)
        with self.server.lock:
            self.server.counts[self.client_address[0], self.command, part] += 1

    do_GET = do_POST = answer


class Target(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.url = "http://127.0.0.1:%d" % self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def total(self):
        with self.lock:
            return sum(self.counts.values())

    def close(self):
        self.shutdown()
        self.server_close()


@pytest.fixture
def target(started):
    server = Target()
    started.append(server)
    return server


@pytest.fixture
def locustfile(tmp_path, target):
    """Made in another folder than it is used in, whose files are gone by then."""
    folder = tmp_path / "scenario"
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    path = folder / "shop.yaml"
    path.write_text(SCENARIO % {"host": target.url, "nowhere": "http://127.0.0.1:%d" % free_port()})
    made = subprocess.run([CICADA, "locustfile", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert made.returncode == 0, made.stderr
    for name in os.listdir(folder):
        os.remove(folder / name)
    locustfile = tmp_path / "locustfile.py"
    locustfile.write_bytes(made.stdout)
    return str(locustfile)


def rows(stats):
    """Requests and failures by (method, name); each has one row only."""
    found = {}
    for row in stats["stats"]:
        if row["name"] != "Aggregated":
            assert (row["method"], row["name"]) not in found, stats["stats"]
            found[row["method"], row["name"]] = (row["num_requests"], row["num_failures"])
    return found


def final(master, target):
    """The master's stats when nothing is added any more."""
    last = []

    def still():
        last.append((target.total(), rows(master.stats())))
        time.sleep(2.5)  # the master renews them each 2 s, workers send them each 3 s
        return len(last) > 2 and last[-1] == last[-2] == last[-3]
    wait_for(still, 60, "the last samples")
    return master.stats()


PART_OF = {"/hello": "hello", "wrong body": "hello", "wrong header": "hello", "wrong pattern": "hello",
           "/missing/12345": "missing", "/down": "down", "/orders": "orders", "/orders/:order": "orders",
           "wrong state": "orders", "missing value": "orders", "echo": "echo"}


def test_one_file_for_all(version, locustfile, target, start_master, start_cicada, start_python_worker):
    """Masters before 2.23 do not give it: their workers have it themselves."""
    scenario = locustfile if version in ("2.12.1", "2.20.1") else "-"
    master = start_master(version, locustfile=locustfile)
    workers = [start_cicada(master.port, scenario=scenario, name="cicada-%d" % i,
                            args=["--source-address", "127.0.0.%d" % (i + 2)]) for i in range(2)]
    python = start_python_worker(master.port, version, locustfile=scenario)
    master.wait_workers(3, ("ready",), timeout=60)
    master.swarm(18, 100)
    assert master.wait_users(18) == [6, 6, 6]
    master.wait_requests(1500, timeout=60)
    master.stop()
    stats = final(master, target)
    found = rows(stats)

    # one row a name, and each name is there
    assert set(found) == {("GET", name) for name in set(PART_OF) - {"/orders", "echo"} | {"refused"}} | {
        ("POST", "/orders"), ("POST", "echo")}
    # the counts are the target's own
    served = collections.Counter()
    for (_, method, part), count in target.counts.items():
        served[method, part] += count
    counted = collections.Counter()
    for (method, name), (requests, failures) in found.items():
        assert failures == (requests if name in FAILING else 0), (name, requests, failures)
        if name in PART_OF:
            counted[method, PART_OF[name]] += requests
    assert counted == served
    # one row a failure, with the same words whoever found it
    errors = collections.defaultdict(list)
    for e in stats["errors"]:
        errors[e["name"]].append(e["error"])
    assert set(errors) == FAILING
    assert not [texts for texts in errors.values() if len(texts) > 1]  # one row a failure
    for error in stats["errors"]:
        assert error["occurrences"] == found[error["method"], error["name"]][1], error
    # both classes ran on each worker
    for address in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
        for part in ("hello", "missing", "down", "orders", "echo"):
            assert any(a == address and p == part for a, _, p in target.counts), (address, part, target.counts)

    assert master.end() == 1
    assert [w.wait() for w in workers] == [0, 0]
    python.wait()
    master.assert_clean()
    for w in workers:
        assert not w.errors()

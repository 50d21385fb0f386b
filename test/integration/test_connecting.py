"""Names and addresses, as both engines use them. What needs a hosts file, a name server or addresses of its own has them
in namespaces of its own, where the kernel lets everybody make some."""
import collections
import http.server
import json
import select
import subprocess
import sys
import threading
import time

import pytest

from harness.worker import CICADA, SANITIZER

ENGINES = ("fast", "curl")
RUN_S = 60

# Run a program (argv) where /etc/hosts and /etc/resolv.conf are other ones, and where a name server never answers.
ELSEWHERE = """
import os, socket, subprocess, sys
hosts, servers = sys.argv[1:3]
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
for ours, theirs in ((hosts, "/etc/hosts"), (servers, "/etc/resolv.conf")):
    subprocess.run(["mount", "--bind", ours, theirs], check=True)
silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
silent.bind(("127.0.0.1", 53))
%s
sys.exit(subprocess.run(sys.argv[3:]).returncode)
"""

# A server in there: answers everything.
SERVER = """
import http.server, threading
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *args):
        pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256
server = Server(("127.0.0.1", 8000), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
"""


@pytest.fixture(scope="module")
def namespaces():
    try:
        done = subprocess.run(["unshare", "-rmn", "ip", "link", "set", "lo", "up"], capture_output=True, text=True)
    except OSError as e:
        pytest.skip("no namespaces here: %s" % e)
    if done.returncode != 0:
        pytest.skip("no namespaces here: %s" % done.stderr)


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


def command(engine, users, iterations, scenario):
    return [CICADA, "--headless", "--json", "--only-summary", "--engine", engine, "--threads", "1", "-u", str(users),
            "-r", str(users), "--iterations", str(iterations), "-f", scenario]


def run(argv):
    """(the requests and failures in all, stderr) of a run."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=RUN_S)
    assert not SANITIZER.search(done.stderr), done.stderr
    assert done.returncode in (0, 1), done.stderr
    rows = json.loads(done.stdout)
    return sum(row["num_requests"] for row in rows), sum(row["num_failures"] for row in rows), done.stderr


def run_elsewhere(folder, inside, argv):
    (folder / "hosts").write_text("127.0.0.1 localhost\n127.0.0.9 half-dead.test\n127.0.0.1 half-dead.test\n")
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    return run(["unshare", "-rmn", sys.executable, "-c", ELSEWHERE % inside, str(folder / "hosts"),
                str(folder / "resolv.conf")] + argv)


def scenario(folder, url, **step):
    path = folder / "scenario.json"
    path.write_text(json.dumps({"wait_time": 1000, "tasks": [{"steps": [{"get": url, **step}]}]}))
    return str(path)


def test_users_who_connect_together_all_try_each_address(namespaces, tmp_path, engine):
    """One of two addresses is dead: nobody may notice, however many users begin at once."""
    where = scenario(tmp_path, "http://half-dead.test:8000/")
    requests, failures, said = run_elsewhere(tmp_path, SERVER, command(engine, 40, 40, where))
    assert (requests, failures) == (40, 0), said


def test_a_name_server_that_never_answers_holds_nobody_up(namespaces, tmp_path, engine):
    where = scenario(tmp_path, "http://silent.test/", timeout={"connect": 0.2})
    begun = time.monotonic()
    requests, failures, said = run_elsewhere(tmp_path, "", command(engine, 5, 5, where))
    assert (requests, failures) == (5, 5), said
    assert "GET /: connect timed out" in said
    assert time.monotonic() - begun < 9  # the look-ups would go on for ten seconds and more


def test_source_addresses_take_turns_within_their_family(tmp_path, engine):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen[self.client_address[0]] += 1
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args):
            pass

    seen = collections.Counter()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        argv = command(engine, 6, 6, scenario(tmp_path, "http://127.0.0.1:%d/" % server.server_address[1]))
        for address in ("127.0.0.7", "::1", "127.0.0.8"):
            argv += ["--source-address", address]
        requests, failures, said = run(argv)
    finally:
        server.shutdown()
        server.server_close()
    if "no address ::1" in said:
        pytest.skip("no IPv6 here")
    assert (requests, failures) == (6, 0), said
    assert set(seen) == {"127.0.0.7", "127.0.0.8"} and sum(seen.values()) == 6


def test_a_source_address_of_another_machine_is_a_mistake(tmp_path):
    argv = command("auto", 1, 1, scenario(tmp_path, "http://127.0.0.1:9/")) + ["--source-address", "192.0.2.1"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=RUN_S)
    assert done.returncode == 2
    assert done.stdout == "cicada: --source-address: this machine has no address 192.0.2.1\n"


def test_the_server_is_first_to_close_when_it_said_so(tmp_path):
    """Who closes first cannot use its port for a minute, and the worker needs its ports."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"ok")
            gone, _, _ = select.select([self.connection], [], [], 0.2)
            closed_by[self.path].append("worker" if gone else "server")

        def log_message(self, *args):
            pass

    closed_by = collections.defaultdict(list)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    url = "http://127.0.0.1:%d" % server.server_address[1]
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps({"tasks": [{"steps": [url + "/first", {"pause": 1}, url + "/second", url + "/third"]}]}))
    try:
        requests, failures, said = run(command("fast", 3, 3, str(path)))
    finally:
        server.shutdown()
        server.server_close()
    assert (requests, failures) == (9, 0), said
    assert closed_by["/first"] == ["server"] * 3

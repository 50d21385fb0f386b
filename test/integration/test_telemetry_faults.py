"""The server summary from servers that fail in ways a real Prometheus will not on demand: everything is null, there is
one line for it, and no more time goes by than the time-outs. And what the requests look like on the wire."""
import base64
import json
import os
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.environ.get("CICADA_TELEMETRY_HARVEST", os.path.join(ROOT, "build", "test", "tools", "telemetry_harvest"))

START = 1_700_000_000
QUERIES = 29  # of the substrate profile
SLACK_S = 10  # for a busy machine; far less than what a fault would cost


def harvest(url, *args):
    command = [TOOL, "--url", url, "--run", "%d:%d" % (START, START + 600)] + [str(a) for a in args]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def leaves(value):
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    return [value]


def assert_nothing(found, *failures):
    """All null, and exactly these lines."""
    assert found["failures"] == list(failures)
    document = dict(found["document"])
    metadata = document.pop("metadata")
    assert (metadata["queries_ok"], metadata["queries_failed"]) == (0, QUERIES)
    assert document["cluster_packing"].pop("timeseries") == []
    assert set(leaves(document)) == {None} and set(found["flat"].values()) == {None}


def success(result, kind="vector", **more):
    return json.dumps(dict({"status": "success", "data": {"resultType": kind, "result": result}}, **more))


ONE = [{"metric": {}, "value": [START, "1"]}]


class Request:
    def __init__(self, handler):
        parts = urllib.parse.urlsplit(handler.path)
        length = int(handler.headers.get("Content-Length") or 0)
        self.method, self.path, self.headers = handler.command, parts.path, handler.headers
        self.body = handler.rfile.read(length).decode()
        self.form = {k: v for k, v in urllib.parse.parse_qsl(parts.query or self.body)}
        self.is_probe = self.form.get("query") == "vector(1)"


class Server:
    """answer(request) gives (status, headers, body)."""

    def __init__(self, answer, tls=None):
        self.requests = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                request = Request(self)
                outer.requests.append(request)
                status, headers, body = answer(request)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in headers:
                    self.send_header("Content-Length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            do_POST = do_GET

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        if tls:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        self.address = "127.0.0.1:%d" % self.http.server_address[1]
        self.url = ("https://" if tls else "http://") + self.address
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def serve():
    servers = []

    def start(answer, tls=None):
        servers.append(Server(answer, tls))
        return servers[-1]
    yield start
    for server in servers:
        server.close()


def fixed(status, body, headers=None):
    return lambda request: (status, headers or {"Content-Type": "application/json"}, body)


ERROR = json.dumps({"status": "error", "errorType": "bad_data", "error": "invalid parameter \"query\":\n1:4"})


@pytest.mark.parametrize("answer,why", [
    (fixed(503, "Service Unavailable"), "HTTP 503"),
    (fixed(503, json.dumps({"status": "error", "errorType": "timeout", "error": "query timed out"})),
     "HTTP 503: 'timeout': 'query timed out'"),
    (fixed(400, ERROR), "HTTP 400: 'bad_data': 'invalid parameter \"query\":\\n1:4'"),
    (fixed(422, ERROR), "HTTP 422: 'bad_data': 'invalid parameter \"query\":\\n1:4'"),
    (fixed(404, "404 page not found\n"), "HTTP 404"),
    (fixed(401, "<html>who are you</html>"), "HTTP 401"),
    (fixed(200, ERROR), "'bad_data': 'invalid parameter \"query\":\\n1:4'"),
    (fixed(200, "<!DOCTYPE html><title>Sign in</title>", {"Content-Type": "text/html"}),
     "an HTML page instead of an answer to a query"),
    (fixed(200, success(ONE)[:50]), "JSON that breaks off after 50 bytes"),
    (fixed(200, success(ONE), {"Content-Length": "1000"}), "answer cut short"),
    (fixed(200, ""), "an empty answer"),
    (fixed(200, "OK"), "not JSON (line 1, column 2)"),
    (fixed(200, success([])), "an answer to another question"),
    (fixed(302, "", {"Location": "https://login.example/start?from=secret"}),
     "HTTP 302, redirect to https://login.example/start"),
], ids=["503", "503-json", "400", "422", "404", "401", "200-error", "html", "truncated", "cut", "empty", "text", "no-sample",
        "login"])
def test_refused_in_one_line(serve, answer, why):
    server = serve(answer)
    now = time.time()
    found = harvest(server.url, "--run", "%r:%r" % (now - 10, now))
    assert_nothing(found, "Prometheus at %s/: %s" % (server.url, why))
    assert len(server.requests) == 1 and found["seconds"] < SLACK_S  # the lag of 70 s is not waited for


def test_absent():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % s.getsockname()[1]
        found = harvest("http://me:secret@%s/prom/" % address)
    assert_nothing(found, "Prometheus at http://%s/prom/: connection refused" % address)
    assert found["document"]["metadata"]["prom_url"] == "http://%s/prom/" % address
    assert "secret" not in json.dumps(found)


def test_hanging():
    with socket.socket() as s:  # takes connections, never answers
        s.bind(("127.0.0.1", 0))
        s.listen(64)
        address = "127.0.0.1:%d" % s.getsockname()[1]
        found = harvest("http://" + address)
    assert_nothing(found, "Prometheus at http://%s/: timed out after 5 s" % address)
    assert 4.9 < found["seconds"] < 5 + SLACK_S


def test_hanging_after_the_probe(serve):
    def answer(request):
        if not request.is_probe:
            time.sleep(12)
        return 200, {}, success(ONE)
    found = harvest(serve(answer).url, "--lag", 0)
    assert_nothing(found, "server telemetry: cluster_packing and 7 more queries: timed out after 8 s",
                   "server telemetry: snapshots.size_{p50,p90,p95,p99,avg}_mb and 20 more queries: timed out after 5 s")
    assert 7.9 < found["seconds"] < 8 + SLACK_S  # all at once


def test_slow_costs_only_what_is_late(serve):
    def answer(request):
        if request.is_probe:
            return 200, {}, success(ONE)
        if request.path.endswith("query_range"):
            time.sleep(10)
        return 200, {}, success([{"metric": {}, "value": [START, "7"]}])
    found = harvest(serve(answer).url, "--lag", 0)
    assert found["failures"] == ["server telemetry: cluster_packing and 7 more queries: timed out after 8 s"]
    document = found["document"]
    assert (document["metadata"]["queries_ok"], document["metadata"]["queries_failed"]) == (21, 8)
    assert document["snapshots"]["checkpoints_in_window"] == 7
    assert document["node_psi"]["cpu_stall_pct"]["p50"] is None


def test_each_failure_leaves_its_own_fields_null(serve):
    def answer(request):
        query = request.form["query"]
        if "Restore" in query:
            return 503, {}, "no"
        if "container_pressure_io" in query:
            return 200, {}, "<html>"
        if request.path.endswith("query_range"):
            return 200, {}, success([{"metric": {"a": "b"}, "values": [[START, "0.5"], [START + 10, "NaN"], [1], "x"]}],
                                    "matrix")
        return 200, {}, success([{"metric": {}, "value": [START, "7"]}], infos=["a remark"])
    found = harvest(serve(answer).url, "--lag", 0)
    assert found["failures"] == [
        "server telemetry: node_psi.io_stall_pct and 1 more queries: an HTML page instead of an answer to a query",
        "server telemetry: snapshots.restore_{p50,p90,p95,p99,mean}_s and 5 more queries: HTTP 503"]
    document = found["document"]
    assert document["snapshots"]["restore_p50_s"] is None and document["snapshots"]["checkpoint_p50_s"] == 7
    assert document["node_psi"]["io_stall_pct"]["avg"] is None and document["node_psi"]["cpu_stall_pct"]["avg"] == 50
    assert len(found["remarks"]) == 21 - 6 and "'a remark'" in found["remarks"][0]


def test_a_partial_answer_is_noted(serve):
    """It is taken; that some store of a Thanos did not answer is one line for all that it said so of."""
    def answer(request):
        warnings = {"warnings": ["store eu-1 is down"]} if "Restore" in request.form["query"] else {}
        return 200, {}, success([{"metric": {}, "value": [START, "7"]}], **warnings)
    found = harvest(serve(answer).url, "--lag", 0)
    line, = [line for line in found["failures"] if "warning" in line]
    assert line == "server telemetry: snapshots.restore_{p50,p90,p95,p99,mean}_s and 5 more queries: " \
        "answered with a warning: 'store eu-1 is down'"
    assert found["document"]["snapshots"]["restore_p50_s"] == 7


def test_negative_growth_is_null(serve):
    found = harvest(serve(lambda r: (200, {}, success([{"metric": {}, "value": [START, "-5"]}]))).url, "--lag", 0)
    shot = found["document"]["snapshots"]
    assert shot["checkpoints_in_window"] is None and shot["throughput_mb_s"] is None and shot["size_avg_mb"] is None


def test_the_lag_is_waited_for_from_the_end_of_the_run(serve):
    server = serve(fixed(200, success(ONE)))
    now = time.time()
    run = ("--run", "%r:%r" % (now - 10, now - 1), "--lag", 3)
    found = harvest(server.url, *run)
    assert 1 < found["seconds"] < 2 + SLACK_S
    assert harvest(server.url, *run, "--lag", 0)["seconds"] < SLACK_S
    aborted = harvest(server.url, *run, "--lag", 60, "--aborted")
    assert aborted["seconds"] < SLACK_S and len(aborted["failures"]) == 1


def test_requests(serve, tmp_path):
    server = serve(fixed(200, success(ONE)))
    profile = {"profile": "own", "variables": {"long": ""}, "measurements": [
        {"name": "short", "kind": "value", "query": "up"},
        {"name": "long", "kind": "value", "query": "vector(1) # ${long}"},
        {"name": "load", "kind": "range_distribution", "query": "up"}]}
    path = tmp_path / "own.json"
    path.write_text(json.dumps(profile))
    found = harvest("http://%s/some/base//" % server.address, "--profile", path, "--var", "long=" + "x" * 10240,
                    "--bearer", "to-ken", "--header", "X-Scope-OrgID: me")
    assert found["failures"] == []
    probe, *rest = server.requests
    asked = {(r.method, r.path): r for r in rest}
    assert set(asked) == {("GET", "/some/base/api/v1/query"), ("POST", "/some/base/api/v1/query"),
                          ("GET", "/some/base/api/v1/query_range")}
    for request in server.requests:
        assert request.headers["Authorization"] == "Bearer to-ken" and request.headers["X-Scope-OrgID"] == "me"
    posted = asked["POST", "/some/base/api/v1/query"]
    assert posted.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert posted.form == {"query": "vector(1) # " + "x" * 10240, "time": str(START + 600)}
    assert asked["GET", "/some/base/api/v1/query"].form == {"query": "up", "time": str(START + 600)}
    assert asked["GET", "/some/base/api/v1/query_range"].form == {
        "query": "up", "start": str(START), "end": str(START + 600), "step": "10"}


def test_user_and_password_of_the_url(serve):
    server = serve(fixed(403, "no"))
    found = harvest("http://me:s%%40cret@%s" % server.address)
    assert server.requests[0].headers["Authorization"] == "Basic " + base64.b64encode(b"me:s@cret").decode()
    assert_nothing(found, "Prometheus at http://%s/: HTTP 403" % server.address)
    assert found["document"]["metadata"]["prom_url"] == "http://" + server.address
    assert "cret" not in json.dumps(found)


def test_a_ca_of_ones_own(serve, tmp_path):
    key, cert = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
                    "-subj", "/CN=prom", "-addext", "subjectAltName=IP:127.0.0.1"], check=True,
                   stderr=subprocess.DEVNULL, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server = serve(fixed(200, success(ONE)), context)
    assert harvest(server.url, "--ca", cert, "--lag", 0)["failures"] == []
    failures = harvest(server.url, "--lag", 0)["failures"]
    assert len(failures) == 1 and "TLS: " in failures[0]

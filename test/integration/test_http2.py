"""HTTP/2 and proxies, which the curl engine has: against nginx, a server of HTTP/2 that misbehaves, and proxies."""
import collections
import gzip
import json
import os
import shutil
import subprocess

import pytest

from harness.process import Process, free_port, wait_for
from harness.worker import CICADA, SANITIZER
from hostile import Certificates
from http2_server import Http2Server
from proxies import Proxy

FOLDER = os.path.dirname(CICADA) if os.sep in CICADA else "build"
ENGINE_RUN = os.path.join(FOLDER, "test", "tools", "engine_run")
RUN_S = 20  # a run ends when its requests are done; this is for one that hangs

CLOSED = "connection closed before the response was complete"
STREAM = "HTTP/2 stream reset"
NO_HTTP2 = "no HTTP/2 from the server"
PROXY = "refused by the proxy"

CONFIG = """
daemon off;
master_process off;
{user}
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 500; }}
http {{
    log_format row '$connection $server_protocol $request_method $request_uri $status';
    access_log {folder}/access.log row;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 100000;
    gzip on;
    gzip_types *;
    gzip_min_length 1;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    server {{
        listen 127.0.0.1:{h2} ssl http2;
        listen 127.0.0.1:{h2c} http2;
        listen 127.0.0.1:{tls} ssl;
        listen 127.0.0.1:{plain};
        root {folder};
        location = /ok {{ return 200 ok; }}
        location = /redirect {{ return 302 /ok; }}
        location = /empty {{ return 204; }}
        location = /cookie {{ add_header Set-Cookie "a=b"; return 200 "cookie=$cookie_a"; }}
        location = /post {{ proxy_pass http://127.0.0.1:{plain}/posted; }}
        location = /posted {{ return 200 "$http_x_mine"; }}
        location = /missing {{ return 404; }}
    }}
    server {{
        listen 127.0.0.1:{one} ssl http2;
        listen 127.0.0.1:{one_c} http2;
        keepalive_requests 1;
        location / {{ return 200 ok; }}
    }}
}}
"""


class Nginx(Process):
    PORTS = ("h2", "h2c", "tls", "plain", "one", "one_c")

    def __init__(self, folder, certificates):
        self.ports = {name: free_port() for name in self.PORTS}
        self.log = os.path.join(folder, "access.log")
        config = os.path.join(folder, "nginx.conf")
        with open(os.path.join(folder, "large"), "w") as f:
            f.write("0123456789abcdef" * 20000)
        with open(config, "w") as f:
            f.write(CONFIG.format(folder=folder, certificate=certificates.at("good.pem"), key=certificates.at("good.key"),
                                  user="user root;" if os.geteuid() == 0 else "", **self.ports))
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        super().__init__("nginx", [program, "-p", folder, "-c", config, "-e", folder + "/error.log"], folder)

    def url(self, name):
        return "%s://127.0.0.1:%d" % ("https" if name in ("h2", "tls", "one") else "http", self.ports[name])

    def mark(self):
        return os.path.getsize(self.log)

    def rows(self, since, count):
        """(connection, protocol, method, path, status) of each request since then, which are count; nginx logs behind
        the answer."""
        def read():
            with open(self.log) as f:
                f.seek(since)
                return [line.split() for line in f.read().split("\n")[:-1] if "/posted" not in line]

        wait_for(lambda: len(read()) >= count, 10, lambda: "%d rows, not %s" % (count, read()))
        return read()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(str(tmp_path_factory.mktemp("certificates")))


@pytest.fixture(scope="module")
def nginx(certificates, tmp_path_factory):
    process = Nginx(str(tmp_path_factory.mktemp("nginx")), certificates)
    process.start()
    wait_for(lambda: os.path.exists(process.log) and process.alive(), 10, "nginx to start")
    yield process
    process.kill()


def run(folder, certificates, scenario, requests, host, users=1, env=None):
    """What the engine counted; "auto" takes curl."""
    file = folder / "scenario.json"
    file.write_text(json.dumps(scenario))
    argv = [ENGINE_RUN, "-u", str(users), "-t", str(RUN_S), "-n", str(requests), "-H", host, str(file)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=RUN_S * 4, text=True,
                          env=dict(os.environ, SSL_CERT_FILE=certificates.ca_file, **(env or {})))
    assert done.returncode == 0 and not SANITIZER.search(done.stderr), done.stderr
    return json.loads(done.stdout)


def of(steps, **more):
    return {"wait_time": {"constant": 1000}, **more, "tasks": [{"name": "task", "steps": steps}]}


def errors(result):
    return [(name, error) for _, name, error, count in result["errors"] for _ in range(count)]


# --- nginx ---

@pytest.mark.smoke
@pytest.mark.parametrize("server", ("h2", "h2c"))
def test_all_that_a_scenario_does_goes_over_one_connection(nginx, certificates, tmp_path, server):
    since = nginx.mark()
    steps = [
        {"get": "/ok", "check": {"body": "ok"}},
        {"head": "/ok", "name": "head"},
        {"get": "/redirect", "name": "redirect", "check": {"size": {">=": 2}}},
        {"get": "/redirect", "name": "stays", "redirects": False, "expect": 302},
        {"get": "/empty", "expect": 204},
        {"get": "/missing", "expect": 404},
        {"get": "/cookie", "name": "first"},
        {"get": "/cookie", "name": "second", "check": {"body": "cookie=b", "headers": {"content-type": "text/plain"}}},
        {"post": "/post", "body": "x" * 100000, "headers": {"X-Mine": "mine", "Connection": "keep-alive"}, "check": {"body": "mine"}},
        {"get": "/large", "headers": {"Accept-Encoding": "gzip"}, "check": {"body": {"contains": "abcdef0123"}, "size": 320000}},
    ]
    result = run(tmp_path, certificates, of(steps * 3, http2=True), len(steps) * 3, nginx.url(server))
    assert errors(result) == []
    assert result["requests"] == len(steps) * 3
    rows = nginx.rows(since, (len(steps) + 1) * 3)  # a redirect was followed
    assert {row[1] for row in rows} == {"HTTP/2.0"} and len({row[0] for row in rows}) == 1
    assert len(rows) == (len(steps) + 1) * 3
    assert result["retries"] == 0


@pytest.mark.parametrize("server", ("h2", "h2c"))
def test_each_user_has_its_own_connection(nginx, certificates, tmp_path, server):
    since = nginx.mark()
    scenario = {"http2": True, "wait_time": 0.01, "tasks": ["/ok"]}
    result = run(tmp_path, certificates, scenario, 200, nginx.url(server), users=10)
    assert errors(result) == []
    by_connection = collections.Counter(row[0] for row in nginx.rows(since, 200))
    assert len(by_connection) == 10 and min(by_connection.values()) > 1


@pytest.mark.parametrize("server", ("one", "one_c"))
def test_a_connection_for_each_request_when_the_server_wants_it(nginx, certificates, tmp_path, server):
    since = nginx.mark()
    result = run(tmp_path, certificates, of([{"get": "/"}, {"post": "/"}] * 5, http2=True), 10, nginx.url(server))
    assert errors(result) == [] and len({row[0] for row in nginx.rows(since, 10)}) == 10


@pytest.mark.parametrize("server", ("tls", "plain"))
def test_http_1_is_not_measured_in_place_of_http_2(nginx, certificates, tmp_path, server):
    steps = [{"get": "/ok"}, {"head": "/ok"}, {"post": "/ok", "body": "x"}]
    result = run(tmp_path, certificates, of(steps, http2=True), 3, nginx.url(server))
    assert errors(result) == [("/ok", NO_HTTP2)] * 3


def test_classes_may_differ(nginx, certificates, tmp_path):
    since = nginx.mark()
    users = [{"name": "one", "http2": False, "wait_time": 1000, "tasks": ["/ok?one"]},
             {"name": "two", "wait_time": 1000, "tasks": ["/ok?two"]}]
    result = run(tmp_path, certificates, {"http2": True, "users": users}, 2, nginx.url("h2"), users=2)
    assert errors(result) == []
    assert {(row[3], row[1]) for row in nginx.rows(since, 2)} == {("/ok?one", "HTTP/1.1"), ("/ok?two", "HTTP/2.0")}


def test_the_phases_are_measured(nginx, certificates, tmp_path):
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(of([{"get": "/ok"}] * 3, http2=True)))
    done = subprocess.run([ENGINE_RUN, "-p", "-u", "1", "-t", "20", "-n", "3", "-H", nginx.url("h2"), str(file)], check=True,
                          stdout=subprocess.PIPE, env=dict(os.environ, SSL_CERT_FILE=certificates.ca_file))
    found = json.loads(done.stdout)
    assert errors(found) == []
    phases = ("connect", "tls", "first_byte", "body")
    assert [found[name]["count"] for name in phases] == [1, 1, 3, 3]


# --- faults ---

# What the server does with the first request, how that ends, and the connections that it and the next one took.
CASES = {
    "good": ("", 1), "no-length": ("", 1), "interim": ("", 1), "trailer": ("", 1), "no-content": ("", 1), "cookie": ("", 1),
    "goaway": ("", 2), "goaway-close": ("", 2), "answer-close": ("", 2), "reset-done": ("", 1),
    "reset": (STREAM, 1), "reset-body": (STREAM, 1), "refused": ("", 2),
    "goaway-unprocessed": ("", 2), "goaway-error": ("", 2), "close": ("", 2), "close-body": (CLOSED, 2),
    "short": (STREAM, 1), "long": (STREAM, 1), "two-lengths": (STREAM, 1), "connection": (STREAM, 1), "no-status": (STREAM, 1), "capitals": (STREAM, 1),
    "silent": ("timed out", 1),
    "hpack": ("", 2), "garbage": ("", 2),  # taken for a connection that was ending, as those of a goaway and close
}


@pytest.mark.parametrize("tls", (False, True), ids=("h2c", "tls"))
@pytest.mark.parametrize("case", CASES)
def test_a_fault_is_one_failure_and_the_user_goes_on(certificates, tmp_path, case, tls):
    failure, connections = CASES[case]
    with Http2Server(["good", case, "good"], certificates if tls else None) as server:
        steps = [{"get": "/before"}, {"get": "/fault", "timeout": 0.5 if case == "silent" else 20}, {"get": "/after"}]
        result = run(tmp_path, certificates, of(steps, http2=True), 3, server.url)
        assert errors(result) == ([("/fault", failure)] if failure else [])
        assert (result["requests"], result["failures"], server.connections) == (3, 1 if failure else 0, connections)


@pytest.mark.parametrize("tls", (False, True), ids=("h2c", "tls"))
def test_what_goes_across_a_goaway_is_sent_anew_unless_it_is_a_post(certificates, tmp_path, tls):
    with Http2Server(["good", "goaway-unprocessed"], certificates if tls else None) as server:
        steps = [{"get": "/"}, {"post": "/", "body": "x", "name": "post"}]
        result = run(tmp_path, certificates, of(steps, http2=True), 2, server.url)
        assert errors(result) == [("post", CLOSED)] and result["retries"] == 0
    with Http2Server(["good", "goaway-unprocessed", "good"], certificates if tls else None) as server:
        result = run(tmp_path, certificates, of([{"get": "/"}] * 3, http2=True), 3, server.url)
        assert errors(result) == [] and (result["retries"], server.connections, server.requests) == (1, 2, 4)


@pytest.mark.parametrize("tls", (False, True), ids=("h2c", "tls"))
@pytest.mark.parametrize("case", ("goaway", "goaway-close", "answer-close"))
def test_every_request_is_done_when_each_answer_ends_the_connection(certificates, tmp_path, case, tls):
    with Http2Server([case], certificates if tls else None) as server:
        # a POST that meets a connection closed without a word is not sent twice
        steps = [{"get": "/"}, {"get": "/"} if case == "answer-close" else {"post": "/", "body": "x"}] * 20
        result = run(tmp_path, certificates, of(steps, http2=True), 40, server.url)
        assert errors(result) == [] and server.requests == server.connections == 40


def test_a_server_that_chooses_nothing_by_alpn(certificates, tmp_path):
    with Http2Server(["good"], certificates, alpn=()) as server:
        result = run(tmp_path, certificates, of([{"get": "/"}], http2=True), 1, server.url)
        assert len(errors(result)) == 1 and server.requests == 0


# --- proxies ---

@pytest.mark.smoke
@pytest.mark.parametrize("server, protocol, line", (
    ("plain", "HTTP/1.1", "GET %s/ok HTTP/1.1"), ("tls", "HTTP/1.1", "CONNECT %s HTTP/1.1"),
    ("h2", "HTTP/2.0", "CONNECT %s HTTP/1.1"), ("h2c", "HTTP/2.0", "CONNECT %s HTTP/1.1")))
def test_a_proxy(nginx, certificates, tmp_path, server, protocol, line):
    url = nginx.url(server)
    since = nginx.mark()
    with Proxy("me:se/cret") as proxy:
        scenario = of([{"get": "/ok", "check": {"body": "ok"}}] * 3, http2=protocol == "HTTP/2.0", proxy="http://me:se%2Fcret@" + proxy.address)
        result = run(tmp_path, certificates, scenario, 3, url, env={"no_proxy": "*"})
        assert errors(result) == []
        first = line % (url if line.startswith("GET") else url.split("//")[1])
        assert set(proxy.seen) == {first} and len(proxy.seen) == (3 if line.startswith("GET") else 1)
        assert proxy.connections == 1
    assert [row[1] for row in nginx.rows(since, 3)] == [protocol] * 3


@pytest.mark.parametrize("server, failure", (("plain", "HTTP status 407"), ("tls", PROXY), ("h2", PROXY), ("h2c", PROXY)))
def test_a_proxy_that_wants_another_password(nginx, certificates, tmp_path, server, failure):
    with Proxy("me:secret") as proxy:
        scenario = of([{"get": "/ok"}] * 2, http2=server.startswith("h2"), proxy="http://me:other@" + proxy.address)
        assert errors(run(tmp_path, certificates, scenario, 2, nginx.url(server))) == [("/ok", failure)] * 2


@pytest.mark.parametrize("server, failure", (("plain", "HTTP status 502"), ("tls", PROXY), ("h2", PROXY)))
def test_a_proxy_that_cannot_reach_the_server(nginx, certificates, tmp_path, server, failure):
    with Proxy() as proxy:
        proxy.refuse = True
        scenario = of([{"get": "/ok"}, {"post": "/ok", "body": "x"}], http2=server == "h2", proxy="http://" + proxy.address)
        assert errors(run(tmp_path, certificates, scenario, 2, nginx.url(server))) == [("/ok", failure)] * 2


@pytest.mark.parametrize("server", ("plain", "tls", "h2", "h2c"))
@pytest.mark.parametrize("scheme", ("socks5", "socks5h"))
def test_socks(nginx, certificates, tmp_path, server, scheme):
    port = nginx.ports[server]
    host = "%s://localhost:%d" % (nginx.url(server).split(":")[0], port)
    with Proxy("me:secret", socks=True) as proxy:
        scenario = of([{"get": "/ok"}] * 2, http2=server.startswith("h2"), proxy="%s://me:secret@%s" % (scheme, proxy.address))
        assert errors(run(tmp_path, certificates, scenario, 2, host)) == []
        kind, name, to = proxy.seen[0]
        assert to == port and (kind, name) == ((3, "localhost") if scheme == "socks5h" else (1, "127.0.0.1"))
        proxy.refuse = True
        assert errors(run(tmp_path, certificates, scenario, 2, host)) == [("/ok", PROXY)] * 2


def test_a_proxy_that_is_not_there(nginx, certificates, tmp_path):
    scenario = of([{"get": "/ok"}], proxy="http://127.0.0.1:%d" % free_port())
    assert errors(run(tmp_path, certificates, scenario, 1, nginx.url("tls"))) == [("/ok", "connection refused")]


# --- the command line ---

def headless(*args, **more):
    return subprocess.run([CICADA, "--headless", *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60, **more)


def text_of(path):
    data = path.read_bytes()
    return (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode()


def test_flags_are_for_all_classes_and_no_password_is_told(nginx, certificates, tmp_path):
    since = nginx.mark()
    results = tmp_path / "results"
    with Proxy("me:geheim") as proxy:
        done = headless("--http2", "--proxy", "http://me:geheim@" + proxy.address, "-t", "2", "-u", "1", "--loglevel", "DEBUG", "--json-file",
                        tmp_path / "out.json", "--html", tmp_path / "out.html", "--csv", tmp_path / "out", "--results-dir", results,
                        nginx.url("h2") + "/ok", env=dict(os.environ, SSL_CERT_FILE=certificates.ca_file))
        assert done.returncode == 0, done.stdout
        assert proxy.connections == 1
    assert {row[1] for row in nginx.rows(since, 1)} == {"HTTP/2.0"}
    texts = [done.stdout] + [text_of(path) for path in tmp_path.rglob("*") if path.is_file()]
    assert len(texts) > 5 and not any("geheim" in text for text in texts)


@pytest.mark.parametrize("keys, flags, words", (
    ({"http2": True}, ("--engine", "fast"), "{file}: the engine 'fast' has no HTTP/2: leave the engine to 'auto', or take 'curl'"),
    ({"proxy": "http://me:geheim@h:1"}, ("--engine", "fast"),
     "{file}: the engine 'fast' has no proxies: leave the engine to 'auto', or take 'curl'"),
    ({"engine": "fast"}, ("--http2",), "{file}: the engine 'fast' has no HTTP/2: leave the engine to 'auto', or take 'curl'"),
    ({}, ("--proxy", "http://me:geheim@h"), "--proxy: the URL has no port: write http://host:port"),
    ({}, ("--proxy", "me:geheim@h:80"), "--proxy: the URL must begin with http://, https://, socks4://, socks4a://, socks5:// or socks5h://"),
))
def test_what_does_not_fit_is_a_mistake(tmp_path, keys, flags, words):
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps({**keys, "host": "http://127.0.0.1:1", "tasks": ["/"]}))
    done = headless("-f", file, "-t", "1", *flags)
    assert done.returncode == 2 and "geheim" not in done.stdout
    assert done.stdout.splitlines()[-1] == "cicada: " + words.format(file=file)

"""Cookies and coded bodies of both engines against a small server. Where Locust's client does the same, the requests
library goes through the same steps as a third engine."""
import gzip
import http.server
import itertools
import json
import os
import ssl
import subprocess
import threading
import time
import types
import zlib

import pytest
import requests

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.environ.get("CICADA_ENGINE_RUN", os.path.join(ROOT, "build", "test", "tools", "engine_run"))
RUN_S = 60  # the most that a run may take


class Server:
    """Answers by a table of paths, {path: answer or function that gives one}, and notes what came. An
    answer is a dictionary: status, set (cookies), headers, body, close (without a word), cut (the body's promised length)."""

    def __init__(self, answers=None, certificate=None):
        self.answers = answers or {}
        self.seen = []
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.http.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.port = self.http.server_address[1]
        self.url = "%s://127.0.0.1:%d" % ("https" if certificate else "http", self.port)
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def handler(server):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self):
                server.seen.append(types.SimpleNamespace(
                    path=self.path, headers=self.headers, cookie=self.headers.get("Cookie"), client=self.client_address,
                    body=self.rfile.read(int(self.headers.get("Content-Length", 0)))))
                answer = server.answers.get(self.path, {})
                answer = answer() if callable(answer) else answer
                body = answer.get("body", b"")
                self.send_response(answer.get("status", 200))
                for value in answer.get("set", []):
                    self.send_header("Set-Cookie", value)
                for name, value in answer.get("headers", {}).items():
                    self.send_header(name, value)
                if "Transfer-Encoding" not in answer.get("headers", {}):
                    self.send_header("Content-Length", str(answer.get("cut", len(body))))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)
                self.close_connection |= answer.get("close", False) or "cut" in answer

            do_GET = do_POST = do_PUT = do_HEAD = answer

            def log_message(self, *args):
                pass

        return Handler

    def cookies(self):
        """(path, Cookie header) of each request."""
        return [(r.path, r.cookie) for r in self.seen]

    def close(self):
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def serve(started):
    def start(*args, **kwargs):
        server = Server(*args, **kwargs)
        started.append(server)
        return server
    return start


@pytest.fixture
def certificate(tmp_path):
    path = str(tmp_path / "certificate.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path, "-out", path + ".crt"], check=True, capture_output=True)
    with open(path, "a") as out, open(path + ".crt") as crt:
        out.write(crt.read())
    return path


def run_ours(tmp_path, flags, host, steps, users):
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps({"host": host, "insecure": True, "wait_time": 3600, "tasks": [{"steps": steps}]}))
    out = subprocess.run([TOOL, *flags, "-u", str(users), "-n", str(users * len(steps)), "-t", str(RUN_S), str(scenario)],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=2 * RUN_S)
    assert out.returncode == 0, out.stderr.decode()
    result = json.loads(out.stdout)
    assert result["requests"] == result["started"] == users * len(steps), result
    return result


def run_requests(host, steps):
    result = {"bytes": 0, "failures": 0}
    requests.packages.urllib3.disable_warnings()
    with requests.Session() as session:
        session.trust_env = False
        for step in steps:
            method = next(m for m in ("get", "post", "put", "head") if m in step)
            url = step[method] if "://" in step[method] else host + step[method]
            try:
                response = session.request(method, url, headers=step.get("headers"), data=step.get("body"), verify=False)
                result["failures"] += response.status_code >= 400
                result["bytes"] += len(response.content)
            except requests.RequestException:
                result["failures"] += 1
    return result


@pytest.fixture(params=["fast", "curl", "requests"])
def run_like_locust(request, tmp_path):
    """run(host, steps): one user goes through the steps once."""
    def run(host, steps):
        steps = [{"get": s} if isinstance(s, str) else s for s in steps]
        if request.param == "requests":
            return run_requests(host, steps)
        return run_ours(tmp_path, ["-c"] if request.param == "curl" else [], host, steps, 1)
    return run


@pytest.fixture(params=["fast", "curl"])
def run(request, tmp_path):
    """run(host, steps, users): each user goes through the steps once."""
    def run(host, steps, users=1):
        return run_ours(tmp_path, ["-c"] if request.param == "curl" else [], host, steps, users)
    return run


# --- cookies --------------------------------------------------------------------------------------

def test_a_login_is_kept(serve, run_like_locust):
    server = serve({"/login": {"set": ["sid=abc; Path=/; HttpOnly", "lang=en; Path=/"]}})
    result = run_like_locust(server.url, ["/before", {"post": "/login", "body": "user=a"}, "/after", {"post": "/cart", "body": "x"}])
    assert result["failures"] == 0
    assert server.cookies() == [("/before", None), ("/login", None), ("/after", "sid=abc; lang=en"), ("/cart", "sid=abc; lang=en")]
    assert server.seen[-1].body == b"x"


def test_each_user_has_its_own(serve, run):
    numbers = itertools.count()
    server = serve({"/login": lambda: {"set": ["sid=%d" % next(numbers)]}})
    run(server.url, ["/login", "/a", "/b"], users=20)
    by_user = {}
    for r in server.seen:
        by_user.setdefault(r.client, []).append((r.path, r.cookie))
    assert len(by_user) == 20
    cookies = set()
    for first, *rest in by_user.values():
        assert first == ("/login", None)
        assert [path for path, _ in rest] == ["/a", "/b"] and rest[0][1] == rest[1][1]
        cookies.add(rest[0][1])
    assert cookies == {"sid=%d" % n for n in range(20)}


def test_failures_by_status_set_cookies_too(serve, run_like_locust):
    server = serve({"/a": {"status": 404, "set": ["a=1"]}, "/b": {"status": 503, "set": ["b=2"], "body": b"x"}})
    assert run_like_locust(server.url, ["/a", "/b", "/c"])["failures"] == 2
    assert server.cookies()[-1] == ("/c", "a=1; b=2")


def test_a_response_that_breaks_off_has_set_its_cookies(serve, run):
    server = serve({"/a": {"set": ["a=1"], "body": b"x", "cut": 10}, "/b": {"set": ["b=2"], "cut": 10}})
    assert run(server.url, ["/a", "/b", "/c"])["failures"] == 2
    assert server.cookies()[-1] == ("/c", "a=1; b=2")


def test_paths(serve, run_like_locust):
    server = serve({"/shop/login": {"set": ["deep=1; Path=/shop/cart", "all=2; Path=/", "own=3"]}})
    run_like_locust(server.url, ["/shop/login", "/shop/cart/1", "/shop/cartoon", "/shop", "/"])
    assert server.cookies()[1:] == [("/shop/cart/1", "deep=1; own=3; all=2"), ("/shop/cartoon", "own=3; all=2"),
                                    ("/shop", "own=3; all=2"), ("/", "all=2")]


def test_domains_by_the_host_header(serve, run_like_locust):
    def at(host, path):
        return {"get": path, "headers": {"Host": host}}
    server = serve({"/set": {"set": ["d=1; Domain=shop.example", "h=2", "x=3; Domain=other.example"]}})
    run_like_locust(server.url, [at("www.shop.example", "/set"), at("www.shop.example:80", "/a"), at("api.shop.example", "/b"),
                                 at("shop.example.org", "/c"), "/d"])
    assert server.cookies()[1:] == [("/a", "d=1; h=2"), ("/b", "d=1"), ("/c", None), ("/d", None)]


def test_secure_cookies_go_to_https_only(serve, run_like_locust, certificate):
    secure = serve({"/set": {"set": ["s=1; Secure; Path=/", "p=2; Path=/"]}}, certificate)
    plain = serve()
    run_like_locust(secure.url, ["/set", "/a", plain.url + "/b", secure.url + "/c"])
    assert secure.cookies() == [("/set", None), ("/a", "s=1; p=2"), ("/c", "s=1; p=2")]
    assert plain.cookies() == [("/b", "p=2")]


def test_prefixes(serve, run, certificate):
    cookies = ["__Secure-a=1; Secure", "__Host-b=2; Secure; Path=/", "__Secure-c=3", "__Host-d=4; Secure; Path=/x"]
    secure, plain = serve({"/set": {"set": cookies}}, certificate), serve({"/set": {"set": cookies}})
    run(plain.url, ["/set", "/a", secure.url + "/a", secure.url + "/set", secure.url + "/b"])
    assert plain.cookies()[-1] == ("/a", None)
    assert secure.cookies() == [("/a", None), ("/set", None), ("/b", "__Secure-a=1; __Host-b=2")]


def test_cookies_of_redirects(serve, run_like_locust):
    server = serve({"/login": {"status": 302, "set": ["sid=1"], "headers": {"Location": "/hop"}},
                    "/hop": {"status": 307, "set": ["hop=2", "sid=3"], "headers": {"Location": "/home"}}})
    run_like_locust(server.url, [{"post": "/login", "body": "x"}, "/next"])
    assert server.cookies() == [("/login", None), ("/hop", "sid=1"), ("/home", "sid=3; hop=2"), ("/next", "sid=3; hop=2")]


def test_redirect_to_another_host(serve, run_like_locust):
    there = serve({"/there": {"set": ["there=2"]}})
    here = serve({"/here": {"status": 301, "set": ["here=1"], "headers": {"Location": "http://localhost:%d/there" % there.port}}})
    run_like_locust(here.url, ["/here", "/a", "http://localhost:%d/b" % there.port])
    assert here.cookies() == [("/here", None), ("/a", "here=1")]
    assert there.cookies() == [("/there", None), ("/b", "there=2")]


def test_the_scenarios_own_cookie_header_wins_up_to_a_redirect(serve, run_like_locust):
    server = serve({"/set": {"set": ["a=1"]}, "/go": {"status": 302, "headers": {"Location": "/gone"}}})
    own = {"cookie": "own=9"}
    run_like_locust(server.url, ["/set", {"get": "/a", "headers": own}, {"get": "/go", "headers": own}, "/b"])
    assert server.cookies() == [("/set", None), ("/a", "own=9"), ("/go", "own=9"), ("/gone", "a=1"), ("/b", "a=1")]


def test_deleted_and_expired(serve, run_like_locust):
    server = serve({
        "/set": {"set": ["a=1", "b=2", "c=3; Max-Age=1", "d=4; Max-Age=3600", "e=5; Expires=Fri, 01-Jan-2100 00:00:00 GMT"]},
        "/delete": {"set": ["a=; Max-Age=0", "b=x; Expires=Thu, 01 Jan 1970 00:00:00 GMT"]},
        "/later": lambda: time.sleep(1.1) or {}})  # until c is over
    run_like_locust(server.url, ["/set", "/delete", "/later", "/end"])
    assert server.cookies()[1] == ("/delete", "a=1; b=2; c=3; d=4; e=5")
    assert server.cookies()[-1] == ("/end", "d=4; e=5")


def test_every_size_of_body_goes_behind_the_cookies(serve, run):
    server = serve({"/set": {"set": ["a=1"]}})
    bodies = ["", "x", "y" * 16384, "z" * 16385, "w" * 20_000_000]
    result = run(server.url, ["/set"] + [{"post": "/%d" % len(b), "body": b} for b in bodies])
    assert result["failures"] == 0
    for body, r in zip(bodies, server.seen[1:], strict=True):
        assert (r.path, r.cookie, len(r.body)) == ("/%d" % len(body), "a=1", len(body))
        assert r.body == body.encode()


def test_cookies_over_tls(serve, run, certificate):
    server = serve({"/set": {"set": ["a=1; Secure"]}}, certificate)
    bodies = ["x", "w" * 1_000_000]
    assert run(server.url, ["/set"] + [{"post": "/%d" % len(b), "body": b} for b in bodies])["failures"] == 0
    assert [(r.cookie, r.body.decode()) for r in server.seen[1:]] == [("a=1", b) for b in bodies]


def test_cookies_on_a_new_connection(serve, run):
    server = serve({"/set": {"set": ["a=1"], "close": True}, "/a": {"close": True}, "/b": {"close": True}})
    assert run(server.url, ["/set", "/a", "/b", "/c"])["failures"] == 0
    assert len({r.client for r in server.seen}) == 4
    assert server.cookies()[1:] == [("/a", "a=1"), ("/b", "a=1"), ("/c", "a=1")]


def test_many_and_long_cookies(serve, run):
    cookies = ["n%02d=%s" % (n, "v" * 1000) for n in range(60)] + ["long=" + "v" * 5000]
    server = serve({"/set": {"set": cookies}})
    run(server.url, ["/set", "/a"])
    assert server.seen[-1].cookie == "; ".join(cookies[10:60])  # 50 of a domain; one of 5,000 bytes is too long


# --- coded bodies ---------------------------------------------------------------------------------

TEXT = b"".join(b"line %d of a text\n" % n for n in range(5000))


def raw_deflate(data):
    c = zlib.compressobj(9, zlib.DEFLATED, -15)
    return c.compress(data) + c.flush()


def coded(coding, body, **more):
    return {"headers": {"Content-Encoding": coding}, "body": body, **more}


GOOD = {
    "/gzip": coded("gzip", gzip.compress(TEXT)),
    "/x-gzip": coded("X-GZIP", gzip.compress(TEXT)),
    "/members": coded("gzip", gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:])),
    "/behind": coded("gzip", gzip.compress(TEXT) + b"\0\0\0"),
    "/zlib": coded("deflate", zlib.compress(TEXT)),
    "/raw": coded("deflate", raw_deflate(TEXT)),
    "/identity": coded("identity", TEXT),
    "/plain": {"body": TEXT},
}
BAD = {
    "/corrupt": coded("gzip", gzip.compress(TEXT)[:10] + b"\xFF" * 2000),
    "/none": coded("gzip", TEXT),
    "/sum": coded("gzip", gzip.compress(TEXT)[:-8] + b"\0" * 8),
    "/zlib-corrupt": coded("deflate", zlib.compress(TEXT)[:-4] + b"\0" * 4),
}
CUT = {
    "/gzip-cut": coded("gzip", gzip.compress(TEXT)[:-1]),
    "/gzip-head": coded("gzip", gzip.compress(TEXT)[:5]),
    "/zlib-cut": coded("deflate", zlib.compress(TEXT)[:-1]),
    "/raw-cut": coded("deflate", raw_deflate(TEXT)[:-1]),
    "/byte": coded("deflate", b"\x78"),
}
ASKED = {"Accept-Encoding": "gzip, deflate"}


@pytest.mark.parametrize("path", GOOD)
def test_the_decoded_length_counts(serve, run_like_locust, path):
    server = serve(GOOD)
    result = run_like_locust(server.url, [{"get": path, "headers": ASKED}])
    assert (result["failures"], result["bytes"]) == (0, len(TEXT))
    assert server.seen[0].headers["Accept-Encoding"] == "gzip, deflate"


def test_unasked_too(serve, run):
    server = serve(GOOD)
    assert run(server.url, ["/gzip", "/raw"])["bytes"] == 2 * len(TEXT)
    assert "Accept-Encoding" not in server.seen[0].headers


def test_what_is_not_decoded_counts_as_it_comes(serve, run):
    server = serve({"/br": coded("br", b"x" * 100), "/nested": coded("gzip, gzip", b"x" * 200), "/unknown": coded("foo", b"x" * 400)})
    assert run(server.url, ["/br", "/nested", "/unknown"])["bytes"] == 700


def test_no_body_is_no_fault(serve, run_like_locust):
    server = serve({"/empty": coded("gzip", b""), "/204": coded("gzip", b"", status=204), "/304": coded("gzip", b"", status=304),
                    "/head": coded("gzip", gzip.compress(TEXT))})
    result = run_like_locust(server.url, ["/empty", "/204", "/304", {"head": "/head"}, "/head"])
    assert (result["failures"], result["bytes"]) == (0, len(TEXT))


@pytest.mark.parametrize("path", BAD)
def test_corrupt(serve, run_like_locust, path):
    server = serve(BAD)
    result = run_like_locust(server.url, [{"get": path, "headers": ASKED}, "/next"])
    assert (result["failures"], result["bytes"]) == (1, 0)
    assert [e[2:] for e in result.get("errors", [])] in ([], [["malformed response", 1]])


@pytest.mark.parametrize("path", CUT)
def test_truncated(serve, run, path):
    server = serve(CUT)
    result = run(server.url, [{"get": path, "headers": ASKED}, "/next"])
    assert [e[1:] for e in result["errors"]] == [[path, "malformed response", 1]]
    assert result["bytes"] == 0


def test_chunked_and_in_pieces(serve, run_like_locust):
    body = gzip.compress(TEXT)
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 7]), body[i:i + 7]) for i in range(0, len(body), 7)) + b"0\r\n\r\n"
    server = serve({"/": {"headers": {"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"}, "body": chunks}})
    assert run_like_locust(server.url, ["/", "/"])["bytes"] == 2 * len(TEXT)


def test_a_bomb_is_counted_and_not_stored(serve, run):
    size = 300_000_000
    c = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(c.compress(b"\0" * 1_000_000) for _ in range(size // 1_000_000)) + c.flush()
    server = serve({"/": coded("gzip", bomb)})
    result = run(server.url, ["/"])
    assert (result["bytes"], result["failures"]) == (size, 0)
    assert result["peak_kb"] < 200_000

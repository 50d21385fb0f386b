"""Both HTTP engines through every fault of the hostile server: what they count must be what is expected, and the same.

Each case is one user who does one task of two or three requests and then waits: the fault, and a good request to the
same server, which shows that the user goes on and whether its connection was kept.
"""
import dataclasses
import json
import os
import subprocess

import pytest
import requests

from harness.worker import CICADA, SANITIZER
from hostile import ANSWERS, PATHS, PORTS, SLOW_S, Hostile, Server

FOLDER = os.path.dirname(CICADA) if os.sep in CICADA else "build"
ENGINE_RUN = os.path.join(FOLDER, "test", "tools", "engine_run")
ENGINES = ("fast", "curl")
RUN_S = 20  # a run ends when its requests are done; this is for one that hangs

NAME = "host name could not be resolved"
REFUSED = "connection refused"
CONNECT_TIMEOUT = "connect timed out"
TLS = "TLS handshake failed"
CERTIFICATE = "TLS certificate not accepted"
RESET = "connection reset"
CLOSED = "connection closed before the response was complete"
TIMEOUT = "timed out"
MALFORMED = "malformed response"
TOO_LARGE = "response headers too large"
TOO_MANY = "too many redirects"
BAD_REDIRECT = "redirect to an unusable URL"

STATUSES = (301, 302, 303, 307, 308)
SHORT = {"timeout": 0.3}  # for faults that only a time-out ends


@dataclasses.dataclass
class Case:
    path: str
    failure: str = ""  # "": a success
    status: int = 200
    size: int = 2  # body bytes; of a failure none are counted
    seen: int = 1  # requests for the path that the server saw; None: a race, the client may have gone before
    kept: bool = True  # the request after it goes over the same connection
    method: str = "GET"
    step: dict = dataclasses.field(default_factory=dict)  # more of the scenario's keys
    server: str = "plain"
    host: str = "127.0.0.1"
    warm: bool = False  # a good request before it, so that its connection is used again
    insecure: bool = False
    also: str = ""  # another failure that is right, where it is a race in the kernel
    connections: int = 0  # 0: follows from the rest
    after: str = ""  # failure of the request after it, where the fault reaches that
    curl_connections: int = 0  # where they differ: curl keeps, or gives up, what it need not
    curl_after: str = ""  # the same for the request after it

    def __post_init__(self):
        if self.failure:
            self.size = 0
        if not self.connections:
            self.connections = 1 if self.kept and self.seen in (0, 1, 31) else 2

    @property
    def label(self):
        words = [self.server if self.server != "plain" else "", self.method if self.method != "GET" else "",
                 "warm" if self.warm else "", "insecure" if self.insecure else "", self.host
                 if self.host != "127.0.0.1" else "", self.path]
        return " ".join(w for w in words if w)


def good(path, **more):
    return Case(path, **more)


def bad(path, failure, **more):
    return Case(path, failure, kept=more.pop("kept", False), **more)


CASES = [
    good("/ok"),
    good("/ok", method="POST", step={"body": "x" * 1000}),
    good("/ok", method="HEAD", size=0),
    good("/ok", method="DELETE"),
    good("/ok", method="PUT", step={"body": ""}),

    good("/status/no-reason"),
    good("/status/empty-reason"),
    good("/status/latin1-reason"),
    good("/status/bare-lf"),
    good("/status/599", status=599),
    bad("/status/999", "HTTP status 999", kept=True),
    bad("/status/404", "HTTP status 404", kept=True),
    bad("/status/two-digits", MALFORMED),
    bad("/status/four-digits", MALFORMED),
    bad("/status/letters", MALFORMED),
    bad("/status/099", MALFORMED),
    bad("/status/negative", MALFORMED),
    bad("/status/glued", MALFORMED),
    bad("/status/no-status", MALFORMED),
    bad("/status/no-space", MALFORMED),
    bad("/status/leading-space", MALFORMED),
    bad("/status/leading-blank-line", MALFORMED),
    bad("/status/lower-case", MALFORMED),
    bad("/status/http-0.9", MALFORMED),
    bad("/status/http-1.2", MALFORMED),
    bad("/status/http-2", MALFORMED),
    bad("/status/http-3.0", MALFORMED),
    bad("/status/http-11", MALFORMED),
    bad("/status/ssh", MALFORMED),
    bad("/status/ssh-no-line-end", MALFORMED),
    bad("/status/nul", MALFORMED),
    bad("/status/zeros", MALFORMED),
    bad("/status/icy", MALFORMED),
    bad("/status/request", MALFORMED),

    good("/header/none", size=0, kept=False),
    bad("/header/no-colon", MALFORMED),
    bad("/header/no-name", MALFORMED),
    bad("/header/blank-before-colon", MALFORMED),
    good("/header/empty-value"),
    good("/header/high-bytes"),
    bad("/header/nul-in-value", MALFORMED),
    bad("/header/nul-in-name", MALFORMED),
    good("/header/bare-cr"),
    good("/header/folded"),
    bad("/header/fold-first", MALFORMED),
    bad("/header/folded-length", MALFORMED),
    good("/header/twice"),
    good("/header/thousand"),
    bad("/header/120k", TOO_LARGE),
    bad("/header/300k", TOO_LARGE),
    good("/header/one-of-60k"),
    bad("/header/one-of-300k", TOO_LARGE),
    bad("/header/cut", CLOSED),
    bad("/header/cut-at-line", CLOSED),
    bad("/header/cut-status", CLOSED),

    good("/length/zero", size=0),
    good("/length/leading-zeros", size=5),
    good("/length/blanks", size=5),
    bad("/length/negative", MALFORMED),
    bad("/length/plus", MALFORMED),
    bad("/length/hex", MALFORMED),
    bad("/length/fraction", MALFORMED),
    bad("/length/letters", MALFORMED),
    bad("/length/empty", MALFORMED),
    bad("/length/trailing-letters", MALFORMED),
    bad("/length/huge", MALFORMED),
    bad("/length/2e63", MALFORMED),
    good("/length/two-equal", size=5),
    good("/length/list-equal", size=5),
    bad("/length/two-different", MALFORMED),
    bad("/length/two-different-longer", MALFORMED),
    bad("/length/list-different", MALFORMED),
    bad("/length/too-long", CLOSED),
    bad("/length/max", CLOSED),
    good("/length/too-short", size=3, kept=False),

    good("/chunk/good", size=5),
    good("/chunk/extension", size=5),
    good("/chunk/trailers", size=5),
    good("/chunk/upper-case", size=10),
    good("/chunk/bare-lf", size=5),
    good("/chunk/with-length", size=5, kept=False),
    good("/chunk/blank-after-size", size=5),
    good("/chunk/leading-zeros", size=5),
    good("/chunk/sixteen-digits", size=5),
    bad("/chunk/seventeen-digits", MALFORMED),
    bad("/chunk/no-size", MALFORMED),
    bad("/chunk/letters", MALFORMED),
    bad("/chunk/size-and-letters", MALFORMED),
    bad("/chunk/hex-prefix", MALFORMED),
    bad("/chunk/negative", MALFORMED),
    bad("/chunk/leading-blank", MALFORMED),
    bad("/chunk/huge", MALFORMED),
    bad("/chunk/2e63-1", CLOSED),
    bad("/chunk/endless-size", MALFORMED),
    bad("/chunk/endless-extension", MALFORMED),
    bad("/chunk/longer-than-size", MALFORMED),
    bad("/chunk/shorter-than-size", MALFORMED),
    bad("/chunk/no-line-end", MALFORMED),
    bad("/chunk/cut-in-size", CLOSED),
    bad("/chunk/cut-in-data", CLOSED),
    bad("/chunk/cut-behind-data", CLOSED),
    bad("/chunk/cut-in-trailer", CLOSED),
    bad("/chunk/no-last-line", CLOSED),
    bad("/chunk/long-trailer", TOO_LARGE),
    bad("/chunk/endless-trailers", TOO_LARGE),
    bad("/chunk/twice", MALFORMED),
    good("/chunk/identity", size=5, kept=False),
    bad("/chunk/unasked-gzip", MALFORMED),
    bad("/chunk/unknown-coding", MALFORMED),

    good("/close/1.1", size=5, kept=False),
    good("/close/1.1-said", size=5, kept=False),
    good("/close/1.0", size=5, kept=False),
    good("/close/1.0-length", kept=False),
    good("/close/1.0-keep-alive"),
    good("/close/said", kept=False),
    good("/close/said-and-kept", kept=False),
    good("/close/said-in-list", kept=False),
    good("/close/unsaid", kept=False),
    good("/close/empty", size=0, kept=False),
    good("/ok", step={"headers": {"Connection": "close"}}, kept=False),
    bad("/close/no-answer", CLOSED),

    bad("/reset/no-answer", RESET),
    bad("/reset/in-status", RESET),
    bad("/reset/in-head", RESET),
    bad("/reset/in-body", RESET),
    bad("/reset/in-chunk", RESET),
    bad("/reset/in-read-to-close", RESET),
    good("/reset/after", kept=False),

    good("/garbage/same-packet", kept=False),
    good("/garbage/second-answer", kept=False),
    good("/garbage/after-chunks", size=5, kept=False),
    good("/garbage/later", after=MALFORMED),
    good("/garbage/head", method="HEAD", size=0, kept=False, curl_connections=1),
    good("/garbage/204", status=204, size=0, kept=False, curl_connections=1),

    good("/large/ok", size=200000),
    good("/large/close", size=200000, kept=False),
    bad("/large/cut", CLOSED),
    bad("/large/reset", RESET),
    good("/large/read-to-close", size=200000, kept=False),
    good("/large/chunked", size=200000),
    good("/large/fills", size=65494),

    good("/empty/204", status=204, size=0),
    good("/empty/204-zero", status=204, size=0),
    good("/empty/204-length", status=204, size=0),
    good("/empty/204-chunked", status=204, size=0),
    good("/empty/304", status=304, size=0),
    good("/empty/304-length", status=304, size=0),
    good("/empty/head", method="HEAD", size=0),
    good("/empty/head-chunked", method="HEAD", size=0),
    good("/empty/head-nothing", method="HEAD", size=0),
    good("/empty/head", method="HEAD", size=0, step={"body": "x"}, curl_connections=2),

    good("/interim/100"),
    good("/interim/100", method="POST", step={"body": "x"}),
    good("/interim/102"),
    good("/interim/103-twice"),
    good("/interim/103-length"),
    good("/interim/199"),
    good("/interim/fifty"),
    bad("/interim/endless", MALFORMED),
    bad("/interim/only", CLOSED),
    bad("/interim/101", MALFORMED),

    good("/drip/head"),
    good("/drip/chunks", size=11),
    bad("/drip/slow", TIMEOUT, step=SHORT),
    bad("/drip/slow", TIMEOUT, step=SHORT, warm=True),
    bad("/endless/body", TIMEOUT, step=SHORT),
    bad("/endless/chunks", TIMEOUT, step=SHORT),
    bad("/endless/headers", TOO_LARGE),
    bad("/endless/line", TOO_LARGE),
    bad("/silent", TIMEOUT, step=SHORT),
    bad("/silent", TIMEOUT, step=SHORT, warm=True),
    bad("/silent", TIMEOUT, step=SHORT, method="POST"),
    bad("/silent-in-body", TIMEOUT, step=SHORT),
    good("/half-close", size=5, kept=False),

    bad("/early/413", "HTTP status 413", method="POST", step={"body": "x" * 4000000}),
    good("/early/200", method="POST", step={"body": "x" * 4000000}, kept=False),
    good("/early/200-hang", method="POST", step={"body": "x" * 16000000}, kept=False),
    bad("/early/reset", RESET, method="POST", step={"body": "x" * 4000000}),
    good("/early/200", method="POST", step={"body": "x"}, kept=False),

    good("/stale/close", warm=True, seen=2, kept=True),
    good("/stale/close", warm=True, seen=2, kept=True, method="HEAD", size=0),
    good("/stale/close", warm=True, seen=2, kept=True, method="PUT", step={"body": "x"}),
    good("/stale/close", warm=True, seen=2, kept=True, method="DELETE"),
    bad("/stale/close", CLOSED, warm=True, method="POST", step={"body": "x"}),
    bad("/stale/close", CLOSED, warm=True, method="POST"),
    bad("/stale/close", CLOSED, warm=True, method="PATCH", step={"body": "x"}),
    good("/stale/reset", warm=True, seen=2, kept=True),
    bad("/stale/reset", RESET, warm=True, method="POST", step={"body": "x"}),
    bad("/stale/always", CLOSED, warm=True, seen=2, connections=3),
    bad("/stale/always", CLOSED),
    bad("/stale/partial", CLOSED, warm=True),
    good("/stale/idle", kept=False),
    good("/close/unsaid", warm=True, kept=False),

    good("/redirect/relative", size=6),
    good("/redirect/absolute-path", size=6),
    good("/redirect/a/b/up", size=6),
    good("/redirect/far-up", size=6),
    good("/redirect/query"),
    good("/redirect/fragment", size=6),
    good("/redirect/space", size=6),
    good("/redirect/high-bytes", size=6),
    good("/redirect/lower-case-header", size=6),
    good("/redirect/twice", size=6),
    good("/redirect/no-location", status=302),
    good("/redirect/empty-location", status=302),
    good("/redirect/300", status=300),
    good("/redirect/304", status=304, size=0),
    good("/redirect/200"),
    good("/redirect/chunked", size=6),
    good("/redirect/close", size=6, kept=False),
    good("/redirect/relative", status=302, step={"redirects": False}),
    bad("/redirect/loop", TOO_MANY, seen=31, kept=True),
    bad("/redirect/ftp", BAD_REDIRECT, kept=True),
    bad("/redirect/file", BAD_REDIRECT, kept=True),
    bad("/redirect/javascript", BAD_REDIRECT, kept=True),
    bad("/redirect/no-host", BAD_REDIRECT, kept=True),
    bad("/redirect/bad-port", BAD_REDIRECT, kept=True),
    bad("/redirect/cut-body", CLOSED),
    bad("/redirect/refused", REFUSED, kept=True),
    bad("/redirect/to-fault", MALFORMED),
    good("/redirect/scheme-relative", size=6),
    good("/redirect/same-host", size=0),
    good("/redirect/other-host", size=0, kept=False),
    good("/redirect/other-port", size=0),

    good("/ok", host="localhost"),
    bad("/", REFUSED, server="refused", seen=0),
    bad("/", CONNECT_TIMEOUT, server="full", seen=0, step=SHORT),
    bad("/", NAME, host="no..name", seen=0),
    bad("/", CLOSED, also=RESET, server="close-at-accept", seen=0),
    bad("/", RESET, server="reset-at-accept", seen=0),
    good("/", server="answer-at-accept", seen=0),
    bad("/", TIMEOUT, server="half-open", seen=0, step=SHORT),

    good("/ok", server="tls-good"),
    good("/ok", server="tls-good", warm=True),
    good("/ok", server="tls-good", host="localhost"),
    good("/ok", server="tls-1.2", host="localhost"),
    bad("/ok", CERTIFICATE, server="tls-expired", host="localhost", seen=0),
    bad("/ok", CERTIFICATE, server="tls-future", host="localhost", seen=0),
    bad("/ok", CERTIFICATE, server="tls-wrong-name", host="localhost", seen=0),
    bad("/ok", CERTIFICATE, server="tls-wrong-name", seen=0),
    bad("/ok", CERTIFICATE, server="tls-wrong-ca", host="localhost", seen=0),
    bad("/ok", CERTIFICATE, server="tls-self-signed", host="localhost", seen=0),
    good("/ok", server="tls-expired", host="localhost", insecure=True),
    good("/ok", server="tls-wrong-name", insecure=True),
    good("/ok", server="tls-self-signed", host="localhost", insecure=True),
    good("/ok", server="tls-early", seen=None, kept=False),
    good("/ok", server="tls-1.2-early", seen=None, kept=False),
    bad("/ok", TLS, server="tls-wants-certificate", seen=0),
    bad("/ok", TLS, server="tls-1.2-wants-certificate", seen=0),
    bad("/ok", TLS, server="tls-alert", seen=0),
    bad("/ok", TLS, server="tls-close", seen=0),
    bad("/ok", TLS, server="tls-reset", seen=0),
    bad("/ok", TLS, server="tls-garbage", seen=0),
    bad("/ok", CONNECT_TIMEOUT, server="half-open", seen=0, step=SHORT, insecure=True),
    good("/no-notify", server="tls-good", size=5, kept=False),
    good("/no-notify-length", server="tls-good", kept=False),
    good("/notify", server="tls-good", size=5, kept=False),
    bad("/plain-in-tls", TLS, server="tls-good"),
    good("/two-records", server="tls-good", kept=False, curl_connections=1, curl_after=MALFORMED),
    bad("/length/negative", MALFORMED, server="tls-good"),
    bad("/reset/in-body", RESET, server="tls-good"),
    bad("/silent", TIMEOUT, server="tls-good", step=SHORT),
    good("/stale/close", server="tls-good", warm=True, seen=2),
    bad("/stale/close", CLOSED, server="tls-good", warm=True, method="POST"),
    good("/chunk/good", server="tls-good", size=5),
    good("/redirect/absolute-path", server="tls-good", size=6),
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    thing = Hostile(str(tmp_path_factory.mktemp("certificates")))
    yield thing
    thing.close()


def url(hostile, case):
    scheme = "https" if case.server.startswith("tls-") or case.insecure else "http"
    port = hostile.ports[case.server]
    return "%s://%s:%d" % (scheme, case.host, port)


def is_http(hostile, case):
    return case.server in hostile.servers and case.host != "no..name"


def steps_of(hostile, case):
    base = url(hostile, case)
    expect = {} if case.failure else {"expect": case.status}
    fault = {"name": "fault", "request": base + case.path, "method": case.method, **expect, **case.step}
    after = base if is_http(hostile, case) and not case.failure == CERTIFICATE else hostile.plain.url
    if case.failure == TLS:
        after = hostile.plain.url
    steps = [fault, {"name": "after", "get": after + "/after"}]
    return [{"name": "warm", "get": base + "/before"}] + steps if case.warm else steps


def test_every_fault_is_tried():
    reached = {"/before", "/after", "/auth", "/slow/redirect", "/slow/landed", "/redirect/query?landed=1"}  # by way of others
    reached |= {"/redirect/%d" % status for status in STATUSES}
    assert set(ANSWERS) | set(PATHS) == {case.path for case in CASES if case.path != "/"} | reached
    assert set(PORTS) <= {case.server for case in CASES}


def scenario(steps, insecure=False):
    return {"insecure": insecure, "wait_time": {"constant": 1000}, "tasks": [{"name": "task", "steps": steps}]}


def run(folder, hostile, engine, scenario, requests, program=ENGINE_RUN, users=1):
    file = folder / "scenario.json"
    file.write_text(json.dumps(scenario))
    argv = [program, "-u", str(users), "-t", str(RUN_S * users), "-n", str(requests)] + (["-c"] if engine == "curl" else [])
    env = dict(os.environ, SSL_CERT_FILE=hostile.certificates.ca_file)
    done = subprocess.run(argv + [str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, timeout=RUN_S * users * 4)
    said = done.stderr.decode("utf-8", "replace")
    assert done.returncode == 0 and not SANITIZER.search(said), said
    return json.loads(done.stdout)


def counts_connections(hostile, case):
    return is_http(hostile, case) and case.failure not in (CERTIFICATE, TLS)


def outcome(result, hostile, case):
    """What a run did with the fault, in the terms of the case."""
    entries = {name: (requests, failures, size) for _, name, requests, failures, size in result["entries"]}
    errors = {name: error for _, name, error, _ in result["errors"]}
    server = hostile.servers.get(case.server, hostile.plain)
    return {
        "samples": entries.get("fault", (0, 0, 0))[:2],
        "failure": case.failure if case.also and errors.get("fault") == case.also else errors.get("fault", ""),
        "size": 0 if case.failure else entries.get("fault", (0, 0, 0))[2],
        "seen": None if case.seen is None else server.count(case.path),
        "after": (entries.get("after"), errors.get("after", "")),
        "connections": server.connections if counts_connections(hostile, case) else 0,
        "sum": result["started"] - result["succeeded"] - result["failed"] - result["interrupted"],
    }


def expected(hostile, case, engine):
    connections = engine == "curl" and case.curl_connections or case.connections
    after = engine == "curl" and case.curl_after or case.after
    return {
        "samples": (1, 1 if case.failure else 0),
        "failure": case.failure,
        "size": case.size,
        "seen": case.seen,
        "after": ((1, 1, 0), after) if after else ((1, 0, 2), ""),
        "connections": connections if counts_connections(hostile, case) else 0,
        "sum": 0,
    }


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.label)
def test_fault_is_the_same_in_both_engines(hostile, tmp_path, case):
    got = {}
    steps = steps_of(hostile, case)
    for engine in ENGINES:
        hostile.forget()
        result = run(tmp_path, hostile, engine, scenario(steps, case.insecure), len(steps))
        got[engine] = outcome(result, hostile, case)
    for engine in ENGINES:
        assert got[engine] == expected(hostile, case, engine), "%s of %s" % (engine, got)


# --- certificates of one's own ---

def client_pem(hostile, folder, kind):
    """A certificate with its key, in one file beside the scenario."""
    certificates = hostile.certificates
    text = "".join(open(certificates.at(kind + end)).read() for end in (".pem", ".key"))
    (folder / (kind + ".pem")).write_text(text)
    return kind + ".pem"


def ask_with(hostile, folder, engine, server, *kinds):
    """What became of a GET by a user class for each certificate (None: without one), by the class."""
    base = "https://localhost:%d" % hostile.ports[server]
    classes = []
    for kind in kinds:
        own = {"client_certificate": client_pem(hostile, folder, kind)} if kind else {}
        step = {"name": kind or "none", "get": base + "/ok"}
        classes.append({"name": step["name"], "wait_time": 1000, "tasks": [{"steps": [step]}], **own})
    result = run(folder, hostile, engine, {"users": classes}, len(classes), users=len(classes))
    errors = {name: error for _, name, error, _ in result["errors"]}
    return [errors.get(kind or "none", "") for kind in kinds]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("server", ("tls-wants-certificate", "tls-1.2-wants-certificate"))
def test_each_user_class_shows_its_own_certificate(hostile, tmp_path, engine, server):
    got = ask_with(hostile, tmp_path, engine, server, "good", "wrong-ca", None)
    assert got == ["", TLS, TLS]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_certificate_that_nobody_asks_for_is_not_in_the_way(hostile, tmp_path, engine):
    assert ask_with(hostile, tmp_path, engine, "tls-good", "good", "wrong-ca", None) == ["", "", ""]


def test_a_certificate_that_cannot_be_used_is_a_mistake(hostile, tmp_path):
    at = hostile.certificates.at
    certificate, key, other = (open(at(name)).read() for name in ("good.pem", "good.key", "expired.key"))
    encrypted = subprocess.run(["openssl", "pkey", "-in", at("good.key"), "-aes256", "-passout", "pass:secret"], check=True,
                               capture_output=True, text=True).stdout
    broken = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"
    for text, words in ((certificate + other, "the private key is not the certificate's"),
                        (certificate + encrypted, "the private key is none, or encrypted"),
                        (broken + key, "the certificate is none")):
        (tmp_path / "client.pem").write_text(text)
        file = tmp_path / "scenario.json"
        file.write_text(json.dumps({"client_certificate": "client.pem", "host": hostile.plain.url, "tasks": ["/ok"]}))
        done = subprocess.run([CICADA, "--headless", "-t", "1", "-f", str(file)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1] == "cicada: %s: user class 'User': client_certificate: %s" % (file, words)


@pytest.mark.parametrize("scenarios, flag, wins", ((None, None, "fast"), ("curl", None, "curl"), ("curl", "auto", "curl"),
                                                   ("curl", "fast", "fast"), ("fast", "curl", "curl")))
def test_the_scenario_names_the_engine_unless_the_command_line_does(hostile, tmp_path, scenarios, flag, wins):
    file = tmp_path / "scenario.json"
    own = {"engine": scenarios} if scenarios else {}
    file.write_text(json.dumps({**own, "host": hostile.plain.url, "tasks": ["/ok"]}))
    hostile.forget()
    flags = ["--engine", flag] if flag else []
    subprocess.run([CICADA, "--headless", "--iterations", "1", "-f", str(file), *flags], check=True, capture_output=True,
                   timeout=60)
    request, = hostile.plain.requests("/ok")
    names = [name.lower() for name, _ in request.headers]
    curls = names.index("accept") < names.index("user-agent")  # the only thing in which they differ
    assert curls == (wins == "curl")


@pytest.mark.parametrize("engine", ENGINES)
def test_requests_are_sent_anew_all_through_a_user_s_life(hostile, tmp_path, engine):
    hostile.forget()
    steps = [{"get": hostile.plain.url + path} for path in ("/before", "/stale/close")] * 20
    result = run(tmp_path, hostile, engine, scenario(steps), len(steps))
    assert result["errors"] == [] and result["retries"] == 20
    assert hostile.plain.connections == 21


@pytest.mark.smoke
@pytest.mark.parametrize("engine", ENGINES)
def test_one_user_lives_through_every_fault(hostile, tmp_path, engine):
    """All cases in a row; with the sanitizers' builds this shows what leaks or is used after its end."""
    classes = []
    for insecure in (False, True):
        steps = []
        for number, case in enumerate(CASES):
            if case.insecure == insecure:
                steps += [dict(step, name="%s %d" % (step["name"], number)) for step in steps_of(hostile, case)]
        classes.append(dict(scenario(steps, insecure), name="insecure" if insecure else "secure"))
    requests = sum(len(c["tasks"][0]["steps"]) for c in classes)
    result = run(tmp_path, hostile, engine, {"users": classes}, requests, users=2)
    entries = {name: (n, failures, size) for _, name, n, failures, size in result["entries"]}
    errors = {name: error for _, name, error, _ in result["errors"]}
    for number, case in enumerate(CASES):
        name = "fault %d" % number
        failure = errors.get(name, "")
        assert failure in (case.failure, case.also), case.label
        assert entries[name] == (1, 1 if case.failure else 0, entries[name][2] if case.failure else case.size), case.label
        after = engine == "curl" and case.curl_after or case.after
        assert errors.get("after %d" % number, "") == after, case.label
    assert result["started"] == requests == result["succeeded"] + result["failed"]
    assert result["interrupted"] == 0


# --- redirects: what Locust's client makes of them ---

def reference(method, url, **more):
    """The same request by the requests library, which Locust's HttpUser is."""
    with requests.Session() as session:
        session.trust_env = False
        session.request(method, url, allow_redirects=True, **more)


def sent(hostile, path):
    """What the last request for the path was, as far as redirects change it."""
    for server in (hostile.plain, hostile.servers["other"]):
        for r in server.requests(path):
            headers = {n.lower(): v for n, v in r.headers}
            shown = ("authorization", "content-type", "x-own", "cookie")
            return r.method, r.body, {n: headers[n] for n in shown if n in headers}, headers["host"]
    return None


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"))
def test_redirect_changes_the_request_as_in_locust(hostile, tmp_path, engine, method):
    headers = {"Content-Type": "text/x-mine", "X-Own": "1", "Authorization": "Bearer t", "Cookie": "own=1"}
    body = "" if method in ("GET", "HEAD") else "hello"
    for status in STATUSES:
        url = hostile.plain.url + "/redirect/%d" % status
        hostile.forget()
        reference(method, url, headers=headers, data=body)
        wanted = sent(hostile, "/redirect/landed")
        hostile.forget()
        step = {"request": url, "method": method, "headers": headers, **({"body": body} if body else {})}
        result = run(tmp_path, hostile, engine, scenario([step]), 1)
        assert result["errors"] == []
        assert sent(hostile, "/redirect/landed") == wanted, status


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("where", ("same-host", "other-host", "other-port"))
@pytest.mark.parametrize("given", ("header", "url"))
def test_credentials_go_where_locust_sends_them(hostile, tmp_path, engine, where, given):
    url = hostile.plain.url + "/redirect/" + where
    headers = {"Authorization": "Bearer t"} if given == "header" else {}
    if given == "url":
        url = url.replace("http://", "http://user:pass%20word@")
    hostile.forget()
    reference("GET", url, headers=headers)
    wanted = sent(hostile, "/auth")
    hostile.forget()
    result = run(tmp_path, hostile, engine, scenario([{"get": url, "name": "x", "headers": headers}]), 1)
    assert result["errors"] == []
    assert sent(hostile, "/auth") == wanted


# --- what a server sees of a good request ---

def head_of(request, *names):
    return [(n, v) for n, v in request.headers if n.lower() in names]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_header_of_one_s_own_replaces_ours_and_is_sent_once(hostile, tmp_path, engine):
    own = {"connection": "keep-alive", "HOST": "other.example", "user-agent": "mine", "Accept": "a/b"}
    hostile.forget()
    run(tmp_path, hostile, engine, scenario([{"get": hostile.plain.url + "/ok", "headers": own}]), 1)
    request, = hostile.plain.requests("/ok")
    got = head_of(request, "connection", "host", "user-agent", "accept")
    assert sorted((n.lower(), v) for n, v in got) == sorted((n.lower(), v) for n, v in own.items())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_large_post_is_sent_without_asking(hostile, tmp_path, engine):
    """A server that ignores "Expect: 100-continue" would cost a second."""
    hostile.forget()
    run(tmp_path, hostile, engine, scenario([{"post": hostile.plain.url + "/ok", "body": "x" * 2000000}]), 1)
    request, = hostile.plain.requests("/ok")
    assert len(request.body) == 2000000
    assert head_of(request, "expect", "content-length", "content-type") == [("Content-Length", "2000000")]


@pytest.mark.parametrize("engine", ENGINES)
def test_bodies_that_nobody_looks_at_are_counted_all_the_same(hostile, tmp_path, engine):
    """After a large body the next one is expected to be large, whatever it is then."""
    hostile.forget()
    paths = ["/large/ok", "/large/ok", "/ok", "/large/ok", "/large/chunked", "/large/ok", "/large/fills", "/status/404",
             "/large/ok", "/large/close", "/large/ok", "/large/read-to-close", "/ok"]
    steps = [{"get": hostile.plain.url + p, "expect": [200, 404]} for p in paths]
    steps[3]["check"] = {"body": {"contains": "567890"}, "size": 200000}
    steps[8]["check"] = {"body": {"matches": "^0123456789.*6789$"}}
    result = run(tmp_path, hostile, engine, scenario(steps), len(paths))
    assert result["errors"] == []
    sizes = {name: size // count for _, name, count, _, size in result["entries"]}
    assert sizes.pop("/status/404") == 2 and sizes.pop("/ok") == 2 and sizes.pop("/large/fills") == 65494
    assert set(sizes.values()) == {200000}
    assert hostile.plain.connections == 3


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("host", ("[::1]", "[::1%25lo]"))
def test_an_ipv6_address_keeps_its_brackets_and_loses_its_zone(hostile, tmp_path, engine, host):
    try:
        server = Server(address="::1")
    except OSError as e:
        pytest.skip("no IPv6 here: %s" % e)
    try:
        result = run(tmp_path, hostile, engine, scenario([{"get": "http://%s:%d/ok" % (host, server.port)}]), 1)
        assert result["errors"] == []
        request, = server.requests("/ok")
        assert head_of(request, "host") == [("Host", "[::1]:%d" % server.port)]
    finally:
        server.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_chain_of_redirects_is_one_request_with_the_time_of_all(hostile, tmp_path, engine):
    result = run(tmp_path, hostile, engine, scenario([{"get": hostile.plain.url + "/slow/redirect"}]), 1)
    assert [entry[1:] for entry in result["entries"]] == [["/slow/redirect", 1, 0, 2]]
    assert result["p50_us"] >= 2 * SLOW_S * 1e6 * 0.99  # histograms keep three digits

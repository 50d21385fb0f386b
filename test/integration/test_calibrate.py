"""'cicada calibrate' against a real nginx, targets of limited throughput, and targets that fail. What is measured depends
on the machine, so the answer is compared with its own steps."""
import http.server
import json
import math
import os
import re
import resource
import signal
import subprocess
import threading
import time

import pytest

from harness.fake_http import FakeHttp
from harness.process import free_port
from harness.worker import CICADA, Worker

QUIET = ["--lag-limit", "100000"]  # a busy machine is late by itself
SHORT = ["--step-time", "2", "--threads", "1"]


class Target(http.server.ThreadingHTTPServer):
    """Answers one request after the other, each in delay_s; more than busy at the same time get a 503."""
    daemon_threads = True
    request_queue_size = 1000

    def __init__(self, delay_s, busy=10 ** 9):
        super().__init__(("127.0.0.1", 0), Handler)
        self.delay_s, self.busy = delay_s, busy
        self.turn, self.lock, self.inside = threading.Lock(), threading.Lock(), 0
        self.url = "http://127.0.0.1:%d/" % self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def status(self):
        with self.lock:
            self.inside += 1
            full = self.inside > self.busy
        try:
            if not full:
                with self.turn:
                    time.sleep(self.delay_s)
            return 503 if full else 200
        finally:
            with self.lock:
                self.inside -= 1

    def handle_error(self, request, client_address):
        pass  # a connection that was cut at the end

    def close(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(self.server.status())
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def target(started):
    def begin(*args, **kwargs):
        thing = Target(*args, **kwargs)
        started.append(thing)
        return thing
    return begin


def calibrate(*args, **kwargs):
    return subprocess.run([CICADA, "calibrate"] + [str(a) for a in args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, **kwargs)


def answer(*args, status=0):
    done = calibrate("--json", *args)
    assert done.returncode == status, done.stderr
    found = json.loads(done.stdout)
    check(found)
    return found


def check(found):
    """What holds of every answer: it is made of its steps, which stay within what was allowed."""
    steps, sustained = found["steps"], found["sustained"]
    good = [s for s in steps if s["over_limit"] is None]
    for s in steps:
        assert s["users"] <= found["limits"]["users"] and s["users_running"] <= s["users"]
        assert (s["failure_ratio"] is None) == (s["requests"] == 0) == (s["response_time_p50_ms"] is None)
        assert s["requests_per_s"] == pytest.approx(s["requests"] / s["seconds"], rel=1e-2, abs=1)
        within = s["cpu_pct"] <= found["limits"]["cpu_pct"] and s["loop_lag_ms"] <= found["limits"]["loop_lag_ms"]
        assert within or s["over_limit"] is not None
    assert (sustained["users"] is None) == (len([s for s in good if s["requests"]]) == 0)
    if sustained["users"] is not None:
        assert sustained["users"] in [s["users_running"] for s in good]
    if sustained["requests_per_s"] is not None and not sustained["estimated"]:
        assert sustained["requests_per_s"] in [s["requests_per_s"] for s in good]
    for key, of in (("for_users", "users"), ("for_requests_per_s", "requests_per_s")):
        if found[key]:
            check_workers(found[key], sustained[of], found["threads"])


def check_workers(wish, sustained, threads):
    if sustained is None:
        assert wish["workers"] is None and wish["threads"] is None
    else:
        assert wish["workers"] == math.ceil(wish["wished"] / sustained)
        assert wish["threads"] == wish["workers"] * threads


def scenario(path, content):
    path.write_text(json.dumps(content))
    return path


# --- what was the limit ---------------------------------------------------------------------------

def test_users_up_to_the_most_that_are_allowed(nginx, tmp_path):
    shop = scenario(tmp_path / "s.json", {"wait_time": {"between": [0.1, 0.3]}, "tasks": ["/"]})
    found = answer(shop, "-H", nginx.url, "--users-max", 30, "--target-users", 1000, *SHORT, *QUIET)
    assert found["limited_by"] == "users_max" and found["waits"]
    assert found["sustained"]["at_least"] and not found["sustained"]["estimated"]
    assert found["sustained"]["users"] == 30 and found["for_users"]["workers"] == 34
    assert found["for_requests_per_s"] is None
    users = [s["users"] for s in found["steps"]]
    assert users == sorted(users) and users[-1] == 30
    assert nginx.count() >= sum(s["requests"] for s in found["steps"])  # those between the windows besides


def test_this_worker_is_the_limit(nginx):
    """A limit of CPU that one user is beyond: the rate is read off."""
    found = answer(nginx.url + "/", "--cpu-limit", "0.5", "--target-rps", 1e6, "--target-users", 5, *SHORT, *QUIET)
    assert found["limited_by"] == "cpu" and not found["waits"]
    step, = found["steps"]
    assert step["over_limit"] == "cpu" and step["users"] == 1
    assert found["sustained"]["estimated"] and not found["sustained"]["at_least"]
    expected = step["requests_per_s"] * 0.5 / step["cpu_pct"]
    assert found["sustained"]["requests_per_s"] == pytest.approx(expected, rel=1e-2)
    assert found["for_users"]["workers"] is None


def test_the_number_of_users_is_halved_in_between(nginx, tmp_path):
    shop = scenario(tmp_path / "s.json", {"host": nginx.url, "wait_time": 0.1, "tasks": ["/"]})
    found = answer(shop, "--cpu-limit", "1.5", "--max-time", "40", *SHORT, *QUIET)
    assert found["limited_by"] in ("cpu", "time")
    over = [s["users"] for s in found["steps"] if s["over_limit"] == "cpu"]
    if found["limited_by"] == "cpu":
        assert found["sustained"]["users"] is None or found["sustained"]["users"] < min(over)


def test_the_target_is_the_limit(target):
    """A hundred requests a second, however many users ask."""
    slow = target(0.01)
    found = answer(slow.url, "--target-rps", 1000, "--users-max", 64, *SHORT, *QUIET)
    assert found["limited_by"] == "target" and found["sustained"]["at_least"]
    assert 0 < found["sustained"]["requests_per_s"] <= 110
    assert found["for_requests_per_s"]["workers"] >= 10
    last, first = found["steps"][-1], found["steps"][0]
    assert last["users"] > first["users"]
    assert last["response_time_p50_ms"] > first["response_time_p50_ms"]
    assert re.match(r"the target: with \d+ users instead of \d+ it answers", found["why"])


def test_failures_under_load_end_it(target):
    weak = target(0.02, busy=6)
    found = answer(weak.url, "--users-max", 64, *SHORT, *QUIET)
    assert found["limited_by"] in ("failures", "target")  # it has fifty requests a second in it, too
    assert found["sustained"]["at_least"]
    assert all(s["over_limit"] is None for s in found["steps"][:-1])


def test_failures_from_the_start_measure_nothing(nginx):
    found = answer(nginx.url + "/status/404", "--target-rps", 10, "--target-users", 10, *SHORT, status=1)
    assert found["limited_by"] == "failures" and len(found["steps"]) == 1
    assert found["sustained"] == {"users": None, "requests_per_s": None, "at_least": False, "estimated": False}
    assert "GET /status/404: HTTP status 404" in found["why"]


def test_nobody_is_there():
    found = answer("http://127.0.0.1:%d/" % free_port(), "--target-rps", 10, *SHORT, status=1)
    assert found["limited_by"] == "failures" and "connection refused" in found["why"]
    assert found["for_requests_per_s"] == {"wished": 10, "workers": None, "threads": None}


def test_a_target_that_never_answers(started):
    silent = FakeHttp(None)
    started.append(silent)
    found = answer(silent.url, *SHORT, *QUIET, status=1)
    assert found["limited_by"] == "silence" and len(found["steps"]) == 3
    assert all(s["requests_per_s"] == 0 and s["failure_ratio"] is None for s in found["steps"])


def test_the_time_is_bounded(nginx, tmp_path):
    shop = scenario(tmp_path / "s.json", {"host": nginx.url, "wait_time": 0.1, "tasks": ["/"]})
    found = answer(shop, "--max-time", "5", *SHORT, *QUIET)
    assert found["limited_by"] == "time" and len(found["steps"]) == 2


def test_a_step_that_stops_the_run(nginx, tmp_path):
    shop = scenario(tmp_path / "s.json", {"host": nginx.url, "tasks": [{"steps": ["/", {"stop": "run"}]}]})
    found = answer(shop, *SHORT, status=1)
    assert found["limited_by"] == "scenario" and found["steps"] == []


def test_classes_by_name(nginx, tmp_path):
    shop = scenario(tmp_path / "s.json", {"host": nginx.url, "wait_time": 0.1, "users": [
        {"name": "A", "tasks": ["/"]}, {"name": "B", "tasks": ["/never"]}]})
    found = answer(shop, "A", "--users-max", 2, *SHORT, *QUIET)
    assert found["limited_by"] == "users_max" and set(nginx.rows()) == {("GET", "/")}


# --- what is shown --------------------------------------------------------------------------------

def test_the_answer_in_words(nginx, tmp_path):
    shop = scenario(tmp_path / "s.json", {"host": nginx.url, "wait_time": 0.1, "tasks": ["/"]})
    done = calibrate(shop, "--users-max", 4, "--target-users", 50000, "--target-rps", 1, *SHORT, *QUIET)
    assert done.returncode == 0, done.stderr
    first, limit, users, rps = done.stdout.splitlines()
    assert re.fullmatch(r"One worker of 1 thread sustains at least 4 users \([\d.,]+ requests a second\) with at most "
                        r"80 % CPU and 100000 ms lag\.", first)
    assert limit == "Limit: --users-max: 4 users are all that were allowed. The worker could do more."
    assert users == "For 50,000 users: at most 12,500 workers of 1 thread (12,500 cores)."
    assert rps == "For 1 requests a second: 1 worker of 1 thread (1 core)."
    rows = [line for line in done.stderr.splitlines() if not line.startswith("[")]
    assert rows[0].split() == ["users", "requests/s", "CPU", "lag", "median", "p95", "failed"]
    assert [row.split()[0] for row in rows[1:]] == ["1", "4"]


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_shows_what_is_known(nginx, tmp_path, started, number, status):
    shop = scenario(tmp_path / "s.json", {"host": nginx.url, "wait_time": 0.1, "tasks": ["/"]})
    with open(tmp_path / "out.json", "w") as out:
        run = Worker("calibrate", [CICADA, "calibrate", "--json", str(shop)] + SHORT + QUIET, str(tmp_path))
        run.popen = subprocess.Popen(run.argv, stdout=out, stderr=open(run.path, "wb"), cwd=str(tmp_path))
    started.append(run)
    run.wait_line(r"\n +1 ")
    run.signal(number)
    assert run.wait() == status
    run.assert_sound()
    found = json.loads((tmp_path / "out.json").read_text())
    check(found)
    assert found["limited_by"] == "signal" and found["sustained"]["users"] is not None


MISTAKES = [
    ([], r"nothing to run"),
    (["missing.json"], r"missing\.json: No such file"),
    (["-f", "s.json", "http://127.0.0.1:1/"], r"not both"),
    (["s.json", "C"], r"s\.json has no user class 'C'"),
    (["s.json"], r"host"),
    (["http://127.0.0.1:1/", "http://127.0.0.1:2/"], r"one URL at a time"),
    (["http://127.0.0.1:1/", "--target-users", "0"], r"--target-users: must be a whole number from 1"),
    (["http://127.0.0.1:1/", "--target-rps", "-1"], r"--target-rps: must be a number above 0"),
    (["http://127.0.0.1:1/", "--cpu-limit", "much"], r"--cpu-limit: must be a number above 0, not 'much'"),
    (["http://127.0.0.1:1/", "--step-time", "1"], r"--step-time: must be at least 2 s"),
    (["http://127.0.0.1:1/", "--max-time", "2"], r"--max-time: 2 s are less than one step of 3 s"),
    (["http://127.0.0.1:1/", "--engine", "x"], r"--engine: must be auto, fast or curl"),
    (["http://127.0.0.1:1/", "--user-max", "2"], r"did you mean '--users-max'"),
    (["a.json,b.json"], r"must be one file"),
]


@pytest.mark.parametrize("args, text", MISTAKES, ids=[" ".join(a) or "nothing" for a, _ in MISTAKES])
def test_a_mistake_is_one_line(tmp_path, args, text):
    scenario(tmp_path / "s.json", {"tasks": ["/"]})
    done = calibrate(*args, cwd=str(tmp_path))
    assert done.returncode == 2 and done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if "/INFO/" not in line]
    assert len(lines) == 1 and re.search(text, lines[0]), done.stderr


def test_descriptors_bound_the_users(nginx, tmp_path):
    shop = scenario(tmp_path / "s.json", {"host": nginx.url, "wait_time": 0.1, "tasks": ["/"]})

    def limited(files):
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    done = calibrate(shop, "--json", *SHORT, *QUIET, preexec_fn=limited(70))
    found = json.loads(done.stdout)
    check(found)
    assert found["limited_by"] == "file_descriptors" and not found["sustained"]["at_least"]
    assert found["sustained"]["users"] == found["limits"]["users"] < 70
    done = calibrate(shop, preexec_fn=limited(50))
    assert done.returncode == 2
    assert done.stderr == "cicada: open files (ulimit -Hn) do not allow a single user\n"


def test_flags_of_a_run_are_said_to_be_ignored(tmp_path, nginx):
    done = calibrate(nginx.url + "/status/404", "-u", 10, "--csv", "x", "--results-dir", "y", *SHORT, cwd=str(tmp_path))
    assert done.returncode == 1
    for flag in ("--users", "--csv", "--results-dir"):
        assert "%s has no meaning for 'cicada calibrate', ignoring" % flag in done.stderr
    assert "--step-time has" not in done.stderr and "--threads has" not in done.stderr
    assert not [name for name in os.listdir(str(tmp_path)) if name[0] in "xy"]


def test_its_flags_are_ignored_by_a_run(nginx):
    done = subprocess.run([CICADA, "--headless", "--iterations", "1", "--users-max", "3", nginx.url + "/"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0 and "--users-max has no meaning in a headless run, ignoring" in done.stderr


def test_help():
    done = calibrate("--help")
    assert done.returncode == 0 and "--target-users" in done.stdout and "--prometheus-url" not in done.stdout

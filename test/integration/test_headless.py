"""Headless runs against a real nginx: the same counts on both sides, the exit statuses of a real Locust, and complete
files wherever a signal strikes."""
import csv
import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import termios
import time

import pytest

from harness.master import NEWEST, locust
from harness.process import Process, wait_for
from harness.worker import CICADA, Worker

PASSES, FAILS = "/", "/status/404"


class Headless(Worker):
    def __init__(self, folder, *args, name="headless", env=None):
        super().__init__(name, [CICADA, "--headless"] + list(args), folder, env)


@pytest.fixture
def start(tmp_path, started):
    def begin(*args, **kwargs):
        run = Headless(str(tmp_path), *args, **kwargs)
        started.append(run)
        return run.start()
    yield begin
    for run in started:
        if isinstance(run, Headless):
            run.assert_sound()


def write(path, content):
    with open(path, "w") as f:
        json.dump(content, f)
    return str(path)


def table(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def requests_said(run):
    """started, succeeded, failed, interrupted as the run told them."""
    m = run.wait_line(r"(\d+) requests: (\d+) succeeded, (\d+) failed, (\d+) cut")
    return [int(x) for x in m.groups()]


def settled(nginx, since, count):
    """nginx writes its log a little after the answer is out."""
    wait_for(lambda: nginx.count(since) >= count, 10, lambda: "%d rows, %d are there" % (count, nginx.count(since)))
    return nginx.rows(since)


# --- counts ---------------------------------------------------------------------------------------

def test_iterations_are_exact(start, nginx, tmp_path):
    run = start("-u", "7", "-r", "7", "--iterations", "500", "--csv", str(tmp_path / "out"), nginx.url + PASSES)
    assert run.wait() == 0
    assert requests_said(run) == [500, 500, 0, 0]
    assert settled(nginx, 0, 500) == {("GET", "/"): 500}
    rows = table(tmp_path / "out_stats.csv")
    assert [r["Request Count"] for r in rows] == ["500", "500"]
    assert table(tmp_path / "out_failures.csv") == []


def test_each_request_is_in_the_files(start, nginx, tmp_path):
    """With a stop timeout none is cut: what nginx answered is what the files say."""
    scenario = write(tmp_path / "s.json", {"host": nginx.url, "users": [
        {"name": "A", "weight": 2, "wait_time": 0.01, "tasks": ["/", "/10k", "/status/404"]},
        {"name": "B", "tasks": ["/accept"], "wait_time": 0.01}, {"name": "C", "tasks": ["/never"]}]})
    run = start("-f", scenario, "-u", "6", "-r", "3", "-t", "3s", "-s", "5", "--csv", str(tmp_path / "out"), "A", "B")
    assert run.wait() == 1
    started, succeeded, failed, interrupted = requests_said(run)
    assert interrupted == 0 and started == succeeded + failed
    rows = settled(nginx, 0, started)
    told = {("GET", r["Name"]): int(r["Request Count"]) for r in table(tmp_path / "out_stats.csv")[:-1]}
    assert told == dict(rows) and ("GET", "/never") not in told
    failures = table(tmp_path / "out_failures.csv")
    assert [(f["Name"], int(f["Occurrences"])) for f in failures] == [(FAILS, rows["GET", FAILS])]
    assert re.search(r'All users spawned: \{"A": 4, "B": 2, "C": 0\} \(6 total users\)', run.text())


def test_the_last_second_is_of_the_users_that_made_it(start, nginx, tmp_path):
    """Its samples come when they are gone: it counted as a second of nobody, and a run of one second had no steady state."""
    scenario = write(tmp_path / "s.json", {"host": nginx.url, "wait_time": 0.05, "tasks": [PASSES]})
    run = start("-f", scenario, "-u", "3", "-r", "9", "-t", "1", "--csv", str(tmp_path / "out"), "--threshold", "requests > 1 steady")
    assert run.wait() == 0
    assert table(tmp_path / "out_stats_history.csv")[-1]["User Count"] == "3"


def test_stages(start, nginx, tmp_path):
    scenario = write(tmp_path / "s.json", {
        "host": nginx.url, "wait_time": 0.05,
        "stages": [{"duration": 1, "users": 4, "spawn_rate": 100},
                   {"duration": "2s", "users": {"A": 1, "B": 2}, "spawn_rate": 100},
                   {"duration": 2.5, "users": 0, "spawn_rate": 100}],
        "users": [{"name": "A", "tasks": ["/"]}, {"name": "B", "tasks": ["/10k"]}]})
    run = start("-f", scenario, "-u", "50", "-t", "60")
    assert run.wait() == 0
    spawned = re.findall(r"All users spawned: (\{.*?\})", run.text())
    assert [json.loads(s) for s in spawned] == [{"A": 2, "B": 2}, {"A": 1, "B": 2}, {"A": 0, "B": 0}]
    assert re.search(r"will be ignored: --users --run-time", run.text())


def test_an_arrival_rate_does_not_wait_for_the_server(start, nginx, tmp_path):
    """Half a second for each answer: a closed model of as many users would have come to the same, one of fewer not."""
    scenario = write(tmp_path / "s.json", {
        "host": nginx.url, "arrival": {"rate": 40, "stages": [{"duration": 2, "rate": 40}], "max_users": 100},
        "users": [{"name": "A", "weight": 3, "tasks": ["/slow"]}, {"name": "B", "tasks": ["/"]}]})
    run = start("-f", scenario, "-s", "5", "--csv", str(tmp_path / "out"))
    assert run.wait() == 0
    assert requests_said(run) == [80, 80, 0, 0]
    assert settled(nginx, 0, 80) == {("GET", "/slow"): 60, ("GET", "/"): 20}


def test_a_pool_that_is_too_small_is_told(start, nginx, tmp_path):
    scenario = write(tmp_path / "s.json", {
        "host": nginx.url, "arrival": {"rate": 20, "max_users": 2}, "tasks": ["/slow"]})
    run = start("-f", scenario, "-t", "2", "-s", "5", "--csv", str(tmp_path / "out"))
    assert run.wait() == 0
    late, missed = map(int, run.wait_line(r"(\d+) tasks started late, (\d+) not at all").groups())
    started = requests_said(run)[0]
    assert started + missed in (40, 41) and 0 < late < started
    assert "saturated (users ran out (%d tasks never started))" % missed in run.text()
    slowest = float(table(tmp_path / "out_stats.csv")[0]["Max Response Time"])
    assert slowest > 1000  # since it was to start; nginx answers in 500 ms


# --- exit statuses --------------------------------------------------------------------------------

LOCUSTFILE = """
from locust import HttpUser, constant, task
class User(HttpUser):
    wait_time = constant(0.05)
    @task
    def get(self):
        self.client.get("%s")
"""


@pytest.mark.parametrize("path, args, stop", [
    (PASSES, [], None),
    (FAILS, [], None),
    (FAILS, ["--exit-code-on-error", "0"], None),
    (FAILS, ["--exit-code-on-error", "7"], None),
    (PASSES, ["--exit-code-on-error", "7"], None),
    (PASSES, [], signal.SIGINT),
    (FAILS, [], signal.SIGINT),
    (PASSES, [], signal.SIGTERM),
    (FAILS, ["--exit-code-on-error", "4"], signal.SIGTERM),
    (FAILS, ["--reset-stats"], None),
    (PASSES, ["--csv-full-history"], None),
    (PASSES, ["-u", "many"], None),
    (PASSES, ["-r", "0"], None),
], ids=str)
def test_exit_statuses_are_locusts(start, nginx, tmp_path, started, path, args, stop):
    (tmp_path / "locustfile.py").write_text(LOCUSTFILE % path)
    scenario = write(tmp_path / "s.json", {"wait_time": 0.05, "tasks": [path]})
    common = ["-u", "2", "-r", "2", "-H", nginx.url] + ([] if stop else ["-t", "2s"]) + args
    theirs = Process("locust", [locust(NEWEST), "--headless", "-f", "locustfile.py"] + common, str(tmp_path))
    started.append(theirs)
    statuses = []
    for begin in theirs.start, lambda: start("-f", scenario, *common):
        since = nginx.mark()
        run = begin()
        if stop:
            wait_for(lambda: nginx.count(since) > 20, 30, "requests of " + run.name)
            run.signal(stop)
        statuses.append(run.wait(60))
    assert statuses[0] == statuses[1]


@pytest.mark.parametrize("threshold, path, status", [
    ("p95 < 30000", PASSES, 0),
    ("p95 < 0.0001", PASSES, 99),
    ("GET /: avg < 30s", PASSES, 0),
    ("GET /other: avg < 30s", PASSES, 99),
    ("p95 < 30000 steady", PASSES, 0),
    ("requests > 1000000", PASSES, 99),
    ("p95 < 30000", FAILS, 1),
    ("failure_ratio <= 100 %", FAILS, 0),
    ("failures < 1", FAILS, 99),
])
def test_thresholds(start, nginx, threshold, path, status):
    run = start("-u", "2", "-r", "2", "-t", "3", "--threshold", threshold, nginx.url + path)
    assert run.wait() == status
    assert (("threshold '%s' is not met" % threshold) in run.text()) == (status == 99)


def test_a_threshold_ends_the_run(start, nginx):
    run = start("--threshold", "failure_ratio < 0.5 abort after 1", nginx.url + FAILS)
    assert run.wait(60) == 99


def test_a_mistake_is_told_before_the_load(start, nginx, tmp_path):
    for args in (["--threshold", "p95 <"], ["--csv", "/dev/null/x"], ["-H", "ftp://h"], ["NoSuchClass"],
                 ["--name", "a", "--dest", str(tmp_path)], ["--source-address", "nowhere"]):
        run = start(nginx.url + PASSES, *args, name="mistake-%d" % len(os.listdir(tmp_path)))
        assert run.wait() == 2, run.text()
        assert len([line for line in run.text().splitlines() if line.startswith("cicada:")]) == 1
    assert nginx.count() == 0


def test_a_generator_without_descriptors_says_so(nginx, tmp_path):
    limit = (60, 60)
    done = subprocess.run([CICADA, "--headless", "-u", "200", "-r", "200", "-t", "2", "--fail-if-saturated",
                           nginx.url + "/slow"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit))
    assert done.returncode == 98, done.stdout
    assert re.search(r"saturated \(file descriptors ran out \(\d+\)\)", done.stdout)


def test_a_full_disk_is_one_line_before_the_load(start, nginx, full_disk):
    for option, value in (("--csv", "x"), ("--html", "x.html"), ("--json-file", "x"), ("--results-dir", "out")):
        run = start(option, str(full_disk / value), nginx.url + PASSES, name="full" + option)
        assert run.wait() == 2
        told = [line for line in run.text().splitlines() if "No space left on device" in line]
        assert len(told) == 1 and str(full_disk / value) in told[0], run.text()
    assert nginx.count() == 0


def test_an_unwritable_folder_is_one_line_before_the_load(start, nginx, tmp_path):
    """Nobody can make a file in /proc, not even root."""
    for option in "--csv", "--html", "--json-file", "--results-dir":
        run = start(option, "/proc/nowhere/x", nginx.url + PASSES, name="unwritable" + option)
        assert run.wait() == 2
        told = [line for line in run.text().splitlines() if "/proc/nowhere" in line]
        assert len(told) == 1 and "No such file" in told[0], run.text()
    assert nginx.count() == 0


# --- the beginning --------------------------------------------------------------------------------

FEW = 1000  # system calls, most of them to load libraries: some milliseconds of them


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_nothing_is_waited_for_before_the_first_request(nginx, tmp_path):
    """How soon it leaves is measured by bench/; that nothing of it is waiting is seen here."""
    trace = tmp_path / "trace"
    done = subprocess.run(["strace", "-f", "-o", str(trace), CICADA, "--headless", "--iterations", "1", "--only-summary",
                           nginx.url + PASSES], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    if "ptrace" in done.stdout:
        pytest.skip("no process can be traced here")
    assert done.returncode == 0, done.stdout
    calls = trace.read_text().splitlines()
    first = next(i for i, call in enumerate(calls) if "connect(" in call and "htons(%d)" % nginx.port in call)
    before = calls[:first]
    assert 100 < len(before) < FEW
    assert not [call for call in before if re.search(r"sleep\(|connect\(|sendto\(|sendmsg\(|vfork\(|wait4\(", call)]
    assert len([call for call in before if "execve(" in call]) == 1
    # a wait may end by what another thread did, not by its time
    assert not [call for call in before if re.search(r"(poll|epoll_wait|epoll_pwait2?|select6?|ppoll)\b.*= 0$", call)]


def test_the_name_of_the_page_is_locusts(start, nginx, tmp_path, started):
    (tmp_path / "locustfile.py").write_text(LOCUSTFILE % PASSES)
    scenario = write(tmp_path / "s.json", {"wait_time": 0.05, "tasks": [PASSES]})
    for args in ([], ["-u", "3", "-r", "2.5"], ["-r", "10"]):
        common = ["-H", nginx.url, "-t", "1s", *args]
        theirs = Process("locust", [locust(NEWEST), "--headless", "-f", "locustfile.py", "--html", "theirs/{u}_{r}_{t}.html"]
                         + common, str(tmp_path))
        started.append(theirs)
        assert theirs.start().wait(60) == 0
        assert start("-f", scenario, "--html", "ours/{u}_{r}_{t}.html", *common).wait() == 0
    assert sorted(os.listdir(tmp_path / "ours")) == sorted(os.listdir(tmp_path / "theirs"))


STRICTER = [  # what is a mistake of the user: Locust's status, and ours, which is 2 for each of them
    (1, ["NoSuchClass"]), (1, ["-T", "no-such-tag"]), (1, ["-H", "127.0.0.1:9"]), (0, ["-H", ""]),
]


@pytest.mark.parametrize("theirs, args", STRICTER, ids=str)
def test_mistakes_that_locust_has_another_status_for(start, nginx, tmp_path, started, theirs, args):
    (tmp_path / "locustfile.py").write_text(LOCUSTFILE % PASSES)
    scenario = write(tmp_path / "s.json", {"wait_time": 0.05, "tasks": [PASSES]})
    common = ["-H", nginx.url, "-t", "2s"] + args
    run = Process("locust", [locust(NEWEST), "--headless", "-f", "locustfile.py"] + common, str(tmp_path))
    started.append(run)
    assert run.start().wait(60) == theirs
    run = start("-f", scenario, *common)
    assert run.wait() == 2
    assert len([line for line in run.text().splitlines() if line.startswith("cicada: ")]) == 1
    assert nginx.count() == 0


# --- signals --------------------------------------------------------------------------------------

def check_files(folder, run):
    started, succeeded, failed, interrupted = requests_said(run)
    assert started == succeeded + failed + interrupted
    total = table(folder / "stats.csv")[-1]
    assert total["Name"] == "Aggregated"
    assert int(total["Request Count"]) == succeeded + failed
    assert sum(int(f["Occurrences"]) for f in table(folder / "failures.csv")) == failed
    for row in table(folder / "stats_history.csv"):
        assert len(row) == len(set(row)) and None not in row.values()
    with open(folder / "stats.jsonl") as f:
        assert "trial_summary" in [json.loads(line)["metric"] for line in f]
    with open(folder / "status.json") as f:
        status = json.load(f)
    assert status == {"locust_exit_code": run.popen.returncode, "stats_generated": succeeded + failed > 0}
    assert not [name for name in os.listdir(folder) if "tmp" in name]


@pytest.mark.parametrize("attempt", range(6))
def test_ctrl_c_at_any_moment(rng, start, nginx, tmp_path, attempt):
    fails, twice = rng.random() < 0.5, rng.random() < 0.5
    run = start("-u", "20", "-r", "10", "-s", "5", "--results-dir", str(tmp_path / "out"),
                nginx.url + (FAILS if fails else rng.choice([PASSES, "/slow"])))
    run.wait_line("Ramping to")
    time.sleep(rng.random() ** 2 * 3)
    run.signal(signal.SIGINT)
    if twice:
        time.sleep(rng.random() * 0.1)
        run.signal(signal.SIGINT)
    status = run.wait()
    failed = requests_said(run)[2]
    assert status == (1 if failed else 0)
    check_files(tmp_path / "out", run)


def test_ctrl_c_while_files_are_written_is_too_late_to_harm(start, nginx, tmp_path):
    """The page goes to a pipe that nobody reads yet: the run stands in the middle of its files."""
    pipe = tmp_path / "page"
    os.mkfifo(pipe)
    run = start("-u", "2", "-r", "2", "-t", "1", "--html", str(pipe), "--results-dir", str(tmp_path / "out"),
                nginx.url + FAILS)
    run.wait_line("Shutting down")
    wait_for((tmp_path / "out" / "failures.csv").exists, 10, "the first files")
    for _ in range(2):
        run.signal(signal.SIGINT)
        time.sleep(0.1)
    assert run.alive()
    page = pipe.read_text()
    assert run.wait() == 1
    assert page == (tmp_path / "out" / "report.html").read_text() and page.rstrip().endswith("</html>")
    check_files(tmp_path / "out", run)


def test_the_second_ctrl_c_waits_for_nothing(start, nginx, tmp_path):
    run = start("-s", "1h", "--results-dir", str(tmp_path / "out"), nginx.url + "/slower")
    run.wait_line("All users spawned")
    run.signal(signal.SIGINT)
    time.sleep(0.3)
    assert run.alive()
    run.signal(signal.SIGINT)
    assert run.wait() == 0
    assert requests_said(run) == [1, 0, 0, 1]
    check_files(tmp_path / "out", run)


# --- keys -----------------------------------------------------------------------------------------

def test_keys_change_the_users(nginx, tmp_path):
    master, terminal = pty.openpty()
    before = termios.tcgetattr(terminal)
    log = tmp_path / "log"
    with open(log, "wb") as out:
        run = subprocess.Popen([CICADA, "--headless", "-u", "2", "-r", "2", "--only-summary", nginx.url + PASSES],
                               stdin=terminal, stdout=out, stderr=out, start_new_session=True,
                               preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)))
    try:
        total = 2
        for key, change in ((b"", 0), (b"w", 1), (b"W", 10), (b"s", -1), (b"S", -10), (b"S", -10)):
            os.write(master, key)
            total = max(0, total + change)
            wait_for(lambda: re.findall(r"\((\d+) total users\)", log.read_text())[-1:] == [str(total)], 20,
                     lambda: "%d users\n%s" % (total, log.read_text()))
        run.send_signal(signal.SIGINT)
        assert run.wait(20) == 0
        assert termios.tcgetattr(terminal) == before
    finally:
        run.kill()
        run.wait()
        os.close(master)
        os.close(terminal)


@pytest.mark.parametrize("shape", [
    {"stages": [{"duration": 1, "users": 1, "spawn_rate": 1}, {"duration": 2, "users": 2, "spawn_rate": 1}]},
    {"arrival": {"stages": [{"duration": "2s", "rate": 20}]}}], ids=["stages", "arrival"])
def test_the_live_view_knows_the_end_of_a_scenario(nginx, tmp_path, shape):
    """--run-time is overruled, so the time left is not its."""
    scenario = write(tmp_path / "s.json", dict(shape, host=nginx.url, wait_time=0.1, tasks=[PASSES]))
    master, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    run = subprocess.Popen([CICADA, "--headless", "-f", scenario, "-t", "60"], stdin=subprocess.DEVNULL, stderr=terminal,
                           stdout=subprocess.DEVNULL, env=dict(os.environ, TERM="xterm", NO_COLOR="1"))
    os.close(terminal)
    seen = b""
    try:
        while True:
            seen += os.read(master, 65536)
    except OSError:  # nobody holds the other side any more
        assert run.wait(20) == 0
    finally:
        run.kill()
        run.wait()
        os.close(master)
    assert b" of 00:02 " in seen and b"of 01:00" not in seen, seen.decode()

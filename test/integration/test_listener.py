"""The master's part of the report (`cicada listener`, which is also in every locustfile that `cicada locustfile` makes):
real masters, with workers that ask a real Prometheus or a server that answers the same to all."""
import json
import os
import signal
import subprocess
import time

import pytest

from harness.fake_http import FakeHttp, answer
from harness.master import HERE, NEWEST, VENVS, VERSIONS, locust
from harness.process import wait_for
from harness.worker import CICADA
from test_report_attached import FAULTS, NOWHERE, PROFILE, SEEDED, check_summary, faulty, kubernetes, reader, reports
from test_telemetry_prometheus import Prometheus

WAITING = "waiting for the report of the worker"
INCOMPLETE = "the report is not complete"
SEVEN = {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [1, "7"]}]}}
ONE_VALUE = {"profile": "one", "measurements": [{"name": "shop.seven", "kind": "value", "query": "seven"}]}

LOCUSTFILE = """
import sys
sys.path.append(%r)
import cicada_listener
from report_locustfile import Buyer, Visitor
"""

SHAPE = """
from locust import LoadTestShape

class Steps(LoadTestShape):
    def tick(self):
        return next(((users, 100) for until, users in ((3, 2), (6, 5)) if self.get_run_time() < until), None)
"""


@pytest.fixture
def locustfile(tmp_path):
    """As a person has it: the listener beside a locustfile that imports it."""
    text = subprocess.run([CICADA, "listener"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, timeout=60).stdout
    (tmp_path / "cicada_listener.py").write_bytes(text)
    path = tmp_path / "mylocustfile.py"
    path.write_text(LOCUSTFILE % HERE)
    return path


@pytest.fixture
def seven():
    """Answers 7 to every question."""
    server = FakeHttp(answer("200 OK", json.dumps(SEVEN).encode(), "Content-Type: application/json\r\n"))
    yield server
    server.close()


@pytest.fixture
def asking(tmp_path, seven):
    """asking(lag): arguments of workers that ask the server of sevens."""
    path = tmp_path / "one.json"
    path.write_text(json.dumps(ONE_VALUE))
    return lambda lag_s: ["--prometheus-url", seven.url, "--telemetry-profile", path, "--telemetry-lag", lag_s]


def rows(prefix):
    with open("%s_stats.jsonl" % prefix) as f:
        return {row["metric"]: row for row in map(json.loads, f)}


def document(prefix):
    with open("%s_server_summary.json" % prefix) as f:
        return json.load(f)


def text(number):
    return number if number is None else repr(number) if isinstance(number, float) else str(number)


def check_rows(prefix, master):
    """The rows of names and the failure ratios, against what the master counted at its very end."""
    found, final = rows(prefix), master.final()
    names = {metric: row for metric, row in found.items()
             if metric not in ("trial_summary", "server_summary", "generator")}
    assert {m: [int(r["measurements"]["request_count"]), int(r["measurements"]["failure_count"])]
            for m, r in names.items()} == {key.replace(" ", "_", 1): counts for key, counts in final["rows"].items()}
    for row in names.values():
        assert {"type", "name", "requests_per_s", "p50", "p99_9", "p100"} < set(row["measurements"])
    requests, failures = final["total"]
    trial = found["trial_summary"]
    ratio = failures / requests if requests else None
    assert trial["frontiers"]["aggregate_failure_ratio"] == ratio
    assert trial["measurements"]["aggregate_failure_ratio"] == text(ratio)
    if "GET_missing" in names:
        assert trial["measurements"]["missing_failure_ratio"] == "1.0"
    if "POST_buy" in names:
        assert trial["measurements"]["buy_failure_ratio"] == "0.0"
    assert {key: text(value) for key, value in dict(trial["raw_configuration"], **trial["frontiers"]).items()}.items() <= \
        trial["measurements"].items()
    assert all(value is None or isinstance(value, str) for row in found.values() for value in row["measurements"].values())
    return found


def check_sevens(prefix):
    found = rows(prefix)
    assert found["server_summary"]["measurements"] == {"shop_seven": "7.0"}
    assert document(prefix)["shop"]["seven"] == 7 and document(prefix)["metadata"]["profile"] == "one"
    return found


def interrupt(master, until):
    """CTRL-C until the log says so: one that comes while ZeroMQ looks for a message is lost without a trace."""
    since = master.size()
    for _ in range(5):
        master.signal(signal.SIGINT)
        try:
            return master.wait_line(until, 5, since)
        except TimeoutError:
            pass
    raise TimeoutError(master.text())


# --- whole at the end of a headless run


@pytest.mark.parametrize("version", VERSIONS)
def test_a_headless_run_ends_with_a_whole_report(version, nginx, start_master, start_cicada, start_python_worker, locustfile,
                                                 asking, tmp_path):
    """A mixed fleet; a cicada worker came first and leads."""
    prefix = tmp_path / "run"
    master = start_master(version=version, host=nginx.url, users=9, rate=100, run_time=8, workers=3, locustfile=locustfile,
                          args=["--csv", prefix])
    cicadas = [start_cicada(master.port, name="leader", env=NOWHERE, args=asking(2))]
    master.wait_line("reported as ready")
    cicadas.append(start_cicada(master.port, name="other", env=NOWHERE, args=asking(2)))
    python = start_python_worker(master.port, version=version)
    assert master.wait(90) in (0, 1)
    assert master.text().count(WAITING) == 1 and INCOMPLETE not in master.text()
    check_rows(prefix, master)
    found = check_sevens(prefix)
    assert found["trial_summary"]["raw_configuration"] == {
        "machine_type": None, "node_count": None, "allocatable_cores": None, "allocatable_ram_gb": None,
        "worker_pod_count": None, "capacity_scope": None, "users_source": "master", "actors_per_user": 1.0}
    assert "cicada: servers: shop_seven 7" in master.text()
    assert "_stats.jsonl and " in master.text() and "requests_started" in master.text()
    # the workers' own counts, added up
    generator = found["generator"]["measurements"]
    assert int(generator["requests_started"]) == sum(c.requests()[0] for c in cicadas)
    assert generator["saturated"] in ("false", "true") and float(generator["cpu_max"]) > 0
    for cicada in cicadas:
        assert cicada.wait() == 0 and cicada.errors() == []
    master.assert_clean()
    assert "Unknown message" not in python.text() and "Traceback" not in python.text()


@pytest.mark.parametrize("version", (VERSIONS[0], NEWEST))
def test_where_python_came_first_a_cicada_worker_is_named(version, nginx, start_master, start_cicada, start_python_worker,
                                                          locustfile, asking, tmp_path):
    """One of those that may report, and one alone; in the next run it leads from the start."""
    master = start_master(version=version, locustfile=locustfile, args=["--csv", tmp_path / "run"])
    python = start_python_worker(master.port, version=version)
    master.wait_workers(1, ("ready",), timeout=40)
    never = start_cicada(master.port, name="never", env=NOWHERE, args=asking(1) + ["--report", "never"])
    others = [start_cicada(master.port, name=name, env=NOWHERE, args=asking(1)) for name in ("one", "two")]
    for run in (1, 2):
        said = master.size()
        master.wait_workers(4, ("ready",), timeout=40)  # Python's is away for a while after a stop
        master.swarm(8, 100, nginx.url)
        master.wait_users(8)
        wait_for(lambda: any(w.text().count("this worker reports for the test") == run for w in others), 20, master.text)
        time.sleep(4)  # a second leader would have shown up
        master.stop()
        master.wait_line("this report is in", 30, said)
        found = check_sevens(tmp_path / "run")
        assert found["trial_summary"]["raw_configuration"]["users_source"] == "master"
        metadata = document(tmp_path / "run")["metadata"]
        assert metadata["end_ts"] - metadata["start_ts"] >= 4  # the whole run, and not from when it was named
        assert sorted(w.text().count("this worker reports for the test") for w in others) == [0, run]
    assert master.end() in (0, 1)
    assert "reports for the test" not in never.text() and INCOMPLETE not in master.text()
    assert len({r["worker"] for r in master.records("report") if r["cicada"] and r["cicada"]["reporter"]}) == 1
    assert "Unknown message" not in python.text() and "Traceback" not in python.text()
    master.assert_clean()


@kubernetes
def test_facts_frontiers_and_a_real_prometheus(kube, nginx, start_master, start_cicada, locustfile, tmp_path):
    prometheus = Prometheus(tmp_path / "prom", "live")
    profile = tmp_path / "mine.json"
    profile.write_text(json.dumps(PROFILE))
    prefix = tmp_path / "run"
    try:
        master = start_master(host=nginx.url, users=12, rate=100, run_time=8, workers=2, locustfile=locustfile,
                              args=["--csv", prefix])
        args = ["--prometheus-url", prometheus.url, "--telemetry-profile", profile, "--telemetry-lag", "2",
                "--name", "trial", "--tag", "a1", "--dest", tmp_path / "results"]
        for name in ("one", "two"):
            start_cicada(master.port, name=name, env=reader(kube), args=args)
        assert master.wait(90) in (0, 1)
    finally:
        prometheus.stop()
    found = check_rows(prefix, master)
    assert found["trial_summary"]["raw_configuration"] == dict(SEEDED, users_source="master", actors_per_user=1.0)
    frontiers = found["trial_summary"]["frontiers"]
    assert frontiers["actors_per_node"] == 6 and frontiers["ap_ratio_p99"] == 3
    check_summary(found["server_summary"]["measurements"])
    assert {(row["test_name"], row["tag"]) for row in found.values()} == {("trial", "a1")}
    # the leader's own files and the master's say the same of the servers
    folder, = (tmp_path / "results").glob("runs/trial/run_date=*/run_ts=*/run_tag=a1")
    wait_for(lambda: (folder / "status.json").exists(), 20, "status.json")
    assert json.loads((folder / "server_summary.json").read_text()) == document(prefix)
    theirs = {row["metric"]: row for row in map(json.loads, (folder / "stats.jsonl").read_text().splitlines())}
    assert theirs["server_summary"] == found["server_summary"]
    assert set(theirs["trial_summary"]) == set(found["trial_summary"])
    assert set(theirs["generator"]["measurements"]) == set(found["generator"]["measurements"])
    mine, his = (r["trial_summary"]["measurements"] for r in (found, theirs))
    assert set(his) - set(mine) == set()
    names = set(theirs) & set(found) - {"trial_summary", "server_summary", "generator"}
    assert names and all(set(theirs[n]["measurements"]) == set(found[n]["measurements"]) for n in names)


@pytest.mark.parametrize("version", (VERSIONS[0], NEWEST))
def test_an_interrupted_run_ends_with_a_whole_report_too(version, nginx, start_master, start_cicada, locustfile, asking,
                                                         tmp_path):
    master = start_master(version=version, host=nginx.url, users=4, rate=100, locustfile=locustfile,
                          args=["--csv", tmp_path / "run"])
    start_cicada(master.port, env=NOWHERE, args=asking(1))
    wait_for(lambda: reports(master), 30, master.text)
    interrupt(master, WAITING)
    assert master.wait(60) in (0, 1)
    check_rows(tmp_path / "run", master)
    check_sevens(tmp_path / "run")
    master.assert_clean(allow=("KeyboardInterrupt",))


@pytest.mark.parametrize("version", (VERSIONS[0], NEWEST))
@pytest.mark.parametrize("run_time", (None, 3))
def test_a_second_interrupt_goes_on_without_it(version, run_time, nginx, start_master, start_cicada, locustfile, asking,
                                               tmp_path):
    master = start_master(version=version, host=nginx.url, users=4, rate=100, run_time=run_time, locustfile=locustfile,
                          args=["--csv", tmp_path / "run"])
    cicada = start_cicada(master.port, env=NOWHERE, args=asking(600))
    if not run_time:
        wait_for(lambda: reports(master), 30, master.text)
        interrupt(master, WAITING)
    master.wait_line(WAITING, 40)
    interrupt(master, "interrupted|Shutting down")
    assert master.wait(60) in (0, 1)
    assert INCOMPLETE in master.text()
    found = check_rows(tmp_path / "run", master)
    assert set(found["server_summary"]["measurements"].values()) <= {None}
    assert document(tmp_path / "run")["metadata"]["queries_ok"] is None
    cicada.signal(signal.SIGTERM)


def test_a_load_shape_ends_with_a_whole_report(nginx, start_master, start_cicada, locustfile, asking, tmp_path):
    locustfile.write_text(locustfile.read_text() + SHAPE)
    for version in (VERSIONS[0], NEWEST):
        prefix = tmp_path / version
        master = start_master(version=version, host=nginx.url, users=1, locustfile=locustfile, args=["--csv", prefix])
        start_cicada(master.port, name="cicada-" + version, env=NOWHERE, args=asking(1))
        assert master.wait(60) in (0, 1)
        check_rows(prefix, master)
        check_sevens(prefix)
        master.assert_clean(allow=("[Ii]gnor", "no impact on LoadShapes"))


@pytest.mark.smoke
def test_a_made_locustfile_has_it(nginx, start_master, start_cicada, start_python_worker, asking, tmp_path):
    """One file for the master and both kinds of workers."""
    scenario, made = tmp_path / "visit.json", tmp_path / "made.py"
    scenario.write_text(json.dumps({"host": nginx.url, "users": [
        {"name": "Visitor", "wait_time": {"constant": 0.05}, "tasks": ["/", "/status/404"]}]}))
    made.write_bytes(subprocess.run([CICADA, "locustfile", scenario], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    check=True, timeout=60).stdout)
    master = start_master(users=6, rate=100, run_time=6, workers=2, locustfile=made, args=["--csv", tmp_path / "run"])
    cicada = start_cicada(master.port, scenario="-", env=NOWHERE, args=asking(1))
    python = start_python_worker(master.port, locustfile=made)
    assert master.wait(90) in (0, 1)
    found = check_sevens(tmp_path / "run")
    assert found["trial_summary"]["raw_configuration"]["users_source"] == "master"
    counted = [found["GET_/"]["measurements"], found["GET_/status/404"]["measurements"]]
    assert {tuple(key) + (int(row["request_count"]),) for key, row in
            zip((("GET", "/"), ("GET", "/status/404")), counted)} == {key + (n,) for key, n in nginx.rows().items()}
    assert found["trial_summary"]["measurements"]["status_404_failure_ratio"] == "1.0"
    assert found["trial_summary"]["frontiers"]["aggregate_failure_ratio"] == \
        int(counted[1]["failure_count"]) / sum(nginx.rows().values())
    assert cicada.wait() == 0 and "Traceback" not in python.text() and "Unknown message" not in python.text()
    master.assert_clean()


# --- what ends the waiting, and when there is none


def test_nothing_is_waited_for_when_nobody_asks(nginx, start_master, start_cicada, locustfile, tmp_path):
    master = start_master(host=nginx.url, users=4, rate=100, run_time=4, workers=2, locustfile=locustfile,
                          args=["--csv", tmp_path / "run"])
    for name in ("one", "two"):
        start_cicada(master.port, name=name, env=NOWHERE)
    assert master.wait(60) in (0, 1)
    assert WAITING not in master.text() and INCOMPLETE not in master.text()
    found = check_rows(tmp_path / "run", master)
    assert found["server_summary"]["measurements"] == {}
    metadata = document(tmp_path / "run")["metadata"]
    assert metadata["prom_url"] is None and metadata["end_ts"] > metadata["start_ts"]
    master.assert_clean()


def test_the_flag_bounds_the_waiting(nginx, start_master, start_cicada, locustfile, asking, tmp_path):
    for given, env in ((["--cicada-report-timeout", "1s"], {}), ([], {"LOCUST_CICADA_REPORT_TIMEOUT": "1"}),
                       (["--cicada-report-timeout", "0"], {})):
        master = start_master(host=nginx.url, users=4, rate=100, run_time=3, locustfile=locustfile, args=given, env=env)
        cicada = start_cicada(master.port, name="cicada-%d" % master.port, env=NOWHERE, args=asking(600))
        assert master.wait(60) in (0, 1)
        assert INCOMPLETE in master.text() and (WAITING in master.text()) == (given[-1:] != ["0"])
        assert "--csv PREFIX names some" in master.text()
        cicada.signal(signal.SIGTERM)
    assert not [name for name in os.listdir(tmp_path) if "jsonl" in name]


@pytest.mark.parametrize("how", (signal.SIGKILL, signal.SIGTERM))
def test_a_leader_that_is_gone_is_not_waited_for(how, nginx, start_master, start_cicada, locustfile, asking, tmp_path):
    """Its lag would keep the master for ten minutes."""
    master = start_master(host=nginx.url, users=4, rate=100, run_time=5, workers=2, locustfile=locustfile,
                          args=["--csv", tmp_path / "run"])
    cicadas = [start_cicada(master.port, name=name, env=NOWHERE, args=asking(600)) for name in ("one", "two")]
    master.wait_line(WAITING, 40)
    leader, = (c for c in cicadas if "this worker reports for the test" in c.text())
    leader.killed = True
    leader.signal(how)
    assert master.wait(60) in (0, 1)
    check_rows(tmp_path / "run", master)
    if how == signal.SIGKILL:
        assert INCOMPLETE in master.text()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_prometheus_leaves_nulls_at_the_master(fault, nginx, start_master, start_cicada, serve, locustfile, tmp_path):
    url, costs_s = faulty(serve, fault)
    master = start_master(host=nginx.url, users=4, rate=100, run_time=3, locustfile=locustfile,
                          args=["--csv", tmp_path / "run", "--exit-code-on-error", "0"])
    cicada = start_cicada(master.port, env=NOWHERE, args=["--prometheus-url", url] +
                          (["--telemetry-lag", "0"] if fault == "slow" else []))
    master.wait_line("shutting down", 60)
    ending = time.monotonic()
    assert master.wait(60) == 0
    assert time.monotonic() - ending < costs_s + 1 + 4  # the quit itself takes one
    assert INCOMPLETE not in master.text()
    found = check_rows(tmp_path / "run", master)
    assert len(found["server_summary"]["measurements"]) > 20
    assert set(found["server_summary"]["measurements"].values()) == {None}
    assert document(tmp_path / "run")["metadata"]["queries_ok"] == 0
    assert cicada.wait() == 0 and len(cicada.errors()) == (2 if fault == "slow" else 1)
    master.assert_clean()


def test_only_python_workers(nginx, start_master, start_python_worker, locustfile, tmp_path):
    master = start_master(host=nginx.url, users=4, rate=100, run_time=4, locustfile=locustfile,
                          args=["--csv", tmp_path / "run"])
    python = start_python_worker(master.port)
    assert master.wait(60) in (0, 1)
    assert WAITING not in master.text() and "cicada: generator" not in master.text()
    found = check_rows(tmp_path / "run", master)
    assert set(found["trial_summary"]["raw_configuration"].values()) == {None}
    assert set(found["generator"]["measurements"].values()) == {None}
    assert "Unknown message" not in python.text()
    master.assert_clean()


def test_no_worker_at_all_and_no_master(locustfile, tmp_path):
    for arguments, last in ((["--master", "--expect-workers-max-wait", "1"], "Gave up waiting"), ([], "Shutting down")):
        done = subprocess.run([locust(NEWEST), "-f", locustfile, "--headless", "-u", "1", "-t", "1s", "-H", "http://127.0.0.1:9",
                               "--csv", str(tmp_path / "run"), "--master-bind-port", "0", "--cicada-report-timeout", "1m"]
                              [:None if arguments else -4] + arguments, cwd=tmp_path, text=True, timeout=60,
                              env=dict(os.environ, RECORD=str(tmp_path / "record")),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert last in done.stdout and "cicada" not in done.stdout and "Traceback" not in done.stdout, done.stdout
    assert not (tmp_path / "run_stats.jsonl").exists()


# --- with the web UI


def test_web_runs_are_written_when_they_are_whole(nginx, start_master, start_cicada, locustfile, asking, tmp_path):
    master = start_master(locustfile=locustfile, args=["--csv", tmp_path / "run"])
    start_cicada(master.port, env=NOWHERE, args=asking(1))
    master.wait_workers(1, ("ready",))
    for run in (1, 2):
        said = master.size()
        master.swarm(4, 100, nginx.url)
        master.wait_users(4)
        master.wait_requests(10)
        master.stop()
        assert WAITING not in master.text(said)  # the user is not kept waiting
        master.wait_line("this report is in", 30, said)
        check_sevens(tmp_path / "run")
        assert [row for metric, row in rows(tmp_path / "run").items() if metric.startswith("GET_")]
    assert master.end() in (0, 1)
    assert master.text().count("this report is in") == 2 and INCOMPLETE not in master.text()
    master.assert_clean()


def test_a_web_master_that_ends_in_mid_run_waits(nginx, start_master, start_cicada, locustfile, asking, tmp_path):
    master = start_master(locustfile=locustfile, args=["--csv", tmp_path / "run"])
    start_cicada(master.port, env=NOWHERE, args=asking(1))
    master.wait_workers(1, ("ready",))
    master.swarm(4, 100, nginx.url)
    master.wait_users(4)
    wait_for(lambda: [r for r in reports(master) if r["reporter"]], 20, master.text)
    assert master.end(60) in (0, 1)
    check_rows(tmp_path / "run", master)
    check_sevens(tmp_path / "run")


def test_autoquit_waits(nginx, start_master, start_cicada, locustfile, asking, tmp_path):
    master = start_master(locustfile=locustfile, args=["--csv", tmp_path / "run", "--autostart", "--autoquit", "0", "-u", "4",
                                                       "-r", "100", "-t", "4s", "-H", nginx.url])
    start_cicada(master.port, env=NOWHERE, args=asking(1))
    assert master.wait(60) in (0, 1)
    check_rows(tmp_path / "run", master)
    check_sevens(tmp_path / "run")
    master.assert_clean()


# --- what must not matter


def test_a_document_that_no_message_can_hold(nginx, start_master, start_cicada, locustfile, seven, tmp_path):
    name = ".".join("n" * 40)
    profile = tmp_path / "deep.json"
    profile.write_text(json.dumps({"profile": "deep", "measurements": [{"name": name, "kind": "value", "query": "seven"}]}))
    master = start_master(host=nginx.url, users=2, rate=100, run_time=3, locustfile=locustfile, args=["--csv", tmp_path / "run"])
    cicada = start_cicada(master.port, env=NOWHERE, args=["--prometheus-url", seven.url, "--telemetry-profile", profile])
    assert master.wait(60) in (0, 1)
    assert check_rows(tmp_path / "run", master)["server_summary"]["measurements"] == {name.replace(".", "_"): "7.0"}
    assert set(document(tmp_path / "run")) == {"metadata"} and INCOMPLETE not in master.text()
    assert cicada.wait() == 0 and cicada.errors() == []


def test_files_that_cannot_be_written_are_one_line(nginx, start_master, start_cicada, locustfile, asking, tmp_path):
    (tmp_path / "run_stats.jsonl").mkdir()
    master = start_master(host=nginx.url, users=2, rate=100, run_time=3, locustfile=locustfile,
                          args=["--csv", tmp_path / "run", "--exit-code-on-error", "0"])
    start_cicada(master.port, env=NOWHERE, args=asking(0))
    assert master.wait(60) == 0
    assert len([line for line in master.text().splitlines() if "/WARNING/cicada" in line]) == 1
    assert "run_stats.jsonl cannot be written (Is a directory), continuing" in master.text()


STRANGE = """
import math, os, random, sys, types
sys.path.insert(0, %r)
import cicada_listener as c
from locust.stats import RequestStats

stats = RequestStats()
stats.log_request("GET", "/ä", 1.5, 10)
stats.log_request("POST", "GetItem \\n", 0, 0)
stats.log_error("POST", "GetItem \\n", "no")
stats.get("never ran", "")
environment = types.SimpleNamespace(stats=stats, runner=types.SimpleNamespace(stats=stats, exceptions={}))
values = [None, True, False, 0, -1, 5, 1.5, math.nan, math.inf, -math.inf, 2 ** 63, 1e300, "", "x", "\\udc80", b"x", [], [1],
          {}, {"a": 1}, {1: math.nan}, object(), {"node_count": "two", "machine_type": 7, "cpu_max": [], "saturated": "yes"}]
keys = ("version", "generator", "reporter", "complete", "start_s", "end_s", "cluster_facts", "frontiers", "users_source",
        "actors_per_user", "actors", "server_summary", "server_document", "report_within_s", "test_name", "tag")
inner = c.CICADA_WORST + c.CICADA_SUMS + c.CICADA_FACTS + c.CICADA_FRONTIERS + c.CICADA_PER_POD + c.CICADA_ACTORS \\
    + ("saturated", "saturated_reasons")
random.seed(7)
for turn in range(3000):
    reports = c.CicadaReports()
    for worker in range(random.randrange(4)):
        told = {key: random.choice(values) for key in keys if random.random() < .8}
        for key in ("generator", "cluster_facts", "frontiers", "actors"):
            if random.random() < .7:
                told[key] = {k: random.choice(values) for k in inner}
        if random.random() < .8:
            told["reporter"] = told["complete"] = True
        reports.add(str(worker), random.choice([{"cicada": told}] * 9 + [{"cicada": random.choice(values)}, None, 3]))
    owing = reports.owing()
    assert all(math.isfinite(s) for s in owing.values())
    rows = c.cicada_rows(reports, environment, 1.7e9)
    prefix = os.path.join(sys.argv[1], "strange")
    c.cicada_write(prefix, "".join(c.json.dumps(r, ensure_ascii=False, allow_nan=False) + "\\n" for r in rows))
    c.json.dumps(c.cicada_server_document(reports.best(), 1.7e9), ensure_ascii=False, allow_nan=False)
    assert [len(r["measurements"]) > 0 for r in rows[:3]] == [True] * 3
    trial, generator = rows[-3], rows[-1]["measurements"]
    assert trial["measurements"]["never_ran_failure_ratio"] is None
    assert trial["measurements"]["get_item_failure_ratio"] == "1.0"
    if not reports.reports:
        assert {v for k, v in trial["frontiers"].items() if k != "aggregate_failure_ratio"} == {None}
    report = reports.best()
    for name in c.CICADA_FRONTIERS:
        given = c.cicada_object(report.get("frontiers")).get(name)
        if trial["frontiers"][name] == 0:
            assert given == 0 and given is not False
a, b = c.CicadaReports(), c.CicadaReports()
def told(**g): return {"cicada": {"generator": g}}
a.add("1", told(cpu_max=50.5, connect_errors=1, saturated=False, saturated_reasons="", retries=None))
a.add("2", told(cpu_max=93.0, connect_errors=2, saturated=True, saturated_reasons="CPU", loop_lag_p99_ms=0))
a.add("3", {"stats": []})
g = a.generator()
assert (g["cpu_max"], g["connect_errors"], g["saturated"], g["saturated_reasons"]) == (93.0, 3, True, "CPU")
assert g["retries"] is None and g["loop_lag_p99_ms"] == 0 and g["cpu_p50"] is None and list(a.known) == ["1", "2"]
# one is named when all have told that nobody leads, and only one that may
n = c.CicadaReports()
n.add("python", {"stats": []})
n.add("old", {"cicada": {"reporter": False}})
n.add("never", {"cicada": {"reporter": False, "may_report": False}})
assert n.candidate(["python", "old", "never"]) is None
n.add("gone", {"cicada": {"reporter": False, "may_report": True}})
n.add("auto", {"cicada": {"reporter": False, "may_report": True}})
assert n.candidate(["python", "auto", "silent"]) is None
assert n.candidate(["python", "never", "auto"]) == "auto"
n.add("auto", {"cicada": {"reporter": True, "may_report": True}})
assert n.candidate(["python", "never", "auto"]) is None
# what is told of an earlier run comes too late
lead = {"reporter": True, "complete": False, "start_s": 5.0, "report_within_s": 83.0}
b.add("1", {"cicada": lead})
assert b.owing() == {"1": 83.0}
b.begin()
b.add("1", {"cicada": dict(lead, complete=True)})
assert not b.reports and b.owing() == {"1": 83.0}
b.add("1", {"cicada": dict(lead, complete=True, start_s=9.0)})
assert b.best()["start_s"] == 9.0 and b.owing() == {}
for name, want in (("DurDirWrite", "dur_dir_write"), ("GET /api/v1?x=1", "get_api_v1_x_1"), ("fooBar", "foo_bar"),
                   ("HTTPServer2Ready", "http_server2_ready"), ("__a--b__", "a_b"), ("/", ""), ("aB", "a_b"),
                   ("café Noir", "café_noir")):
    assert c.cicada_snake_case(name) == want, name
print("fine")
"""


@pytest.mark.parametrize("version", (VERSIONS[0], NEWEST))
def test_whatever_workers_tell_makes_valid_rows(version, locustfile, tmp_path):
    """Null stays null, and nothing raises."""
    done = subprocess.run([os.path.join(VENVS, "locust-" + version, "bin", "python"), "-c", STRANGE % str(tmp_path), tmp_path],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.stdout == "fine\n", done.stderr


def test_two_locustfiles_may_have_it(nginx, start_master, start_cicada, locustfile, tmp_path):
    copy = tmp_path / "second.py"
    copy.write_text((tmp_path / "cicada_listener.py").read_text())
    master = start_master(host=nginx.url, users=2, rate=100, run_time=3, locustfile="%s,%s" % (locustfile, copy),
                          args=["--csv", tmp_path / "run"])
    start_cicada(master.port, env=NOWHERE)
    assert master.wait(60) in (0, 1)
    assert master.text().count("this report is in") == 1
    master.assert_clean()

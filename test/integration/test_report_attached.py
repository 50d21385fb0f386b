"""The report of a distributed run: what the leader tells a real master, against a real Kubernetes API server (the objects
of test/real/kube/kube-seed.sh: four live worker pods on two nodes of 3920m and 13591700Ki) and a real Prometheus."""
import json
import os
import signal
import subprocess
import time

import pytest

from harness.fake_http import answer
from harness.kube import missing
from harness.master import HERE
from harness.process import free_port, wait_for
from harness.relay import Relay
from harness.worker import CICADA
from test_telemetry_prometheus import Prometheus

LOCUSTFILE = os.path.join(HERE, "report_locustfile.py")
NOWHERE = {"HOME": "/nonexistent", "KUBECONFIG": ""}  # no credentials at hand
SEEDED = {"machine_type": "n2-standard-4", "node_count": 2, "allocatable_cores": 7.84, "allocatable_ram_gb": 25.92,
          "worker_pod_count": 4, "capacity_scope": "worker_nodes"}
UNKNOWN = dict.fromkeys(SEEDED)
WORKERS = ("cicada1", "cicada2", "cicada3")

with_kube = [pytest.mark.timeout(1500), pytest.mark.skipif(missing() is not None, reason=str(missing()))]
kubernetes = lambda f: with_kube[0](with_kube[1](f))


@pytest.fixture
def prometheus(tmp_path):
    server = Prometheus(tmp_path / "prom", "live")
    yield server
    server.stop()


def kubeconfig(path, server, more="", token="abc"):
    path.write_text("current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
                    "clusters: [{name: c, cluster: {server: '%s'%s}}]\nusers: [{name: u, user: {token: '%s'}}]\n"
                    % (server, more, token))
    return {"HOME": "/nonexistent", "KUBECONFIG": str(path)}


def reader(kube):
    return {"HOME": "/nonexistent", "KUBECONFIG": kube.env["KUBE_CONFIG_READER"]}


def reports(master):
    """The "cicada" objects in the order of their coming, with when they came."""
    return [dict(r["cicada"], at=r["at"], requests=r["requests"], least=r["least"]) for r in master.records("report")]


def whole_report(master, timeout=30):
    return wait_for(lambda: [r for r in reports(master) if r.get("complete")], timeout,
                    lambda: "a whole report\n" + master.text())[0]


def rank(values, q):
    v = sorted(values)
    return v[min(int(len(v) * q), len(v) - 1)]


def check_frontiers(report, samples, target, facts=SEEDED):
    """Against what output files define, from the totals that the master itself knew."""
    f = report["frontiers"]
    peak = max(samples)
    assert f["actors_per_node"] == round(peak / facts["node_count"], 2)
    assert f["actors_per_vcpu"] == round(peak / facts["allocatable_cores"], 2)
    assert f["actors_per_gb_ram"] == round(peak / facts["allocatable_ram_gb"], 2)
    steady = [n for n in samples if n * 10 >= target * 9]
    for name, q in (("ap_ratio_p50", 0.5), ("ap_ratio_p90", 0.9), ("ap_ratio_p99", 0.99)):
        assert f[name] == round(rank(steady, q) / facts["worker_pod_count"], 2), name


def check_failures(report, master):
    """Of one worker's headless run: what the master had counted at its very end."""
    requests, failures = master.final()["total"]
    assert report["frontiers"]["aggregate_failure_ratio"] == pytest.approx(failures / requests)


# --- facts and frontiers

@kubernetes
@pytest.mark.parametrize("workers", (1, 3))
def test_headless_master_hears_facts_and_frontiers(kube, nginx, start_master, start_cicada, workers):
    master = start_master(host=nginx.url, users=12, rate=6, run_time=6, workers=workers, locustfile=LOCUSTFILE,
                          env={"TELL": "1", "HOLD": "20"})
    cicadas = [start_cicada(master.port, name=name, env=reader(kube)) for name in WORKERS[:workers]]
    report = whole_report(master)
    assert report["reporter"] and report["cluster_facts"] == SEEDED
    assert report["actors_per_user"] == 1 and "server_summary" not in report
    # one worker knows by itself that it has all users
    assert report["users_source"] == ("local" if workers == 1 else "master")
    samples = [r["users"] for r in master.records("told")]
    assert max(samples) == 12
    check_frontiers(report, samples, 12)
    assert 5 < report["end_s"] - report["start_s"] < 12
    assert master.records("held")[0]["whole"]
    assert master.wait(60) in (0, 1)
    leads = [c for c in cicadas if "this worker reports for the test" in c.text()]
    if workers == 1:
        check_failures(report, master)
    assert len(leads) == 1 and "cluster: 2 worker nodes (n2-standard-4)" in leads[0].text()
    assert {r["worker"] for r in master.records("report") if r["cicada"]["reporter"]} == \
        {r["worker"] for r in master.records("report") if "cluster_facts" in r["cicada"]}
    for cicada in cicadas:
        assert cicada.wait() == 0
        assert cicada.errors() == []
    master.assert_clean()


@kubernetes
@pytest.mark.parametrize("workers", (1, 3))
def test_web_master_hears_them_run_by_run(kube, nginx, start_master, start_cicada, workers):
    master = start_master(locustfile=LOCUSTFILE, env={"TELL": "1"})
    cicadas = [start_cicada(master.port, name=name, env=reader(kube), args=["--actors-per-user", "2"])
               for name in WORKERS[:workers]]
    master.wait_workers(workers, ("ready",))
    for run, users in enumerate(((10, 20), (6,))):
        told, heard = len(master.records("told")), len(reports(master))
        for n in users:
            master.swarm(n, 100, nginx.url)
            master.wait_users(n)
            time.sleep(2)
        master.stop()
        whole = lambda: [r for r in reports(master)[heard:] if r.get("complete")]
        report = wait_for(whole, 20, "the report of run %d" % run)[0]
        samples = [2 * r["users"] for r in master.records("told")[told:]]
        if workers == 1:  # its own samples are the source: constant at the end, as the master's
            assert report["users_source"] == "local"
            assert report["frontiers"]["ap_ratio_p50"] == 2 * users[-1] / 4
        else:
            assert report["users_source"] == "master"
            check_frontiers(report, samples, 2 * users[-1])
        assert report["frontiers"]["actors_per_node"] == users[-1]
        assert report["cluster_facts"] == SEEDED
        # told once: with the last stats, before client_stopped
        later = [r for r in reports(master)[heard:] if r["at"] > report["at"] and "frontiers" in r]
        assert later == []
    assert master.end() in (0, 1)
    for cicada in cicadas:
        assert cicada.wait() == 0
        assert cicada.errors() == []
    master.assert_clean()


def test_without_kubernetes_nothing_is_asked_or_said(nginx, start_master, start_cicada):
    master = start_master(host=nginx.url, users=4, run_time=3, locustfile=LOCUSTFILE)
    cicada = start_cicada(master.port, env=NOWHERE)
    assert master.wait(60) in (0, 1)
    report = whole_report(master)
    assert report["cluster_facts"] == UNKNOWN
    assert set(report["frontiers"].values()) - {report["frontiers"]["aggregate_failure_ratio"]} == {None}
    assert report["users_source"] == "local"
    assert cicada.wait() == 0 and cicada.errors() == []
    assert "cluster" not in cicada.text()


def test_only_the_leader_reports(nginx, start_master, start_cicada):
    master = start_master(host=nginx.url, users=4, run_time=4, workers=3, locustfile=LOCUSTFILE)
    start_cicada(master.port, name="never", env=NOWHERE, args=["--report", "never"])
    start_cicada(master.port, name="always", env=NOWHERE, args=["--report", "always"])
    start_cicada(master.port, name="other", env=NOWHERE, args=["--report", "always"])
    assert master.wait(60) in (0, 1)
    said = {}
    for r in master.records("report"):
        said.setdefault(r["worker"], []).append(r["cicada"])
    assert sorted(all(c["reporter"] for c in objects if "frontiers" in c) and any("frontiers" in c for c in objects)
                  for objects in said.values()) == [False, True, True]
    for objects in said.values():
        assert all(c["version"] and isinstance(c["generator"]["cpu_pct"], float) for c in objects)
        assert all(c["generator"]["saturated"] is False for c in objects)


# --- whose total

def run_with_three(nginx, start_master, start_cicada, env=NOWHERE, args=(), tell=False, settle=4):
    master = start_master(locustfile=LOCUSTFILE, env={"TELL": "1"} if tell else {})
    args = list(args) + (["--master-web-url", master.url("/")] if "web" in args else [])
    cicadas = [start_cicada(master.port, name=name, env=env, args=[a for a in args if a != "web"]) for name in WORKERS]
    master.wait_workers(3, ("ready",))
    master.swarm(9, 100, nginx.url)
    master.wait_users(9)
    time.sleep(settle)
    master.stop()
    report = whole_report(master)
    master.end()
    return report, cicadas


@kubernetes
def test_total_from_the_masters_web_ui(kube, nginx, start_master, start_cicada):
    report, cicadas = run_with_three(nginx, start_master, start_cicada, reader(kube), ["web"])
    assert report["users_source"] == "master_web"
    check_frontiers(report, [9], 9)
    assert all(c.errors() == [] for c in cicadas)


@kubernetes
def test_total_from_the_plan_when_nobody_tells(kube, nginx, start_master, start_cicada, serve):
    page = serve(answer("200 OK", b"Locust auth exception", "Content-Type: text/html; charset=utf-8\r\n"))
    report, cicadas = run_with_three(nginx, start_master, start_cicada, reader(kube), ["--master-web-url", page.url])
    assert report["users_source"] == "plan"
    check_frontiers(report, [9], 9)
    told = [line for c in cicadas for line in c.errors()]
    assert len(told) == 1 and "the master's user count cannot be read (an answer of type 'text/html; " in told[0]
    assert page.requests[0].startswith(b"GET /stats/requests ")


@pytest.mark.smoke
def test_total_from_prometheus_and_the_actor_gauge(nginx, start_master, start_cicada, serve):
    vector = {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [1, "9"]}]}}
    prometheus = serve(answer("200 OK", json.dumps(vector).encode(), "Content-Type: application/json\r\n"))
    page = serve(answer("200 OK", b'locust_actors{user_class="A",state="running"} 7\n'
                                  b'locust_actors{user_class="B",state="hibernate_pending"} 2\n'
                                  b'locust_actors{user_class="B",state="crashed"} 0\n', "Content-Type: text/plain\r\n"))
    report, cicadas = run_with_three(nginx, start_master, start_cicada, args=[
        "--prometheus-url", prometheus.url + "/base/", "--prometheus-users-query", "sum(cicada_users)",
        "--prometheus-header", "X-Scope-OrgID: load", "--prometheus-auth", "me:secret", "--telemetry-lag", "0",
        "--actors-metrics-url", page.url + "/metrics"])
    assert report["users_source"] == "prometheus"
    assert report["actors"] == {"running_actors_peak": 7, "running_actors_p50": 7, "running_actors_p90": 7,
                                "live_actors_peak": 9, "hibernate_pending_actors_peak": 2, "crashed_actors_final": 0}
    asked = prometheus.requests[0]
    assert asked.startswith(b"GET /base/api/v1/query?query=sum%28cicada_users%29&time=")
    assert b"X-Scope-OrgID: load\r\n" in asked and b"Authorization: Basic bWU6c2VjcmV0\r\n" in asked
    assert all("secret" not in c.text() and "bWU6" not in c.text() for c in cicadas)


# --- an API server that does not do its part

@pytest.mark.parametrize("fault", ("refused", "hanging", "garbage", "html", "unauthorized"))
def test_a_faulty_api_server_leaves_nulls_and_delays_nothing(nginx, start_master, start_cicada, serve, tmp_path, fault):
    if fault == "refused":
        url = "http://127.0.0.1:%d" % free_port()
    else:
        url = serve({"hanging": None, "garbage": answer("200 OK", b'{"items": [{"meta'),
                     "html": answer("200 OK", b"<html>", "Content-Type: text/html\r\n"),
                     "unauthorized": answer("401 Unauthorized", b'{"kind":"Status","message":"no"}')}[fault]).url
    master = start_master(host=nginx.url, users=4, rate=4, run_time=3, locustfile=LOCUSTFILE)
    cicada = start_cicada(master.port, env=kubeconfig(tmp_path / "config", url))
    master.wait(60)
    quitting = time.monotonic()
    assert cicada.wait(20) == 0
    assert time.monotonic() - quitting < 3  # less than the time-out of a call, which began three seconds before
    last = [r for r in reports(master) if "cluster_facts" in r][-1]
    assert last["cluster_facts"] == UNKNOWN and last["users_source"] == "local"
    assert last["frontiers"]["actors_per_node"] is None
    check_failures(last, master)
    assert last["complete"] == (fault != "hanging")
    lines = cicada.errors()
    assert 1 <= len(lines) <= 2 and all("cluster facts: " in line for line in lines), lines
    master.assert_clean()


@kubernetes
def test_no_rights_leave_nulls(kube, nginx, start_master, start_cicada, tmp_path):
    env = kubeconfig(tmp_path / "config", kube.env["KUBE_URL"], ", certificate-authority: '%s'" % kube.env["KUBE_CA"],
                     kube.env["KUBE_SA_DENIED_TOKEN"])
    master = start_master(host=nginx.url, users=4, rate=4, run_time=3, locustfile=LOCUSTFILE)
    cicada = start_cicada(master.port, env=env)
    report = whole_report(master)
    assert report["cluster_facts"] == UNKNOWN
    assert master.wait(60) in (0, 1) and cicada.wait() == 0
    assert len(cicada.errors()) == 2
    for part, line in zip(("nodes", "pods"), cicada.errors()):
        assert "cluster facts: %s: HTTP 403: '%s is forbidden" % (part, part) in line
    assert kube.env["KUBE_SA_DENIED_TOKEN"] not in cicada.text()


@kubernetes
def test_an_api_server_that_goes_away_in_mid_run_changes_nothing(kube, nginx, start_master, start_cicada, tmp_path):
    relay = Relay(int(kube.env["KUBE_SERVICE_PORT"]))
    env = kubeconfig(tmp_path / "config", "https://127.0.0.1:%d" % relay.port,
                     ", certificate-authority: '%s'" % kube.env["KUBE_CA"], kube.env["KUBE_SA_READER_TOKEN"])
    try:
        master = start_master(host=nginx.url, users=4, rate=4, run_time=5, locustfile=LOCUSTFILE)
        cicada = start_cicada(master.port, env=env)
        cicada.wait_line("cluster: 2 worker nodes")
    finally:
        relay.close()
    report = whole_report(master)
    assert report["cluster_facts"] == SEEDED
    check_frontiers(report, [4], 4)
    assert master.wait(60) in (0, 1) and cicada.wait() == 0
    assert cicada.errors() == []


# --- Prometheus

PROFILE = {"profile": "mine", "step_s": 1, "measurements": [
    {"name": "answer", "kind": "value", "query": "vector(42)"},
    {"name": "cpu.stall_per_s", "kind": "counter_growth", "per_second": True,
     "counter": 'container_pressure_cpu_waiting_seconds_total{container="node",instance="node-1"}'},
    {"name": "nothing", "kind": "value", "query": "no_such_metric"}]}


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(PROFILE))
    return path


def check_summary(summary):
    assert set(summary) == {"answer", "cpu_stall_per_s", "nothing"}
    assert summary["answer"] == "42.0" and summary["nothing"] is None
    assert float(summary["cpu_stall_per_s"]) == pytest.approx(0.25, abs=0.09)  # scraped each second, over some of them


def test_a_held_headless_run_hears_the_server_summary(nginx, start_master, start_cicada, prometheus, profile):
    master = start_master(host=nginx.url, users=6, rate=100, run_time=8, workers=3, locustfile=LOCUSTFILE,
                          env={"HOLD": "30", "TELL": "1"})
    cicadas = [start_cicada(master.port, name=name, env=NOWHERE, args=[
        "--prometheus-url", prometheus.url, "--telemetry-profile", profile, "--telemetry-lag", "2"])
        for name in WORKERS]
    report = whole_report(master, 60)
    check_summary(report["server_summary"])
    assert report["requests"] == 0 and report["least"] is None  # a message of its own, after the samples
    assert report["at"] - report["end_s"] >= 2  # the lag was waited for
    first = [r for r in reports(master) if "frontiers" in r][0]
    assert not first["complete"] and "server_summary" not in first
    assert first["frontiers"] == report["frontiers"]
    assert master.records("held")[0]["whole"]
    assert master.wait(60) in (0, 1)
    for cicada in cicadas:
        assert cicada.wait() == 0
        assert cicada.errors() == []
    master.assert_clean()


def test_a_web_run_hears_it_after_the_stop(nginx, start_master, start_cicada, prometheus, profile):
    master = start_master(locustfile=LOCUSTFILE)
    start_cicada(master.port, env=NOWHERE, args=["--prometheus-url", prometheus.url, "--telemetry-profile", profile])
    master.wait_workers(1, ("ready",))
    master.swarm(4, 100, nginx.url)
    master.wait_users(4)
    time.sleep(4)
    master.stop()
    check_summary(whole_report(master)["server_summary"])
    master.end()


def test_quit_takes_along_what_is_there_in_time(nginx, start_master, start_cicada, prometheus, profile):
    """No lag and a server at hand: its answers make it into the last stats, without any hold."""
    master = start_master(host=nginx.url, users=4, rate=100, run_time=6, locustfile=LOCUSTFILE)
    cicada = start_cicada(master.port, env=NOWHERE, args=["--prometheus-url", prometheus.url, "--telemetry-profile",
                                                         profile])
    assert master.wait(60) in (0, 1)
    assert cicada.wait() == 0 and cicada.errors() == []
    last = [r for r in reports(master) if "frontiers" in r][-1]
    check_failures(last, master)
    if last["complete"]:  # a busy machine may be too late: then it is only in the files
        check_summary(last["server_summary"])


FAULTS = {
    "refused": None, "hanging": None, "slow": None,
    "503": answer("503 Service Unavailable", b"busy"),
    "html": answer("200 OK", b"<!DOCTYPE html><title>Sign in</title>", "Content-Type: text/html\r\n"),
    "truncated": answer("200 OK", b'{"status":"success","data":{"resultType":"vec', "Content-Type: application/json\r\n"),
    "login": answer("302 Found", b"", "Location: https://login.example/\r\n"),
    "400": answer("400 Bad Request", b'{"status":"error","errorType":"bad_data","error":"no"}'),
}


def faulty(serve, fault):
    """The URL of a Prometheus with it; and how many seconds it may cost: the probe's time-out, or what only "slow"
    gets to, that of the queries."""
    if fault == "refused":
        return "http://127.0.0.1:%d" % free_port(), 0
    if fault == "slow":  # it answers the probe and nothing else
        probe = json.dumps({"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [1, "1"]}]}})
        return serve(lambda request: answer("200 OK", probe.encode()) if b"vector%281%29" in request else None).url, 8
    return serve(FAULTS[fault]).url, 5 if fault == "hanging" else 0


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_prometheus_costs_a_run_of_its_own_no_more_than_its_timeouts(nginx, serve, tmp_path, fault):
    url, costs_s = faulty(serve, fault)
    lag = ["--telemetry-lag", "0"] if fault == "slow" else []  # else the lag of 70 s is not waited for
    folder, log, took = alone(tmp_path, nginx, "--prometheus-url", url, *lag)  # and its exit status is 0
    assert took < 4 + costs_s + 4
    lines = [line for line in log.splitlines() if "/WARNING/" in line or "/ERROR/" in line]
    if fault == "slow":  # one for each time-out
        assert len(lines) == 2 and all("more queries: timed out after" in line for line in lines), log
    else:
        assert len(lines) == 1 and "Prometheus at http://127.0.0.1:" in lines[0], log
    measured = rows(folder)["server_summary"]["measurements"]
    assert len(measured) > 20 and set(measured.values()) == {None}
    assert document(folder)["metadata"]["queries_ok"] == 0 and document(folder)["snapshots"]["size_avg_mb"] is None


@pytest.mark.parametrize("fault", ("refused", "hanging", "503", "login"))
def test_a_faulty_prometheus_costs_no_more_than_its_timeouts(nginx, start_master, start_cicada, serve, fault):
    url, _ = faulty(serve, fault)
    master = start_master(host=nginx.url, users=4, rate=100, run_time=3, locustfile=LOCUSTFILE)
    cicada = start_cicada(master.port, env=NOWHERE, args=["--prometheus-url", url])
    master.wait(60)
    quitting = time.monotonic()
    assert cicada.wait(30) == 0
    assert time.monotonic() - quitting < 5 + 3  # the probe's time-out; the lag of 70 s is not waited for
    assert len(cicada.errors()) == 1 and "Prometheus at http://127.0.0.1:" in cicada.errors()[0]
    last = [r for r in reports(master) if "frontiers" in r][-1]
    check_failures(last, master)
    if last["complete"]:
        assert set(last["server_summary"].values()) == {None}
    master.assert_clean()


def test_a_signal_ends_the_waiting_for_the_lag(nginx, start_master, start_cicada, prometheus, profile):
    master = start_master(host=nginx.url, users=4, rate=100, run_time=3, locustfile=LOCUSTFILE)
    cicada = start_cicada(master.port, env=NOWHERE, args=[
        "--prometheus-url", prometheus.url, "--telemetry-profile", profile, "--telemetry-lag", "600"])
    assert master.wait(60) in (0, 1)
    cicada.wait_line("waiting for the server telemetry; a signal ends the waiting")
    cicada.signal(signal.SIGTERM)
    assert cicada.wait(20) == 0


def test_another_run_does_not_wait_for_the_last_ones_harvest(nginx, start_master, start_cicada, prometheus, profile):
    master = start_master(locustfile=LOCUSTFILE)
    cicada = start_cicada(master.port, env=NOWHERE, args=[
        "--prometheus-url", prometheus.url, "--telemetry-profile", profile, "--telemetry-lag", "600"])
    master.wait_workers(1, ("ready",))
    for _ in range(2):
        master.swarm(4, 100, nginx.url)
        master.wait_users(4)
        master.stop()
    assert "another run begins: what was still being read" in "\n".join(cicada.errors())
    cicada.signal(signal.SIGTERM)
    cicada.wait_line("waiting for the server telemetry")
    cicada.signal(signal.SIGINT)
    assert cicada.wait(20) == 130
    master.end()


@pytest.mark.parametrize("args,line", (
    (["--telemetry-profile", "nope"], "--telemetry-profile: no shipped telemetry profile"),
    (["--telemetry-var", "pools=a", "--telemetry-var", "x=1"], "--telemetry-var: the telemetry profile 'substrate' has no"),
    (["--telemetry-lag", "2h"], "--telemetry-lag: must be at most 3600 seconds"),
    (["--prometheus-url", "localhost:9090"], "--prometheus-url: not an absolute http or https URL"),
    (["--prometheus-header", "secret"], "--prometheus-header: must be as 'Name: value'"),
    (["--prometheus-auth", "secret"], "--prometheus-auth: must be as USER:PASSWORD"),
    (["--prometheus-bearer-token-file", "/nonexistent/t"], "--prometheus-bearer-token-file: /nonexistent/t: No such file"),
    (["--prometheus-users-query", "x"], "--prometheus-users-query: needs --prometheus-url"),
    (["--master-web-auth", "secret"], "--master-web-auth: must be as USER:PASSWORD"),
    (["--report", "maybe"], "--report: must be auto, always or never, not 'maybe'"),
    (["--actors-per-user", "0"], "--actors-per-user: must be a number above 0"),
    (["--cluster-facts", "--no-cluster-facts"], "give --cluster-facts or --no-cluster-facts, not both"),
))
def test_mistakes_are_told_before_the_run(args, line):
    done = subprocess.run([CICADA, "--worker", *args, "http://127.0.0.1/"], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 2
    assert line in done.stderr and "secret" not in done.stderr


# --- files

def rows(folder):
    with open(os.path.join(folder, "stats.jsonl")) as f:
        lines = [json.loads(line) for line in f]
    return {line["metric"]: line for line in lines}


def document(folder):
    with open(os.path.join(folder, "server_summary.json")) as f:
        return json.load(f)


def read(*path):
    with open(os.path.join(*path)) as f:
        return f.read()


@kubernetes
def test_the_leader_writes_the_results(kube, nginx, start_master, start_cicada, prometheus, profile, tmp_path):
    master = start_master(locustfile=LOCUSTFILE, env={"TELL": "1"})
    cicadas = [start_cicada(master.port, name=name, env=reader(kube), args=[
        "--dest", tmp_path / "out", "--name", "trial", "--tag", "a1", "--prometheus-url", prometheus.url,
        "--telemetry-profile", profile]) for name in WORKERS]
    master.wait_workers(3, ("ready",))
    for run, users in enumerate((6, 9)):
        heard = len(reports(master))
        master.swarm(users, 100, nginx.url)
        master.wait_users(users)
        time.sleep(3)
        master.stop()
        report = wait_for(lambda: [r for r in reports(master)[heard:] if r.get("complete")], 30, "a report")[0]
        folders = sorted((tmp_path / "out").glob("runs/trial/run_date=*/run_ts=*/run_tag=a1"))
        assert len(folders) == run + 1  # of the one worker that leads
        folder = folders[-1]
        wait_for(lambda: (folder / "status.json").exists(), 20, "status.json")
        assert json.loads(read(folder, "status.json")) == {"locust_exit_code": 0, "stats_generated": True}
        trial = rows(folder)["trial_summary"]
        assert trial["raw_configuration"] == dict(SEEDED, users_source="master", actors_per_user=1.0)
        # the same frontiers as the master heard, but for the three that are measurements only
        assert trial["frontiers"] == pytest.approx({k: v for k, v in report["frontiers"].items() if "per_pod" not in k})
        assert rows(folder)["server_summary"]["measurements"] == report["server_summary"]
        assert rows(folder)["server_summary"]["tag"] == "a1"
        metadata = document(folder)["metadata"]
        assert metadata["test_name"] == "trial" and metadata["worker_pod_count"] == 4
        assert metadata["start_ts"] == pytest.approx(report["start_s"], abs=0.01)
        assert metadata["end_ts"] == pytest.approx(report["end_s"], abs=0.01)
        assert document(folder)["answer"] == 42
        history = read(folder, "stats_history.csv").splitlines()
        assert len(history) > 3 and history[-1].split(",")[1] == str(users)  # all workers' users
    # asked again with another profile: the same window, the same files
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"profile": "other", "measurements": [
        {"name": "seven", "kind": "value", "query": "vector(7)"}]}))
    page, trial = read(folder, "report.html"), rows(folder)["trial_summary"]
    assert "The servers" in page and "cpu_stall_per_s" in page
    done = harvest(folder, "--prometheus-url", prometheus.url, "--telemetry-profile", other)
    assert done.returncode == 0, done.stderr
    again = document(folder)
    assert again["seven"] == 7 and "answer" not in again
    for key in ("test_name", "tag", "start_ts", "end_ts", "steady_end_ts", "worker_pod_count"):
        assert again["metadata"][key] == pytest.approx(metadata[key], abs=1.1) if key.endswith("ts") \
            else again["metadata"][key] == metadata[key], key
    assert rows(folder)["server_summary"]["measurements"] == {"seven": "7.0"}
    assert rows(folder)["trial_summary"] == trial
    assert "seven" in read(folder, "report.html") and "cpu_stall_per_s" not in read(folder, "report.html")
    assert read(folder, "report.html").replace("seven", "") != page
    master.end()
    for cicada in cicadas:
        assert cicada.wait() == 0 and cicada.errors() == []


def harvest(*args):
    return subprocess.run([CICADA, "harvest", *map(str, args)], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)


@pytest.mark.parametrize("args,line", (
    (["--dest", "a", "--results-dir", "b"], "name two folders"),
    (["--dest", "a"], "--name"),
))
def test_a_folder_that_cannot_be_meant_is_told(args, line, tmp_path):
    done = subprocess.run([CICADA, "--worker", *args, "http://127.0.0.1/"], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, cwd=tmp_path)
    assert done.returncode == 2 and line in done.stderr


def test_files_that_cannot_be_written_do_not_stop_the_load(nginx, start_master, start_cicada, tmp_path):
    (tmp_path / "file").write_text("")
    master = start_master(host=nginx.url, users=4, rate=100, run_time=3, locustfile=LOCUSTFILE)
    cicada = start_cicada(master.port, env=NOWHERE, args=["--results-dir", tmp_path / "file" / "dir"])
    assert master.wait(60) in (0, 1)
    assert cicada.wait() == 1
    assert len(cicada.errors()) == 1 and "the results: " in cicada.errors()[0]
    assert master.final()["total"][0] > 0


# --- alone

def alone(tmp_path, nginx, *args, env=NOWHERE, timeout=120):
    folder = tmp_path / "alone"
    began = time.monotonic()
    done = subprocess.run([CICADA, "--headless", "-u", "8", "-r", "100", "-t", "4s", "--results-dir", folder, "--only-summary",
                           *map(str, args), nginx.url + "/"], env=dict(os.environ, **env), stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
    assert done.returncode == 0, done.stderr
    return folder, done.stderr, time.monotonic() - began


@kubernetes
def test_a_run_of_its_own_reports_all_of_it(kube, nginx, prometheus, profile, tmp_path):
    folder, log, _ = alone(tmp_path, nginx, "--prometheus-url", prometheus.url, "--telemetry-profile", profile,
                           "--telemetry-lag", "1", env=reader(kube))
    assert "cluster: 2 worker nodes (n2-standard-4)" in log and "3 queries answered, 0 failed" in log
    trial = rows(folder)["trial_summary"]
    assert trial["raw_configuration"] == dict(SEEDED, users_source="local", actors_per_user=1.0)
    assert trial["frontiers"] == {"actors_per_node": 4.0, "actors_per_vcpu": 1.02, "actors_per_gb_ram": 0.31,
                                  "ap_ratio_p50": 2.0, "ap_ratio_p90": 2.0, "ap_ratio_p99": 2.0,
                                  "aggregate_failure_ratio": 0.0}
    check_summary(rows(folder)["server_summary"]["measurements"])
    assert document(folder)["metadata"]["worker_pod_count"] == 4


@pytest.mark.parametrize("what", ("kubernetes", "prometheus"))
def test_hanging_servers_do_not_hold_a_run_of_its_own(nginx, serve, tmp_path, what):
    url = serve(None).url
    if what == "kubernetes":
        folder, log, took = alone(tmp_path, nginx, env=kubeconfig(tmp_path / "config", url))
        assert took < 4 + 3  # the API's time-out would be a second later than the run, and then again
        assert "cluster facts: not there when the run was over" in log
    else:
        folder, log, took = alone(tmp_path, nginx, "--prometheus-url", url)
        assert took < 4 + 5 + 3
        assert set(rows(folder)["server_summary"]["measurements"].values()) == {None}
    assert rows(folder)["trial_summary"]["raw_configuration"]["node_count"] is None


def test_harvest_tells_what_is_wrong(nginx, serve, tmp_path):
    folder, _, _ = alone(tmp_path, nginx)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    gone = "http://127.0.0.1:%d" % free_port()
    for args, status, line in (([folder], 2, "needs --prometheus-url"),
                               (["--prometheus-url", gone], 2, "takes one results folder"),
                               ([folder, folder, "--prometheus-url", gone], 2, "takes one results folder"),
                               ([tmp_path / "nowhere", "--prometheus-url", gone], 2, "histograms.json.gz: No such file"),
                               ([folder, "--prometheus-url", gone, "--telemetry-profile", "x"], 2, "--telemetry-profile: "),
                               ([folder, "--prometheus-url", gone], 1, "nothing was answered"),
                               ([folder, "--prometheus-url", serve(answer("200 OK", b"<html>")).url], 1, "nothing was")):
        done = harvest(*args)
        assert done.returncode == status and line in done.stderr, (args, done.stderr)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "histograms.json.gz").write_bytes(b"nothing")
    done = harvest(folder, "--prometheus-url", gone)
    assert done.returncode == 2 and "histograms.json.gz: " in done.stderr


# --- cicada facts

def facts(*args, **env):
    done = subprocess.run([CICADA, "facts", *args], env=dict({"PATH": os.environ["PATH"]}, **env), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


@kubernetes
def test_facts_with_minimal_rights(kube):
    assert facts("--strict", **reader(kube)) == (0, SEEDED, "")


@kubernetes
def test_facts_of_another_namespace_and_selector(kube):
    status, values, _ = facts("--worker-pod-namespace", "bulk-workloads", "--worker-pod-selector",
                              "ate.dev/worker-pool=bulk", **reader(kube))
    assert status == 0 and values["worker_pod_count"] == 1200 and values["capacity_scope"] == "worker_nodes"


def test_facts_without_anything_to_ask():
    status, values, errors = facts(**NOWHERE)
    assert (status, values) == (0, UNKNOWN)
    assert "credentials: no service account, and no kubeconfig file" in errors
    assert facts("--strict", **NOWHERE)[:2] == (1, UNKNOWN)


@kubernetes
def test_facts_without_rights(kube, tmp_path):
    env = kubeconfig(tmp_path / "config", kube.env["KUBE_URL"], ", certificate-authority: '%s'" % kube.env["KUBE_CA"],
                     kube.env["KUBE_SA_DENIED_TOKEN"])
    status, values, errors = facts(**env)
    assert (status, values) == (0, UNKNOWN)
    assert "nodes: HTTP 403" in errors and "pods: HTTP 403" in errors
    assert facts("--strict", **env)[0] == 1
    assert facts("extra", **env)[0] == 2

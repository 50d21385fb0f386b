"""The main job: a real master starts, cicada attaches, and the master's counts are nginx's own."""
import csv
import signal
import time

import pytest
import requests

from harness.counts import FAILING, answered, assert_counts
from harness.master import NEWEST, wait_quiet
from harness.process import wait_for

USERS = 20


def names(count):
    return ["cicada-%d" % i for i in range(1, count + 1)]


@pytest.mark.parametrize("workers", [1, 3])
def test_headless_run_counts_what_nginx_answered(version, workers, nginx, start_master, start_cicada):
    master = start_master(version, nginx.url, users=USERS, rate=10, run_time=5, workers=workers)
    cicadas = [start_cicada(master.port, name=name) for name in names(workers)]
    # 404s are failures, so the master's own exit status is 1.
    assert master.wait(60) == 1
    for cicada in cicadas:
        assert cicada.wait(20) == 0
        assert cicada.errors() == []
    final = master.final()
    # At `quit` the master listens for half a second more: requests still on the way then cannot be told to it.
    assert_counts(final, nginx, cut=USERS)
    assert list(master.table_total()) == final["total"]
    # The workers themselves know of every request.
    started, finished = (sum(column) for column in zip(*(cicada.requests() for cicada in cicadas)))
    assert finished <= sum(answered(nginx).values()) <= started
    master.assert_clean()


@pytest.mark.parametrize("workers", [1, 3])
def test_web_run_ramps_scales_and_stops(version, workers, nginx, start_master, start_cicada):
    master = start_master(version)
    cicadas = [start_cicada(master.port, name=name) for name in names(workers)]
    master.wait_workers(workers, ("ready",))

    master.swarm(12, 6, nginx.url)
    counts = master.wait_users(12)
    assert counts == [12 // workers] * workers
    master.swarm(30, 30, nginx.url)
    assert master.wait_users(30) == [30 // workers] * workers
    master.swarm(6, 100, nginx.url)
    assert master.wait_users(6) == [6 // workers] * workers
    master.wait_requests(100)
    master.stop()
    assert_counts(master.last_stop(1), nginx)

    master.wait_workers(workers, ("ready",))
    mark = nginx.mark()
    master.swarm(9, 9, nginx.url)
    master.wait_users(9)
    # SIGTERM to the master during the run: it says quit, and what was done until then is in its last table.
    assert master.end() in (0, 1)
    for cicada in cicadas:
        assert cicada.wait(20) == 0
        assert cicada.errors() == []
    assert_counts(master.final(), nginx, mark, cut=9)
    master.assert_clean()


def test_stop_and_start_twenty_times(version, nginx, start_master, start_cicada):
    master = start_master(version)
    cicadas = [start_cicada(master.port, name=name) for name in names(3)]
    master.wait_workers(3, ("ready",))
    for cycle in range(1, 21):
        mark = nginx.mark()
        master.swarm(6, 100, nginx.url)
        deadline = time.monotonic() + 20
        while nginx.count(mark) < 20:
            assert time.monotonic() < deadline, "no load in cycle %d" % cycle
            time.sleep(0.02)
        master.stop()
        wait_quiet(nginx, mark, still=0.2)
        assert_counts(master.last_stop(cycle), nginx, mark)
    assert master.end() in (0, 1)  # 1 if the last cycle had a 404
    for cicada in cicadas:
        assert cicada.wait(20) == 0
        assert cicada.errors() == []
    master.assert_clean()


@pytest.mark.smoke
def test_newest_master_scale_and_stop(nginx, start_master, start_cicada):
    """The short form of the above for the sanitizers' builds."""
    master = start_master()
    cicada = start_cicada(master.port)
    master.wait_workers(1, ("ready",))
    master.swarm(20, 20, nginx.url)
    master.wait_users(20)
    master.swarm(5, 20)
    master.wait_users(5)
    master.stop()
    assert_counts(master.last_stop(1), nginx)
    assert master.end() == 1
    assert cicada.wait(30) == 0
    master.assert_clean()


@pytest.fixture
def slower(tmp_path):
    """A scenario of requests that are answered after 3 s."""
    scenario = tmp_path / "slower.json"
    user = '{"name": "%s", "tasks": ["/slower"]}'
    scenario.write_text('{"users": [%s, %s]}' % (user % "Visitor", user % "Buyer"))
    return scenario


def test_requests_on_the_way_end_within_the_stop_timeout(nginx, start_master, start_cicada, slower):
    """The stop timeout is 5 s: all of them are counted."""
    master = start_master()
    start_cicada(master.port, scenario=slower)
    master.wait_workers(1, ("ready",))
    master.swarm(10, 100, nginx.url)
    master.wait_users(10)
    master.stop()
    wait_quiet(nginx)
    assert_counts(master.last_stop(1), nginx)


def test_a_second_signal_cuts_what_is_on_the_way(nginx, start_master, start_cicada, slower):
    master = start_master()
    cicada = start_cicada(master.port, scenario=slower)
    master.wait_workers(1, ("ready",))
    master.swarm(4, 100, nginx.url)
    master.wait_users(4)
    cicada.signal(signal.SIGINT)
    cicada.wait_line("interrupted, quitting")
    cicada.signal(signal.SIGINT)
    assert cicada.wait(20) == 130
    started, finished = cicada.requests()
    assert 0 <= finished < started


def test_files_and_pages_of_the_master(version, nginx, start_master, start_cicada, tmp_path):
    """CSV files, the report and the web UI's requests show the same counts, and none of them stumbles."""
    master = start_master(version, args=["--csv", tmp_path / "run", "--csv-full-history"])
    start_cicada(master.port)
    master.wait_workers(1, ("ready",))
    master.swarm(20, 100, nginx.url)
    master.wait_users(20)
    master.wait_requests(200)
    for page in ("/", "/stats/requests/csv", "/stats/failures/csv", "/exceptions", "/exceptions/csv", "/stats/report"):
        answer = requests.get(master.url(page), timeout=10)
        assert answer.status_code == 200, (page, answer.text)
    master.stop()
    rows = {name: tuple(counts) for name, counts in master.last_stop(1)["rows"].items()}

    def table():
        with open(tmp_path / "run_stats.csv") as f:
            return {"%s %s" % (r["Type"], r["Name"]): r for r in csv.DictReader(f)}

    def counted():
        return {name: (int(r["Request Count"]), int(r["Failure Count"])) for name, r in table().items()}
    wait_for(lambda: {n: c for n, c in counted().items() if n != " Aggregated"} == rows, 10,
             lambda: "%s in run_stats.csv, not %s" % (rows, counted()))
    for row in table().values():
        assert 0 <= float(row["Min Response Time"]) <= float(row["Median Response Time"]) + 1
        assert float(row["Median Response Time"]) <= float(row["Max Response Time"]) + 1
        assert int(row["50%"]) <= int(row["99%"]) <= int(row["100%"])
    assert float(table()["GET /10k"]["Average Content Size"]) == 10240
    with open(tmp_path / "run_failures.csv") as f:
        assert ["%s %s" % (r["Method"], r["Name"]) for r in csv.DictReader(f)] == list(FAILING)
    assert master.end() == 1
    if version == NEWEST:  # written out each 10 s; older ones leave the rest in their buffer when they end
        with open(tmp_path / "run_stats_history.csv") as f:
            assert max(int(r["User Count"]) for r in csv.DictReader(f)) == 20
    master.assert_clean()

"""The main job: a real master starts, cicada attaches, and the master's counts are nginx's own."""
import time

import pytest

from harness.counts import assert_counts
from harness.master import wait_quiet

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
    assert master.end() == 1
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


def test_requests_on_the_way_end_within_the_stop_timeout(nginx, start_master, start_cicada, tmp_path):
    """/slower answers after 3 s; the stop timeout is 5 s: all of them are counted."""
    scenario = tmp_path / "slower.json"
    user = '{"name": "%s", "tasks": ["/slower"]}'
    scenario.write_text('{"users": [%s, %s]}' % (user % "Visitor", user % "Buyer"))
    master = start_master()
    start_cicada(master.port, scenario=scenario)
    master.wait_workers(1, ("ready",))
    master.swarm(10, 100, nginx.url)
    master.wait_users(10)
    master.stop()
    wait_quiet(nginx)
    assert_counts(master.last_stop(1), nginx)

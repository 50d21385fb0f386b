"""Masters and workers that go and come back."""
import signal

import pytest

from harness.counts import assert_counts
from harness.master import NEWEST, wait_quiet
from harness.process import wait_for

# 5 users make less than 60 requests/s; a worker reports each 3 s.
LOST_BY_SIGKILL = 5 * 12 * 4


def one_run(master, nginx, users, nth_stop):
    """A run with exact counts."""
    mark = nginx.mark()
    master.swarm(users, 100, nginx.url)
    counts = master.wait_users(users)
    master.wait_requests(30)
    master.stop()
    wait_quiet(nginx, mark, still=0.3)
    assert_counts(master.last_stop(nth_stop), nginx, mark)
    return counts


def test_killed_master_comes_back(version, nginx, start_master, start_cicada):
    first = start_master(version, name="first")
    cicada = start_cicada(first.port)
    first.wait_workers(1, ("ready",))
    first.swarm(10, 100, nginx.url)
    first.wait_users(10)
    first.kill()
    wait_quiet(nginx, timeout=60)  # without a master the load ends
    assert cicada.alive()
    second = start_master(version, port=first.port, web_port=first.web_port, name="second")
    second.wait_workers(1, ("ready",), timeout=60)
    assert one_run(second, nginx, 10, 1) == [10]
    second.end()
    assert cicada.wait(20) == 0
    second.assert_clean()


def test_killed_worker_is_replaced(version, nginx, start_master, start_cicada):
    """SIGKILL loses what the worker had not told yet, and nothing else; its successor takes its share at once."""
    master = start_master(version, args=["--enable-rebalancing"])
    start_cicada(master.port, name="stays")
    goes = start_cicada(master.port, name="goes")
    master.wait_workers(2, ("ready",))
    master.swarm(10, 100, nginx.url)
    assert master.wait_users(10) == [5, 5]
    goes.kill()
    master.wait_workers(1, ("missing",))
    start_cicada(master.port, name="comes")

    def shared(stats):
        return sorted(w["user_count"] for w in stats["workers"] if w["state"] != "missing") == [5, 5]
    master.wait_stats(shared, 30, "5 users on each of the two")
    master.stop()
    wait_quiet(nginx, still=0.3)
    assert_counts(master.last_stop(1), nginx, cut=LOST_BY_SIGKILL)
    if version == NEWEST:  # older masters deal users of a new run to missing workers too, for a minute
        master.wait_workers(2, ("ready",))
        one_run(master, nginx, 10, 2)
    master.assert_clean()


@pytest.mark.parametrize("rebalancing", [False, True], ids=["plain", "rebalancing"])
def test_sigterm_hands_the_users_over(version, rebalancing, nginx, start_master, start_cicada):
    args = ["--enable-rebalancing"] if rebalancing else []
    master = start_master(version, args=args)
    stays = start_cicada(master.port, name="stays")
    goes = start_cicada(master.port, name="goes")
    master.wait_workers(2, ("ready",))
    master.swarm(10, 100, nginx.url)
    assert master.wait_users(10) == [5, 5]
    goes.signal(signal.SIGTERM)
    assert goes.wait(30) == 0
    master.wait_stats(lambda s: s["user_count"] == 10 and len(s["workers"]) == 1, 30, "one worker with 10 users")
    master.stop()
    wait_quiet(nginx, still=0.3)
    assert_counts(master.last_stop(1), nginx)
    assert stays.alive()
    master.assert_clean()


def test_worker_joins_a_running_test(version, nginx, start_master, start_cicada):
    master = start_master(version, args=["--enable-rebalancing"])
    start_cicada(master.port, name="first")
    master.wait_workers(1, ("ready",))
    master.swarm(12, 100, nginx.url)
    master.wait_users(12)
    start_cicada(master.port, name="second")
    master.wait_stats(lambda s: sorted(w["user_count"] for w in s["workers"]) == [6, 6], 30, "6 and 6 users")
    start_cicada(master.port, name="third")
    master.wait_stats(lambda s: sorted(w["user_count"] for w in s["workers"]) == [4, 4, 4], 30, "4, 4 and 4 users")
    master.stop()
    wait_quiet(nginx, still=0.3)
    assert_counts(master.last_stop(1), nginx)
    master.assert_clean()


def test_lost_connection_is_made_again(nginx, start_master, start_cicada, relay_to):
    """A cut TCP connection during a run: the worker comes back, users and all, and takes the next run with exact
    counts."""
    master = start_master()
    relay = relay_to(master.port)
    cicada = start_cicada(relay.port)
    master.wait_workers(1, ("ready",))
    master.swarm(10, 100, nginx.url)
    master.wait_users(10)
    before = len(relay.heartbeats)
    relay.cut()
    # What the master sends into the gap is lost, as it does not repeat itself.
    wait_for(lambda: len(relay.heartbeats) > before + 1, 30, "heartbeats over the new connection")
    master.wait_workers(1, timeout=60)
    master.wait_users(10)
    master.stop()
    master.wait_workers(1, ("ready",), timeout=60)
    assert one_run(master, nginx, 10, 2) == [10]
    assert cicada.alive()
    master.assert_clean()


def test_silent_connection_is_left(nginx, start_master, start_cicada, relay_to):
    """A connection that stands and carries nothing, for longer than a master is waited for: the load ends; once it
    carries again there is one worker. What the old connection still held comes late: the master takes its heartbeats
    for a worker that is back, until it misses them again."""
    master = start_master()
    relay = relay_to(master.port)
    cicada = start_cicada(relay.port)
    master.wait_workers(1, ("ready",))
    master.swarm(10, 100, nginx.url)
    master.wait_users(10)
    relay.stalled.set()
    wait_quiet(nginx, timeout=60)
    cicada.wait_line("lost the master")
    taken = cicada.size()
    relay.stalled.clear()
    cicada.wait_line("the master took us", timeout=60, since=taken)
    before = len(relay.heartbeats)
    wait_for(lambda: len(relay.heartbeats) > before + 1, 30, "heartbeats of the new connection")
    master.stop()

    def one_is_left(stats):
        return [w["state"] for w in stats["workers"] if w["state"] != "missing"] == ["ready"]
    master.wait_stats(one_is_left, 60, "one ready worker, and none beside it but missing ones")
    assert one_run(master, nginx, 10, 2) == [10]
    master.assert_clean()

"""What only shows under load: heartbeats with every core busy, ten thousand users."""
import os
import subprocess
import sys
import time

import pytest

from harness.counts import answered, assert_counts
from harness.master import BUSY_WORKER, wait_quiet

pytestmark = pytest.mark.heavy

MINUTE_S = 60


def scenario(folder, wait):
    """Both classes of the locustfile, each with one request."""
    path = folder / "load.json"
    user = '{"name": "%s", %s "tasks": ["/"]}'
    path.write_text('{"users": [%s]}' % ", ".join(user % (name, wait) for name in ("Visitor", "Buyer")))
    return path


def busy_ticks():
    """(busy, all) CPU time of this machine so far."""
    with open("/proc/stat") as f:
        fields = [int(x) for x in f.readline().split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


SLEEPER = """
import sys, time
last = time.monotonic()
while True:
    time.sleep(0.1)
    now = time.monotonic()
    print(now - last, flush=True)
    last = now
"""


class Minute:
    """What happened in a minute: the heartbeats that passed the relay, how busy the cores were, and the longest nap
    of a process that asks for 0.1 s at a time, which tells whether the machine itself stood still."""

    def __init__(self, relay, nginx):
        first, (busy, total), answered_before = len(relay.heartbeats), busy_ticks(), nginx.count()
        sleeper = subprocess.Popen([sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE, text=True)
        time.sleep(MINUTE_S)  # the span that is looked at, not a wait for something
        sleeper.terminate()
        self.nap = max(float(line) for line in sleeper.communicate()[0].split())
        beats = relay.heartbeats[first:]
        self.count = len(beats)
        self.gap = max(b - a for a, b in zip(beats, beats[1:]))
        self.busy = (busy_ticks()[0] - busy) / (busy_ticks()[1] - total)
        self.rate = (nginx.count() - answered_before) / MINUTE_S
        print("%d heartbeats, the longest gap %.3f s; cores %.1f %% busy, %d requests/s; longest nap %.3f s" % (
            self.count, self.gap, 100 * self.busy, self.rate, self.nap))


@pytest.mark.timeout(300)
def test_no_heartbeat_is_missed_with_every_core_busy(start_nginx, start_master, start_cicada, relay_to, tmp_path):
    nginx = start_nginx(processes=os.cpu_count())
    master = start_master()
    relay = relay_to(master.port)
    cicada = start_cicada(relay.port, scenario=scenario(tmp_path, ""))
    master.wait_workers(1, ("ready",))
    master.swarm(100, 100, nginx.url)
    master.wait_users(100)
    for _ in range(3):  # a minute in which the machine stood still shows nothing
        minute = Minute(relay, nginx)
        if minute.nap < 0.9:
            break
    master.stop()
    assert minute.busy > 0.9, "the cores were not busy enough for what is to be shown"
    # One a second. A gap of two seconds is one missed.
    assert minute.gap < 2 and minute.count >= MINUTE_S - 1
    assert "failed to send heartbeat" not in master.text()
    wait_quiet(nginx)
    # A stop timeout is set, so nothing was cut.
    assert_counts(master.last_stop(1), nginx)
    assert cicada.alive()
    master.assert_clean(allow=[BUSY_WORKER])


@pytest.mark.timeout(200)
def test_ten_thousand_users(start_nginx, start_master, start_cicada, open_files, tmp_path):
    users = 10000
    if open_files < users + 500:
        pytest.skip("the hard limit of open files is %d: %d users need a connection each" % (open_files, users))
    nginx = start_nginx(processes=2, connections=users + 200)
    master = start_master()
    start_cicada(master.port, scenario=scenario(tmp_path, '"wait_time": {"constant": 1},'))
    master.wait_workers(1, ("ready",))
    master.swarm(users, 2000, nginx.url)
    master.wait_users(users, timeout=60)
    since = answered(nginx)["GET /"]
    start = time.monotonic()
    master.wait_requests(since + 5 * users, timeout=90)
    print("%d requests/s" % ((answered(nginx)["GET /"] - since) / (time.monotonic() - start)))
    master.stop()
    wait_quiet(nginx)
    record = master.last_stop(1)
    assert_counts(record, nginx)
    assert record["errors"] == []
    master.assert_clean(allow=[BUSY_WORKER, r"Your selected spawn rate is very high"])

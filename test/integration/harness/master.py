"""A real Locust master from PyPI, any of the versions that have a virtual environment."""
import json
import os
import re
import time

import requests

from .process import Process, free_port, wait_for

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(os.path.dirname(HERE))
VENVS = os.environ.get("CICADA_VENVS", os.path.join(ROOT, ".venv"))
LOCUSTFILE = os.path.join(HERE, "locustfile.py")
VERSIONS = ("2.12.1", "2.20.1", "2.32.10", "2.47.0")
NEWEST = VERSIONS[-1]

# Lines that say nothing against a worker: the master's own surroundings.
OWN_LINES = (
    r"System open file limit",
    r"CPU usage above 90%! This may constrain your throughput",
    r"CPU usage was too high at some point during the test",
    r"WARNING: This is a development server",
    r"Python .* is deprecated",
)
BUSY_WORKER = r"exceeded cpu threshold"  # said of every worker that uses its core, of Locust's own too


def locust(version):
    return os.path.join(VENVS, "locust-" + version, "bin", "locust")


class Master(Process):
    """Headless when users is given: it then waits for `workers`, runs for run_time and quits. With its web UI else."""

    def __init__(self, folder, version=NEWEST, host=None, users=None, rate=10, run_time=None, workers=1, port=None,
                 web_port=None, args=(), locustfile=LOCUSTFILE, name=None, env=None):
        self.version = version
        self.port = port or free_port()
        self.headless = users is not None
        self.web_port = None if self.headless else web_port or free_port()
        name = name or "master-%s-%d" % (version, self.port)
        self.record = os.path.join(folder, name + ".record")
        argv = [locust(version), "--master", "-f", locustfile, "--master-bind-host", "127.0.0.1",
                "--master-bind-port", self.port, "--stop-timeout", "5"]
        if host:
            argv += ["-H", host]
        if self.headless:
            argv += ["--headless", "-u", users, "-r", rate, "--expect-workers", workers, "--only-summary"]
            argv += ["-t", "%gs" % run_time] if run_time else []
        else:
            argv += ["--web-host", "127.0.0.1", "--web-port", self.web_port]
        super().__init__(name, argv + list(args), folder, dict(env or {}, RECORD=self.record))

    def start(self):
        super().start()
        if not self.headless:
            wait_for(self.answers, 30, lambda: "the web UI of %s\n%s" % (self.name, self.text()))
        return self

    # --- what the master knows ------------------------------------------------------------------

    def records(self, event):
        if not os.path.exists(self.record):
            return []
        with open(self.record) as f:
            lines = [json.loads(line) for line in f]
        return [line for line in lines if line["event"] == event]

    def last_stop(self, nth):
        """The counts at the nth test_stop (from 1), as the master had them."""
        return wait_for(lambda: self.records("test_stop")[nth - 1:nth], 30,
                        lambda: "test_stop %d\n%s" % (nth, self.text()))[0]

    def final(self):
        """The counts at the end of the process: what its last table shows."""
        lines = self.records("quit")
        assert len(lines) == 1, "%s did not quit in order:\n%s" % (self.name, self.text())
        return lines[0]

    def table_total(self):
        """(requests, failures) of the last Aggregated line on the console."""
        found = re.findall(r"^ *Aggregated +(\d+) +(\d+)\(", self.text(), re.M)
        assert found, self.text()
        return int(found[-1][0]), int(found[-1][1])

    def assert_clean(self, allow=()):
        """No warning, error or traceback, but those of OWN_LINES and `allow`."""
        bad = []
        for line in self.text().splitlines():
            if re.search(r"/(WARNING|ERROR|CRITICAL)/|Traceback|^\w*(Error|Exception):|Exception ignored", line):
                if not any(re.search(pattern, line) for pattern in OWN_LINES + tuple(allow)):
                    bad.append(line)
        assert not bad, "%s complained:\n%s\n\nits whole log:\n%s" % (self.name, "\n".join(bad), self.text())

    # --- REST (with the web UI only) ------------------------------------------------------------

    def url(self, path):
        return "http://127.0.0.1:%d%s" % (self.web_port, path)

    def answers(self):
        try:
            return requests.get(self.url("/stats/requests"), timeout=5).status_code == 200
        except requests.ConnectionError:
            assert self.alive(), self.text()
            return False

    def stats(self):
        answer = requests.get(self.url("/stats/requests"), timeout=10)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def swarm(self, users, rate, host=None, **form):
        data = dict(form, user_count=users, spawn_rate=rate)
        if host:
            data["host"] = host
        answer = requests.post(self.url("/swarm"), data=data, timeout=30)
        assert answer.status_code == 200 and answer.json()["success"], answer.text

    def stop(self):
        """Ask for the end of the test; returns when the master says that it has stopped."""
        method = "POST" if self.version == NEWEST else "GET"  # neither takes the other
        answer = requests.request(method, self.url("/stop"), timeout=90)
        assert answer.status_code == 200 and answer.json()["success"], answer.text

    def wait_stats(self, condition, timeout=20, what="a state"):
        """Poll /stats/requests (the master renews it every 2 s) until condition(stats)."""
        last = {}

        def look():
            nonlocal last
            last = self.stats()
            return condition(last) and last
        return wait_for(look, timeout, lambda: "%s; the last stats: %s\n%s" % (what, last, self.text()))

    def wait_workers(self, count, states=("ready", "spawning", "running"), timeout=30):
        """Until exactly `count` workers are in one of the states; their entries."""
        def enough(stats):
            return sum(w["state"] in states for w in stats["workers"]) == count
        return self.wait_stats(enough, timeout, "%d workers in %s" % (count, "/".join(states)))["workers"]

    def wait_users(self, count, timeout=30):
        """Until the workers together report this number of users; each worker's number, sorted. The master keeps a
        missing worker in its list for a minute: it has no users, and is left out."""
        def enough(stats):
            return stats["user_count"] == count
        stats = self.wait_stats(enough, timeout, "%d users" % count)
        return sorted(w["user_count"] for w in stats["workers"] if w["state"] != "missing")

    def wait_requests(self, count, timeout=30):
        """Until the Aggregated row has at least this number of requests."""
        def total(stats):
            return sum(r["num_requests"] for r in stats["stats"] if r["name"] == "Aggregated")
        return total(self.wait_stats(lambda s: total(s) >= count, timeout, "%d requests" % count))


def wait_quiet(nginx, since=0, still=0.7, timeout=20):
    """Until no request arrived for a moment; the number of requests since the mark."""
    state = [nginx.count(since), time.monotonic()]

    def look():
        count = nginx.count(since)
        if count != state[0]:
            state[:] = [count, time.monotonic()]
        return time.monotonic() - state[1] >= still
    wait_for(look, timeout, "the load to end")
    return state[0]

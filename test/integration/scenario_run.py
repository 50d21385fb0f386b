"""A headless run of a scenario against the application of app.py."""
import collections
import json
import os
import subprocess
import urllib.request

import app

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CICADA = os.environ.get("CICADA", os.path.join(ROOT, "build/cicada"))
ENGINES = ["fast", "curl"]


class Run:
    """What a run counted, what it logged, and what the application saw."""

    def __init__(self, path, engine, *flags, users=4, iterations=40, time="60s", host=True):
        server = app.serve()
        self.host = "http://127.0.0.1:%d" % server.server_address[1]
        command = [CICADA, "--headless", "-f", path, "-u", str(users), "-r", "1000", "-t", time, "--stop-timeout", "20",
                   "--engine", engine, "--json", "--threads", "2"]
        command += ["-H", self.host] if host else []
        command += ["--iterations", str(iterations)] if iterations else []
        done = subprocess.run(command + [f.replace("HOST", self.host) for f in flags], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=150)
        self.log = done.stderr
        self.status = done.returncode
        assert "Sanitizer" not in self.log, self.log
        assert done.stdout.lstrip().startswith("["), self.log
        rows = json.loads(done.stdout)
        self.requests = collections.Counter({(r["method"], r["name"]): r["num_requests"] for r in rows})
        self.failures = collections.Counter({(r["method"], r["name"]): r["num_failures"] for r in rows if r["num_failures"]})
        with urllib.request.urlopen(self.host + "/counts") as answer:
            state = json.load(answer)
        server.shutdown()
        server.server_close()
        self.counts, self.seen = collections.Counter(state["counts"]), state["seen"]

    def total(self):
        return sum(n for (method, _), n in self.requests.items() if method != "GROUP")

    def has_all(self):
        """Every request that was counted reached the application, and no other."""
        assert self.total() == sum(self.counts.values())
        return self


def example(name, engine, *flags, **settings):
    return Run(os.path.join(ROOT, "examples", name), engine, *flags, **settings)

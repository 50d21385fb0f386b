"""Workers: cicada, and Locust's own of the same user classes."""
import os
import re

from .master import HERE, LOCUSTFILE, NEWEST, ROOT, locust
from .process import Process

SCENARIO = os.path.join(HERE, "scenario.json")
CICADA = os.environ.get("CICADA", os.path.join(ROOT, "build", "cicada"))

# What a line of the log says about its level, in Locust's layout.
LEVEL = re.compile(r"\] \S+/(\w+)/")
SANITIZER = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:|LeakSanitizer")


class Worker(Process):
    def assert_sound(self):
        """Neither crashed nor complained about by a sanitizer."""
        assert not SANITIZER.search(self.text()), self.text()
        status = self.popen.poll()
        assert status is None or status >= 0 or self.killed, "%s died of signal %d:\n%s" % (self.name, -status, self.text())


class Cicada(Worker):
    """CICADA=python puts Locust's own worker in its place, to try the tests themselves."""

    def __init__(self, folder, master_port=None, scenario=SCENARIO, host="127.0.0.1", args=(), name="cicada", env=None):
        argv = [CICADA]
        if CICADA == "python":
            argv = [locust(NEWEST)]
            scenario = LOCUSTFILE if scenario == SCENARIO else scenario
        argv += ["--worker"]
        argv += ["--master-host", host, "--master-port", master_port] if master_port else []
        argv += ["-f", scenario] if scenario else []
        super().__init__(name, argv + list(args), folder, env)

    def errors(self):
        """Lines of the log at WARNING and above."""
        found = []
        for line in self.text().splitlines():
            level = LEVEL.search(line)
            if level and level.group(1) in ("WARNING", "ERROR", "CRITICAL"):
                found.append(line)
        return found

    def requests(self):
        """(started, finished) of the whole process, as it says at its end: the rest was cut."""
        found = re.search(r"(\d+) requests: (\d+) succeeded, (\d+) failed, (\d+) cut", self.text())
        assert found, self.text()
        started, succeeded, failed, cut = map(int, found.groups())
        assert started == succeeded + failed + cut
        return started, succeeded + failed


class PythonWorker(Worker):
    def __init__(self, folder, master_port, version=NEWEST, args=(), name="python-worker", locustfile=LOCUSTFILE):
        argv = [locust(version), "--worker", "--master-host", "127.0.0.1", "--master-port", master_port, "-f",
                locustfile]
        super().__init__(name, argv + list(args), folder)

"""Fixtures: nginx, masters and workers that are ended with the test, and whose output is shown when it fails."""
import os
import random
import resource
import subprocess
from types import SimpleNamespace

import pytest

pytest.register_assert_rewrite("harness")

from harness.fake_http import FakeHttp
from harness.fake_master import FakeMaster
from harness.kube import shared_kube
from harness.master import VERSIONS, Master, locust
from harness.nginx import Nginx
from harness.relay import Relay
from harness.worker import Cicada, PythonWorker

SHOWN_BYTES = 20000  # of each process's output when a test fails


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call" and report.failed:
        for process in item.funcargs.get("started", []):
            if hasattr(process, "path") and os.path.exists(process.path):
                report.sections.append((process.name, process.text()[-SHOWN_BYTES:]))


@pytest.fixture
def started():
    """What the test started, in order; ended in reverse."""
    things = []
    yield things
    for thing in reversed(things):
        thing.kill() if hasattr(thing, "kill") else thing.close()


def starter(kind, tmp_path, started):
    def start(*args, **kwargs):
        thing = kind(str(tmp_path), *args, **kwargs)
        started.append(thing)
        return thing.start()
    return start


@pytest.fixture
def start_nginx(tmp_path, started):
    return starter(Nginx, tmp_path, started)


@pytest.fixture
def nginx(start_nginx):
    return start_nginx()


@pytest.fixture
def start_master(tmp_path, started):
    return starter(Master, tmp_path, started)


@pytest.fixture
def start_cicada(tmp_path, started):
    """start_cicada(port, name=…): a worker, not waited for. At the test's end it must be sound."""
    yield starter(Cicada, tmp_path, started)
    for process in started:
        if isinstance(process, Cicada):
            process.assert_sound()


@pytest.fixture
def start_python_worker(tmp_path, started):
    return starter(PythonWorker, tmp_path, started)


@pytest.fixture
def fake_master(started):
    fake = FakeMaster()
    started.append(fake)
    return fake


@pytest.fixture
def relay_to(started):
    def relay(port):
        thing = Relay(port)
        started.append(thing)
        return thing
    return relay


@pytest.fixture
def serve():
    """serve(answer): a fake HTTP server, see harness/fake_http.py."""
    servers = []

    def start(what):
        servers.append(FakeHttp(what))
        return servers[-1]
    yield start
    for server in servers:
        server.close()


@pytest.fixture
def rng():
    """New values each run; CICADA_SEED repeats those of a run that failed."""
    seed = os.environ.get("CICADA_SEED") or str(random.SystemRandom().randrange(2**32))
    print("CICADA_SEED=" + seed)
    return random.Random(seed)


@pytest.fixture
def clock(monkeypatch):
    """Locust's time, set by hand."""
    from harness.inside import START_S, stats  # only where it is needed: it imports all of Locust
    now = SimpleNamespace(s=START_S)
    monkeypatch.setattr(stats, "time", SimpleNamespace(time=lambda: now.s))
    return now


@pytest.fixture(params=VERSIONS)
def version(request):
    if not os.path.exists(locust(request.param)):
        pytest.fail("Locust %s is not installed in %s: run `make check`" % (request.param, locust(request.param)))
    return request.param


@pytest.fixture(scope="session")
def kube(tmp_path_factory):
    """A real Kubernetes API server; modules that use it are skipped where harness.kube.missing() says why."""
    base = tmp_path_factory.getbasetemp()
    with shared_kube(str(base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base)) as k:
        yield k


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB."""
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(path)], stderr=subprocess.PIPE)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield path
    subprocess.run(["umount", str(path)], check=True)


@pytest.fixture
def full_disk(small_disk):
    (small_disk / "filler").write_bytes(b"x" * (256 << 10))
    return small_disk


@pytest.fixture(scope="session", autouse=True)
def open_files():
    """The children inherit the hard limit of open files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard

"""Workers that take their scenario from the master's locustfile: -f -."""
import json
import signal
import urllib.error
import urllib.request

import msgpack
import pytest

from harness.counts import assert_counts
from harness.fake_master import FakeMaster
from harness.master import LOCUSTFILE, NEWEST, wait_quiet
from harness.process import free_port, wait_for
from harness.worker import SCENARIO

BUNDLE = '''
# --- cicada scenario begin (made by cicada locustfile; run it again rather than edit this)
CICADA_SCENARIO = r"""
%s
"""
# --- cicada scenario end
'''


def bundle(files):
    """The first file is the scenario."""
    return BUNDLE % json.dumps({"version": 1, "scenario": next(iter(files)), "files": files})


def read(path):
    with open(path) as f:
        return f.read()


def write(folder, name, text):
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.fixture
def locustfile(tmp_path):
    """The master's file of the other tests, with scenario.json inside."""
    return write(tmp_path, "locustfile.py", read(LOCUSTFILE) + bundle({"scenario.json": read(SCENARIO)}))


def gives(version):
    return version not in ("2.12.1", "2.20.1")


def test_from_a_real_master(version, nginx, locustfile, start_master, start_cicada):
    master = start_master(version, locustfile=locustfile)
    scenario, args = ("-", ()) if gives(version) else (locustfile, ())
    cicada = start_cicada(master.port, scenario=scenario, args=args)
    master.wait_workers(1, ("ready",))
    master.swarm(10, 100, nginx.url)
    master.wait_requests(100)
    master.stop()
    wait_quiet(nginx)
    assert master.end() == 1
    assert cicada.wait() == 0
    assert_counts(master.final(), nginx)
    master.assert_clean()
    assert not cicada.errors()
    if gives(version):
        assert "the scenario is locustfile.py from the master: scenario.json" in cicada.text()


@pytest.mark.parametrize("version", ["2.12.1", "2.20.1"])
def test_masters_before_2_23(version, locustfile, start_master, start_cicada):
    master = start_master(version, locustfile=locustfile)
    cicada = start_cicada(master.port, scenario="-", args=["--master-timeout", "4"])
    assert cicada.wait() == 1
    assert ("cicada: the Locust master at '127.0.0.1' port %d does not give its locustfile, as none before 2.23 does: "
            "give the file to the worker (-f FILE)" % master.port) in cicada.text()
    assert master.text().count("Unknown message type") == 1  # it was asked once
    assert master.alive()


@pytest.mark.parametrize("version", ["2.32.10", NEWEST])
def test_several_files(version, tmp_path, nginx, start_master, start_cicada):
    """Of a master's files the first with a scenario counts."""
    plain = write(tmp_path, "a.py", read(LOCUSTFILE))
    holder = write(tmp_path, "b.py", bundle({"scenario.json": read(SCENARIO)}))
    master = start_master(version, locustfile="%s,%s" % (plain, holder))
    cicada = start_cicada(master.port, scenario="-")
    master.wait_workers(1, ("ready",))
    assert ("the scenario is b.py from the master: scenario.json (of its 2 locustfiles the first that has one)"
            in cicada.text())
    master.end()
    assert cicada.wait() == 0


def test_file_without_a_scenario(start_master, start_cicada):
    master = start_master()
    cicada = start_cicada(master.port, scenario="-")
    assert cicada.wait() == 2
    assert ("cicada: locustfile.py from the master: holds no scenario: make one that does with 'cicada locustfile "
            "SCENARIO', or name the scenario itself") in cicada.text()
    assert master.alive()


def test_faulty_scenario(tmp_path, start_master, start_cicada):
    faulty = write(tmp_path, "locustfile.py", read(LOCUSTFILE) + bundle({"shop.yaml": "\n\nusers: 7\n"}))
    master = start_master(locustfile=faulty)
    cicada = start_cicada(master.port, scenario="-")
    assert cicada.wait() == 2
    assert ("cicada: locustfile.py from the master: shop.yaml:3: users: must be a list of user classes, not 7"
            in cicada.text())


def test_master_that_comes_later(locustfile, start_master, start_cicada):
    port = free_port()
    cicada = start_cicada(port, scenario="-", env={"LOCUST_LOCUSTFILE": "-"})
    cicada.wait_line("no Locust master at '127.0.0.1' port %d .connection refused., trying on" % port)
    master = start_master(port=port, locustfile=locustfile)
    master.wait_workers(1, ("ready",))
    master.end()
    assert cicada.wait() == 0
    assert not cicada.errors()


def test_no_master(start_cicada):
    port = free_port()
    cicada = start_cicada(port, scenario="-", args=["--master-timeout", "2"])
    assert cicada.wait() == 1
    assert ("cicada: no Locust master at '127.0.0.1' port %d (connection refused), giving up" % port) in cicada.text()


@pytest.mark.smoke
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_while_waiting(number, start_cicada):
    cicada = start_cicada(free_port(), scenario="-")
    cicada.wait_line("no Locust master")
    cicada.signal(number)
    assert cicada.wait() == 0
    assert "terminated, quitting" in cicada.text() or "interrupted, quitting" in cicada.text()


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def test_alive_while_waiting(fake_master, locustfile, start_cicada):
    """A probe of its liveness does not end a worker that waits for its master."""
    port = free_port()
    cicada = start_cicada(fake_master.port, scenario="-", args=["--metrics-port", port])
    fake_master.wait("locustfile")
    url = "http://127.0.0.1:%d" % port
    assert get(url + "/healthz") == (200, "ok\n")
    assert get(url + "/readyz") == (503, "not ready\n")
    assert get(url + "/metrics") == (503, "no figures yet\n")
    fake_master.send("locustfile", {"filename": "locustfile.py", "contents": read(locustfile)})
    fake_master.welcome()
    wait_for(lambda: fake_master.receive(0.1) is not None and get(url + "/readyz")[0] == 200, 20, "/readyz")
    assert get(url + "/metrics")[0] == 200
    assert cicada.text().count("metrics at port") == 1
    fake_master.send("quit")
    assert cicada.wait() == 0


@pytest.mark.parametrize("scenario", ["-", SCENARIO], ids=["fetched", "given"])
def test_metrics_port_that_is_taken(scenario, fake_master, nginx, start_cicada):
    cicada = start_cicada(fake_master.port, scenario=scenario, args=["--metrics-port", nginx.port,
                                                                      "--metrics-address", "127.0.0.1"])
    assert cicada.wait() == 1
    assert "cicada: metrics port %d: Address already in use" % nginx.port in cicada.text()


def test_single_form_and_fresh_identity(fake_master, locustfile, start_cicada):
    """Masters from 2.23 to 2.30 answer with one file. The worker that registers is another to the master than the one
    that asked."""
    cicada = start_cicada(fake_master.port, scenario="-")
    assert fake_master.wait("locustfile")["version"]
    asker = fake_master.worker
    fake_master.send("heartbeat")  # whatever it means, it is no answer
    fake_master.send("locustfile", {"filename": "../../load/my file.py", "contents": read(locustfile)})
    fake_master.welcome()
    assert fake_master.worker != asker
    assert "the scenario is 'my file.py' from the master: scenario.json" in cicada.text()
    fake_master.send("quit")
    assert cicada.wait() == 0


def test_plan_is_kept_for_another_master(locustfile, nginx, start_cicada):
    """A master that was started again need not be asked again."""
    first = FakeMaster()
    try:
        cicada = start_cicada(first.port, scenario="-")
        first.wait("locustfile")
        first.send("locustfile", {"locustfiles": [{"filename": "locustfile.py", "contents": read(locustfile)}]})
        first.welcome()
        first.wait("heartbeat")
    finally:
        first.close()
    cicada.wait_line("lost the master")
    second = FakeMaster(first.port)
    try:
        second.welcome(40)
        second.spawn({"Visitor": 3, "Buyer": 1}, nginx.url)
        second.wait("spawning_complete")
        assert "locustfile" not in [kind for kind, _ in second.received]
        second.send("quit")
        assert cicada.wait() == 0
    finally:
        second.close()


ANSWERS = [
    (msgpack.packb(["locustfile", None, "x"]), "cannot be read: locustfile is not a map", 1),
    (msgpack.packb(["locustfile", {"locustfiles": [7]}, "x"]),
     "cannot be read: locustfile: a file is not a name and its text, or a URL", 1),
    (msgpack.packb(["locustfile", {"locustfiles": [{"filename": "a.py", "contents": "x" * 1000}]}, "x"])[:500],
     "cannot be read: message: cut off, or claims more than it holds", 1),
    (b"\xdd\xff\xff\xff\xff", "cannot be read: message: cut off, or claims more than it holds", 1),
    (msgpack.packb(["locustfile", {"locustfiles": []}, "x"]), "cicada: the master has no locustfile to give", 1),
    (msgpack.packb(["locustfile", {"locustfiles": ["http://u:secret@h/l.py"]}, "x"]),
     "cicada: the master's locustfile is a URL, which cicada does not load: start the master with the file itself", 2),
    (msgpack.packb(["locustfile", {"error": "locustfile must be\na full path"}, "x"]),
     "cicada: the master cannot give its locustfile: 'locustfile must be\\na full path'", 1),
    (msgpack.packb(["locustfile", {"locustfiles": [{"filename": "l.py", "contents": bundle({"a.json": "{}"})[:150]}]},
                    "x"]), "cicada: l.py from the master: the scenario in it is damaged", 2),
    (msgpack.packb(["locustfile", {"locustfiles": [{"filename": "l.py", "contents": bundle(
        {"a.json": '{"tasks": [{"steps": [{"post": "/", "file": "/etc/passwd"}]}]}'})}]}, "x"]),
     "cicada: l.py from the master: a.json:1: tasks[0].steps[0].file: /etc/passwd: is not in the locustfile", 2),
    (msgpack.packb(["locustfile", {"locustfiles": [{"filename": "l.py", "contents": "x" * (60 << 20)}]}, "x"]),
     "cicada: l.py from the master: holds no scenario", 2),
]


@pytest.mark.smoke
@pytest.mark.parametrize("frame,said,status", ANSWERS, ids=range(len(ANSWERS)))
def test_hostile_answers(frame, said, status, fake_master, start_cicada):
    cicada = start_cicada(fake_master.port, scenario="-")
    fake_master.wait("locustfile")
    fake_master.send_bytes(frame)
    assert cicada.wait() == status
    assert said in cicada.text()
    assert "secret" not in cicada.text()


def test_answer_of_two_frames(fake_master, start_cicada):
    cicada = start_cicada(fake_master.port, scenario="-")
    fake_master.wait("locustfile")
    fake_master.send_bytes(b"", b"")
    assert cicada.wait() == 1
    assert "cannot be read: it has more than one frame" in cicada.text()


def test_too_large_an_answer(fake_master, start_cicada):
    """ZeroMQ drops the connection; the worker asks again, until its time is over."""
    cicada = start_cicada(fake_master.port, scenario="-", args=["--master-timeout", "5"])
    fake_master.wait("locustfile")
    fake_master.send_bytes(b"x" * (65 << 20))
    fake_master.wait("locustfile")
    assert cicada.wait() == 1
    assert "does not give its locustfile" in cicada.text()

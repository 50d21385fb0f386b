"""Mistakes and broken peers: one clear line, the right exit status, never a crash or a hang."""
import os
import socket
import threading

import pytest

from harness import worker
from harness.process import free_port

USERS_MISTAKE = 2
GAVE_UP = 1


def one_line(cicada, *words):
    """There is a line at ERROR (or on its own, without the log's layout) that has all the words."""
    for line in cicada.text().splitlines():
        if all(word.lower() in line.lower() for word in words):
            return line
    raise AssertionError("no line with %s in:\n%s" % (", ".join(words), cicada.text()))


@pytest.mark.smoke
def test_no_master(start_cicada):
    port = free_port()
    cicada = start_cicada(port, args=["--master-timeout", "3"])
    assert cicada.wait(30) == GAVE_UP
    one_line(cicada, "127.0.0.1", str(port), "refused")


def test_name_that_does_not_resolve(start_cicada):
    cicada = start_cicada(free_port(), host="no-such-host.invalid", args=["--master-timeout", "3"])
    assert cicada.wait(40) == GAVE_UP
    one_line(cicada, "no-such-host.invalid")


def test_http_port_instead_of_the_masters(start_cicada, nginx):
    cicada = start_cicada(nginx.port, args=["--master-timeout", "5"])
    assert cicada.wait(30) == GAVE_UP
    one_line(cicada, "127.0.0.1", str(nginx.port))


@pytest.mark.smoke
def test_random_bytes_from_the_masters_port(rng, start_cicada):
    """Whoever listens there sends noise of every length to each connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                peer, _ = listener.accept()
                peer.sendall(rng.randbytes(rng.choice([1, 9, 64, 100, 10000])))
                peer.close()
            except OSError:
                if listener.fileno() < 0:
                    return
    threading.Thread(target=serve, daemon=True).start()
    cicada = start_cicada(listener.getsockname()[1], args=["--master-timeout", "5"])
    assert cicada.wait(30) == GAVE_UP
    listener.close()


def test_silent_listener(start_cicada):
    """A port that takes connections and says nothing, as one behind a load balancer without a backend does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        cicada = start_cicada(port, args=["--master-timeout", "4"])
        assert cicada.wait(30) == GAVE_UP
        one_line(cicada, "127.0.0.1", str(port))


GOOD_USER = '{"name": "A", "tasks": ["/"]}'

SCENARIOS = {
    "not JSON": ('{"users": [', ["bad.json"]),
    "empty": ("", ["bad.json"]),
    "no users": ('{"users": []}', ["bad.json", "users"]),
    "unknown key": ('{"users": [%s],\n "hots": "http://x"}' % GOOD_USER, ["bad.json:2", "hots"]),
    "weight 0": ('{"users": [{"name": "A", "weight": 0, "tasks": []}]}', ["bad.json:1", "weight"]),
    "host without a scheme": ('{"host": "localhost:8080", "users": [%s]}' % GOOD_USER, ["bad.json:1", "host"]),
    "same class twice": ('{"users": [%s, %s]}' % (GOOD_USER, GOOD_USER), ["bad.json", "A"]),
}


@pytest.mark.parametrize("label", SCENARIOS)
def test_scenario_with_a_fault(label, start_cicada, tmp_path):
    text, words = SCENARIOS[label]
    (tmp_path / "bad.json").write_text(text)
    cicada = start_cicada(free_port(), scenario=tmp_path / "bad.json")
    assert cicada.wait(20) == USERS_MISTAKE
    one_line(cicada, *words)
    assert len(cicada.text().splitlines()) <= 3, cicada.text()


@pytest.mark.parametrize("args, words", [
    (["--master-prot", "5557"], ["--master-prot", "--master-port"]),
    (["--loglevel", "LOUD"], ["LOUD"]),
    (["-H", "localhost"], ["localhost"]),
    (["--stop-timeout", "soon"], ["stop-timeout", "soon"]),
], ids=lambda value: value[0])
def test_flag_with_a_fault(args, words, start_cicada):
    cicada = start_cicada(free_port(), args=args)
    assert cicada.wait(20) == USERS_MISTAKE
    one_line(cicada, *words)


def test_scenario_that_is_not_there(start_cicada, tmp_path):
    cicada = start_cicada(free_port(), scenario=tmp_path / "absent.json")
    assert cicada.wait(20) == USERS_MISTAKE
    one_line(cicada, "absent.json", os.strerror(2))


def test_class_that_only_the_master_has(nginx, start_master, start_cicada, tmp_path):
    """Two classes here, one of them unknown to the master and one of the master's unknown here: the known one runs,
    the other is told once, and the counts are of what really runs."""
    scenario = tmp_path / "other.json"
    scenario.write_text('{"users": [%s, %s]}' % (
        GOOD_USER.replace('"A"', '"Visitor"').replace('"tasks"', '"wait_time": {"constant": 0.1}, "tasks"'),
        GOOD_USER.replace('"A"', '"Other"')))
    master = start_master()
    cicada = start_cicada(master.port, scenario=scenario)
    master.wait_workers(1, ("ready",))
    master.swarm(8, 100, nginx.url)
    running = master.wait_stats(lambda s: s["user_count"] == 6, 30, "the 6 Visitors of 8 users")
    assert len(running["workers"]) == 1
    one_line(cicada, "Buyer")
    master.stop()
    assert cicada.alive()


def test_master_gives_a_host_without_a_scheme(nginx, start_master, start_cicada):
    master = start_master()
    cicada = start_cicada(master.port)
    master.wait_workers(1, ("ready",))
    master.swarm(4, 100, nginx.url.removeprefix("http://"))
    cicada.wait_line(r"(?i)host.*127\.0\.0\.1:%d" % nginx.port)
    master.stop()
    master.swarm(4, 100, nginx.url)
    master.wait_users(4)
    master.wait_requests(5)
    master.stop()
    assert cicada.alive()


def test_refused_connections_are_failures(start_master, start_cicada):
    """Under the same names, as Locust counts them, and users go on trying."""
    port = free_port()
    master = start_master()
    start_cicada(master.port)
    master.wait_workers(1, ("ready",))
    master.swarm(4, 100, "http://127.0.0.1:%d" % port)
    master.wait_requests(100)
    master.stop()
    record = master.last_stop(1)
    assert set(record["rows"]) == {"GET /", "GET /10k", "GET missing", "POST buy", "GET /redirect"}
    assert all(requests == failures for requests, failures in record["rows"].values())
    assert len(record["errors"]) == 5 and all("efused" in error for error in record["errors"]), record["errors"]


def test_more_users_than_open_files(nginx, start_master, start_cicada, tmp_path, monkeypatch):
    """The hard limit is told, and what it carries runs."""
    wrapper = tmp_path / "cicada-with-few-files"
    wrapper.write_text('#!/bin/sh\nulimit -n 150\nexec "%s" "$@"\n' % worker.CICADA)
    wrapper.chmod(0o755)
    monkeypatch.setattr(worker, "CICADA", str(wrapper))
    master = start_master()
    cicada = start_cicada(master.port)
    master.wait_workers(1, ("ready",))
    master.swarm(300, 300, nginx.url)
    master.wait_users(300)
    cicada.wait_line(r"WARNING/.* 300 users .*hard limit.* \d+: raise it")
    master.wait_requests(100)
    master.stop()
    assert len([line for line in cicada.errors() if "hard limit" in line]) == 1

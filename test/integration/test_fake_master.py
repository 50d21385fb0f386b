"""Messages that a real master will not send: the worker says so once and goes on working."""
import time

import msgpack
import pytest

from harness.process import wait_for


def works(fake, nginx):
    """A spawn, load, and a stop in order."""
    mark = nginx.mark()
    fake.spawn({"Visitor": 3, "Buyer": 1}, nginx.url)
    fake.wait("spawning")
    fake.wait("spawning_complete", condition=lambda d: d["user_classes_count"] == {"Visitor": 3, "Buyer": 1})
    fake.wait("stats", condition=lambda d: d["stats_total"]["num_requests"] > 0)
    fake.send("stop")
    fake.wait("client_stopped")
    fake.wait("client_ready")
    fake.send("ack", {"index": 0})
    assert nginx.count(mark) > 0


BROKEN = [
    b"",
    b"\xc1",
    b"\x93",
    b"\x93\xa5spawn",
    b"\xdd\xff\xff\xff\xff",
    b"\x93\xa5spawn\xdf\xff\xff\xff\xff\xa1x",
    b"\x91" * 100000,
    msgpack.packb(["spawn"]),
    msgpack.packb(["spawn", None, "x", "y"]),
    msgpack.packb([1, 2, 3]),
    msgpack.packb(["spawn", {"timestamp": "soon", "user_classes_count": {"Visitor": 1}}, "x"]),
    msgpack.packb(["spawn", {"timestamp": float("nan"), "user_classes_count": {"Visitor": 1}}, "x"]),
    msgpack.packb(["spawn", {"timestamp": 1.0, "user_classes_count": {"Visitor": -1}}, "x"]),
    msgpack.packb(["spawn", {"timestamp": 1.0, "user_classes_count": {"Visitor": 1 << 40}}, "x"]),
    msgpack.packb(["spawn", {"timestamp": 1.0, "user_classes_count": [1]}, "x"]),
    msgpack.packb(["spawn", "all of them", "x"]),
    msgpack.packb(["ack", {"index": "first"}, "x"]),
    msgpack.packb(["ack", [], "x"]),
    msgpack.packb(["spawning_complete", {"user_count": -3}, "x"]),
    msgpack.packb(["update_user_class", {"user_class_name": 7}, "x"]),
    msgpack.packb(["update_user_class", {"user_class_name": "Visitor", "weight": "heavy"}, "x"]),
    msgpack.packb(["no_such_type", {"x": [1, 2, 3]}, "x"]),
    msgpack.packb(["spawn", None, "x"]) + b"\x00",
    msgpack.packb([b"\xff\xfe", None, "x"]),
]


@pytest.mark.smoke
def test_broken_messages(fake_master, nginx, start_cicada):
    cicada = start_cicada(fake_master.port)
    fake_master.welcome()
    for frame in BROKEN:
        fake_master.send_bytes(frame)
    fake_master.send_bytes(b"\x93\xa4", b"two frames")
    fake_master.send_bytes(b"", msgpack.packb(["spawn", None, "x"]))
    works(fake_master, nginx)
    fake_master.send("quit")
    assert cicada.wait(20) == 0


def spoiled(rng, nginx):
    """A message of a real master with some bytes changed, cut or put in."""
    kind, data = rng.choice([
        ("spawn", {"timestamp": time.time(), "user_classes_count": {"Visitor": rng.randrange(5), "Buyer": 1},
                   "host": nginx.url, "stop_timeout": 0.0, "parsed_options": {"tags": ["a"], "users": 3}}),
        ("ack", {"index": 1}), ("heartbeat", None), ("spawning_complete", {"user_count": 4}), ("reconnect", None),
        ("update_user_class", {"user_class_name": "Visitor", "weight": 2}), ("stop", None)])
    frame = bytearray(msgpack.packb([kind, data, "id"]))
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(frame)) if frame else 0
        change = rng.randrange(3)
        if change == 0 and frame:
            frame[at] = rng.randrange(256)
        elif change == 1:
            del frame[at:at + rng.randrange(1, 4)]
        else:
            frame[at:at] = rng.randbytes(rng.randrange(1, 4))
    return bytes(frame)


@pytest.mark.smoke
def test_spoiled_messages(rng, fake_master, nginx, start_cicada):
    cicada = start_cicada(fake_master.port)
    fake_master.welcome()
    for _ in range(500):
        frame = spoiled(rng, nginx)
        if b"quit" not in frame:
            fake_master.send_bytes(frame)
        while fake_master.receive(0):
            pass
    # Whatever state that left, a stop and an ack for each client_ready clean up. Three times, because what is on its
    # way while the worker obeys a reconnect is lost; that may cost it its identity, which it notices after 5 s.
    for _ in range(3):
        fake_master.send("stop")
        end = time.monotonic() + 3
        while time.monotonic() < end:
            message = fake_master.receive(0.1)
            if message and message[0] == "client_ready":
                fake_master.send("ack", {"index": 0})
    assert cicada.alive(), cicada.text()
    works(fake_master, nginx)
    fake_master.send("quit")
    assert cicada.wait(20) == 0


def test_the_newest_spawn_wins(fake_master, nginx, start_cicada):
    """A spawn message every few milliseconds, then older and repeated ones: answered, without effect."""
    start_cicada(fake_master.port)
    fake_master.welcome()
    for users in range(1, 101):
        fake_master.spawn({"Visitor": users, "Buyer": 0}, nginx.url, timestamp=1000.0 + users)
    fake_master.wait("spawning_complete", condition=lambda d: d["user_count"] == 100)
    before = sum(kind == "spawning" for kind, _ in fake_master.received)
    assert before == 100
    fake_master.spawn({"Visitor": 5, "Buyer": 0}, nginx.url, timestamp=1050.0)
    fake_master.wait("spawning")
    fake_master.spawn({"Visitor": 7, "Buyer": 0}, nginx.url, timestamp=1100.0)
    fake_master.wait("spawning")
    for _ in range(2):
        stats = fake_master.wait("stats")
        assert stats["user_classes_count"] == {"Visitor": 100, "Buyer": 0} and stats["user_count"] == 100
    fake_master.spawn({"Visitor": 2, "Buyer": 1}, nginx.url, timestamp=1101.0)
    fake_master.wait("spawning_complete", condition=lambda d: d["user_classes_count"] == {"Visitor": 2, "Buyer": 1})


def test_quit_three_times_and_final_stats_in_time(fake_master, nginx, start_cicada):
    """The master listens for 0.5 s after its first quit: what was counted until then has to be there."""
    users = 10
    cicada = start_cicada(fake_master.port)
    fake_master.welcome()
    fake_master.spawn({"Visitor": users, "Buyer": 0}, nginx.url, stop_timeout=30.0)
    fake_master.wait("spawning_complete")
    fake_master.wait("stats", condition=lambda d: d["stats_total"]["num_requests"] > 0)
    mark = nginx.mark()
    wait_for(lambda: nginx.count(mark) > users, 20, "requests after the last report")
    quit_at = time.monotonic()
    fake_master.send("quit")
    fake_master.wait("stats", timeout=5)
    assert time.monotonic() - quit_at < 0.5
    told = sum(data["stats_total"]["num_requests"] for kind, data in fake_master.received if kind == "stats")
    fake_master.send("quit")
    fake_master.send("quit")
    assert cicada.wait(40) == 0
    assert 0 <= nginx.count() - told <= users, (nginx.count(), told)


def test_without_ack_client_ready_is_sent_again(fake_master, start_cicada):
    """From 2.10 on a master answers; a worker repeats itself until then and says nothing else."""
    start_cicada(fake_master.port)
    fake_master.wait("client_ready")
    fake_master.wait("client_ready", timeout=15)
    kinds = {kind for kind, _ in fake_master.received}
    assert not kinds & {"spawning_complete", "spawning"}

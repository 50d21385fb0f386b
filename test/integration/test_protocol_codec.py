"""The codec against Locust's own: what it encodes is read by Locust's Message, StatsEntry and stats listeners; what Locust
serialises is read by it. Messages are made at random from a seed, which is printed; CICADA_SEED repeats a run."""
import datetime
import json
import math
import os
import subprocess
from pathlib import Path

import msgpack
import pytest

from harness.inside import Events, Message, stats as locust_stats

ROOT = Path(__file__).resolve().parents[2]
PROBE = ROOT / os.environ.get("BUILD", "build") / "test/tools/codec_probe"
ROUNDS = 300


class Codec:
    def __init__(self):
        self.process = subprocess.Popen([str(PROBE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer.endswith("\n"), "the probe ended: %s" % self.process.wait()
        return answer[:-1]

    def encode(self, **message):
        return bytes.fromhex(self.ask("encode " + json.dumps(message)))

    def decode(self, frame):
        return json.loads(self.ask("decode " + frame.hex()))

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0


@pytest.fixture(scope="module")
def codec():
    c = Codec()
    yield c
    c.close()


# --- random values -------------------------------------------------------------------------------------------------

TEXTS = ["", "GET", "/index.html?a=b&c=d", "naïve", "日本語", "🦗" * 40, "a\0b", "'\"\\,\n\r\t", "x" * 31, "x" * 32, "x" * 255, "x" * 300,
         "__datetime_", "\x7f\u0080\uffff\U0010ffff"]
BROKEN = [b"\xff", b"ok\xc3", b"\xed\xa0\x80", b"\xc0\xafx", b"\xf5\x80\x80\x80", b"a\xe2\x82", b"\xf0\x9f\xa6"]
INTS = [0, 1, 127, 128, 255, 256, 65535, 65536, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1]


def any_bytes(rng):
    if rng.random() < 0.2:
        return rng.choice(BROKEN) + rng.choice(TEXTS).encode()
    return rng.choice(TEXTS).encode()


def any_uint(rng):
    return rng.choice(INTS) if rng.random() < 0.5 else rng.randrange(2 ** rng.randrange(1, 63))


def any_time(rng):
    return rng.choice([0, 1e-3, 0.25, 5.0, 99.5, 1234.5678, 1e9]) if rng.random() < 0.5 else rng.random() * 1e4


def distinct(rng, make, limit=30):
    return list(dict.fromkeys(make(rng) for _ in range(rng.randrange(limit))))


def text(raw):
    """What a master reads of these bytes."""
    return raw.decode("utf-8", "replace")


def any_entry(rng):
    return {
        "name": any_bytes(rng), "method": any_bytes(rng),
        "last_request_timestamp": rng.choice([None, 1.7e9 + rng.random() * 1e6]),
        "start_time": 1.7e9 + rng.random() * 1e6,
        "num_requests": any_uint(rng), "num_none_requests": any_uint(rng), "num_failures": any_uint(rng),
        "total_response_time": any_time(rng), "max_response_time": any_time(rng),
        "min_response_time": rng.choice([None, any_time(rng)]),
        "total_content_length": any_uint(rng),
        "response_times": [[k, any_uint(rng)] for k in distinct(rng, lambda r: r.choice([any_uint(r) % 2**53, any_time(r)]))],
        "num_reqs_per_sec": [[k, any_uint(rng)] for k in distinct(rng, any_uint)],
        "num_fail_per_sec": [[k, any_uint(rng)] for k in distinct(rng, any_uint)],
    }


def any_error(rng):
    return {"key": "%064x" % rng.randrange(2**256), "name": any_bytes(rng), "method": any_bytes(rng), "error": any_bytes(rng),
            "occurrences": any_uint(rng), "first_seen": 1.7e9 + rng.random(), "last_seen": 1.7e9 + rng.random()}


def any_classes(rng):
    by_text = {text(raw): [raw, rng.randrange(2**32)] for raw in (any_bytes(rng) for _ in range(rng.randrange(6)))}
    return list(by_text.values())


def hexed(value):
    """Bytes as hexadecimal digits, as the probe takes texts."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {k: hexed(v) for k, v in value.items()}
    if isinstance(value, list):
        return [hexed(v) for v in value]
    return value


def same(a, b):
    """Equal, and of the same types all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def any_json(rng, depth=0):
    kind = rng.randrange(6 if depth > 5 else 8)
    if kind == 6:
        return [any_json(rng, depth + 1) for _ in range(rng.randrange(5))]
    if kind == 7:
        # jansson reads no key with a NUL from text
        return {(rng.choice(TEXTS) + str(rng.randrange(9))).replace("\0", ""): any_json(rng, depth + 1) for _ in range(rng.randrange(20))}
    return [None, True, False, rng.choice(TEXTS), rng.choice([1, -1]) * any_uint(rng), rng.choice([-1, 1]) * any_time(rng)][kind]


# --- encode here, read with Locust ---------------------------------------------------------------------------------

def read(frame):
    """As the master reads it; and it is one array of three, without a byte behind it."""
    parts = msgpack.loads(frame, raw=False, strict_map_key=False)
    assert isinstance(parts, list) and len(parts) == 3
    message = Message.unserialize(frame)
    assert isinstance(message.type, str) and isinstance(message.node_id, str)
    return message


def expected_entry(entry):
    want = {k: v for k, v in entry.items() if k not in ("response_times", "num_reqs_per_sec", "num_fail_per_sec")}
    want["name"], want["method"] = text(entry["name"]), text(entry["method"])
    for key in ("total_response_time", "max_response_time", "min_response_time"):
        want[key] = want[key] and float(want[key]) or (want[key] if want[key] is None else 0)
    want["response_times"] = {int(k) if k == int(k) else k: n for k, n in entry["response_times"]}
    want["num_reqs_per_sec"] = dict(map(tuple, entry["num_reqs_per_sec"]))
    want["num_fail_per_sec"] = dict(map(tuple, entry["num_fail_per_sec"]))
    return want


def test_stats_are_read_by_locust_as_they_were_meant(codec, rng):
    for _ in range(ROUNDS):
        node_id = any_bytes(rng)
        entries, total = [any_entry(rng) for _ in range(rng.randrange(4))], any_entry(rng)
        errors, classes, user_count = [any_error(rng) for _ in range(rng.randrange(4))], any_classes(rng), any_uint(rng)
        cicada = rng.choice([None, {"report": any_json(rng)}])
        fields = hexed({"node_id": node_id, "entries": entries, "total": total, "classes": classes,
                        "errors": [dict(e, key=e["key"].encode()) for e in errors], "user_count": user_count})
        message = read(codec.encode(type="stats", **fields, **({"cicada": cicada} if cicada else {})))
        assert message.type == "stats" and message.node_id == text(node_id)
        data = message.data
        assert list(data) == ["stats", "stats_total", "errors", "user_classes_count", "user_count"] + (["cicada"] if cicada else [])
        assert same(data["stats"], [expected_entry(e) for e in entries])
        assert same(data["stats_total"], expected_entry(total))
        assert same(data["errors"], {e["key"]: {
            "name": text(e["name"]), "method": text(e["method"]), "error": text(e["error"]), "occurrences": e["occurrences"],
            "first_seen": e["first_seen"], "last_seen": e["last_seen"]} for e in errors})
        assert same(data["user_classes_count"], {text(name): n for name, n in classes})
        assert data["user_count"] == user_count
        assert not cicada or same(data["cicada"], cicada)
        holder = locust_stats.RequestStats()
        for got in data["stats"]:
            assert list(got) == list(locust_stats.StatsEntryDict.__annotations__) or set(got) == set(
                locust_stats.StatsEntry(holder, "", "").serialize())
            assert locust_stats.StatsEntry.unserialize(got, holder).serialize() == got


def test_the_masters_listeners_merge_the_stats(codec, rng):
    """The real listeners of a master, over many reports; then everything it would show is made of them."""
    events, stats = Events(), locust_stats.RequestStats()
    locust_stats.setup_distributed_stats_event_listeners(events, stats)
    requests = failures = occurrences = 0
    for second in range(50):
        n = rng.randrange(1, 50)
        times = [rng.choice([round(rng.random() * 100), rng.random()]) for _ in range(n)]
        counts = {t: times.count(t) for t in times}
        failed = rng.randrange(n)
        entry = {"name": b"/caf\xc3\xa9\xff", "method": b"GET", "last_request_timestamp": 1.7e9 + second, "start_time": 1.7e9,
                 "num_requests": n, "num_none_requests": 0, "num_failures": failed, "total_response_time": float(sum(times)),
                 "max_response_time": float(max(times)), "min_response_time": float(min(times)), "total_content_length": 10 * n,
                 "response_times": list(map(list, counts.items())), "num_reqs_per_sec": [[1700000000 + second, n]],
                 "num_fail_per_sec": [[1700000000 + second, failed]]}
        errors = [{"key": b"k", "name": b"/", "method": b"GET", "error": b"404 \xff", "occurrences": failed,
                   "first_seen": 1.7e9 + second, "last_seen": 1.7e9 + second}]
        fields = hexed({"node_id": b"w", "entries": [entry], "total": dict(entry, name=b"Aggregated", method=b""),
                        "errors": errors, "classes": [], "user_count": 1})
        events.worker_report.fire(client_id="w", data=read(codec.encode(type="stats", **fields)).data)
        requests, failures, occurrences = requests + n, failures + failed, occurrences + failed
    assert stats.total.num_requests == requests and stats.total.num_failures == failures
    assert sum(stats.total.response_times.values()) == requests
    assert stats.entries[("/café\ufffd", "GET")].num_requests == requests
    assert [e.occurrences for e in stats.errors.values()] == [occurrences]
    json.dumps([stats.total.to_dict()] + [e.to_dict() for e in stats.entries.values()], allow_nan=False)
    locust_stats.sort_stats(stats.entries)
    locust_stats.get_percentile_stats_summary(stats)


def test_an_empty_report_leaves_the_masters_minimum_alone(codec):
    holder = locust_stats.RequestStats()
    empty = {"name": b"Aggregated", "method": b"", "last_request_timestamp": None, "start_time": 1.7e9, "num_requests": 0,
             "num_none_requests": 0, "num_failures": 0, "total_response_time": 0, "max_response_time": 0, "min_response_time": None,
             "total_content_length": 0, "response_times": [], "num_reqs_per_sec": [], "num_fail_per_sec": []}
    fields = hexed({"node_id": b"w", "entries": [], "total": empty, "errors": [], "classes": [], "user_count": 0})
    frame = codec.encode(type="stats", **fields)
    fresh = locust_stats.StatsEntry(holder, "Aggregated", "")
    fresh.start_time = 1.7e9
    assert frame == Message("stats", {"stats": [], "stats_total": fresh.serialize(), "errors": {}, "user_classes_count": {},
                                      "user_count": 0}, "w").serialize()
    fresh.min_response_time = 3
    fresh.extend(locust_stats.StatsEntry.unserialize(read(frame).data["stats_total"], holder))
    assert fresh.min_response_time == 3 and fresh.last_request_timestamp is None


def test_other_messages_are_byte_for_byte_locusts(codec, rng):
    for _ in range(ROUNDS):
        node_id = any_bytes(rng)
        classes, lines = any_classes(rng), [any_bytes(rng) for _ in range(rng.randrange(5))]
        one, two, cpu, memory = any_bytes(rng), any_bytes(rng), float(any_time(rng)), rng.randrange(2**40)
        state = rng.choice(["ready", "spawning", "running"])
        version = rng.choice([b"", b"2.47.0", b"2.12.1\xff"])
        cases = [
            ({"type": "spawning_complete", "classes": classes, "user_count": 7},
             {"user_classes_count": {text(name): n for name, n in classes}, "user_count": 7}),
            ({"type": "heartbeat", "state": state, "current_cpu_usage": cpu, "current_memory_usage": memory},
             {"state": state, "current_cpu_usage": cpu, "current_memory_usage": memory}),
            ({"type": "heartbeat", "state": state, "current_cpu_usage": cpu}, {"state": state, "current_cpu_usage": cpu}),
            ({"type": "logs", "logs": lines}, {"worker_id": text(node_id), "logs": [text(line) for line in lines]}),
            ({"type": "exception", "msg": one, "traceback": two}, {"msg": text(one), "traceback": text(two)}),
            ({"type": "client_ready", "version": version}, text(version) or -1),
            ({"type": "locustfile", "version": version}, {"version": text(version)}),
            ({"type": "spawning"}, None),
            ({"type": "client_stopped"}, None),
            ({"type": "quit"}, None),
        ]
        for message, data in cases:
            frame = codec.encode(**hexed(dict(message, node_id=node_id)))
            assert frame == Message(message["type"], data, text(node_id)).serialize(), message


def test_custom_data_is_read_by_locust_as_it_was_meant(codec, rng):
    for _ in range(ROUNDS):
        data = any_json(rng)
        message = read(codec.encode(type="acme_event", node_id="", data=data))
        assert message.type == "acme_event" and same(message.data, data)


def test_no_key_makes_locusts_decoder_build_an_object(codec):
    for key in ("__datetime__", "__ObjectId__"):
        assert read(codec.encode(type="x", node_id="", data={"a": [{key: 1}]})).data == {"a": [{"_" + key: 1}]}
        message = read(codec.encode(type="spawning_complete", node_id="", classes=[[key.encode().hex(), 1]], user_count=1))
        assert message.data["user_classes_count"] == {"_" + key: 1}


# --- serialise with Locust, decode here ------------------------------------------------------------------------------

def any_python(rng, depth=0):
    """What a locustfile may put into a message: everything that msgpack takes."""
    kind = rng.randrange(9 if depth > 5 else 11)
    if kind == 9:
        return [any_python(rng, depth + 1) for _ in range(rng.randrange(5))]
    if kind == 10:
        return {any_key(rng): any_python(rng, depth + 1) for _ in range(rng.randrange(20))}
    return [None, True, False, rng.choice(TEXTS), any_bytes(rng), rng.choice([1, -1]) * any_uint(rng),
            rng.choice([2**63, 2**64 - 1, -2**63]), rng.choice([any_time(rng), 0.1, -0.0, 1e300, math.nan, math.inf, -math.inf]),
            rng.choice([msgpack.ExtType(5, b"abc"), datetime.datetime(2024, 5, 6, 7, 8, 9, 10)])][kind]


def any_key(rng):
    return rng.choice([rng.choice(TEXTS), any_bytes(rng), any_uint(rng), -any_uint(rng), any_time(rng), None, True, math.inf])


def key_text(key):
    if isinstance(key, str):
        return key
    if isinstance(key, bytes):
        return text(key)
    if key is None or isinstance(key, bool):
        return json.dumps(key)
    return repr(key)


def expected_json(value):
    if isinstance(value, bytes):
        return text(value)
    if isinstance(value, msgpack.ExtType):
        return None
    if isinstance(value, datetime.datetime):
        return {"__datetime__": True, "as_str": value.strftime("%Y%m%dT%H:%M:%S.%f")}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 2**63:
        return float(value)
    if isinstance(value, list):
        return [expected_json(v) for v in value]
    if isinstance(value, dict):
        return {key_text(k): expected_json(v) for k, v in value.items()}
    return value


def test_custom_messages_of_locust_are_decoded(codec, rng):
    for _ in range(ROUNDS):
        name, node_id = rng.choice(TEXTS) + "!", rng.choice(TEXTS)
        data = any_python(rng)
        got = codec.decode(Message(name, data, node_id).serialize())
        assert got["type"] == "custom" and got["node_id"] == node_id
        assert got["data"][0] == name and same(got["data"][1], expected_json(data)), data


def test_spawn_of_locust_is_decoded(codec, rng):
    for _ in range(ROUNDS):
        classes = {text(raw): n for raw, n in any_classes(rng)}
        host, timeout = rng.choice([None, "", "http://h:1", "日本"]), rng.choice([None, 0.0, 5, 2.5, -1, 1e12])
        options = {k: any_python(rng, 3) for k in ("num_users", "tags", "日本", "x" * 50)[: rng.randrange(5)]}
        job = {"timestamp": rng.choice([1700000000.25, 17]), "user_classes_count": classes, "host": host, "stop_timeout": timeout,
               "parsed_options": options}
        if rng.random() < 0.2:
            del job["parsed_options"], job["stop_timeout"], job["host"]
            host, timeout, options = None, None, {}
        if rng.random() < 0.5:
            job["unknown"] = any_python(rng)
        got = codec.decode(Message("spawn", job, "w_1").serialize())
        assert got["type"] == "spawn", got
        assert got["data"]["timestamp"] == job["timestamp"]
        assert got["data"]["classes"] == [list(item) for item in classes.items()]
        assert got["data"]["host"] == (host or None)
        assert got["data"]["stop_timeout"] == min(max(timeout or 0, 0), 31536000)
        assert same(got["data"]["parsed_options"], expected_json(options))


def test_other_messages_of_locust_are_decoded(codec, rng):
    for _ in range(ROUNDS):
        n = any_uint(rng)
        files = [rng.choice(["http://h/%d.py" % i, {"filename": "%d.py" % i, "contents": rng.choice(TEXTS)}]) for i in range(rng.randrange(4))]
        sources = [[f["filename"], f["contents"]] if isinstance(f, dict) else [None, f] for f in files]
        attributes = {"user_class_name": rng.choice(TEXTS), "weight": 3, "more": any_python(rng)}
        cases = [
            ("ack", {"index": n}, n), ("ack", None, None),
            ("spawning_complete", {"user_count": n}, n),
            ("heartbeat", None, None), ("stop", None, None), ("quit", None, None), ("reconnect", None, None),
            ("update_user_class", attributes, [attributes["user_class_name"], expected_json(attributes)]),
            ("locustfile", {"locustfiles": files}, {"error": None, "sources": sources}),
            ("locustfile", {"filename": "a.py", "contents": "x"}, {"error": None, "sources": [["a.py", "x"]]}),
            ("locustfile", {"error": "no"}, {"error": "no", "sources": []}),
        ]
        for name, data, want in cases:
            got = codec.decode(Message(name, data, "w_1").serialize())
            assert got["type"] == name and same(got["data"], want), (got, data)


def test_each_cut_and_each_added_byte_is_refused(codec, rng):
    for _ in range(10):
        frame = Message("spawn", {"timestamp": 1.5, "user_classes_count": {"A": 1, "B": 300}, "host": None, "stop_timeout": 1.0,
                                  "parsed_options": {"x": any_python(rng, 4)}}, "w_1").serialize()
        assert "error" not in codec.decode(frame)
        for end in rng.sample(range(len(frame)), min(len(frame), 60)):
            assert codec.decode(frame[:end])["code"] < 0
        assert codec.decode(frame + bytes([rng.randrange(256)]))["code"] < 0


def is_one_value(frame):
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    unpacker.feed(frame)
    try:
        unpacker.skip()
    except (msgpack.OutOfData, ValueError):
        return False
    return unpacker.tell() == len(frame)


def test_damaged_frames_are_read_only_when_msgpack_is_whole(codec, rng):
    read_count = 0
    for _ in range(ROUNDS * 5):
        frame = bytearray(Message("x", any_python(rng), "w_1").serialize())
        for _ in range(rng.randrange(1, 4)):
            frame[rng.randrange(len(frame))] = rng.randrange(256)
        got = codec.decode(bytes(frame))
        assert "error" in got or is_one_value(bytes(frame)), frame.hex()
        read_count += "error" not in got
    assert 0 < read_count < ROUNDS * 5

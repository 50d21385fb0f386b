"""The same samples through Locust's own RequestStats and through ours, compared in every form that leaves a process:
what a worker sends, what a master makes of it, percentiles, CSV files. New samples each run; CICADA_SEED repeats one.
"""
import csv
import io
import json
import os
import subprocess
from types import SimpleNamespace

import pytest

from harness.inside import CatchResponseError, Events, hexed, stats as locust_stats, text

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.environ.get("CICADA_STATS_SCRIPT", os.path.join(ROOT, "build", "test", "tools", "stats_script"))

SAMPLES = 100_000
DELTAS = 12

METHODS = [b"GET", b"POST", b"", b"PU\xffT", "MÉTHODE".encode()]
NAMES = [b"/", b"/a,b", b'/say "hi"', b"/line\nbreak", b"/return\r", b"/nul\0byte", b"/caf\xc3", b"\xed\xa0\x80", b"=1+1",
         b" spaced ", b"it's", "/naïve/😀".encode(), b"a.b", b"b", "/\u200bzero".encode(), b"/" + b"x" * 300]
ERRORS = [b"HTTP 500", b"", b"it's", b'"both" it\'s', b"back\\slash\ttab\nline\rreturn\0nul", b"bad \xff\xfe bytes",
          "é 😀 \u200b \xa0 \U000e0001".encode(), b"=cmd|' /C calc'!A0", b"a,b",
          repr(CatchResponseError("not what I wanted: 'x'")).encode()]


def run_tool(lines):
    done = subprocess.run([TOOL], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, text=True, timeout=120, check=True)
    return done.stdout.splitlines()


def response_time_us(rng, exact):
    kind = rng.randrange(10)
    if kind == 0:  # a tie of one of the four grids
        unit = rng.choice([1000, 10_000, 100_000, 1_000_000])
        us = rng.randrange(150) * unit + unit // 2
    elif kind == 1:  # beside one
        us = rng.randrange(1, 12_000) * 500 + rng.choice([-1, 1])
    else:
        us = int(10 ** rng.uniform(0, 8))
    return us // 125 * 125 if exact else us


class Pair:
    """One worker of each kind, fed alike; what each reports goes on to its own master."""

    def __init__(self, clock):
        self.clock = clock
        self.lines = ["start %r" % clock.s]
        self.slots = []
        self.worker_events, self.master_events = Events(), Events()
        self.worker = locust_stats.RequestStats(use_response_times_cache=False)
        self.master = locust_stats.RequestStats()
        locust_stats.setup_distributed_stats_event_listeners(self.worker_events, self.worker)
        locust_stats.setup_distributed_stats_event_listeners(self.master_events, self.master)
        self.reports = []

    def slot(self, method, name):
        self.lines.append("slot %s %s" % (hexed(method), hexed(name)))
        self.slots.append((text(method), text(name)))
        # an entry of ours starts with its set, one of Locust's when it is first asked for
        self.worker.get(text(name), text(method))

    def request(self, slot, us, size):
        self.lines.append("request %d %d %d %r" % (slot, us, size, self.clock.s))
        self.worker.log_request(*self.slots[slot], us / 1000, size)

    def error(self, slot, error):
        self.lines.append("error %d %s %r" % (slot, hexed(error), self.clock.s))
        self.worker.log_error(*self.slots[slot], text(error))

    def delta(self):
        self.lines.append("delta %r" % self.clock.s)
        report = {}
        self.worker_events.report_to_master.fire(client_id="w", data=report)
        self.reports.append(json.loads(json.dumps(report)))  # also makes the keys strings, on both sides
        self.master_events.worker_report.fire(client_id="w", data=report)


def play(rng, clock, exact):
    pair = Pair(clock)
    seen = set()
    for method in METHODS:
        for name in NAMES:
            if (text(method), text(name)) not in seen and rng.random() < 0.8:
                seen.add((text(method), text(name)))
                pair.slot(method, name)
    for i in range(SAMPLES):
        clock.s += rng.expovariate(1) * 0.0005
        slot = min(int(rng.expovariate(0.08)), len(pair.slots) - 1)
        pair.request(slot, response_time_us(rng, exact), rng.choice([0, 100, rng.randrange(10**7)]))
        if rng.random() < 0.05:
            error = rng.choice(ERRORS)
            if rng.random() < 0.2:
                address = b"%x" % rng.randrange(2**16)
                error = b"<locust.X object at 0x%s> of 0x%s, <Y object at 0x1>" % (address, address)
            pair.error(slot, error)
        if (i + 1) % (SAMPLES // DELTAS) == 0:
            pair.delta()
    pair.delta()
    output = [json.loads(line) for line in run_tool(pair.lines)]
    return pair, output[:-1], output[-1]


def same_entry(ours, theirs, exact):
    ours, theirs = dict(ours), dict(theirs)
    for key in ("response_times", "num_reqs_per_sec", "num_fail_per_sec"):
        assert ours[key] == sorted(ours[key])
        ours[key] = {str(k): n for k, n in ours[key]}
    # Locust sums floats one by one; ours are whole microseconds
    ours_total, theirs_total = ours.pop("total_response_time"), theirs.pop("total_response_time")
    assert ours_total == (theirs_total if exact else pytest.approx(theirs_total, rel=1e-9))
    assert ours == theirs


def rows_of(content):
    return list(csv.reader(io.StringIO(content, newline="")))


def same_csv(ours, theirs, exact):
    if exact:
        assert ours == theirs
        return
    ours_rows, theirs_rows = rows_of(ours), rows_of(theirs)
    average = next(i for i, title in enumerate(theirs_rows[0]) if title.endswith("Average Response Time"))
    for a, b in zip(ours_rows[1:], theirs_rows[1:]):
        assert float(a[average]) == pytest.approx(float(b[average]), rel=1e-9)
        a[average] = b[average]
    assert ours_rows == theirs_rows


def locust_csv(pair, *writers):
    out = io.StringIO(newline="")
    environment = SimpleNamespace(stats=pair.master, runner=SimpleNamespace(user_count=12))
    stats_csv = locust_stats.StatsCSV(environment, locust_stats.PERCENTILES_TO_REPORT)
    stats_csv.full_history = True
    for write in writers:
        write(stats_csv, csv.writer(out))
    return out.getvalue()


def history_csv(pair, header, entries, monkeypatch):
    """A row for each of the entries and the total, with the percentiles of the whole run: those Locust gives when it
    keeps no cache."""
    for entry in [*pair.master.entries.values(), pair.master.total]:
        entry.use_response_times_cache = False
    monkeypatch.setattr(locust_stats, "sort_stats", lambda found: [found[key] for key in entries])

    def rows(stats_csv, out):
        locust_stats.StatsCSVFileWriter._stats_history_data_rows(stats_csv, out, pair.master.last_request_timestamp)
    return header + locust_csv(pair, rows)


@pytest.mark.parametrize("exact", [True, False], ids=["sums-exact", "any-microsecond"])
def test_same_samples_same_stats(rng, clock, exact, monkeypatch):
    """exact: times are multiples of 1/8 ms, which floats add up without an error: everything is equal to the byte."""
    pair, deltas, run = play(rng, clock, exact)

    assert len(deltas) == len(pair.reports)
    for ours, theirs in zip(deltas, pair.reports):
        for a, b in zip(ours["stats"], theirs["stats"], strict=True):
            # Locust leaves the start of an entry that was not used since; only the total's is ever shown
            assert b.pop("start_time") <= a.pop("start_time") == theirs["stats_total"]["start_time"]
            same_entry(a, b, exact)
        same_entry(ours["stats_total"], theirs["stats_total"], exact)
        assert ours["errors"] == theirs["errors"]
        assert list(ours["errors"]) == list(theirs["errors"])

    master = pair.master
    theirs = {(e.method, e.name): json.loads(json.dumps(e.serialize())) for e in master.entries.values()}
    assert len(theirs) == len(run["wire"]["stats"])
    for ours in run["wire"]["stats"]:
        # a master's entry starts when it first hears of it, ours with the set; nothing shows either
        ours["start_time"] = theirs[ours["method"], ours["name"]]["start_time"]
        same_entry(ours, theirs[ours["method"], ours["name"]], exact)
    same_entry(run["wire"]["stats_total"], json.loads(json.dumps(master.total.serialize())), exact)
    assert run["wire"]["errors"] == {k: e.to_dict() for k, e in master.errors.items()}
    assert run["lost"] == 0

    entries = [(e["name"], e["method"]) for e in run["wire"]["stats"]]
    for ours, entry in zip(run["percentiles"], entries, strict=True):
        assert ours == [master.entries[entry].get_response_time_percentile(i / 1000) for i in range(1001)]

    same_csv(run["stats_csv"], locust_csv(pair, locust_stats.StatsCSV.requests_csv), exact)
    assert run["failures_csv"] == locust_csv(pair, locust_stats.StatsCSV.failures_csv)
    header = run["history_csv"].partition("\r\n")[0] + "\r\n"  # compared below
    same_csv(run["history_csv"], history_csv(pair, header, entries, monkeypatch), exact)


def test_history_header(tmp_path):
    writer = locust_stats.StatsCSVFileWriter(SimpleNamespace(stats=None, runner=None),
                                             locust_stats.PERCENTILES_TO_REPORT, str(tmp_path / "x"))
    writer.close_files()
    run = json.loads(run_tool(["start 1000"])[-1])
    assert run["history_csv"].split("\r\n")[0] == ",".join(writer.stats_history_csv_columns)


def test_repr_of_every_code_point():
    points = [p for p in range(0x110000) if not 0xD800 <= p <= 0xDFFF]
    texts = [chr(p) for p in points] + ["'" + chr(p) for p in points[:0x300]] + ["'\"" + chr(p) for p in points[:0x300]]
    answers = run_tool("repr " + hexed(t.encode()) for t in texts)
    assert len(answers) == len(texts)
    for t, answer in zip(texts, answers):
        assert bytes.fromhex(answer).decode() == repr(t), ascii(t)


def test_error_keys(rng):
    pieces = ["object at 0x", "0x", ">", "<a ", "12", "f", "'", '"', "\\", ".", "é", "\x00", "\n", "😀", " "]
    cases = [["".join(rng.choice(pieces) for _ in range(rng.randrange(12))) for _ in range(3)] for _ in range(20000)]
    answers = run_tool("key " + " ".join(hexed(part.encode()) for part in case) for case in cases)
    for case, answer in zip(cases, answers):
        assert answer == locust_stats.StatsError.create_key(*case), ascii(case)

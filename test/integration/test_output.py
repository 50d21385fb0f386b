"""The same samples through Locust's own writers and through ours: files and console to the byte. Then what readers make
of our files, what a full disk and a wrong path do, and the merging of results. New samples each run; CICADA_SEED
repeats one.
"""
import csv
import gzip
import html.parser
import json
import os
import re
import shutil
import subprocess
from types import SimpleNamespace

import pytest

from harness.inside import START_S, CatchResponseError, hexed, stats as locust_stats, text

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
READERS = os.path.join(os.environ.get("CICADA_VENVS", os.path.join(ROOT, ".venv")), "readers", "bin", "python")
TOOL = os.environ.get("CICADA_OUTPUT_SCRIPT", os.path.join(ROOT, "build", "test", "tools", "output_script"))

SECONDS = 45
METHODS = [b"GET", b"POST", b"", b"PU\xffT", "MÉTHODE".encode(), b"LONGMETHOD"]
PLAIN_NAMES = [b"/", b"/a,b", b'/say "hi"', b"=1+1", b" spaced ", b"it's", "/naïve/😀".encode(), "/日本".encode(),
               b"<script>alert(1)</script>", b"/" + b"x" * 120]
NAMES = PLAIN_NAMES + [b"/line\nbreak", b"/return\r", b"/nul\0byte", b"/caf\xc3", b"\xed\xa0\x80", b"/\x1b[31m"]
PLAIN_ERRORS = [b"HTTP 500", b"", b"it's", b"=cmd|' /C calc'!A0", b"a,b", "é 😀".encode(),
                repr(CatchResponseError("not what I wanted: 'x'")).encode()]
ERRORS = PLAIN_ERRORS + [b"back\\slash\ttab\nline\rreturn\0nul", b"bad \xff\xfe bytes"]


def run_tool(lines, *options, cwd=None):
    return subprocess.run([TOOL, *options], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", timeout=120, cwd=cwd)


class Run:
    """A run of both kinds, fed alike, second by second."""

    def __init__(self, rng, clock, names, errors):
        self.rng, self.clock, self.names, self.errors = rng, clock, names, errors
        self.lines = ["start %r" % clock.s]
        self.stats = locust_stats.RequestStats()
        self.environment = SimpleNamespace(stats=self.stats, runner=SimpleNamespace(user_count=0, exceptions={}))
        self.slots = []
        self.second = 0

    def slot(self, method, name):
        key = (text(method), text(name))
        if key not in self.slots:
            self.lines.append("slot %s %s" % (hexed(method), hexed(name)))
            self.slots.append(key)
        return self.slots.index(key)

    def request(self):
        slot = self.slot(self.rng.choice(METHODS), self.rng.choice(self.names))
        us = int(10 ** self.rng.uniform(1, 7.5)) // 125 * 125  # floats add these up without an error
        size = self.rng.choice([0, 100, self.rng.randrange(10**6)])
        self.lines.append("request %d %d %d %r" % (slot, us, size, self.clock.s))
        self.stats.log_request(*self.slots[slot], us / 1000, size)
        if self.rng.random() < 0.1:
            error = self.rng.choice(self.errors)
            self.lines.append("error %d %s %r" % (slot, hexed(error), self.clock.s))
            self.stats.log_error(*self.slots[slot], text(error))

    def exception(self, count, message, traceback):
        self.lines.append("exception %d %s %s %s" % (count, hexed(message), hexed(traceback), hexed(b"local")))
        self.environment.runner.exceptions[message] = {"count": count, "msg": text(message), "traceback": text(traceback),
                                                       "nodes": {"local"}}

    def step(self):
        """The samples of one second, and its tick at the beginning of the next; seconds without any are among them."""
        if self.second not in (20, 21, 33):
            for at in sorted(self.rng.random() * 0.99 for _ in range(self.rng.randrange(1, 60))):
                self.clock.s = START_S + self.second + at
                self.request()
        self.second += 1
        self.clock.s = START_S + self.second
        self.environment.runner.user_count = self.second * 3
        self.lines.append("tick %r %d" % (self.clock.s, self.second * 3))

    def close(self):
        return self.lines + ["close %r 0" % self.clock.s]


@pytest.mark.parametrize("full", [False, True], ids=["history", "full-history"])
def test_csv_files_are_locusts(rng, clock, full, tmp_path, monkeypatch):
    run = Run(rng, clock, NAMES, ERRORS)
    run.lines.append("tick %r 0" % clock.s)

    def sleep(_seconds):
        if run.second == SECONDS:
            raise KeyboardInterrupt
        run.step()
        if run.second == 30:
            run.exception(3, b"KeyError('x', \"y\")", b'Traceback:\n  File "x.py", line 1\nKeyError\n')

    monkeypatch.setattr(locust_stats, "gevent", SimpleNamespace(sleep=sleep))
    (tmp_path / "theirs").mkdir()
    writer = locust_stats.StatsCSVFileWriter(run.environment, locust_stats.PERCENTILES_TO_REPORT,
                                             str(tmp_path / "theirs" / "x"), full)
    writer.stats_writer()
    writer.close_files()
    done = run_tool(run.close(), "csv=%s/ours/x" % tmp_path, "dir=%s/folder" % tmp_path, *(["full"] if full else []), "console=none")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for kind in ("stats", "failures", "exceptions", "stats_history"):
        theirs = (tmp_path / "theirs" / ("x_%s.csv" % kind)).read_bytes()
        assert len(theirs.splitlines()) > 1
        assert (tmp_path / "ours" / ("x_%s.csv" % kind)).read_bytes() == theirs, kind
        assert (tmp_path / "folder" / (kind + ".csv")).read_bytes() == theirs, kind


def test_json_is_locusts(rng, clock, tmp_path):
    run = Run(rng, clock, NAMES, ERRORS)
    for _ in range(SECONDS):
        run.step()
    done = run_tool(run.close(), "json", "json-file=%s/new/stats" % tmp_path, "console=none")
    assert done.returncode == 0
    stats = [entry.serialize() for entry in run.stats.entries.values()]
    for entry in stats:  # Locust's are in the order in which they first occurred
        entry["response_times"] = dict(sorted(entry["response_times"].items()))
        entry["start_time"] = START_S  # and those of ours start with the run
    theirs = json.dumps(stats, indent=4)
    assert done.stdout == theirs + "\n"
    assert (tmp_path / "new" / "stats.json").read_text() == theirs


def test_json_of_nothing(tmp_path):
    done = run_tool(["start 1000", "close 1001 0"], "json", "console=none")
    assert done.stdout == json.dumps([], indent=4) + "\n"


def locust_tables(stats, monkeypatch, *printers):
    lines = []
    monkeypatch.setattr(locust_stats, "console_logger", SimpleNamespace(info=lines.append))
    for printer in printers:
        printer(stats)
    return "\n".join(lines) + "\n"


def test_console_is_locusts(rng, clock, monkeypatch):
    run = Run(rng, clock, PLAIN_NAMES, PLAIN_ERRORS)
    expected = ""
    for _ in range(SECONDS):
        run.step()
        if run.second % 2 == 1:
            expected += locust_tables(run.stats, monkeypatch, locust_stats.print_stats)
    done = run_tool(run.close(), "console=tables")
    expected += locust_tables(run.stats, monkeypatch, lambda stats: locust_stats.print_stats(stats, current=False),
                              locust_stats.print_percentile_stats, locust_stats.print_error_report)
    assert done.returncode == 0
    assert done.stderr[:len(expected)] == expected
    ending = done.stderr[len(expected):].splitlines()
    started, succeeded, failed, interrupted = map(int, re.findall(r"\d+", ending[0]))
    assert started == succeeded + failed + interrupted == run.stats.total.num_requests
    assert ending[1].startswith("Generator: not the bottleneck;")
    assert len(ending) == 2

    only = run_tool(run.close(), "console=summary").stderr
    assert only == done.stderr[-len(only):] and only.count("Aggregated") == 2


@pytest.mark.parametrize("width", [0, 3, 4, 5, 40, 80])
def test_console_on_narrow_terminals(rng, clock, monkeypatch, width):
    """Where stdout is a terminal, its width is Locust's measure."""
    import fcntl
    import pty
    import struct
    import termios
    run = Run(rng, clock, PLAIN_NAMES, PLAIN_ERRORS)
    for _ in range(3):
        run.step()
    monkeypatch.setattr(locust_stats, "STATS_NAME_WIDTH", width)
    expected = locust_tables(run.stats, monkeypatch, lambda stats: locust_stats.print_stats(stats, current=False),
                             locust_stats.print_percentile_stats, locust_stats.print_error_report)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80 + width, 0, 0))
    try:
        done = subprocess.run([TOOL, "console=summary"], input="\n".join(run.close()) + "\n", stdout=slave,
                              stderr=subprocess.PIPE, encoding="utf-8", timeout=120, check=True)
    finally:
        os.close(master)
        os.close(slave)
    assert done.stderr[:len(expected)] == expected


def test_terminal_commands_in_names_are_shown_not_obeyed():
    name = b"/\x1b[2J\xc2\x9b1m\r\n\xff"
    done = run_tool(["start 1000", "slot %s %s" % (hexed(b"GET"), hexed(name)), "request 0 5000 1 1000.5",
                     "error 0 %s 1000.5" % hexed(name), "tick 1001 1", "close 1002 0"], "console=tables")
    assert "/\\x1b[2J\\x9b1m\\r\\n\N{REPLACEMENT CHARACTER}" in done.stderr
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stderr)


# --- a results folder ---------------------------------------------------------------------------


def no_constants(name):
    raise AssertionError("%s is no JSON" % name)


def strict_json(content):
    return json.loads(content, parse_constant=no_constants)


def folder_of(rng, clock, tmp_path, *options, more=()):
    run = Run(rng, clock, NAMES, ERRORS)
    for _ in range(5):
        run.step()
    run.lines += more
    done = run_tool(run.close(), "dir=%s/r" % tmp_path, "console=none", *options)
    assert done.returncode == 0, done.stderr
    return run, tmp_path / "r"


def rows_of(folder):
    return [strict_json(line) for line in (folder / "stats.jsonl").read_text().splitlines()]


def key_of(column):
    if column[0].isdigit():
        column = "p" + column.rstrip("%")
    return re.sub(r"[^a-z0-9]+", "_", column.lower().replace("/", "_per_")).strip("_")


def test_rows_of_entries_are_the_csv(rng, clock, tmp_path):
    run, folder = folder_of(rng, clock, tmp_path, "name=demo", "tag=t1")
    with open(folder / "stats.csv", newline="") as file:
        table = list(csv.reader(file, strict=True))
    rows = rows_of(folder)
    assert len(rows) == len(table) - 2 + 3  # no header, no Aggregated; and the three others
    for row, line in zip(rows, table[1:-1]):
        assert list(row) == ["timestamp", "tag", "test_name", "metric", "measurements"]
        assert row["metric"] == "%s_%s" % (line[0], line[1])
        assert (row["timestamp"], row["tag"], row["test_name"]) == ("2023-11-14T22:13:25Z", "t1", "demo")
        assert row["measurements"] == {key_of(column): value for column, value in zip(table[0], line)}
    assert [row["metric"] for row in rows[-3:]] == ["trial_summary", "server_summary", "generator"]


def test_null_is_not_zero(rng, clock, tmp_path):
    run, folder = folder_of(rng, clock, tmp_path, "profile=substrate")
    trial, server, generator = rows_of(folder)[-3:]
    assert trial["raw_configuration"] == dict.fromkeys(
        ["machine_type", "node_count", "allocatable_cores", "allocatable_ram_gb", "worker_pod_count", "capacity_scope",
         "users_source", "actors_per_user"])
    total = run.stats.total
    ratio = total.num_failures / total.num_requests
    assert trial["frontiers"] == {**dict.fromkeys(["actors_per_node", "actors_per_vcpu", "actors_per_gb_ram", "ap_ratio_p50",
                                                   "ap_ratio_p90", "ap_ratio_p99"]), "aggregate_failure_ratio": pytest.approx(ratio)}
    assert trial["measurements"]["aggregate_failure_ratio"] == repr(ratio)
    assert trial["measurements"]["actors_per_pod_p90"] is None
    assert "running_actors_peak" not in trial["measurements"]
    assert set(server["measurements"].values()) == {None} and "cluster_packing_p50" in server["measurements"]
    assert generator["measurements"]["missed_starts"] == "0"
    assert all(isinstance(value, str) or value is None for value in generator["measurements"].values())
    document = strict_json((folder / "server_summary.json").read_text())
    assert document["metadata"]["profile"] == "substrate" and document["metadata"]["steady_start_ts"] is None
    assert document["cluster_packing"]["timeseries"] == [] and document["snapshots"]["checkpoints_in_window"] is None


def test_facts_and_failure_ratios(tmp_path):
    lines = ["start 1000", "slot %s %s" % (hexed(b"GET"), hexed(b"DurDirWrite")),
             "slot %s %s" % (hexed(b"POST"), hexed(b"DurDirWrite")), "slot %s %s" % (hexed(b"GET"), hexed(b"idle"))]
    lines += ["request %d 1000 1 1000.5" % (i % 2) for i in range(4)] + ["error 0 %s 1000.5" % hexed(b"x"), "facts"]
    lines += ["error 2 %s 1000.5" % hexed(b"never sent")]
    assert run_tool(lines + ["close 1001 3"], "dir=%s" % tmp_path, "console=none").returncode == 3
    trial = rows_of(tmp_path)[-3]
    assert trial["raw_configuration"]["node_count"] == 2 and trial["measurements"]["node_count"] == "2"
    assert trial["raw_configuration"]["allocatable_cores"] == 7.84
    assert trial["measurements"]["dur_dir_write_failure_ratio"] == "0.25"  # both methods are one operation
    assert trial["measurements"]["idle_failure_ratio"] is None
    assert trial["measurements"]["users_source"] == "local"
    assert strict_json((tmp_path / "status.json").read_text()) == {"locust_exit_code": 3, "stats_generated": True}
    idle = next(row for row in rows_of(tmp_path) if row["metric"] == "GET_idle")["measurements"]
    assert idle["request_count"] == "0" and idle["failure_count"] == "1" and idle["p50"] is None
    assert idle["min_response_time"] is None


def test_files_of_a_folder(rng, clock, tmp_path):
    actors = ["actors %d %s %s %d" % (1000 + i, hexed(b"A,b"), hexed(b"running"), i) for i in range(3)]
    run, folder = folder_of(rng, clock, tmp_path, "profile=substrate", more=actors + ["log " + hexed(b"a line")])
    assert sorted(os.listdir(folder)) == ["actors_history.csv", "exceptions.csv", "failures.csv", "histograms.json.gz", "logs.txt",
                                          "report.html", "server_summary.json", "stats.csv", "stats.jsonl",
                                          "stats_history.csv", "status.json"]
    with open(folder / "actors_history.csv", newline="") as file:
        assert list(csv.reader(file, strict=True)) == [["Timestamp", "User Class", "State", "Count"]] + [
            [str(1000 + i), "A,b", "running", str(i)] for i in range(3)]
    assert (folder / "logs.txt").read_text().endswith("cicada: a line\n")
    kept = strict_json(gzip.decompress((folder / "histograms.json.gz").read_bytes()))
    assert (kept["format"], kept["version"]) == ("cicada-histograms", 1)
    for entry in kept["entries"]:
        theirs = run.stats.entries[entry["name"], entry["method"]]
        assert sum(entry["response_times_us"][1::2]) == theirs.num_requests
        assert dict(zip(entry["buckets_ms"][::2], entry["buckets_ms"][1::2])) == theirs.response_times
        assert entry["response_times_us"][0] == theirs.min_response_time * 1000 or entry["response_times_us"][0] >= 2048


@pytest.mark.skipif(not shutil.which("jq"), reason="jq is not installed")
def test_jq_reads_the_rows(rng, clock, tmp_path):
    _, folder = folder_of(rng, clock, tmp_path)
    done = subprocess.run(["jq", "-r", ".metric", str(folder / "stats.jsonl")], stdout=subprocess.PIPE, check=True)
    assert done.stdout.decode().splitlines()[-1] == "generator"


@pytest.mark.skipif(not os.path.exists(READERS), reason="pandas is not installed: test/setup readers")
def test_pandas_reads_the_files(rng, clock, tmp_path):
    _, folder = folder_of(rng, clock, tmp_path, more=["exception 3 %s %s %s" % (hexed(b"a,b"), hexed(b"c\nd"), hexed(b"local"))])
    done = subprocess.run([READERS, os.path.join(os.path.dirname(__file__), "readers.py"), str(folder)],
                          stdout=subprocess.PIPE, check=True, timeout=120)
    found = json.loads(done.stdout)
    for name in ("stats", "failures", "exceptions", "stats_history"):
        with open(folder / (name + ".csv"), newline="", encoding="utf-8") as file:
            assert found[name] == list(csv.reader(file, strict=True)), name
    assert found["counts"] == [int(row[2]) for row in found["stats"][1:]]
    for column, kind in found["kinds"].items():  # what is a number is one: nothing of it was quoted or spelled
        assert kind in "if" or column in ("Type", "Name"), (column, kind)
    rows = rows_of(folder)
    assert found["metrics"] == [row["metric"] for row in rows]
    assert found["measurements"] == rows[0]["measurements"]
    assert found["time_kind"] == "M"


def test_destination(tmp_path):
    lines = ["start 1700000000", "close 1700000001 0"]
    done = run_tool(lines, "dest=%s" % tmp_path, "name=demo", "tag=v 1", "now=1700000000.9", "console=none")
    assert done.returncode == 0
    folder = tmp_path / "runs" / "demo" / "run_date=2023-11-14" / "run_ts=1700000000" / "run_tag=v 1"
    assert strict_json((folder / "status.json").read_text()) == {"locust_exit_code": 0, "stats_generated": False}


@pytest.mark.parametrize("options, fault", [
    (["name=../x", "tag=v"], "--name: must be the name of a folder, at most 200 bytes, not '../x'"),
    (["name=x", "tag=.."], "--tag: must be the name of a folder, at most 200 bytes, not '..'"),
    (["name=x"], "--dest needs --tag too: it names a folder"),
    (["dir=a", "name=x", "tag=v"], "--results-dir and --dest name two folders: give one")])
def test_wrong_destination(tmp_path, options, fault):
    done = run_tool(["start 1000", "close 1001 0"], "dest=%s" % tmp_path, "console=none", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith("cicada: %s\n" % fault)
    assert os.listdir(tmp_path) == []


def test_html_name(tmp_path):
    done = run_tool(["start 1000", "close 1001 0"], "html=%s/{u}-{r}.html" % tmp_path, "users=12", "console=none")
    assert done.returncode == 0
    assert os.listdir(tmp_path) == ["12-{r}.html"]


class Page(html.parser.HTMLParser):
    """Every element closed in its turn, and what a reader sees."""

    def __init__(self, content):
        super().__init__()
        self.open, self.tags, self.text, self.attributes = [], set(), [], []
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes += attributes
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "title"):
            self.text.append(data)


def test_report_needs_nothing_else_and_obeys_no_name(rng, clock, tmp_path):
    evil = b"</td></table><script>alert(1)</script><img src=x onerror='alert(2)'>\"&amp;"
    more = ["slot %s %s" % (hexed(b"<i>"), hexed(evil)), "times 0 700 300"]
    more += ["threshold %s none 0" % hexed(evil), "exception 1 %s %s %s" % ((hexed(evil),) * 3)]
    more += ["saturated " + hexed(evil), "point 1700000004 5 3.5 1 2 3", "facts", "interrupted 2 1500000"]
    run, folder = folder_of(rng, clock, tmp_path, "name=" + evil.decode().replace("/", "|"), "tag=<b>", more=more)
    content = (folder / "report.html").read_text()
    page = Page(content)
    assert not page.tags & {"script", "img", "link", "iframe", "object", "a"}
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "href")]
    assert "url(" not in content and "@import" not in content and "default-src 'none'" in content
    assert page.text.count(evil.decode()) >= 3
    for name in run.names:  # as shown: without what HTML forbids
        shown = re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f]", "\N{REPLACEMENT CHARACTER}", text(name))
        if any(key[1] == text(name) for key in run.stats.entries):
            assert shown in page.text
    words = " ".join(page.text)
    for said in ("1.5 s", "saturated: it was the bottleneck", "n2-standard-4", "cluster_packing_p50", "first byte", "not met"):
        assert said in words


# --- faults -------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["dir=%s/file/r", "csv=%s/file/x", "html=%s/file/r.html", "json-file=%s/file/x", "html=%s"])
def test_a_wrong_path_is_told_before_the_load(tmp_path, option):
    (tmp_path / "file").write_text("here")
    done = run_tool(["start 1000", "close 1001 0"], option % tmp_path, "console=none")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert re.search(r"/ERROR/cicada: /\S*: (Not a directory|Is a directory)$", done.stderr.strip())
    assert os.listdir(tmp_path) == ["file"]


def test_a_disk_that_fills_up_is_told_at_the_end(rng, clock, tmp_path):
    run = Run(rng, clock, NAMES, ERRORS)
    run.step()
    done = run_tool(run.close(), "html=/dev/full", "dir=%s/r" % tmp_path, "console=none")
    assert done.returncode == 1
    assert done.stderr.strip().endswith("/ERROR/cicada: /dev/full: No space left on device")
    assert strict_json((tmp_path / "r" / "status.json").read_text()) == {"locust_exit_code": 1, "stats_generated": True}
    assert (tmp_path / "r" / "report.html").stat().st_size > 0


def test_a_full_disk_is_told_before_the_load(full_disk):
    done = run_tool(["start 1000", "close 1001 0"], "csv=%s/x" % full_disk, "console=none")
    assert done.returncode == 2
    assert done.stderr.strip().endswith("x_stats.csv: No space left on device")


def test_a_disk_that_is_too_small_leaves_what_was_whole(rng, clock, small_disk):
    run = Run(rng, clock, NAMES, ERRORS)
    for _ in range(SECONDS):
        run.step()
    lines = run.close()
    # the history of every name each second is what fills it
    done = run_tool(lines, "dir=%s/r" % small_disk, "full", "console=none")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 2  # a warning when it began, an error at the end
    assert "continuing" in done.stderr.splitlines()[0] and "No space left on device" in done.stderr.splitlines()[1]
    assert not [name for name in os.listdir(small_disk / "r") if name.endswith(".part")]


# --- merging ------------------------------------------------------------------------------------


def test_merged_parts_are_the_whole(rng, clock, tmp_path):
    run = Run(rng, clock, NAMES, ERRORS)
    for _ in range(10):
        run.step()
    whole = run.close()
    parts = [[], [], []]
    for line in whole:
        if line.split()[0] in ("request", "error"):
            parts[int(rng.random() * 3)].append(line)  # an error may be counted elsewhere than its request
        else:
            for part in parts:
                part.append(line)
    assert run_tool(whole, "dir=%s/whole" % tmp_path, "console=none").returncode == 0
    for i, part in enumerate(parts):
        assert run_tool(part, "dir=%s/part%d" % (tmp_path, i), "console=none").returncode == 0
    done = run_tool([], "merge=%s/merged" % tmp_path, *["%s/part%d" % (tmp_path, i) for i in range(3)])
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("stats.csv", "failures.csv", "exceptions.csv"):
        ours = sorted((tmp_path / "merged" / name).read_bytes().splitlines())
        assert ours == sorted((tmp_path / "whole" / name).read_bytes().splitlines()), name
    merged, kept = [strict_json(gzip.decompress((tmp_path / d / "histograms.json.gz").read_bytes())) for d in ("merged", "whole")]
    by_name = [{(e["name"], e["method"]): e for e in k["entries"]} for k in (merged, kept)]
    assert by_name[0] == by_name[1]
    assert [point[0] for point in merged["history"]] == [point[0] for point in kept["history"]]
    assert merged["history"][-1][3:5] == [0, 0]  # points of ticks hold no counts here
    assert strict_json((tmp_path / "merged" / "status.json").read_text()) == {"locust_exit_code": 0, "stats_generated": True}


def test_the_command_merges(rng, clock, tmp_path):
    cicada = os.environ.get("CICADA", os.path.join(ROOT, "build", "cicada"))
    if cicada == "python":
        pytest.skip("Locust's worker has no such command")
    _, folder = folder_of(rng, clock, tmp_path)
    (folder / "traces.txt").write_text("a\tb\n")

    def run(*arguments):
        return subprocess.run([cicada, "merge", *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8", timeout=60)
    shutil.copytree(str(tmp_path / "r"), str(tmp_path / "s"))
    done = run("r", "s", "--out", "twice")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"twice: 2 results with \d+ requests: \d+ succeeded, \d+ failed, \d+ interrupted\n$", done.stdout)
    once, twice = [strict_json(gzip.decompress((tmp_path / d / "histograms.json.gz").read_bytes())) for d in ("r", "twice")]
    assert twice["requests"]["started"] == 2 * once["requests"]["started"]
    assert (tmp_path / "twice" / "traces.txt").read_text() == "a\tb\n" * 2
    (folder / "traces.txt").unlink()
    assert run("r", "s/histograms.json.gz", "--out=none_traced").returncode == 0
    assert not (tmp_path / "none_traced" / "traces.txt").exists()
    assert run("r", "--out=again").returncode == 0 and (tmp_path / "again" / "report.html").exists()
    assert run("--help").stdout.startswith("usage: cicada merge DIR... --out DIR\n")
    for arguments, fault in [(["r"], "cicada merge: --out names the folder for the whole"),
                             (["r", "--out"], "cicada merge: --out names the folder for the whole"),
                             (["r", "--outt", "x"], "cicada merge: unknown flag '--outt'"),
                             (["--out", "x"], "merge: give 1 to 10000 folders of results"),
                             (["r", "--out", "r"], "merge: r is both read and written"),
                             (["r", "./s/../r", "--out", "x"], "merge: ./s/../r is given twice"),
                             (["none", "--out", "x"],
                              "none: is no folder of results: it has no histograms.json.gz")]:
        done = run(*arguments)
        assert (done.returncode, done.stderr) == (2, "cicada: %s\n" % fault)


def test_merge_refuses_what_it_cannot_read(tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "histograms.json.gz").write_bytes(b"no gzip")
    done = run_tool([], "merge=%s/out" % tmp_path, "%s/bad" % tmp_path)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("bad/histograms.json.gz: not a gzip file, or a damaged one")
    assert run_tool([], "merge=%s/out" % tmp_path).returncode == 2
    assert run_tool([], "merge=%s/bad" % tmp_path, "%s/bad" % tmp_path).returncode == 2
    assert os.listdir(tmp_path) == ["bad"]


# --- the live view ------------------------------------------------------------------------------


def test_live_view_redraws_in_place_and_leaves(rng, clock, tmp_path):
    """On a terminal: what is drawn stays below the log, and is gone at the end."""
    import pty
    import threading
    run = Run(rng, clock, PLAIN_NAMES, PLAIN_ERRORS)
    run.lines.append("phase running 60")
    for i in range(5):
        run.step()
        if i == 2:
            run.lines.append("log " + hexed(b"something happened"))
    master, slave = pty.openpty()
    seen = bytearray()

    def read():
        try:
            while chunk := os.read(master, 65536):
                seen.extend(chunk)
        except OSError:
            pass  # the other end is closed

    reader = threading.Thread(target=read)
    reader.start()
    done = subprocess.run([TOOL], input="\n".join(run.close()).encode() + b"\n", stdout=subprocess.PIPE, stderr=slave,
                          env={**os.environ, "TERM": "xterm"}, timeout=60)
    os.close(slave)
    reader.join()
    os.close(master)
    assert done.returncode == 0
    screen = seen.decode()
    assert screen.count("Running") == 6  # five ticks, and once more below the log's line
    assert "something happened\x1b[K\r\n" in screen
    assert screen.count("\x1b[?7l") >= screen.count("\x1b[?2026h") == screen.count("\x1b[?2026l")
    last = screen.rindex("\x1b[?2026l")
    assert screen[:last].endswith("A\x1b[J\x1b[?7h") and "Aggregated" in screen[last:]
    assert screen.rindex("\x1b[?7h") > screen.rindex("\x1b[?7l")

"""The server summary against a real Prometheus: every number is derived here from what the exporter's series are known
to hold (test/real/prom/exporter.py; t counts seconds from START). Mostly backfilled, so that the times are fixed."""
import json
import os
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROM = os.path.join(ROOT, "test", "real", "prom")
TOOL = os.environ.get("CICADA_TELEMETRY_HARVEST", os.path.join(ROOT, "build", "test", "tools", "telemetry_harvest"))

START = 1_700_000_000
STATS = ("min", "p50", "p90", "p95", "p99", "max", "avg")
NOTHING = dict.fromkeys(STATS)
SIZE_BOUNDS = [1, 2, 4, 8, 16, 32, 64]  # MiB
TIME_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]


def harvest(url, run, steady=None, profile="substrate", args=()):
    command = [TOOL, "--profile", profile, "--run", "%r:%r" % run]
    command += ["--url", url] if url else []
    for t in steady or ():
        command += ["--sample", "%r:10" % t]
    done = subprocess.run(command + [str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Prometheus:
    def __init__(self, folder, mode, *options, **env):
        self.folder = str(folder)
        done = subprocess.run([os.path.join(PROM, "prom-up.sh"), self.folder, mode] + [str(o) for o in options],
                              env=dict(os.environ, **env), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=120)
        assert done.returncode == 0, done.stdout
        with open(os.path.join(self.folder, "env")) as f:
            self.env = dict(line.strip().replace("'", "").split("=", 1) for line in f)
        self.url = self.env["PROM_URL"]

    def stop(self):
        subprocess.run([os.path.join(PROM, "prom-down.sh"), self.folder], timeout=60)

    def harvest(self, start=100, end=500, profile="substrate", **more):
        """Over the whole 600 s, steady from start to end."""
        return harvest(self.url, (START, START + 600), (START + start, START + end), profile, **more)


@pytest.fixture
def backfilled(tmp_path):
    servers = []

    def start(*options):
        servers.append(Prometheus(tmp_path / ("prom%d" % len(servers)), "backfill", *options))
        return servers[-1]
    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    server = Prometheus(tmp_path_factory.mktemp("prom"), "backfill")
    yield server
    server.stop()


def ranks(values):
    """Percentiles as output files define them."""
    v = sorted(values)
    n = len(v)
    found = [v[0]] + [v[min(int(n * q), n - 1)] for q in (0.5, 0.9, 0.95, 0.99)] + [v[-1], sum(v) / n]
    return dict(zip(STATS, found))


def quantile(q, bounds, counts):
    """Prometheus' estimate: the rank's place within its bucket, in a straight line. counts[i] lie in bucket i."""
    rank, below, lower = q * sum(counts), 0, 0
    for bound, count in zip(bounds, counts):
        if count and below + count >= rank:
            return lower + (bound - lower) * (rank - below) / count
        below, lower = below + count, bound
    raise ValueError("beyond the last bound")


def close(got, want):
    """Equal to 4 decimals, with room for the last digits that differ between versions of Prometheus."""
    return pytest.approx(want, abs=2e-4) == got


def check(document, path, want):
    got = document
    for part in path.split("."):
        got = got[part]
    if isinstance(want, dict):
        assert set(got) == set(want), path
        for name in want:
            check(document, path + "." + name, want[name])
    elif want is None:
        assert got is None, path
    else:
        assert got is not None and close(got, want), "%s: %r, not %r" % (path, got, want)


def constant(value):
    return dict.fromkeys(STATS, value)


# --- substrate -----------------------------------------------------------------------------------

# Of 400 snapshots, sizes 3, 6, 12, 24 MiB in turn: 100 each in the buckets up to 4, 8, 16, 32 MiB.
SIZES = [0, 0, 100, 100, 100, 100, 0]
# Of 800 restores, .02 .03 .05 .2 s in turn: 200 in the bucket to .025, 400 to .05, 200 to .25.
RESTORES = [0, 0, 200, 400, 0, 200, 0, 0, 0, 0, 0]
# Of 400 checkpoints, .1 .3 s in turn: 200 in the bucket to .1, 200 to .5.
CHECKPOINTS = [0, 0, 0, 0, 200, 0, 200, 0, 0, 0, 0]


def snapshots(cumulative=500):
    want = {"size_%s_mb" % p: quantile(q, SIZE_BOUNDS, SIZES) for p, q in QUANTILES}
    want.update({"restore_%s_s" % p: quantile(q, TIME_BOUNDS, RESTORES) for p, q in QUANTILES})
    want.update({"checkpoint_%s_s" % p: quantile(q, TIME_BOUNDS, CHECKPOINTS) for p, q in QUANTILES})
    want.update({
        "size_avg_mb": (3 + 6 + 12 + 24) / 4,
        "checkpoints_in_window": 400,
        "checkpoints_cumulative": cumulative,
        "restore_mean_s": (0.02 + 0.03 + 0.05 + 0.2) / 4,
        "checkpoint_mean_s": (0.1 + 0.3) / 2,
        # pages.img 11.25 MiB and checkpoint.img .5 MiB each second, which takes .6 s on average
        "checkpoint_mb_s": 11.75 / 0.6,
        "throughput_mb_s": 11.75,
    })
    return want


QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))


def test_hand_made_quantiles():
    assert [quantile(q, SIZE_BOUNDS, SIZES) for _, q in QUANTILES] == pytest.approx([8, 25.6, 28.8, 31.36])
    assert quantile(0.5, TIME_BOUNDS, RESTORES) == pytest.approx(0.0375)
    assert quantile(0.9, TIME_BOUNDS, CHECKPOINTS) == pytest.approx(0.45)


def test_substrate_every_number(plain):
    found = plain.harvest(args=("--lag", 0, "--pods", 5))
    document = found["document"]
    assert found["failures"] == [] and found["remarks"] == []
    assert document["metadata"] == {
        "test_name": "unit-run", "tag": "unit", "data_timestamp": "2023-11-14T22:13:20Z", "prom_url": plain.url,
        "profile": "substrate", "start_ts": START, "end_ts": START + 600, "steady_start_ts": START + 100,
        "steady_end_ts": START + 500, "telemetry_lag_s": 0, "worker_pod_count": 5, "queries_ok": 29,
        "queries_failed": 0}
    assert set(document) == {"metadata", "cluster_packing", "node_psi", "pod_psi", "snapshots"}

    # min(8, t // 3) of 10 workers, each 10 s of the run
    assert document["cluster_packing"]["timeseries"] == [
        {"timestamp": START + t, "busy_workers": min(8, t // 3), "total_workers": 10,
         "packing_ratio": min(8, t // 3) / 10} for t in range(0, 601, 10)]
    check(document, "cluster_packing.summary", constant(0.8))

    # node-3 hosts no pod; 41 samples of each of the others
    for name, slopes in (("cpu", (25, 40)), ("mem", (5, 0)), ("io", (10, 2))):
        check(document, "node_psi.%s_stall_pct" % name, ranks(slopes * 41))
    for name, slope in (("cpu", 10), ("mem", 0), ("io", 1)):
        check(document, "pod_psi.%s_stall_pct" % name, constant(slope))
    check(document, "node_psi.cfs_throttled_rate", constant(0.3))
    assert document["node_psi"]["nodes"] == 2 and document["pod_psi"]["pods"] == 2
    check(document, "snapshots", snapshots())


def test_substrate_flat_row_is_the_document_in_texts(plain):
    found = plain.harvest(args=("--lag", 0))
    document, flat = found["document"], found["flat"]
    want = {"cluster_packing_" + p: document["cluster_packing"]["summary"][p] for p, _ in QUANTILES}
    for block, prefix in (("node_psi", "psi"), ("pod_psi", "pod_psi")):
        for kind in ("cpu", "mem", "io"):
            for p, _ in QUANTILES:
                want["%s_%s_stall_%s" % (prefix, kind, p)] = document[block][kind + "_stall_pct"][p]
    want["cfs_throttled_rate_avg"] = document["node_psi"]["cfs_throttled_rate"]["avg"]
    shot = document["snapshots"]
    want.update({"snapshot_size_%s_mb" % s: shot["size_%s_mb" % s] for s in ("p50", "p90", "p95", "p99", "avg")})
    for kind in ("restore", "checkpoint"):
        want.update({"%s_%s_s" % (kind, s): shot["%s_%s_s" % (kind, s)] for s in ("p50", "p90", "p95", "p99", "mean")})
    want.update(checkpoints_in_window=shot["checkpoints_in_window"], checkpoint_mb_s=shot["checkpoint_mb_s"],
                checkpoint_throughput_mb_s=shot["throughput_mb_s"])
    assert flat == {name: str(value) for name, value in want.items()}
    assert flat["checkpoints_in_window"] == "400" and flat["cluster_packing_p50"] == "0.8"


def test_without_a_url_all_is_null():
    found = harvest(None, (START, START + 600))
    assert found["failures"] == [] and set(found["flat"].values()) == {None}
    assert found["document"]["metadata"]["prom_url"] is None
    assert found["document"]["cluster_packing"] == {"summary": NOTHING, "timeseries": []}
    assert set(found["document"]["snapshots"].values()) == {None}


def test_without_samples_the_window_is_the_run(plain):
    metadata = harvest(plain.url, (START, START + 600))["document"]["metadata"]
    assert (metadata["steady_start_ts"], metadata["steady_end_ts"]) == (START, START + 600)


def test_snapshots_are_read_late_by_half_the_lag(backfilled):
    server = backfilled("--born-at", 110)
    # from 130 to 530 instead of 100 to 500: 20 and 420 counted since the birth
    shot = server.harvest(args=("--lag", 60))["document"]["snapshots"]
    assert (shot["checkpoints_in_window"], shot["checkpoints_cumulative"]) == (400, 420)
    assert close(shot["throughput_mb_s"], 11.75)
    # the profile's own lag is 70 s
    found = server.harvest()["document"]
    assert found["metadata"]["telemetry_lag_s"] == 70 and found["snapshots"]["checkpoints_cumulative"] == 425
    assert len(found["cluster_packing"]["timeseries"]) == 61


def test_born_inside_counts_from_zero(backfilled):
    shot = backfilled("--born-at", 110).harvest(args=("--lag", 0))["document"]["snapshots"]
    # 390 of each; the cycle of sizes is 2 short of a whole number: 98 98 97 97
    assert shot["checkpoints_in_window"] == shot["checkpoints_cumulative"] == 390
    assert close(shot["size_avg_mb"], (98 * 3 + 98 * 6 + 97 * 12 + 97 * 24) / 390)
    assert close(shot["size_p50_mb"], quantile(0.5, SIZE_BOUNDS, [0, 0, 98, 98, 97, 97, 0]))


@pytest.mark.parametrize("reset,start,end", [
    (300, 250, 310),  # 250 before, 10 after: the edges alone tell
    (200, 100, 500),  # 100 before, 300 after: they do not
    (101, 100, 500),  # at the first sample behind the edge
    (500, 100, 500),  # at the last
])
def test_a_reset_inside_the_window_is_null(backfilled, reset, start, end):
    document = backfilled("--reset-at", reset).harvest(start, end, args=("--lag", 0))["document"]
    shot = document["snapshots"]
    assert shot.pop("checkpoints_cumulative") == end - reset
    assert set(shot.values()) == {None}
    assert document["cluster_packing"]["summary"]["p50"] is not None
    assert document["node_psi"]["cpu_stall_pct"]["p50"] is not None


def test_a_reset_outside_the_window_is_nothing(backfilled):
    shot = backfilled("--reset-at", 100).harvest(args=("--lag", 0))["document"]["snapshots"]
    assert shot["checkpoints_in_window"] == 400 and close(shot["size_p90_mb"], 25.6)


def test_a_pod_that_ends_counts_to_its_last_sample(backfilled):
    shot = backfilled("--pod-gone-at", 150).harvest(100, 600, args=("--lag", 0))["document"]["snapshots"]
    # 500 on node-1; on node-2, 3 MiB each, 100 by the start and 149 by the end
    assert shot["checkpoints_in_window"] == 549 and shot["checkpoints_cumulative"] == 600
    assert close(shot["size_avg_mb"], (500 * 11.25 + 49 * 3) / 549)
    assert close(shot["size_p50_mb"], quantile(0.5, SIZE_BOUNDS, [0, 0, 174, 125, 125, 125, 0]))


def test_a_handover_of_the_pool_is_not_added_up(backfilled):
    document = backfilled("--handover-at", 240).harvest(args=("--lag", 0))["document"]
    want = [(min(5, t // 20) + (2 if t >= 300 else 0), 10 if t < 240 else 16) for t in range(0, 601, 10)]
    assert [(p["busy_workers"], p["total_workers"]) for p in document["cluster_packing"]["timeseries"]] == want
    check(document, "cluster_packing.summary", ranks([round(b / n, 4) for b, n in want[10:51]]))


def test_absent_is_null_and_zero_is_zero(plain, tmp_path):
    own = {"profile": "own", "measurements": [
        {"name": "never.count", "kind": "counter_growth", "integer": True,
         "counter": 'atelet_snapshot_size_bytes_count{file_name="never.img"}'},
        {"name": "never.{p50,mean}", "kind": "histogram_quantiles",
         "histogram": 'atelet_snapshot_size_bytes{file_name="never.img"}'},
        {"name": "never.per_file", "kind": "growth_ratio",
         "counter": "atelet_snapshot_size_bytes_count",
         "over": 'atelet_snapshot_size_bytes_count{file_name="never.img"}'},
        {"name": "none.count", "kind": "counter_growth", "counter": "no_such_total"},
        {"name": "none.{p50,mean}", "kind": "histogram_quantiles", "histogram": "no_such"},
        {"name": "none.load", "kind": "range_distribution", "query": "no_such", "count_as": "none.series"},
        {"name": "none.value", "kind": "value", "query": "no_such"},
        {"name": "none.pool", "kind": "state_packing", "query": "no_such", "process": ["a"], "state": "s", "busy": ["b"]},
    ]}
    path = tmp_path / "own.json"
    path.write_text(json.dumps(own))
    found = plain.harvest(profile=path)
    document = found["document"]
    assert found["failures"] == [] and document["metadata"]["queries_failed"] == 0
    assert document["never"] == {"count": 0, "p50": None, "mean": None, "per_file": None}
    assert document["none"] == {"count": None, "p50": None, "mean": None, "load": NOTHING, "series": None, "value": None,
                                "pool": {"summary": NOTHING, "timeseries": []}}
    assert found["flat"]["never_count"] == "0" and found["flat"]["none_count"] is None


# --- other profiles ------------------------------------------------------------------------------

def test_kubernetes_every_number(plain):
    found = plain.harvest(profile="kubernetes", args=("--var", "namespace=benchmark-workloads",
                                                      "--var", "pod=benchmark-ateom-.*"))
    document = found["document"]
    assert found["failures"] == [] and document["metadata"]["telemetry_lag_s"] == 0
    steps = range(100, 501, 10)
    second = [64 + t / 8 for t in steps]  # MiB of the second pod
    check(document, "pod_cpu", {"usage_cores": ranks([0.75, 0.25] * 41), "pods": 2, "total_cores": constant(1),
                                "seconds": 400})
    check(document, "pod_memory", {"working_set_mb": ranks([256] * 41 + second),
                                   "total_mb": ranks([256 + m for m in second]), "oom_kills": 4})
    # the second pod has no periods at all: 0/0 is no sample
    check(document, "cfs", {"throttled_periods_pct": constant(20), "throttled_rate": ranks([0.3, 0] * 41),
                            "throttled_periods_share": 0.2})
    check(document, "pod_psi", {"cpu_stall_pct": constant(10), "mem_stall_pct": constant(0),
                                "io_stall_pct": constant(1), "pods": 2})
    check(document, "pod_network", {"receive_mb_s": constant(2), "transmit_mb_s": constant(0.5)})


def test_kubernetes_one_pod_by_variable(plain):
    document = plain.harvest(profile="kubernetes", args=("--var", "pod=benchmark-ateom-1"))["document"]
    check(document, "pod_cpu", {"usage_cores": constant(0.25), "pods": 1, "total_cores": constant(0.25),
                                "seconds": 100})
    check(document, "cfs", {"throttled_periods_pct": NOTHING, "throttled_rate": constant(0),
                            "throttled_periods_share": None})


def test_own_profile(plain, tmp_path):
    rpc = 'rpc_server_call_duration_seconds{rpc_method="atelet.AteomHerder/${method}"}'
    own = {
        "profile": "mine", "step_s": 50, "variables": {"method": "Checkpoint"}, "measurements": [
            {"name": "calls.{p25,p99_9,mean}_ms", "kind": "histogram_quantiles", "histogram": rpc, "multiply_by": 1000,
             "flat": "call_{mean}_ms"},
            {"name": "calls.per_s", "kind": "counter_growth", "per_second": True,
             "counter": rpc.replace("_seconds{", "_seconds_count{")},
            {"name": "window_s", "kind": "value", "query": "${end} - ${start}"},
            {"name": "run_s", "kind": "value", "query": "${run_end} - ${run_start}"},
            {"name": "samples", "kind": "value", "integer": True,  # one a second; 3.x leaves the left edge out
             "query": 'sum(count_over_time(container_pressure_cpu_waiting_seconds_total{instance="node-3"}[${window}]))'
                      ' + 0 * sum(count_over_time(ate_workerpool_workers[${range}]))'},
            {"name": "load", "kind": "range_distribution",
             "query": 'container_pressure_cpu_waiting_seconds_total{instance="node-3"}', "flat": "load_{min,max}"},
            {"name": "many", "kind": "value", "query": "container_pressure_cpu_waiting_seconds_total"},
            {"name": "wrong", "kind": "value", "query": "sum("},
        ]}
    path = tmp_path / "own.json"
    path.write_text(json.dumps(own))
    found = plain.harvest(profile=path, args=("--var", "method=Restore"))
    document = found["document"]
    want = {p: 1000 * quantile(q, TIME_BOUNDS, RESTORES) for p, q in (("p25", 0.25), ("p99_9", 0.999))}
    check(document, "calls", {"p25_ms": want["p25"], "p99_9_ms": want["p99_9"], "mean_ms": 75, "per_s": 2})
    assert (document["window_s"], document["run_s"]) == (400, 600)
    assert document["samples"] in (400, 401)
    check(document, "load", ranks([0.9 * t for t in range(100, 501, 50)]))
    assert document["many"] is None and document["wrong"] is None
    assert found["flat"] == {"call_mean_ms": "75.0", "calls_per_s": "2.0", "window_s": "400.0", "run_s": "600.0",
                             "samples": str(document["samples"]), "load_min": "90.0", "load_max": "450.0",
                             "many": None, "wrong": None}
    assert len(found["failures"]) == 2
    assert any("wrong: HTTP 400: 'bad_data': " in line and "parse error" in line for line in found["failures"])
    assert "server telemetry: many: 7 series where one was expected, ignoring" in found["failures"]
    assert document["metadata"]["queries_failed"] == 1


def test_the_documented_example_loads(plain, tmp_path):
    with open(os.path.join(ROOT, "docs", "telemetry.md")) as f:
        example = f.read().split("```json\n")[1].split("```")[0]
    path = tmp_path / "shop.json"
    path.write_text(example)
    found = plain.harvest(profile=path)
    assert found["failures"] == [] and set(found["flat"].values()) == {None}
    assert set(found["document"]["orders"]) == {"p50_ms", "p99_ms", "mean_ms", "per_s", "failed_share"}


def test_a_long_run_takes_a_larger_step(plain):
    document = harvest(plain.url, (START - 86400, START + 86400), args=("--lag", 0))["document"]
    assert document["metadata"]["queries_failed"] == 0
    times = [p["timestamp"] for p in document["cluster_packing"]["timeseries"]]
    assert times and times[1] - times[0] == 16  # 172800 s in at most 11000 points


# --- live ----------------------------------------------------------------------------------------

def ask(server, query, at=None):
    url = server.url + "/api/v1/query?query=" + urllib.parse.quote(query) + ("&time=%r" % at if at else "")
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)["data"]["result"]


def wait_for(condition, what, limit_s=60):
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def post(server, path):
    urllib.request.urlopen(server.env["PROM_EXPORTER_URL"] + path, data=b"", timeout=10).close()


def alive(server, at=None):
    return bool(ask(server, "atelet_snapshot_size_bytes_count", at))


def test_live_gaps_and_the_node_profile(tmp_path):
    server = Prometheus(tmp_path / "prom", "live", NODE_EXPORTER="1")
    try:
        gap(server)
        node(server)
    finally:
        server.stop()


def gap(server):
    """Scrapes fail at both edges of the window: growth runs from nearest sample to nearest sample."""
    edges = []
    wait_for(lambda: alive(server), "the first scrape")
    for _ in range(2):
        time.sleep(3)  # something to count
        post(server, "/fail")
        wait_for(lambda: not alive(server), "the end of the series")
        edges.append(time.time())
        assert not alive(server, edges[-1])
        post(server, "/ok")
        wait_for(lambda: alive(server), "the series' return")
    shot = harvest(server.url, (edges[0] - 5, edges[1]), edges, args=("--lag", 0))["document"]["snapshots"]
    # one checkpoint a second; each edge is 2 s old at most, and a scrape or two more on a busy machine
    assert abs(shot["checkpoints_in_window"] - (edges[1] - edges[0])) <= 4
    assert shot["checkpoints_cumulative"] >= shot["checkpoints_in_window"]


def node(server):
    """node_exporter's figures of this machine: what Prometheus says of them, and what they can be."""
    names = ("node_cpu_seconds_total", "node_memory_MemTotal_bytes", "node_network_receive_bytes_total")
    wait_for(lambda: all(ask(server, "count(count_over_time(%s[1m]) > 3)" % n) for n in names), "the node exporter")
    end = time.time()
    args = ("--var", "rate=15s", "--var", "ignored_devices=none")
    found = harvest(server.url, (end - 5, end), profile="node", args=args)
    document = found["document"]
    assert found["failures"] == [] and document["node_cpu"]["nodes"] == 1
    assert 0 <= document["node_cpu"]["busy_pct"]["min"] <= document["node_cpu"]["busy_pct"]["max"] <= 101
    with open("/proc/meminfo") as f:
        total_mb = int(f.readline().split()[1]) / 1024
    memory = document["node_memory"]
    assert 0 < memory["used_mb"]["max"] < total_mb
    assert close(memory["used_pct"]["max"], round(100 * memory["used_mb"]["max"] / total_mb, 4))
    assert document["node_network"]["receive_mb_s"]["max"] >= 0
    assert document["node_network"]["receive_dropped"] is not None
    busy = ask(server, '100 * (1 - avg(rate(node_cpu_seconds_total{mode="idle"}[15s])))', document["metadata"]["start_ts"])
    assert document["node_cpu"]["busy_pct"]["min"] <= float(busy[0]["value"][1]) + 0.1
    for kind in ("cpu", "mem", "io"):
        stall = document["node_psi"][kind + "_stall_pct"]
        has = ask(server, "node_pressure_%s_waiting_seconds_total" % {"mem": "memory"}.get(kind, kind))
        assert (stall["p50"] is not None) == bool(has)

"""The load generators: how each is started for a load, and what it reports of response times."""
import json
import math
import os
import re
import shutil
import subprocess
import typing

from measure import ADDRESSES, BENCH, BUILD, MARGIN_S, ROOT

CACHE = os.environ.get("BENCH_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "cicada-bench")
VENVS = os.environ.get("CICADA_VENVS") or os.path.join(ROOT, ".venv")
LOCUST = os.path.join(VENVS, "locust-2.47.0", "bin", "locust")
PORTS_OF_ONE_ADDRESS = 28000


class Tool(typing.NamedTuple):
    program: str  # a path, or a name to find
    command: typing.Callable  # load -> (argv, environment)
    reported: typing.Callable  # (output, load) -> figures
    slow: bool = False  # to start and to stop: it needs longer runs

    def there(self):
        return shutil.which(self.program) is not None


def built(name):
    return os.path.join(BUILD, name)


def cached(name):
    return os.path.join(CACHE, "bin", name)


def whole(seconds):
    return math.ceil(seconds)


# --- cicada's engine and the reference programs ----------------------------------------------------------------------

ENGINE = built("test/tools/engine_run")


CHECKED = {"check": {"status": 200, "headers": {"Content-Type": {"contains": "json"}},
                     "json": {"/ok": True, "/items/0/id": {">=": 1}}},
           "extract": {"token": "/token"}}


def scenario(load, checked=False):
    """The load as a scenario file: one user class, or, for more users than one address has ports, one an address.
    checked: with checks and an extraction, for a path that answers in JSON."""
    task = {"steps": [dict(get=load.path, **CHECKED)]} if checked else load.path
    wait = {"wait_time": load.wait_s} if load.wait_s else {}
    if load.rate:
        wait = {"wait_time": {"constant_throughput": load.rate / load.users}}
    hosts = ADDRESSES if load.users > PORTS_OF_ONE_ADDRESS else 1
    users = [dict({"name": "User%d" % n, "host": load.origin.replace("127.0.0.1", "127.0.0.%d" % n), "insecure": True,
                   "tasks": [task]}, **wait) for n in range(1, hosts + 1)]
    path = os.path.join(load.folder, "checks.json" if checked else "scenario.json")
    with open(path, "w") as f:
        json.dump({"users": users}, f)
    return path


def cicada(*options, test=lambda load: [scenario(load)]):
    def command(load):
        # users with a pace start spread over one period of it, the others all at once
        period_s = load.wait_s or (load.users / load.rate if load.rate else 0)
        spawn = ["-r", load.users / period_s] if period_s else []
        return [ENGINE, "-u", load.users, *spawn, "-w", load.warm_s, "-t", load.window_s + MARGIN_S, *options,
                *test(load)], {}
    return command


def tasks(load):
    """The load as a task in C, which waits, if it does, within the task: on its stack."""
    return ["-H", load.origin, built("bench/tasks/sleep.so" if load.wait_s else "bench/tasks/get.so")]


def of_cicada(output, load):
    said = json.loads(output)
    figures = {"p50_ms": said["p50_us"] / 1000, "p99_ms": said["p99_us"] / 1000, "failures": said["failures"],
               "bytes_per_user": (said["resident_kb"] - said["base_kb"]) * 1024 / load.users}
    if "service" in said:
        figures["service_p99_ms"] = said["service"]["p99_us"] / 1000
    return figures


def reference(name):
    def command(load):
        wait = ["-W", int(load.wait_s * 1000)] if load.wait_s else []
        return [built("bench/engines/" + name), "-c", load.users, "-p", load.port, "-u", load.path,
                "-t", load.seconds, *wait] + (["-T"] if load.tls else []), {}
    return command


def of_reference(output, _):
    said = json.loads(output)
    return {"p50_ms": said["p50_us"] / 1000, "p99_ms": said["p99_us"] / 1000} if "p50_us" in said else {}


# --- peers -----------------------------------------------------------------------------------------------------------

UNIT_MS = {"us": 0.001, "µs": 0.001, "ms": 1, "s": 1000, "m": 60000}


def of_wrk(output, _):
    said = {q: float(v) * UNIT_MS[unit] for q, v, unit in re.findall(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s|m)", output, re.M)}
    return {"p50_ms": said["50"], "p99_ms": said["99"]}


def of_hey(output, _):
    said = {q: float(v) * 1000 for q, v in re.findall(r"^\s+(50|99)%+ in ([\d.]+) secs", output, re.M)}
    return {"p50_ms": said["50"], "p99_ms": said["99"]}


def oha(*options):
    def command(load):
        rate = ["-q", load.rate] if load.rate else []
        return [cached("oha"), "--no-tui", "--output-format", "json", "-c", load.users, "-z", "%ds" % whole(load.seconds),
                "--insecure", *options, *rate, load.url], {}
    return command


def of_oha(output, _):
    said = json.loads(output[output.index("{"):])["metrics"]["latency_ms"]
    return {"p50_ms": said["p50"], "p99_ms": said["p99"]}


def of_fortio(output, _):
    said = {q: float(v) * 1000 for q, v in re.findall(r"# target (50|99)% ([\d.]+)", output)}
    return {"p50_ms": said["50"], "p99_ms": said["99"]}


def vegeta(load):
    limits = "-rate %s" % load.rate if load.rate else "-rate 0 -max-workers %d" % load.users
    return ["sh", "-c", 'echo "GET %s" | exec %s attack -insecure %s -workers %d -connections %d -duration %ds -output '
            'vegeta.out' % (load.url, cached("vegeta"), limits, load.users, load.users, whole(load.seconds))], {}


def of_vegeta(_, load):
    text = subprocess.run([cached("vegeta"), "report", "-type=json", os.path.join(load.folder, "vegeta.out")],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    said = json.loads(text)["latencies"]
    return {"p50_ms": said["50th"] / 1e6, "p99_ms": said["99th"] / 1e6}


def goose(load):
    rate = ["--throttle-requests", load.rate] if load.rate else []
    return [cached("goose-peer"), "--host", load.origin, "-u", load.users, "-r", min(load.users, 2000),
            "-t", "%ds" % whole(load.seconds), "-q", "--accept-invalid-certs", *rate], settings(load)


def of_goose(output, _):
    row = re.search(r"^ GET \S*\s*\|(.*)$", output.rsplit("Slowest", 1)[1], re.M).group(1)
    said = [float(v.replace(",", "")) for v in row.split("|")]
    return {"p50_ms": said[0], "p99_ms": said[3]}


def settings(load):
    """For peers that are programs themselves (peers/)."""
    return {"BENCH_PATH": load.path, "BENCH_WAIT_S": load.wait_s, "BENCH_RATE": load.rate / load.users}


def locust(user_class):
    def command(load):
        return [LOCUST, "-f", os.path.join(BENCH, "peers", "locustfile.py"), "--headless", "-u", load.users,
                "-r", min(load.users, 1000), "-t", "%ds" % whole(load.seconds), "--only-summary", "-H", load.origin,
                "-L", "WARNING", user_class], settings(load)
    return command


def of_locust(output, _):
    said = [line for line in output.splitlines() if line.strip().startswith("Aggregated")][-1].split()
    return {"p50_ms": float(said[1]), "p99_ms": float(said[8])}


TOOLS = {
    "cicada": Tool(ENGINE, cicada("-s", 1), of_cicada),
    "cicada-curl": Tool(ENGINE, cicada("-s", 1, "-c"), of_cicada),
    "cicada-2": Tool(ENGINE, cicada("-s", 2), of_cicada),
    "cicada-checks": Tool(ENGINE, cicada("-s", 1, test=lambda load: [scenario(load, checked=True)]), of_cicada),
    "cicada-tasks": Tool(ENGINE, cicada("-s", 1, test=tasks), of_cicada),
    "floor": Tool(built("bench/engines/floor"), reference("floor"), of_reference),
    "raw": Tool(built("bench/engines/raw"), reference("raw"), of_reference),
    "libcurl": Tool(built("bench/engines/curlm"), reference("curlm"), of_reference),
    "wrk": Tool("wrk", lambda load: (["wrk", "-t1", "-c%d" % load.users, "-d%ds" % whole(load.seconds), "--latency",
                                      "--timeout", "60s", load.url], {}), of_wrk),
    "h2load": Tool("h2load", lambda load: (["h2load", "-t1", "-c", load.users, "-D", whole(load.seconds), "--h1",
                                            load.url], {}), lambda output, load: {}),
    "fortio": Tool(cached("fortio"), lambda load: (
        [cached("fortio"), "load", "-loglevel", "error", "-c", load.users, "-qps", load.rate, "-t",
         "%ds" % whole(load.seconds), "-p", "50,99", "-k", load.url], {}), of_fortio),
    "hey": Tool("hey", lambda load: (
        ["hey", "-c", load.users, "-z", "%ds" % whole(load.seconds), "-t", "60",
         *(["-q", load.rate / load.users] if load.rate else []), load.url], {}), of_hey),
    "oha": Tool(cached("oha"), oha(), of_oha),
    "oha-corrected": Tool(cached("oha"), oha("--latency-correction"), of_oha),
    "vegeta": Tool(cached("vegeta"), vegeta, of_vegeta),
    "goose": Tool(cached("goose-peer"), goose, of_goose, slow=True),
    "locust-fast": Tool(LOCUST, locust("Fast"), of_locust, slow=True),
    "locust-http": Tool(LOCUST, locust("Http"), of_locust, slow=True),
}

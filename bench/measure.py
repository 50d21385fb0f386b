"""One load generator at a time against a target on 127.0.0.1.

CPU time per request is the user and system time of the generator's process tree between two samples, divided by the
requests that the target counted between the same two. So starting, ramping up and writing reports are outside of it,
and no generator's own arithmetic is in it.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import typing
import urllib.request

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(BENCH)
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
TARGET_CPU, GENERATOR_CPU = {0}, {1}
ADDRESSES = 5  # 127.0.0.1 and on: one address has 28,000 ports for the connections of a generator
BEGUN = 20  # requests after which a generator has begun
PATIENCE_S = 30
MARGIN_S = 0.7  # that a generator runs on behind the window


class Load(typing.NamedTuple):
    """What a generator is to do. Without wait and rate: as much as it can."""
    url: str
    users: int
    warm_s: float  # not looked at
    window_s: float
    wait_s: float = 0  # of each user between two requests
    rate: float = 0  # requests a second of all users together
    folder: str = "."  # for what a generator wants to write

    @property
    def seconds(self):
        """The whole run, a little longer than what is looked at."""
        return self.warm_s + self.window_s + MARGIN_S

    @property
    def origin(self):
        return re.match(r"https?://[^/]*", self.url).group(0)

    @property
    def port(self):
        return int(self.origin.rsplit(":", 1)[1])

    @property
    def path(self):
        return self.url[len(self.origin):]

    @property
    def tls(self):
        return self.url.startswith("https")


class Usage(typing.NamedTuple):
    seconds: float
    user_s: float  # by clock ticks: coarse
    system_s: float
    resident_kb: int
    peak_kb: int


def tree(pid):
    found, left = [], [pid]
    while left:
        found.append(left.pop())
        try:
            for task in os.listdir("/proc/%d/task" % found[-1]):
                with open("/proc/%d/task/%s/children" % (found[-1], task)) as f:
                    left += map(int, f.read().split())
        except OSError:
            pass  # it has just ended
    return found


def exact_s(pid):
    """CPU time of a process's living threads, to the nanosecond where the kernel keeps that."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task)) as f:
            total += int(f.read().split()[0])
    return total / 1e9


def usage(pid):
    seconds = user = system = resident = peak = 0
    for process in tree(pid):
        try:
            with open("/proc/%d/stat" % process) as f:
                fields = f.read().rsplit(")", 1)[1].split()
            with open("/proc/%d/status" % process) as f:
                status = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+)", f.read(), re.M))
            by_ticks = (int(fields[11]) + int(fields[12])) / TICKS_PER_S
            # Threads that ended are missing in the exact sum: then the ticks are nearer.
            exact = exact_s(process)
            seconds += exact if abs(exact - by_ticks) < 0.05 + 0.02 * by_ticks else by_ticks
        except (OSError, IndexError):
            continue  # it has just ended
        user += int(fields[11]) / TICKS_PER_S
        system += int(fields[12]) / TICKS_PER_S
        resident += int(status.get("VmRSS", 0))
        peak += int(status.get("VmHWM", 0))
    return Usage(seconds, user, system, resident, peak)


def busy_s():
    """CPU time of the whole machine, without waiting for disks."""
    with open("/proc/stat") as f:
        fields = [int(v) for v in f.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS_PER_S


def fetch(url):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=PATIENCE_S) as response:
        return response.read().decode()


def start(argv, cpus, **kwargs):
    return subprocess.Popen([str(a) for a in argv], preexec_fn=lambda: os.sched_setaffinity(0, cpus), **kwargs)


def end(process):
    """The process and its children, by their ids."""
    if process.poll() is None:
        for pid in reversed(tree(process.pid)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    process.wait()


def free_ports(count):
    """Below the ephemeral range: the connections of a generator cannot take them."""
    held = []
    for port in range(18000 + os.getpid() % 10000, 32000):
        s = socket.socket()
        try:
            s.bind(("0.0.0.0", port))
            held.append(s)
        except OSError:
            s.close()
        if len(held) == count:
            break
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


class Nginx:
    """The common target: 100 bytes at /, the same with another head each time at /each, JSON of as many at
    /json, 10 KiB at /10k, plain and with TLS 1.3."""

    def __init__(self, cpus=TARGET_CPU, processes=1, connections=16000):
        self.folder = tempfile.mkdtemp(prefix="cicada-bench-")
        os.makedirs(self.folder + "/www")
        with open(self.folder + "/www/10k", "w") as f:
            f.write("0123456789abcdef" * 640)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.folder + "/key.pem",
                        "-out", self.folder + "/cert.pem"], check=True, stderr=subprocess.DEVNULL)
        self.port, self.tls_port = free_ports(2)
        with open(os.path.join(BENCH, "target", "nginx.conf.in")) as f:
            config = f.read()
        listen = "".join("        listen 127.0.0.%d:%d%s backlog=4096;\n" % (n, port, kind)
                         for port, kind in ((self.port, ""), (self.tls_port, " ssl")) for n in range(1, ADDRESSES + 1))
        for name, value in (("DIR", self.folder), ("PROCESSES", processes), ("CONNECTIONS", connections),
                            ("FILES", connections + 100), ("LISTEN", listen.strip())):
            config = config.replace("@%s@" % name, str(value))
        with open(self.folder + "/nginx.conf", "w") as f:
            f.write(config)
        subprocess.run(["chmod", "-R", "a+rX", self.folder], check=True)
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        self.process = start([program, "-p", self.folder, "-c", self.folder + "/nginx.conf",
                              "-e", self.folder + "/error.log"], cpus)
        self.plain, self.tls = "http://127.0.0.1:%d" % self.port, "https://127.0.0.1:%d" % self.tls_port
        self.wait_until_up()

    def wait_until_up(self):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.requests()
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    with open(self.folder + "/error.log") as f:
                        raise RuntimeError("nginx does not start: " + f.read())
                time.sleep(0.05)

    def requests(self):
        return int(re.search(r"\n\s*\d+ \d+ (\d+)", fetch(self.plain + "/stub")).group(1))

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Delayd:
    """The target that knows the truth; see target/delayd.c."""

    def __init__(self, *options, cpus=TARGET_CPU):
        self.process = start([os.path.join(BUILD, "bench/target/delayd"), *options], cpus, stdout=subprocess.PIPE, text=True)
        self.url = "http://127.0.0.1:%d" % int(self.process.stdout.readline())

    def stats(self):
        return json.loads(fetch(self.url + "/_stats"))

    def requests(self):
        return self.stats()["requests"]

    def reset(self):
        fetch(self.url + "/_reset")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)


def environment(extra):
    """Without proxies: some generators would use them for 127.0.0.1, too."""
    kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    return {**kept, **{k: str(v) for k, v in extra.items()}}


def wait_until_begun(process, target):
    base, deadline = target.requests(), time.monotonic() + PATIENCE_S
    while target.requests() - base < BEGUN and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)


def sample(process, target):
    """(requests, the generator's usage, the target's CPU time, everybody's CPU time, the clock)"""
    return target.requests(), usage(process.pid), usage(target.process.pid).seconds, busy_s(), time.monotonic()


def observe(process, load, target, at_window):
    """The figures of the window."""
    wait_until_begun(process, target)
    time.sleep(load.warm_s)
    at_window()
    count, used, target_s, all_s, clock_s = sample(process, target)
    time.sleep(load.window_s)
    end_count, end_used, end_target_s, end_all_s, end_clock_s = sample(process, target)
    if process.poll() is not None:
        raise RuntimeError("it ended too early")
    count, seconds = end_count - count, end_clock_s - clock_s
    if count <= 10:
        raise RuntimeError("it sent nothing")
    cpu_s = end_used.seconds - used.seconds
    return {
        "rps": count / seconds,
        "us": cpu_s * 1e6 / count,
        "us_user": (end_used.user_s - used.user_s) * 1e6 / count,
        "us_system": (end_used.system_s - used.system_s) * 1e6 / count,
        "cpu": cpu_s / seconds,
        "resident_kb": end_used.resident_kb,
        "peak_kb": end_used.peak_kb,
        "others": (end_all_s - all_s - (end_target_s - target_s) - cpu_s) / seconds,
    }


def measure(tool, load, target, cpus=GENERATOR_CPU, at_window=lambda: None):
    """Run a tool (tools.py); its figures, or {"error": text}. "others" is what the rest of the machine used, in
    processors."""
    argv, env = tool.command(load)
    with tempfile.TemporaryFile("w+") as output:
        process = start(argv, cpus, stdout=output, stderr=subprocess.STDOUT, env=environment(env), cwd=load.folder)
        try:
            figures = observe(process, load, target, at_window)
            process.wait(timeout=load.seconds + PATIENCE_S)
            output.seek(0)
            figures.update(tool.reported(output.read(), load))
        except (RuntimeError, subprocess.TimeoutExpired, ValueError, LookupError, AttributeError) as fault:
            output.seek(0)
            figures = {"error": "%s: %s %s" % (type(fault).__name__, fault, output.read()[-300:])}
        finally:
            end(process)
    return figures

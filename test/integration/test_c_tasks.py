"""Tasks in C: the examples under a real master, with both sides' counts compared; everything a task can ask for, checked
from within; and tasks that go wrong, which are to be named."""
import collections
import os
import re
import resource
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import threading

import pytest

import app
from harness.master import HERE, ROOT
from harness.worker import CICADA, Worker

sys.path.insert(0, os.path.join(ROOT, "bench"))
from instructions import engine, per_request

EXAMPLES = os.path.join(ROOT, "examples", "c")
HEADER = os.path.join(ROOT, "include")
BUDGET = 3200  # instructions in user space of a cicada_get on a kept-alive connection

# What the masters run in these tests: the classes by name, and what the example's messages come to.
LOCUSTFILE = """
import json, os, sys
sys.path.insert(0, %r)
import locustfile  # its listeners write what the master knows
from locust import User, constant, events, task

class %s(User):
    wait_time = constant(1)
    @task
    def nothing(self):
        pass

def note(environment, msg, **_):
    locustfile.record("message", environment, type=msg.type, data=msg.data)

@events.init.add_listener
def on_init(environment, **_):
    for name in ("compressed", "greeted"):
        environment.runner.register_message(name, note)

@events.test_start.add_listener
def on_start(environment, **_):
    if os.environ.get("GREET"):
        environment.runner.send_message("greet", {"from": "the master"})

@events.init_command_line_parser.add_listener
def on_parser(parser):
    parser.add_argument("--echo-port", default="")
"""


def build(folder, source, *flags):
    """A shared object of a source file, built as the documentation says."""
    target = os.path.join(str(folder), os.path.basename(source)[:-2] + ".so")
    subprocess.run(["cc", "-std=c11", "-g", "-O1", "-fno-optimize-sibling-calls", "-Wall", "-Wextra", "-shared", "-fPIC",
                    "-I", HEADER, "-o", target, source, *flags], check=True)
    return target


def own(name):
    return os.path.join(HERE, "c_tasks", name)


@pytest.fixture
def locustfile(tmp_path):
    def write(user_class):
        path = tmp_path / "locustfile_c.py"
        path.write_text(LOCUSTFILE % (HERE, user_class))
        return path
    return write


@pytest.fixture
def start(tmp_path, started):
    """A run of its own: start(task file or None, argument, …, program=…, env=…)."""
    def begin(tasks, *args, program=CICADA, env=None):
        argv = [program, "--headless"] + (["-f", tasks] if tasks else []) + list(args)
        run = Worker("run", argv, str(tmp_path), env)
        started.append(run)
        return run.start()
    yield begin
    for run in started:
        if run.name == "run" and not getattr(run, "dies", False):
            run.assert_sound()


@pytest.fixture
def shop():
    server = app.serve()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def echo():
    """An echo server that counts its lines."""
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            with lock:
                server.connections += 1
            for line in self.rfile:
                self.wfile.write(line)
                with lock:
                    server.lines += 1

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True
        request_queue_size = 256

    lock = threading.Lock()
    server = Server(("127.0.0.1", 0), Handler)
    server.lines = server.connections = 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def url_of(server):
    return "http://127.0.0.1:%d" % server.server_address[1]


def answered(shop):
    """What the application answered, by the rows that the example gives it."""
    rows = collections.Counter()
    with shop.app.lock:
        for shape, count in shop.app.counts.items():
            method, path, _ = shape.split()
            rows["%s %s" % (method, path.replace(":id", "[id]"))] += count
    return rows


def without_pages(rows):
    """The application's rows know no queries."""
    merged = collections.Counter()
    for name, (requests, failures) in rows.items():
        assert failures == 0, (name, failures)
        merged[name.split("?")[0]] += requests
    return merged


# --- the examples ---------------------------------------------------------------------------------


@pytest.mark.smoke
def test_http_flow_counts_what_the_application_answered(tmp_path, shop, start_master, start_cicada, locustfile):
    tasks = build(tmp_path, os.path.join(EXAMPLES, "http_flow.c"))
    master = start_master(locustfile=locustfile("Visitor"))
    cicada = start_cicada(master.port, scenario=tasks)
    master.wait_workers(1, ("ready",))
    master.swarm(8, 8, url_of(shop))
    master.wait_users(8)
    master.wait_requests(100)
    master.stop()
    rows = master.last_stop(1)["rows"]
    assert without_pages(rows) == answered(shop)
    assert rows["POST /login"][0] == rows["POST /logout"][0] == 8
    assert len(set(shop.app.seen["logins"])) == 8 and set(shop.app.seen["logouts"]) == set(shop.app.seen["logins"])
    assert master.end() == 0
    assert cicada.wait(20) == 0 and cicada.errors() == []
    master.assert_clean()


def test_http_flow_by_its_tags(tmp_path, shop, start):
    tasks = build(tmp_path, os.path.join(EXAMPLES, "http_flow.c"))
    run = start(tasks, "-H", url_of(shop), "-u", "3", "-r", "3", "-t", "2s", "--stop-timeout", "3", "--tags", "read")
    assert run.wait(20) == 0
    assert set(answered(shop)) == {"POST /login", "GET /items", "POST /logout"}


def test_tcp_protocol_counts_what_the_server_echoed(tmp_path, echo, start_master, start_cicada, locustfile):
    tasks = build(tmp_path, os.path.join(EXAMPLES, "tcp_echo.c"))
    # the port comes by a custom argument of the master
    master = start_master(locustfile=locustfile("Echo"), args=("--echo-port", echo.server_address[1]))
    cicada = start_cicada(master.port, scenario=tasks)
    master.wait_workers(1, ("ready",))
    master.swarm(10, 10)
    master.wait_users(10)
    master.wait_requests(200)
    master.stop()
    assert master.last_stop(1)["rows"] == {"TCP connect": [10, 0], "TCP echo": [echo.lines, 0]}
    assert echo.connections == 10
    assert master.end() == 0
    assert cicada.wait(20) == 0 and cicada.errors() == []
    master.assert_clean()


def test_tcp_protocol_tells_its_failures(tmp_path, start):
    with socket.socket() as s:  # a port that nobody listens on
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
        tasks = build(tmp_path, os.path.join(EXAMPLES, "tcp_echo.c"))
        run = start(tasks, "-u", "2", "-r", "2", "-t", "1s", env={"ECHO_PORT": str(port)})
        assert run.wait(20) == 1
    assert re.search(r"TCP connect: Connection refused", run.text())
    assert "TCP echo" not in run.text()


def test_own_program_under_a_master_with_messages_both_ways(tmp_path, start_master, started, locustfile,
                                                                   monkeypatch):
    program = os.path.join(os.path.dirname(CICADA), "examples", "compress")
    monkeypatch.setenv("GREET", "1")
    master = start_master(locustfile=locustfile("Compressor"))
    worker = Worker("compress", [program, "--worker", "--master-host", "127.0.0.1", "--master-port", master.port],
                    str(tmp_path))
    started.append(worker)
    worker.start()
    master.wait_workers(1, ("ready",))
    master.swarm(4, 4)
    master.wait_users(4)
    master.wait_requests(60)
    master.stop()
    record = master.last_stop(1)
    rows = record["rows"]
    assert set(rows) == {"zlib level 1", "zlib level 9", "zlib level 10"}
    assert rows["zlib level 10"][0] == rows["zlib level 10"][1] > 0
    assert rows["zlib level 1"][1] == rows["zlib level 9"][1] == 0
    assert master.end() == 1
    assert worker.wait(20) == 0
    worker.assert_sound()
    said = {line["type"]: line["data"] for line in master.records("message")}
    assert said["greeted"] == {"from": "the master"}
    assert said["compressed"]["bytes"] > 100 * rows["zlib level 1"][0]
    assert 'the master says greet: {"from":"the master"}' in worker.text()
    master.assert_clean()


def test_own_program_alone(start):
    program = os.path.join(os.path.dirname(CICADA), "examples", "compress")
    run = start(None, "-u", "2", "-r", "2", "-t", "1s", "--exclude-tags", "rare", program=program)
    assert run.wait(20) == 0
    assert "level 10" not in run.text()
    assert subprocess.run([program, "--headless", "-f", "x.json"], capture_output=True, text=True).stderr == (
        "cicada: -f: the user classes of this program are its own\n")


# --- all of the interface ---------------------------------------------------------------------------


@pytest.mark.smoke
@pytest.mark.parametrize("http", ["fast", "curl"])
def test_everything_a_task_can_ask_for(tmp_path, shop, start, http):
    with socket.socket() as silent:  # takes connections and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        tasks = build(tmp_path, own("interface.c"))
        run = start(tasks, "-H", url_of(shop), "-u", "1", "-t", "60s", "--engine", http,
                    env={"SILENT_URL": "http://127.0.0.1:%d/" % silent.getsockname()[1]})
        assert run.wait(60) == 1  # there are failures
    text = run.text()
    assert not re.search(r"not so:.*", text), text
    assert "everything was asked" in text and "a line of the task's own" in text
    failures = set(re.findall(r"^1 +(.*?) *$", text, re.M))
    assert failures == {
        "GET /status/404: HTTP status 404", "GET refused: connection refused", "GET bad: request with an invalid header",
        "G ET bad: request with an invalid method", "GET silent: timed out", "GET refused: request to an invalid URL",
        "GET judged: item 1 is not wanted", "TYPE own: own failure"}
    assert re.search(r"^GET +judged +3 +1\(", text, re.M) and re.search(r"^TYPE +own +2 +1\(", text, re.M)


def test_a_plain_request_of_a_task_stays_within_its_budget(tmp_path, nginx):
    source = tmp_path / "plain.c"
    source.write_text("""
#include <cicada.h>
static void look(struct cicada_user *user) { (void)cicada_get(user, "/"); }
static const struct cicada_task tasks[] = {{.name = "look", .run = look}, {.name = NULL}};
static const struct cicada_user_class users[] = {{.name = "User", .tasks = tasks}, {.name = NULL}};
CICADA_TEST = {CICADA_TEST_HEAD, .host = "%s", .users = users};
""" % nginx.url)
    instructions, costs = per_request(engine(build(tmp_path, str(source))))
    table = "\n".join("%8.1f %s" % row for row in costs[:40])
    assert 500 < instructions <= BUDGET, "%.0f instructions a request:\n%s" % (instructions, table)


# --- what goes wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize("fault, number, words", [
    ("segv", signal.SIGSEGV, r"crashed \(SIGSEGV\)\n"),
    ("fpe", signal.SIGFPE, r"crashed \(SIGFPE\)\n"),
    ("abort", signal.SIGABRT, r"crashed \(SIGABRT\)\n"),
    ("stack", signal.SIGSEGV, r"crashed \(SIGSEGV\): its stack of 256 KiB is used up\n"),
    ("frame", signal.SIGSEGV, r"crashed \(SIGSEGV\): its stack of 256 KiB is used up\n"),
])
def test_a_task_that_crashes_is_named(tmp_path, start, fault, number, words):
    log = tmp_path / "run.txt"
    run = start(build(tmp_path, own("faults.c"), "-fstack-clash-protection"), "-u", "1", "-t", "10s", "--logfile", str(log),
                env={"FAULT": fault})
    run.dies = True
    status = run.wait(30)
    assert status == -number or "Sanitizer" in run.text()
    line = r"cicada: user class 'Faulty', task 'go wrong': " + words
    assert re.search(line, run.text()) and re.search(line, log.read_text())


@pytest.mark.skipif("/san-" in CICADA, reason="sanitizers take more address space than there is")
def test_tasks_without_memory_for_a_stack_are_not_passed_over(tmp_path):
    tasks = build(tmp_path, own("faults.c"))
    limit = (300 << 20, 300 << 20)  # for some hundred stacks
    done = subprocess.run([CICADA, "--headless", "-f", tasks, "-u", "2000", "-r", "2000", "-t", "1s", "--threads", "1",
                           "--fail-if-saturated"], capture_output=True, text=True, timeout=60,
                          env=dict(os.environ, FAULT="sleep"), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
    assert done.returncode == 98 and "memory ran out" in done.stderr, done.stderr


@pytest.mark.parametrize("place", ["test_start", "test_stop"])
def test_a_crash_beside_the_tasks_is_named(tmp_path, start, place):
    run = start(build(tmp_path, own("faults.c")), "-u", "1", "-t", "1s", env={"FAULT": place})
    run.dies = True
    assert run.wait(30) == -signal.SIGSEGV or "Sanitizer" in run.text()
    assert re.search(r"cicada: %s: crashed \(SIGSEGV\)\n" % place, run.text())


@pytest.mark.parametrize("fault", ["other user", "other thread"])
def test_a_call_for_a_user_from_elsewhere_ends_in_words(tmp_path, start, fault):
    run = start(build(tmp_path, own("faults.c")), "-u", "2", "-r", "2", "-t", "10s", env={"FAULT": fault})
    run.dies = True
    assert run.wait(30) != 0
    assert re.search(r"CRITICAL/cicada: user class 'Faulty': a function of cicada.h was called for a user from outside its own "
                     r"task", run.text())


def test_a_task_that_never_waits_is_named_while_it_goes_on(tmp_path, start):
    run = start(build(tmp_path, own("faults.c")), "-u", "1", "-t", "14s", env={"FAULT": "stuck"})
    run.wait_line(r"ERROR/cicada: user class 'Faulty', task 'go wrong': has not waited for 10 s: its thread's other users "
                  r"stand still", 20)
    assert run.wait(60) == 0


def test_a_task_that_does_not_hear_that_it_is_stopped_is_dropped(tmp_path, nginx, start):
    run = start(build(tmp_path, own("faults.c")), "-u", "3", "-r", "3", "-t", "1s", "-H", nginx.url, env={"FAULT": "deaf"})
    assert run.wait(20) == 0
    assert len(re.findall(r"user \d stops", run.text())) == 3
    assert re.search(r"WARNING/cicada: user class 'Faulty', task 'go wrong': went on after 100 calls said CICADA_STOPPED",
                     run.text())
    started, succeeded, failed, cut = map(int, re.search(
        r"(\d+) requests: (\d+) succeeded, (\d+) failed, (\d+) cut", run.text()).groups())
    assert started == succeeded + failed + cut and failed == 0 and cut <= 3


def refusal(tmp_path, source, *flags):
    """What cicada says of a task file that it does not take."""
    path = tmp_path / "bad.c"
    path.write_text(source)
    tasks = build(tmp_path, str(path), *flags)
    done = subprocess.run([CICADA, "--headless", "-f", tasks, "-t", "1s"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    return done.stderr.replace(tasks, "bad.so").splitlines()[-1]


def test_task_files_that_are_none_are_refused_in_words(tmp_path):
    assert refusal(tmp_path, "int x;") == (
        "cicada: bad.so: has no symbol 'cicada_test': tasks in C are given by CICADA_TEST, see cicada.h")
    assert refusal(tmp_path, "#include <cicada.h>\nCICADA_TEST = {.abi = 2, .size = 4};") == (
        "cicada: bad.so: built with a newer cicada.h (interface 2, this cicada has 1): build it with this version's header, "
        "or run it with a newer cicada")
    assert refusal(tmp_path, "#include <cicada.h>\nCICADA_TEST = {CICADA_TEST_HEAD};") == (
        "cicada: bad.so: users: must be 1 to 1000 user classes")
    assert "bad.so: cannot be loaded: " in refusal(
        tmp_path, "#include <cicada.h>\nint cicada_next(void);\nint f(void) { return cicada_next(); }\n")
    no_object = tmp_path / "text.so"
    no_object.write_text("hello")
    done = subprocess.run([CICADA, "--headless", "-f", str(no_object)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "text.so: cannot be loaded: " in done.stderr
    done = subprocess.run([CICADA, "--headless", "-f", "none.so"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.endswith("none.so: No such file or directory\n")


def test_check_prints_what_a_task_file_has(tmp_path):
    tasks = build(tmp_path, os.path.join(EXAMPLES, "http_flow.c"))
    done = subprocess.run([CICADA, "check", tasks], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "  browse: weight 3 (60 %), tags read\n" in done.stdout, done.stderr
    (tmp_path / "text.so").write_text("hello")
    done = subprocess.run([CICADA, "check", str(tmp_path / "text.so")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "text.so: cannot be loaded: " in done.stderr


@pytest.mark.skipif(os.path.dirname(CICADA) != os.path.join(ROOT, "build"), reason="another build than the one that make installs")
def test_what_is_installed_is_found_by_pkg_config(tmp_path):
    """Linked with the shared library, and with the archive: what that needs is named, and nothing else is."""
    subprocess.run(["make", "-s", "install", "PREFIX=%s/usr" % tmp_path], cwd=ROOT, check=True, capture_output=True)
    lib = str(tmp_path / "usr" / "lib")
    env = dict(os.environ, PKG_CONFIG_PATH=lib + "/pkgconfig", LD_LIBRARY_PATH=lib)
    def flags(*what):
        return subprocess.run(["pkg-config", *what, "cicada"], check=True, capture_output=True, text=True, env=env).stdout.split()
    assert flags("--cflags") == ["-I%s/usr/include" % tmp_path]
    assert flags("--libs") == ["-L" + lib, "-lcicada"]
    archive = [lib + "/libcicada.a" if flag == "-lcicada" else flag for flag in flags("--static", "--libs")]
    for name, libs in (("shared", flags("--libs")), ("archive", archive)):
        program = str(tmp_path / name)
        subprocess.run(["cc", "-o", program, os.path.join(EXAMPLES, "compress.c"), *flags("--cflags"), *libs, "-lz"], check=True)
        done = subprocess.run([program, "--version"], capture_output=True, text=True, env=env, timeout=60)
        assert done.returncode == 0 and done.stdout.startswith("cicada "), done.stderr


def test_the_header_is_fit_for_cpp(tmp_path):
    source = tmp_path / "tasks.cc"
    source.write_text("""
#include <cicada.h>
static void look(cicada_user *user) { (void)cicada_get(user, "/"); }
static const cicada_task tasks[] = {{"look", look, 1, nullptr}, {}};
static const cicada_user_class users[] = {
    {"Visitor", 1, 0, {CICADA_WAIT_CONSTANT, 1, 0}, nullptr, false, nullptr, nullptr, tasks}, {}};
CICADA_TEST = {CICADA_ABI, sizeof(struct cicada_test), nullptr, users, nullptr, nullptr, nullptr};
""")
    target = str(tmp_path / "tasks.so")
    compiler = shutil.which("c++") or shutil.which("clang++")  # the latter may lack its library: cc links
    subprocess.run([compiler, "-std=c++11", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
                    "-fvisibility=hidden", "-fPIC", "-I", HEADER, "-c", "-o", target + ".o", str(source)], check=True)
    subprocess.run(["cc", "-shared", "-o", target, target + ".o"], check=True)
    done = subprocess.run([CICADA, "--headless", "-f", target, "-t", "1s"], capture_output=True, text=True, timeout=60)
    assert "user class 'Visitor' has no host" in done.stderr or done.returncode in (0, 1), done.stderr

"""traces.txt against what a server saw: it keeps the traceparent header of each request, and the rows must be just these."""
import collections
import http.server
import json
import re
import threading

import pytest

from harness.process import wait_for
from harness.worker import CICADA, Worker
from test_c_tasks import build

TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-01")
ROW = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\t([^\t]*)\t(\d+\.\d{3})\t(sent|scheduled_start)\t([0-9a-f]{32})"
                 r"\t([^\t]*)")
OWN = "4bf92f3577b34da6a3ce929d0e0e4736"


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server_port
        self.lock = threading.Lock()
        self.seen = []  # method, path and traceparent headers
        self.hang = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def traced(self):
        """By trace id, the paths that came with it; each header is a valid one."""
        found = collections.defaultdict(list)
        with self.lock:
            for method, path, headers in self.seen:
                if headers:
                    assert len(headers) == 1
                    found[TRACEPARENT.fullmatch(headers[0]).group(1)].append(path)
        return found


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.split("?")[0]
        with self.server.lock:
            self.server.seen.append((self.command, path, self.headers.get_all("traceparent") or []))
        if path == "/hang":
            self.server.hang.wait(30)
            self.close_connection = True
            return
        self.send_response(404 if path == "/status/404" else 302 if path == "/redirect" else 200)
        if path == "/redirect":
            self.send_header("Location", "/end")
            self.send_header("Set-Cookie", "a=b")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
        self.wfile.flush()

    do_POST = do_GET

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    s = Server()
    yield s
    s.hang.set()
    s.shutdown()
    s.server_close()


@pytest.fixture
def start(tmp_path, started):
    def begin(*args, name="run"):
        run = Worker(name, [CICADA, "--headless", "--results-dir", tmp_path / "out", *args], str(tmp_path))
        started.append(run)
        return run.start()
    yield begin
    for run in started:
        if isinstance(run, Worker):
            run.assert_sound()


def rows(folder):
    """(name, milliseconds, source, trace id, error) of each line."""
    with open(folder / "traces.txt") as f:
        return [ROW.fullmatch(line.rstrip("\n")).groups() for line in f]


def scenario(path, server):
    path.write_text(json.dumps({
        "host": server.url, "variables": {"n": 5}, "users": [
            {"name": "A", "wait_time": 0.005, "tasks": [{"name": "all", "steps": [
                {"get": "/"}, {"post": "/made/${n}", "json": {"n": "${n}"}, "name": "made"}, {"get": "/redirect"},
                {"get": "/status/404"},
                {"get": "/own", "headers": {"traceparent": "00-%s-00f067aa0ba902b7-01" % OWN}}]}]},
            {"name": "B", "fixed_count": 1, "tasks": ["/hang"]}]}))
    return path


PATHS = {"/": ["/"], "made": ["/made/5"], "/redirect": ["/redirect", "/end"], "/status/404": ["/status/404"], "/hang": ["/hang"]}


@pytest.mark.smoke
@pytest.mark.parametrize("engine", ["fast", "curl"])
@pytest.mark.parametrize("ratio", ["1", "0.3"])
def test_the_file_has_what_the_server_saw(start, server, tmp_path, engine, ratio):
    run = start("-f", scenario(tmp_path / "s.json", server), "-u", "5", "-r", "50", "-t", "2s", "--engine", engine,
                "--trace-ratio", ratio, "--only-summary")
    assert run.wait() == 1  # for the 404
    found, seen = rows(tmp_path / "out"), server.traced()
    kept = [r for r in found if r[3] == OWN]
    drawn = [r for r in found if r[3] != OWN]
    ids = [r[3] for r in drawn]
    assert len(set(ids)) == len(ids) > 50
    assert set(seen) - {OWN} <= set(ids)
    for name, ms, source, trace, error in drawn:
        whole, came = PATHS[name], seen.get(trace, [])
        # what was cut may not have been sent whole, or not all of its hops
        assert came == whole or error == "interrupted" and came in ([], whole[:1]), (name, error)
        assert source == "sent"
        assert error in {"/status/404": ("HTTP status 404", "interrupted"), "/hang": ("interrupted",)}.get(
            name, ("", "interrupted"))
    assert {r[0] for r in kept} == {"/own"} and all(server_seen == "/own" for server_seen in seen[OWN])
    own, cut = len(seen[OWN]), sum(r[4] == "interrupted" for r in found)
    assert cut <= 5
    if ratio == "1":
        assert [headers for _, _, headers in server.seen if not headers] == []
        assert sum(r[4] != "interrupted" for r in kept) <= own <= len(kept)
        assert [r[4] for r in drawn if r[0] == "/hang"] == ["interrupted"]
        started = int(re.search(r"(\d+) requests: ", run.text()).group(1))
        assert len(found) == started
    else:
        share = len(found) / int(re.search(r"(\d+) requests: ", run.text()).group(1))
        assert 0.15 < share < 0.45


@pytest.mark.parametrize("engine", ["fast", "curl"])
def test_tasks_in_c_are_traced(start, server, tmp_path, engine):
    source = tmp_path / "traced.c"
    source.write_text("""
#include <cicada.h>
static void look(struct cicada_user *user)
{
    (void)cicada_get(user, "/");
    (void)cicada_get(user, "/redirect");
    cicada_fail(cicada_get(user, "/judged"), "not wanted");
}
static const struct cicada_task tasks[] = {{.name = "look", .run = look}, {.name = NULL}};
static const struct cicada_user_class users[] = {{.name = "User", .tasks = tasks}, {.name = NULL}};
CICADA_TEST = {CICADA_TEST_HEAD, .host = "%s", .users = users};
""" % server.url)
    run = start("-f", build(tmp_path, str(source)), "-u", "3", "-r", "3", "--iterations", "40", "--engine", engine,
                "--trace-ratio", "1", "--only-summary")
    assert run.wait() == 1
    found, seen = rows(tmp_path / "out"), server.traced()
    assert {r[3]: r[0] for r in found} == {trace: paths[0] for trace, paths in seen.items()}
    assert collections.Counter((r[0], r[4]) for r in found) == {("/", ""): 40, ("/redirect", ""): 40,
                                                               ("/judged", "not wanted"): 40}
    assert all(paths[1:] == (["/end"] if paths[0] == "/redirect" else []) for paths in seen.values())


def test_a_schedule_is_told(start, server, tmp_path):
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"host": server.url, "tasks": ["/"], "arrival": {
        "rate": 200, "stages": [{"duration": 1, "rate": 200}], "max_users": 2}}))
    run = start("-f", path, "--trace-ratio", "1", "--only-summary")
    assert run.wait() == 0
    assert "scheduled_start" in {r[2] for r in rows(tmp_path / "out")}


def test_a_run_has_so_many_rows_and_says_so(start, nginx, tmp_path):
    run = start("-u", "4", "-r", "100", "--iterations", "101000", "--trace-ratio", "1", "--only-summary", nginx.url + "/")
    assert run.wait(120) == 0
    assert "traces.txt has room for 100000 requests of a run" in run.text()
    missing = int(re.search(r"(\d+) requests that were to be traced are not in traces.txt", run.text()).group(1))
    assert len(rows(tmp_path / "out")) == 101000 - missing <= 100000


def test_nothing_is_sent_or_written_without_the_flag(start, server, tmp_path):
    run = start("-u", "2", "--iterations", "50", "--only-summary", server.url + "/")
    assert run.wait() == 0
    assert server.traced() == {} and len(server.seen) == 50
    assert not (tmp_path / "out" / "traces.txt").exists()


@pytest.mark.smoke
def test_the_leader_of_a_real_masters_run_traces_its_requests(server, start_master, start_cicada, tmp_path):
    master = start_master()
    args = ["--dest", tmp_path / "out", "--name", "n", "--tag", "t", "--trace-ratio", "0.5", "--no-cluster-facts"]
    cicadas = [start_cicada(master.port, name="cicada%d" % i, args=args) for i in range(2)]
    master.wait_workers(2, ("ready",))
    before = set()
    for run in range(2):
        master.swarm(8, 100, server.url)
        master.wait_users(8)
        wait_for(lambda: len(server.traced()) >= len(before) + 20, 20, "traced requests")
        master.stop()
        folders = sorted((tmp_path / "out").glob("runs/n/*/*/run_tag=t"))
        assert len(folders) == run + 1
        wait_for(lambda: (folders[-1] / "status.json").exists(), 20, "status.json")
        found = rows(folders[-1])
        seen = {trace: paths for trace, paths in server.traced().items() if trace not in before}
        ids = {r[3] for r in found}
        assert set(seen) <= ids and len(found) == len(ids)
        assert all(r[3] in seen or r[4] == "interrupted" for r in found)
        assert all(r[4] in ("", "HTTP status 404", "interrupted") for r in found)
        before |= ids
    master.end()
    assert sorted(c.text().count("it traces no requests") for c in cicadas) == [0, 2]
    for cicada in cicadas:
        assert cicada.wait() == 0 and cicada.errors() == []


@pytest.mark.parametrize("mode", ["--headless", "--worker"])
def test_rows_need_a_folder(mode, tmp_path, started):
    run = Worker("run", [CICADA, mode, "--trace-ratio", "0.5", "http://127.0.0.1:9/"], str(tmp_path))
    started.append(run)
    assert run.start().wait() == 2
    assert "--trace-ratio lists requests in a results folder" in run.text()

"""Locustfiles made of scenarios: Locust's users do what cicada's do. The server is asked the same, connection by
connection, and the statistics have the same rows and errors."""
import collections
import json
import os
import subprocess

import pytest

from harness.master import locust
from locustfile_run import anonymous, by_cicada, by_locust, locustfile, masked, serve
from proxies import Proxy
from scenario_run import CICADA, ROOT

EXAMPLES = sorted(n for n in os.listdir(os.path.join(ROOT, "examples")) if n.endswith((".yaml", ".json")))
RANDOM = {"agent_session.yaml", "login.yaml", "sequential.json", "feed.yaml", "follow.yaml"}  # numbers differ from run to run
USERS = collections.defaultdict(lambda: 1, {"follow.yaml": 15, "give_up.yaml": 3, "pacing.json": 3, "shop.json": 2})
OFTEN = 20  # what one run does so often the other one, if it is as long, does as well


def example(name, tmp_path):
    """A copy of the example that waits little."""
    folder = tmp_path / "scenario"
    folder.mkdir()
    for other in os.listdir(ROOT + "/examples"):
        if other.endswith((".yaml", ".json", ".csv")):
            with open(os.path.join(ROOT, "examples", other)) as f:
                text = f.read()
            text = text.replace('{"between": [1, 2.5]}', "0.02").replace('{"constant_throughput": 0.5}', "0.02")
            (folder / other).write_text(text)
    return folder / name


def often(counter, other):
    share = min(1, sum(other.values()) / sum(counter.values()))
    return {what for what, n in counter.items() if n * share >= OFTEN and not other[what]}


def compare(ours, theirs, digits):
    a, b = (collections.Counter(anonymous(r, digits) for r in run.requests) for run in (ours, theirs))
    if digits:  # chance decides which pages a user sees before its first login, so without a cookie
        assert not often(a, b) and not often(b, a)
    else:
        assert set(a) == set(b)
    pairs = [collections.Counter(pair for user in run.by_user.values() for pair in
                                 zip([anonymous(r, digits) for r in user], [anonymous(r, digits) for r in user][1:]))
             for run in (ours, theirs)]
    assert not often(pairs[0], pairs[1]) and not often(pairs[1], pairs[0])
    compare_rows(ours, theirs, digits)


def compare_rows(ours, theirs, digits):
    assert set(ours.stats) == set(theirs.stats)
    assert set(ours.errors) == set(theirs.errors)
    for run in (ours, theirs):
        assert run.total() == len(run.requests)
    for row, (requests, failures, size) in ours.stats.items():
        other_requests, other_failures, other_size = theirs.stats[row]
        assert (failures / requests in (0, 1)) and failures / requests == other_failures / other_requests, row
        if not digits:
            assert size == pytest.approx(other_size), row


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, tmp_path):
    path = example(name, tmp_path)
    how = {"users": USERS[name], "time": "3s"}
    compare(by_cicada(path, tmp_path, **how), by_locust(path, tmp_path, **how), name in RANDOM)


@pytest.mark.parametrize("name", ["login.yaml", "json_check.json", "give_up.yaml", "feed.yaml"])
def test_example_with_the_oldest_locust(name, tmp_path):
    path = example(name, tmp_path)
    how = {"users": USERS[name], "time": "3s"}
    compare(by_cicada(path, tmp_path, **how), by_locust(path, tmp_path, version="2.12.1", **how), name in RANDOM)


# --- the rest of the language, in an order that does not change ---

LANGUAGE = {
    "variables": {"place": None, "four": 4, "flag": True, "n": 5, "rate": 1.50, "word": "b c&d", "quote": "say \"hi\"\n"},
    "feeds": [{"file": "rows.csv", "separator": ";"},
              {"file": "kept.csv", "order": "unique", "columns": ["kept", "second"]}],
    "insecure": True,
    "users": [{
        "name": "All of it", "order": "sequential", "wait_time": {"constant": 0.01},
        "on_start": [{"post": "/echo/start", "json": {"kept": "${kept}", "row": "${row}"}}],
        "on_stop": [{"post": "/echo/stop", "name": "stop ${user}"}],
        "tasks": [
            {"name": "get", "weight": 3, "tags": ["a", "b c"], "steps": [
                {"set": {"local": "<${word}>", "count": 3, "yes": True}},
                {"put": "/echo/${word}/x?y=${word}", "query": {"${n}": ["${word}", "z"]}, "headers": {"X-Test": "${n} of ${user}", "X-Other": "\u00e9"},
                 "json": {"n": "${n}", "rate": "${rate}", "text": "n=${n}", "${word}": "${quote}", "flag": "${flag}", "yes": "${yes}",
                          "count": "${count}", "whole": 12345678901234567890, "u": "\u20ac\U0001F600"}, "name": "json"},
                {"post": "/echo", "form": {"a": "${word}", "${n}": ["${quote}", "\u00e9 +"]}, "name": "form"},
                {"post": "/echo", "body": "<${word}> $${n} ${quote} ${local} \u00e9", "name": "${word} ${n}"},
                {"get": "${place}/echo/whole?n=${n}"},
                {"get": "/echo/a b/../c%41?x=\u00e9 \"'#no"},
                {"post": "/echo", "host": "${place}/echo/below", "name": "host", "multipart": {
                    "f": "${n}", "g": {"file": "kept.csv", "content_type": "text/csv"}, "h\"": {"text": "t", "filename": "x.bin"},
                    "${word}": {"text": "t", "filename": "${quote}.bin"}}},
                {"post": "/echo/file", "file": "bytes.bin", "headers": {"Content-Type": "application/octet-stream"}},
                {"delete": "/echo/4711"}, {"patch": "/echo", "name": "p"}, {"options": "/echo", "name": "o"}, {"head": "/items/1"},
                {"request": "/echo", "method": "purge", "name": "other"},
                {"post": "/echo", "name": "rows", "body": "${row} ${other-row} ${kept} ${second} ${counter} ${user} ${worker} ${random(7, 7)}"},
            ]},
            {"name": "def", "steps": [
                {"get": "/redirect", "name": "followed", "check": {"json": {"/id": 5}}, "extract": {"seen": {"cookie": "seen"}}},
                {"get": "/redirect", "name": "not followed", "redirects": False,
                 "check": {"status": 302, "headers": {"location": "/items/5", "X-No": {"exists": False}}},
                 "extract": {"next": {"header": "LOCATION"}, "again": {"cookie": "seen"}}},
                {"get": "${next}", "headers": {"X-Test": "${seen} ${again}"}},
                {"get": "/echo", "headers": {"Cookie": "mine=1"}, "name": "own cookie"},
                {"get": "/coded/gzip", "check": {"json": {"/text": {"length": 1000, "contains": "\u00e9 caf", "matches": "(?s)^c.f"}, "/n": 1.5}, "size": {">": 1000}},
                 "extract": {"n": "/n", "all": {"regex": "(?s)^(.*)$"}, "whole": {"json": ""}}},
                {"post": "/echo", "body": "${n} ${all}", "name": "n"},
                {"post": "/echo", "json": {"n": "${n}", "whole": "${whole}", "all": "${all}"}, "name": "whole"},
                {"set": {"n": 5}},
                {"get": "/coded/chunked", "check": {"json": {"/ok": {"type": "boolean", "==": True}, "": {"type": "object", "length": 3}}}},
                {"get": "/coded/gzip", "name": "cut", "check": {"body": {"contains": "ok"}}, "body_limit": 100},
                {"get": "/items/4", "extract": {"a": "/nothing"}, "name": "nothing"},
                {"get": "/items/4", "extract": {"b": {"json": "/nothing", "default": "x${user}"}, "c": {"json": "/no", "default": 7}, "d": "/name"}},
                {"post": "/echo", "json": ["${b}", "${c}", "${d}"], "name": "defaults"},
                {"get": "/items/4", "name": "all kinds", "check": [
                    {"status": {">=": 200, "<": 300}}, {"time": {"<": 10}}, {"headers": {"Content-Type": {"matches": "(?<kind>json)\\z"}}},
                    {"json": {"/id": {"==": "${four}", "!=": 5, ">": 3.5, "<=": 4}, "/name": {"length": {"<": 7}, ">": "item"}, "/x": {"!=": 1}, "/ok": {"!=": "true"}}}]},
                {"get": "/items/4", "name": "fails", "check": {"json": {"/name": {"matches": "^\\d"}}}},
                {"get": "/items/4", "name": "fails of a variable", "check": {"json": {"/name": "${word}"}}},
            ]},
            {"name": "blocks", "steps": [
                {"set": {"i": 0, "s": "abc"}},
                {"while": {"i": {"<": 3}}, "steps": [{"set": {"i": "${i}1"}}, "/items/1"]},
                {"while": {"s": "abc"}, "limit": 4, "steps": ["/items/2"]},
                {"repeat": 0, "steps": ["/items/3"]}, {"repeat": 2, "steps": ["/items/2"]},
                {"repeat": "${four}", "steps": ["/items/20"]},
                {"if": {"s": {"matches": "^a.c$", "length": 3}, "i": {">": 0}}, "then": ["/items/4"], "else": ["/items/5"]},
                {"if": {"s": {"!=": "abc"}}, "then": ["/items/6"], "else": ["/items/7", {"repeat": 2, "steps": [{"repeat": 2, "steps": ["/items/8"]}]}]},
                {"if": {"maybe": {"exists": False}}, "then": ["/items/9"]},
                {"if": {"maybe": "x"}, "then": [{"set": {"maybe": "x"}}, "/items/10"]},
                {"group": "good", "steps": ["/items/1", {"pause": 0.01}, {"group": "inner", "steps": ["/items/2", {"pause": "0.0${four}"}]}]},
                {"group": "bad", "steps": ["/items/3", "/status/500"]},
                {"group": "left", "steps": ["/items/4", {"stop": "task"}, "/never"]},
            ]},
            {"name": "failures", "steps": [
                {"if": {"random(1, 2)": 3}, "then": [{"set": {"later": 1}}]},
                {"get": "/echo/${later}"},
                {"set": {"line": "a\nb", "bad": "http://no host/"}},
                {"get": "/echo", "headers": {"X-Test": "${line}"}, "name": "header"},
                {"get": "${bad}", "name": "url"},
                {"get": "http://127.0.0.1:9/", "name": "refused"},
                {"get": "/slow?s=3", "name": "too slow", "timeout": 0.2},
                {"get": "/slow?s=3", "name": "first byte too slow", "timeout": {"connect": 5, "first_byte": 0.2}},
                {"get": "/status/404", "name": "expected", "expect": [200, 404]},
                {"get": "/items/1", "name": "not expected", "expect": [201]},
                {"get": "/hostile/closed"}, {"get": "/hostile/short"}, {"get": "/hostile/garbage"}, {"get": "/hostile/loop"}, {"get": "/hostile/nowhere"},
                {"log": "at ${user} ${place}"},
                {"get": "/status/500", "name": "last", "on_failure": "stop task"},
                "/never",
            ]},
        ],
    }],
}
SIZED = {"/coded/gzip", "/coded/chunked", "cut", "nothing", "not followed", "/items/1", "last", "too slow", "good", "refused"}
FILES = {"rows.csv": "\ufeffrow;other-row\r\n1;\"a;\"\"b\"\r\n\r\n2;c\n3;d", "kept.csv": "k1,x\nk2,y\n", "bytes.bin": bytes(range(256))}


def language(tmp_path):
    folder = tmp_path / "scenario"
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    path = folder / "language.json"
    path.write_text(json.dumps(LANGUAGE))
    return path


@pytest.mark.parametrize("version", ["2.47.0", "2.12.1"])
def test_the_whole_language(tmp_path, version):
    path = language(tmp_path)
    how = {"users": 1, "time": "6s"}
    ours = by_cicada(path, tmp_path, more=["--set", "place=HOST"], **how)
    theirs = by_locust(path, tmp_path, version=version, more=["--place", "HOST"], **how)
    a, b = ([masked(request, run.host) for request in run.in_order] for run in (ours, theirs))
    both = min(len(a), len(b)) - 1  # the last one is on_stop's
    assert both > 80
    for number in range(both):
        assert a[number] == b[number], number
    assert a[-1] == b[-1] and a[-1][1] == "/echo/stop"
    assert set(ours.stats) == set(theirs.stats)
    assert set(ours.errors) == set(theirs.errors)
    for row, (requests, failures, size) in ours.stats.items():
        other_requests, other_failures, other_size = theirs.stats[row]
        assert failures / requests == other_failures / other_requests, row
        if row[1] in SIZED:
            assert size == other_size, row
    assert "at 1 :place" in ours.log and "at 1 :place" in theirs.log


# --- what is not a request ---

STAGES = {
    "wait_time": 0.01,
    "stages": [{"duration": 1, "users": 2, "spawn_rate": 100}, {"duration": "2s", "users": 3, "spawn_rate": 100, "user_classes": ["A"]}],
    "users": [{"name": "A", "tasks": ["/items/1"]}, {"name": "B", "tasks": [{"steps": ["/items/2"]}]}],
}


def scenario_of(tmp_path, value):
    folder = tmp_path / "scenario"
    folder.mkdir(exist_ok=True)
    path = folder / "s.json"
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize("version", ["2.47.0", "2.12.1"])
def test_stages(tmp_path, version):
    run = by_locust(scenario_of(tmp_path, STAGES), tmp_path, version=version, users=50, time=None)
    assert run.status == 0, run.log
    assert set(run.stats) == {("GET", "/items/1"), ("GET", "/items/2")}
    assert len(run.by_user) == 3  # and it ended by itself


@pytest.mark.parametrize("version", ["2.47.0", "2.12.1"])
def test_a_step_stops_the_run(tmp_path, version):
    scenario = {"users": [
        {"name": "A", "fixed_count": 1, "tasks": [{"steps": ["/items/1", {"pause": 0.3}, {"stop": "run"}, "/items/2"]}]},
        {"name": "B", "tasks": [{"steps": ["/slow?s=0.2"]}], "on_stop": ["/items/3"]}]}
    run = by_locust(scenario_of(tmp_path, scenario), tmp_path, version=version, users=3, time="60s")
    paths = collections.Counter(path for _, path, _, _ in run.requests)
    assert paths["/items/1"] == 1 and paths["/items/2"] == 0 and paths["/items/3"] == 2


@pytest.mark.parametrize("version", ["2.47.0", "2.12.1"])
def test_under_a_master(tmp_path, start_master, start_python_worker, version):
    """Arguments of the master, shares of a feed by the worker's number, and a stop of all users of one worker."""
    server = serve()
    (tmp_path / "rows.csv").write_text("row\n" + "".join("%d\n" % n for n in range(1, 21)))
    path = tmp_path / "s.json"
    path.write_text(json.dumps({
        "variables": {"token": None, "own": "mine"}, "feeds": [{"file": "rows.csv", "at_end": "stop", "workers": 2}],
        "users": [{"name": "Asker", "weight": 3, "wait_time": 0.01, "tasks": [
            {"steps": [{"get": "/items/${row}", "name": "row", "headers": {"X-Test": "${worker} ${token}"}},
                       {"get": "/echo", "name": "with ${token} of ${own}"}]}]},
            {"name": "Stopper", "fixed_count": 1, "wait_time": 100, "tasks": [
                {"steps": [{"pause": 2}, "/echo/stops", {"stop": "run"}, "/never"]}]},
            {"name": "Watcher", "fixed_count": 4, "wait_time": 0.05, "tasks": ["/echo/watches"]}]}))
    made, _ = locustfile(path, tmp_path)
    master = start_master(version=version, host="http://127.0.0.1:%d" % server.server_address[1], users=9, rate=100, run_time=6,
                          workers=2, locustfile=made, args=["--token", "s3cr3t"])
    workers = [start_python_worker(master.port, version=version, name="worker-%d" % n, locustfile=made,
                                   args=["--loglevel", "DEBUG"]) for n in (1, 2)]
    assert master.wait(60) == 0
    for worker in workers:
        assert worker.wait(20) == 0 and "Traceback" not in worker.text() and "s3cr3t" not in worker.text()
    assert "with :token of mine" in master.text() and "s3cr3t" not in master.text()
    paths = [(request[1:3], dict(request[3])) for request in server.state.requests]
    rows_of = {(path, headers["x-test"]) for (_, path), headers in paths if path.startswith("/items/")}
    assert rows_of == {("/items/%d" % n, "%d s3cr3t" % ((n - 1) % 2)) for n in range(1, 21)}
    assert not any(path == "/never" for (_, path), _ in paths)
    stopped = [path for (_, path), _ in paths].index("/echo/stops")
    connections = [{request[0] for request in part if request[2] == "/echo/watches"}
                   for part in (server.state.requests[:stopped], server.state.requests[stopped + 20:])]
    assert connections[1] < connections[0]  # those of the other worker go on, no new ones come
    server.shutdown()
    server.server_close()


def test_urls_without_a_host(tmp_path):
    """And a redirect to another host, for which headers of the first one are not meant."""
    scenario = {"variables": {"place": None}, "tasks": [{"steps": [
        {"get": "${place}/echo/alone", "name": "absolute"},
        {"get": "${place}/hostile/elsewhere", "name": "elsewhere", "headers": {"Host": "a.example", "Authorization": "Basic eA==", "X-Test": "stays"}},
        {"pause": 0.1}]}]}
    path = scenario_of(tmp_path, scenario)
    ours = by_cicada(path, tmp_path, more=["--set", "place=HOST"], host=False)
    theirs = by_locust(path, tmp_path, more=["--place", "HOST"], host=False)
    a, b = ([masked(request, run.host) for request in run.in_order] for run in (ours, theirs))
    assert a[:3] == b[:3] and a[2][1] == "/echo/landed"
    assert ours.status == theirs.status == 0 and set(ours.stats) == set(theirs.stats)


@pytest.mark.parametrize("password", ["right", "wrong"])
def test_a_proxy(tmp_path, password):
    with Proxy("me:right") as proxy:
        scenario = {"proxy": "http://me:%s@%s" % (password, proxy.address), "wait_time": 0.1, "tasks": [{"steps": [
            "/items/1", {"post": "/echo", "body": "x"}, {"get": "https://%s/" % proxy.address, "name": "tunnel"}]}]}
        path = scenario_of(tmp_path, scenario)
        proxy.refuse = password == "wrong"
        ours = by_cicada(path, tmp_path)
        by_ours = set(proxy.seen)
        theirs = by_locust(path, tmp_path)
        assert set(ours.errors) == set(theirs.errors) and set(ours.stats) == set(theirs.stats)
        assert {line.split(" ")[0] for line in by_ours} == {"GET", "POST", "CONNECT"}
    if password == "wrong":
        assert set(ours.errors) == {("GET", "/items/1", "HTTP status 407"), ("POST", "/echo", "HTTP status 407"),
                                    ("GET", "tunnel", "refused by the proxy")}


def test_what_python_cannot_do_is_told(tmp_path):
    scenario = {"arrival": {"rate": 5}, "thresholds": ["p95 < 300"], "http2": True, "proxy": "socks5://me:geheim@h:1", "tasks": [
        {"steps": [{"get": "/", "check": {"body": {"matches": "a\\Kb"}}}]}]}
    path, told = locustfile(scenario_of(tmp_path, scenario), tmp_path)
    lines = told.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["regular expression 'a\\Kb'", "http2", "proxy", "arrival", "thresholds"], told
    assert "geheim" not in told
    with open(path) as f:
        text = f.read()
    for line in lines:
        assert "# " + line.split(": ", 1)[1].replace("\\", "\\\\") in text


ARGUMENTS = """
import sys
sys.argv = ["locust", "-f", sys.argv[1]]
import importlib.util
from locust import argument_parser
spec = importlib.util.spec_from_file_location("scenario", sys.argv[2])
spec.loader.exec_module(importlib.util.module_from_spec(spec))
parser = argument_parser.get_parser()
for name, action in sorted(parser.args_included_in_web_ui.items()):
    if "scenario" in (action.help or ""):
        print(name, repr(action.default), getattr(action, "is_secret", None))
"""


@pytest.mark.parametrize("version, knows_secrets", [("2.47.0", True), ("2.12.1", False)])
def test_variables_are_custom_arguments(tmp_path, version, knows_secrets):
    path, _ = locustfile(scenario_of(tmp_path, {"variables": {"region": "eu", "api-token": None, "n": 3, "host": "x"}, "tasks": ["/"]}), tmp_path)
    python = os.path.join(os.path.dirname(locust(version)), "python")
    out = subprocess.run([python, "-c", ARGUMENTS, path, path], stdout=subprocess.PIPE, text=True, check=True).stdout
    secret = [True, False] if knows_secrets else [None, None]
    assert out == "api-token '' %s\nn '3' %s\nregion 'eu' %s\n" % (secret[0], secret[1], secret[1])


NAMES = """
import builtins, importlib.util, inspect, json, keyword
spec = importlib.util.spec_from_file_location("made", PATH)
made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)
"""


def names_of(version, path, ask):
    """What a program that has loaded the locustfile as `made` prints, as JSON."""
    python = os.path.join(os.path.dirname(locust(version)), "python")
    text = NAMES.replace("PATH", repr(str(path))) + "print(json.dumps(%s))" % ask
    return json.loads(subprocess.run([python, "-c", text], stdout=subprocess.PIPE, text=True, check=True).stdout)


@pytest.mark.parametrize("version", ["2.47.0", "2.12.1"])
def test_no_name_of_a_scenario_is_in_the_way(tmp_path, version):
    """Tasks and classes named like whatever a user, the file or Python has."""
    path, _ = locustfile(scenario_of(tmp_path, {"tasks": ["/"]}), tmp_path)
    own = names_of(version, path, "[n for n in dir(made.ScenarioUser) if not n.startswith('__')]")
    loaded = names_of(version, path, "[n for n in dir(made) + dir(builtins) + keyword.kwlist if not n.startswith('__') and n != 'User']")
    tasks = [{"name": n, "steps": ["/"]} for n in own + ["while", "None"]]
    users = [{"name": "First", "tasks": tasks}] + [{"name": n, "tasks": ["/"]} for n in dict.fromkeys(loaded + own)]
    path, _ = locustfile(scenario_of(tmp_path, {"users": users}), tmp_path)
    ask = "[[t.__name__ for t in made.First.tasks], [n for n in %r if n not in ('tasks', 'abstract', 'weight') and " \
          "inspect.getattr_static(made.First, n) is not inspect.getattr_static(made.ScenarioUser, n)], " \
          "sorted(c.__name__ for c in vars(made).values() if isinstance(c, type) and issubclass(c, made.ScenarioUser) and not c.abstract)]" % own
    names, hidden, classes = names_of(version, path, ask)
    assert names == [t["name"] for t in tasks] and not hidden
    assert classes == sorted(u["name"] for u in users)


@pytest.mark.parametrize("name, told", [
    ("-", "cicada: locustfile: the scenario has to be a file, for it may name others beside it\n"),
    ("http://127.0.0.1/x", "cicada: locustfile: a URL alone has no file: write a scenario, such as {\"host\": \"http://…\", \"tasks\": [\"/\"]}\n"),
    ("nothing.yaml", "nothing.yaml: No such file or directory\n"),
    ("tasks.so", "cicada: locustfile: tasks.so: tasks in C run in C workers only, a locustfile is made of a scenario\n"),
    ("locustfile.py", "cicada: locustfile.py: is a locustfile, not a scenario\n"),
    ("faulty.yaml", "faulty.yaml:1: tasks[0].steps[0].gett: unknown key; did you mean 'set'?\n"
                    "faulty.yaml:1: tasks[1].wieght: unknown key; did you mean 'weight'?\n"),
])
def test_what_is_no_scenario(tmp_path, name, told):
    locustfile(scenario_of(tmp_path, {"tasks": ["/"]}), tmp_path)
    (tmp_path / "faulty.yaml").write_text("tasks: [{steps: [{gett: /}]}, {steps: [/], wieght: 1}]\n")
    done = subprocess.run([CICADA, "locustfile", name], cwd=str(tmp_path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", told)


def test_the_same_scenario_gives_the_same_file(tmp_path):
    path = language(tmp_path)
    runs = [subprocess.run([CICADA, "locustfile", str(path)], stdout=subprocess.PIPE, check=True).stdout for _ in range(2)]
    assert runs[0] == runs[1] and runs[0].isascii()

"""What the language promises beyond the examples: where values go, what fails and how it is told, and how users end.
Both HTTP engines where they could differ."""
import json
import subprocess
import uuid

import pytest

from scenario_run import CICADA, ENGINES, Run


@pytest.fixture
def run(tmp_path):
    def run(scenario, engine="fast", *flags, **settings):
        path = tmp_path / "scenario.json"
        path.write_text(scenario if isinstance(scenario, str) else json.dumps(scenario))
        return Run(str(path), engine, *flags, **dict({"users": 1, "iterations": 1}, **settings))
    return run


def once(*steps, **more):
    return dict({"tasks": [{"name": "t", "steps": list(steps)}]}, **more)


@pytest.mark.parametrize("engine", ENGINES)
def test_variables_in_every_place(run, engine):
    r = run(dict(once(
        {"set": {"word": "b c&d", "n": 5, "quote": "say \"hi\"\n"}},
        {"put": "/echo/${word}/x?y=${word}", "query": {"${n}": ["${word}", "z"]}, "headers": {"X-Test": "${n} of ${user}"},
         "json": {"n": "${n}", "text": "n=${n}", "${word}": "${quote}", "flag": "${flag}"}, "name": "json"},
        {"post": "/echo", "form": {"a": "${word}", "${n}": "${quote}"}, "name": "form"},
        {"post": "/echo", "body": "<${word}> $${n} ${quote}", "name": "${word} ${n}"},
        {"pause": "0.0${n}"},
        {"repeat": "${n}", "steps": [{"set": {"n": "${n}1"}}]},
        {"get": "${place}/echo/whole?n=${n}"},
        {"post": "/echo", "host": "${place}", "name": "host", "multipart": {"f": "${n}"}},
        {"post": "/echo", "name": "many", "body": "${uuid} ${random(7, 7)} ${timestamp} ${timestamp_ms} ${counter} ${user} ${worker}"},
    ), variables={"place": None, "flag": True}), engine, "--set", "place=HOST").has_all()
    assert r.status == 0 and not r.failures, r.log
    json_, form, text, whole, host, many = r.seen["echoes"]
    assert json_ == ["/echo/b%20c&d/x?y=b%20c&d&5=b+c%26d&5=z", "5 of 1",
                     '{"n": 5, "text": "n=5", "b c&d": "say \\"hi\\"\\n", "flag": true}']
    assert form[2] == "a=b+c%26d&5=say+%22hi%22%0A"
    assert text[2] == "<b c&d> ${n} say \"hi\"\n"
    assert whole[0] == "/echo/whole?n=511111"
    assert 'name="f"\r\n\r\n511111\r\n' in host[2]
    parts = many[2].split()
    assert uuid.UUID(parts[0]).version == 4 and parts[1] == "7" and parts[4:] == ["1", "1", "0"]
    assert 0 <= int(parts[3]) / 1000 - int(parts[2]) < 5
    assert set(r.requests) == {("PUT", "json"), ("POST", "form"), ("POST", "b c&d 5"), ("GET", "/:place/echo/whole"),
                               ("POST", "host"), ("POST", "many")}


def test_what_comes_from_outside_is_not_shown(run):
    r = run(once(
        {"get": "/echo/${token}"},
        {"get": "/echo", "name": "by ${token}"},
        {"get": "${token}/x"},
        {"set": {"copy": "<${token}>"}},
        {"get": "/echo", "name": "copy ${copy}"},
        {"log": "token ${token} copy ${copy} count ${n}"},
        {"get": "/echo/9", "check": {"json": {"/path": "${token}"}}},
        variables={"token": None, "n": 3}), "fast", "--set", "token=s3cr3t").has_all()
    assert r.seen["echoes"][0][0] == "/echo/s3cr3t"
    assert "s3cr3t" not in r.log and not any("s3cr3t" in name for _, name in r.requests)
    assert set(name for _, name in r.requests) == {"/echo/:token", "by :token", "/:token/x", "copy :copy", "/echo/9"}
    assert "token :token copy :copy count 3" in r.log
    assert 'GET /echo/9: check failed: json /path == "${token}"' in r.log


@pytest.mark.parametrize("engine", ENGINES)
def test_bodies_are_seen_decoded_and_whole(run, engine):
    check = {"json": {"/text": {"length": 1000, "contains": "\u00e9 caf"}, "/n": 1.5}}
    r = run(once(
        {"get": "/coded/gzip", "check": check, "extract": {"n": "/n", "all": {"regex": "(?s)^(.*)$"}}},
        {"get": "/coded/chunked", "check": check},
        {"post": "/echo", "body": "${n} ${all}", "name": "n"},
        {"get": "/coded/gzip", "name": "cut", "check": check, "body_limit": 100},
        {"get": "/coded/chunked", "name": "just", "check": {"body": {"contains": "ok"}}, "body_limit": 1237 + 2000},
    ), engine)
    assert r.failures == {("GET", "cut"): 1}, r.log
    assert "GET cut: body larger than body_limit" in r.log
    sent = r.seen["echoes"][0][2]
    assert sent.startswith('1.5 {"ok": true') and json.loads(sent[4:])["text"] == "caf\u00e9 " * 200


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cookie_of_a_redirect_is_found(run, engine):
    r = run(once(
        {"get": "/redirect", "name": "followed", "check": {"json": {"/id": 5}}, "extract": {"seen": {"cookie": "seen"}}},
        {"get": "/redirect", "name": "not followed", "redirects": False, "check": {"status": 302, "headers": {"location": "/items/5", "X-No": {"exists": False}}},
         "extract": {"next": {"header": "LOCATION"}, "again": {"cookie": "seen"}}},
        {"get": "${next}", "headers": {"X-Test": "${seen} ${again}"}},
        {"post": "/echo", "name": "e", "headers": {"X-Test": "${seen} ${again}"}},
    ), engine)
    assert r.status == 0 and not r.failures, r.log
    assert r.seen["echoes"][0][1] == "yes yes"
    assert r.requests["GET", "/items/:id"] == 1


def test_what_cannot_be_sent_is_a_failure_and_the_task_goes_on(run):
    r = run(once(
        {"if": {"random(1, 2)": 3}, "then": [{"set": {"later": 1}}]},
        {"get": "/echo/${later}"},
        {"set": {"line": "a\nb"}},
        {"get": "/echo", "headers": {"X-Test": "${line}"}, "name": "header"},
        {"set": {"bad": "http://no host/"}},
        {"get": "${bad}", "name": "url"},
        {"get": "/items/1"},
    ))
    assert r.counts == {"GET /items/:id 200": 1}
    assert r.failures == {("GET", "/echo/:later"): 1, ("GET", "header"): 1, ("GET", "url"): 1}
    for text in ("/echo/:later: variable has no value: later", "header: request has a header value with control characters",
                 "url: request has no valid URL"):
        assert text in r.log


def test_failed_extraction(run):
    r = run(once(
        {"get": "/items/4", "name": "none", "extract": {"a": "/nothing"}},
        {"get": "/items/4", "name": "default", "extract": {"b": {"json": "/nothing", "default": "x${user}"}}},
        {"get": "/", "name": "no JSON", "extract": {"c": "/a"}},
        {"get": "/status/500", "name": "status", "extract": {"d": "/ok"}},
        {"get": "/items/4", "name": "object", "extract": {"whole": {"json": ""}, "id": "/id"}},
        {"post": "/echo", "json": {"whole": "${whole}", "b": "${b}", "id": "${id}"}, "name": "echo"}))
    assert r.failures == {("GET", "none"): 1, ("GET", "no JSON"): 1, ("GET", "status"): 1}
    assert "GET none: extraction failed: a" in r.log and "GET status: HTTP status 500" in r.log
    assert json.loads(r.seen["echoes"][0][2]) == {"whole": {"ok": True, "id": 4, "name": "item 4"}, "b": "x1", "id": 4}


def test_conditions_and_loops(run):
    r = run(once(
        {"set": {"n": 0, "s": "abc"}},
        {"while": {"n": {"<": 3}}, "steps": [{"set": {"n": "${n}1"}}, "/items/1"]},  # 0, 01, 011
        {"while": {"s": "abc"}, "limit": 4, "steps": ["/items/2"]},
        {"repeat": 0, "steps": ["/items/3"]},
        {"if": {"s": {"matches": "^a.c$", "length": 3}, "n": {">": 0}}, "then": ["/items/4"], "else": ["/items/5"]},
        {"if": {"s": {"!=": "abc"}}, "then": ["/items/6"], "else": ["/items/7", {"repeat": 2, "steps": [{"repeat": 2, "steps": ["/items/8"]}]}]},
        {"if": {"maybe": {"exists": False}}, "then": ["/items/9"]},
        {"if": {"maybe": "x"}, "then": [{"set": {"maybe": "x"}}, "/items/10"]},
    )).has_all()
    assert r.seen["items"] == [1, 1, 2, 2, 2, 2, 4, 7, 8, 8, 8, 8, 9]


@pytest.mark.parametrize("engine", ENGINES)
def test_groups(run, engine):
    r = run(once(
        {"group": "good", "steps": ["/items/1", {"pause": 0.3}, {"group": "inner", "steps": ["/items/2"]}]},
        {"group": "bad", "steps": ["/items/3", "/status/500"]},
        {"group": "left", "steps": ["/items/4", {"stop": "task"}]}), engine)
    assert {k: v for k, v in r.requests.items() if k[0] == "GROUP"} == {("GROUP", "good"): 1, ("GROUP", "inner"): 1, ("GROUP", "bad"): 1}
    assert r.failures == {("GET", "/status/500"): 1, ("GROUP", "bad"): 1}
    assert "GROUP bad: a request of the group failed" in r.log


def test_stop_run(run):
    r = run({"users": [
        {"name": "A", "fixed_count": 1, "tasks": [{"steps": ["/items/1", {"stop": "run"}, "/items/2"]}]},
        {"name": "B", "tasks": [{"steps": ["/slow?s=30"]}], "on_stop": ["/items/3"]}]}, users=3, iterations=0)
    assert r.seen["items"].count(1) == 1 and 2 not in r.seen["items"]
    assert r.seen["items"].count(3) == 2  # cut, and yet on_stop was done
    assert "a step of the scenario stopped the run" in r.log


def test_a_run_that_never_waits_does_not_hang(run):
    r = run({"users": [
        {"name": "Idle", "fixed_count": 1, "tasks": [{"steps": [{"set": {"a": 1}}]}]},
        {"name": "Loop", "fixed_count": 1, "tasks": [{"steps": [{"repeat": 1000000, "steps": [{"set": {"b": 1}}]}]}]},
        {"name": "Busy", "fixed_count": 1, "wait_time": 0.01, "tasks": ["/items/1"]}]}, users=3, iterations=0, time="1s")
    assert r.status == 0 and r.seen["items"].count(1) > 10


def check(command, path, *flags):
    done = subprocess.run([CICADA] + command + [str(path)] + list(flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout, done.stderr


def test_a_variable_that_must_be_given(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("variables: {a: null}\nhost: http://127.0.0.1:9\ntasks: ['/${a}']\n")
    assert check(["--headless", "-t", "1s", "-f"], path) == (
        2, "", "cicada: variable 'a' has no value: give it by --set, or as an argument of the master\n")
    assert check(["check"], path, "--set", "b=s3cr3t") == (2, "", "cicada: --set: the scenario declares no variable 'b'; it has: a\n")
    assert check(["check"], path, "--set", "s3cr3t") == (2, "", "cicada: --set: must be NAME=VALUE\n")
    status, out, _ = check(["check"], path, "--set", "a=s3cr3t")
    assert status == 0 and "variables a (must be given)\n" in out and "s3cr3t" not in out


def test_check_tells_all_faults(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("tasks:\n  - steps:\n      - {get: /, chek: 1}\n      - {pause: -1}\n  - {steps: [/], wieght: 2}\n")
    status, out, err = check(["check"], path)
    assert (status, out) == (2, "")
    assert err == "".join(str(path) + line for line in (
        ":3: tasks[0].steps[0].chek: unknown key; did you mean 'check'?\n",
        ":4: tasks[0].steps[1].pause: must be a number from 0 to 1000000, not -1\n",
        ":5: tasks[1].wieght: unknown key; did you mean 'weight'?\n"))

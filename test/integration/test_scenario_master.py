"""A scenario under a real master: its custom arguments are variables, and rows of a feed are dealt out to the workers."""
import collections
import json
import urllib.request

import app
import pytest

LOCUSTFILE = '''
from locust import HttpUser, events, task

@events.init_command_line_parser.add_listener
def arguments(parser):
    parser.add_argument("--token", is_secret=True, default="unset")
    parser.add_argument("--count", type=int, default=2)
    parser.add_argument("--flag", action="store_true")
    parser.add_argument("--empty", default="")
    parser.add_argument("--own", default="scenario")  # the scenario's own: it says nothing

class Asker(HttpUser):
    @task
    def ask(self):
        pass
'''

SCENARIO = {
    "variables": {"token": None, "count": 0, "flag": "none", "empty": "full", "local": None, "own": "scenario"},
    "feeds": [{"file": "rows.csv", "order": "sequential", "at_end": "stop", "workers": 2}],
    "users": [{
        "name": "Asker",
        "wait_time": 0.01,
        "on_start": [{"post": "/echo", "json": {"t": "${token}", "c": "${count}", "f": "${flag}", "e": "${empty}", "l": "${local}", "o": "${own}"},
                      "name": "start"}],
        "tasks": [{"steps": [{"get": "/items/${row}", "name": "row ${row}", "headers": {"X-Test": "${worker}"}},
                             {"get": "/echo", "name": "with ${token}"}]}],
    }],
}


@pytest.fixture
def application():
    server = app.serve()
    yield server
    server.shutdown()
    server.server_close()


def seen(server):
    with urllib.request.urlopen("http://127.0.0.1:%d/counts" % server.server_address[1]) as answer:
        return json.load(answer)


def test_arguments_of_the_master_and_shares_of_a_feed(tmp_path, application, start_master, start_cicada):
    locustfile, scenario = tmp_path / "locustfile.py", tmp_path / "scenario.json"
    locustfile.write_text(LOCUSTFILE)
    scenario.write_text(json.dumps(SCENARIO))
    (tmp_path / "rows.csv").write_text("row\n" + "".join("%d\n" % n for n in range(1, 42)))
    url = "http://127.0.0.1:%d" % application.server_address[1]
    master = start_master(host=url, users=4, rate=100, run_time=4, workers=2, locustfile=str(locustfile),
                          args=["--token", "s3cr3t", "--count", "7", "--flag"])
    workers = [start_cicada(master.port, scenario=str(scenario), name="cicada-%d" % n,
                            args=["--set", "local=l0cal", "--set", "token=overruled", "--set", "own=mine"]) for n in (1, 2)]
    assert master.wait(60) == 0
    for worker in workers:
        assert worker.wait(20) == 0
        assert "s3cr3t" not in worker.text() and "l0cal" not in worker.text()
        assert worker.text().count("has no more rows") == 1
    assert "s3cr3t" not in master.text()
    state = seen(application)
    bodies = [json.loads(body) for _, _, body in state["seen"]["echoes"] if body]
    # texts stay texts, unless the scenario has a number itself
    assert bodies == [{"t": "s3cr3t", "c": 7, "f": "true", "e": "", "l": "l0cal", "o": "mine"}] * 4
    # every row once, by whichever of the two it belongs to
    assert sorted(state["seen"]["items"]) == list(range(1, 42))
    assert collections.Counter(state["seen"]["items"]).most_common(1)[0][1] == 1

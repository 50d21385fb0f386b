"""The user classes of scenario.json as a locustfile: what the masters run, and Python workers in a mixed fleet.

The master also writes what it knows to the file named by RECORD, one JSON object a line: at each test_stop, and when
it quits. These listeners only read; the worker under test sees a master like any other.
"""
import json
import os

from locust import HttpUser, between, constant, events, task
from locust.runners import MasterRunner

RECORD = os.environ.get("RECORD", "")


class Visitor(HttpUser):
    weight = 3
    wait_time = between(0.05, 0.15)

    @task(3)
    def index(self):
        self.client.get("/")

    @task(1)
    def page(self):
        self.client.get("/10k?kind=page", name="/10k")

    @task(1)
    def missing(self):
        self.client.get("/status/404", name="missing")


class Buyer(HttpUser):
    weight = 1
    wait_time = constant(0.1)

    @task(2)
    def buy(self):
        self.client.post("/accept", data='{"item": 1}', headers={"Content-Type": "application/json"}, name="buy")

    @task(1)
    def redirected(self):
        self.client.get("/redirect")


def record(event, environment, **more):
    stats = environment.runner.stats
    rows = {"%s %s" % (e.method, e.name): [e.num_requests, e.num_failures] for e in stats.entries.values()}
    errors = ["%s %s %s %d" % (e.method, e.name, e.error, e.occurrences) for e in stats.errors.values()]
    line = {
        "event": event,
        "rows": rows,
        "errors": sorted(errors),
        "total": [stats.total.num_requests, stats.total.num_failures],
    }
    line.update(more)
    with open(RECORD, "a") as f:
        f.write(json.dumps(line) + "\n")


@events.init.add_listener
def on_init(environment, **_):
    if not RECORD or not isinstance(environment.runner, MasterRunner):
        return
    environment.events.test_stop.add_listener(lambda **_: record("test_stop", environment))
    environment.events.quit.add_listener(lambda exit_code, **_: record("quit", environment, exit_code=exit_code))

"""The user classes of locustfile.py, with a master that listens to its workers' reports and may tell them the total.

TELL=1    the master tells the workers each half second how many users there are
HOLD=S    a headless master holds its end until the leader has reported, at most S seconds
All of it goes to the file named by RECORD, one JSON object a line: "report" for each "cicada" object, "told" for each
total, and those of locustfile.py.
"""
import json
import os
import time

import gevent
import gevent.event

from locust import events
from locust.runners import MasterRunner

from locustfile import Buyer, RECORD, Visitor  # noqa: F401

whole = gevent.event.Event()
telling = None


def note(event, **more):
    with open(RECORD, "a") as f:
        f.write(json.dumps(dict(more, event=event, at=time.time())) + "\n")


def on_report(client_id, data, **_):
    cicada = data.get("cicada")
    note("report", worker=client_id, cicada=cicada, user_count=data["user_count"],
         requests=data["stats_total"]["num_requests"], least=data["stats_total"]["min_response_time"])
    if cicada and cicada.get("complete"):
        whole.set()


def tell(runner):
    while True:
        users = runner.user_count
        note("told", users=users)
        runner.send_message("cicada_users", {"user_count": users})
        gevent.sleep(0.5)


@events.init.add_listener
def on_init(environment, **_):
    runner = environment.runner
    if not isinstance(runner, MasterRunner):
        return
    events.worker_report.add_listener(on_report)

    def start(**_):
        global telling
        whole.clear()
        if os.environ.get("TELL"):
            telling = gevent.spawn(tell, runner)

    def stopping(**_):
        if telling:
            telling.kill()

    def stop(**_):
        if os.environ.get("HOLD"):
            runner.send_message("stop")
            note("held", whole=whole.wait(float(os.environ["HOLD"])))

    environment.events.test_start.add_listener(start)
    environment.events.test_stopping.add_listener(stopping)
    environment.events.test_stop.add_listener(stop)

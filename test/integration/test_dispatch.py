"""Random ramps through Locust's UsersDispatcher and through ours: the same users of each class at every step."""
import json
import os
import random
import subprocess
import sys

import pytest

from harness.worker import ROOT

TOOL = os.path.join(ROOT, "build/test/tools/dispatch_script")
CASES = 300
STEPS = 400  # of one ramp at most: a ramp may also be replaced before its end

# Run by an interpreter of its own: importing locust patches the standard library.
LOCUST = r"""
import json, sys
import gevent
from locust import dispatch
from locust.dispatch import UsersDispatcher
from locust.runners import WorkerNode

class Replaced(Exception):
    pass

class FakeTime:
    now = 0.0
    slept = 0.0
    replaced = False
    def perf_counter(self):
        return self.now
    def sleep(self, seconds):
        if self.replaced:
            raise Replaced  # as Locust's runner kills the greenlet of a ramp when the next one begins: it sleeps then
        self.slept += seconds

results = []
for case in json.load(sys.stdin):
    clock = FakeTime()
    dispatch.time = clock
    dispatch.gevent = clock
    classes = {name: type(name, (), {"weight": weight, "fixed_count": fixed}) for name, weight, fixed in case["classes"]}
    dispatcher = UsersDispatcher(worker_nodes=[WorkerNode(id="local")], user_classes=list(classes.values()))
    rows = []
    for users, rate, limit, chosen in case["ramps"]:
        dispatcher.new_dispatch(users, float(rate), [classes[name] for name in chosen] or None)
        steps = 0
        clock.replaced = False
        try:
            for nodes in dispatcher:
                if steps:
                    rows[-1][0] = round(clock.slept * 1e6)  # between that step and this one
                clock.slept = 0
                rows.append([0] + [nodes["local"].get(name, 0) for name, _, _ in case["classes"]])
                steps += 1
                if steps == limit:
                    rows[-1][0] = None  # how long it would have been
                    clock.replaced = True
        except Replaced:
            pass
    results.append(rows)
json.dump(results, sys.stdout)
"""


def draw(r):
    names = ["%s%d" % (r.choice(["User", "a", "Z", "Shop_"]), i) for i in range(r.choice([1, 1, 2, 3, 5, 20]))]
    r.shuffle(names)
    fixed_share = r.choice([0, 0, 0.3, 1])
    classes = [[name, r.choice([1, 1, 2, 3, 10, r.randrange(1, 1000)]),
                r.randrange(1, 40) if r.random() < fixed_share else 0] for name in names]
    ramps = []
    for _ in range(r.randrange(1, 6)):
        users = r.choice([0, 1, r.randrange(20), r.randrange(200), r.randrange(1000)])
        rate = r.choice([1, 100, 0.5, 0.33, 7.9, r.randrange(1, 50), round(r.uniform(0.01, 300), 3)])
        chosen = r.sample(names, r.randrange(1, len(names) + 1)) if r.random() < 0.2 else []
        ramps.append([users, str(rate), r.choice([STEPS, STEPS, STEPS, r.randrange(1, 20)]), chosen])
    return {"classes": classes, "ramps": ramps}


def ours(case):
    lines = ["class %s %d %d" % tuple(c) for c in case["classes"]]
    lines += [" ".join(["ramp", str(users), rate, str(steps)] + chosen) for users, rate, steps, chosen in case["ramps"]]
    done = subprocess.run([TOOL], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    return [[int(word) for word in line.split()] for line in done.stdout.splitlines()]


def test_every_step_has_locusts_counts():
    seed = os.environ.get("CICADA_SEED") or str(random.SystemRandom().randrange(2**32))
    print("CICADA_SEED=" + seed)
    r = random.Random(seed)
    cases = [draw(r) for _ in range(CASES)]
    done = subprocess.run([sys.executable, "-c", LOCUST], input=json.dumps(cases), stdout=subprocess.PIPE, text=True,
                          timeout=300, check=True)
    steps = 0
    for case, theirs in zip(cases, json.loads(done.stdout)):
        rows = ours(case)
        assert [row[1:] for row in rows] == [row[1:] for row in theirs], case
        for mine, locusts in zip(rows, theirs):
            assert locusts[0] is None or mine[0] == pytest.approx(locusts[0], abs=2), case
        steps += len(rows)
    assert steps > 20 * CASES

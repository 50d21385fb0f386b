"""Paths, names and JSON bodies of a scenario are those that Locust's HttpUser would send and count: new random ones on
each run, compared with requests and json themselves."""
import json
import os
import random
import subprocess

import requests

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "build/test/tools/scenario_requests")
PIECES = list("abzAZ09-._~!$&'()*+,;=:@/?[]{}|\\^`\"<> #%") + [
    "/./", "/../", "//", "/..", "/.", "%20", "%2F", "%2f", "%41", "%7e", "%c3%a9", "%2e", "%zz", "%", "é", "ß", "€",
    "😀", "?a=1", "&b=[2]"]


def fresh(count):
    seed = int(os.environ.get("SEED", random.randrange(10 ** 9)))
    print("SEED=%d" % seed)
    return random.Random(seed), range(count)


def run(steps):
    scenario = json.dumps({"tasks": [{"steps": steps}]}, ensure_ascii=False).replace("${", "$${")  # no variables
    out = subprocess.run([TOOL], input=scenario.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert out.returncode == 0, out.stderr.decode()
    return [line.split("\t") for line in out.stdout.decode().splitlines()]


def test_paths_and_names_are_those_of_requests():
    rng, numbers = fresh(20000)
    paths = ["/x" + "".join(rng.choices(PIECES, k=rng.randrange(12))) + "x" for _ in numbers]
    paths = ["/" + p[2:-1] + "x" if rng.random() < 0.5 else p for p in paths]
    got = run([{"post": p} for p in paths])
    for path, (url, name, _) in zip(paths, got, strict=True):
        want = requests.Request("POST", "http://h" + path).prepare().path_url
        assert (path, url, name) == (path, want, want)


def value(rng, depth):
    kind = rng.randrange(8 if depth else 6)
    if kind == 6:
        return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 7:
        return {text(rng): value(rng, depth - 1) for _ in range(rng.randrange(4))}
    return [None, True, rng.randrange(-10 ** 25, 10 ** 25), rng.uniform(-1e9, 1e9), rng.random() * 1e-7, text(rng)][kind]


def text(rng):
    points = [rng.choice([rng.randrange(1, 0x80), rng.randrange(1, 0x800), rng.randrange(1, 0xD800), rng.randrange(0x10000, 0x110000)])
              for _ in range(rng.randrange(8))]
    return "k" + "".join(map(chr, points))


def test_json_bodies_are_those_of_json_dumps():
    rng, numbers = fresh(3000)
    values = [{"v%d" % n: value(rng, 4)} for n in numbers]
    got = run([{"post": "/", "json": v} for v in values])
    for one, (_, _, body) in zip(values, got, strict=True):
        assert body == json.dumps(one)

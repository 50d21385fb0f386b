"""The schema of scenarios for editors: it takes every scenario that the loader takes, and refuses what it refuses but for
what is listed as beyond a schema (a variable that nothing sets, a file that is missing, a host's port)."""
import glob
import json
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CASES = os.path.join(ROOT, "test/data/scenario")
# A few lines that stand for ten million values: Python would build them.
TOO_MUCH = {"bad-yaml-bomb"}


def refused(paths):
    out = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "test/integration/schema_faults.py")], input="\n".join(paths),
                         stdout=subprocess.PIPE, check=True, text=True).stdout
    return {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in out.splitlines() if line.split(" ", 1)[1]}


def cases(kind):
    paths = {os.path.basename(os.path.dirname(p)): p for p in glob.glob(CASES + "/%s-*/input.*" % kind)}
    return {name: path for name, path in paths.items() if name not in TOO_MUCH}


def test_what_the_loader_takes_is_taken():
    examples = glob.glob(ROOT + "/examples/*.json") + glob.glob(ROOT + "/examples/*.yaml")
    paths = list(cases("good").values()) + examples
    assert len(paths) > 30
    assert refused(paths) == {}


def test_what_the_loader_refuses_is_refused():
    bad = cases("bad")
    with open(CASES + "/beyond-the-schema") as f:
        beyond = set(f.read().split())
    faults = refused(bad.values())
    taken = {name for name, path in bad.items() if path not in faults}
    assert taken == beyond
    assert len(faults) > 200


def test_the_schema_and_the_loader_know_the_same_keys():
    with open(ROOT + "/docs/scenario.schema.json") as f:
        schema = json.load(f)
    with open(ROOT + "/worker/scenario/load.c") as f:
        source = f.read()
    for key in schema["properties"]:
        assert '.name = "%s"' % key in source, key

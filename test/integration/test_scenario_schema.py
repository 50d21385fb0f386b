"""The schema of scenarios for editors: it takes every scenario that the loader takes, and refuses what it refuses but for
what is listed as beyond a schema (a variable that nothing sets, a file that is missing, a host's port)."""
import glob
import json
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CASES = os.path.join(ROOT, "test/data/scenario")
# A few lines that stand for ten million values: Python would build them.
TOO_MUCH = {"bad-yaml-bomb"}
GENERATORS = {"uuid", "timestamp", "timestamp_ms", "counter", "user", "worker"}


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


def wrapped(value, text):
    """A piece of a scenario made a whole one: what it names is declared, and the files that it names are there."""
    names = set(re.findall(r"(?<!\$)\$\{([A-Za-z_][\w.-]*)\}", text)) - GENERATORS
    names |= {name for name in re.findall(r"while: \{(\w+):", text)}
    if isinstance(value, dict) and not set(value) & {"users", "tasks", "host", "variables", "feeds"}:
        is_task = "steps" in value and not set(value) & {"repeat", "while", "group"}
        value = {"tasks": [value if is_task else {"steps": [value]}]}
    if "users" not in value and "tasks" not in value:
        value["tasks"] = ["/"]
    declared = value.setdefault("variables", {})
    for name in names:
        if '"%s":' % name not in json.dumps(value):
            declared[name] = "x"
    return value


def test_the_documentation_is_right(tmp_path):
    with open(ROOT + "/docs/scenario.md") as f:
        blocks = re.findall(r"^```(json|yaml)\n(.*?)^```", f.read(), re.M | re.S)
    assert len(blocks) > 15
    for name, content in (("users.csv", "user\nann\n"), ("words.txt", "a\nb\n"), ("orders.csv", "order\n" + "1\n" * 20), ("cat.jpg", "cat")):
        (tmp_path / name).write_text(content)
    for kind, text in blocks:
        path = tmp_path / "block.yaml"
        path.write_text(text)
        if kind == "json":
            value = json.loads(text)
        else:
            value = json.loads(subprocess.run(["/usr/bin/python3", "-c", "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))"],
                                              input=text, stdout=subprocess.PIPE, check=True, text=True).stdout)
        path = tmp_path / "block.json"
        path.write_text(json.dumps(wrapped(value, text)))
        done = subprocess.run([ROOT + "/build/cicada", "check", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, text + done.stderr
        assert refused([str(path)]) == {}, text

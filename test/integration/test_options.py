"""Generated command lines, environments and configuration files: read by Locust's own parser and by ours, compared."""
import json
import os
import random
import subprocess
import sys

import pytest

from harness.worker import ROOT

DUMP = os.path.join(ROOT, "build/test/tools/options_dump")
CASES = 400
LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]

# Run by an interpreter of its own: importing locust patches the standard library.
LOCUST = r"""
import contextlib, io, json, os, sys
from locust.argument_parser import get_parser
clean = {k: v for k, v in os.environ.items() if not k.startswith("LOCUST_")}
results = []
for case in json.load(sys.stdin):
    os.chdir(case["folder"])
    os.environ.clear()
    os.environ.update(clean, HOME=case["folder"] + "/me", **case["env"])
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            options = vars(get_parser().parse_args(case["args"]))
        results.append({k: options[k] for k in sys.argv[1].split(",")})
    except SystemExit:
        results.append(errors.getvalue())
json.dump(results, sys.stdout)
"""
# name, letter, variable and number of values of each flag
LOCUSTS_TABLE = r"""
from locust.argument_parser import get_parser
for action in get_parser()._actions:
    names = sorted(action.option_strings, key=len)
    if names:
        print(names[-1], names[0] if len(names) > 1 else "", action.env_var or "",
              "1" if action.nargs is None else str(action.nargs), sep="\t")
"""
NUMBERS = ["worker", "headless", "reset_stats", "master_port", "stop_timeout", "processes", "num_users", "run_time",
           "exit_code_on_error", "stats_history_enabled", "print_stats", "only_summary", "json"]
TEXTS = ["master_host", "locustfile", "host", "logfile", "csv_prefix", "html_file", "json_file"]
LISTS = ["tags", "exclude_tags", "user_classes"]

# long name: letter, abbreviation, environment variable, good values, bad values
VALUES = {
    "--master-host": ("", "--master-h", "LOCUST_MASTER_NODE_HOST", ["a.b", "::1", "10.0.0.1"], []),
    "--master-port": ("", "--master-p", "LOCUST_MASTER_NODE_PORT", ["1", "65535", " 7", "+8"], ["x", "", "1.5"]),
    "--locustfile": ("-f", "--locu", "LOCUST_LOCUSTFILE", ["a.json", "dir/b c.json", "x=y", "é"], []),
    "--host": ("-H", "--hos", "LOCUST_HOST", ["http://h", "https://h/a?b=c#d", "", "h"], []),
    "--logfile": ("", "--logf", "LOCUST_LOGFILE", ["a.log", "-", ""], []),
    "--loglevel": ("-L", "--logl", "LOCUST_LOGLEVEL", ["debug", "INFO", "Warning"], ["WARN", ""]),
    "--stop-timeout": ("-s", "--st", "LOCUST_STOP_TIMEOUT", ["0", "10", "10s", "1m", "1h20m", "2h5s"], ["1.5", "10 s", "s"]),
    "--processes": ("", "--proc", "LOCUST_PROCESSES", ["-1", "0", "4"], ["four"]),
    "--web-port": ("-P", "--web-por", "LOCUST_WEB_PORT", ["8089"], []),
    "--users": ("-u", "--us", "LOCUST_USERS", ["5", "0", " 7"], ["x", "1.5"]),
    "--spawn-rate": ("-r", "--sp", "LOCUST_SPAWN_RATE", ["5", "0.25", "1e2"], ["0", "-1", "inf", "nan", "fast"]),
    "--run-time": ("-t", "--ru", "LOCUST_RUN_TIME", ["5", "1m30s", "2h"], ["1 m", "1.5"]),
    "--exit-code-on-error": ("", "--exi", "LOCUST_EXIT_CODE_ON_ERROR", ["0", "255"], ["x"]),
    "--csv": ("", "--csv", "LOCUST_CSV", ["out", "a/b c"], []),
    "--html": ("", "--ht", "LOCUST_HTML", ["r.html", "{u}"], []),
    "--json-file": ("", "--json-", "", ["out"], []),
}
SWITCHES = {
    "--headless": ("--headl", "LOCUST_HEADLESS"),
    "--reset-stats": ("--res", "LOCUST_RESET_STATS"),
    "--only-summary": ("--only", "LOCUST_ONLY_SUMMARY"),
    "--csv-full-history": ("--csv-", "LOCUST_CSV_FULL_HISTORY"),
    "--print-stats": ("--pri", "LOCUST_PRINT_STATS"),
    "--json": ("--json", ""),
    "--enable-rebalancing": ("--en", ""),
}
LIST_FLAGS = {"--tags": ("-T", "--ta", "LOCUST_TAGS"), "--exclude-tags": ("-E", "--exc", "LOCUST_EXCLUDE_TAGS")}
IGNORED = ["web-port", "enable-rebalancing"]  # we do not look at their values
WORDS = ["a", "b c", "-1", "-", "d=e", "[f]", "'g'", '"h"', "i#j", ";k"]
LIST_TEXTS = ["a", "[]", "[a]", "[a, b]", '["a", "b,c"]', "[1, 2.5, true]", "", "[a,]", "[ a b , c ]", '["a"', "[-1, x]"]


def written(r, name, letter, abbreviation, value, may_shorten):
    """One flag as a user may write it; argparse wants no value that looks like a flag in an argument of its own."""
    forms = [[name, value], [name + "=" + value]]
    if may_shorten:
        forms += [[abbreviation, value], [abbreviation + "=" + value]]
        if letter:
            forms += [[letter, value], [letter + "=" + value]] + ([[letter + value]] if value and value[0] != "=" else [])
    return r.choice(forms)


def draw(r, values, bad, short):
    """A shortened flag hides from ConfigArgParse that it overrules a variable or a file, and what is overruled has to
    be good there: no bad values beside short forms."""
    return r.choice(values + (bad if not short and r.random() < 0.3 else []))


def arguments(r, short):
    args = ["--wo" if short else "--worker"] + r.choice([[], ["-f", "first.json"]])
    for name, (letter, abbreviation, _, good, bad) in VALUES.items():
        for _ in range(r.choice([0, 0, 0, 1, 1, 2])):
            args += written(r, name, letter, abbreviation, draw(r, good, bad, short), short)
    for name, (abbreviation, _) in SWITCHES.items():
        if r.random() < 0.2:
            args.append(abbreviation if short else name)
    for name, (letter, abbreviation, _) in LIST_FLAGS.items():
        if r.random() < 0.3:
            args += [r.choice([name, letter, abbreviation]) if short else name] + r.sample(WORDS, r.randrange(4))
    if r.random() < 0.03:
        args.append(r.choice(["--nonsense", "-x", "--lo=a", "--worker=yes", "--host"]))
    if not short and r.random() < 0.5:  # behind "--" Locust puts what files and variables say: no short forms then
        args += ["--"] + r.sample(["A", "B", "-C"], r.randrange(3))
    return args


def environment(r, short):
    env = {}
    for _, _, variable, good, bad in VALUES.values():
        if variable and r.random() < 0.15:
            env[variable] = draw(r, good, bad, short)
    for _, variable in SWITCHES.values():
        if variable and r.random() < 0.2:
            env[variable] = r.choice(["true", "True", "on", "1", "no", "false"])
    for _, _, variable in LIST_FLAGS.values():
        if r.random() < 0.2:
            env[variable] = r.choice(LIST_TEXTS)
    if r.random() < 0.2:
        env["LOCUST_USER_CLASSES"] = r.choice(["A", " B  C ", ""])
    return env


def config(r, short):
    lines = []
    for name, (_, _, _, good, bad) in VALUES.items():
        if r.random() < 0.2:
            quote = r.choice(["", "", "'", '"'])
            lines.append(r.choice([name, name[2:]]) + r.choice(["=", " = ", ": ", ":", " ", "\t"])
                         + quote + draw(r, good, bad, short) + quote
                         + r.choice(["", "", " # c", " ; c", "\t;c # d", " #", " "] + ([] if short else ["#x"])))
    for name in SWITCHES:
        if r.random() < 0.2:
            lines.append(name[2:] + draw(r, ["", " = true", "=false", ": yes", " on"], [" # c", "="], short))
    for name in LIST_FLAGS:
        if r.random() < 0.2:
            lines.append("%s = %s" % (name[2:], r.choice(LIST_TEXTS)))
    lines += r.sample(["# c", "; c", "", "---", "[section]", "  "], r.randrange(3))
    if r.random() < 0.02:
        lines.append(r.choice(["host#x", "unknown = 1", "= 2"]))
    r.shuffle(lines)
    return r.choice(["\n", "\r\n"]).join(lines) + r.choice(["", "\n"])


def toml(r, short):
    lines = []
    for name, (_, _, _, good, bad) in VALUES.items():
        if r.random() < 0.2:
            lines.append("%s = %s # c" % (name[2:], json.dumps(draw(r, good, bad, short), ensure_ascii=False)))
    lines += ["%s = %s" % (name[2:], r.choice(["true", "false"])) for name in SWITCHES if r.random() < 0.2]
    lines += ["%s = %s" % (name[2:], json.dumps(r.sample(["a", "b c", "1"], r.randrange(3)))) for name in LIST_FLAGS
              if r.random() < 0.2]
    return "[project]\nname = 'x'\n\n[tool.locust]\n%s\n[tool.other]\nhost = 1\n" % "\n".join(lines)


def make_case(r, folder):
    os.makedirs(folder + "/me")
    short = r.random() < 0.5
    args, env = arguments(r, short), environment(r, short)
    if r.random() < 0.5:
        write(folder + "/locust.conf", config(r, short))
    if r.random() < 0.3:
        write(folder + "/me/.locust.conf", config(r, short))
    if r.random() < 0.2:
        write(folder + "/pyproject.toml", toml(r, short))
    if r.random() < 0.2:
        write(folder + "/me/more.conf", config(r, short))
        args += [] if "--" in args else ["--config", r.choice(["~/more.conf", "me/more.conf"])]
    return {"folder": folder, "args": args, "env": env}


def write(path, text):
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def from_locust(cases):
    child = subprocess.run([sys.executable, "-c", LOCUST, ",".join(NUMBERS + TEXTS + LISTS + ["loglevel", "spawn_rate"])],
                           input=json.dumps(cases), stdout=subprocess.PIPE, check=True, text=True)
    for options in json.loads(child.stdout):
        if isinstance(options, str):
            yield None, options
            continue
        expected = {name: [str(int(options[name] or 0))] for name in NUMBERS}
        if options["num_users"] is None:
            expected["num_users"] = ["-1"]
        expected["spawn_rate"] = ["%g" % (options["spawn_rate"] or 0)]
        expected.update({name: [options[name] or ""] for name in TEXTS})
        expected.update({name: [str(x) for x in options[name] or []] for name in LISTS})
        expected["loglevel"] = [str(LEVELS.index(options["loglevel"]))]
        yield expected, ""


def from_ours(case):
    env = {k: v for k, v in os.environ.items() if not k.startswith("LOCUST_")}
    child = subprocess.run([DUMP] + case["args"], cwd=case["folder"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=dict(env, HOME=case["folder"] + "/me", **case["env"]))
    assert child.returncode in (0, 2), child
    if child.returncode == 2:
        assert len(child.stderr.splitlines()) == 1
        return None, child.stderr.decode()
    return {line.split("\t")[0]: line.split("\t")[1:] for line in child.stdout.decode().splitlines()}, ""


def test_every_flag_of_locust_is_known():
    """Under the same letter and variable, and with as many values, or its value would be taken for something else."""
    ours = {line.split("\t")[0]: line for line in subprocess.check_output([DUMP], text=True).splitlines()}
    theirs = subprocess.check_output([sys.executable, "-c", LOCUSTS_TABLE], text=True).splitlines()
    assert len(theirs) > 50
    for line in theirs:
        assert ours.get(line.split("\t")[0]) == line


def test_options_are_read_as_locust_reads_them(tmp_path):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    r = random.Random(seed)
    cases = [make_case(r, "%s/%d" % (tmp_path, i)) for i in range(CASES)]
    accepted = 0
    for case, (expected, message) in zip(cases, from_locust(cases)):
        options, refusal = from_ours(case)
        if expected is None and any(name in message for name in IGNORED):
            continue
        if expected and expected["master_host"] == [":1"]:  # "::1" behind a name in a file: one colon is the separator
            assert "--master-host: give the name or address alone" in refusal, json.dumps(case)
            continue
        if expected and expected["locustfile"] == ["locustfile.py"]:  # its default; we have none
            assert "nothing to run" in refusal, json.dumps(case)
            continue
        assert options == expected, "%s\n%s\n%s%s" % (json.dumps(case), files(case), message, refusal)
        accepted += options is not None
    assert accepted > CASES / 10


def files(case):
    text = ""
    for folder, _, names in os.walk(case["folder"]):
        for name in names:
            with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
                text += "--- %s\n%s\n" % (name, file.read())
    return text


def test_a_home_out_of_reach_holds_no_file(tmp_path):
    """As where the container's user is not the owner of HOME."""
    done = subprocess.run([DUMP, "--headless", "http://h"], env={"HOME": "/dev/null"}, cwd=str(tmp_path),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, b"")


CLASSES = """
from locust import HttpUser, task
class Second(HttpUser):
    weight = 3
    @task(2)
    def a(self): pass
    @task
    def b(self): pass
class First(HttpUser):
    weight = 4
    @task
    def c(self): pass
class Fixed(HttpUser):
    fixed_count = 2
    @task
    def d(self): pass
"""
SCENARIO = {"users": [
    {"name": "Second", "weight": 3, "tasks": [{"name": "a", "weight": 2, "steps": ["/"]}, {"name": "b", "steps": ["/"]}]},
    {"name": "First", "weight": 4, "tasks": [{"name": "c", "steps": ["/"]}]},
    {"name": "Fixed", "fixed_count": 2, "tasks": [{"name": "d", "steps": ["/"]}]}]}


@pytest.mark.parametrize("arguments", [
    ["--list"], ["-l", "First"], ["--show-task-ratio"], ["--show-task-ratio", "-u", "9", "--headless"],
    ["--show-task-ratio", "Second"], ["--show-task-ratio-json"], ["--show-task-ratio-json", "-u", "12"],
    ["--show-task-ratio-json", "-u", "1", "First"]], ids=" ".join)
def test_questions_are_answered_as_by_locust(arguments, tmp_path):
    write(str(tmp_path / "locustfile.py"), CLASSES)
    write(str(tmp_path / "scenario.json"), json.dumps(SCENARIO))
    locust = [sys.executable, "-m", "locust", "-f", str(tmp_path / "locustfile.py")]
    cicada = [os.path.join(ROOT, "build/cicada"), "-f", str(tmp_path / "scenario.json")]
    want, got = (subprocess.run(program + arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=60, check=True).stdout
                 for program in (locust, cicada))
    assert got == want and want

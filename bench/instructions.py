#!/usr/bin/env python3
"""Instructions in user space for each request, counted by callgrind: the difference of a long and a short run divided by
the requests that the long one made more. Repeatable to a percent, on a busy machine too, which times are not.

    bench/instructions.py URL|SCENARIO|TASKS.so [USERS [OPTION...]]    the engine's functions by what they cost; OPTION...
                                                                       as test/tools/engine_run has them
"""
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHORT_S = 0.5  # the short run: past the beginning
LONGER = 4  # times the short one
ENOUGH_REQUESTS = 2000  # of difference
LONGEST_S = 30


def counted(argv, folder, cpus=None, what="requests"):
    """(requests, instructions, instructions by function) of one run; the program prints JSON with "requests", or what
    else is to be counted."""
    counts = os.path.join(folder, "callgrind")
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + counts, *map(str, argv)], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, check=True, preexec_fn=cpus and (lambda: os.sched_setaffinity(0, cpus)))
    total = int(re.search(r"Collected : (\d+)", done.stderr).group(1))
    annotated = subprocess.run(["callgrind_annotate", "--threshold=100", "--show-percs=no", counts],
                               stdout=subprocess.PIPE, text=True, check=True).stdout
    functions = {}
    for cost, name in re.findall(r"^\s*([\d,]+)\s+[^\s:]*:(\S+)", annotated, re.M):
        name = name.split("'")[0]  # a recursion's level
        functions[name] = functions.get(name, 0) + int(cost.replace(",", ""))
    return json.loads(done.stdout)[what], total, functions


def per_request(command, cpus=None, short_s=SHORT_S):
    """(instructions, [(instructions, function)...]) for each request; command(seconds) is what to run."""
    seconds = LONGER * short_s
    with tempfile.TemporaryDirectory(prefix="cicada-bench-") as folder:
        requests, total, functions = counted(command(short_s), folder, cpus)
        while True:
            more_requests, more, more_functions = counted(command(seconds), folder, cpus)
            n = more_requests - requests
            if n >= ENOUGH_REQUESTS or seconds >= LONGEST_S:
                break
            seconds *= 2
    if n < ENOUGH_REQUESTS:
        raise RuntimeError("only %d requests more in %g s" % (n, seconds))
    costs = ((cost - functions.get(name, 0)) / n for name, cost in more_functions.items())
    return (more - total) / n, sorted(zip(costs, more_functions), reverse=True)


def fiber(cpus=None):
    """What a fiber costs: instructions and nanoseconds to park it and resume it, resident bytes of a parked one."""
    tool = os.path.join(ROOT, os.environ.get("BUILD", "build"), "test", "tools", "fiber_bench")
    with tempfile.TemporaryDirectory(prefix="cicada-bench-") as folder:
        few, little, _ = counted([tool, "-n", 1000, "-u", 0], folder, cpus, "switches")
        many, more, _ = counted([tool, "-n", 101000, "-u", 0], folder, cpus, "switches")
    said = json.loads(subprocess.run([tool], stdout=subprocess.PIPE, check=True,
                                     preexec_fn=cpus and (lambda: os.sched_setaffinity(0, cpus))).stdout)
    return {"instructions": (more - little) / (many - few), "ns": said["ns_there_and_back"], "bytes": said["bytes_each"]}


def engine(url, users=100, *options):
    """A command for per_request. One shard; a URL or a scenario."""
    tool = os.path.join(ROOT, os.environ.get("BUILD", "build"), "test", "tools", "engine_run")
    return lambda seconds: [tool, "-s", 1, "-u", users, "-t", seconds, *options, url]


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    instructions, costs = per_request(engine(*sys.argv[1:]))
    print("%9.0f a request" % instructions)
    for cost, name in costs[:40]:
        print("%9.1f %s" % (cost, name))

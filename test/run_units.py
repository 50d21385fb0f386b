#!/usr/bin/env python3
"""Run the unit tests and replay the fuzz corpora; print failures in full and one closing line of counts.

Counts are cmocka's own (tests that passed and failed); a replayed corpus is one test. A program that ends without
cmocka's closing line (a crash, a sanitizer's report, a hang) is one failure.
"""
import argparse
import os
import re
import subprocess
import sys

LIMIT_S = 300
# Libraries that are not built with ThreadSanitizer (libzmq) synchronise in ways that it cannot see.
os.environ.setdefault("TSAN_OPTIONS", "ignore_noninstrumented_modules=1")


def run(command):
    try:
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S)
        return p.returncode, p.stdout.decode("utf-8", "replace")
    except subprocess.TimeoutExpired as e:
        return -1, (e.stdout or b"").decode("utf-8", "replace") + "\nended after %d s\n" % LIMIT_S


def count(returncode, output):
    passed = sum(map(int, re.findall(r"\[  PASSED  \] (\d+) test", output)))
    failed = sum(map(int, re.findall(r"\[  FAILED  \] \S*?:? ?(\d+) test", output)))
    if returncode != 0 and failed == 0:
        failed = 1
    return passed, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("sources", nargs="*")
    args = parser.parse_args()
    passed = failed = 0
    for source in args.sources:
        if args.only not in source:
            continue
        program = os.path.join(args.build, os.path.splitext(source)[0])
        if os.path.basename(source).startswith("fuzz_"):
            corpus = os.path.join(os.path.dirname(source), os.path.basename(source)[len("fuzz_"):-len(".c")])
            returncode, output = run([program, corpus])
            ok, bad = (1, 0) if returncode == 0 else (0, 1)
        else:
            returncode, output = run([program])
            ok, bad = count(returncode, output)
            if ok + bad == 0:
                bad, output = 1, output + "\nran no test\n"
        print("%-60s %3d passed%s" % (source, ok, ", %d FAILED" % bad if bad else ""), flush=True)
        if bad:
            print(output, flush=True)
        passed += ok
        failed += bad
    print("units: %d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


sys.exit(main())

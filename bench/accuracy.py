"""How far what a generator reports is from the truth, which the target (target/delayd.c) knows."""
import threading

from measure import MARGIN_S, Delayd, Load, measure
from tools import TOOLS

# delay of the target in ms, users
SHAPES = ((5, 2), (5, 100), (50, 1000))
FREEZE_RATE, FREEZE_PERIOD_S, FREEZE_S = 200, 10, 1
FREEZE_USERS = 10
TRUE_P99_MS = 900  # a tenth of the plan waits for 0 to 1 s: its 90th percentile is the whole's 99th
ANYWHERE = {0, 1}


def accuracy(name, delay_ms, users, window_s, folder):
    """The figures of one run, with the truth beside."""
    tool = TOOLS[name]
    warm_s = 2.5 if tool.slow else 1.5
    with Delayd("-d", delay_ms) as target:
        load = Load(target.url + "/", users, warm_s, window_s, folder=folder)
        figures = measure(tool, load, target, at_window=target.reset)
        truth = target.stats()
    figures["true_p50_ms"], figures["true_p99_ms"] = truth["p50_us"] / 1000, truth["p99_us"] / 1000
    if "p99_ms" in figures:
        figures["p50_error_ms"] = figures["p50_ms"] - figures["true_p50_ms"]
        figures["p99_error_ms"] = figures["p99_ms"] - figures["true_p99_ms"]
    return figures


def frozen(name, seconds, folder):
    """A constant rate against a target that stands still for 1 s in every 10. Everything may use both processors: the
    load is light."""
    with Delayd("-d", 1, "-f", "%d,%d" % (FREEZE_PERIOD_S, FREEZE_S), cpus=ANYWHERE) as target:
        target.reset()
        load = Load(target.url + "/", FREEZE_USERS, 0, seconds - MARGIN_S, rate=FREEZE_RATE, folder=folder)
        figures = measure(TOOLS[name], load, target, cpus=ANYWHERE)
        figures["freezes"] = target.stats()["freezes"]
    return figures


def frozen_together(names, seconds, folder_of):
    """Each with a target of its own, at once."""
    found = {}

    def one(name):
        found[name] = frozen(name, seconds, folder_of(name))

    threads = [threading.Thread(target=one, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {name: found[name] for name in names if name in found}

"""What cicada wants to reach, as ratios of paired rounds and as figures, and whether it does.

`found` is {shape: {tool: [figures of round 1, of round 2, ...]}}; a tool that was not measured in a round has None there.
"""
import statistics
import typing


class Target(typing.NamedTuple):
    name: str  # in history.jsonl
    what: str
    limit: float
    values: typing.Callable  # found -> one value a round
    at_least: bool = False
    digits: int = 2

    def met(self, value):
        return value >= self.limit if self.at_least else value <= self.limit


def rounds(found, shape, *tools):
    """The rounds in which all these tools were measured."""
    rows = [found.get(shape, {}).get(tool, []) for tool in tools]
    return [figures for figures in zip(*rows) if all(figures)]


def cpu_ratio(shape, other, tool="cicada"):
    return lambda found: [a["us"] / b["us"] for a, b in rounds(found, shape, tool, other)]


def figure(shape, key, tool="cicada"):
    return lambda found: [f[key] for f, in rounds(found, shape, tool) if key in f]


def core_rate_ratio(tool, other):
    """Of the rates that a whole core would make: the inverse of their CPU times."""
    return lambda found: [b["us"] / a["us"] for a, b in rounds(found, "plain 100", tool, other)]


def scaling(found):
    return [2 * one["us"] / two["us"] for one, two in rounds(found, "scale", "cicada", "cicada-2")]


def frozen_off(found):
    return [abs(f["p99_ms"] - 900) for f, in rounds(found, "freeze", "cicada")]


def ratio_targets():
    for users, floor, fast in ((10, 1.10, None), (100, 1.10, 1 / 13), (1000, 1.12, 1 / 18)):
        shape = "plain %d" % users
        yield Target("cpu_%d/floor" % users, "CPU a request, plain, %d users: cicada / floor" % users, floor,
                     cpu_ratio(shape, "floor"))
        if not fast:
            continue
        yield Target("cpu_%d/wrk" % users, "… / wrk", 0.95, cpu_ratio(shape, "wrk"))
        yield Target("cpu_%d/libcurl" % users, "… / libcurl's multi handle", 0.36 if users == 100 else 0.19,
                     cpu_ratio(shape, "libcurl"))
        yield Target("cpu_%d/locust_fast" % users, "… / Locust's FastHttpUser", fast, cpu_ratio(shape, "locust-fast"),
                     digits=3)
        yield Target("cpu_%d/locust_http" % users, "… / Locust's HttpUser", 1 / 60, cpu_ratio(shape, "locust-http"),
                     digits=4)
    yield Target("cpu_10k/wrk", "CPU a request, 10 KiB, 100 users: cicada / wrk", 0.85, cpu_ratio("body 100", "wrk"))
    yield Target("cpu_10k_raw/wrk", "… the raw program / wrk: what can be had", 0.85, cpu_ratio("body 100", "wrk", "raw"))
    yield Target("cpu_tls/wrk", "CPU a request, TLS 1.3, 100 users: cicada / wrk", 1.0, cpu_ratio("tls 100", "wrk"))
    yield Target("rate_100/wrk", "requests a second of a whole core, 100 users: cicada / wrk", 1.2,
                 core_rate_ratio("cicada", "wrk"), at_least=True)
    yield Target("rate_100_floor/wrk", "… the floor program / wrk: what can be had", 1.2,
                 core_rate_ratio("floor", "wrk"), at_least=True)
    yield Target("cpu_curl_1000/libcurl", "CPU a request, 1,000 users: the curl engine / libcurl's multi handle", 1.0,
                 cpu_ratio("plain 1000", "libcurl", "cicada-curl"))
    yield Target("scale_2", "two shards against one, times as fast for the same CPU time", 1.8, scaling, at_least=True)
    yield Target("cpu_checks/plain", "CPU a request, JSON, 100 users: four checks and an extraction / none", 1.3,
                 cpu_ratio("checks 100", "cicada", "cicada-checks"))
    yield Target("instructions", "user-space instructions a request, plain", 3000, figure("instr", "plain"), digits=0)
    yield Target("instructions_each", "… each response's head another", 3000, figure("instr", "plain, each head another"),
                 digits=0)
    yield Target("instructions_tasks", "… by tasks in C", 3200, figure("instr", "tasks in C"), digits=0)


def figure_targets():
    yield Target("served_10000", "10,000 users, 1 s wait: served, of the rate asked for", 0.995,
                 lambda found: [v / 10000 for v in figure("waiting 10000", "rps")(found)], at_least=True, digits=4)
    yield Target("cpu_10000", "… CPU s/s", 0.15, figure("waiting 10000", "cpu"), digits=3)
    yield Target("p99_10000_ms", "… p99 ms", 3, figure("waiting 10000", "p99_ms"))
    yield Target("bytes_10000", "… bytes a user", 1024, figure("waiting 10000", "bytes_per_user"), digits=0)
    yield Target("bytes_tasks_10000", "… bytes a user who waits within a task in C", 5120,
                 figure("tasks waiting 10000", "bytes_per_user", "cicada-tasks"), digits=0)
    yield Target("bytes_100000", "100,000 users, 1 s wait: bytes a user", 1024,
                 figure("waiting 100000", "bytes_per_user"), digits=0)
    yield Target("cpu_1000", "1,000 users, 1 s wait: CPU s/s", 0.020, figure("waiting 1000", "cpu"), digits=3)
    for delay, users, limit in ((5, 2, 0.1), (5, 100, 0.5), (50, 1000, 3)):
        yield Target("p99_error_%d_%d_ms" % (delay, users),
                     "reported minus true p99, a target of %d ms, %d users: ms" % (delay, users), limit,
                     figure("accuracy %d/%d" % (delay, users), "p99_error_ms"))
    yield Target("frozen_off_ms", "frozen server: p99 away from 900 ms by", 20, frozen_off, digits=0)


TARGETS = [*ratio_targets(), *figure_targets()]


def measured(found):
    """(target, one value a round) of what was measured."""
    return [(target, values) for target in TARGETS for values in [target.values(found)] if values]


def lines(found):
    """Rows of a table: what, measured (median, lowest to highest), target, met."""
    for target, values in measured(found):
        value, d = statistics.median(values), target.digits
        spread = " (%.*f to %.*f)" % (d, min(values), d, max(values)) if len(values) > 1 else ""
        yield (target.what, "%.*f%s" % (d, value, spread), "%s %.*f" % ("≥" if target.at_least else "≤", d, target.limit),
               "met" if target.met(value) else "not met")


def figures(found):
    """The medians by a short name."""
    return {target.name: float("%.4g" % statistics.median(values)) for target, values in measured(found)}

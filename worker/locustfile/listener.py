# --- the master's part of the report ------------------------------------------------------------
#
# In a master, this adds up what cicada's workers tell of themselves in their stats messages, names
# one that reports when none does, tells it how many users there are, lets a headless run end only
# when it has told all, and writes PREFIX_stats.jsonl and PREFIX_server_summary.json beside the
# files of --csv PREFIX. In workers and in runs without a master it does nothing. None means not measured
# and never becomes 0. Nothing here makes a run fail: what goes wrong is a line in the log.

import argparse
import csv
import functools
import io
import json
import logging
import math
import os
import re
import time

import gevent
import gevent.event

from locust import events
from locust.runners import MasterRunner
from locust.stats import PERCENTILES_TO_REPORT, StatsCSV
from locust.util.timespan import parse_timespan

CICADA_LOG = logging.getLogger("cicada")
CICADA_LOST_S = 5  # a worker that is away for longer does not come back
CICADA_SLACK_S = 2  # beyond what the reporting worker says that it needs

# What a worker tells of itself, and how the workers' figures become the fleet's.
CICADA_WORST = ("cpu_p50", "cpu_p90", "cpu_max", "loop_lag_p99_ms")
CICADA_SUMS = ("missed_starts", "missed_starts_over_10ms", "connect_errors", "retries", "sockets_peak",
               "requests_started", "requests_succeeded", "requests_failed", "requests_interrupted")
CICADA_FACTS = ("machine_type", "node_count", "allocatable_cores", "allocatable_ram_gb", "worker_pod_count",
                "capacity_scope")
CICADA_FRONTIERS = ("actors_per_node", "actors_per_vcpu", "actors_per_gb_ram", "ap_ratio_p50", "ap_ratio_p90",
                    "ap_ratio_p99")
CICADA_PER_POD = ("actors_per_pod_p50", "actors_per_pod_p90", "actors_per_pod_p99")
CICADA_ACTORS = ("running_actors_peak", "running_actors_p50", "running_actors_p90", "live_actors_peak",
                 "hibernate_pending_actors_peak", "crashed_actors_final")
CICADA_METADATA = ("test_name", "tag", "data_timestamp", "prom_url", "profile", "start_ts", "end_ts",
                   "steady_start_ts", "steady_end_ts", "telemetry_lag_s", "worker_pod_count", "queries_ok",
                   "queries_failed")


# --- values, as strangers send them -------------------------------------------------------------


def cicada_object(value):
    return value if isinstance(value, dict) else {}


def cicada_number(value):
    """A finite number that is not negative, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if math.isfinite(value) and value >= 0 else None


def cicada_plain(value):
    """A number or a text, or None."""
    return value if isinstance(value, str) else cicada_number(value)


def cicada_text(value):
    """As measurements hold it: a text, or None."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else None
    return str(value) if isinstance(value, (int, str)) else None


def cicada_short(value):
    """As a line of the log shows it."""
    try:
        return "%.10g" % round(float(value), 4) if re.search(r"\d\.\d", str(value)) else value
    except ValueError:
        return value


def cicada_json(value):
    """The same, of what JSON can say; None for all else."""
    if isinstance(value, dict):
        return {str(key): cicada_json(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [cicada_json(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str)) else None


def cicada_time(wall_s):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(wall_s))


# --- what the workers told ----------------------------------------------------------------------


class CicadaReports:
    """The workers' "cicada" objects of one run at a time."""

    def __init__(self):
        self.known = {}  # ids of all workers that ever sent one, in the order of their coming
        self.heard = set()  # ids of all workers, of either kind, that told something in this run
        self.latest = {}  # worker id: its last object in this run
        self.reports = {}  # worker id: what it reported of this run, as a leader
        self.earlier = set()  # when the runs before began

    def begin(self):
        """A run begins. What is told of an earlier one from now on comes too late."""
        self.earlier.update(cicada_number(report.get("start_s")) for report in self.reports.values())
        self.heard.clear()
        self.latest.clear()
        self.reports.clear()

    def add(self, client_id, data):
        """A stats message came. False: it was not one of cicada's workers."""
        self.heard.add(client_id)
        told = cicada_object(data).get("cicada")
        if not isinstance(told, dict):
            return False
        self.known[client_id] = True
        self.latest[client_id] = told
        if told.get("reporter") is True and "complete" in told \
                and cicada_number(told.get("start_s")) not in self.earlier:
            self.reports[client_id] = told
        return True

    def leaders(self):
        return [client_id for client_id, told in self.latest.items() if told.get("reporter") is True]

    def candidate(self, clients):
        """The worker to be named the leader, when all of these have told that none of them is; None: none needs to be,
        none can be, or it is not known yet."""
        if self.leaders() or not self.heard.issuperset(clients):
            return None
        return next((i for i in self.latest if i in clients and self.latest[i].get("may_report") is True), None)

    def owing(self):
        """The leaders that have more to tell, and how many seconds after the end of the run they may take for it: 0
        when they need not ask anybody, and tell it with their last samples."""
        owing = [i for i in self.leaders() if cicada_object(self.reports.get(i)).get("complete") is not True]
        return {i: cicada_number(self.latest[i].get("report_within_s")) or 0 for i in owing}

    def best(self):
        """The report that tells most."""
        def merit(report):
            return report.get("complete") is True, isinstance(report.get("server_summary"), dict)
        return max(self.reports.values(), key=merit, default={})

    def generators(self):
        return [cicada_object(told.get("generator")) for told in self.latest.values()]

    def generator(self):
        """All workers' load generators as one: the worst of some figures, the sum of others."""
        merged = {}
        for names, unite in ((CICADA_WORST, max), (CICADA_SUMS, sum)):
            for name in names:
                known = [n for n in (cicada_number(g.get(name)) for g in self.generators()) if n is not None]
                merged[name] = unite(known) if known else None
        saturated = [g["saturated"] for g in self.generators() if isinstance(g.get("saturated"), bool)]
        merged["saturated"] = any(saturated) if saturated else None
        reasons = [g["saturated_reasons"] for g in self.generators() if isinstance(g.get("saturated_reasons"), str)]
        merged["saturated_reasons"] = "; ".join(dict.fromkeys(r for r in reasons if r)) or None
        return merged


# --- the rows -----------------------------------------------------------------------------------


def cicada_snake_case(name):
    """DurDirWrite: dur_dir_write. GET /a: get_a."""
    name = re.sub(r"(?<=[^\W_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    words = "".join(c if c.isascii() and c.isalnum() or not c.isascii() else "_" for c in name)
    return "_".join(word for word in words.translate({n: n + 32 for n in range(65, 91)}).split("_") if word)


def cicada_column(name):
    """Requests/s: requests_per_s. 99.9%: p99_9."""
    key = re.sub(r"[^a-z0-9]+", "_", name.lower().replace("/", "_per_")).strip("_")
    return "p" + key if key[:1].isdigit() else key


def cicada_entries(environment):
    """The rows of stats.csv, Aggregated left out, as Locust itself writes them."""
    text = io.StringIO(newline="")
    StatsCSV(environment, PERCENTILES_TO_REPORT).requests_csv(csv.writer(text))
    text.seek(0)
    return list(csv.DictReader(text))[:-1]


def cicada_measurements(entry):
    """A row's columns by their names in stats.jsonl. What no request measured is None."""
    def measured(column):
        return column in ("Type", "Name", "Request Count", "Failure Count") or "/" in column \
            or int(entry["Request Count"]) > 0
    return {cicada_column(c): value if measured(c) else None for c, value in entry.items()}


def cicada_ratio(failures, requests):
    return failures / requests if requests else None


def cicada_failure_ratios(entries, taken):
    """Entries whose names read the same are one operation: GET and POST of /items are "items"."""
    sums = {}
    for entry in entries:
        operation = cicada_snake_case(entry["Name"])
        key = operation + "_failure_ratio" if operation else "failure_ratio"
        failures, requests = sums.get(key, (0, 0))
        sums[key] = failures + int(entry["Failure Count"]), requests + int(entry["Request Count"])
    return {key: cicada_text(cicada_ratio(*sums[key])) for key in sums if key not in taken}


def cicada_trial(report, total_failures, total_requests, entries):
    """The three objects of trial_summary."""
    facts, told = cicada_object(report.get("cluster_facts")), cicada_object(report.get("frontiers"))
    raw = {name: cicada_plain(facts.get(name)) for name in CICADA_FACTS}
    raw["users_source"] = report.get("users_source") if isinstance(report.get("users_source"), str) else None
    raw["actors_per_user"] = cicada_number(report.get("actors_per_user"))
    frontiers = {name: cicada_number(told.get(name)) for name in CICADA_FRONTIERS}
    # the leader knows its own requests, the master all of them
    frontiers["aggregate_failure_ratio"] = cicada_ratio(total_failures, total_requests)
    flat = dict(raw, **frontiers)
    flat.update((name, cicada_number(told.get(name))) for name in CICADA_PER_POD)
    measurements = {name: cicada_text(value) for name, value in flat.items()}
    measurements.update(cicada_failure_ratios(entries, measurements))
    if isinstance(report.get("actors"), dict):
        measurements.update((name, cicada_text(cicada_number(report["actors"].get(name)))) for name in CICADA_ACTORS)
    return {"raw_configuration": raw, "frontiers": frontiers, "measurements": measurements}


def cicada_rows(reports, environment, end_s):
    """The lines of PREFIX_stats.jsonl, as objects."""
    report, total, entries = reports.best(), environment.stats.total, cicada_entries(environment)
    head = {"timestamp": cicada_time(end_s)}
    for name in ("tag", "test_name"):
        head[name] = report.get(name) if isinstance(report.get(name), str) else None

    def row(metric, **members):
        return dict(head, metric=metric, **members)

    rows = [row("%s_%s" % (e["Type"], e["Name"]), measurements=cicada_measurements(e)) for e in entries]
    rows.append(row("trial_summary", **cicada_trial(report, total.num_failures, total.num_requests, entries)))
    server = cicada_object(report.get("server_summary"))
    rows.append(row("server_summary", measurements={str(k): cicada_text(v) for k, v in server.items()}))
    rows.append(row("generator", measurements={k: cicada_text(v) for k, v in reports.generator().items()}))
    return rows


def cicada_server_document(report, end_s):
    """What the servers measured of themselves; of servers that were not asked, that nothing is known."""
    if isinstance(report.get("server_document"), dict):
        return cicada_json(report["server_document"])
    metadata = dict.fromkeys(CICADA_METADATA)
    metadata.update(data_timestamp=cicada_time(end_s), start_ts=cicada_number(report.get("start_s")), end_ts=end_s)
    for name in ("tag", "test_name"):
        metadata[name] = report.get(name) if isinstance(report.get(name), str) else None
    metadata["worker_pod_count"] = cicada_number(cicada_object(report.get("cluster_facts")).get("worker_pod_count"))
    return {"metadata": metadata}


def cicada_write(path, text):
    """Whole or not at all, but for what is no regular file (/dev/stdout, a link)."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    regular = not os.path.lexists(path) or os.path.isfile(path) and not os.path.islink(path)
    target = path + ".part" if regular else path
    with open(target, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.write(text)
    if regular:
        os.replace(target, path)


# --- the master ---------------------------------------------------------------------------------


def cicada_guarded(function):
    """An exception of a listener would give the master an exit code of its own."""
    said = set()

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as fault:
            line = "%s: %s: %s, continuing" % (function.__name__, type(fault).__name__, fault)
            if line not in said and len(said) < 10:
                said.add(line)
                CICADA_LOG.warning("%s", line)
            return None
    return call


class CicadaMaster:
    def __init__(self, environment):
        self.environment = environment
        self.runner = environment.runner
        self.options = environment.parsed_options
        self.reports = CicadaReports()
        self.news = gevent.event.Event()  # a report came
        self.listening = None  # the greenlet that reports come by
        self.quitting = False  # the process ends
        self.teller = self.waiter = None
        self.end_s = None  # of the last run, by the master's clock; None: none has ended
        self.whole = False  # all that will be known of it is written
        listen = environment.events
        listen.worker_report.add_listener(self.on_report)
        listen.test_start.add_listener(self.on_start)
        listen.test_stopping.add_listener(self.on_stopping)
        listen.test_stop.add_listener(self.on_stop)
        listen.quitting.add_listener(self.on_quitting)  # called before the runner's own: the order is reversed
        listen.quit.add_listener(self.on_quit)

    # --- events -----------------------------------------------------------------------------------

    @cicada_guarded
    def on_report(self, client_id, data, **_):
        if self.reports.add(client_id, data):
            self.listening = gevent.getcurrent()
            self.news.set()

    @cicada_guarded
    def on_start(self, **_):
        self.end()
        self.reports.begin()
        self.end_s, self.whole = None, False
        self.teller = gevent.spawn(self.tell_users)

    @cicada_guarded
    def on_stopping(self, **_):
        self.end()

    @cicada_guarded
    def on_stop(self, **_):
        self.end()
        self.end_s = time.time()
        if self.environment.web_ui is None or self.quitting:
            if any(self.reports.owing().values()):  # the quit that follows would cut their reports short
                self.hold(stop=True)
        elif getattr(self.options, "autoquit", -1) not in (None, -1):
            self.hold(stop=False)
            self.finish()
        else:
            self.waiter = gevent.spawn(self.finish_later)

    @cicada_guarded
    def on_quitting(self, **_):
        self.quitting = True

    @cicada_guarded
    def on_quit(self, **_):
        self.end()
        if self.end_s is not None and not self.whole:
            self.finish()

    def end(self):
        """Of what goes on beside."""
        for greenlet in (self.teller, self.waiter):
            if greenlet is not None and greenlet is not gevent.getcurrent():
                greenlet.kill(block=False)
        self.teller = self.waiter = None

    # --- the total of users -------------------------------------------------------------------------

    def tell_users(self):
        while True:
            self.tell()
            gevent.sleep(1)

    @cicada_guarded
    def tell(self):
        """The leader; all of cicada's workers, while it is not known who leads. Others hear nothing. Workers lead of
        themselves when they came first; where a Python worker did, one of cicada's is named, until it says that it does."""
        present = [i for i, node in self.runner.clients.items() if node.state != "missing"]
        named = self.reports.candidate(present)
        if named is not None:
            self.runner.send_message("cicada_lead", None, named)
        for client_id in self.reports.leaders() or list(self.reports.known):
            if client_id in self.runner.clients:
                self.runner.send_message("cicada_users", {"user_count": self.runner.user_count}, client_id)

    # --- waiting for the leader ---------------------------------------------------------------------

    def awaited(self, missed):
        """The leaders that owe a report and can still send it, with their times. `missed`: since when they are away."""
        found, now = {}, time.monotonic()
        for client_id, within_s in self.reports.owing().items():
            node = self.runner.clients.get(client_id)
            if node is not None and node.state != "missing":
                missed.pop(client_id, None)
            elif now - missed.setdefault(client_id, now) > CICADA_LOST_S:  # one that stopped registers anew
                continue
            found[client_id] = within_s
        return found

    def bound(self, awaited, stopped):
        """How long to wait: for the leaders' reports, and for workers that were told to stop to be rid of their users."""
        given, users_s = self.given_timeout(), (self.environment.stop_timeout or 0) + CICADA_SLACK_S
        if awaited:
            return given if given is not None else max(awaited.values()) + users_s
        busy = stopped and any(node.state not in ("ready", "missing") for node in self.runner.clients.values())
        return (users_s if given is None else min(given, users_s)) if busy else 0

    def wait_whole(self, stopped=False):
        """Until the report is there or cannot come any more."""
        missed, began = {}, time.monotonic()
        while True:
            self.news.clear()
            left = began + self.bound(self.awaited(missed), stopped) - time.monotonic()
            if left <= 0:
                return
            self.news.wait(min(left, 0.2))

    def given_timeout(self):
        return getattr(self.options, "cicada_report_timeout", None)

    def stop_workers(self):
        """Those of cicada come back at once after a stop. Python's are away for the stop timeout then, and would miss the
        quit that follows; they get theirs now, and all the time that they need for their last samples."""
        for client_id, node in list(self.runner.clients.items()):
            if node.state not in ("ready", "missing"):
                self.runner.send_message("stop" if client_id in self.reports.known else "quit", None, client_id)

    def hold(self, stop):
        """Let a run that is about to quit end only when its leader has told all."""
        if self.given_timeout() == 0:
            return
        if gevent.getcurrent() is self.listening:
            return  # whoever ends the run by what a worker sent keeps the next reports from coming in
        try:
            CICADA_LOG.info("waiting for the report of the worker that asks the servers; interrupt to go on without it")
            if stop:
                self.stop_workers()
            self.wait_whole(stopped=stop)
        except KeyboardInterrupt:
            CICADA_LOG.info("interrupted, going on without the rest of the report")

    def finish_later(self):
        self.wait_whole()
        self.finish()

    # --- the end ------------------------------------------------------------------------------------

    @cicada_guarded
    def finish(self):
        report = self.reports.best()
        ended = cicada_number(report.get("end_s"))
        end_s = ended if ended is not None and ended < 1e11 else self.end_s
        self.whole = not self.reports.owing()
        if not self.whole:
            CICADA_LOG.warning("the report is not complete: its worker did not tell the rest in time, continuing")
        rows = cicada_rows(self.reports, self.environment, end_s)
        if self.reports.latest:
            self.show(rows)
        if self.reports.latest and not self.reports.leaders():
            CICADA_LOG.info("none of cicada's workers reported: the run was too short to name one, or they may not")
        prefix = getattr(self.options, "csv_prefix", None)
        if prefix:
            self.write(prefix, rows, cicada_server_document(report, end_s))
        elif self.reports.latest:
            CICADA_LOG.info("this report goes into no file: --csv PREFIX names some")

    def show(self, rows):
        by_metric = {row["metric"]: row for row in rows[-3:]}
        trial = by_metric["trial_summary"]
        for what, values in (("cluster", trial["raw_configuration"]), ("density", trial["frontiers"]),
                             ("servers", by_metric["server_summary"]["measurements"]),
                             ("generator", by_metric["generator"]["measurements"])):
            known = ["%s %s" % (name, cicada_short(value)) for name, value in values.items() if value is not None]
            if known:
                CICADA_LOG.info("%s: %s", what, ", ".join(known))

    def write(self, prefix, rows, document):
        lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows]
        texts = {"_stats.jsonl": "".join(lines),
                 "_server_summary.json": json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n"}
        for suffix, text in texts.items():
            try:
                cicada_write(prefix + suffix, text)
            except OSError as fault:
                CICADA_LOG.warning("%s cannot be written (%s), continuing", prefix + suffix, fault.strerror)
                return
        CICADA_LOG.info("this report is in %s", " and ".join(prefix + suffix for suffix in texts))


def cicada_seconds(text):
    try:
        return parse_timespan(text)
    except ValueError as fault:
        raise argparse.ArgumentTypeError(str(fault))


@events.init_command_line_parser.add_listener
@cicada_guarded
def cicada_arguments(parser, **_):
    try:
        parser.add_argument("--cicada-report-timeout", metavar="TIME", type=cicada_seconds, default=None,
                            env_var="LOCUST_CICADA_REPORT_TIMEOUT", include_in_web_ui=False,
                            help="How long a headless master waits at its end for the report of cicada's workers, as "
                                 "90s or 2m; 0 is not at all. Default: what they say that it takes.")
    except argparse.ArgumentError:
        pass  # this part is in two locustfiles


@events.init.add_listener
@cicada_guarded
def cicada_begin(environment, **_):
    if isinstance(environment.runner, MasterRunner) and not hasattr(environment, "cicada_master"):
        environment.cicada_master = CicadaMaster(environment)

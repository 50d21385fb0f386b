# --- what the tasks below call ---
#
# Requests are sent by the requests library through Locust's own session. What they are counted under, when they fail
# and with which words is the same as with C workers, so that a master adds the rows of both up.

# Locust first: it patches what the others use.
from locust import HttpUser, constant, events
from locust.exception import StopUser
from locust.runners import WorkerRunner

import atexit
import base64
import collections
import contextlib
import errno
import functools
import http.client
import itertools
import json
import logging
import math
import os
import random
import re
import socket
import ssl
import tempfile
import time
import urllib.parse
import uuid

import gevent
import requests
import urllib3

VARIABLES = {}  # declared: their values, None when it has to come from outside
FEEDS = []
BUNDLE = json.loads(CICADA_SCENARIO)["files"]
BODY_LIMIT = 1 << 20
VALUE_LIMIT = 1 << 20
NAME_BYTES = 4096

log = logging.getLogger("scenario")
logging.getLogger("urllib3").setLevel(logging.WARNING)  # its debug lines have URLs with the values of variables


class Failure(Exception):
    """Why a request failed. Its repr is the text that C workers report, so the master has one row for both."""

    def __repr__(self):
        return str(self)


class StopTask(Exception):
    """The task is over; the next one comes after the wait time."""


class NoValue(Exception):
    """A variable has no value."""


class EndOfFeed(StopUser):
    """There is no row for this one any more."""


class Number(str):
    """A number as the scenario writes it."""


# A text; json: a number, a boolean, a list or an object as it stands; hidden: from outside, never shown.
Value = collections.namedtuple("Value", "text json hidden")


def bundled(name):
    """The bytes of a file of the scenario."""
    content = BUNDLE[name]
    return base64.b64decode(content["base64"]) if isinstance(content, dict) else content.encode()


def text_of(data):
    """Bytes as a text that keeps what is no UTF-8."""
    return data.decode("utf-8", "surrogateescape")


def bytes_of(text):
    return text.encode("utf-8", "surrogateescape")


def repaired(text):
    return bytes_of(text).decode("utf-8", "replace")


def scalar(value):
    """A number, a boolean or a string of Python as a value."""
    if isinstance(value, bool):
        return Value("true" if value else "false", True, False)
    if isinstance(value, (int, float, Number)):
        return Value(str(value), True, False)
    return Value(value, False, False)


def as_number(text):
    """What reads as a decimal number, or None."""
    if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


# --- texts with variables: "${name}" is the value, "${name|form}" the value encoded for a form, "${name|json}" for the
# --- inside of a JSON string, "${name|quoted}" for a part's header, "${name|value}" as a JSON value; "$${" is "${" itself

MARK = re.compile(r"\$\$\{|\$\{([^}|]*)(?:\|(form|json|quoted|value))?\}")
ENCODED = {
    None: lambda value: value.text,
    "form": lambda value: urllib.parse.quote_plus(bytes_of(value.text)),
    "json": lambda value: json.dumps(repaired(value.text))[1:-1],
    "quoted": lambda value: value.text.replace('"', "%22").replace("\n", "%0A").replace("\r", "%0D"),
    "value": lambda value: value.text if value.json else json.dumps(repaired(value.text)),
}


@functools.lru_cache(maxsize=None)
def pieces_of(text):
    """[(literal text, variable or None, how to encode its value)]"""
    pieces, literal, at = [], "", 0
    for mark in MARK.finditer(text):
        literal += text[at:mark.start()]
        at = mark.end()
        if mark.group(1) is None:
            literal += "${"
        else:
            pieces.append((literal, mark.group(1), mark.group(2)))
            literal = ""
    literal += text[at:]
    return pieces + [(literal, None, None)] if literal or not pieces else pieces


# --- feeds ---


def csv_rows(text, separator):
    """RFC 4180; empty lines count for nothing."""
    cell = re.compile(r'(?:"((?:[^"]|"")*)"|((?:(?!\r?\n)[^%s])*))(%s|\r?\n|\Z)' % ((re.escape(separator),) * 2))
    rows, row, at = [], [], 0
    text = text[1:] if text.startswith("\ufeff") else text
    while at < len(text) or row:
        empty = re.compile(r"\r?\n").match(text, at)
        if empty and not row:
            at = empty.end()
            continue
        found = cell.match(text, at)
        row.append(found.group(2) if found.group(1) is None else found.group(1).replace('""', '"'))
        at = found.end()
        if found.group(3) != separator:
            rows.append(row)
            row = []
    return rows


class Feed:
    """Rows of a CSV file, for all users of this process."""

    def __init__(self, file, columns=None, separator=",", order="sequential", each="task", at_end="recycle", workers=1):
        rows = csv_rows(text_of(bundled(file)), separator)
        self.file, self.order, self.at_end, self.workers = file, order, at_end, workers
        self.each_user = each == "user"
        self.columns = columns or rows.pop(0)
        self.rows = rows
        self.rewind()

    def rewind(self):
        self.taken, self.returned, self.end_told = 0, [], False

    def take(self, worker):
        first = worker % self.workers
        share = (len(self.rows) - first + self.workers - 1) // self.workers
        if self.order == "random":
            return self.rows[first + random.randrange(share) * self.workers]
        if self.returned:
            return self.returned.pop()
        if self.taken >= share and self.at_end == "stop":
            if not self.end_told:
                log.warning("feed %r has no more rows: users that want one end, continuing", self.file)
            self.end_told = True
            raise EndOfFeed()
        self.taken += 1
        return self.rows[first + (self.taken - 1) % share * self.workers]

    def give_back(self, row):
        if self.order == "unique":
            self.returned.append(row)


def feed(file, **how):
    FEEDS.append(Feed(file, **how))


# --- what is looked at: json_at("/ok") == True, header("X").contains("y"), value("state") != "ready" ---

Seen = collections.namedtuple("Seen", "typed kind value text")  # what a subject is; None when it is not there


class Test:
    def __init__(self, subject, operator, operand=None):
        self.subject, self.operator, self.operand = subject, operator, operand

    def holds(self, user, answer):
        seen = self.subject.look(user, answer)
        operand, free = self.operand, False
        if isinstance(operand, str) and self.operator != "matches":
            free = pieces_of(operand)[0][1] is not None or len(pieces_of(operand)) > 1
            try:
                operand = user.render(operand).text
            except NoValue:
                return False
        if self.operator == "exists":
            return (seen is not None) == operand
        if seen is None:
            return self.operator == "!="
        if self.operator == "type":
            return seen.kind == operand
        if self.operator in ("contains", "matches"):
            found = operand in seen.text if self.operator == "contains" else operand.search(seen.text)
            return seen.kind == "string" and bool(found)
        return self.compare(seen, operand, free)

    def compare(self, seen, operand, free):
        number = self.number_of(seen)
        if operand is None:
            return (self.operator == "==") == (seen.kind == "null")
        if isinstance(operand, bool):
            equal = seen.value is operand if seen.typed else seen.text == ("true" if operand else "false")
            return (self.operator == "==") == equal
        if isinstance(operand, (int, float)):
            return self.operator == "!=" if number is None else self.decide(number, float(operand))
        if free and number is not None and as_number(operand) is not None:
            return self.decide(number, as_number(operand))
        if seen.typed and seen.kind != "string" and not free:
            return self.operator == "!="
        return self.decide(bytes_of(seen.text), bytes_of(operand))

    @staticmethod
    def number_of(seen):
        if not seen.typed:
            return as_number(seen.text.strip(" \t\r\n"))
        return float(seen.value) if seen.kind == "number" else None

    def decide(self, a, b):
        return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[self.operator]


class Subject:
    """Something to compare, or to extract; look(user, answer) says what it is."""

    __hash__ = None

    def __init__(self, look, in_body=False, default=None):
        self.look, self.in_body, self.default = look, in_body, default

    def __eq__(self, operand):
        return Test(self, "==", operand)

    def __ne__(self, operand):
        return Test(self, "!=", operand)

    def __lt__(self, operand):
        return Test(self, "<", operand)

    def __le__(self, operand):
        return Test(self, "<=", operand)

    def __gt__(self, operand):
        return Test(self, ">", operand)

    def __ge__(self, operand):
        return Test(self, ">=", operand)

    def contains(self, text):
        return Test(self, "contains", text)

    def matches(self, pattern):
        return Test(self, "matches", compiled(pattern))

    def exists(self, truth=True):
        return Test(self, "exists", truth)

    def has_type(self, kind):
        return Test(self, "type", kind)

    @property
    def length(self):
        def look(user, answer):
            seen = self.look(user, answer)
            if seen is None or seen.kind not in ("string", "array", "object"):
                return None
            return number_seen(len(seen.text if seen.kind == "string" else seen.value))

        return Subject(look, self.in_body)


def number_seen(number):
    return Seen(True, "number", number, repr(float(number)))


def text_seen(text):
    return None if text is None else Seen(False, "string", text, text)


def value(name):
    """A variable, in conditions."""

    def look(user, answer):
        try:
            return text_seen(user.value_of(name).text)
        except NoValue:
            return None

    return Subject(look)


def header(name, default=None):
    return Subject(lambda user, answer: text_seen(answer.header(name)), False, default)


def cookie(name, default=None):
    return Subject(lambda user, answer: text_seen(answer.cookie(name)), False, default)


def regex(pattern, group=0, default=None):
    """What the group of the pattern is in the body."""
    expression = compiled(pattern)

    def look(user, answer):
        found = expression.search(answer.text)
        return text_seen(found.group(group) if found else None)

    return Subject(look, True, default)


def json_at(pointer, default=None):
    """A JSON Pointer into the body."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    return Subject(lambda user, answer: answer.json_at(parts), True, default)


status = Subject(lambda user, answer: number_seen(answer.response.status_code))
body = Subject(lambda user, answer: text_seen(answer.text), True)
size = Subject(lambda user, answer: number_seen(len(answer.content)))
response_time = Subject(lambda user, answer: number_seen(answer.took_s))


class NoPattern:
    """A regular expression that Python does not know: it does not match."""

    def search(self, text):
        return None


@functools.lru_cache(maxsize=None)
def compiled(pattern):
    """A pattern of PCRE2 as one of Python's."""
    translated = re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", pattern)
    for theirs, ours in (("z", r"\Z"), ("Z", r"(?=\n?\Z)"), ("h", r"[ \t]"), ("R", r"(?:\r\n|\n|\r)")):
        translated = re.sub(r"(?<!\\)((?:\\\\)*)\\" + theirs, lambda m: m.group(1) + ours, translated)
    try:
        return re.compile(translated, re.ASCII)
    except re.error as error:
        log.warning("the regular expression %r is none of Python's (%s): it never matches, continuing", pattern, error)
        return NoPattern()


# --- answers ---

KINDS = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}


def no_constant(name):
    raise ValueError(name)


DECODER = json.JSONDecoder(parse_constant=no_constant)
BLANK = re.compile(r"[ \t\r\n]*")


def past_blanks(text, at):
    return BLANK.match(text, at).end()


def step_into(text, at, part):
    """(begin, end) of the member of that name, or the item of that number, in the value at a place of valid JSON."""
    found, number, closing = None, 0, "}" if text[at] == "{" else "]"
    if text[at] not in "{[" or closing == "]" and not re.fullmatch("0|[1-9][0-9]*", part):
        return None
    at = past_blanks(text, at + 1)
    while text[at] != closing:
        name = str(number)
        if closing == "}":
            name, at = DECODER.scan_once(text, at)
            at = past_blanks(text, past_blanks(text, at) + 1)
        begin, (_, at) = at, DECODER.scan_once(text, at)
        if name == part:
            found = begin, at
        at = past_blanks(text, at)
        if text[at] == ",":
            at = past_blanks(text, at + 1)
        number += 1
    return found


class Answer:
    """A whole response, with what checks and extraction look at."""

    def __init__(self, user, response, took_s):
        self.user, self.response, self.took_s = user, response, took_s
        self.content = response.content or b""

    @functools.cached_property
    def text(self):
        return text_of(self.content)

    @functools.cached_property
    def is_json(self):
        try:
            self.content.decode()
            DECODER.decode(self.text)
        except (ValueError, RecursionError):
            return False
        return True

    def json_at(self, parts):
        if not self.is_json:
            return None
        span = past_blanks(self.text, 0), len(self.text.rstrip(" \t\r\n"))
        for part in parts:
            span = step_into(self.text, span[0], part)
            if not span:
                return None
        found = DECODER.scan_once(self.text, span[0])[0]
        return Seen(True, KINDS[type(found)], found, found if isinstance(found, str) else self.text[span[0]:span[1]])

    def headers(self, name):
        """As they came, one by one."""
        values = self.response.raw.headers.getlist(name)
        return [text_of(given.encode("latin-1")) if isinstance(given, str) else text_of(given) for given in values]

    def header(self, name):
        values = self.headers(name)
        return values[0] if values else None

    def cookie(self, name):
        """The response's, or the one that came before."""
        for given in self.headers("Set-Cookie"):
            key, equals, content = given.partition(";")[0].partition("=")
            if equals and key.strip() == name:
                return content.strip()
        for one in self.user.client.cookies:
            if one.name == name:
                return one.value
        return None


# --- failures of the transport, in the words of C workers ---

ERRNO_WORDS = {
    errno.ECONNREFUSED: "connection refused",
    errno.ETIMEDOUT: "connect timed out",
    errno.ECONNRESET: "connection reset",
    errno.EPIPE: "connection closed before the response was complete",
    errno.EMFILE: "too many open files (generator)",
    errno.ENFILE: "too many open files (generator)",
    errno.EADDRNOTAVAIL: "no free local port (generator)",
    errno.ENETUNREACH: "host unreachable",
    errno.EHOSTUNREACH: "host unreachable",
    errno.ENETDOWN: "host unreachable",
    errno.EHOSTDOWN: "host unreachable",
}
STALE = ("connection reset", "connection closed before the response was complete")
IDEMPOTENT = ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE")
ERROR_WORDS = [
    (requests.TooManyRedirects, "too many redirects"),
    ((requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, requests.exceptions.MissingSchema),
     "redirect to an unusable URL"),
    (requests.ConnectTimeout, "connect timed out"),
    ((requests.Timeout, urllib3.exceptions.ReadTimeoutError, socket.timeout), "timed out"),
    (socket.gaierror, "host name could not be resolved"),
    ((ssl.SSLCertVerificationError, ssl.CertificateError), "TLS certificate not accepted"),
    (ssl.SSLError, "TLS handshake failed"),
    ((http.client.RemoteDisconnected, http.client.IncompleteRead, urllib3.exceptions.IncompleteRead),
     "connection closed before the response was complete"),
    ((http.client.HTTPException, urllib3.exceptions.DecodeError, urllib3.exceptions.InvalidHeader),
     "malformed response"),
    (requests.exceptions.ProxyError, "refused by the proxy"),
]


def causes_of(error):
    """The error and those that it was made of, the outermost first."""
    found, waiting = [], [error]
    while waiting and len(found) < 30:
        one = waiting.pop(0)
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            waiting += [getattr(one, "reason", None), one.__cause__, one.__context__, *one.args]
    return found


def connections_of(session, url):
    """How many were opened so far."""
    adapter = session.get_adapter(url)
    managers = [adapter.poolmanager, *adapter.proxy_manager.values()]
    return sum(one.pools[key].num_connections for one in managers for key in one.pools.keys())


def words_of(error):
    causes = causes_of(error)
    connecting = any(isinstance(one, urllib3.exceptions.NewConnectionError) for one in causes)
    for one in causes:
        if isinstance(one, OSError) and one.errno in ERRNO_WORDS and (connecting or one.errno != errno.ETIMEDOUT):
            return ERRNO_WORDS[one.errno]
    for kinds, words in ERROR_WORDS:
        if any(isinstance(one, kinds) for one in causes):
            return words
    if any("prematurely" in str(one) for one in causes):
        return "connection closed before the response was complete"
    return "request failed"


# --- URLs and names ---


def is_absolute(url):
    return url[:7].lower() == "http://" or url[:8].lower() == "https://"


def joined(host, path):
    if path[:1] not in ("", "?"):
        host = host[:-1] if host.endswith("/") else host
        path = path if path.startswith("/") else "/" + path
    return host + path


def target_of(url):
    """The path with its query, as it is sent."""
    url = url if is_absolute(url) else joined("http://h", url)
    try:
        return requests.Request("GET", url).prepare().path_url
    except (requests.RequestException, ValueError):
        return url


def folded(target):
    """Without the query, and with :id for numbers and hexadecimal ids."""
    segments = target.partition("?")[0].split("/")
    return "/".join(":id" if is_id(segment) else segment for segment in segments)


def is_id(segment):
    if re.fullmatch("[0-9]+", segment):
        return True
    digits = len(re.findall("[0-9A-Fa-f]", segment))
    return digits >= 8 and bool(re.fullmatch("[0-9A-Fa-f-]+", segment) and re.search("[0-9]", segment))


# --- user classes ---

RUN = {"stopped": False}
COUNTER = itertools.count(1)
USER_NUMBERS = itertools.count(1)
SEND = requests.Session  # its own methods: those of Locust's session count requests by themselves
FORM = "application/x-www-form-urlencoded"
STOPS = {"stop task": "stop_task", "stop user": "stop_user", "stop run": "stop_run"}


@events.test_start.add_listener
def begin_run(**_):
    RUN["stopped"] = False
    for one in FEEDS:
        one.rewind()


def named(name):
    """For user classes and tasks whose name is none in Python."""

    def rename(thing):
        thing.__name__ = thing.__qualname__ = name
        return thing

    return rename


def steps(function):
    """A task, on_start or on_stop of a scenario."""

    @functools.wraps(function)
    def do(self):
        is_task = do in type(self).tasks
        if is_task and (self.leaving or RUN["stopped"]):
            raise StopUser()
        self.forget_rows()
        try:
            self.in_order(function)(self) if is_task else function(self)
        except StopTask:
            pass
        except StopUser:
            if is_task:
                raise
            self.leaving = True

    do.steps = function
    return do


@functools.lru_cache(maxsize=None)
def file_of(text):
    """A file that only we can read, for libraries that want one; gone with the process."""
    file, path = tempfile.mkstemp(suffix=".pem")
    with open(file, "w") as out:
        out.write(text)
    atexit.register(os.unlink, path)
    return path


class ScenarioUser(HttpUser):
    abstract = True
    wait_time = constant(0)
    insecure = False  # certificates are not verified
    client_certificate = None  # PEM, with its private key
    proxy = None  # its URL
    order = "random"  # or "sequential": one task after the other
    own_host = None  # a host with variables

    def __init__(self, environment):
        self.host = self.host or ""
        super().__init__(environment)
        self.client.auth = None
        self.client.rebuild_auth = self.leave_host
        self.client.verify = not self.insecure
        if self.insecure:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        if self.client_certificate:
            self.client.cert = file_of(self.client_certificate)
        self.client.headers = {"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": urllib3.util.SKIP_HEADER}
        self.number = next(USER_NUMBERS)
        self.known = {}
        self.rows = {}
        self.failures = 0
        self.paused_s = 0
        self.tasks_begun = 0
        self.leaving = False

    def run(self):
        try:
            super().run()
        finally:
            for index, row in self.rows.items():
                FEEDS[index].give_back(row)

    def in_order(self, chosen):
        """Locust has chosen a task at random; where they come in order it is the next one's turn."""
        if self.order != "sequential":
            return chosen
        self.tasks_begun += 1
        return self.tasks[(self.tasks_begun - 1) % len(self.tasks)].steps

    # values

    @property
    def worker(self):
        return max(getattr(self.environment.runner, "worker_index", 0), 0)

    def forget_rows(self):
        self.rows = {index: row for index, row in self.rows.items() if FEEDS[index].each_user}

    def column(self, name):
        for index, one in enumerate(FEEDS):
            if name in one.columns:
                if index not in self.rows:
                    self.rows[index] = one.take(self.worker)
                return Value(self.rows[index][one.columns.index(name)], False, False)
        return None

    def given(self, name):
        """From the command line or the master; what is the scenario's own value is nothing special."""
        own = None if VARIABLES[name] is None else scalar(VARIABLES[name])
        given = getattr(self.environment.parsed_options, name, None)
        if not isinstance(given, (str, int, float)):
            return own
        text = scalar(given).text
        if text == (own.text if own else ""):
            return own  # an empty field gives no value to what must be given
        number = own is not None and own.json and re.fullmatch(r"true|false|-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", text)
        return Value(text, bool(number), True)

    def value_of(self, name):
        found = self.known.get(name) or self.column(name)
        if found is None and name in VARIABLES:
            found = self.given(name)
        if found is None and name not in VARIABLES:
            found = self.generated(name)
        if found is None:
            raise NoValue(name.partition("(")[0])
        return found

    def generated(self, name):
        between = re.fullmatch(r"random\( *(-?\d+) *, *(-?\d+) *\)", name)
        if between:
            return scalar(random.randint(int(between.group(1)), int(between.group(2))))
        make = {
            "uuid": lambda: str(uuid.uuid4()),
            "timestamp": lambda: int(time.time()),
            "timestamp_ms": lambda: int(time.time() * 1000),
            "counter": lambda: next(COUNTER),
            "user": lambda: self.number,
            "worker": lambda: self.worker,
        }.get(name)
        return scalar(make()) if make else None

    def render(self, text):
        """A text with its variables as a value."""
        out, json_value, hidden, pieces = [], False, False, pieces_of(text)
        for literal, name, how in pieces:
            out.append(literal)
            if name is not None:
                found = self.value_of(name)
                hidden |= found.hidden
                json_value = found.json and len(pieces) == 1 and not literal
                out.append(ENCODED[how](found))
        return Value("".join(out), json_value, hidden)

    def shown(self, text):
        """To be seen: what is hidden or missing is ":name"."""
        out = []
        for literal, name, how in pieces_of(text):
            out.append(literal)
            if name is not None:
                try:
                    found = self.value_of(name)
                except NoValue:
                    found = None
                shown = found is not None and not found.hidden
                out.append(ENCODED[how](found) if shown else ":" + name.partition("(")[0])
        return "".join(out)

    def number_in(self, text):
        try:
            return max(as_number(self.render(text).text.strip(" \t\r\n")) or 0, 0)
        except NoValue:
            return 0

    def learn(self, name, found):
        if len(found.text) > VALUE_LIMIT:
            return False
        self.known[name] = found
        return True

    # steps

    def pause(self, seconds, most=None):
        if isinstance(seconds, str):
            seconds = min(self.number_in(seconds), 1000000)
        elif most is not None:
            seconds = random.uniform(seconds, most)
        begin = time.perf_counter()
        gevent.sleep(seconds)
        self.paused_s += time.perf_counter() - begin

    def repeat(self, times):
        return range(int(min(self.number_in(times), 1000000)))

    def holds(self, *tests):
        return all(test.holds(self, None) for test in tests)

    def as_long_as(self, *tests, limit=1000):
        for number in range(limit):
            if not self.holds(*tests):
                return
            yield number

    @contextlib.contextmanager
    def group(self, name):
        """Its steps are timed together, without their pauses; left early they are not."""
        begin, wall, paused, failures = time.perf_counter(), time.time(), self.paused_s, self.failures
        yield
        took_s = time.perf_counter() - begin - (self.paused_s - paused)
        failure = Failure("a request of the group failed") if self.failures > failures else None
        self.count("GROUP", name, max(took_s, 0), 0, failure, wall)

    def set(self, values):
        for name, given in values.items():
            try:
                made = scalar(given)
                self.learn(name, made if made.json else self.render(given))
            except NoValue:
                pass  # it stays as it is

    def log(self, text):
        log.info("%s", self.shown(text)[:1024])

    def stop_task(self):
        raise StopTask()

    def stop_user(self):
        raise StopUser()

    def stop_run(self):
        """All users of this process end; without a master the run is over."""
        if not RUN["stopped"]:
            log.info("a step of the scenario stopped the run")
        RUN["stopped"] = True
        runner = self.environment.runner
        if isinstance(runner, WorkerRunner):
            gevent.spawn(runner.stop_users, dict(runner.user_classes_count))
        elif self.environment.web_ui is None:
            gevent.spawn(runner.quit)
        else:
            gevent.spawn(runner.stop)
        raise StopUser()

    # requests

    def get(self, url, **how):
        return self.request("GET", url, **how)

    def post(self, url, **how):
        return self.request("POST", url, **how)

    def put(self, url, **how):
        return self.request("PUT", url, **how)

    def patch(self, url, **how):
        return self.request("PATCH", url, **how)

    def delete(self, url, **how):
        return self.request("DELETE", url, **how)

    def head(self, url, **how):
        return self.request("HEAD", url, **how)

    def options(self, url, **how):
        return self.request("OPTIONS", url, **how)

    def request(self, method, url, name=None, host=None, headers=None, body=None, json=None, form=None, file=None,
                expect=(), check=(), extract=None, on_failure=None, timeout=None, redirects=True, body_limit=BODY_LIMIT):
        """Send one request, count it, judge the answer, and take values out of it."""
        response, took_s, length, failure, leaves = None, 0, 0, None, False
        headers = dict(headers or {})
        if json is not None:
            body = json
            headers.setdefault("Content-Type", "application/json")
        elif form is not None:
            body = form
            headers.setdefault("Content-Type", FORM)
        wall = time.time()
        shown = self.name_of(url, name)
        try:
            prepared = self.prepared(method, url, host, headers, bundled(file) if file else body)
            begin = time.perf_counter()
            try:
                response = self.sent(prepared, timeout, redirects)
                length = len(response.content or b"")
            finally:
                took_s = time.perf_counter() - begin
            failure = self.judged(Answer(self, response, took_s), expect, check, extract or {}, body_limit)
        except Failure as error:
            failure = error
        except NoValue as error:
            failure = Failure("variable has no value: %s" % error)
        except EndOfFeed:
            if response is None:
                raise
            leaves = True
        self.count(method, shown, took_s, length, failure, wall, response)
        if leaves:
            raise EndOfFeed()
        if failure is not None:
            self.failures += 1
            if on_failure:
                getattr(self, STOPS[on_failure])()
        return response

    def name_of(self, url, name):
        if name is not None:
            made = self.shown(name)
        elif pieces_of(url)[0][1] is not None and not pieces_of(url)[0][0]:
            made = folded(target_of(self.shown(url)))
        else:
            made = target_of(self.shown(url))
        return made if len(made) <= NAME_BYTES // 4 else bytes_of(made)[:NAME_BYTES].decode("utf-8", "ignore")

    def url_of(self, url, host):
        made = self.render(url).text
        if is_absolute(made):
            return made
        base = self.render(host or self.host or self.own_host or "").text
        if not base:
            raise Failure("request has a path and no host")
        return joined(base, made)

    def prepared(self, method, url, host, headers, content):
        url = self.url_of(url, host)
        made = {}
        for name, text in headers.items():
            text = self.render(text).text
            if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", text):
                raise Failure("request has a header value with control characters")
            text = text.strip(" \t")
            made[name] = text if text.isascii() else bytes_of(text)
        if isinstance(content, str):
            content = bytes_of(self.render(content).text)
        try:
            prepared = SEND.prepare_request(self.client, requests.Request(method, url, headers=made, data=content))
        except (requests.RequestException, ValueError):
            raise Failure("request has no valid URL")
        if not content and method not in ("POST", "PUT", "PATCH"):
            prepared.headers.pop("Content-Length", None)
        for name, text in made.items():  # they win over the user and password of the URL
            prepared.headers[name] = text
        return prepared

    def sent(self, prepared, timeout, redirects):
        """The whole response."""
        limits = timeout if isinstance(timeout, dict) else {"total": timeout}
        clock = gevent.Timeout(limits.get("total"))
        opened = connections_of(self.client, prepared.url)
        try:
            with clock:
                try:
                    return self.whole(prepared, limits, redirects)
                except (requests.RequestException, OSError) as error:
                    reused = opened == connections_of(self.client, prepared.url)
                    if not reused or prepared.method not in IDEMPOTENT or words_of(error) not in STALE:
                        raise
                return self.whole(prepared, limits, redirects)  # the connection that was kept had been closed
        except gevent.Timeout as error:
            if error is not clock:
                raise
            raise Failure("timed out") from None
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise Failure(words_of(error)) from None

    def leave_host(self, prepared, response):
        """A redirect to another host: what was meant for the first one stays behind."""
        if self.client.should_strip_auth(response.request.url, prepared.url):
            prepared.headers.pop("Host", None)
        SEND.rebuild_auth(self.client, prepared, response)

    def whole(self, prepared, limits, redirects):
        proxies = {"http": self.proxy, "https": self.proxy} if self.proxy else {}
        response = SEND.send(self.client, prepared, stream=True, allow_redirects=redirects, proxies=proxies,
                             timeout=(limits.get("connect"), limits.get("first_byte")))
        response.content  # read to its end
        return response

    def judged(self, answer, expect, check, extract, body_limit):
        """Why the answer is a failure, or None. Values are taken up to the first failure."""
        code = answer.response.status_code
        any_status = any(test.subject is status for _, test in check)
        if code not in expect if expect else code >= 400 and not any_status:
            return Failure("HTTP status %d" % code)
        looks = [test.subject for _, test in check] + list(extract.values())
        if len(answer.content) > body_limit and any(one.in_body for one in looks):
            return Failure("body larger than body_limit")
        for words, test in check:
            if not test.holds(self, answer):
                return Failure("check failed: " + words)
        for name, place in extract.items():
            if not self.extracted(name, place, answer):
                return Failure("extraction failed: " + name)
        return None

    def extracted(self, name, place, answer):
        seen = place.look(self, answer)
        if seen is not None:
            return self.learn(name, Value(seen.text, seen.typed and seen.kind != "string", False))
        if place.default is None:
            return False
        default = scalar(place.default)
        try:
            return self.learn(name, default if default.json else self.render(place.default))
        except NoValue:
            return False

    def count(self, method, name, took_s, length, failure, wall, response=None):
        self.environment.events.request.fire(
            request_type=method, name=name, response_time=took_s * 1000, response_length=length, response=response,
            context=self.context(), exception=failure, start_time=wall, url=response.url if response is not None else None)


@events.init_command_line_parser.add_listener
def add_arguments(parser):
    """The declared variables are custom arguments: of the command line and of the master's web page."""
    taken = {action.dest for action in parser._actions}
    for name, own in VARIABLES.items():
        if name in taken:
            continue  # one of Locust's own; it has its value from there
        # old web pages have no field for what is None
        how = {"dest": name, "default": "" if own is None else scalar(own).text, "help": "Variable of the scenario"}
        try:
            parser.add_argument("--" + name, is_secret=bool(re.search("(?i)pass|secret|token|key|cred", name)), **how)
        except TypeError:  # a version that knows no secrets
            parser.add_argument("--" + name, **how)

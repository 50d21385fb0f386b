"""A small application for scenarios to run against: an HTTP server of items, a login, a cart and sessions that are
suspended and woken. It counts what it is asked, so that tests can compare; GET /counts is not counted.

    python3 app.py PORT        (0: any; the port is printed)
"""
import collections
import gzip
import http.server
import json
import re
import socketserver
import sys
import threading
import time
import urllib.parse
import uuid


class App:
    def __init__(self):
        self.lock = threading.Lock()
        self.counts = collections.Counter()  # "POST /login 200"
        self.seen = collections.defaultdict(list)  # what tests look at: users that logged in, bodies, …
        self.tokens = {}
        self.items = {}
        self.sessions = {}
        self.next_item = 100


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 65536

    def log_message(self, *args):
        pass

    def answer(self, status, value=None, headers=(), text=None):
        body = text.encode() if text is not None else b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "text/html" if text is not None else "application/json")
        for name, content in headers:
            self.send_header(name, content)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        with self.app.lock:
            self.app.counts["%s %s %d" % (self.command, self.shape, status)] += 1

    def note(self, what, value):
        with self.app.lock:
            self.app.seen[what].append(value)

    def user(self):
        """The name that belongs to the bearer's token or the session cookie."""
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        cookie = re.search(r"sid=(\w+)", self.headers.get("Cookie", ""))
        return self.app.tokens.get(token or (cookie and cookie.group(1)))

    def handle_one(self):
        url = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(url.query))
        self.shape = re.sub(r"(?<=/)(\d+|[0-9a-f]{8}-[0-9a-f-]{27})(?=/|$)", ":id", url.path)
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/counts":
            with self.app.lock:
                state = json.dumps({"counts": self.app.counts, "seen": self.app.seen})
            body = state.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        for method, pattern, handle in self.routes:
            match = re.fullmatch(pattern, url.path)
            if match and method in (self.command, "*"):
                handle(self, *match.groups())
                return
        self.answer(404, {"error": "not found"})

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = handle_one

    def form_or_json(self):
        if "json" in self.headers.get("Content-Type", ""):
            return json.loads(self.body)
        return dict(urllib.parse.parse_qsl(self.body.decode()))

    def home(self):
        self.answer(200, text="<html><title>Shop</title><a href='/items/17'>seventeen</a></html>")

    def login(self):
        given = self.form_or_json()
        self.note("logins", given.get("user"))
        if given.get("password") != "secret-of-%s" % given.get("user"):
            self.answer(403, {"ok": False, "error": "wrong password"})
            return
        token = uuid.uuid4().hex
        with self.app.lock:
            self.app.tokens[token] = given["user"]
        self.answer(200, {"ok": True, "token": token, "user": {"name": given["user"], "id": len(self.app.tokens)}},
                    [("Set-Cookie", "sid=%s; Path=/; HttpOnly" % token), ("X-Token", token)])

    def logout(self):
        name = self.user()
        self.note("logouts", name)
        self.answer(200 if name else 401, {"ok": bool(name)})

    def me(self):
        name = self.user()
        self.answer(200 if name else 401, {"name": name})

    def list_items(self):
        page = int(self.query.get("page", 1))
        self.note("pages", page)
        items = [{"id": page * 10 + i, "price": 1.5 * i} for i in range(3)]
        self.answer(200, {"ok": True, "page": page, "items": items, "q": self.query.get("q")})

    def get_item(self, number):
        self.note("items", int(number))
        self.answer(200, {"ok": True, "id": int(number), "name": "item %s" % number})

    def add_item(self):
        item = self.form_or_json()
        with self.app.lock:
            self.app.next_item += 1
            number = self.app.next_item
            self.app.items[number] = item
        self.note("added", item)
        self.answer(201, {"ok": True, "id": number, "url": "/items/%d" % number}, [("Location", "/items/%d" % number)])

    def begin_session(self):
        number = str(uuid.uuid4())
        with self.app.lock:
            self.app.sessions[number] = {"state": "starting", "asked": 0, "steps": 0}
        self.answer(201, {"id": number, "state": "starting"})

    def session(self, number):
        with self.app.lock:
            s = self.app.sessions.get(number)
            if s:
                s["asked"] += 1
                if s["state"] in ("starting", "waking") and s["asked"] >= 3:
                    s["state"] = "ready"
            copy = dict(s or {})
        self.answer(200 if s else 404, dict(copy, id=number))

    def session_step(self, number):
        with self.app.lock:
            s = self.app.sessions.get(number)
            ready = s and s["state"] == "ready"
            if ready:
                s["steps"] += 1
        self.note("steps", (self.form_or_json() or {}).get("prompt"))
        self.answer(200 if ready else 409, {"ok": bool(ready)})

    def session_state(self, number, verb):
        states = {"suspend": ("ready", "suspended"), "wake": ("suspended", "waking")}
        with self.app.lock:
            s = self.app.sessions.get(number)
            before, after = states[verb]
            fits = s and s["state"] == before
            if fits:
                s["state"], s["asked"] = after, 0
        self.answer(202 if fits else 409, {"state": after if fits else None})

    def end_session(self, number):
        with self.app.lock:
            s = self.app.sessions.pop(number, None)
        self.note("ended sessions", (s or {}).get("steps"))
        self.answer(204 if s else 404)

    def upload(self):
        self.note("uploads", [self.headers.get("Content-Type", ""), self.body.decode("latin-1")])
        self.answer(200, {"ok": True, "bytes": len(self.body)})

    def echo(self):
        self.note("echoes", [self.path, self.headers.get("X-Test"), self.body.decode("latin-1")])
        self.answer(200, {"method": self.command, "path": self.path, "headers": dict(self.headers),
                          "body": self.body.decode("latin-1")})

    def status(self, number):
        self.answer(int(number), {"ok": int(number) < 400})

    def coded(self, kind):
        """A JSON body, gzipped or in chunks of one byte."""
        body = json.dumps({"ok": True, "text": "caf\u00e9 " * 200, "n": 1.50}).encode()
        self.send_response(200)
        if kind == "gzip":
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
        else:
            self.send_header("Transfer-Encoding", "chunked")
            body = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
        self.end_headers()
        self.wfile.write(body)
        with self.app.lock:
            self.app.counts["GET %s 200" % self.shape] += 1

    def slow(self):
        time.sleep(float(self.query.get("s", 0.5)))
        self.answer(200, {"ok": True})

    def redirect(self):
        self.answer(302, {}, [("Location", "/items/5"), ("Set-Cookie", "seen=yes; Path=/")])

    routes = [
        ("GET", r"/", home),
        ("POST", r"/login", login),
        ("POST", r"/logout", logout),
        ("GET", r"/me", me),
        ("GET", r"/items", list_items),
        ("GET", r"/items/(\d+)", get_item),
        ("POST", r"/items", add_item),
        ("POST", r"/sessions", begin_session),
        ("GET", r"/sessions/([0-9a-f-]+)", session),
        ("POST", r"/sessions/([0-9a-f-]+)/steps", session_step),
        ("POST", r"/sessions/([0-9a-f-]+)/(suspend|wake)", session_state),
        ("DELETE", r"/sessions/([0-9a-f-]+)", end_session),
        ("POST", r"/upload", upload),
        ("*", r"/echo(?:/.*)?", echo),
        ("*", r"/status/(\d+)", status),
        ("GET", r"/coded/(gzip|chunked)", coded),
        ("GET", r"/slow", slow),
        ("GET", r"/redirect", redirect),
    ]


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256


def serve(port=0):
    """A server in a thread of its own; its address is .server_address, its App is .app."""
    handler = type("Handler", (Handler,), {"app": App()})
    server = Server(("127.0.0.1", port), handler)
    server.app = handler.app
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    running = serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    print(running.server_address[1], flush=True)
    threading.Event().wait()

"""Child processes whose output is kept in a file, and free ports."""
import ctypes
import fcntl
import os
import random
import re
import signal
import socket
import subprocess
import tempfile
import time

PR_SET_PDEATHSIG = 1
PORT_LOCKS = []  # kept open: they hold this session's ports


def wait_for(condition, timeout, what):
    """Poll until condition() is true and return its value; TimeoutError names what was waited for."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError("waited %g s for %s" % (timeout, what() if callable(what) else what))
        time.sleep(0.05)


def free_port():
    """A port that nobody listens on, below the ephemeral range (outgoing connections cannot take it), and that no
    other test session of this user picks at the same time."""
    folder = os.path.join(tempfile.gettempdir(), "cicada-test-ports-%d" % os.getuid())
    os.makedirs(folder, exist_ok=True)
    while True:
        port = random.randrange(12000, 32000)
        lock = open(os.path.join(folder, str(port)), "w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as s:
                s.bind(("0.0.0.0", port))
        except OSError:
            lock.close()
            continue
        PORT_LOCKS.append(lock)
        return port


class Process:
    """One child, in a process group of its own that is ended with it. Standard output and error go to one file."""

    def __init__(self, name, argv, folder, env=None):
        self.name = name
        self.argv = [str(a) for a in argv]
        self.path = os.path.join(folder, name + ".log")
        self.popen = None
        self.env = dict(os.environ, PYTHONUNBUFFERED="1", **(env or {}))
        self.folder = folder
        self.killed = False

    def start(self):
        libc = ctypes.CDLL(None)

        def die_with_parent():
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.signal(signal.SIGINT, signal.default_int_handler)  # where tests run in parallel it is ignored

        with open(self.path, "ab") as out:
            self.popen = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=self.folder,
                env=self.env, start_new_session=True, preexec_fn=die_with_parent)
        return self

    @property
    def pid(self):
        return self.popen.pid

    def alive(self):
        return self.popen is not None and self.popen.poll() is None

    def text(self, since=0):
        with open(self.path, "rb") as f:
            f.seek(since)
            return f.read().decode("utf-8", "replace")

    def size(self):
        return os.path.getsize(self.path)

    def wait_line(self, pattern, timeout=20, since=0):
        """The first match of the pattern in the output from byte `since` on."""
        def look():
            found = re.search(pattern, self.text(since))
            if not found and not self.alive():
                found = re.search(pattern, self.text(since))
                if not found:
                    raise AssertionError("%s ended (%s) without saying %r:\n%s" % (
                        self.name, self.popen.poll(), pattern, self.text()))
            return found
        return wait_for(look, timeout, lambda: "%r in the output of %s:\n%s" % (pattern, self.name, self.text()))

    def signal(self, number):
        self.popen.send_signal(number)

    def wait(self, timeout=20):
        """Exit status."""
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError("%s did not end in %g s:\n%s" % (self.name, timeout, self.text())) from None

    def end(self, timeout=20):
        """SIGTERM; exit status."""
        self.signal(signal.SIGTERM)
        return self.wait(timeout)

    def kill(self):
        """SIGKILL to the whole group, whatever is left of it."""
        if self.popen is None:
            return
        self.killed = True
        try:
            os.killpg(self.popen.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.popen.wait()

"""Locust's own modules for tests that call them. Locust patches sockets and threads of the process that imports it; the
other tests need them as they are, and the Locusts that they start must not see the switch."""
import os

os.environ["LOCUST_SKIP_MONKEY_PATCH"] = "1"
try:
    from locust import stats
    from locust.event import Events
    from locust.exception import CatchResponseError
    from locust.rpc import Message
finally:
    del os.environ["LOCUST_SKIP_MONKEY_PATCH"]

__all__ = ["CatchResponseError", "Events", "Message", "stats"]

START_S = 1_700_000_000.0  # of the fixture clock


def hexed(raw):
    """A text in a script for the programs of test/tools."""
    return raw.hex() or "-"


def text(raw):
    """What Locust makes of bytes that should be UTF-8."""
    return raw.decode("utf-8", "replace")

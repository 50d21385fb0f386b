"""What a request may cost in user space. Counted, not timed: the same on a busy machine."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))

from instructions import engine, per_request

BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))

PLAIN = 2100  # nothing but a GET on a kept-alive connection and its samples
EACH = 3000  # the same where each response has another head, so that it is parsed
TASK = 2600  # a plain request by a task in C
GET = os.path.join(BUILD, "bench", "tasks", "get.so")


def assert_within(limit, command):
    instructions, costs = per_request(command)
    table = "\n".join("%8.1f %s" % row for row in costs[:30])
    print("%.0f instructions a request\n%s" % (instructions, table))
    assert 500 < instructions <= limit, "%.0f instructions a request:\n%s" % (instructions, table)


def test_a_plain_request_stays_within_its_budget(nginx):
    assert_within(PLAIN, engine(nginx.url + "/"))


def test_a_response_unlike_the_last_one_stays_within_its_budget(nginx):
    assert_within(EACH, engine(nginx.url + "/each"))


def test_a_task_in_c_stays_within_its_budget(nginx):
    assert_within(TASK, engine(GET, 100, "-H", nginx.url))

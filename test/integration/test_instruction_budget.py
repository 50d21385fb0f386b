"""What a request may cost in user space. Counted, not timed: the same on a busy machine."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))

from instructions import engine, per_request

PLAIN = 3000  # nothing but a GET on a kept-alive connection and its samples


def test_a_plain_request_stays_within_its_budget(nginx):
    instructions, costs = per_request(engine(nginx.url + "/"))
    table = "\n".join("%8.1f %s" % row for row in costs[:30])
    print("%.0f instructions a request\n%s" % (instructions, table))
    assert 500 < instructions <= PLAIN, "%.0f instructions a request:\n%s" % (instructions, table)

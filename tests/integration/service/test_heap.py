"""The garbage collector's settings, in a process of their own: they hold for all of it."""

import subprocess
import sys

SCRIPT = """
import gc
from synergy_service import heap
kept = [{"a": [index]} for index in range(5000)]
heap.settle()
assert gc.get_freeze_count() > 10_000, gc.get_freeze_count()
before = gc.get_stats()[2]["collections"]
for _ in range(50):
    kept = [{"a": [index]} for index in range(5000)]
assert gc.get_stats()[2]["collections"] == before, "replacing what is kept brings no look at all objects"
cycle = []
cycle.append(cycle)
del cycle
assert gc.collect() >= 1, "cycles are still found"
"""


def test_a_settled_heap_is_looked_at_seldom_and_cycles_are_still_found() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

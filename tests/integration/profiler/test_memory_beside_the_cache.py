"""What the processes need is told apart from what the cache holds, though the kernel counts both as one."""

import pytest

from synergy_profiler.child import Child
from synergy_profiler.harness import _Watch
from synergy_profiler.measurement import Sample
from synergy_profiler.options import Options
from synergy_profiler.result import Measured
from synergy_profiler.steps import StepReceiver

MIB = 1 << 20


@pytest.mark.parametrize(
    ("seen", "told", "needed"),
    [
        ([500], [None, None], 500),  # no cache
        ([500, 800, 900], [0, 300, 400], 500),  # it fills
        ([500, 800, 950, 700], [0, 300, 400, 200], 550),  # the processes need more for a while
        ([500, 900], [300], 600),  # the last look comes after the last step
    ],
)
def test_memory_is_counted_without_the_cache(
    seen: list[int], told: list[int | None], needed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = StepReceiver()
    child = Child(["true"], {})
    watch = _Watch(child, receiver, Options(warmup_steps=0))
    looks = iter(seen)
    monkeypatch.setattr("synergy_job.cgroup.Cgroup.memory_bytes", lambda _: next(looks) * MIB)
    monkeypatch.setattr("resource.getrusage", lambda _: type("Usage", (), {"ru_maxrss": 1024}))
    for step in range(max(len(seen), len(told), 2)):
        if step < len(seen):
            watch._memory_read_at = float("-inf")
            watch._watch_memory()
        cached = told[step] if step < len(told) else None
        if step < len(told) or len(told) < 2:
            watch._take(Sample(step, float(step), cache_bytes=None if cached is None else cached * MIB))
    watch._mark_cpu()
    result = watch.result()
    child.stop(1)
    receiver.close()
    assert isinstance(result, Measured)
    assert (result.max_rss_bytes, result.cached) == (needed * MIB, told[0] is not None)

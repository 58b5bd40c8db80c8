"""What a command beside another one tells: few moments of its steps, and its GPUs."""

import json

from synergy_profiler.measurement import Measurement, Sample
from synergy_profiler.result import Measured
from synergy_profiler.together import MOST_MARKS, together


def _samples(count: int) -> list[Sample]:
    return [Sample(step, 100.0 + step / 7) for step in range(count)]


def test_few_samples_are_all_told_on_the_clock_of_the_node() -> None:
    found = together(_samples(3), 1000.0, ["GPU-1"])
    assert found.marks == ((1100.0, 0), (1100.143, 1), (1100.286, 2))
    assert found.gpus == ("GPU-1",)


def test_many_are_thinned_evenly_with_both_ends_and_fit_into_a_message() -> None:
    samples = [Sample(10**9 + step, 1.0 + step / 7) for step in range(5000)]
    found = together(samples, 1.7e9, [f"GPU-{'0' * 36}"])
    assert len(found.marks) == MOST_MARKS
    assert (found.marks[0][1], found.marks[-1][1]) == (samples[0].step, samples[-1].step)
    gaps = [after[1] - before[1] for before, after in zip(found.marks, found.marks[1:], strict=False)]
    assert max(gaps) - min(gaps) <= 1
    measured = Measured(Measurement(7.0, 0.1, 4999, 714.0), 5, 100, 1 << 40, cached=False, together=found)
    text = measured.to_json()
    assert len(text) < (12 << 10) // 5, "what the kubelet keeps of each of five containers"
    assert [tuple(mark) for mark in json.loads(text)["together"]["marks"]] == list(found.marks)

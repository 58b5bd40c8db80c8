"""Generated traces have the distributions of the paper's section 5.1."""

from collections import Counter

import pytest

from synergy_simulator.inputs.errors import InputError
from synergy_simulator.workloads.generator import PHILLY, TASKS, Split, generate, parse_split, with_models

MODELS = [name for names in TASKS.values() for name in names]
SPLIT = Split(20, 70, 10)


def test_durations_arrivals_sizes_and_models() -> None:
    jobs = generate(20_000, seed=1, split=SPLIT, models=MODELS, jobs_per_hour=9.0, gpu_mix=PHILLY)
    minutes = sorted((job.duration_s or 0) / 60 for job in jobs)
    assert minutes[0] >= 10**1.5
    assert minutes[-1] <= 10**4
    assert sum(m <= 1000 for m in minutes) / len(jobs) == pytest.approx(0.8, abs=0.01)
    # the median of the short ones is in the middle of their exponents
    assert minutes[8000] == pytest.approx(10**2.25, rel=0.05)
    assert jobs[-1].arrival_s / len(jobs) == pytest.approx(400, rel=0.03)
    tasks = Counter(task for job in jobs for task, names in TASKS.items() if job.model in names)
    assert [tasks[task] / len(jobs) for task in TASKS] == pytest.approx([0.2, 0.7, 0.1], abs=0.01)
    assert sum(job.gpus == 1 for job in jobs) / len(jobs) == pytest.approx(76627 / 82164, abs=0.01)
    assert max(job.gpus for job in jobs) <= 16


def test_a_static_trace_arrives_at_once() -> None:
    assert {job.arrival_s for job in generate(10, seed=1, split=SPLIT, models=MODELS)} == {0.0}


def test_a_seed_gives_the_same_trace_and_a_load_changes_the_arrivals_only() -> None:
    slow, again, fast = (
        generate(50, seed=3, split=SPLIT, models=MODELS, jobs_per_hour=load) for load in (1.0, 1.0, 2.0)
    )
    assert slow == again
    assert slow != generate(50, seed=4, split=SPLIT, models=MODELS, jobs_per_hour=1.0)
    assert [job.duration_s for job in slow] == [job.duration_s for job in fast]
    assert [job.arrival_s for job in slow] == pytest.approx([2 * job.arrival_s for job in fast])


def test_models_that_a_trace_tells_stay() -> None:
    jobs = generate(30, seed=1, split=Split(1, 0, 0), models=MODELS)
    assert with_models(jobs, Split(0, 0, 1), MODELS, seed=5) == jobs


def test_a_split_without_models_for_a_task_is_refused() -> None:
    with pytest.raises(InputError, match="speech models, and the profiles have none of deepspeech, m5"):
        generate(3, seed=1, split=SPLIT, models=["alexnet", "lstm"])


@pytest.mark.parametrize("text", ["20,70", "a,b,c", "-1,2,3", "0,0,0", "inf,1,1"])
def test_a_bad_split(text: str) -> None:
    with pytest.raises(ValueError, match="must be three numbers"):
        parse_split(text)

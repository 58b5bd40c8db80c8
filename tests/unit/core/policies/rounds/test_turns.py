"""Whose turn it is in a round: the timetable, and the rounds that settle accounts."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from support.planner.planning import job
from synergy_core.model.snapshot import Job
from synergy_core.policies.rounds import turns
from synergy_core.policies.rounds.turns import ACCOUNTING_EVERY


@dataclass(frozen=True)
class _Share:
    job: Job
    gpu_type: str
    share: float
    priority: float = 1.0
    pressed: bool = False


def in_turn(shares: list[_Share], number: int, *, follows: bool = False) -> list[_Share]:
    """The shares in the order in which the round serves them."""
    by_arrival = sorted(shares, key=lambda one: (one.job.arrival_s, one.job.name, one.gpu_type))
    types = sorted({one.gpu_type for one in shares})
    names = sorted({one.job.name for one in shares})
    arrays = turns.Shares(
        share=np.array([one.share for one in by_arrival]),
        priority=np.array([one.priority for one in by_arrival]),
        gpus=np.array([float(one.job.gpus) for one in by_arrival]),
        type_=np.array([types.index(one.gpu_type) for one in by_arrival]),
        row=np.array([names.index(one.job.name) for one in by_arrival]),
        pressed=np.array([one.pressed for one in by_arrival]),
    )
    return [by_arrival[place] for place in turns.in_turn(arrays, number, follows=follows).tolist()]


def _shares(*shares: float, gpu_type: str = "V100") -> list[_Share]:
    return [_Share(job(f"j{index}", 1, arrival_s=float(index)), gpu_type, share) for index, share in enumerate(shares)]


def _first(shares: list[_Share], count: int, rounds: range) -> Counter[str]:
    """How often each job is among the first `count`."""
    return Counter(one.job.name for number in rounds for one in in_turn(shares, number)[:count])


def test_every_share_has_its_part_of_the_rounds_between_settlements() -> None:
    shares = _shares(1.0, 0.5, 0.3, 0.15, 0.05)
    timetable = [number for number in range(320) if number % ACCOUNTING_EVERY]
    had = Counter(one.job.name for number in timetable for one in in_turn(shares, number)[:2])
    for one in shares:
        assert had[one.job.name] == pytest.approx(one.share * len(timetable), abs=2.0)


def test_who_is_not_due_has_no_round_of_who_is_however_much_it_is_owed() -> None:
    always, owed = _shares(1.0, 0.02)
    shares = [always, _Share(owed.job, "V100", owed.share, priority=50.0)]
    assert _first(shares, 1, range(1, ACCOUNTING_EVERY)) == {"j0": ACCOUNTING_EVERY - 1}
    assert in_turn(shares, ACCOUNTING_EVERY)[0].job.name == "j1"


def test_where_x_follows_who_is_to_run_all_the_time_comes_first_and_nothing_is_settled() -> None:
    wide = _Share(job("wide", 8), "V100", 0.99, priority=50.0)
    shares = [*_shares(1.0), wide]
    assert {in_turn(shares, number, follows=True)[0].job.name for number in range(4 * ACCOUNTING_EVERY)} == {"j0"}
    assert "wide" in {in_turn(shares, number)[0].job.name for number in range(1, ACCOUNTING_EVERY)}


def test_of_those_who_are_due_the_one_that_is_owed_most_comes_first() -> None:
    """Two jobs of all GPUs each, with more than their time together: mostly both are due, and only one fits."""
    shares = [_Share(job(f"j{i}", 4), "V100", 0.9, priority=float(i)) for i in range(2)]
    assert _first(shares, 1, range(1, ACCOUNTING_EVERY))["j1"] >= 12


def test_a_job_is_due_on_one_type_at_a_time_and_on_each_for_its_part() -> None:
    """By X / f those that are due stand in the order of their names here, so that the first entries are who is due."""
    split = {"K80": 0.25, "P100": 0.5, "V100": 0.25}
    shares = [
        _Share(job(f"j{index}", 1), gpu_type, share, priority=10.0 - index)
        for index in range(6)
        for gpu_type, share in split.items()
    ]
    rounds = [number for number in range(40 * ACCOUNTING_EVERY) if number % ACCOUNTING_EVERY]
    due = [in_turn(shares, number)[:6] for number in rounds]
    assert all({one.job.name for one in each} == {f"j{index}" for index in range(6)} for each in due)
    on_types = [Counter(one.gpu_type for one in each) for each in due]
    assert all(abs(count["P100"] - 3) <= 1 and abs(count["V100"] - 1.5) <= 1.5 for count in on_types)
    for name in ("j0", "j5"):
        of_job = Counter(one.gpu_type for each in due for one in each if one.job.name == name)
        for gpu_type, share in split.items():
            assert of_job[gpu_type] == pytest.approx(share * len(rounds), abs=0.01 * len(rounds))


def test_pressed_jobs_come_before_all_others() -> None:
    shares = [*_shares(1.0), _Share(job("late", 1), "V100", 0.1, pressed=True)]
    assert {in_turn(shares, number)[0].job.name for number in range(2 * ACCOUNTING_EVERY)} == {"late"}


def test_a_share_that_grows_is_served_at_once_whatever_it_had_before() -> None:
    before, after = _shares(0.1, 1.0), _shares(1.0, 0.1)
    for shares, always in ((before, "j1"), (after, "j0")):
        assert _first(shares, 1, range(1, ACCOUNTING_EVERY)) == {always: ACCOUNTING_EVERY - 1}


def test_when_accounts_are_settled_the_larger_of_two_equal_claims_comes_first() -> None:
    assert [one.job.name for one in in_turn(_shares(0.3, 0.7, 0.5), 0)] == ["j1", "j2", "j0"]


def test_other_types_of_a_job_that_is_due_come_before_jobs_that_are_not() -> None:
    """Half its time on each type, `always` is due in every round; `seldom` in one of fifty, however much it is owed."""
    always = [_Share(job("always", 1), gpu_type, 0.5) for gpu_type in ("K80", "V100")]
    shares = [*always, _Share(job("seldom", 1), "V100", 0.02, priority=50.0)]
    orders = Counter(tuple(one.job.name for one in in_turn(shares, number)) for number in range(1, ACCOUNTING_EVERY))
    assert orders[("always", "always", "seldom")] >= ACCOUNTING_EVERY - 3


def test_of_jobs_that_have_one_gpu_together_one_is_due_in_every_round() -> None:
    """Ten tenths are not quite 1 as floats. Round 0 begins exactly where the first job's time does."""
    shares = _shares(*[0.1] * 10)
    first = [in_turn(shares, number, follows=True)[0].job.name for number in range(10)]
    assert first[0] == "j9"
    assert len(set(first)) >= 9


def test_where_the_mark_lies_between_two_types_only_the_second_is_due() -> None:
    """Round 0 of a job that is split by the golden section: both types due, the larger share would come first."""
    golden = (5**0.5 - 1) / 2
    one = job("split", 1)
    shares = [_Share(one, "K80", golden), _Share(one, "V100", 1.0 - golden)]
    assert [each.gpu_type for each in in_turn(shares, 0, follows=True)] == ["V100", "K80"]


def test_a_job_that_has_not_all_the_time_has_its_part_on_each_of_its_types() -> None:
    """Four jobs, each half of the time: a tenth of it on K80, four tenths on V100. Two are due in each round."""
    shares = [
        _Share(job(f"j{index}", 1), gpu_type, share)
        for index in range(4)
        for gpu_type, share in (("K80", 0.1), ("V100", 0.4))
    ]
    rounds = [number for number in range(100 * ACCOUNTING_EVERY) if number % ACCOUNTING_EVERY]
    due = Counter((one.job.name, one.gpu_type) for number in rounds for one in in_turn(shares, number)[:2])
    for one in shares:
        assert due[one.job.name, one.gpu_type] == pytest.approx(one.share * len(rounds), abs=0.03 * len(rounds))

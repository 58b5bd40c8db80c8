"""What a policy over an allocation matrix answers for a round: order, types, placements, pairs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from support.planner.planning import holding, job
from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.snapshot import Job
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.problem import AllocationMatrix
from synergy_core.policies.allocation.solver import Sought
from synergy_core.policies.queue import Queue, Ranking
from synergy_core.policies.rounds.time_shares import ranked_by

ROUND_S = 100.0
Table = Mapping[str, Mapping[str, float]]


class _Told:
    """Answers with an X by job (a pair: `a+b`) and column."""

    def __init__(self, x: Table) -> None:
        self._x = x

    def solve(self, sought: Sought, budget: Budget) -> AllocationMatrix:
        del budget
        made = sought.problem
        rows = [*made.jobs, *(f"{made.jobs[one]}+{made.jobs[other]}" for one, other in made.pairs.tolist())]
        x = np.array([[self._x.get(row, {}).get(column, 0.0) for column in made.columns] for row in rows])
        return AllocationMatrix(x=x, objective=0.0, status="optimal", solver="", normalisation="")

    def late(self) -> None:
        return None


class _All:
    """Any two jobs may share a GPU of any type, at nine tenths of their speed each."""

    def rows(self, jobs: Sequence[Job], types: Sequence[str], alone: Floats, workers: Floats) -> tuple[Ints, Floats]:
        del types, workers
        pairs = np.array([(one, other) for one in range(len(jobs)) for other in range(one + 1, len(jobs))])
        return pairs, np.stack([0.9 * alone[pairs[:, 0]], 0.9 * alone[pairs[:, 1]]], axis=2)

    def gpus(self, jobs: Sequence[Job], gpu_type: str) -> int:
        del jobs, gpu_type
        return 8


def _ranked(
    jobs: Sequence[Job], x: Table, speeds: Table, gpus: Mapping[str, int], *, number: int = 1, **more: Any
) -> Ranking:
    policy = more.pop("policy", "max-min-fairness")
    by_job = {one.name: dict(speeds.get(one.name, speeds.get("", {}))) for one in jobs}
    queue = Queue(
        number * ROUND_S,
        tuple(jobs),
        lambda one: max(by_job[one.name].values(), default=0.0),
        gpus=sum(gpus.values()),
        speeds=lambda one: by_job[one.name],
        gpus_of=gpus,
        round_s=ROUND_S,
        **more,
    )
    queue.solutions.solver = _Told(x)
    return ranked_by(policy)(queue)


FAST_AND_SLOW = {"": {"A100": 9.0, "K80": 1.0, "T4": 3.0}}


def test_jobs_with_a_type_come_first_the_largest_of_them_ahead_and_the_others_by_their_shares() -> None:
    """Five GPUs: the two jobs that have all their time fit, then come those that have some, then the rest."""
    jobs = [job("none"), job("some", 2, arrival_s=1.0), job("one", arrival_s=2.0), job("four", 4, arrival_s=3.0)]
    x = {"one": {"A100": 1.0}, "four": {"A100": 1.0}, "some": {"A100": 0.01}}
    found = _ranked(jobs, x, FAST_AND_SLOW, {"A100": 5})
    assert found.names == ("four", "one", "some", "none")
    assert found.types["four"] == found.types["one"] == ("A100",)
    assert (found.together, found.placements, found.leaves_idle, found.isolated) == ((), {}, False, ())


def test_of_jobs_as_large_the_one_that_is_served_first_is_ahead() -> None:
    jobs = [job("a"), job("b", received_s={}), job("c", received_s={"A100": 50.0})]
    x = {one.name: {"A100": 1.0} for one in jobs}
    had = [job("a", received_s={"A100": 90.0}), *jobs[1:]]
    assert _ranked(had, x, FAST_AND_SLOW, {"A100": 3}).names == ("b", "c", "a")


def test_a_waiting_job_may_run_where_it_has_time_by_priority_then_on_the_rest_the_fastest_first() -> None:
    """`x` holds the only A100 and the T4s are all `y`'s; `w` has a little time on T4s."""
    jobs = [job("x"), job("y", 2, arrival_s=1.0), job("w", 2, arrival_s=2.0)]
    x = {"x": {"A100": 1.0}, "y": {"T4": 1.0}, "w": {"T4": 0.01}}
    gpus = {"A100": 2, "K80": 2, "T4": 2}
    found = _ranked(jobs, x, FAST_AND_SLOW, gpus)
    assert found.types["w"] == ("T4", "A100", "K80")
    more = _ranked(jobs, {**x, "w": {"T4": 0.01, "K80": 0.02}}, FAST_AND_SLOW, {**gpus, "K80": 0})
    assert more.types["w"] == ("T4", "A100")
    assert list(found.types) == ["x", "y", "w"]
    assert len(found.types) == 3
    nothing = _ranked(jobs, {"x": {"A100": 1.0}}, FAST_AND_SLOW, gpus)
    assert nothing.types["w"] == ("A100", "T4", "K80")


def test_by_cost_a_waiting_job_may_run_only_where_it_has_time() -> None:
    jobs = [job("x", 2), job("w", 2, arrival_s=1.0), job("v", arrival_s=2.0)]
    x = {"x": {"K80": 1.0}, "w": {"K80": 0.01}}
    prices = {"A100": 1.0, "K80": 1.0, "T4": 1.0}
    found = _ranked(jobs, x, FAST_AND_SLOW, dict.fromkeys(prices, 2), policy="min-cost", prices=prices)
    assert found.types["w"] == ("K80",)
    assert found.types["v"] == ()
    assert found.leaves_idle
    idle = _ranked([job("x", 2)], {}, FAST_AND_SLOW, dict.fromkeys(prices, 1), policy="min-cost", prices=prices)
    assert (idle.names, idle.leaves_idle) == (("x",), True)


@pytest.mark.parametrize(("aware", "policy", "moves"), [(True, "max-min-fairness", True),
                                                        (False, "max-min-fairness", False),
                                                        (True, "min-cost", False)])  # fmt: skip
def test_jobs_move_up_under_policies_that_see_types_and_do_not_go_by_cost(
    aware: bool, policy: str, moves: bool
) -> None:
    x = {"x": {"K80": 0.999, "A100": 0.001}}
    prices = {"A100": 1.0, "K80": 1.0}
    speeds = {"": {"A100": 9.0, "K80": 1.0}}
    had = job("x", received_s={"A100": 99.0})
    found = _ranked([had], x, speeds, dict.fromkeys(prices, 1), aware=aware, policy=policy, prices=prices,
                    number=2)  # fmt: skip
    assert found.types["x"] == (("A100",) if moves else ("K80",))


@pytest.mark.parametrize(("far", "expected"), [(0.5, "pack"), (1.0, "pack"), (1.5, "spread")])
def test_where_x_says_nothing_a_job_is_placed_in_the_faster_way_and_packed_where_both_are_alike(
    far: float, expected: str
) -> None:
    """On K80s it has no time; on A100s as its share says."""
    parts = {"K80": (1.0, far), "A100": (1.0, 0.5)}
    x = {"x": {"A100": 0.001, "A100_unconsolidated": 0.999}}
    speeds = {"": {"A100": 9.0, "K80": 1.0}}
    found = _ranked([job("x", 2)], x, speeds, {"A100": 2, "K80": 2}, speed_parts=lambda _: parts, number=2)
    assert found.placements == {"x": {"K80": expected, "A100": "spread"}}
    packed = _ranked([job("x", 2)], {"x": {"A100": 1.0}}, speeds, {"A100": 2, "K80": 2}, speed_parts=lambda _: parts)
    assert packed.placements["x"]["A100"] == "pack"


def test_in_a_round_that_both_are_due_a_pair_gets_one_gpu_and_both_have_its_type() -> None:
    jobs = [job("a"), job("b"), job("c")]
    found = _ranked(jobs, {"a+b": {"A100": 1.0}, "c": {"K80": 1.0}}, FAST_AND_SLOW, {"A100": 1, "K80": 1}, pairs=_All())
    assert found.together == (("A100", ("a", "b")),)
    assert found.types["a"] == found.types["b"] == ("A100",)
    assert set(found.names[:3]) == {"a", "b", "c"}
    accounting = _ranked(jobs, {"a+b": {"A100": 1.0}}, FAST_AND_SLOW, {"A100": 1, "K80": 1}, pairs=_All(), number=16)
    assert accounting.together == (("A100", ("a", "b")),)


def test_the_later_of_a_pair_stands_where_the_pair_does() -> None:
    """Neither is due: the pair's share is larger than that of the job alone, though that one came first."""
    jobs = [job("alone"), job("b", 1, arrival_s=1.0), job("c", arrival_s=2.0), job("d", 9)]
    x = {"alone": {"A100": 0.001}, "b+c": {"A100": 0.01}, "d": {"A100": 1.0}}
    found = _ranked(jobs, x, FAST_AND_SLOW, {"A100": 9}, pairs=_All())
    assert found.names == ("d", "b", "c", "alone")


def test_gpus_that_a_job_keeps_are_not_divided_and_it_stands_behind() -> None:
    """`keeps` may not be preempted, `probe` is measured; a waiting job that may not be preempted keeps nothing."""
    kept = holding("keeps", ("n", 2, 1, 1), gpu_type="A100")
    jobs = [
        job("keeps", 2, preemptible=False, running=kept),
        job("probe", purpose="profile", arrival_s=1.0),
        job("waits", preemptible=False, arrival_s=2.0),
        job("runs", 2, arrival_s=3.0, running=holding("runs", ("n", 2, 1, 1), gpu_type="A100")),
    ]
    x = {"waits": {"A100": 1.0}, "runs": {"A100": 1.0}}
    found = _ranked(jobs, x, FAST_AND_SLOW, {"A100": 4})
    assert list(found.types) == ["waits", "runs"]
    assert found.types["waits"] == ("A100",)
    assert found.types["runs"] == ("A100",), "with two of four GPUs; one of those is left for the other"
    assert found.names[2:] == ("keeps", "probe")
    full = _ranked(jobs, x, {"": {"A100": 9.0}}, {"A100": 3})
    assert list(full.types) == ["waits"]


@pytest.mark.parametrize(
    ("speeds", "gpus", "usable"),
    [
        ({"A100": 2.0, "K80": 0.0}, {"A100": 2, "K80": 2}, {"A100"}),
        ({"A100": 2.0, "K80": 1.0}, {"A100": 1, "K80": 2}, {"K80"}),
        ({"A100": 2.0, "K80": 1.0, "P100": 9.0}, {"A100": 2, "K80": 0}, {"A100"}),
        ({"A100": 0.0, "K80": 0.0}, {"A100": 2, "K80": 2}, {"A100", "K80"}),  # nothing is known
        ({"A100": 2.0, "K80": 0.0}, {"A100": 1, "K80": 2}, set()),  # known, and too few GPUs
    ],
)
def test_a_type_is_usable_if_it_has_gpus_enough_and_a_speed_or_if_no_speed_is_known(
    speeds: Mapping[str, float], gpus: Mapping[str, int], usable: set[str]
) -> None:
    found = _ranked([job("x", 2)], {}, {"x": speeds}, gpus)
    assert set(found.types.get("x", ())) == usable


def test_only_finish_time_fairness_keeps_accounts_and_an_unknown_policy_is_refused() -> None:
    done = [job("x", steps_total=100, steps_done=10)]
    x = {"x": {"A100": 1.0}}
    assert _ranked(done, x, FAST_AND_SLOW, {"A100": 1}).isolated == ()
    (entry,) = _ranked(done, x, FAST_AND_SLOW, {"A100": 1}, policy="finish-time-fairness").isolated
    assert (entry.steps, entry.seconds) == (10.0, pytest.approx(10.0 / 9.0))
    with pytest.raises(LookupError):
        ranked_by("no-such-policy")


def test_x_that_follows_is_never_settled_by_what_jobs_had() -> None:
    """In round 16 max-min fairness gives the GPU to who had less; makespan to who has all the time."""
    jobs = [job("had", received_s={"A100": 1600.0}), job("lacks")]
    x = {"had": {"A100": 1.0}, "lacks": {"A100": 0.5}}
    first = {
        policy: _ranked(jobs, x, FAST_AND_SLOW, {"A100": 1}, policy=policy, number=16).names[0]
        for policy in ("max-min-fairness", "makespan")
    }
    assert first == {"max-min-fairness": "lacks", "makespan": "had"}


def test_the_earlier_of_a_pair_stands_where_the_later_ones_claim_brings_both() -> None:
    """An accounting round: `b` had nothing, `a` much. With `b` it is served before `c`."""
    jobs = [job("a", received_s={"A100": 1600.0}), job("b"), job("c", received_s={"A100": 400.0})]
    x = {"a+b": {"A100": 0.5}, "c": {"A100": 0.5}}
    found = _ranked(jobs, x, FAST_AND_SLOW, {"A100": 2}, pairs=_All(), number=16)
    assert found.together == (("A100", ("b", "a")),)
    assert found.names == ("a", "b", "c")

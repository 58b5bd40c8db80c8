"""Who may share a GPU, what counts as fair, and which measurements are gone by."""

from dataclasses import replace
from typing import Any

import pytest

from support.planner.snapshots import GIB, later
from synergy_core.colocation.grouping import Grouping
from synergy_core.colocation.rules import Rules
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Job, Node, Profile, Shared, Snapshot
from synergy_core.model.usage import Usage
from synergy_core.plan import plan

AUTO = PlanConfig(policy="fifo", colocation="auto")
GAVEL = PlanConfig(policy="max-min-fairness", colocation="gavel", mechanism="proportional")
PROFILE = Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((10.0,),))


def _node(name: str = "n1", **changes: Any) -> Node:
    usual = {"gpus": 1, "cpu_millis": 8000, "memory_bytes": 64 * GIB, "replicas": 2, "gpu_memory_bytes": 16 * GIB}
    return Node(name=name, gpu_type="V100", **{**usual, **changes})


def _job(name: str, compute: float = 0.3, **changes: Any) -> Job:
    usage = {"V100": Usage(compute=compute, bandwidth=compute / 2, memory_bytes=4 * GIB)}
    usual = {"gpus": 1, "tenant": "t", "sharing": True, "profiles": {"V100": PROFILE}, "usage": usage}
    return Job(name=name, **{**usual, **changes})


def _seen(partner: Job, fraction: float, at_s: float = 0.0) -> tuple[Shared, ...]:
    usages = (partner.usage["V100"],)
    return (Shared(gpu_type="V100", partners=(partner.name,), usages=usages, fraction=fraction, at_s=at_s),)


def _pairs(result: Plan) -> dict[str, tuple[str, ...]]:
    return {one.job: one.partners for one in result.allocations}


def _grouping(jobs: tuple[Job, ...], nodes: tuple[Node, ...] = (_node(),), config: PlanConfig = AUTO) -> Grouping:
    return Grouping(Snapshot(nodes=nodes, jobs=jobs), [Pool("V100", nodes)], config)


@pytest.mark.parametrize(("since_s", "counts"), [(3599.0, True), (3600.0, True), (3601.0, False)])
def test_what_was_measured_stands_in_for_the_prediction_for_an_hour(since_s: float, counts: bool) -> None:
    a, b = _job("a"), _job("b")
    rules = Rules((_node(),), (a, b), AUTO, 500.0 + since_s, lambda *_: False)
    seen = replace(a, shared=_seen(b, 0.45, at_s=500.0))
    found = rules.measured(seen, [seen, b], "V100")
    assert found == (0.45 if counts else None)


def _predicted(*others: Job) -> tuple[float, ...]:
    two = (_job("x", 0.9), _job("y", 0.9))
    return Rules((_node(),), (*two, *others), AUTO, 0.0, lambda *_: False).predicted(two, "V100")


def test_what_others_measured_corrects_predictions_whoever_else_is_there() -> None:
    """Beside the same partner another job with the same usage lost nothing at all."""
    like = _job("like-x", 0.9, shared=_seen(_job("y", 0.9), 1.0))
    assert min(_predicted(like)) > max(_predicted()) + 0.02
    assert _predicted(_job("a-without-usage", usage={}), like) == _predicted(like)


@pytest.mark.parametrize(("kept", "enough"), [(0.81, True), (0.8, True), (0.79, False)])
def test_a_job_bears_what_its_user_wants_at_the_least_or_its_fair_share(kept: float, enough: bool) -> None:
    wants, fair = _job("wants", min_throughput_fraction=0.8), _job("fair")
    grouping = _grouping((wants, fair))
    assert grouping.bears(wants, kept, 0.1) is enough
    assert grouping.bears(fair, kept, 0.8) is enough


def test_the_fair_share_is_of_the_types_that_the_cluster_has() -> None:
    """One GPU, and a job that may use a type that is not there as well: alone all of it, beside two others a third."""
    either = _job("either", gpu_types=("H100", "V100"))
    assert _grouping((either,)).fair(either) == 1.0
    assert _grouping((either, _job("b"), _job("c"))).fair(either) == pytest.approx(1 / 3)


@pytest.mark.parametrize(("compute", "kept"), [(1.0, 0.5), (0.8, 0.625), (0.4, 1.0)])
def test_alone_a_job_keeps_what_the_threads_of_one_client_leave_it(compute: float, kept: float) -> None:
    """A client has half of the GPU's threads, and the job is as fast at its share as with all of the node."""
    job = _job("a", compute)
    nodes = (_node(client_thread_percent=50),)
    assert _grouping((job,), nodes).alone(job, "V100") == pytest.approx(kept)


def test_where_only_some_nodes_are_shared_jobs_that_may_share_rather_have_these() -> None:
    nodes = (_node("shared"), _node("whole", replicas=1))
    may, may_not = _job("may"), _job("may-not", sharing=False)
    grouping = _grouping((may, may_not), nodes)
    assert grouping.wants_shared(may) == frozenset({"V100"})
    assert grouping.wants_shared(may_not) == frozenset()
    assert _grouping((may,), (_node("n1"), _node("n2"))).wants_shared(may) is None
    assert _grouping((may,), nodes, replace(AUTO, colocation="none")).wants_shared(may) is None


def test_measurements_beside_a_job_that_is_gone_do_not_matter_to_pairs() -> None:
    jobs = (_job("a", shared=_seen(_job("gone"), 0.2), steps_total=10**9), _job("b", steps_total=10**9))
    assert _pairs(plan(Snapshot(nodes=(_node(),), jobs=jobs), GAVEL)) == {"a": ("b",), "b": ("a",)}


def test_two_jobs_that_are_alike_in_everything_may_share() -> None:
    one = _job("a", steps_total=10**9)
    jobs = (one, replace(one, name="b"))
    assert _pairs(plan(Snapshot(nodes=(_node(),), jobs=jobs), GAVEL)) == {"a": ("b",), "b": ("a",)}


@pytest.mark.parametrize("colocation", ["auto", "thesis"])
@pytest.mark.parametrize(("now", "runs"), [(50.0, {"a", "b"}), (200.0, {"first"})])
def test_a_pair_that_has_just_begun_is_not_displaced(now: float, runs: set[str], colocation: Any) -> None:
    """Not even one of the two: both runs are younger than the least that a run lasts."""
    config = replace(AUTO, colocation=colocation, minimum_run_s=100.0)
    before = Snapshot(nodes=(_node(),), jobs=(_job("a"), _job("b")))
    running = tuple(replace(one, run_started_s=0.0) for one in later(before, plan(before, config)).jobs)
    first = _job("first", sharing=False, arrival_s=-1.0)
    made = plan(replace(before, jobs=(*running, first), now=now), config)
    assert {one.job for one in made.allocations} == runs


def test_a_third_joins_a_pair_that_has_just_begun_where_there_is_no_other_gpu() -> None:
    config = replace(AUTO, minimum_run_s=100.0)
    first = Snapshot(nodes=(_node(replicas=3),), jobs=(_job("a", 0.1), _job("b", 0.1)))
    pair = [replace(one, run_started_s=0.0) for one in later(first, plan(first, config)).jobs]
    made = plan(replace(first, jobs=(*pair, _job("c", 0.1)), now=50.0), config)
    assert _pairs(made) == {"a": ("b", "c"), "b": ("a", "c"), "c": ("a", "b")}

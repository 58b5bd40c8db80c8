"""What sharing a GPU turns out to cost is measured, kept, told to the planner, and parts those who lose too much."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from support.extender.cluster import NOW, allocation, cluster, job_object, key, share
from support.extender.shared import shared_cluster
from synergy_api.timestamps import parse_time
from synergy_core.model import snapshot as core
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.plan import plan
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.revocation import Revocation
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, read_job
from synergy_extender.colocation.measured import ENOUGH_S, MOST, MOST_PARTNERS, REMEMBERED_S
from synergy_extender.decisions.decide import decide
from synergy_extender.decisions.plan_result import PlanResult, stance
from synergy_extender.leases.reports import Report, Reported, progress_after
from synergy_extender.rounds import Moment, Rounds
from synergy_extender.snapshot.snapshot import build_snapshot

MATRIX = {"gpuType": "V100", "cpuMillis": [1000, 2000], "memoryBytes": [1], "stepsPerSecond": [[6.0], [10.0]]}
USAGE = {"gpuType": "V100", "compute": 0.3, "bandwidth": 0.2, "memory": "3Gi"}


def trains(name: str, *partners: str, run: int = 1, cpu: int = 2000, expected: float = 9.0, **more: Any) -> JobView:
    """A job that trains on its part of the GPU of n1, and was seen there with those the plan gives it."""
    names = [f"team/{partner}" for partner in partners]
    given = allocation(
        share("n1", cpu_millis=cpu) | {"devices": 2 - len(names)},
        run=run,
        stepsPerSecond=expected,
        sharedGpu={"asked": names, "seen": more.pop("seen", names)},
    )
    progress = more.pop("progress", {"run": run, "gpuUUIDs": ["GPU-1"]})
    spec = {
        "profile": more.pop("profile", {"mode": "Provided", "matrices": [MATRIX]}),
        "sharing": {"allowed": True, "usage": [USAGE], **more.pop("sharing", {})},
    }
    status = {"allocation": given, "progress": progress, "phase": "Running", **more.pop("status", {})}
    return read_job(job_object(name, status=status, spec=spec))


def reported(view: JobView, others: Iterable[JobView], *, speed: float, seconds: float, every: float = 2.5) -> JobView:
    """The job once it has reported for so long, at that speed."""
    known = {one.key: one for one in others}
    held = view.status.allocation
    assert held is not None
    before = view.status.progress
    begun = before.steps if before is not None else 0
    start = parse_time(before.updated_at) if before is not None and before.updated_at is not None else NOW
    for index in range(round(seconds / every) + 1):
        at = index * every
        report = Report(step=begun + round(speed * at), steps_per_second=speed, gpu_uuids=["GPU-1"])
        progress = progress_after(view, Reported("uid-j", held.run, report), start + at, known)
        status = {**view.status.to_wire(), "progress": progress.to_wire()}
        read = read_job({**job_object(view.key.name), "spec": view.spec.to_wire(), "status": status})
        view = replace(read, profiles=view.profiles)
    return view


def told(view: JobView) -> tuple[core.Shared, ...]:
    """What the planner hears of it."""
    (one,) = build_snapshot(cluster([], [view]), mode="round", now=NOW, round_s=20).snapshot.jobs
    return one.shared


def test_what_a_job_keeps_is_counted_in_steps_and_told_with_what_is_known_of_its_partner() -> None:
    (one,) = told(reported(trains("a", "b"), [trains("b", "a")], speed=4.5, seconds=20))
    assert one.fraction == pytest.approx(0.45, abs=0.03), "of the 10 steps/s that it has alone"
    assert (one.gpu_type, one.partners, one.at_s) == ("V100", ("team/b",), NOW + 20)
    assert [(usage.compute, usage.memory_bytes, usage.model) for usage in one.usages] == [(0.3, 3 << 30, "team/b")]


def test_its_status_says_what_was_expected_and_what_came() -> None:
    view = reported(trains("a", "b"), [trains("b", "a")], speed=4.5, seconds=20)
    progress = view.status.progress
    assert progress is not None
    (one,) = progress.shared
    assert (one.expected, one.ceiling, one.seconds, one.partners) == (0.9, 1.0, 20.0, ["team/b"])
    assert progress.placements == [], "what it does alone on a node is not learnt beside others"


@pytest.mark.parametrize(
    ("view", "others"),
    [
        pytest.param(trains("a", "b"), [trains("b", "a", progress={"run": 0})], id="the partner has not come yet"),
        pytest.param(
            trains("a", "b"), [trains("b", "a", status={"service": {"endedRun": 1}})], id="the partner has ended"
        ),
        pytest.param(trains("a", "b"), [], id="the partner is gone"),
        pytest.param(trains("a", "b", seen=None), [trains("b", "a")], id="nobody was seen"),
        pytest.param(trains("a"), [], id="it is alone"),
        pytest.param(
            trains("a", "b", seen=[f"team/p{index}" for index in range(MOST_PARTNERS + 1)]),
            [trains(f"p{index}", "a") for index in range(MOST_PARTNERS + 1)],
            id="it sees more than one GPU takes",
        ),
    ],
)
def test_time_in_which_partners_were_not_seen_together_does_not_count(view: JobView, others: list[JobView]) -> None:
    after = reported(view, others, speed=4.5, seconds=30).status.progress
    assert after is not None
    assert (after.gpu_partners, after.shared) == ([], [])


def test_too_little_is_told_to_nobody() -> None:
    others = [trains("b", "a")]
    assert told(reported(trains("a", "b"), others, speed=4.5, seconds=ENOUGH_S - 2.5)) == ()
    slow = trains("a", "b")
    matrix = {**MATRIX, "stepsPerSecond": [[0.1], [0.2]]}
    spec = {**slow.spec.to_wire(), "profile": {"mode": "Provided", "matrices": [matrix]}}
    slow = read_job({**job_object("a"), "spec": spec, "status": slow.status.to_wire()})
    assert told(reported(slow, others, speed=0.1, seconds=ENOUGH_S + 5)) == (), "two steps where there should be three"


def test_without_a_matrix_it_is_what_was_measured_alone_that_a_job_keeps_a_part_of() -> None:
    def fractions(reports: int, seconds: float = 20) -> list[float]:
        measured = [{"gpuType": "V100", "stepsPerSecond": 8.0, "reports": reports}]
        progress = {"run": 1, "gpuUUIDs": ["GPU-1"], "measured": measured}
        alone = trains("a", "b", profile={"mode": "Skip"}, progress=progress)
        return [one.fraction for one in told(reported(alone, [trains("b", "a")], speed=4.0, seconds=seconds))]

    assert fractions(5) == [pytest.approx(0.5, abs=0.03)]
    assert fractions(4) == [], "too few reports to go by"
    assert fractions(5, seconds=2.5) == []


def test_a_job_that_its_cpu_holds_up_says_nothing_of_its_partner_and_one_that_is_slower_does() -> None:
    others = [trains("b", "a")]
    assert told(reported(trains("a", "b", cpu=1000), others, speed=6.0, seconds=20)) == ()
    (one,) = told(reported(trains("a", "b", cpu=1000), others, speed=4.0, seconds=20))
    assert one.fraction == pytest.approx(0.4, abs=0.03)


def test_speeds_are_compared_with_what_the_job_really_had_alone() -> None:
    alone = {"placements": [{"gpuType": "V100", "nodes": 1, "relativeSpeed": 0.8, "reports": 9}]}
    view = trains("a", "b", progress={"run": 1, "gpuUUIDs": ["GPU-1"], **alone})
    (one,) = told(reported(view, [trains("b", "a")], speed=8.0, seconds=20))
    assert one.fraction == pytest.approx(1.0, abs=0.05), "its matrix says 10 steps/s, and alone it had 8"


def test_old_times_fade_and_the_oldest_partners_are_forgotten() -> None:
    view = trains("a", "b")
    view = reported(view, [trains("b", "a")], speed=9.0, seconds=REMEMBERED_S, every=20)
    view = reported(view, [trains("b", "a")], speed=3.0, seconds=2 * REMEMBERED_S, every=20)
    (one,) = told(view)
    assert one.fraction == pytest.approx(0.37, abs=0.06)
    for index in range(MOST + 2):
        status = trains("a", f"p{index}").status.to_wire()
        before = view.status.progress
        assert before is not None
        status["progress"] = {**before.to_wire(), "gpuPartners": []}
        read = read_job({**job_object("a"), "spec": view.spec.to_wire(), "status": status})
        view = replace(read, profiles=view.profiles)
        view = reported(view, [trains(f"p{index}", "a")], speed=4.0, seconds=20)
    assert [one.partners for one in told(view)] == [(f"team/p{index}",) for index in range(2, MOST + 2)]


def pair_on_one_gpu(speed: float) -> ClusterState:
    """a and b on the only GPU, which want to keep 0.6 of their speed; a has been measured."""
    wish = {"minThroughputFraction": 0.6}
    b = trains("b", "a", sharing=wish)
    a = reported(trains("a", "b", sharing=wish), [b], speed=speed, seconds=20)
    return shared_cluster([a, b], gpus=1)


def planned(state: ClusterState, now: float) -> Plan:
    snapshot = build_snapshot(state, mode="round", now=now, round_s=20).snapshot
    return plan(snapshot, PlanConfig(policy="fifo", colocation="auto"))


def test_a_pair_that_does_worse_than_predicted_is_parted_at_the_next_round_and_its_status_says_why() -> None:
    stays, parts = pair_on_one_gpu(8.5), pair_on_one_gpu(4.5)
    moment = Moment(NOW + 38.5, Rounds(20), Rounds(20).at(NOW) + 2)
    assert {one.job for one in planned(stays, moment.now).allocations} == {"team/a", "team/b"}
    decided = planned(parts, moment.now)
    assert [(one.job, one.partners) for one in decided.allocations] == [("team/a", ())]
    stances = {one: stance(view, moment.now) for one, view in parts.jobs.items()}
    changes = decide(parts, moment, PlanResult(decided, "round", stances), AssumedBindings()).changes
    reasons = {one.job.key: one.allocation.reason for one in changes if one.allocation is not None}
    said = "beside team/b team/a had 45% of its speed, 90% were expected"
    assert reasons[key("b")] == f"{said}; {Revocation.YIELDS}"
    assert reasons[key("a")].startswith(said), "a keeps the GPU, with both devices: it starts anew"


def test_it_is_not_tried_again_soon_also_by_an_extender_that_has_just_started() -> None:
    # all that a new leader has is the status
    retry = PlanConfig().sharing_retry_s
    for speed, later, jobs in (
        (5.5, 600.0, {"team/a"}),
        (5.5, retry + 60.0, {"team/a", "team/b"}),
        (4.5, retry + 60.0, {"team/a"}),  # so much worse that what is predicted from it is too little as well
    ):
        parts = pair_on_one_gpu(speed)
        assert {one.job for one in planned(parts, NOW + 20 + later).allocations} == jobs

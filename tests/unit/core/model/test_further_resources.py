"""Storage bandwidth, network and whatever else the nodes name go through the same code as CPU and memory."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner import promises
from support.planner.planning import GIB, holding, job, node, planned
from support.planner.snapshots import FURTHER, profiles
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, NodeShare, Profile, Snapshot
from synergy_core.model.snapshot_format import SnapshotError, parse_snapshot, snapshot_document
from synergy_core.plan import plan
from synergy_core.throughput.speed import Speed

AXES = {"network": (10, 20), "storage": (100, 200, 400)}


def _fetching(storage: int) -> Profile:
    """A job that needs so much storage bandwidth, whatever its CPUs and memory are."""
    points = (100, 200, 400, 800)
    return Profile(
        cpu_millis=(1000,),
        memory_bytes=(GIB,),
        further={"storage": points},
        steps_per_s=(tuple(10.0 * min(1.0, p / storage) for p in points),),
    )


def _storage(result, name: str) -> int:
    return sum(w.further["storage"] for a in result.allocations if a.job == name for w in a.workers)


@settings(max_examples=60)
@given(profiles(2), st.data(), st.sampled_from(((), FURTHER[:1], FURTHER[1:], FURTHER)))
def test_speed_agrees_with_interpolation_by_another_road(profile: Profile, data: st.DataObject, names) -> None:
    amounts = [data.draw(st.integers(1, 60000)), data.draw(st.integers(1, 400 * GIB))]
    amounts += [data.draw(st.integers(1, 4000)) for _ in names]
    expected = promises.speed(profile, amounts[0], amounts[1], dict(zip(names, amounts[2:], strict=True)))
    speed = Speed(profile, names)
    assert speed.at(tuple(amounts)) == pytest.approx(expected, abs=1e-9)
    assert speed.measured == (True, True, *(name in profile.further for name in names))


def test_points_of_a_matrix_have_nothing_of_what_it_was_not_measured_for() -> None:
    profile = Profile(cpu_millis=(1, 2), memory_bytes=(5,), further={"storage": (7, 9)}, steps_per_s=((1, 2), (3, 4)))
    points = list(Speed(profile, ("network", "storage")).points())
    assert points == [(1, 5, 0, 7), (1, 5, 0, 9), (2, 5, 0, 7), (2, 5, 0, 9)]
    assert [Speed(profile, ("network", "storage")).at(point) for point in points] == [1, 2, 3, 4]


def test_what_one_job_cannot_use_of_its_storage_share_goes_to_the_one_that_can() -> None:
    nodes = [node("n1", further={"storage": 800})]
    jobs = [
        job("idle", 4, profiles={"V100": _fetching(100)}),
        job("hungry", 4, profiles={"V100": _fetching(700)}, arrival_s=1),
    ]
    tuned, even = planned(nodes, jobs), planned(nodes, jobs, mechanism="proportional")
    assert (_storage(even, "idle"), _storage(even, "hungry")) == (400, 400)
    assert (_storage(tuned, "idle"), _storage(tuned, "hungry")) == (100, 700)


def test_greedy_skips_a_job_for_want_of_storage_alone() -> None:
    jobs = [job(f"j{i}", 1, profiles={"V100": _fetching(500)}, arrival_s=i) for i in range(2)]
    result = planned([node("n1", further={"storage": 800})], jobs, mechanism="greedy")
    assert [a.job for a in result.allocations] == ["j0"]


def test_a_job_without_an_axis_for_a_resource_gets_its_share_of_it() -> None:
    result = planned([node("n1", further={"storage": 800})], [job("a", 2, wants=(12, 60))])
    assert _storage(result, "a") == 200


def test_what_running_jobs_and_pods_of_others_hold_counts() -> None:
    held = holding("old", ("n1", 1, 3, 62))
    share = NodeShare(node="n1", gpus=1, cpu_millis=3000, memory_bytes=62 * GIB, further={"storage": 500})
    old = job("old", running=type(held)(job="old", gpu_type="V100", workers=(share,)))
    fetching = job("new", profiles={"V100": _fetching(400)}, arrival_s=1)
    crowded = node("n1", 3, further={"storage": 800}, further_used={"storage": 100})
    result = planned([crowded], [old, fetching], mode="fill")
    assert _storage(result, "new") + _storage(result, "old") <= 700
    assert sum(w.further["storage"] for a in result.allocations for w in a.workers) > 0


@pytest.mark.parametrize(
    ("nodes", "job_", "line"),
    [
        (
            [{"further": {"storage": 1}}, {}],
            {},
            "nodes[1].further.storage: missing, node 'n0' has it; give it for every node",
        ),
        (
            [{}, {"further": {"storage": 1}}],
            {},
            "nodes[0].further.storage: missing, node 'n1' has it; give it for every node",
        ),
        ([{"further": {"gpus": 1}}], {}, "nodes[0].further.gpus: has a field of its own; give it there"),
        (
            [{"further_used": {"disk": 1}}],
            {},
            "nodes[0].further_used.disk: is not in further; say there how much the node has",
        ),
        (
            [{}],
            {"further_min": {"disk": 2}, "further_max": {"disk": 1}},
            "jobs[0].further_min.disk: 2 is above further_max 1; lower it",
        ),
        (
            [{}],
            {
                "profiles": {
                    "V100": {
                        "cpu_millis": [1],
                        "memory_bytes": [1],
                        "further": {"disk": [1, 2]},
                        "steps_per_s": [[1.0]],
                    }
                }
            },
            (
                "jobs[0].profiles.V100.steps_per_s[0]: has 1 values for 2 combinations of memory and further points; "
                "give one per combination"
            ),
        ),
        (
            [{}],
            {
                "profiles": {
                    "V100": {
                        "cpu_millis": [1],
                        "memory_bytes": [1],
                        "further": {"disk": [2, 2]},
                        "steps_per_s": [[1.0, 1.0]],
                    }
                }
            },
            "jobs[0].profiles.V100.further.disk[1]: 2 is not above 2; sort the axis",
        ),
    ],
)
def test_bad_input_is_refused_with_its_field(nodes: list[dict], job_: dict, line: str) -> None:
    machine = {"gpu_type": "V100", "gpus": 1, "cpu_millis": 1000, "memory_bytes": 1000}
    document = {
        "nodes": [{"name": f"n{i}", **machine, **more} for i, more in enumerate(nodes)],
        "jobs": [{"name": "a", "gpus": 1, **job_}],
    }
    with pytest.raises(SnapshotError) as caught:
        parse_snapshot(json.dumps(document))
    assert str(caught.value) == line


def test_they_are_written_only_where_they_are_there_and_read_back_equal() -> None:
    plain = Snapshot(nodes=(node("n1"),), jobs=(job("a", wants=(3, 20)),))
    assert "further" not in json.dumps(snapshot_document(plain))
    rich = Snapshot(
        nodes=(node("n1", further={"storage": 800}, further_used={"storage": 1}),),
        jobs=(Job(name="a", gpus=1, profiles={"V100": _fetching(100)}, further_min={"storage": 5}),),
    )
    assert parse_snapshot(json.dumps(snapshot_document(rich))) == rich
    assert plan(rich, PlanConfig()).allocations[0].workers[0].further == {"storage": 100}

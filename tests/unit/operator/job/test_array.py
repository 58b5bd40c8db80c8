"""Arrays: members are made, counted and remembered; the array itself never runs."""

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from support.operator.before import jobs_before
from support.operator.objects import Json, job_manifest, node
from support.operator.world import SETTINGS
from support.planner.reasons import check_status
from synergy_api.parts.relations.array import indexes_text, read_indexes
from synergy_api.resources.scheduling_policy import SchedulingPolicySpec
from synergy_api.resources.training_job import TrainingJobStatus
from synergy_api.timestamps import format_time
from synergy_operator.actions import ApplyStatus, ChangeMember, CreateMember, DeleteTrainingJob, PostEvent
from synergy_operator.job.array import AT_ONCE, REFUSED_SECONDS
from synergy_operator.job.reconcile import reconcile
from synergy_operator.pods.gang import identity
from synergy_operator.pods.members import member_of
from synergy_operator.profile.fingerprint import fingerprint
from synergy_operator.views.cluster import read_cluster
from synergy_operator.views.job import JobView, read_job
from synergy_operator.views.observed import Observed
from synergy_operator.views.refusals import Refusals, RefusedMember

NOW = 1_000_000.0
CLUSTER = read_cluster([node("n1")], [], SchedulingPolicySpec())


class Sweep:
    """An array and the members that it made."""

    def __init__(self, count: int = 3, max_parallel: int | None = None, **spec: Any) -> None:
        array = {"count": count, **({"maxParallel": max_parallel} if max_parallel else {})}
        self.job = job_manifest("sweep", array=array, **spec)
        self.members: dict[str, Json] = {}
        self.others: dict[str, Json] = {}
        self.refusals = Refusals()
        self.now = NOW
        self.events: list[str] = []
        self.deleted = False
        self.requeue_after: float | None = None

    @property
    def status(self) -> TrainingJobStatus:
        return read_job(self.job).status

    def _get(self, name: str) -> JobView | None:
        item = self.others.get(name)
        return None if item is None else read_job(item)

    def step(self) -> int:
        """One reconcile, carried out. Returns how many actions there were."""
        view = read_job(self.job)
        found = (member_of(read_job(one)) for _, one in sorted(self.members.items()))
        members = tuple(one for one in found if one is not None)
        observed = Observed(view, CLUSTER, SETTINGS, refusals=self.refusals, members=members,
                            **jobs_before(view, self._get))  # fmt: skip
        actions = reconcile(observed, self.now)
        self.requeue_after = actions.requeue_after
        for action in actions.todo:
            match action:
                case ApplyStatus():
                    check_status(action.status)
                    self.job["status"] = action.status.to_wire()
                case CreateMember():
                    self._create(action.manifest)
                case ChangeMember():
                    self.members[action.name]["spec"].update(action.spec)
                case PostEvent():
                    self.events.append(action.reason.value)
                case DeleteTrainingJob():
                    self.deleted = True
                case _:
                    raise AssertionError(f"an array does not {action}")
        return len(actions.todo)

    def _create(self, manifest: Mapping[str, Any]) -> None:
        item = copy.deepcopy(dict(manifest))
        name = item["metadata"]["name"]
        assert name not in self.members
        item["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1", "creationTimestamp": format_time(self.now)}
        self.members[name] = item

    def settle(self) -> None:
        for _ in range(200):
            if not self.step():
                return
        raise AssertionError("it does not settle")

    def set(self, index: int, phase: str) -> None:
        self.members[f"sweep-{index}"]["status"] = {"phase": phase}

    def reason(self, kind: str) -> str:
        return next((one.reason for one in self.status.conditions if one.type == kind), "")

    def message(self, kind: str) -> str:
        return next((one.message for one in self.status.conditions if one.type == kind), "")


def test_each_index_is_made_once_with_the_arrays_spec() -> None:
    sweep = Sweep(priorityClassName="high", ttlSecondsAfterFinished=5)
    sweep.settle()
    assert sorted(sweep.members) == ["sweep-0", "sweep-1", "sweep-2"]
    view = read_job(sweep.members["sweep-2"])
    assert (view.array, view.array_uid, view.index) == ("sweep", read_job(sweep.job).uid, 2)
    assert view.spec is not None
    assert (view.spec.array, view.spec.priority_class_name, view.spec.ttl_seconds_after_finished) == (
        None,
        "high",
        None,
    )
    assert sweep.status.phase == "Running"
    array = sweep.status.array
    assert array is not None
    assert (array.running, array.waiting, array.progress) == (0, 3, "0/3")
    assert "of the 3 jobs of the array 0 run, 3 wait and 0 are finished" in sweep.message("Running")


def test_members_know_their_index_and_have_one_profile() -> None:
    sweep = Sweep()
    sweep.settle()
    views = [read_job(one) for one in sweep.members.values()]
    assert [identity(one, one.spec, 1)["SYNERGY_ARRAY_INDEX"] for one in views if one.spec is not None] == [
        "0",
        "1",
        "2",
    ]
    assert len({fingerprint(one.spec) for one in views if one.spec is not None}) == 1
    alone = read_job(job_manifest())
    assert alone.spec is not None
    assert "SYNERGY_ARRAY_INDEX" not in identity(alone, alone.spec, 1)


def test_a_label_alone_makes_no_member() -> None:
    forged = job_manifest("forged")
    forged["metadata"]["labels"] = {"kube-synergy.dev/array": "sweep", "kube-synergy.dev/array-index": "1"}
    assert read_job(forged).index is None


def test_no_more_than_max_parallel_are_unfinished() -> None:
    sweep = Sweep(count=5, max_parallel=2)
    sweep.settle()
    assert sorted(sweep.members) == ["sweep-0", "sweep-1"]
    sweep.set(0, "Succeeded")
    sweep.set(1, "Running")
    sweep.settle()
    assert sorted(sweep.members) == ["sweep-0", "sweep-1", "sweep-2"]
    array = sweep.status.array
    assert array is not None
    assert (array.running, array.waiting, array.succeeded, array.succeeded_indexes, array.progress) == (
        1,
        1,
        1,
        "0",
        "1/5",
    )


def test_large_arrays_are_made_bit_by_bit() -> None:
    sweep = Sweep(count=100)
    sweep.step()
    assert len(sweep.members) == AT_ONCE
    sweep.settle()
    assert len(sweep.members) == 100


def test_a_member_that_is_deleted_comes_again_unless_it_was_finished() -> None:
    sweep = Sweep()
    sweep.settle()
    sweep.set(0, "Succeeded")
    sweep.settle()
    del sweep.members["sweep-0"], sweep.members["sweep-1"]
    sweep.settle()
    assert sorted(sweep.members) == ["sweep-1", "sweep-2"]


@pytest.mark.parametrize(
    ("phases", "phase", "reason"),
    [
        (("Succeeded",) * 3, "Succeeded", "AllMembersSucceeded"),
        (("Failed", "Succeeded", "Failed"), "Failed", "MembersFailed"),
    ],
)
def test_the_array_ends_with_its_last_member(phases: tuple[str, ...], phase: str, reason: str) -> None:
    sweep = Sweep(ttlSecondsAfterFinished=60)
    sweep.settle()
    for index, one in enumerate(phases[:2]):
        sweep.set(index, one)
    sweep.settle()
    assert sweep.status.phase == "Running"
    sweep.set(2, phases[2])
    sweep.settle()
    assert (sweep.status.phase, sweep.reason("Finished"), sweep.reason("Running")) == (phase, reason, "Finished")
    assert (phase == "Failed") == ("2 of the 3 jobs of the array failed: 0,2" in sweep.message("Finished"))
    assert sweep.events.count(reason) == 1
    sweep.now += 61
    sweep.step()
    assert sweep.deleted


def test_members_follow_a_suspension_and_what_orders_them() -> None:
    sweep = Sweep(count=4, max_parallel=2)
    sweep.settle()
    sweep.set(0, "Succeeded")
    sweep.job["spec"] |= {"suspend": True, "weight": 2.0}
    sweep.settle()
    assert sorted(sweep.members) == ["sweep-0", "sweep-1"], "a suspended array makes none"
    assert [sweep.members[f"sweep-{i}"]["spec"].get("suspend", False) for i in (0, 1)] == [False, True]
    assert (sweep.status.phase, sweep.reason("Running")) == ("Suspended", "Suspended")
    sweep.job["spec"]["suspend"] = False
    sweep.settle()
    assert [one["spec"].get("suspend", False) for one in sweep.members.values()] == [False, False, False]
    assert sweep.members["sweep-1"]["spec"]["weight"] == 2.0


def test_an_array_waits_for_other_jobs_as_a_whole() -> None:
    sweep = Sweep(after=[{"job": "first"}])
    sweep.others["first"] = job_manifest("first")
    sweep.settle()
    assert (sweep.members, sweep.status.phase, sweep.reason("Running")) == ({}, "Pending", "WaitsForJobs")
    sweep.others["first"]["status"] = {"phase": "Succeeded"}
    sweep.settle()
    assert len(sweep.members) == 3
    assert "after" not in sweep.members["sweep-0"]["spec"]
    failing = Sweep(after=[{"job": "first"}])
    failing.others["first"] = {**job_manifest("first"), "status": {"phase": "Failed"}}
    failing.settle()
    assert (failing.members, failing.status.phase, failing.reason("Finished")) == ({}, "Failed", "DependencyFailed")


def test_what_the_api_server_refuses_is_told_and_tried_again() -> None:
    sweep = Sweep()
    sweep.refusals = Refusals(member=RefusedMember("TrainingJob sweep-0: exceeded quota", NOW))
    sweep.settle()
    assert sweep.members == {}
    assert sweep.reason("Running") == "MemberRefused"
    assert "exceeded quota" in sweep.message("Running")
    assert sweep.requeue_after == REFUSED_SECONDS
    sweep.now += REFUSED_SECONDS
    sweep.settle()
    assert len(sweep.members) == 3


def test_a_change_that_is_refused_is_tried_again_later_and_holds_up_no_other_refusal() -> None:
    sweep = Sweep()
    sweep.settle()
    sweep.job["spec"]["suspend"] = True
    sweep.refusals = Refusals(member=RefusedMember("TrainingJob sweep-0: no", NOW, "sweep-0"))
    sweep.settle()
    assert not any(one["spec"].get("suspend") for one in sweep.members.values())
    assert sweep.requeue_after == REFUSED_SECONDS
    sweep.now += REFUSED_SECONDS
    sweep.settle()
    assert all(one["spec"]["suspend"] for one in sweep.members.values())
    sweep.job["spec"]["suspend"] = False
    sweep.refusals = Refusals(member=RefusedMember("TrainingJob sweep-1: exceeded quota", sweep.now))
    sweep.settle()
    assert not any(one["spec"]["suspend"] for one in sweep.members.values())


def test_an_array_whose_jobs_could_not_run_makes_none_and_names_the_field() -> None:
    sweep = Sweep(gpus=100)
    sweep.settle()
    assert (sweep.members, sweep.status.phase, sweep.reason("Valid")) == ({}, "Pending", "TooManyGPUs")


@pytest.mark.parametrize(
    ("indexes", "text"), [(set(), ""), ({3}, "3"), ({0, 1, 2, 5, 7, 8}, "0-2,5,7-8"), (set(range(1000)), "0-999")]
)
def test_indexes_are_written_as_ranges(indexes: set[int], text: str) -> None:
    assert indexes_text(indexes) == text
    assert read_indexes(text) == indexes
    assert len(indexes_text(set(range(0, 1000, 2)))) <= 5000

"""What policies with queues go by from plan to plan stands in the status, once, whatever is restarted when."""

from typing import Any

import pytest

from support.extender.cluster import GI, NOW, allocation, cluster, job, job_object, key, node_object, share, team_of
from synergy_api.parts.queues import Marks
from synergy_api.timestamps import format_time
from synergy_core.model import snapshot as core
from synergy_core.model.config import Mode, PlanConfig, PriorityQueues
from synergy_core.plan import plan
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, read_job
from synergy_extender.decisions.changes import ChangeKind, StatusChange
from synergy_extender.decisions.decide import decide
from synergy_extender.decisions.plan_result import PlanResult, stance
from synergy_extender.rounds import Moment, Rounds
from synergy_extender.snapshot.snapshot import build_snapshot
from synergy_extender.writing.writer import body_of

ROUNDS = Rounds(20)
QUEUES = PriorityQueues(thresholds_gpu_s=(100.0,), promote_knob=2.0)
RAN = {"service": {"run": 1, "endedRun": 1, "attainedGPUSeconds": 240.0, "receivedSeconds": {"V100": 30.0}}}
"""30 s on 8 GPUs."""


def _snapshot(state: ClusterState, now: float) -> core.Snapshot:
    return build_snapshot(state, mode="round", now=now, round_s=20).snapshot


def _pass(state: ClusterState, now: float) -> dict[str, StatusChange]:
    """What a leader that has just begun writes, by job."""
    made = plan(_snapshot(state, now), PlanConfig(policy="2d-las", mechanism="proportional", queues=QUEUES))
    stances = {k: stance(j, now) for k, j in state.jobs.items()}
    moment = Moment(now, ROUNDS, ROUNDS.at(now) + 1)
    decision = decide(state, moment, PlanResult(made, "round", stances), AssumedBindings())
    return {change.job.key.name: change for change in decision.changes}


def _written(item: dict[str, Any], change: StatusChange) -> JobView:
    """The job as the API server has it afterwards: the plan's whole part is what was sent."""
    others = {k: v for k, v in item["status"].items() if k not in ("allocation", "queue", "marks")}
    return read_job({**item, "status": {**others, **body_of(change.job, change)["status"]}})


def _core(view: JobView, now: float) -> core.Job:
    (one,) = _snapshot(cluster([node_object("n1")], [view]), now).jobs
    return one


def test_the_first_place_to_train_is_noted_and_a_later_one_changes_nothing() -> None:
    item = job_object("j")
    change = _pass(cluster([node_object("n1")], [read_job(item)]), NOW)["j"]
    assert change.kind is ChangeKind.ENTER
    first = _written(item, change)
    assert first.status.marks is not None
    assert first.status.marks.started_at == format_time(NOW)
    later = {**item, "status": {**item["status"], **RAN, "marks": first.status.marks.to_wire()}}
    second = _written(later, _pass(cluster([node_object("n1")], [read_job(later)]), NOW + 70)["j"])
    assert second.status.marks == first.status.marks
    assert _core(second, NOW + 70).started_s == NOW


def test_a_job_that_waited_long_enough_to_be_promoted_first_has_its_start_noted_too() -> None:
    waited = {"promotedAt": format_time(NOW - 30), "promotedWaitingSeconds": 70.0}
    change = _pass(cluster([node_object("n1")], [job("j", status={"marks": waited})]), NOW)["j"]
    assert change.marks is not None
    assert (change.marks.started_at, change.marks.promoted_at) == (format_time(NOW), format_time(NOW - 30))


def test_a_job_of_before_there_were_marks_stands_by_when_its_workers_first_ran() -> None:
    view = job("j", status={"startTime": format_time(NOW - 50), **RAN})
    assert _core(view, NOW).started_s == NOW - 50
    (change,) = _pass(cluster([node_object("n1")], [view]), NOW).values()
    assert change.marks is not None
    assert change.marks.started_at == format_time(NOW - 50)


def test_a_place_to_be_measured_is_no_start() -> None:
    request = {"gpuType": "V100", "gpus": 1, "cpuMillis": 1000, "memoryBytes": GI}
    status = {"phase": "Profiling", "profile": {"state": "Measuring", "request": request}}
    change = _pass(cluster([node_object("n1")], [job("j", status=status)]), NOW)["j"]
    assert change.kind is ChangeKind.ENTER
    assert change.marks is None


class TestPromotion:
    def _starving(self, **status: Any) -> dict[str, Any]:
        """Created 100 s ago, ran for 30: waits for 70 s, more than twice as long."""
        marks = {"startedAt": format_time(NOW - 90)}
        return job_object("j", gpus=8, status={**RAN, "marks": marks, **status})

    def _blocked(self, item: dict[str, Any]) -> ClusterState:
        """A cluster in which it cannot run: another job keeps the only node."""
        held = {"allocation": allocation(share("n1", gpus=8)), "phase": "Running"}
        other = job("other", gpus=8, status=held, spec={"preemption": "Never"})
        return cluster([node_object("n1")], [read_job(item), other], tenancy=team_of("team", maxNeverPreemptedGPUs=8))

    def test_it_is_noted_with_what_the_job_had_in_all(self) -> None:
        item = self._starving()
        change = _pass(self._blocked(item), NOW)["j"]
        assert change.kind < ChangeKind.POSITION, "no mere change of position, which might be left out"
        assert change.allocation is None
        after = _core(_written(item, change), NOW)
        assert (after.promoted_gpu_s, after.promoted_waiting_s, after.started_s) == (240.0, 70.0, NOW - 90)

    @pytest.mark.parametrize(
        "held", [{"suspendedSeconds": 45.0}, {"suspendedSeconds": 20.0, "suspendedSince": format_time(NOW - 25)}]
    )
    def test_a_job_that_its_user_held_did_not_wait_meanwhile(self, held: dict[str, Any]) -> None:
        item = self._starving(service={**RAN["service"], **held})
        assert _core(read_job(item), NOW).waiting_s == 25.0
        marks = _pass(self._blocked(item), NOW)["j"].marks
        assert marks is not None
        assert marks.promoted_at is None

    def test_a_leader_that_begins_anew_does_not_promote_it_again(self) -> None:
        item = self._starving()
        view = _written(item, _pass(self._blocked(item), NOW)["j"])
        assert view.status.marks is not None
        again = {**item, "status": {**item["status"], "marks": view.status.marks.to_wire()}}
        changes = _pass(self._blocked(again), NOW + 5)
        assert "j" not in changes or changes["j"].marks == view.status.marks

    def test_a_promotion_whose_write_was_lost_is_made_by_the_next_plan(self) -> None:
        item = self._starving()
        _pass(self._blocked(item), NOW)
        change = _pass(self._blocked(item), NOW + 5)["j"]
        assert change.marks is not None
        assert change.marks.promoted_waiting_seconds == 75.0

    def test_written_twice_it_says_the_same(self) -> None:
        item = self._starving()
        change = _pass(self._blocked(item), NOW)["j"]
        once, twice = _written(item, change), _written(item, change)
        assert once.status.marks == twice.status.marks

    def test_a_job_that_stands_otherwise_by_now_is_not_promoted(self) -> None:
        state = self._blocked(self._starving())
        made = plan(_snapshot(state, NOW), PlanConfig(policy="2d-las", mechanism="proportional", queues=QUEUES))
        assert made.promoted == ("team/j",)
        stances = {k: stance(j, NOW) for k, j in state.jobs.items()}
        suspended = read_job({**self._starving(), "spec": {**self._starving()["spec"], "suspend": True}})
        state = cluster([node_object("n1")], [suspended, state.jobs[key("other")]])
        decision = decide(
            state, Moment(NOW, ROUNDS, ROUNDS.at(NOW) + 1), PlanResult(made, "round", stances), AssumedBindings()
        )
        assert all(change.marks == change.job.status.marks for change in decision.changes)


@pytest.mark.parametrize(("since", "age"), [(NOW - 30, 30.0), (None, 0.0)])
def test_how_old_a_run_is_counts_from_its_workers_start(since: float | None, age: float) -> None:
    service = {"run": 1, **({"runningSince": format_time(since), "runningGpuType": "V100"} if since else {})}
    view = job("j", status={"allocation": allocation(share("n1")), "phase": "Running", "service": service})
    assert _core(view, NOW).run_started_s == NOW - age


class TestIsolatedTime:
    """One V100 node of 8 GPUs that two jobs of 8 share in turns."""

    SINCE = {"runningSince": format_time(NOW - 100), "runningGpuType": "V100"}

    def _item(self, name: str, *, step: int = 0, held: bool = False, marks: Marks | None = None) -> dict[str, Any]:
        run = {"allocation": allocation(share("n1", gpus=8)), "phase": "Running"} if held else {}
        service = {"run": 1, **(self.SINCE if held else {"endedRun": 1})}
        noted = (marks or Marks(started_at=format_time(NOW - 100))).to_wire()
        status = {"service": service, "progress": {"steps": step}, "marks": noted, **run}
        return job_object(name, gpus=8, status=status, spec={"steps": 10**6})

    def _decided(
        self, items: list[dict[str, Any]], now: float, *, policy: str = "finish-time-fairness", mode: Mode = "round"
    ) -> dict[str, StatusChange]:
        state = cluster([node_object("n1")], [read_job(item) for item in items])
        made = plan(_snapshot(state, now), PlanConfig(policy=policy, mechanism="proportional", mode=mode))
        stances = {k: stance(j, now) for k, j in state.jobs.items()}
        moment = Moment(now, ROUNDS, ROUNDS.at(now) + 1)
        decision = decide(state, moment, PlanResult(made, mode, stances), AssumedBindings())
        return {change.job.key.name: change for change in decision.changes}

    def test_what_is_written_comes_back_to_the_planner(self) -> None:
        item = self._item("a", step=120, held=True)
        change = self._decided([item, self._item("b")], NOW)["a"]
        assert change.marks is not None
        assert change.marks.isolated_steps == 120.0
        assert change.marks.isolated_seconds > 0.0
        assert change.marks.started_at == format_time(NOW - 100), "the other marks stay"
        written = change.marks
        state = cluster([node_object("n1")], [read_job(self._item("a", step=120, held=True, marks=written))])
        (after,) = _snapshot(state, NOW).jobs
        assert (after.isolated_s, after.isolated_steps) == (written.isolated_seconds, 120.0)

    def test_it_goes_with_the_round_s_write_and_the_same_progress_is_entered_once(self) -> None:
        """One change of each job a round: what a run's lease or its end writes anyway."""
        item, other = self._item("a", step=120, held=True), self._item("b")
        change = self._decided([item, other], NOW)["a"]
        assert change.kind in {ChangeKind.STAY, ChangeKind.LEAVE}, "the round writes the allocation too"
        again = self._item("a", step=120, held=True, marks=change.marks)
        later = self._decided([again, other], NOW + 20).get("a")
        assert later is None or later.marks == change.marks

    def test_a_job_that_waits_without_progress_is_not_written_for_its_account(self) -> None:
        item, other = self._item("a", step=120), self._item("b", held=True)
        first = self._decided([item, other], NOW)["a"]
        entered = self._item("a", step=120, marks=first.marks)
        for number in range(1, 5):
            change = self._decided([entered, other], NOW + 20 * number).get("a")
            assert change is None or change.marks == first.marks

    def test_between_rounds_nothing_is_entered(self) -> None:
        items = [self._item("a", step=120, held=True), self._item("b")]
        before = read_job(items[0]).status.marks
        changes = self._decided(items, NOW, mode="fill")
        assert "a" not in changes or changes["a"].marks == before

    @pytest.mark.parametrize("policy", ["2d-las", "las", "fifo", "max-min-fairness", "makespan"])
    def test_no_other_policy_enters_anything(self, policy: str) -> None:
        changes = self._decided([self._item("a", step=120, held=True), self._item("b")], NOW, policy=policy)
        assert changes, "the round is written"
        assert all(change.marks is None or change.marks.isolated_steps == 0.0 for change in changes.values())

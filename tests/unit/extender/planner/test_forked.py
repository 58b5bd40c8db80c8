"""Parts of a cluster are planned in forked processes."""

import os
import resource
import select
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.planner.planning import job, node
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import FieldError, Snapshot
from synergy_core.partitions.by_parts import plan_by_parts
from synergy_core.plan import plan
from synergy_extender.planner.forked import Forked
from synergy_extender.planner.process import Planner
from synergy_extender.planner.question import Answer, Asked, question_after

TYPES = ("A100", "H100", "V100")
CONFIG = PlanConfig(policy="fifo", mechanism="tune")


def _cluster(jobs: int = 6) -> Snapshot:
    return Snapshot(
        nodes=tuple(node(f"{kind}-{index}", 2, gpu_type=kind) for kind in TYPES for index in range(2)),
        jobs=tuple(job(f"j{index}", 2, gpu_types=(TYPES[index % 3],), arrival_s=float(index)) for index in range(jobs)),
    )


def children() -> set[str]:
    """Processes that this one has started and that are not gone, ended ones included."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


class Pids:
    """Plans, and notes in which process."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()

    def __call__(self, snapshot: Snapshot, config: PlanConfig) -> Plan:
        os.write(self.writing, f"{os.getpid()} ".encode())
        return plan(snapshot, config)

    def read(self) -> list[int]:
        os.close(self.writing)
        with os.fdopen(self.reading, "rb") as pipe:
            return [int(pid) for pid in pipe.read().split()]


@pytest.mark.parametrize(("processes", "used"), [(1, 1), (2, 2), (3, 3), (8, 3)])
def test_parts_are_planned_in_as_many_processes_as_there_may_be(processes: int, used: int) -> None:
    pids = Pids()
    assert plan_by_parts(_cluster(), CONFIG, Forked(processes, pids)) == plan(_cluster(), CONFIG)
    found = pids.read()
    assert len(found) == 3
    assert len(set(found)) == used
    assert os.getpid() in found


def test_no_parts_are_no_plans() -> None:
    assert Forked(2)([], CONFIG) == []


@pytest.mark.parametrize("dies", [True, False])
def test_a_part_whose_process_fails_is_planned_here(
    dies: bool, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    here = os.getpid()

    def failing(snapshot: Snapshot, config: PlanConfig) -> Plan:
        if os.getpid() == here:
            return plan(snapshot, config)
        if dies:
            os.kill(os.getpid(), 9)
        raise MemoryError("no more")

    assert plan_by_parts(_cluster(), CONFIG, Forked(2, failing)) == plan(_cluster(), CONFIG)
    assert "parts of the cluster failed" in caplog.text
    assert ("MemoryError: no more" in capfd.readouterr().err) is not dies


def test_an_error_of_a_plan_is_raised_and_no_process_is_left() -> None:
    def refused(snapshot: Snapshot, config: PlanConfig) -> Plan:
        raise FieldError("policy", "is refused")

    before = children()
    with pytest.raises(FieldError, match="is refused"):
        Forked(3, refused)([_cluster(), _cluster()], CONFIG)
    assert children() == before


def test_parts_are_planned_here_if_there_is_no_room_for_another_process(caplog: pytest.LogCaptureFixture) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    before, processes = len(os.listdir("/proc/self/fd")), children()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + 2, hard))  # one pipe
        found = Forked(3)([_cluster(), _cluster(4), _cluster(2)], CONFIG)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found == [plan(_cluster(jobs), CONFIG) for jobs in (6, 4, 2)]
    assert "parts of the cluster failed" in caplog.text
    assert len(os.listdir("/proc/self/fd")) == before
    assert children() == processes


def test_a_fork_ends_with_the_planner_that_is_killed_because_its_plan_takes_too_long() -> None:
    reading, writing = os.pipe()

    def stuck(snapshot: Snapshot, config: PlanConfig) -> Plan:
        os.write(writing, f"{os.getpid()} ".encode())
        while True:
            signal.pause()

    planner = os.fork()
    if not planner:
        Forked(2, stuck)([_cluster(), _cluster()], CONFIG)
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        said = b""
        while said.count(b" ") < 2:
            said += pipe.read(64)
        os.kill(planner, signal.SIGKILL)
        os.waitpid(planner, 0)
        ended, _, _ = select.select([pipe], [], [], 20.0)  # readable once no process has its other end
        if not ended:
            for pid in {int(one) for one in said.split()} - {planner}:
                os.kill(pid, signal.SIGKILL)
        assert ended
        assert pipe.read(1) == b""


@pytest.mark.parametrize("processes", [1, 3])
def test_the_planner_s_process_answers_the_same_in_parts(processes: int) -> None:
    snapshot = _cluster(9)
    asked = question_after(None, Asked(snapshot, {}), CONFIG, 1.0)
    answer: Any = Planner(processes=processes).answer(msgspec.msgpack.encode(asked))
    assert isinstance(answer, Answer)
    assert answer.plan == plan(snapshot, CONFIG)

"""Whatever happens, in whatever order, and however much of it the operator misses: the promises hold."""

import copy
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from support.operator.objects import node
from support.operator.world import World, attained
from synergy_api import names
from synergy_api.reasons import Reason
from synergy_operator.actions import ApplyStatus, CreateJob, CreatePod, UngatePod
from synergy_operator.job.reconcile import reconcile
from synergy_operator.views.refusals import Refusals

GPUS = 2


class Life(RuleBasedStateMachine):
    """One job under an extender that grants and revokes at will, nodes that fail, users that interfere, and an operator
    that may stop after any action and may look at an old copy of the world."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(
            [node("n1"), node("n2")], gpus=GPUS, gpusPerWorker=1, backoffLimit=1000, profile={"mode": "Skip"}
        )
        self.attained = 0.0
        self.closed = 0.0
        self.ended = 0
        self.failures = 0
        self.old = copy.deepcopy(self.world.observe())

    @initialize()
    def first_look(self) -> None:
        self.world.settle()

    # the operator

    @rule()
    def look(self) -> None:
        self._reconcile(None)

    @rule(done=st.integers(0, 4))
    def look_and_crash(self, done: int) -> None:
        self._reconcile(done)

    @rule()
    def settle(self) -> None:
        for _ in range(60):
            if not self._reconcile(None):
                return
        raise AssertionError("no fixed point")

    @rule()
    def remember(self) -> None:
        self.old = self.world.observe()

    @rule()
    def look_at_an_old_copy(self) -> None:
        """A stale cache: the status write is refused, what came before it has been done."""
        actions = reconcile(self.old, self.world.now)
        stale = self.old.job.resource_version != self.world.view.resource_version
        for action in actions.todo:
            if isinstance(action, ApplyStatus) and stale:
                return
            self.world.carry_out([action])

    def _reconcile(self, most: int | None) -> bool:
        actions = reconcile(self.world.observe(), self.world.now)
        held = [pod for pod in self.world.pods.values() if pod["status"]["phase"] not in ("Succeeded", "Failed")]
        runs = {pod["metadata"]["labels"][names.LABEL_RUN] for pod in held}
        for action in actions.todo[:most]:
            if isinstance(action, CreatePod):
                assert runs <= {str(action.run)}, "no pod is made while one of another run may hold something"
                assert action.run > self.ended, "no pod is made for a run that has ended"
            if isinstance(action, UngatePod):
                self._check_gate(action)
            self.world.carry_out([action])
        return bool(actions.todo)

    def _check_gate(self, action: UngatePod) -> None:
        """A gate falls only while its place is granted and free, and all of the gang is there and on record."""
        allocation, service = self.world.status.allocation, self.world.status.service
        assert allocation is not None
        assert service is not None
        assert (allocation.state, allocation.admitted) == ("Granted", True)
        assert service.run == allocation.run
        assert self.world.pod_names(allocation.run) == [f"job-{allocation.run}-{rank}" for rank in range(GPUS)]

    # the extender

    @precondition(lambda self: self._released())
    @rule(admitted=st.booleans(), spread=st.booleans())
    def grant(self, admitted: bool, spread: bool) -> None:
        if self.world.status.phase == "Queued":
            shares = [("n1", 1, 3000, 8), ("n2", 1, 3000, 8)] if spread else [("n1", 2, 6000, 16)]
            self.world.grant(*shares, admitted=admitted)

    @precondition(lambda self: self._open())
    @rule(lease=st.integers(0, 20))
    def revoke(self, lease: int) -> None:
        if self.world.job["status"]["allocation"]["state"] == "Granted":
            self.world.revoke(lease_in=lease)

    @precondition(lambda self: self._open())
    @rule()
    def admit(self) -> None:
        self.world.allocate(admitted=True)

    @precondition(lambda self: self._open())
    @rule(cpu=st.integers(1000, 9000))
    def retune(self, cpu: int) -> None:
        allocation = self.world.job["status"]["allocation"]
        self.world.allocate(workers=[{**share, "cpuMillis": cpu} for share in allocation["workers"]])

    @precondition(lambda self: self._open())
    @rule(steps=st.integers(0, 100), saved=st.integers(0, 100), seconds=st.none() | st.floats(0, 1e4))
    def report(self, steps: int, saved: int, seconds: float | None) -> None:
        run = self.world.job["status"]["allocation"]["run"]
        told = {"run": run, "steps": max(steps, saved), "checkpointSteps": saved, "saveSeconds": seconds}
        self.world.job["status"]["progress"] = told

    @precondition(lambda self: self._open())
    @rule(reason=st.sampled_from([Reason.POD_REFUSED, Reason.SERVICE_REFUSED, Reason.START_REFUSED]))
    def api_server_refuses(self, reason: Reason) -> None:
        run = self.world.job["status"]["allocation"]["run"]
        self.world.refusals = Refusals(run=run, message="exceeded quota", reason=reason)

    # the cluster and the user

    @rule()
    def schedule_and_start(self) -> None:
        self.world.bind()
        self.world.start()

    @rule(rank=st.integers(0, 1), code=st.sampled_from([0, 0, 1, 75, 75, 137]), step=st.integers(0, 100))
    def exit(self, rank: int, code: int, step: int) -> None:
        name = self._pod(rank)
        if name is not None and "running" in self._state(name):
            self.world.exit(name, code, json.dumps({"step": step}))

    @rule(rank=st.integers(0, 1))
    def delete(self, rank: int) -> None:
        name = self._pod(rank)
        if name is not None:
            self.world.delete(name)

    @rule()
    def reap(self) -> None:
        self.world.reap()

    @rule(rank=st.integers(0, 1))
    def refuse(self, rank: int) -> None:
        name = self._pod(rank)
        if name is not None and self.world.pods[name]["spec"].get("nodeName") and not self._state(name):
            self.world.refuse(name, "OutOfcpu")

    @rule(seconds=st.integers(0, 40))
    def wait(self, seconds: int) -> None:
        self.world.wait(seconds)

    @rule(suspend=st.booleans())
    def suspend(self, suspend: bool) -> None:
        if bool(self.world.job["spec"].get("suspend")) != suspend:
            self.world.edit(lambda spec: spec.update(suspend=suspend))

    @rule(name=st.sampled_from(["n1", "n2"]), ready=st.booleans())
    def node_fails_or_returns(self, name: str, ready: bool) -> None:
        self.world.nodes[name] = node(name, ready=ready)

    # what must hold

    @invariant()
    def closed_service_never_falls(self) -> None:
        service = self.world.status.service
        if service is None:
            return
        assert service.attained_gpu_seconds >= self.closed
        assert service.attained_gpu_seconds <= (self.world.now - 1_800_000_000.0) * GPUS + 1e-6
        self.closed = service.attained_gpu_seconds

    @invariant()
    def ended_runs_only_grow_and_stay_behind_the_plan(self) -> None:
        service, allocation = self.world.status.service, self.world.status.allocation
        if service is None:
            return
        assert service.ended_run >= self.ended
        assert service.ended_run <= (allocation.run if allocation else 0)
        if service.ended_run > self.ended:
            held = [
                name
                for name, pod in self.world.pods.items()
                if int(pod["metadata"]["labels"][names.LABEL_RUN]) == service.ended_run
                and pod["status"]["phase"] not in ("Succeeded", "Failed")
            ]
            assert not held or self._old_look(held), "a run is closed when it holds nothing"
        self.ended = service.ended_run

    @invariant()
    def only_failed_runs_are_failures_and_no_more_are_forgiven_than_there_were(self) -> None:
        service = self.world.status.service
        if service is None:
            return
        assert service.failures >= self.failures
        assert (service.forgiven or 0) <= service.failures
        if service.failures > self.failures:
            assert service.last is not None
            assert service.last.outcome == "Failed"
        self.failures = service.failures

    @invariant()
    def phase_and_condition_agree(self) -> None:
        running = next((c for c in self.world.status.conditions if c.type == "Running"), None)
        if running is not None:
            assert (running.status == "True") == (self.world.status.phase == "Running")

    def teardown(self) -> None:
        """From anywhere the job comes to rest: the plan takes its place back, and nothing is held any more."""
        if self._open():
            self.world.revoke()
        for _ in range(6):
            self.settle()
            self.world.wait(120)
            self.world.reap()
        self.settle()
        assert not self._open()
        held = [n for n, p in self.world.pods.items() if p["status"]["phase"] not in ("Succeeded", "Failed")]
        assert held == []
        assert not reconcile(self.world.observe(), self.world.now).todo

    def _open(self) -> bool:
        status = self.world.status
        ended = status.service.ended_run if status.service else 0
        return status.allocation is not None and status.allocation.run > ended

    def _released(self) -> bool:
        return not self._open()

    def _old_look(self, held: list[str]) -> bool:
        """Pods that an operator with an old copy made for a run that had just ended; they are gated or deleted next."""
        return all(self.world.pods[name]["spec"]["schedulingGates"] for name in held)

    def _pod(self, rank: int) -> str | None:
        allocation = self.world.status.allocation
        name = f"job-{allocation.run}-{rank}" if allocation else ""
        return name if name in self.world.pods else None

    def _state(self, name: str) -> dict[str, Any]:
        statuses = self.world.pods[name]["status"].get("containerStatuses") or [{"state": {}}]
        return dict(statuses[0]["state"])


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=80, stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow])

SCRIPT = ("bind", "start0", "start1", "retune", "revoke", "wait", "exit0", "exit1")


def play(seen: set[int]) -> World:
    """A run from its gates to its end; the operator looks only after the steps in `seen`, and at the very end."""
    world = World(gpus=2, gpusPerWorker=1)
    world.settle()
    world.grant(("n1", 2, 6000, 16))
    world.settle()
    steps = {
        "bind": world.bind,
        "start0": lambda: world.start("job-1-0"),
        "start1": lambda: world.start("job-1-1"),
        "retune": lambda: world.allocate(
            workers=[{"node": "n1", "gpus": 2, "cpuMillis": 4000, "memoryBytes": 16 << 30}]
        ),
        "revoke": lambda: world.revoke(lease_in=10),
        "wait": lambda: world.wait(10),
        "exit0": lambda: world.exit("job-1-0", 75, '{"step": 5}'),
        "exit1": lambda: world.exit("job-1-1", 75),
    }
    for index, step in enumerate(SCRIPT):
        steps[step]()
        if index in seen:
            world.settle()
    world.settle()
    return world


@given(seen=st.sets(st.integers(0, len(SCRIPT) - 1)))
def test_however_many_events_are_missed_the_books_are_the_same(seen: set[int]) -> None:
    world, other = play(seen), play(set(range(len(SCRIPT))))
    assert world.status.service == other.status.service
    assert world.status.phase == other.status.phase == "Queued"
    assert world.status.start_time == other.status.start_time
    assert world.pod_names() == other.pod_names() == []


@given(speeds=st.lists(st.floats(0.1, 100), min_size=1, max_size=3), crash=st.integers(0, 3))
@settings(max_examples=50)
def test_a_series_never_has_two_jobs_under_way(speeds: list[float], crash: int) -> None:
    world = World(profile={"mode": "Auto"})
    world.settle()
    profile = world.status.profile
    assert profile is not None
    assert profile.request is not None
    world.grant(("n1", 1, 12000, 8), purpose="Profile")
    for index in range(40):
        actions = reconcile(world.observe(), world.now)
        under_way = [name for name, job in world.jobs.items() if not job["status"]]
        made = [action for action in actions.todo if isinstance(action, CreateJob)]
        assert len(under_way) + len(made) <= 1
        world.carry_out(actions.todo[: crash if index % 2 else None])
        for name in [name for name, job in world.jobs.items() if not job["status"]]:
            world.bind(f"{name}-x")
            world.start(f"{name}-x")
            text = json.dumps({"outcome": "measured", "steps_per_second": speeds[index % len(speeds)]})
            world.exit(f"{name}-x", 0, text)
            world.finish_job(name)
    world.settle()
    assert world.status.phase == "Queued"


def test_attained_service_of_an_open_run_is_reckoned_from_its_start() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.wait(10)
    assert attained(world.status, 1, world.now) == 10.0

"""What the planner is asked: snapshots of the cluster as it is, and how long they and their plans took."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from synergy_api.reasons import Finding
from synergy_core.model import snapshot as core
from synergy_core.model.config import Mode
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import Key
from synergy_extender.planner.question import Planned
from synergy_extender.planner.worker import PlanWorker
from synergy_extender.planning.policy import PolicyInForce, plan_config
from synergy_extender.snapshot.failing import without_failing_nodes
from synergy_extender.snapshot.known.snapshot import KnownSnapshot
from synergy_extender.snapshot.snapshot import BuiltSnapshot, build_snapshot
from synergy_extender.tenants.planned import tenants_of
from synergy_service.tracing import span

T = TypeVar("T")


class PlanQuestions:
    """Asks for plans. What it remembers of one question makes the next a short one, and is only a shortcut."""

    def __init__(self, cache: ClusterCache, worker: PlanWorker) -> None:
        self._cache = cache
        self._worker = worker
        self._known = KnownSnapshot()
        self.computed_s, self.planned_s = 0.0, 0.0
        """Of one pass: seconds of this process, and of the planner's."""

    def forget(self) -> None:
        """Nothing is asked for now."""
        self._known = KnownSnapshot()

    def begin(self) -> None:
        """A pass begins."""
        self.computed_s, self.planned_s = 0.0, 0.0

    def state(self, policy: PolicyInForce, now: float) -> ClusterState:
        """The cluster now, without the nodes that fail too often."""
        return without_failing_nodes(self._cache.state(), policy.spec.failing_nodes, now)

    async def compute(self, step: Callable[..., T], *args: Any, **more: Any) -> T:
        """A step of the pass, in a thread, and its time."""
        begun = time.perf_counter()
        with span(step.__name__):
            result = await asyncio.to_thread(step, *args, **more)
        self.computed_s += time.perf_counter() - begun
        return result

    async def snapshot(
        self,
        state: ClusterState,
        policy: PolicyInForce,
        mode: Mode,
        now: float,
        *,
        reserved: Mapping[Key, core.Allocation],
        left_out: Mapping[Key, Finding],
    ) -> BuiltSnapshot:
        """The planner's view of the cluster, as `build_snapshot` makes it."""
        return await self.compute(
            build_snapshot,
            state,
            mode=mode,
            now=now,
            round_s=policy.spec.round_seconds,
            reserved=reserved,
            tenants=tenants_of(policy.spec),
            left_out=left_out,
            leaving_s=policy.leaving_s,
            known=self._known,
        )

    async def plan(self, built: BuiltSnapshot, policy: PolicyInForce, mode: Mode, solve_s: float) -> Planned:
        """The plan for it.

        Raises PlanFailed.
        """
        begun = time.perf_counter()
        planned = await self._worker.plan(built.base, plan_config(policy, mode), solve_s, built.clocks)
        self.computed_s += time.perf_counter() - begun - planned.seconds  # the messages
        self.planned_s = planned.seconds
        return planned

    async def get_ready(self, policy: PolicyInForce, now: float, solve_s: float) -> None:
        """Ask as a leader would, and do nothing with the plan: afterwards this process and the planner's know all jobs,
        which takes seconds where there are thousands.

        Raises PlanFailed.
        """
        built = await self.snapshot(self.state(policy, now), policy, "fill", now, reserved={}, left_out={})
        await self.plan(built, policy, "fill", solve_s)

"""What a plan changes: jobs are promoted, preempted and get their nodes."""

from collections.abc import Mapping

from synergy_core.model.answer import Plan
from synergy_simulator.engine.holding import Holding
from synergy_simulator.engine.partial import PartialProfiles
from synergy_simulator.engine.run import Run
from synergy_simulator.engine.sharing.together import Together


class PlanExecution:
    """Carries out plans. Speeds are the true ones, which the planner may not know."""

    def __init__(self, holding: Holding, together: Together, partial: PartialProfiles) -> None:
        self._holding = holding
        self._together = together
        self._partial = partial

    def carry_out(self, answer: Plan, active: Mapping[str, Run], now: float) -> bool:
        """Do what the plan says with the jobs in `active`. True if that changed anything."""
        changed = bool(answer.preempted or answer.promoted)
        for name in answer.promoted:
            active[name].job.promote()
        for entry in answer.isolated:
            active[entry.job].job.enter_isolated(entry.seconds, entry.steps)
        for name in answer.preempted:
            self._holding.preempt(active[name], now)
        given = {allocation.job: allocation for allocation in answer.allocations}
        members = {name: active[name].job for name, allocation in given.items() if allocation.partners}
        for name, allocation in given.items():
            run = active[name]
            if run.job.running != allocation:
                real = self._partial.steps_per_s(run, allocation)
                speed = self._together.steps_per_s(allocation, members) if real is None else real
                self._holding.give(run, allocation, speed, now)
                changed = True
        return changed

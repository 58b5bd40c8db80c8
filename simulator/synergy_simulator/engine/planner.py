"""The planner of a simulation: `synergy_core.plan` with the memory of the plans before, and the time each plan took."""

import time
from collections.abc import Callable
from dataclasses import replace

from synergy_core.cache import Memory
from synergy_core.model.answer import Plan
from synergy_core.model.config import Mode, PlanConfig
from synergy_core.model.snapshot import Snapshot
from synergy_core.plan import plan
from synergy_simulator.workloads.workload import Workload

Watch = Callable[[Snapshot, PlanConfig], None]
"""Called with what is about to be planned. The jobs of the snapshot move on afterwards."""


class SimulatedPlanner:
    """Plans rounds and fills as the extender does, without explanations."""

    def __init__(self, workload: Workload, config: PlanConfig, watch: Watch) -> None:
        planned = replace(config, predictors={**workload.pairs, **config.predictors}, explain=False)
        self._configs: dict[Mode, PlanConfig] = {
            "round": replace(planned, mode="round"),
            "fill": replace(planned, mode="fill"),
        }
        self._memory = Memory()
        self._watch = watch
        self.seconds: list[float] = []
        """Of each plan."""

    def plan(self, snapshot: Snapshot, mode: Mode) -> Plan:
        """The plan for the snapshot."""
        config = self._configs[mode]
        self._watch(snapshot, config)
        started = time.perf_counter()
        answer = plan(snapshot, config, self._memory)
        self.seconds.append(time.perf_counter() - started)
        return answer

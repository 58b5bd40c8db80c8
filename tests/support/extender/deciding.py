"""Plans and the decisions that they lead to, in a cluster of two nodes."""

from typing import Any

from support.extender.cluster import GI, NOW, node_object
from synergy_api.parts.allocation import Allocation
from synergy_core.model import snapshot as core
from synergy_core.model.answer import Plan, Waiting
from synergy_core.model.config import Mode
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.state import ClusterState
from synergy_extender.decisions.changes import StatusChange
from synergy_extender.decisions.decide import Decision, decide
from synergy_extender.decisions.plan_result import PlanResult, stance
from synergy_extender.rounds import Moment, Rounds

ROUNDS = Rounds(20)
THIS = ROUNDS.at(NOW)
BOUNDARY = ROUNDS.end(THIS)
AT_PLAN = Moment(BOUNDARY - 1.9, ROUNDS, THIS + 1)
"""Shortly after the plan of the next round was begun."""
MID_ROUND = Moment(NOW + 5, ROUNDS, THIS)
NODES = (node_object("n1"), node_object("n2"))


def place(name: str, *workers: tuple[str, int, int], speed: float = 2.0) -> core.Allocation:
    """An allocation of the job, with (node, GPUs, milli-CPU) for each node."""
    return core.Allocation(
        job=f"team/{name}",
        gpu_type="V100",
        workers=tuple(core.NodeShare(node=n, gpus=g, cpu_millis=c, memory_bytes=GI) for n, g, c in workers),
        steps_per_s=speed,
        proportional_steps_per_s=1.0,
    )


def plan(*places: core.Allocation, waiting: tuple[str, ...] = ()) -> Plan:
    """A plan with these allocations, in which the other jobs wait."""
    told = tuple(Waiting(job=f"team/{name}", reason="NoFreeGPU", message="waits") for name in waiting)
    return Plan(allocations=places, waiting=told, preempted=(), resized=(), policy="las", mechanism="tune")


def decided(
    state: ClusterState, moment: Moment, made: Plan | None = None, mode: Mode = "round", **more: Any
) -> Decision:
    """What is decided at the moment; `made` is the plan, if there is one."""
    result = None
    if made is not None:
        stances = {k: stance(j, moment.now) for k, j in state.jobs.items()}
        result = PlanResult(made, mode, stances, more.pop("refused", {}))
    return decide(state, moment, result, AssumedBindings(), **more)


def only(decision: Decision) -> StatusChange:
    """The one change of the decision."""
    assert len(decision.changes) == 1, decision.changes
    return decision.changes[0]


def allocated(change: StatusChange) -> Allocation:
    """The allocation that the change writes."""
    assert change.allocation is not None
    return change.allocation

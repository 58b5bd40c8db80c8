"""The real planner, the real decisions of extender and operator, and a kubelet that answers resizes as it likes.

One node, several jobs; what passes between the three is the API server's objects and nothing else.
"""

from typing import Any, Literal

from support.operator.objects import GIB, node
from support.operator.world import World
from synergy_api.amounts import NOTHING, Amounts
from synergy_api.cluster.pods import is_terminal
from synergy_api.cluster.pools import node_capacities
from synergy_api.timestamps import format_time
from synergy_core.model.config import Mode, PlanConfig
from synergy_core.plan import plan
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.pod_index import PodIndex
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import Key, read_job, read_pod
from synergy_extender.decisions.decide import decide
from synergy_extender.decisions.plan_result import PlanResult, stance
from synergy_extender.rounds import Moment, Rounds
from synergy_extender.snapshot.snapshot import build_snapshot

ROUNDS = Rounds(20)
Answer = Literal["granted", "infeasible"]
CPUS, MEMORY_GIB, GPUS = 12, 24, 4


def hungry(gpus: int) -> dict[str, Any]:
    """A matrix: the more CPU and memory, the faster."""
    cpu = [500 * gpus, 3000 * gpus, 9000]
    memory = [GIB * gpus, 6 * GIB * gpus, 20 * GIB]
    speeds = [[c / 1000 + m / GIB / 10 for m in memory] for c in cpu]
    matrix = {"gpuType": "V100", "cpuMillis": cpu, "memoryBytes": memory, "stepsPerSecond": speeds}
    return {"mode": "Provided", "matrices": [matrix]}


class Cluster:
    """`has` is what each pod's container really has, `allocated` what the kubelet has promised it, by pod name."""

    def __init__(self, **gpus: int) -> None:
        self.nodes = [node("n1", gpus=GPUS, cpu=CPUS, gib=MEMORY_GIB)]
        self.worlds = {
            name: World(self.nodes, name, gpus=count, gpusPerWorker=1, profile=hungry(count), suspend=True)
            for name, count in gpus.items()
        }
        self.allocated: dict[str, Amounts] = {}
        self.has: dict[str, Amounts] = {}
        self.reserved: Any = {}
        for world in self.worlds.values():
            world.settle()

    # the extender

    def state(self) -> ClusterState:
        """What the extender's caches show."""
        jobs = [read_job(world.job) for world in self.worlds.values()]
        return ClusterState(
            jobs={job.key: job for job in jobs},
            capacities=node_capacities(self.nodes, []),
            nodes={item["metadata"]["name"]: item for item in self.nodes},
            allocatable={item["metadata"]["name"]: Amounts.parse(item["status"]["allocatable"]) for item in self.nodes},
            pods=PodIndex(read_pod(pod) for pod in self._pods().values()),
        )

    def plan(self, mode: Mode) -> None:
        """One pass of the planning loop."""
        state, now = self.state(), self._now()
        stances = {key: stance(job, now) for key, job in state.jobs.items()}
        built = build_snapshot(state, mode=mode, now=now, round_s=ROUNDS.seconds, reserved=self.reserved)
        made = plan(built.snapshot, PlanConfig(policy="las", mechanism="tune", mode=mode))
        moment = Moment(now, ROUNDS, ROUNDS.at(now) + (mode == "round"))
        result = PlanResult(made, mode, stances, built.refused)
        decision = decide(state, moment, result, AssumedBindings(), reserved=self.reserved)
        self.reserved = decision.reserved
        for change in decision.changes:
            if change.allocation is not None:
                self._world(change.job.key).apply_allocation(change.allocation.to_wire())

    # the kubelet

    def look(self, pod_name: str, answer: Answer, *, memory_in_use: bool) -> None:
        """The kubelet looks at a pod: admits a resize or does not, carries out what it admitted or cannot."""
        pod = self._pods()[pod_name]
        wanted = _asked(pod)
        conditions = [c for c in pod["status"].get("conditions", []) if not c["type"].startswith("PodResize")]
        said = [c for c in pod["status"].get("conditions", []) if c["type"] == "PodResizeInProgress"]
        seen = {"status": "True", "message": "so says the kubelet", "observedGeneration": pod["metadata"]["generation"]}
        since = {"lastTransitionTime": said[0]["lastTransitionTime"] if said else format_time(self._now())}
        if wanted != self.allocated[pod_name]:
            others = [amounts for name, amounts in self.allocated.items() if name != pod_name]
            room = Amounts.parse(self.nodes[0]["status"]["allocatable"])
            if answer == "infeasible":
                conditions.append({"type": "PodResizePending", "reason": "Infeasible", **seen})
            elif _sum([*others, wanted]).fits(room):
                self.allocated[pod_name] = wanted
            else:
                conditions.append({"type": "PodResizePending", "reason": "Deferred", **seen})
        if self.allocated[pod_name] != self.has[pod_name]:
            if memory_in_use and self.allocated[pod_name].memory_bytes < self.has[pod_name].memory_bytes:
                conditions.append({"type": "PodResizeInProgress", "reason": "Error", **seen, **since})
            else:
                self.has[pod_name] = self.allocated[pod_name]
        self._report(pod_name, conditions)

    def bring_up(self) -> None:
        """The scheduler binds what has no gate, the kubelet starts what is bound."""
        for world in self.worlds.values():
            free = [name for name, pod in world.pods.items() if not pod["spec"].get("schedulingGates")]
            unbound = [name for name in free if not world.pods[name]["spec"].get("nodeName")]
            if unbound:
                world.bind(*unbound)
                world.start(*unbound)
        for name, pod in self._pods().items():
            if _held(pod) and name not in self.has and pod["status"].get("containerStatuses"):
                self.has[name] = self.allocated[name] = _asked(pod)
                self._report(name, pod["status"]["conditions"])

    def go(self) -> None:
        """Workers whose lease is over leave, and pods that were told to go are gone."""
        for world in self.worlds.values():
            allocation = world.status.allocation
            if allocation is not None and allocation.state == "Revoked":
                for name, pod in world.pods.items():
                    if _held(pod) and pod["status"]["phase"] == "Running":
                        world.exit(name, 75)
            world.settle()
            world.reap()
        alive = {name for name, pod in self._pods().items() if _held(pod)}
        self.has = {name: has for name, has in self.has.items() if name in alive}
        self.allocated = {name: has for name, has in self.allocated.items() if name in alive}

    # what must hold

    def over_allocated(self) -> Amounts:
        """By how much the pods' sizes, the greatest of what each asks for, was promised and has, exceed the node."""
        total = NOTHING
        for name, pod in self._pods().items():
            if _held(pod):
                has = self.has.get(name, NOTHING).at_least(self.allocated.get(name, NOTHING))
                total = total.plus(has if _infeasible(pod) else has.at_least(_asked(pod)))
        return total.minus(Amounts.parse(self.nodes[0]["status"]["allocatable"])).at_least(NOTHING)

    def running(self) -> list[str]:
        """The pods that the kubelet has started."""
        return sorted(self.has)

    def wait(self, seconds: float) -> None:
        """Time passes."""
        for world in self.worlds.values():
            world.wait(seconds)

    def _pods(self) -> dict[str, Any]:
        return {name: pod for world in self.worlds.values() for name, pod in world.pods.items()}

    def _report(self, pod_name: str, conditions: list[dict[str, Any]]) -> None:
        has, promised = self.has[pod_name], self.allocated[pod_name]
        world = next(world for world in self.worlds.values() if pod_name in world.pods)
        status = world.pods[pod_name]["status"]["containerStatuses"][0]
        resources = {"resources": {"requests": _wire(has)}, "allocatedResources": _wire(promised)}
        world.set_pod(pod_name, containerStatuses=[{**status, **resources}], conditions=conditions)

    def _world(self, key: Key) -> World:
        return self.worlds[key.name]

    def _now(self) -> float:
        return next(iter(self.worlds.values())).now


def _asked(pod: dict[str, Any]) -> Amounts:
    return Amounts.parse(pod["spec"]["containers"][0]["resources"]["requests"])


def _held(pod: dict[str, Any]) -> bool:
    return bool(pod["spec"].get("nodeName")) and not is_terminal(pod)


def _infeasible(pod: dict[str, Any]) -> bool:
    generation = pod["metadata"]["generation"]
    said = [c for c in pod["status"].get("conditions", []) if c.get("reason") == "Infeasible"]
    return any(c["observedGeneration"] == generation for c in said)


def _wire(amounts: Amounts) -> dict[str, str]:
    cpu, memory = f"{amounts.cpu_millis}m", str(amounts.memory_bytes)
    return {"cpu": cpu, "memory": memory, "nvidia.com/gpu": str(amounts.gpus)}


def _sum(all_of: list[Amounts]) -> Amounts:
    total = NOTHING
    for amounts in all_of:
        total = total.plus(amounts)
    return total

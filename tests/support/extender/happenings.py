"""A cluster to which one thing after another happens, for properties of what is kept up to date by differences."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from support.extender.cluster import GI, NOW, allocation, cluster, job, node_object, share, team_of, worker
from synergy_api.cluster.priority_classes import read_priority_classes
from synergy_api.timestamps import format_time
from synergy_extender.cluster.pod_index import PodIndex
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.decisions.changes import StatusChange

NODES = [node_object("n1"), node_object("n2"), node_object("n3", gpu_type="K80")]
NAMES = tuple("abcd")
"""Few: more than one thing happens to each job."""
_OFTEN = ("rest", "rest", "rest", "pod", "pod", "quiet", "quiet", "quiet")
"""Runs at rest, pods of theirs that change, and moments at which nothing does, are what a difference can go wrong
with."""
_ELSE = (
    "submit", "anew", "grant", "run", "report", "revoke", "end", "preempt", "unpod", "gone", "node", "cordon", "class",
    "clock",
)  # fmt: skip
Event = tuple[str, str, int]
"""What happens, to which job, and a number that says how."""
EVENT = st.tuples(st.sampled_from([*_OFTEN, *_ELSE]), st.sampled_from(NAMES), st.integers(0, 7))
EVENTS = st.lists(EVENT, max_size=30)


class World:
    """A cluster to which one thing after another happens."""

    def __init__(self) -> None:
        self.now = NOW
        self.nodes = list(NODES)
        self.status: dict[str, dict[str, Any]] = {}
        self.views: dict[str, JobView] = {}
        self.lives: dict[str, int] = {}
        """How many jobs of each name there have been."""
        self.classes = read_priority_classes([])
        self.pods = PodIndex()
        self.tenancy = team_of("red", maxNeverPreemptedGPUs=2)
        self.capped = self.tenancy

    def happens(self, event: Event) -> None:
        """One event, and some time."""
        what, name, number = event
        self.now += 0.5 + number
        act: Callable[[str, int], None] = getattr(self, f"_{what}")
        act(name, number)

    def _read(self, name: str) -> None:
        number = NAMES.index(name)
        spec: dict[str, Any] = {"preemption": "Never"} if number % 4 == 1 else {}
        template = {"nodeSelector": {"nvidia.com/gpu.product": "V100"}} if number % 3 == 1 else {}
        if number == 2:
            spec["priorityClassName"] = "high"
        life = {"uid": f"uid-{name}{self.lives.get(name) or ''}"}
        more: dict[str, Any] = {"spec": spec, "status": self.status[name], "template": template}
        self.views[name] = job(name, gpus=1 + number % 2, **more, **life)

    def _rest(self, name: str, number: int) -> None:
        """It trains as planned on V100s of its own: with the share of its GPUs, and pods."""
        node, gpus = f"n{1 + number % 2}", 1 + NAMES.index(name) % 2
        held = allocation(share(node, gpus=gpus, cpu_millis=3000 * gpus, memory_bytes=12 * GI * gpus))
        running = {"run": 1, "runningSince": format_time(self.now), "runningGPUType": "V100"}
        self.status[name] = {"phase": "Running", "allocation": held, "service": running}
        self._read(name)
        self._pod(name, 7 * (number % 2))

    def _anew(self, name: str, number: int) -> None:
        """Another job of the same name: the old one's end was not seen."""
        self.lives[name] = self.lives.get(name, 0) + 1
        (self._submit if number < 4 else self._rest)(name, number)

    def _submit(self, name: str, number: int) -> None:
        self.status[name] = {"phase": "Queued"}
        self._read(name)

    def _grant(self, name: str, number: int) -> None:
        if name not in self.status:
            return
        node, gpus = f"n{1 + number % 3}", 1 + NAMES.index(name) % 2
        held = allocation(share(node, gpus=gpus, cpu_millis=1000 + number), admitted=number > 3, until=self.now + 20)
        self.status[name] |= {"allocation": held}
        self._read(name)

    def _run(self, name: str, number: int) -> None:
        if name in self.status and "allocation" in self.status[name]:
            running = {"run": 1, "runningSince": format_time(self.now), "runningGPUType": "V100"}
            received = {"receivedSeconds": {"V100": 10.0 * number}, "attainedGPUSeconds": 10.0 * number}
            self.status[name] |= {"phase": "Running", "service": {**running, **received}}
            self._read(name)

    def _report(self, name: str, number: int) -> None:
        if name in self.status:
            self.status[name] |= {"progress": {"run": 1, "steps": number * 10}}
            self._read(name)

    def _revoke(self, name: str, number: int) -> None:
        held = self.status.get(name, {}).get("allocation")
        if held is not None:
            self.status[name]["allocation"] = {**held, "state": "Revoked", "leaseUntil": format_time(self.now + number)}
            self._read(name)

    def _end(self, name: str, number: int) -> None:
        if name in self.status:
            self.status[name] = {"phase": "Queued", "service": {"run": 1, "endedRun": 1, "failures": number}}
            if number > 4:
                self.status[name]["service"]["retryAt"] = format_time(self.now + number)
            self._read(name)

    def _preempt(self, name: str, number: int) -> None:
        if name in self.status:
            one = {"at": format_time(self.now - 3600 + number), "run": 1, "rule": "Policy", "by": []}
            self.status[name] |= {"preemptions": [one]}
            self._read(name)

    def _pod(self, name: str, number: int) -> None:
        """The pod of its run has another size from now on; seldom it is on another node."""
        held = self.status.get(name, {}).get("allocation")
        node = f"n{1 + number % 3}" if held is None or number == 6 else held["workers"][0]["node"]
        pod = worker(name, node=node, gpus=1, cpu=str(1 + number), memory="1Gi", planned=node)
        self.pods.put(pod)

    def _unpod(self, name: str, number: int) -> None:
        self.pods.drop(Key("team", f"{name}-1-0"))

    def _gone(self, name: str, number: int) -> None:
        self.status.pop(name, None)
        self.views.pop(name, None)

    def _node(self, name: str, number: int) -> None:
        self.nodes = list(NODES[: 1 + number % 3])
        self.tenancy = self.capped if number < 4 else team_of("red", maxWeight=number)

    def _cordon(self, name: str, number: int) -> None:
        self.nodes = [node_object("n1", unschedulable=number % 2 == 0), node_object("n2", cpu=24 - number), NODES[2]]

    def _class(self, name: str, number: int) -> None:
        self.classes = read_priority_classes([{"metadata": {"name": "high"}, "value": number}])

    def _quiet(self, name: str, number: int) -> None:
        """Only time goes by."""

    def _clock(self, name: str, number: int) -> None:
        """The clock is set back."""
        self.now -= 40.0

    def written(self, changes: Iterable[StatusChange]) -> None:
        """What was decided is in the status from now on."""
        for change in changes:
            name, status = change.job.key.name, self.status[change.job.key.name]
            for field in ("allocation", "queue", "marks", "late", "restriction"):
                value = getattr(change, field)
                status.pop(field, None)
                if value is not None:
                    status[field] = value.to_wire()
            status.pop("estimates", None)
            if change.estimates is not None:
                status["estimates"] = [one.to_wire() for one in change.estimates]
            self._read(name)

    def state(self) -> ClusterState:
        """The cluster now, as the cache copies it."""
        state = cluster(self.nodes, self.views.values(), tenancy=self.tenancy)
        return replace(state, pods=self.pods.copy(), classes=self.classes)


def without_rest(state: ClusterState) -> ClusterState:
    """The same cluster, of which no job counts as one at rest: all are looked at."""
    jobs = {key: replace(view) for key, view in state.jobs.items()}
    for view in jobs.values():
        object.__setattr__(view, "at_rest", False)
    return replace(state, jobs=jobs)

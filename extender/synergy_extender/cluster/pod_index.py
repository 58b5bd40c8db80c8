"""All pods, indexed for the questions about them: by name, by node with what they hold, by job."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TypeVar

from synergy_api.amounts import NOTHING, Amounts
from synergy_api.names import GPU_RESOURCES
from synergy_extender.cluster.views import Key, PodView

_Group = TypeVar("_Group")
_NO_PODS: Mapping[str, PodView] = {}


class PodIndex:
    """Pods by node and by job: no question looks at all of them."""

    def __init__(self, pods: Iterable[PodView] = ()) -> None:
        self._by_name: dict[Key, PodView] = {}
        self._by_node: dict[str, dict[str, PodView]] = {}
        self._by_job: dict[Key, dict[str, PodView]] = {}
        self._held: dict[str, Amounts] = {}
        self._gpu_resources: Mapping[str, Sequence[str]] = {}
        self._claimed: Mapping[str, int] = {}
        for pod in pods:
            self.put(pod)

    def __len__(self) -> int:
        return len(self._by_name)

    def copy(self) -> "PodIndex":
        """The same pods; later changes of one are not seen in the other."""
        copied = PodIndex()
        copied._by_name = dict(self._by_name)
        copied._by_node = {node: dict(pods) for node, pods in self._by_node.items()}
        copied._by_job = dict(self._by_job)
        copied._held = dict(self._held)
        copied._gpu_resources = self._gpu_resources
        copied._claimed = self._claimed
        return copied

    def claim(self, claimed: Mapping[str, int]) -> None:
        """By node, the GPUs that claims of others hold (DRA), in the units of pods' requests."""
        self._claimed = claimed

    def claimed(self, node: str) -> int:
        """GPUs of the node that claims of others hold."""
        return self._claimed.get(node, 0)

    def count(self, gpu_resources: Mapping[str, Sequence[str]]) -> None:
        """From now on count those resources as GPUs on the nodes named; on others NVIDIA's."""
        if gpu_resources == self._gpu_resources:
            return
        changed = {
            node
            for node in {*gpu_resources, *self._gpu_resources}
            if gpu_resources.get(node) != self._gpu_resources.get(node)
        }
        self._gpu_resources = gpu_resources
        for pod in [pod for pod in self._by_name.values() if _place(pod) in changed]:
            self.put(pod)

    def counted(self, pod: PodView) -> PodView:
        """The pod as its node counts GPUs."""
        return pod.counted(self._gpu_resources.get(_place(pod), GPU_RESOURCES)) if pod.extended else pod

    def put(self, pod: PodView) -> None:
        """Add the pod, in place of an earlier view of the same name."""
        name, pod = Key(pod.namespace, pod.name), self.counted(pod)
        self.drop(name)
        self._by_name[name] = pod
        if pod.holds:
            self._by_node.setdefault(pod.node, {})[pod.uid] = pod
            self._held[pod.node] = self._held.get(pod.node, NOTHING).plus(pod.requests)
        if pod.member is not None:
            self._by_job[pod.member.job] = {**self._by_job.get(pod.member.job, _NO_PODS), pod.uid: pod}

    def drop(self, name: Key) -> None:
        """Forget the pod of that name, if it is known."""
        pod = self._by_name.pop(name, None)
        if pod is None:
            return
        if pod.holds:
            self._held[pod.node] = self._held[pod.node].minus(pod.requests)
            _remove(self._by_node, pod.node, pod.uid)
            if pod.node not in self._by_node:
                del self._held[pod.node]
        if pod.member is not None:
            rest = {uid: other for uid, other in self._by_job.pop(pod.member.job).items() if uid != pod.uid}
            if rest:
                self._by_job[pod.member.job] = rest

    def get(self, namespace: str, name: str) -> PodView | None:
        """The pod of that name."""
        return self._by_name.get(Key(namespace, name))

    def held(self, node: str) -> Amounts:
        """What the node's pods hold together, those of others included."""
        held, claimed = self._held.get(node, NOTHING), self._claimed.get(node, 0)
        return held._replace(gpus=held.gpus + claimed) if claimed else held

    def on_node(self, node: str) -> Iterable[PodView]:
        """The pods that hold room on the node."""
        return self._by_node.get(node, _NO_PODS).values()

    def nodes(self) -> Iterable[str]:
        """Names of the nodes on which pods hold room."""
        return self._by_node.keys()

    def of_job(self, job: Key) -> Iterable[PodView]:
        """The pods whose labels name the job, of whatever run."""
        return self._by_job.get(job, _NO_PODS).values()

    def jobs(self) -> Set[Key]:
        """The jobs that pods' labels name, gone ones included."""
        return self._by_job.keys()

    def group_of(self, job: Key) -> object:
        """Another object whenever a pod of the job has changed."""
        return self._by_job.get(job, _NO_PODS)

    def of_run(self, job: Key, run: int) -> list[PodView]:
        """The pods of one run that have not ended."""
        return [p for p in self.of_job(job) if p.member is not None and p.member.run == run and not p.terminal]


def _place(pod: PodView) -> str:
    return pod.node or pod.planned_node


def _remove(groups: dict[_Group, dict[str, PodView]], group: _Group, uid: str) -> None:
    members = groups[group]
    del members[uid]
    if not members:
        del groups[group]


def changes_room(old: PodView | None, new: PodView | None) -> bool:
    """Whether it may affect a decision. A worker that comes, and is bound where the plan has it, changes nothing: its
    share counts as taken from its grant on."""
    if old is None and new is None:
        return False
    if new is None or new.member is None or new.terminal or new.leaves_by is not None:
        return old != new
    if new.devices and new.started != (old is not None and old.started):
        return True
    if old is not None and (old.node, old.requests) != ("", new.requests):
        return (old.node, old.requests) != (new.node, new.requests)
    return new.node not in ("", new.planned_node)

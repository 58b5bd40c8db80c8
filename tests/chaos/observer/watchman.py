"""The independent observer: follows nodes, pods and TrainingJobs by its own watch and checks the promises at every
event. What it believes is its own; with what it checks it shares the client that follows the API server."""

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from chaos.observer.book import BY_ITSELF, CLOCK, CLOCK_SECONDS, SLOW_SAVE, Book, Run, run_of
from chaos.observer.job_promises import check_job
from chaos.observer.uptime import Uptime
from support.on_cluster.observer import DIMENSIONS, number, pod_request
from synergy_api import names
from synergy_api.timestamps import parse_time
from synergy_kube import Change, KubeClient, Reflector
from synergy_kube.resources import NODES, PODS, TRAINING_JOBS

GANG_SECONDS = 30.0
_SLACK_SECONDS = 10.0
"""For a busy machine, beyond what was promised."""
_REFUSAL_SECONDS = 15.0
"""How long a node, which the harness plays, may take to refuse a pod for which it has no room."""
_LATE_SECONDS = 2.0
"""How far the observer's own watches may be apart."""
_AGAIN_SECONDS = 1.0
"""How often is looked at what makes no events."""

Object = Mapping[str, Any]


class Watchman:
    """Writes broken promises into the book. `phases` are the newest phases of all jobs."""

    def __init__(self, kube: KubeClient, namespace: str, book: Book, uptime: Uptime) -> None:
        self.phases: dict[str, str] = {}
        self.events = 0
        self._namespace = namespace
        self._book = book
        self._uptime = uptime
        self._by_node: dict[str, dict[str, Object]] = defaultdict(dict)
        self._by_run: dict[Run, dict[str, Object]] = defaultdict(dict)
        self._uneven_since: dict[Run, float] = {}
        self._whole_since: dict[Run, float] = {}
        self._full_since: dict[str, float] = {}
        self._nodes = Reflector(kube, NODES)
        self._jobs = Reflector(kube, TRAINING_JOBS, namespace=namespace, on_change=self._job_changed)
        self._pods = _Follower(kube, PODS, on_change=self._pod_changed)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Watchman":
        for reflector in (self._nodes, self._jobs, self._pods):
            self._tasks.append(asyncio.create_task(reflector.run()))
            await reflector.synced.wait()
        self._tasks.append(asyncio.create_task(self._look_again()))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def jobs(self) -> list[Object]:
        """The TrainingJobs as they are."""
        return list(self._jobs)

    def _job_changed(self, change: Change) -> None:
        self.events += 1
        if change.new is None:
            self._book.breaks(f"TrainingJob {change.key[1]} is gone")
            return
        status = change.new.get("status") or {}
        self.phases[change.key[1]] = status.get("phase", "")
        allocation = status.get("allocation") or {}
        if allocation.get("leaseUntil"):
            self._note_lease((change.key[1], allocation["run"]), parse_time(allocation["leaseUntil"]))
        last = (status.get("service") or {}).get("last") or {}
        self._note_save(change.key[1], status)
        if change.old is not None:
            self._check_failures(change.key[1], change.old, status)
        if last and self._uneven_lately((change.key[1], last["run"])):
            self._book.ended((change.key[1], last["run"]), "its gang is not whole")
        for promise in check_job(change.old, change.new, true_times=not self._clock_off()):
            self._book.breaks(promise)
        if change.old is not None and self._user_ended(change.old, change.new):
            self._book.ended((change.key[1], (status.get("service") or {}).get("run", 0)), "its user suspended it")

    def _note_lease(self, run: Run, until: float) -> None:
        """A granted run holds its place at least so long, a revoked one exactly."""
        self._book.leases[run] = max(until, self._book.leases.get(run, 0.0))

    def _note_save(self, job: str, status: Object) -> None:
        """How long the job's checkpoint takes, as everybody can read."""
        last, progress = (status.get("service") or {}).get("last") or {}, status.get("progress") or {}
        self._book.saves[job] = max(last.get("saveSeconds") or 0.0, progress.get("saveSeconds") or 0.0)

    def _check_failures(self, job: str, old: Object, status: Object) -> None:
        """Only what happens to a run counts as its failure; that the scheduler ended it never does."""
        was, now = (old.get("status") or {}).get("service") or {}, status.get("service") or {}
        if now.get("failures", 0) <= was.get("failures", 0):
            return
        last = now.get("last") or {}
        why = self._book.why_ended((job, last.get("run", 0)))
        if not why or why.startswith((BY_ITSELF, SLOW_SAVE)):
            self._book.breaks(f"{job} run {last.get('run')} counts as a failure ({last}), which it was not: {why}")

    def _clock_off(self) -> bool:
        return self._book.failed_lately(CLOCK, CLOCK_SECONDS)

    def _user_ended(self, old: Object, new: Object) -> bool:
        return bool(new["spec"].get("suspend")) and not old["spec"].get("suspend")

    def _pod_changed(self, change: Change) -> None:
        self.events += 1
        pod = change.new or change.old
        assert pod is not None
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        ours = pod["metadata"].get("labels", {}).get(names.LABEL_ROLE) == names.ROLE_WORKER
        if change.new is None or ended(pod):
            self._by_node[node].pop(uid, None)
        elif node:
            self._by_node[node][uid] = pod
        if node and not self._pods.listing:
            self._check_node(node)
        if not ours:
            self._check_neighbour(change)
            return
        if change.new is None:
            self._by_run[run_of(pod)].pop(uid, None)
        else:
            self._by_run[run_of(pod)][uid] = pod
            self._check_place(pod)
            if not self._pods.listing:
                self._check_one_run(pod)
        self._check_end(change.old, change.new)
        self._check_gang(run_of(pod))

    def _check_neighbour(self, change: Change) -> None:
        """Pods of others are never displaced."""
        old, new = change.old, change.new
        role = (new or old or {})["metadata"].get("labels", {}).get(names.LABEL_ROLE)
        going = new is None or "deletionTimestamp" in new["metadata"]
        if role is not None or old is None or not going or not _runs(old) or "deletionTimestamp" in old["metadata"]:
            return
        if old["metadata"]["namespace"] == self._namespace:
            self._book.breaks(f"pod {old['metadata']['name']}, which is not ours, was displaced")

    def _check_node(self, name: str) -> None:
        """Our pods alone never ask for more than the node has. Where a pod of somebody else has been bound to the same
        room in the same moment, the node refuses the later one."""
        over = self._over(name)
        if not over:
            self._full_since.pop(name, None)
            return
        alone = all(names.LABEL_ROLE in pod["metadata"].get("labels", {}) for pod in self._by_node[name].values())
        since = self._full_since.setdefault(name, self._uptime.seconds)
        if alone or self._uptime.seconds - since > _REFUSAL_SECONDS:
            pods = ", ".join(sorted(pod["metadata"]["name"] for pod in self._by_node[name].values()))
            self._book.breaks(f"{name} over-allocated: {over} by {pods}")

    def _over(self, name: str) -> str:
        node = self._nodes.get("", name)
        if node is None:
            return ""
        for dimension in DIMENSIONS:
            used = sum(pod_request(pod, dimension) for pod in self._by_node[name].values())
            room = number(node["status"]["allocatable"].get(dimension, "0"))
            if used > room + 1e-6:
                return f"{used:g} of {room:g} {dimension}"
        return ""

    def _check_place(self, pod: Object) -> None:
        node, planned = pod["spec"].get("nodeName"), pod["metadata"]["annotations"][names.ANNOTATION_PLANNED_NODE]
        if node not in (None, planned):
            self._book.breaks(f"pod {pod['metadata']['name']} is on {node}, planned was {planned}")

    def _check_one_run(self, pod: Object) -> None:
        """Nothing runs twice: no pod of a run is bound while one of another run of the job holds its place."""
        if not _holds(pod):
            return
        job, run = run_of(pod)
        for other, pods in self._by_run.items():
            if other[0] == job and other[1] != run and any(_holds(p) for p in pods.values()):
                self._book.breaks(f"pods of runs {other[1]} and {run} of {job} hold places at the same time")

    def _check_end(self, old: Object | None, new: Object | None) -> None:
        """No pod of ours is killed before its lease ends, unless its node is gone, a user asks, or its gang was not
        whole when that was decided."""
        if old is None or not _runs(old) or (new is not None and "deletionTimestamp" not in new["metadata"]):
            return
        if "deletionTimestamp" in old["metadata"] or (new is not None and ended(new)):
            return
        run, node = run_of(old), old["spec"]["nodeName"]
        left = self._book.leases.get(run, 0.0) - time.time()
        peers = self._by_run[run].values()
        excused = (
            self._book.why_ended(run)
            or self._book.failed_lately(node)
            or self._uneven_lately(run)
            or self._clock_off()
            or any(ended(pod) or self._book.failed_lately(pod["spec"].get("nodeName", "")) for pod in peers)
        )
        if left > _LATE_SECONDS and not excused:
            self._book.breaks(f"pod {old['metadata']['name']} was killed {left:.0f} s before its lease ended")

    def _check_gang(self, run: Run) -> None:
        """All workers of a job run, or none, but for the seconds of a start or an end."""
        if not self._uneven(run):
            if self._uneven_since.pop(run, None) is not None:
                self._whole_since[run] = time.time()
            if not self._by_run[run]:
                del self._by_run[run]
            return
        since = self._uneven_since.setdefault(run, self._uptime.seconds)
        waited = self._uptime.seconds - since
        if waited > GANG_SECONDS + _SLACK_SECONDS:
            states = ", ".join(f"{p['metadata']['name']}: {_state(p)}" for p in self._by_run[run].values())
            self._book.breaks(f"gang {run[0]} run {run[1]} was half there for {waited:.0f} s ({states})")
            self._uneven_since[run] = float("inf")

    def _uneven_lately(self, run: Run) -> bool:
        return run in self._uneven_since or time.time() - self._whole_since.get(run, 0.0) < _LATE_SECONDS

    def _uneven(self, run: Run) -> bool:
        pods = list(self._by_run[run].values())
        size = max((int(_environment(pod).get("WORLD_SIZE", "1")) for pod in pods), default=1)
        holding = [pod for pod in pods if _holds(pod)]
        return 0 < len(holding) < size

    async def _look_again(self) -> None:
        """A gang that stays half there makes no events."""
        while True:
            await asyncio.sleep(_AGAIN_SECONDS)
            for node in list(self._by_node):
                self._check_node(node)
            for run in list(self._uneven_since):
                with contextlib.suppress(KeyError):
                    self._check_gang(run)


class _Follower(Reflector):
    """`listing` while it tells of a collection anew, as after a restart of the API server: what changed meanwhile comes
    in the order of names then, so that two objects that were never there together may seem so."""

    listing = False

    async def _relist(self) -> str:
        self.listing = True
        try:
            return await super()._relist()
        finally:
            self.listing = False


def ended(pod: Object) -> bool:
    """All its containers have ended."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _holds(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName")) and not ended(pod)


def _runs(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running"


def _state(pod: Object) -> str:
    gone = "deleting " if "deletionTimestamp" in pod["metadata"] else ""
    gates = "gated " if pod["spec"].get("schedulingGates") else ""
    return f"{gone}{gates}{(pod.get('status') or {}).get('phase')} on {pod['spec'].get('nodeName', 'no node')}"


def _environment(pod: Object) -> dict[str, str]:
    return {item["name"]: item.get("value", "") for item in pod["spec"]["containers"][0].get("env") or []}

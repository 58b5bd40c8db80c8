"""A client that makes the writes of a job's start, and decides nothing: what they cost by themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from synergy_api.names import GATE, LABEL_JOB, LABEL_RANK, LABEL_RUN, MANAGER_OPERATOR, MANAGER_PLAN
from synergy_cli.bench.e2e.load import GPUS_PER_NODE, some_at_a_time, training_job
from synergy_kube import KubeClient
from synergy_kube.resources import EVENTS, NODES, PODS, TRAINING_JOBS

_OF_THE_PLAN = ("allocation", "queue")

Json = dict[str, Any]


@dataclass
class Starter:
    """Statuses and pod are those of a job that runs. One node after another gets as many pods as it has GPUs."""

    kube: KubeClient
    namespace: str
    status: Json
    pod: Json
    nodes: Sequence[str]

    @classmethod
    async def like(cls, kube: KubeClient, job: Mapping[str, Any]) -> "Starter":
        """As this job of one worker started."""
        namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
        (pod,) = (await kube.list(PODS, namespace, label_selector=f"{LABEL_JOB}={name}"))["items"]
        nodes = (await kube.list(NODES, label_selector="type=kwok"))["items"]
        return cls(kube, namespace, dict(job["status"]), pod, [node["metadata"]["name"] for node in nodes])

    async def start(self, names: Sequence[str]) -> None:
        """Start a job for each name."""
        places = (self.nodes[number // GPUS_PER_NODE] for number in count())
        await some_at_a_time(partial(self._start, name, next(places)) for name in names)

    async def _start(self, name: str, node: str) -> None:
        made = await self.kube.create(TRAINING_JOBS, training_job(name), self.namespace)
        await self._apply(name, self._of_the_operator("Queued"), MANAGER_OPERATOR)
        await self._apply(name, self._of_the_plan(), MANAGER_PLAN)
        pod = self._pod(made)
        await self.kube.create(PODS, pod, self.namespace)
        await self._event(made, "Queued")
        await self._apply(name, self._of_the_operator("Starting"), MANAGER_OPERATOR)
        await self.kube.merge_patch(PODS, pod["metadata"]["name"], {"spec": {"schedulingGates": []}}, self.namespace)
        await self._event(made, "Starting")
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]}}
        target = {"target": {"apiVersion": "v1", "kind": "Node", "name": node}}
        await self.kube.create_subresource(PODS, pod["metadata"]["name"], "binding", binding | target, self.namespace)
        await self._event(made, "Running")
        await self._apply(name, self._of_the_operator("Running"), MANAGER_OPERATOR)

    def _of_the_operator(self, phase: str) -> Json:
        kept = {field: value for field, value in self.status.items() if field not in _OF_THE_PLAN}
        return {**kept, "phase": phase}

    def _of_the_plan(self) -> Json:
        return {field: self.status[field] for field in _OF_THE_PLAN if field in self.status}

    async def _apply(self, name: str, status: Json, manager: str) -> None:
        await self.kube.apply(
            TRAINING_JOBS, name, {"status": status}, self.namespace, manager=manager, subresource="status"
        )

    def _pod(self, job: Json) -> Json:
        name = job["metadata"]["name"]
        owner = {**self.pod["metadata"]["ownerReferences"][0], "name": name, "uid": job["metadata"]["uid"]}
        labels = {**self.pod["metadata"]["labels"], LABEL_JOB: name, LABEL_RUN: "1", LABEL_RANK: "0"}
        spec = {field: value for field, value in self.pod["spec"].items() if field not in ("nodeName", "priority")}
        spec["schedulingGates"] = [{"name": GATE}]
        return {"metadata": {"name": f"{name}-1-0", "labels": labels, "ownerReferences": [owner]}, "spec": spec}

    async def _event(self, job: Json, reason: str) -> None:
        of = {"kind": "TrainingJob", "namespace": self.namespace, "name": job["metadata"]["name"]}
        body = {"metadata": {"generateName": "started-"}, "involvedObject": of, "reason": reason, "type": "Normal"}
        await self.kube.create(EVENTS, body, self.namespace)

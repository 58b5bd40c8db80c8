"""Watches that no job has two runs at once, and none a run after its end."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from support.on_cluster.observer import gang_of
from synergy_kube import Change, KubeClient, Reflector
from synergy_kube.resources import PODS

Object = Mapping[str, Any]
Job = tuple[str, str]


class Doubles:
    """Gathers broken promises in `broken`. An asynchronous context, in which it watches a namespace."""

    def __init__(self, kube: KubeClient, namespace: str) -> None:
        self.broken: list[str] = []
        self._running: dict[Job, dict[str, str]] = defaultdict(dict)
        """By job: its running pods, and the run of each."""
        self._pods = Reflector(kube, PODS, namespace=namespace, trim=_trim, on_change=self.changed)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Doubles":
        self._task = asyncio.create_task(self._pods.run())
        await self._pods.synced.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def changed(self, change: Change) -> None:
        """A pod came, changed or went."""
        pod = change.new or change.old or {}
        gang = gang_of(pod)
        if gang is None:
            return
        namespace, job, run = gang
        key, name = (namespace, job), pod["metadata"]["name"]
        if change.new is None or not _runs(change.new):
            self._running[key].pop(name, None)
            return
        known = name in self._running[key]
        self._running[key][name] = run
        runs = set(self._running[key].values())
        if len(runs) > 1 and not known:
            self.broken.append(f"{job} has runs {', '.join(sorted(runs))} at once")


def _runs(pod: Object) -> bool:
    going = "deletionTimestamp" in pod["metadata"]
    return not going and bool((pod.get("status") or {}).get("phase") == "Running")


def _trim(pod: dict[str, Any]) -> dict[str, Any]:
    kept = ("name", "namespace", "uid", "resourceVersion", "labels", "deletionTimestamp")
    metadata = {key: pod["metadata"][key] for key in kept if key in pod["metadata"]}
    return {"metadata": metadata, "status": {"phase": (pod.get("status") or {}).get("phase", "")}}

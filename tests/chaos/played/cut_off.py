"""A node is cut off from the control plane while its worker, a real process, trains on and shares the job's volume with
the next run."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.faults.link import Break, Link
from chaos.played.gang import environment
from chaos.played.kubelet import Kubelet
from chaos.stage import SHORT_MARGIN, Stage
from chaos.workload import STOP_ANNOTATION, plain_template
from support.waiting import eventually
from synergy_api import names
from synergy_devcluster.node.kwok import FAIL_ANNOTATION
from synergy_job import Checkpoint
from synergy_kube import KubeClient, NotFound
from synergy_kube.resources import NODES, PODS, TRAINING_JOBS

JOB = "shared"
FENCE_SECONDS = 10


@dataclass(frozen=True)
class Line:
    """A line of the workers' diary: at `at` (monotonic seconds) a run read, trained or saved a step."""

    at: float
    run: int
    what: str
    step: int


@dataclass(frozen=True)
class Seen:
    """What happened. `cut_at` is in the diary's clock, `exit_code` that of the worker on the cut-off node, `reasons`
    are those of the job's condition Running, `newest` is the step of the checkpoint in the end."""

    diary: tuple[Line, ...]
    cut_at: float
    exit_code: int
    reasons: frozenset[str]
    newest: int


async def cut_off(stage: Stage, repository: Path, *, paused: bool) -> Seen:
    """Cut a node off under its worker and wait until the next run has saved twice. Where `paused`, the old worker does
    nothing from shortly after the cut until the next run has saved, and then goes on; and its pod object vanishes at
    once, as if somebody had deleted it by force. Else the pod stays until the operator gives it up."""
    async with AsyncExitStack() as stack:
        scene = await stack.enter_async_context(stage.act("cut-off-paused" if paused else "cut-off"))
        await stack.enter_async_context(_short_fence(scene))
        volume = _Volume(scene, repository)
        await scene.kube.create(TRAINING_JOBS, _job(vanishes=paused), scene.namespace)
        node, old, link = await volume.start(stack, run=1)
        await volume.saves(run=1, times=2)
        try:
            await _annotate(scene.kube, node, "true")
            link.fail(Break.BLACKHOLE)
            cut_at = time.monotonic()
            if paused:
                await volume.saves(run=1, times=2)
                old.send_signal(signal.SIGSTOP)
            await volume.start(stack, run=2)
            await volume.saves(run=2, times=2)
            if paused:
                old.send_signal(signal.SIGCONT)
            exit_code = await asyncio.wait_for(old.wait(), 30)
            await volume.saves(run=2, times=2)
        finally:
            await _annotate(scene.kube, node, None)
            await _go_at_once(scene)
        await volume.stop()
        newest = Checkpoint(volume.checkpoint).read()["step"]
        return Seen(volume.diary(), cut_at, exit_code, frozenset(volume.reasons), newest)


class _Volume:
    """The job's volume, which every node sees, and the workers that use it."""

    def __init__(self, scene: Stage, repository: Path) -> None:
        folder = scene.folder / scene.namespace
        folder.mkdir()
        self.checkpoint = folder / "model"
        self.reasons: set[str] = set()
        self._scene = scene
        self._folder = folder
        self._diary = folder / "diary"
        self._script = repository / "tests" / "chaos" / "played" / "cut_off_worker.py"
        self._kubelet = Kubelet(scene.kube, time.time)
        self._workers: list[asyncio.subprocess.Process] = []

    async def start(self, stack: AsyncExitStack, run: int) -> tuple[str, asyncio.subprocess.Process, Link]:
        """Start the run's worker once kwok says that its pod runs: its node, the process, its way to the extender."""
        pod = await eventually(lambda: self._running(run), seconds=150, what=f"a pod of run {run}")
        port = self._scene.links["workers-extender"].port
        link = await stack.enter_async_context(Link(f"node of run {run}", lambda: [port]))
        token = self._folder / f"token-{run}"
        token.write_text(await self._kubelet.token(pod) or "")
        env = {name: value for name, value in environment(pod).items() if value and name != "PYTHONPATH"} | {
            "SYNERGY_EXTENDER_URL": f"https://localhost:{link.port}",
            "SYNERGY_TOKEN_FILE": str(token),
            "SYNERGY_TERMINATION_LOG": str(self._folder / f"termination-{run}"),
        }
        with (self._folder / f"worker-{run}.log").open("wb") as log:
            worker = await asyncio.create_subprocess_exec(
                sys.executable, str(self._script), str(self.checkpoint), str(self._diary),
                env={**os.environ, **env}, stdout=log, stderr=log,
            )  # fmt: skip
        self._workers.append(worker)
        stack.push_async_callback(_end, worker)
        return str(pod["spec"]["nodeName"]), worker, link

    async def saves(self, run: int, times: int) -> None:
        """Wait until the run has saved so often from now on."""
        before = self._saved(run)

        async def probe() -> bool:
            return self._saved(run) >= before + times

        await eventually(probe, seconds=30, what=f"run {run} to save", every=0.05)

    async def stop(self) -> None:
        """End all workers."""
        for worker in self._workers:
            await _end(worker)

    def diary(self) -> tuple[Line, ...]:
        """What the workers wrote down, in order."""
        if not self._diary.exists():
            return ()
        found = (line.split() for line in self._diary.read_text().splitlines())
        return tuple(Line(float(at), int(run), what, int(step)) for at, run, what, step in found)

    def _saved(self, run: int) -> int:
        return sum(line.run == run and line.what == "saved" for line in self.diary())

    async def _running(self, run: int) -> Mapping[str, Any] | None:
        scene = self._scene
        job = await scene.kube.get(TRAINING_JOBS, JOB, scene.namespace)
        for condition in (job.get("status") or {}).get("conditions") or []:
            if condition["type"] == "Running":
                self.reasons.add(condition["reason"])
        for pod in (await scene.kube.list(PODS, scene.namespace))["items"]:
            labels = pod["metadata"].get("labels") or {}
            if labels.get(names.LABEL_RUN) == str(run) and (pod.get("status") or {}).get("phase") == "Running":
                return dict(pod)
        return None


@asynccontextmanager
async def _short_fence(scene: Stage) -> AsyncIterator[None]:
    """Meanwhile the operator has a short fence."""
    usual = scene.programs["operator"]
    short = usual.variant(["-c", SHORT_MARGIN], {"SYNERGY_FENCE_SECONDS": str(FENCE_SECONDS)})
    await usual.kill()
    try:
        await short.start()
        yield
    finally:
        await short.stop()
        await usual.start()


def _job(*, vanishes: bool) -> dict[str, Any]:
    template = plain_template()
    if not vanishes:
        template["metadata"]["annotations"][STOP_ANNOTATION] = "600"
    soon = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    template["spec"]["tolerations"] = [*template["spec"]["tolerations"], *({"key": key, **soon} for key in keys)]
    template["spec"]["terminationGracePeriodSeconds"] = 1
    spec = {"gpus": 1, "steps": 1_000_000, "profile": {"mode": "Skip"}, "template": template}
    return {"metadata": {"name": JOB}, "spec": spec}


async def _go_at_once(scene: Stage) -> None:
    """No pod holds its GPUs for longer than it takes to delete it: what follows needs all nodes."""
    body = {"metadata": {"annotations": {STOP_ANNOTATION: "0"}}}
    for pod in (await scene.kube.list(PODS, scene.namespace))["items"]:
        with suppress(NotFound):
            await scene.kube.merge_patch(PODS, pod["metadata"]["name"], body, scene.namespace)


async def _annotate(kube: KubeClient, node: str, value: str | None) -> None:
    await kube.merge_patch(NODES, node, {"metadata": {"annotations": {FAIL_ANNOTATION: value}}})


async def _end(worker: asyncio.subprocess.Process) -> None:
    if worker.returncode is None:
        worker.kill()
    await worker.wait()

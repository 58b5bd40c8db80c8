"""What goes wrong on a real kubelet: each job says what to change, and none keeps the good one from finishing."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import synergy_devcluster
from support.on_cluster.jobs import restricted_template, submit
from support.programs import run
from support.waiting import eventually
from synergy_kube import KubeClient, NotFound
from synergy_kube.resources import EVENTS, GPU_POOLS, JOBS, PODS, TRAINING_JOBS, Resource

pytestmark = pytest.mark.e2e

Json = dict[str, Any]

TRAIN = """
import time, synergy_job
def save(step):
    {save}
for _ in synergy_job.iterate(range(100000), save=save, load=lambda: None):
    time.sleep({seconds})
"""
MEASURED = {"mode": "Auto", "steps": 5, "warmupSteps": 0, "timeoutSeconds": 10, "cpuStep": "300m"}
SKIPPED = {"mode": "Skip"}


def train(save: str, seconds: float = 0.05) -> list[str]:
    """A training script with this body of its save function, whose steps take so long."""
    return python(TRAIN.format(save=save, seconds=seconds))


def python(code: str) -> list[str]:
    """A command."""
    return ["python3", "-c", code]


@dataclass(frozen=True)
class Bad:
    """A job, the reason that it is told, and words that stand in its description."""

    reason: str
    words: tuple[str, ...]
    command: list[str]
    profile: Json = field(default_factory=lambda: dict(SKIPPED))
    image: str = ""
    pod: Json = field(default_factory=dict)
    mounts: tuple[Json, ...] = ()


BAD = {
    "crashes": Bad(
        "ProfileCrashed", ("exit code 3", "run the command by hand"), python("raise SystemExit(3)"), MEASURED
    ),
    "hangs": Bad(
        "ProfileTimeout",
        ("raise spec.profile.timeoutSeconds",),
        train("pass", seconds=600),
        MEASURED,
    ),
    "silent": Bad(
        "ProfileNoSteps", ("must go through synergy_job.iterate",), python("import time; time.sleep(1)"), MEASURED
    ),
    "hungry": Bad(
        "ProfileOutOfMemory",
        ("was killed for memory at 128Mi", "raise spec.resources.max.memory"),
        python("data = bytearray(1 << 30); data[:] = b'x' * len(data)"),
        MEASURED,
    ),
    "no-image": Bad(
        "ImageNotPulled",
        ("localhost/kube-synergy-nobody:none", "correct the image in spec.template"),
        python("pass"),
        image="localhost/kube-synergy-nobody:none",
    ),
    "no-volume": Bad(
        "VolumeNotMounted",
        ('configmap "nobody" not found', "correct spec.template.spec.volumes"),
        python("pass"),
        pod={"volumes": [{"name": "data", "configMap": {"name": "nobody"}}]},
        mounts=({"name": "data", "mountPath": "/data"},),
    ),
    "no-claim": Bad(
        "VolumeNotMounted",
        ('persistentvolumeclaim "nobody" not found', "correct spec.template.spec.volumes"),
        python("pass"),
        pod={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "nobody"}}]},
        mounts=({"name": "data", "mountPath": "/data"},),
    ),
    "cannot-save": Bad(
        "CheckpointFailed",
        ("the save function of worker 0 raised OSError: disk full", "correct the function"),
        train('raise OSError("disk full")'),
    ),
}
STUCK = Bad(
    "CheckpointNotWritten",
    ("had not written its checkpoint", "make the save function of synergy_job.iterate return sooner"),
    train("time.sleep(600)"),
    pod={"terminationGracePeriodSeconds": 1},
)


@dataclass(frozen=True)
class Stage:
    """Where the jobs run."""

    kube: KubeClient
    namespace: str
    cluster: synergy_devcluster.Cluster

    async def submit(self, name: str, bad: Bad, steps: int = 5, **spec: Any) -> None:
        """Create the job on the real node, small enough for two at a time."""
        template = restricted_template(bad.command, **bad.pod)
        container = template["spec"]["containers"][0]
        container |= {"image": bad.image or container["image"], "volumeMounts": list(bad.mounts)}
        await submit(
            self.kube,
            self.namespace,
            name,
            gpus=1,
            steps=steps,
            gpuTypes=["A100"],
            backoffLimit=0,
            profile=bad.profile,
            resources={"max": {"cpu": "300m", "memory": "128Mi"}},
            template=template,
            **spec,
        )

    async def until(self, name: str, holds: Callable[[Json], Any], what: str) -> Json:
        """The job's status once it is so."""
        last: Json = {}

        async def there() -> Json | None:
            last.clear()
            last.update((await self.kube.get(TRAINING_JOBS, name, self.namespace)).get("status") or {})
            return last if holds(last) else None

        try:
            return await eventually(there, seconds=240, what=f"{name} {what}")
        except AssertionError as error:
            raise AssertionError(f"{error}: {last}") from None

    async def described(self, name: str) -> str:
        """What `kubectl describe` says of the job, in one line."""
        text = await run(self.cluster, "kubectl", "-n", self.namespace, "describe", "tj", name)
        return " ".join(text.split())

    async def told(self, name: str, reason: str) -> None:
        """Wait for the event: it is posted after the status that it tells of."""

        async def posted() -> bool:
            fields = f"involvedObject.kind=TrainingJob,involvedObject.name={name},type=Warning"
            events = await self.kube.list(EVENTS, self.namespace, field_selector=fields)
            return reason in {event["reason"] for event in events["items"]}

        await eventually(posted, seconds=30, what=f"the event {reason} of {name}")


async def _goes_wrong(stage: Stage, name: str, bad: Bad) -> None:
    """The job's problem is told in status, event and description; then it is out of the others' way."""
    await stage.submit(name, bad)
    await stage.until(name, lambda s: (s.get("problem") or {}).get("reason") == bad.reason, f"to be told {bad.reason}")
    await stage.told(name, bad.reason)
    text = await stage.described(name)
    assert [words for words in bad.words if words not in text] == [], text
    await stage.kube.delete(TRAINING_JOBS, name, stage.namespace)


async def _never_saves(stage: Stage) -> None:
    """A job that is held and whose checkpoint function does not return: the run is killed and has lost steps. It has
    not failed, since it was told to leave."""
    await stage.submit("never-saves", STUCK, steps=100_000)
    await stage.until("never-saves", lambda s: (s.get("progress") or {}).get("run") == 1, "to report")
    await stage.kube.merge_patch(TRAINING_JOBS, "never-saves", {"spec": {"suspend": True}}, stage.namespace)
    status = await stage.until("never-saves", lambda s: (s.get("service") or {}).get("endedRun") == 1, "to be stopped")
    assert status["service"]["last"]["reason"].startswith(STUCK.reason), status["service"]
    assert (status["service"]["last"]["outcome"], status["service"]["failures"]) == ("Yielded", 0)
    assert status["service"]["last"]["saveSeconds"] >= 30
    await stage.told("never-saves", STUCK.reason)
    text = await stage.described("never-saves")
    assert [words for words in STUCK.words if words not in text] == [], text


async def _names_are_taken(stage: Stage) -> None:
    """A pod and a Job of somebody else stand where the operator's are to be: it leaves them alone and takes other
    names. Suspended while it is measured, a job leaves no Job behind; finished, one goes after its TTL."""
    template = restricted_template(["true"])
    template["spec"]["restartPolicy"] = "Never"
    gated = {**template["spec"], "schedulingGates": [{"name": "example.com/never"}]}
    job = {"metadata": {"name": "measured-1-300"}, "spec": {"suspend": True, "template": template}}
    pod = {"metadata": {"name": "trained-1-0"}, "spec": gated}
    theirs = [await stage.kube.create(*made, stage.namespace) for made in ((JOBS, job), (PODS, pod))]

    await stage.submit("measured", Bad("", (), train("pass", seconds=600), {**MEASURED, "timeoutSeconds": 600}))
    await stage.submit("trained", Bad("", (), train("pass")), ttlSecondsAfterFinished=5)

    def refused(status: Json) -> bool:
        last = (status.get("service") or {}).get("last") or {}
        return (last.get("run"), last.get("outcome")) == (1, "Evicted")

    status = await stage.until("trained", refused, "to be refused a pod")
    assert 'pods "trained-1-0" already exists' in status["service"]["last"]["reason"]
    await stage.until("measured", refused, "to be refused a Job")
    await eventually(lambda: _is_there(stage, JOBS, "measured-2-300"), seconds=240, what="another Job to measure with")
    await stage.kube.merge_patch(TRAINING_JOBS, "measured", {"spec": {"suspend": True}}, stage.namespace)
    await eventually(lambda: _gone(stage, JOBS, "measured-2-300"), seconds=60, what="the suspended job's Job to go")
    status = await stage.until("trained", lambda s: s.get("phase") in ("Succeeded", "Failed"), "to end")
    assert (status["phase"], status["service"]["run"]) == ("Succeeded", 2), status
    await eventually(lambda: _gone(stage, TRAINING_JOBS, "trained"), seconds=60, what="the finished job to go")

    now = [await stage.kube.get(*one, stage.namespace) for one in ((JOBS, "measured-1-300"), (PODS, "trained-1-0"))]
    assert [one["metadata"]["uid"] for one in now] == [one["metadata"]["uid"] for one in theirs]
    await stage.kube.delete(TRAINING_JOBS, "measured", stage.namespace)


async def _is_there(stage: Stage, resource: Resource, name: str) -> bool:
    return not await _gone(stage, resource, name)


async def _gone(stage: Stage, resource: Resource, name: str) -> bool:
    try:
        await stage.kube.get(resource, name, stage.namespace)
    except NotFound:
        return True
    return False


async def _selects_nothing(stage: Stage) -> None:
    """A pool whose labels no node carries: the extender says so."""
    pool = {"gpuType": "V100", "nodeSelector": {"nobody/has": "this"}}
    await stage.kube.create(GPU_POOLS, {"metadata": {"name": "nowhere"}, "spec": pool})
    try:

        async def told() -> str:
            text = " ".join((await run(stage.cluster, "kubectl", "describe", "gp", "nowhere")).split())
            return text if "Reason: NoNodes" in text and "Warning NoNodes" in text else ""

        text = await eventually(told, seconds=60, what="the pool's condition and event")
        assert "correct spec.nodeSelector, or label the nodes" in text
    finally:
        await stage.kube.delete(GPU_POOLS, "nowhere")


async def _goes_well(stage: Stage) -> None:
    await stage.submit("good", Bad("", (), train("pass")))
    status = await stage.until("good", lambda s: s.get("phase") in ("Succeeded", "Failed"), "to end")
    assert status["phase"] == "Succeeded", status


@pytest.mark.timeout(580)
async def test_bad_jobs_say_what_to_change_and_a_good_one_among_them_succeeds(
    kube: KubeClient, namespace: str, pools: None, devcluster: synergy_devcluster.Cluster
) -> None:
    stage = Stage(kube, namespace, devcluster)
    cases: list[Awaitable[None]] = [_never_saves(stage), *(_goes_wrong(stage, *case) for case in BAD.items())]
    cases += [_selects_nothing(stage), _names_are_taken(stage), _goes_well(stage)]
    results = await asyncio.gather(*cases, return_exceptions=True)
    assert [result for result in results if result is not None] == []

"""Jobs that know nothing of us: measured by what they print, stopped by SIGTERM or never; one profile for twins."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from support.on_cluster.jobs import reaches, restricted_template, submit
from support.waiting import eventually
from synergy_api.names import LABEL_JOB
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_kube import KubeClient
from synergy_kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, THROUGHPUT_PROFILES, TRAINING_JOBS
from synergy_operator.profile.fingerprint import fingerprint
from synergy_operator.profile.known_profiles import profile_name

pytestmark = pytest.mark.e2e

PRINTS = """
import time
for step in range(1, 151):
    time.sleep(0.02)
    print(f"step {step}/150")
"""
"""A hundred and fifty steps at up to fifty a second."""

SAVES_ON_SIGTERM = """
import pathlib, signal, sys, time
file = pathlib.Path("/checkpoints/step")
step = int(file.read_text()) if file.exists() else 0
def leave(*_):
    file.write_text(str(step))
    sys.exit(3)
signal.signal(signal.SIGTERM, leave)
while step < 1500:
    time.sleep(0.02)
    step += 1
    print(f"step {step}/1500", flush=True)
"""
"""A script with a checkpoint of its own: SIGTERM saves it, and ends with an exit code of its own."""

FOR_EVER = "import time\nwhile True: time.sleep(1)"
LITTLE = {"max": {"cpu": "400m", "memory": "256Mi"}}
STEP = {"regex": r"^step (?P<step>\d+)/"}


def spec(script: str, **more: Any) -> dict[str, Any]:
    """A small job of one real GPU that runs the script, or what its `template` says."""
    template = more.pop("template", None) or restricted_template(["python3", "-c", script])
    return {
        "gpus": 1,
        "gpuTypes": ["A100"],
        "template": template,
        "profile": {"mode": "Skip"},
        "resources": LITTLE,
        **more,
    }


def with_checkpoints() -> dict[str, Any]:
    claim = {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "checkpoints"}}
    template = restricted_template(["python3", "-c", SAVES_ON_SIGTERM], volumes=[claim])
    template["spec"]["containers"][0]["volumeMounts"] = [{"name": "checkpoints", "mountPath": "/checkpoints"}]
    return template


def twin() -> dict[str, Any]:
    """A job that is measured by what it prints."""
    profile = {"steps": 20, "warmupSteps": 2, "cpuStep": "200m", "timeoutSeconds": 60}
    return spec(PRINTS, steps=150, throughput=STEP, profile=profile)


async def somebody_has_spoilt_their_profile(kube: KubeClient, namespace: str) -> str:
    """Where the twins' profile will stand there is one that falls as CPU grows. Its name."""
    (pod,) = (await kube.list(PODS, namespace, label_selector=f"{LABEL_JOB}=keeper"))["items"]
    digest = "sha256:" + pod["status"]["containerStatuses"][0]["imageID"].rpartition("sha256:")[2]
    job = TrainingJobSpec.model_validate(twin())
    container = job.template["spec"]["containers"][0]
    falls = {"gpuType": "A100", "cpuMillis": [200, 400], "memoryBytes": [1 << 28], "stepsPerSecond": [[2.0], [1.0]]}
    body = {
        "fingerprint": fingerprint(job),
        "image": container["image"],
        "imageDigest": digest,
        "command": container["command"],
        "gpus": 1,
        "matrices": [falls],
        "measuredAt": "2026-01-01T00:00:00Z",
    }
    name = profile_name(body["fingerprint"], digest)
    await kube.create(THROUGHPUT_PROFILES, {"metadata": {"name": name}, "spec": body})

    async def told() -> bool:
        return await valid(kube, name) == "MatrixFalls"

    await eventually(told, seconds=30, what="the profile to be told that it falls")
    return name


async def valid(kube: KubeClient, profile: str) -> str:
    """What is said of the profile."""
    status = (await kube.get(THROUGHPUT_PROFILES, profile)).get("status") or {}
    return next((str(c["reason"]) for c in status.get("conditions", []) if c["type"] == "Valid"), "")


async def the_same_profile_serves_both(kube: KubeClient, namespace: str) -> str:
    """Twins start together: one is measured by what it prints, the other takes its profile. The profile's name."""
    for name in ("twin-a", "twin-b"):
        await submit(kube, namespace, name, **twin())
    first, second = [await reaches(kube, namespace, name, "Succeeded", seconds=150) for name in ("twin-a", "twin-b")]
    points = first["status"]["profile"]["points"]
    assert points, "the older one was measured"
    assert all(0 < point["stepsPerSecond"] <= 55 for point in points)
    assert second["status"]["profile"].get("points", []) == []
    assert second["status"]["profile"]["matrices"] == first["status"]["profile"]["matrices"]
    assert [job["status"]["progress"]["steps"] for job in (first, second)] == [150, 150]
    digest = first["status"]["profile"]["imageDigest"]
    assert digest.startswith("sha256:")
    return f"{first['status']['profile']['fingerprint']}-{digest[7:19]}"


async def sigterm_and_grace_are_a_yield(kube: KubeClient, namespace: str) -> None:
    """A job without the library gives way at a round's end, whatever its exit code then, and goes on where it was."""
    await submit(
        kube,
        namespace,
        "plain",
        **spec("", steps=1500, throughput=STEP, preemption="Signal", backoffLimit=0, template=with_checkpoints()),
    )

    async def progress() -> bool:
        status = (await kube.get(TRAINING_JOBS, "plain", namespace)).get("status") or {}
        return bool((status.get("progress") or {}).get("steps", 0) >= 10)

    await eventually(progress, seconds=60, what="plain to report the steps that it prints")
    await submit(kube, namespace, "other", **spec("import time; time.sleep(1)", steps=1))
    await reaches(kube, namespace, "other", "Succeeded", seconds=90)
    job = await reaches(kube, namespace, "plain", "Succeeded", seconds=90)
    service = job["status"]["service"]
    assert service["preemptions"] >= 1
    assert service.get("failures", 0) == 0
    assert service["run"] >= 2
    assert job["status"]["progress"]["steps"] == 1500


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("everything_allowed")
async def test_jobs_without_the_library_are_measured_give_way_and_keep_what_they_must(
    kube: KubeClient, namespace: str, pools: None, policy: Callable[..., Awaitable[None]]
) -> None:
    """On two GPUs, one of which a job holds that never gives way, though it soon has the most attained service."""
    # a slow start would protect the run that must give way for longer than it lasts
    unprotected = {"payback": 0, "minimumRunSeconds": 0}
    await policy(
        policy="las", mechanism="proportional", roundSeconds=6, profiling={"maxGpuPercent": 100}, preemption=unprotected
    )
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Mi"}}}
    await kube.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "checkpoints"}, "spec": claim}, namespace)
    forever = restricted_template(["python3", "-c", FOR_EVER], terminationGracePeriodSeconds=1)
    await submit(kube, namespace, "keeper", **spec("", steps=1, preemption="Never", template=forever))
    await reaches(kube, namespace, "keeper", "Running", seconds=60)

    name = await somebody_has_spoilt_their_profile(kube, namespace)
    try:
        assert await the_same_profile_serves_both(kube, namespace) == name
        assert await valid(kube, name) == "Used", "what was measured has taken the spoilt one's place"
        await sigterm_and_grace_are_a_yield(kube, namespace)
    finally:
        await kube.delete(THROUGHPUT_PROFILES, name)

    keeper = await kube.get(TRAINING_JOBS, "keeper", namespace)
    assert (keeper["status"]["phase"], keeper["status"]["service"]["run"]) == ("Running", 1)

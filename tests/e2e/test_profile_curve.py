"""Optimistic profiling recovers a CPU curve that is known by construction, and what a data cache changes."""

from collections.abc import Awaitable, Callable

import pytest

from support.on_cluster.jobs import empties, reaches, restricted_template, submit
from synergy_api.names import LABEL_JOB, LABEL_ROLE, ROLE_WORKER
from synergy_devcluster.images.project import EXAMPLES_TORCH
from synergy_kube import KubeClient
from synergy_kube.resources import PODS

pytestmark = pytest.mark.e2e

CPU_MS, DEVICE_MS = 30, 50
"""One step costs 30 ms of CPU and 50 ms of the device: 1000 / 50 steps a second from 600 millis on."""
GRID = range(100, 1001, 100)


IMAGE_BYTES, IMAGES, BATCH = 65536, 1024, 32
STORAGE_MIB_PER_S = 32
"""Of the cached job: 16 steps a second of 2 MiB each where nothing is in memory, 20 where all is."""


PIPELINE = """
import time, zlib
import torch
import synergy_job, synergy_job.torch

SIDE, CUT, BATCH, COUNT = 160, 128, 16, 256
torch.set_num_threads(1)
torch.manual_seed(1)

class Images(torch.utils.data.Dataset):
    def __init__(self):
        made = (torch.randint(0, 256, (3, SIDE // 4, SIDE // 4), dtype=torch.uint8) for _ in range(COUNT))
        larger = (one.repeat_interleave(4, 1).repeat_interleave(4, 2) for one in made)
        self.stored = [zlib.compress(one.numpy().tobytes(), 1) for one in larger]
    def __len__(self):
        return COUNT
    def __getitem__(self, index):
        pixels = torch.frombuffer(bytearray(zlib.decompress(self.stored[index])), dtype=torch.uint8)
        image = pixels.view(3, SIDE, SIDE).float()
        top, left = torch.randint(0, SIDE - CUT, (2,)).tolist()
        image = image[:, top:top + CUT, left:left + CUT]
        image = image.flip(2) if torch.rand(1) < 0.5 else image
        image = torch.nn.functional.interpolate(image[None], scale_factor=1.5, mode="bilinear")[0]
        return (image + torch.randn(image.shape)) / 128 - 1, index % 10

model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 5, stride=4), torch.nn.Flatten(), torch.nn.LazyLinear(10))
loader = torch.utils.data.DataLoader(Images(), BATCH, shuffle=True, num_workers=2)
model(next(iter(loader))[0])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
state = synergy_job.torch.state("/tmp/NAME.pt", model=model, optimizer=optimizer)
for images, labels in state.iterate(loader):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
    time.sleep(0.05)
"""
"""Two loader processes decode, crop, flip, scale and add noise to real batches; the device waits for 50 ms."""


def true_speed(cpu_millis: int) -> float:
    return min(1000 / DEVICE_MS, cpu_millis / CPU_MS)


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_the_curve_is_within_ten_per_cent_at_every_point_with_half_the_points(
    kube: KubeClient, namespace: str, pools: None, policy: Callable[..., Awaitable[None]]
) -> None:
    """Meanwhile nvidia-smi tells what it does to its GPU; that it takes more memory than it says is found out."""
    await policy(mechanism="tune", roundSeconds=20)
    script = ["python3", "/examples/cpu_hungry.py", "--checkpoint", "/tmp/checkpoint"]
    script += ["--gpu-compute", "0.5", "--gpu-bandwidth", "0.3", "--gpu-memory-mib", "3000"]
    told = {"gpuType": "A100", "compute": 0.1, "bandwidth": 0.1, "memory": "2Gi"}
    await submit(
        kube,
        namespace,
        "curve",
        gpus=1,
        steps=20,
        gpuTypes=["A100"],
        profile={"steps": 40, "cpuStep": "100m", "timeoutSeconds": 120},
        resources={"max": {"cpu": "1"}},
        sharing={"allowed": True, "usage": [told]},
        template=restricted_template([*script, "--cpu-ms-per-step", str(CPU_MS), "--device-ms", str(DEVICE_MS)]),
    )
    job = await reaches(kube, namespace, "curve", "Queued", "Starting", "Running", "Succeeded", seconds=300)
    profile = job["status"]["profile"]
    measured = profile["matrices"][0]
    assert measured["cpuMillis"] == list(GRID)
    found = {cpu: row[-1] for cpu, row in zip(measured["cpuMillis"], measured["stepsPerSecond"], strict=True)}
    errors = {cpu: found[cpu] / true_speed(cpu) - 1 for cpu in GRID}
    assert max(abs(error) for error in errors.values()) <= 0.10, errors
    assert len(profile["points"]) <= len(GRID) // 2
    assert 500 <= profile["demand"][0]["cpuMillis"] <= 700
    assert profile["confidence"][0]["uncertainty"] <= 0.25
    (usage,) = profile["usage"]
    assert (usage["gpuType"], usage["memoryBytes"]) == ("A100", 3000 << 20)
    assert 0.3 < usage["compute"] <= 0.5, "of the fastest point: busy but for what keeps the process from launching"
    assert usage["bandwidth"] == pytest.approx(usage["compute"] * 0.6, abs=0.02)
    (profiled,) = (one for one in job["status"]["conditions"] if one["type"] == "Profiled")
    assert profiled["reason"] == "UsageUnderstated"
    assert "took 3000Mi of GPU memory, and spec.sharing.usage says 2Gi" in profiled["message"]
    done = await reaches(kube, namespace, "curve", "Succeeded", seconds=90)
    assert empties(done["status"], "status") == []


@pytest.mark.timeout(400)
async def test_the_memory_model_is_compared_with_a_run_on_storage_that_was_measured(
    kube: KubeClient, namespace: str, pools: None, policy: Callable[..., Awaitable[None]]
) -> None:
    """No pool tells the bandwidth: a run without cache shows it, and the pod reckons with its half of the node's. The
    worker's cache gets what the plan gives beyond the processes' own memory."""
    await policy(mechanism="tune", roundSeconds=20)
    options = {
        "--checkpoint": "/tmp/checkpoint",
        "--device-ms": DEVICE_MS,
        "--cpu-ms-per-step": 1,
        "--image-bytes": IMAGE_BYTES,
        "--storage-mib-per-s": STORAGE_MIB_PER_S,
    }
    words = [str(word) for option in options.items() for word in option]
    await submit(
        kube,
        namespace,
        "cached",
        gpus=1,
        steps=64,
        batchSize=BATCH,
        dataset={"bytes": IMAGE_BYTES * IMAGES, "samples": IMAGES},
        gpuTypes=["A100"],
        profile={"steps": 40, "warmupSteps": 8, "cpuStep": "600m", "timeoutSeconds": 120},
        resources={"max": {"cpu": "600m", "memory": "384Mi"}},
        template=restricted_template(["python3", "/examples/cached_images.py", *words]),
    )

    job = await reaches(kube, namespace, "cached", "Starting", "Running", "Succeeded", seconds=300)
    profile = job["status"]["profile"]
    (confidence,) = profile["confidence"]
    assert confidence["memoryPoints"] == 1, profile
    assert confidence["memoryError"] <= 0.2, profile
    assert confidence["storageBytesPerSecond"] == pytest.approx(STORAGE_MIB_PER_S * 2**20 / 2, rel=0.15), profile
    cold, check = (point for point in profile["points"] if "hitRate" in point)
    assert cold["hitRate"] == 0
    assert cold["stepsPerSecond"] == pytest.approx(STORAGE_MIB_PER_S * 2**20 / BATCH / IMAGE_BYTES, rel=0.15)
    assert check["stepsPerSecond"] < 0.9 * 1000 / DEVICE_MS, "storage slows it there"
    (matrix,) = profile["matrices"]
    assert matrix["stepsPerSecond"][-1][0] == pytest.approx(cold["stepsPerSecond"] / 2, rel=0.01)
    selector = f"{LABEL_JOB}=cached,{LABEL_ROLE}={ROLE_WORKER}"
    (pod,) = (await kube.list(PODS, namespace, label_selector=selector))["items"]
    container = pod["spec"]["containers"][0]
    env = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert int(env["SYNERGY_CACHE_BYTES"]) == int(env["SYNERGY_MEMORY_BYTES"]) - matrix["memoryBytes"][0] > 0
    await reaches(kube, namespace, "cached", "Succeeded", seconds=120)


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_the_curve_of_a_pytorch_pipeline_is_within_ten_per_cent_of_a_full_sweep(
    kube: KubeClient, namespace: str, pools: None, policy: Callable[..., Awaitable[None]]
) -> None:
    """Nobody knows this pipeline's curve: the sweep measures each point, Auto at most every other one."""
    await policy(mechanism="tune", roundSeconds=20)
    grid = range(200, 1001, 100)
    profiles = {}
    for mode in ("Sweep", "Auto"):
        name = mode.lower()
        template = restricted_template(["python3", "-c", PIPELINE.replace("NAME", name)])
        template["spec"]["containers"][0]["image"] = EXAMPLES_TORCH.tag
        await submit(
            kube,
            namespace,
            name,
            gpus=1,
            steps=20,
            gpuTypes=["A100"],
            profile={"mode": mode, "steps": 60, "warmupSteps": 8, "cpuStep": "100m", "timeoutSeconds": 180},
            resources={"min": {"cpu": "200m", "memory": "512Mi"}, "max": {"cpu": "1", "memory": "768Mi"}},
            template=template,
        )
        job = await reaches(kube, namespace, name, "Succeeded", "Failed", seconds=420)
        assert job["status"]["phase"] == "Succeeded", job["status"]
        profiles[mode] = job["status"]["profile"]
    swept = {point["cpuMillis"]: point["stepsPerSecond"] for point in profiles["Sweep"]["points"]}
    assert sorted(swept) == list(grid)
    assert swept[1000] > 1.5 * swept[200], "CPU makes it faster"
    (curve,) = profiles["Auto"]["matrices"]
    found = {cpu: row[-1] for cpu, row in zip(curve["cpuMillis"], curve["stepsPerSecond"], strict=True)}
    errors = {cpu: found[cpu] / swept[cpu] - 1 for cpu in grid}
    print(f"swept {swept}\nfound {found}\nerrors {errors}")
    assert max(abs(error) for error in errors.values()) <= 0.10, errors
    assert len(profiles["Auto"]["points"]) <= (len(grid) + 1) // 2

"""What a newcomer copies: the quickstart's commands, the image of three lines, and every manifest of `examples/`."""

import asyncio
import os
import re
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import synergy_devcluster
from support.documentation import blocks
from support.on_cluster.jobs import logs, reaches
from support.on_cluster.namespaces import alone_on
from synergy_devcluster.images.build import build_image
from synergy_devcluster.images.project import EXAMPLES_TORCH
from synergy_devcluster.real_nodes import REAL_NODE
from synergy_kube import KubeClient
from synergy_kube.resources import PERSISTENT_VOLUME_CLAIMS, TRAINING_JOBS

pytestmark = pytest.mark.e2e

STEPS = 60
MANIFESTS = ("cached-images", "cpu-hungry", "gpu-bound", "torch-ddp", "two-node")


@pytest.fixture
def real_node_only(devcluster: synergy_devcluster.Cluster, product: None) -> Iterator[None]:
    """Without the fake nodes, as on the demo's cluster."""
    kubectl = [str(devcluster.program("kubectl")), f"--kubeconfig={devcluster.kubeconfig}"]
    subprocess.run([*kubectl, "cordon", "--selector=type=kwok"], check=True, stdout=subprocess.DEVNULL)
    yield
    subprocess.run([*kubectl, "uncordon", "--selector=type=kwok"], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("real_node_only")
async def test_the_quickstart_works_as_it_is_copied(kube: KubeClient, repository: Path) -> None:
    await alone_on(kube, REAL_NODE)
    page = repository / "docs" / "quickstart.md"
    mine = [block for block in blocks(page) if block.needs == "the demo's cluster"]
    script = [command for block in mine for command in block.commands]
    assert any("kubectl apply" in command for command in script)
    done = await asyncio.to_thread(
        subprocess.run,
        ["bash", "-euo", "pipefail", "-c", "\n".join(script)],
        cwd=repository,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"run \d+ resumes at step \d+", done.stdout), done.stdout
    assert "trained: [" in done.stdout


def test_the_quickstart_shows_the_job_that_it_submits(repository: Path) -> None:
    page = (repository / "docs" / "quickstart.md").read_text()
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
    file = (repository / "examples" / "quickstart" / "job.yaml").read_text()
    assert file.endswith(f"---\n{shown}")
    (loop,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    script = yaml.safe_load(file.partition("---")[0])["data"]["train.py"]
    assert loop in script


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("real_node_only")
async def test_the_image_of_three_lines_trains(
    kube: KubeClient, namespace: str, repository: Path, devcluster: synergy_devcluster.Cluster, tmp_path: Path
) -> None:
    """As the quickstart makes it, but from the PyTorch that can be had here."""
    (dockerfile,) = re.findall(
        r"```dockerfile\n(.*?)```", (repository / "docs" / "quickstart.md").read_text(), flags=re.DOTALL
    )
    first, *rest = dockerfile.strip().splitlines()
    assert first.startswith("FROM pytorch/pytorch:")
    assert len(rest) == 2
    (tmp_path / "Dockerfile").write_text("\n".join([f"FROM {EXAMPLES_TORCH.tag}", *rest]))
    (tmp_path / "train.py").write_text((repository / "examples" / "torch_training.py").read_text())
    archive = await asyncio.to_thread(
        build_image, tmp_path / "Dockerfile", tmp_path, "localhost/three-lines:1", paths=devcluster.paths
    )
    await asyncio.to_thread(devcluster.load_image, archive)
    container = {
        "name": "train",
        "image": "localhost/three-lines:1",
        "command": ["python3", "/train.py"],
        "args": ["--checkpoint", "/tmp/checkpoint", "--steps", "20"],
    }
    spec = {
        "gpus": 1,
        "steps": 20,
        "profile": {"mode": "Skip"},
        "template": {"spec": {"containers": [container]}},
    }
    await kube.create(TRAINING_JOBS, {"metadata": {"name": "mine"}, "spec": spec}, namespace)
    await reaches(kube, namespace, "mine", "Succeeded", seconds=180)
    assert "done after step 20" in logs(devcluster, namespace, "mine-1-0")


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("real_node_only")
async def test_every_manifest_of_the_examples_trains(
    kube: KubeClient,
    namespace: str,
    repository: Path,
    policy: Callable[..., Awaitable[None]],
) -> None:
    """All at once on two GPUs, with fewer steps."""
    await alone_on(kube, REAL_NODE)
    await policy(policy="fifo", roundSeconds=20, profiling={"maxGpuPercent": 100})
    folder = repository / "examples" / "manifests"
    assert sorted(file.stem for file in folder.glob("*.yaml")) == sorted(MANIFESTS), "all are run here"
    for name in MANIFESTS:
        for document in yaml.safe_load_all((folder / f"{name}.yaml").read_text()):
            kind = {"PersistentVolumeClaim": PERSISTENT_VOLUME_CLAIMS, "TrainingJob": TRAINING_JOBS}[document["kind"]]
            await kube.create(kind, _shorter(document), namespace)
    for name in MANIFESTS:
        job = await reaches(kube, namespace, name, "Succeeded", "Failed", seconds=900)
        assert job["status"]["phase"] == "Succeeded", f"{name}: {yaml.safe_dump(job['status'])}"
        assert job["status"]["progress"]["steps"] == STEPS
        assert job["status"]["profile"]["points"], "it was profiled"


def _shorter(document: dict[str, Any]) -> dict[str, Any]:
    if document["kind"] != "TrainingJob":
        return document
    spec = document["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    args = [str(STEPS) if word == str(spec["steps"]) else word for word in container["args"]]
    spec.update(steps=STEPS, profile={**spec["profile"], "steps": 30, "warmupSteps": 2})
    container["args"] = args
    return document
